//! A connected socket as the rooms above see it.

use super::http2::Http2Socket;
use super::plain::{DetachedSocket, PlainSocket};
use super::tls::session::TlsSocket;
use super::unregistered::UnregisteredSocket;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::task::unconstrained;

/// The bytes of a connection, in clear.
///
/// There are two ways to write. [`poll_send`](Self::poll_send) counts what the system has taken, which is what the gateway's
/// own exchanges account for. [`AsyncWrite`] may keep bytes back until it is flushed, as libraries expect.
#[derive(Debug)]
pub(crate) enum Socket {
    Plain(PlainSocket),
    /// A client's socket, which becomes `Plain` at its first wait.
    Unregistered(UnregisteredSocket),
    Tls(Box<TlsSocket>),
    /// A server's socket that speaks HTTP/2.
    Http2(Box<Http2Socket>),
}

impl Socket {
    /// The socket of a client that was just accepted.
    pub(crate) fn accepted(io: DetachedSocket) -> Self {
        Socket::Unregistered(UnregisteredSocket::new(io))
    }

    /// The system's socket, registered, of a connection on which no protocol has begun.
    pub(crate) fn into_plain(mut self) -> io::Result<PlainSocket> {
        self.register()?;
        match self {
            Socket::Plain(io) => Ok(io),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Registers a socket that its thread's selector does not know.
    fn register(&mut self) -> io::Result<()> {
        if let Socket::Unregistered(io) = self {
            *self = Socket::Plain(io.register()?);
        }
        Ok(())
    }

    /// Reads if this is a new socket's first read and something is there. Otherwise the socket is registered afterwards.
    #[inline]
    fn read_first(&mut self, into: &mut ReadBuf<'_>) -> io::Result<Option<()>> {
        let Socket::Unregistered(io) = self else { return Ok(None) };
        let read = io.read(into)?;
        if read.is_none() { self.register().map(|()| None) } else { Ok(read) }
    }

    /// Writes if this is a new socket's first write and there is room. Otherwise the socket is registered afterwards.
    #[inline]
    fn write_first(&mut self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let Socket::Unregistered(io) = self else { return Ok(None) };
        let written = io.write(slices)?;
        if written.is_none() { self.register().map(|()| None) } else { Ok(written) }
    }

    /// The underlying socket of the system, if requests do not share it.
    #[inline]
    fn plain(&self) -> Option<&PlainSocket> {
        match self {
            Socket::Plain(io) => Some(io),
            Socket::Tls(io) => Some(io.plain()),
            Socket::Unregistered(_) | Socket::Http2(_) => None,
        }
    }

    /// Whether the server refused the last request without looking at it.
    pub(crate) fn was_refused(&self) -> bool {
        matches!(self, Socket::Http2(io) if io.was_refused())
    }

    /// Moves the socket from another thread's selector to that of the calling thread.
    pub(crate) fn take_over(mut self) -> io::Result<Self> {
        self.register()?;
        match self {
            Socket::Plain(io) => Ok(Socket::Plain(io.detach()?.attach()?)),
            Socket::Unregistered(_) => Err(io::ErrorKind::NotConnected.into()),
            Socket::Tls(mut io) => io.take_over().map(|()| Socket::Tls(io)),
            Socket::Http2(mut io) => io.take_over().map(|()| Socket::Http2(io)),
        }
    }

    /// Ready when a read may find something, or an end.
    #[inline]
    pub(crate) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Socket::Plain(io) => io.poll_read_ready(context),
            // Bytes that came earlier may lie decrypted, or nobody has looked yet: only a read shows it.
            Socket::Unregistered(_) | Socket::Tls(_) | Socket::Http2(_) => Poll::Ready(Ok(())),
        }
    }

    /// Ready when the system may take bytes.
    #[inline]
    pub(crate) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.plain().map_or(Poll::Ready(Ok(())), |io| io.poll_write_ready(context))
    }

    /// Whether an idle connection has nothing to read and no end. Without TLS the selector's last word says it, without a
    /// system call. The look is not charged to the task: once that has spent its budget, every socket seems quiet to it.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let look = unconstrained(poll_fn(|context| {
            Poll::Ready(match self {
                Socket::Plain(io) => io.poll_read_ready(context).is_pending(),
                // A connection that was never waited for is never kept idle.
                Socket::Unregistered(_) => false,
                Socket::Tls(io) => io.is_quiet(context),
                Socket::Http2(io) => io.is_quiet(),
            })
        }));
        pin!(look).poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(true)
    }

    /// Whether the system has bytes for it, or an end, that nobody has read. The streams of HTTP/2 are distinguished anyhow.
    pub(crate) fn has_come(&self) -> bool {
        self.plain().is_some_and(PlainSocket::has_come)
    }

    /// Writes once; ready with how many bytes the system has taken. After `Pending` the next call must bring the same bytes
    /// first: some of them may be under way.
    #[inline]
    pub(crate) fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self {
            Socket::Plain(io) => Pin::new(io).poll_write(context, bytes),
            Socket::Unregistered(_) => Pin::new(self).poll_write(context, bytes),
            Socket::Tls(io) => io.poll_send(context, &[IoSlice::new(bytes)]),
            Socket::Http2(io) => io.poll_send(context, &[IoSlice::new(bytes)]),
        }
    }

    /// As [`poll_send`](Self::poll_send), out of several pieces.
    #[inline]
    pub(crate) fn poll_send_vectored(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self {
            Socket::Plain(io) => Pin::new(io).poll_write_vectored(context, slices),
            Socket::Unregistered(_) => Pin::new(self).poll_write_vectored(context, slices),
            Socket::Tls(io) => io.poll_send(context, slices),
            Socket::Http2(io) => io.poll_send(context, slices),
        }
    }

    /// How many of the bytes that the socket took have not reached the other end's kernel; 0 if the system does not report it.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.plain().map_or(0, PlainSocket::unacknowledged)
    }

    /// How many bytes the socket keeps: those that the system has not taken, and those of which no byte in clear can be read
    /// yet.
    pub(crate) fn held(&self) -> usize {
        match self {
            Socket::Plain(_) | Socket::Unregistered(_) | Socket::Http2(_) => 0,
            Socket::Tls(io) => io.held(),
        }
    }

    /// Whether the system has taken a part of bytes that [`poll_send`](Self::poll_send) has not reported as taken.
    pub(crate) fn has_sent_part(&self) -> bool {
        matches!(self, Socket::Tls(io) if io.has_sent_part())
    }

    /// Makes the connection end with a reset, which the other end cannot take for a plain end.
    pub(crate) fn reset_on_close(&mut self) {
        // A socket that cannot be registered is already broken.
        let _ = self.register();
        self.plain().into_iter().for_each(PlainSocket::reset_on_close);
        if let Socket::Tls(io) = self {
            io.abort();
        }
    }
}

/// The same expression for each kind of socket that its thread's selector knows.
macro_rules! either {
    ($socket:expr, $io:ident => $then:expr) => {
        match $socket {
            Socket::Plain($io) => $then,
            Socket::Unregistered(_) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            Socket::Tls($io) => $then,
            Socket::Http2($io) => $then,
        }
    };
}

impl AsyncRead for Socket {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        if own.read_first(into)?.is_some() {
            return Poll::Ready(Ok(()));
        }
        either!(own, io => Pin::new(io).poll_read(context, into))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        if let Some(count) = own.write_first(&[IoSlice::new(bytes)])? {
            return Poll::Ready(Ok(count));
        }
        either!(own, io => Pin::new(io).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let own = self.get_mut();
        if let Some(count) = own.write_first(slices)? {
            return Poll::Ready(Ok(count));
        }
        either!(own, io => Pin::new(io).poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            // Written bytes are with the system already.
            Socket::Unregistered(_) => Poll::Ready(Ok(())),
            own => either!(own, io => Pin::new(io).poll_flush(context)),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        own.register()?;
        either!(own, io => Pin::new(io).poll_shutdown(context))
    }
}
