//! A client's socket that its thread's selector does not know yet.
//!
//! A request has often come when its connection is accepted, and a short answer fits into the empty socket. So the first read
//! and the first write are tried at once. The socket is registered only if one of them has to wait, or when more follows: a
//! connection that ends with its first answer saves two system calls and a wait.
//!
//! Why only these two: the wait for the selector also bounds how long one connection keeps its thread.

use super::plain::{DetachedSocket, PlainSocket};
use std::io::{self, ErrorKind, IoSlice};
use tokio::io::ReadBuf;

#[derive(Debug)]
pub(crate) struct UnregisteredSocket {
    /// `None` after a try to register the socket.
    io: Option<DetachedSocket>,
    has_read: bool,
    has_written: bool,
}

impl UnregisteredSocket {
    pub(super) fn new(io: DetachedSocket) -> Self {
        UnregisteredSocket { io: Some(io), has_read: false, has_written: false }
    }

    /// The first read; `None` if no byte has come, or if the first read is over.
    pub(super) fn read(&mut self, into: &mut ReadBuf<'_>) -> io::Result<Option<()>> {
        match &self.io {
            Some(io) if !std::mem::replace(&mut self.has_read, true) => {
                at_once(io.read(into.initialize_unfilled()).map(|count| into.advance(count)))
            }
            _ => Ok(None),
        }
    }

    /// The first write; `None` if the socket takes nothing, or if the first write is over.
    pub(super) fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        match &self.io {
            Some(io) if !std::mem::replace(&mut self.has_written, true) => at_once(io.write(slices)),
            _ => Ok(None),
        }
    }

    /// Registers the socket with the selector of the calling thread.
    pub(super) fn register(&mut self) -> io::Result<PlainSocket> {
        self.io.take().ok_or(ErrorKind::NotConnected)?.attach()
    }
}

/// The result of a call that did not wait; `None` if it would have.
fn at_once<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use crate::transport::plain::DetachedSocket;
    use crate::transport::socket::Socket;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};
    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};

    fn pair() -> (Socket, UnixStream) {
        let (own, client) = UnixStream::pair().expect("a pair");
        own.set_nonblocking(true).expect("an option");
        (Socket::accepted(DetachedSocket::Unix(own)), client)
    }

    /// Registering the socket would panic here, since there is no runtime.
    #[test]
    fn a_request_that_is_there_and_a_short_answer_need_no_selector() {
        let (mut socket, mut client) = pair();
        let mut context = Context::from_waker(Waker::noop());
        client.write_all(b"request").expect("room");
        let mut into = [0; 100];
        let mut into = ReadBuf::new(&mut into);
        assert!(socket.poll_read_ready(&mut context).is_ready());
        assert!(Pin::new(&mut socket).poll_read(&mut context, &mut into).is_ready());
        assert_eq!(into.filled(), b"request");
        assert!(matches!(socket.poll_send(&mut context, b"answer"), Poll::Ready(Ok(6))));
        assert!(matches!(socket, Socket::Unregistered(_)));
        drop(socket);
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).expect("an end");
        assert_eq!(answer, b"answer");
    }

    #[test]
    fn what_comes_later_and_what_does_not_fit_is_waited_for() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let (mut socket, mut client) = pair();
        let sent: Vec<u8> = (0..2_000_000_u32).map(|place| (place * 7) as u8).collect();
        let expected = sent.clone();
        let other_end = std::thread::spawn(move || {
            // The pause is to let the first read find nothing. On a slow machine it may find bytes, which is as right.
            std::thread::sleep(std::time::Duration::from_millis(50));
            client.write_all(b"one").expect("room");
            client.write_all(b"two").expect("room");
            let mut received = vec![0; expected.len()];
            client.read_exact(&mut received).expect("all of it");
            assert!(received == expected, "in order");
        });
        runtime.block_on(async {
            let mut read = [0; 6];
            socket.read_exact(&mut read).await.expect("both pieces");
            assert_eq!(&read, b"onetwo");
            socket.write_all(&sent).await.expect("all of it");
            assert!(matches!(socket, Socket::Plain(_)), "it had to wait");
        });
        other_end.join().expect("what was sent came");
    }

    #[test]
    fn the_end_is_read_at_once() {
        let (mut socket, client) = pair();
        drop(client);
        let mut into = [0; 10];
        let mut into = ReadBuf::new(&mut into);
        let read = Pin::new(&mut socket).poll_read(&mut Context::from_waker(Waker::noop()), &mut into);
        assert!(matches!(read, Poll::Ready(Ok(()))) && into.filled().is_empty());
    }
}
