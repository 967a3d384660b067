//! A socket of the system: TCP or Unix.

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// A connected socket, registered with its thread's selector.
#[derive(Debug)]
pub(crate) enum PlainSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connected, non-blocking socket that no selector knows yet.
#[derive(Debug)]
pub(crate) enum DetachedSocket {
    Tcp(std::net::TcpStream),
    Unix(StdUnixStream),
}

/// The same expression for either kind of socket.
macro_rules! either {
    ($socket:expr, $io:ident => $then:expr) => {
        match $socket {
            PlainSocket::Tcp($io) => $then,
            PlainSocket::Unix($io) => $then,
        }
    };
}

impl PlainSocket {
    /// Takes the socket from its thread's selector.
    pub(super) fn detach(self) -> io::Result<DetachedSocket> {
        Ok(match self {
            PlainSocket::Tcp(io) => DetachedSocket::Tcp(io.into_std()?),
            PlainSocket::Unix(io) => DetachedSocket::Unix(io.into_std()?),
        })
    }

    /// A second descriptor of the same socket, which no selector knows.
    pub(super) fn duplicate(&self) -> io::Result<DetachedSocket> {
        Ok(match self {
            PlainSocket::Tcp(io) => DetachedSocket::Tcp(io.as_fd().try_clone_to_owned()?.into()),
            PlainSocket::Unix(io) => DetachedSocket::Unix(io.as_fd().try_clone_to_owned()?.into()),
        })
    }

    /// Peeks at the next bytes; zero is the end.
    pub(crate) fn poll_peek(&self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_read_ready(context))?;
            let peeked = either!(self, io => io.try_io(Interest::READABLE, || {
                let (count, _) = rustix::net::recv(io.as_fd(), &mut *into, RecvFlags::PEEK)?;
                Ok(count)
            }));
            match peeked {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                peeked => return Poll::Ready(peeked),
            }
        }
    }

    /// Whether the socket has bytes to read, or has ended. This asks the system, whatever the selector said last.
    pub(crate) fn has_come(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = either!(self, io => rustix::net::recv(io.as_fd(), &mut [0; 1][..], flags));
        !matches!(peeked, Err(Errno::AGAIN))
    }

    #[inline]
    pub(crate) fn poll_read_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_read_ready(context))
    }

    #[inline]
    pub(crate) fn poll_write_ready(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_write_ready(context))
    }

    fn descriptor(&self) -> RawFd {
        either!(self, io => io.as_raw_fd())
    }

    /// How many of the bytes that the socket accepted have not reached the other end's kernel; 0 if the system does not report
    /// it.
    pub(crate) fn unacknowledged(&self) -> u64 {
        let mut count: libc::c_int = 0;
        #[cfg(target_os = "linux")]
        #[expect(unsafe_code, reason = "no library wraps it; the system writes this one number")]
        unsafe {
            libc::ioctl(self.descriptor(), libc::TIOCOUTQ, &raw mut count);
        }
        u64::try_from(count).unwrap_or(0)
    }

    /// Makes the connection end with a reset, which the other end cannot take for a plain end. A Unix socket has no reset.
    pub(crate) fn reset_on_close(&self) {
        if let PlainSocket::Tcp(io) = self {
            let _ = io.set_zero_linger();
        }
    }
}

impl DetachedSocket {
    /// Sends the bytes that the socket takes at once, drops the rest, and ends the sending side. The bytes and the end go out
    /// in one packet instead of two, which saves a third of the cost of turning a client away. A close would not do: if bytes
    /// came and were not read, it resets the connection, and drops the bytes to be sent.
    pub(crate) fn send_last(&self, bytes: &[u8]) {
        let socket = match self {
            DetachedSocket::Tcp(io) => io.as_fd(),
            DetachedSocket::Unix(io) => io.as_fd(),
        };
        let _ = rustix::net::send(socket, bytes, SendFlags::MORE | SendFlags::NOSIGNAL);
        let _ = rustix::net::shutdown(socket, Shutdown::Write);
    }

    pub(super) fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            DetachedSocket::Tcp(io) => (&mut &*io).read(into),
            DetachedSocket::Unix(io) => (&mut &*io).read(into),
        }
    }

    pub(super) fn write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match (self, slices) {
            // A call that takes one piece costs less than one that takes several.
            (DetachedSocket::Tcp(io), [one]) => (&mut &*io).write(one),
            (DetachedSocket::Unix(io), [one]) => (&mut &*io).write(one),
            (DetachedSocket::Tcp(io), _) => (&mut &*io).write_vectored(slices),
            (DetachedSocket::Unix(io), _) => (&mut &*io).write_vectored(slices),
        }
    }

    /// Registers the socket with the selector of the calling thread.
    pub(crate) fn attach(self) -> io::Result<PlainSocket> {
        Ok(match self {
            DetachedSocket::Tcp(io) => PlainSocket::Tcp(TcpStream::from_std(io)?),
            DetachedSocket::Unix(io) => PlainSocket::Unix(UnixStream::from_std(io)?),
        })
    }
}

impl AsyncRead for PlainSocket {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self.get_mut(), io => Pin::new(io).poll_read(context, into))
    }
}

impl AsyncWrite for PlainSocket {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), io => Pin::new(io).poll_write(context, bytes))
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), io => Pin::new(io).poll_write_vectored(context, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), io => Pin::new(io).poll_shutdown(context))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream as StdTcpStream};

    #[test]
    fn a_client_that_has_sent_more_than_was_read_gets_the_last_bytes() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        for unread in [&b""[..], b"GET / HTTP/1.1\r\n\r\n"] {
            let mut client = StdTcpStream::connect(listener.local_addr().unwrap()).unwrap();
            client.write_all(unread).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            let accepted = DetachedSocket::Tcp(accepted);
            accepted.send_last(b"HTTP/1.1 503 Service Unavailable\r\n\r\n");
            drop(accepted);
            let mut bytes = Vec::new();
            // A reset may follow if bytes were not read.
            let end = client.read_to_end(&mut bytes);
            assert!(!unread.is_empty() || end.is_ok(), "{end:?}");
            assert_eq!(bytes, b"HTTP/1.1 503 Service Unavailable\r\n\r\n");
        }
    }
}
