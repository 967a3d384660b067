//! A TLS connection on a socket of the system.
//!
//! Why not `tokio-rustls`: it accepts bytes before the system does, so that the gateway would not know which bytes a client
//! has; and its connections cannot move from one thread to another, as idle connections to upstreams do.
//!
//! **Bound.** At most [`FAST`] bytes are encrypted and not yet sent, or [`SLOW`] if the other end does not take them at once.

use crate::transport::plain::PlainSocket;
use rustls::Connection;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes are encrypted at a time: four records, or one.
const FAST: usize = 64 * 1024;
const SLOW: usize = 16 * 1024;
/// How many pieces are encrypted together.
const PIECES: usize = 8;

/// The bytes that came first, as many as show what is spoken; zeros behind them if there were fewer.
pub(super) type FirstBytes = [u8; 12];

#[derive(Debug)]
pub(crate) struct TlsSocket {
    pub(super) io: PlainSocket,
    pub(super) session: Connection,
    /// Bytes that are encrypted and not yet reported as sent.
    owed: usize,
    /// Whether the system has taken a part of the owed bytes.
    has_sent_part: bool,
    /// How many bytes may be encrypted at a time.
    most: usize,
    /// The number of bytes that came, and the first of them.
    pub(super) received: usize,
    pub(super) first: Option<FirstBytes>,
    /// Whether the end was announced to the other end, or must not be.
    is_ended: bool,
    /// How many bytes came since the last bytes in clear, which is about what is kept of an incomplete record.
    unread: usize,
}

/// The underlying socket, as rustls reads and writes it.
struct Below<'a, 'b> {
    io: &'a mut PlainSocket,
    context: &'a mut Context<'b>,
    first: Option<FirstBytes>,
}

fn without_wait<T>(poll: Poll<io::Result<T>>) -> io::Result<T> {
    match poll {
        Poll::Ready(result) => result,
        Poll::Pending => Err(ErrorKind::WouldBlock.into()),
    }
}

impl Read for Below<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut target = ReadBuf::new(into);
        without_wait(Pin::new(&mut *self.io).poll_read(self.context, &mut target))?;
        let (mut first, filled) = (FirstBytes::default(), target.filled());
        let known = filled.len().min(first.len());
        first[..known].copy_from_slice(&filled[..known]);
        self.first = Some(first);
        Ok(target.filled().len())
    }
}

impl Write for Below<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        without_wait(Pin::new(&mut *self.io).poll_write(self.context, bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        without_wait(Pin::new(&mut *self.io).poll_write_vectored(self.context, slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TlsSocket {
    pub(super) fn new(io: PlainSocket, session: Connection) -> Box<Self> {
        let (first, is_ended, has_sent_part) = (None, false, false);
        let most = FAST;
        Box::new(TlsSocket {
            io,
            session,
            owed: 0,
            has_sent_part,
            most,
            received: 0,
            first,
            is_ended,
            unread: 0,
        })
    }

    pub(in crate::transport) fn plain(&self) -> &PlainSocket {
        &self.io
    }

    /// How many bytes the session keeps: those that the system has not taken, and those of an incomplete record.
    pub(in crate::transport) fn held(&self) -> usize {
        self.owed + self.unread
    }

    /// Whether the system has taken a part of the owed bytes, which the other end may have read.
    pub(in crate::transport) fn has_sent_part(&self) -> bool {
        self.owed > 0 && self.has_sent_part
    }

    /// Moves the socket to the selector of the calling thread.
    pub(in crate::transport) fn take_over(&mut self) -> io::Result<()> {
        self.io = self.io.duplicate()?.attach()?;
        Ok(())
    }

    /// Whether nothing came but messages of TLS itself, such as tickets.
    pub(in crate::transport) fn is_quiet(&mut self, context: &mut Context<'_>) -> bool {
        loop {
            if self.session.wants_read() {
                match self.poll_receive(context) {
                    Poll::Pending => return true,
                    Poll::Ready(Ok(count)) if count > 0 => {}
                    Poll::Ready(_) => return false,
                }
            } else {
                return false;
            }
        }
    }

    /// Sends no end of TLS at the end, so that the other end does not take the bytes for complete.
    pub(in crate::transport) fn abort(&mut self) {
        self.is_ended = true;
    }

    /// Sends the encrypted bytes.
    pub(super) fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.wants_write() {
            let mut below = Below { io: &mut self.io, context, first: None };
            match self.session.write_tls(&mut below) {
                Ok(0) => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                Ok(_) => self.has_sent_part = true,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.most = SLOW;
                    return Poll::Pending;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads once from the underlying socket and decrypts the complete records; ready with the number of bytes, zero at the
    /// end.
    pub(super) fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let is_handshake = self.session.is_handshaking();
        let mut below = Below { io: &mut self.io, context, first: None };
        let count = match self.session.read_tls(&mut below) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                // Tickets and answers to a change of keys are sent at once.
                if self.session.wants_write()
                    && let Poll::Ready(Err(error)) = self.poll_drain(context)
                {
                    return Poll::Ready(Err(error));
                }
                return Poll::Pending;
            }
            Err(error) => return Poll::Ready(Err(error)),
        };
        let first = below.first;
        self.first = self.first.or(first);
        self.received = self.received.saturating_add(count);
        let state = match self.session.process_new_packets() {
            Ok(state) => state,
            Err(error) => return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, error))),
        };
        let is_record = is_handshake || state.plaintext_bytes_to_read() > 0;
        self.unread = if is_record { 0 } else { self.unread.saturating_add(count) };
        Poll::Ready(Ok(count))
    }

    /// Writes once; ready with how many bytes the system has taken. After `Pending` the same bytes must come first again.
    pub(in crate::transport) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.owed == 0 {
            (self.has_sent_part, self.owed) = (false, self.encrypt(slices)?);
        }
        ready!(self.poll_drain(context))?;
        self.most = FAST;
        Poll::Ready(Ok(std::mem::take(&mut self.owed)))
    }

    /// Encrypts as many bytes as may be encrypted at a time.
    fn encrypt(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut pieces = [IoSlice::new(&[]); PIECES];
        let (mut used, mut room) = (0, self.most);
        for (piece, slice) in pieces.iter_mut().zip(slices.iter().take_while(|slice| !slice.is_empty())) {
            *piece = IoSlice::new(&slice[..slice.len().min(room)]);
            (used, room) = (used + 1, room - piece.len());
            if room == 0 {
                break;
            }
        }
        match &pieces[..used] {
            [one] => self.session.writer().write(one),
            many => self.session.writer().write_vectored(many),
        }
    }

    fn end(&mut self) {
        if !self.is_ended {
            self.is_ended = true;
            self.session.send_close_notify();
        }
    }
}

impl AsyncRead for TlsSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            match this.session.reader().read(into.initialize_unfilled()) {
                Ok(count) => {
                    into.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The connection ended without TLS's own end: the bytes that came may be cut short.
                Err(error) => return Poll::Ready(Err(error)),
            }
            ready!(this.poll_receive(context))?;
        }
    }
}

impl AsyncWrite for TlsSocket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(this.poll_drain(context))?;
        this.most = FAST;
        let count = this.encrypt(slices)?;
        // Bytes that are not sent yet are sent before the next bytes, or at the flush.
        match this.poll_drain(context) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(count)),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_drain(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.end();
        ready!(this.poll_drain(context))?;
        Pin::new(&mut this.io).poll_shutdown(context)
    }
}

impl Drop for TlsSocket {
    /// Sends TLS's end, if the system takes it at once.
    fn drop(&mut self) {
        if !self.is_ended {
            self.end();
            let _ = self.poll_drain(&mut Context::from_waker(Waker::noop()));
        }
    }
}
