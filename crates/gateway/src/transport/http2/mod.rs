//! HTTP/2 with upstreams: a connection that takes and gives the bytes of HTTP/1.1, one request after another.
//!
//! The rooms above write a request's text and read a response's text on any socket; here text becomes frames, and frames become
//! text. So everything that both protocols share (retries, deadlines, buffers, checks of heads and bodies) exists once. So does
//! the pool: a connection serves one request at a time, and the pool bounds the number of open connections.
//!
//! Why a connection has one stream at a time: several would share one window and one thread, and a server that gives a
//! connection to one process would get all requests there. Multiplexing saves handshakes, and so does the pool, which keeps
//! connections.
//!
//! - [`outgoing`]: a request's text, taken apart into head, data and trailers
//! - [`incoming`]: a response's frames, put together as text
//!
//! Frames are moved whenever the socket is read or written, or is checked while idle: a server that sends `GOAWAY` then ends
//! the connection. Small frames that are ready together go out in one write. If the server refused a request before it looked
//! at it (`REFUSED_STREAM`, or a `GOAWAY` that does not count the request), the connection ends as if it was closed without a
//! byte, and [`was_refused`] reports it.
//!
//! [`was_refused`]: Http2Socket::was_refused

mod incoming;
mod outgoing;

use super::socket::Socket;
use crate::http2::coalesced_writes::GatheringSocket;
use crate::http2::windows::{CONNECTION_WINDOW, SMALL_FRAMES, STREAM_WINDOW};
use crate::sync::lock;
use bytes::Bytes;
use h2::Reason;
use h2::client::{Builder, Connection, SendRequest};
use incoming::ResponseText;
use outgoing::{Begun, RequestText};
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many bytes of a request may be on their way to the socket.
const SEND_BUFFER: usize = 128 * 1024;
const LONGEST_HEAD: u32 = 64 * 1024;

/// The underlying socket. The connection owns it, and another thread may take it over.
#[derive(Debug)]
struct SharedSocket(Arc<Mutex<GatheringSocket<Socket>>>);

pub(crate) struct Http2Socket {
    below: Arc<Mutex<GatheringSocket<Socket>>>,
    /// `None` once it has ended.
    connection: Option<Connection<SharedSocket, Bytes>>,
    send: SendRequest<Bytes>,
    request: RequestText,
    response: ResponseText,
    was_refused: bool,
}

impl std::fmt::Debug for Http2Socket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http2Socket").field("is_open", &self.connection.is_some()).finish_non_exhaustive()
    }
}

impl Http2Socket {
    /// Begins a connection; the server's settings come later.
    pub(crate) async fn connect(io: Socket) -> io::Result<Box<Self>> {
        let scheme = if matches!(io, Socket::Plain(_)) { "http" } else { "https" };
        let below = Arc::new(Mutex::new(GatheringSocket::new(io)));
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .data_frame_budget(SMALL_FRAMES)
            .max_header_list_size(LONGEST_HEAD)
            .max_send_buffer_size(SEND_BUFFER);
        let begun = builder.handshake(SharedSocket(below.clone())).await;
        let (send, connection) = begun.map_err(io::Error::other)?;
        Ok(Box::new(Http2Socket {
            below,
            connection: Some(connection),
            send,
            request: RequestText::new(scheme),
            response: ResponseText::default(),
            was_refused: false,
        }))
    }

    /// Whether the last request was refused before the server looked at it.
    pub(crate) fn was_refused(&self) -> bool {
        self.was_refused
    }

    /// Moves the socket to the selector of the calling thread.
    pub(super) fn take_over(&mut self) -> io::Result<()> {
        match lock(&self.below).below() {
            Socket::Plain(io) => *io = io.duplicate()?.attach()?,
            Socket::Tls(io) => io.take_over()?,
            // A server's socket is connected and not accepted, and does not lie over another HTTP/2 connection.
            Socket::Unregistered(_) | Socket::Http2(_) => {}
        }
        Ok(())
    }

    /// Whether an idle connection can serve a request.
    pub(super) fn is_quiet(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.drive(&mut context);
        self.connection.is_some() && matches!(self.send.poll_ready(&mut context), Poll::Ready(Ok(())))
    }

    /// Moves frames both ways, as far as the socket allows.
    fn drive(&mut self, context: &mut Context<'_>) {
        self.turn(context);
        if matches!(lock(&self.below).poll_flush(context), Poll::Ready(Err(_))) {
            self.connection = None;
        }
    }

    /// Reads incoming frames, and gathers outgoing ones.
    fn turn(&mut self, context: &mut Context<'_>) {
        // Its streams report what it ended with.
        if let Some(connection) = &mut self.connection
            && Pin::new(connection).poll(context).is_ready()
        {
            self.connection = None;
        }
    }

    /// Takes bytes of a request; ready with how many were taken.
    pub(super) fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut taken = 0;
        for slice in slices {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                match self.poll_take(rest, context) {
                    Poll::Ready(Ok(count)) => (rest, taken) = (&rest[count..], taken + count),
                    // The error is permanent: the next bytes meet it again.
                    Poll::Ready(Err(error)) if taken == 0 => return Poll::Ready(Err(error)),
                    Poll::Pending if taken == 0 => {
                        self.drive(context);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(_)) | Poll::Pending => {
                        self.drive(context);
                        return Poll::Ready(Ok(taken));
                    }
                }
            }
        }
        self.drive(context);
        Poll::Ready(Ok(taken))
    }

    fn poll_take(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.request.is_in_body() {
            return self.request.poll_body(bytes, context);
        }
        ready!(self.send.poll_ready(context)).map_err(io::Error::other)?;
        let (count, begun) = self.request.take_head(bytes)?;
        match begun {
            Begun::Part => {}
            Begun::Request(request, head) => {
                self.was_refused = false;
                let sent = self.send.send_request(*request, !head.has_body).map_err(io::Error::other)?;
                self.response = ResponseText::awaited(sent.0, head.is_head);
                self.request.begin_body(sent.1);
                if head.has_body {
                    // The turn opens the stream, so that the body can follow in the same write.
                    self.turn(context);
                }
            }
            Begun::Impossible => self.response = ResponseText::impossible(),
        }
        Poll::Ready(Ok(count))
    }
}

/// Whether a server that ended a stream so has not looked at its request (RFC 9113 8.7).
fn is_refusal(error: &h2::Error) -> bool {
    match error.reason() {
        Some(Reason::REFUSED_STREAM) => error.is_remote(),
        // A stream that the server counts goes on. With any other reason this is reported of all streams.
        Some(Reason::NO_ERROR) => error.is_go_away() && error.is_remote(),
        _ => false,
    }
}

impl AsyncRead for Http2Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.drive(context);
        let read = this.response.poll_read(context, into);
        let read = match ready!(read) {
            Err(error) if is_refusal(&error) && !this.response.has_begun() => {
                this.was_refused = true;
                Ok(())
            }
            read => read.map_err(io::Error::other),
        };
        // Bytes that were taken make room in the server's window.
        this.drive(context);
        Poll::Ready(read)
    }
}

impl AsyncWrite for Http2Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(context, &[IoSlice::new(bytes)])
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().drive(context);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Err(ErrorKind::Unsupported.into()))
    }
}

impl AsyncRead for SharedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        lock(&self.0).poll_read(context, into)
    }
}

impl AsyncWrite for SharedSocket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        lock(&self.0).poll_write(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        lock(&self.0).poll_write(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// `h2` flushes behind each frame with payload; the socket's driver flushes once instead.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        lock(&self.0).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::plain::DetachedSocket;
    use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socketpair};
    use std::future::poll_fn;

    /// On this pair of sockets each message is one write.
    #[test]
    fn a_request_with_a_short_body_is_one_write() {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let pair = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let (own, server) = pair.expect("a pair of sockets");
        let writes = || {
            let mut message = vec![0; 64 * 1024];
            std::iter::from_fn(|| recv(&server, &mut message[..], RecvFlags::empty()).ok())
                .map(|(count, _)| count)
                .collect::<Vec<_>>()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        runtime.block_on(async {
            let io = DetachedSocket::Unix(own.into()).attach().expect("it can be registered");
            let mut io = Http2Socket::connect(Socket::Plain(io)).await.expect("a beginning");
            let head = b"POST /a HTTP/1.1\r\nhost: a.test\r\ncontent-length: 1000\r\n\r\n";
            let slices = [IoSlice::new(head), IoSlice::new(&[b'b'; 1000])];
            let taken = poll_fn(|context| io.poll_send(context, &slices)).await.expect("it is taken");
            assert_eq!(taken, head.len() + 1000);
            // The selector reports at one of its next turns that the new socket takes something.
            for _ in 0..1000 {
                poll_fn(|context| Pin::new(&mut *io).poll_flush(context)).await.expect("it is open");
                tokio::task::yield_now().await;
            }
            let sent = writes();
            assert!(matches!(sent[..], [1000..2000]), "preface, settings, head and body: {sent:?}");
        });
    }
}
