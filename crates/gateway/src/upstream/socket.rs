//! A connection's socket to an upstream: it can change threads.
//!
//! Registered for reading alone. The selector tells at once of a socket that is registered for writing too, for there is
//! nearly always room: the thread that it is moved to would be woken for that, and the thread that has moved it could not
//! write before it has been told. So a write is tried, and only one that finds no room registers for more.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::TcpStream as StdStream;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpStream;
use tokio::runtime::Handle;

/// A connected socket, registered with the selector of one thread.
#[derive(Debug)]
pub(crate) struct Socket {
    /// `None` once it could not be registered: then nothing moves any more.
    io: Option<AsyncFd<StdStream>>,
    /// The last write found no room.
    is_full: bool,
    /// It is registered for writing too.
    watches_room: bool,
}

impl Socket {
    /// Of the runtime that this is called in.
    pub(crate) fn new(io: TcpStream) -> io::Result<Self> {
        Ok(Socket {
            io: Some(register(io.into_std()?, Interest::READABLE)?),
            is_full: false,
            watches_room: false,
        })
    }

    /// To the selector of another thread, or to that of this one.
    pub(crate) fn move_to(self, runtime: &Handle) -> io::Result<Self> {
        let io = self.io.ok_or(ErrorKind::NotConnected)?.into_inner();
        let _within = runtime.enter();
        Ok(Socket { io: Some(register(io, Interest::READABLE)?), is_full: false, watches_room: false })
    }

    pub(crate) fn into_stream(self) -> io::Result<TcpStream> {
        TcpStream::from_std(self.io.ok_or(ErrorKind::NotConnected)?.into_inner())
    }

    /// Ready when there may be something to read, or an end.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io()?.poll_read_ready(context).map_ok(drop)
    }

    /// Reads once. Zero is the end of the stream.
    pub(crate) fn poll_read(&self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut ready = ready!(self.io()?.poll_read_ready(context))?;
            match ready.get_inner().read(into) {
                Ok(count) => {
                    // Room that was left says that there is no more, since the selector tells of what is new.
                    if count > 0 && count < into.len() {
                        ready.clear_ready();
                    }
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Writes once.
    pub(crate) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            let found_room = match self.is_full {
                true => Some(ready!(self.io()?.poll_write_ready(context))?),
                false => None,
            };
            match (self.try_write(slices), found_room) {
                (Err(error), Some(mut ready)) if error.kind() == ErrorKind::WouldBlock => ready.clear_ready(),
                (Err(error), None) if error.kind() == ErrorKind::WouldBlock => self.watch_for_room()?,
                (Err(error), _) if error.kind() == ErrorKind::Interrupted => {}
                (result, _) => {
                    self.is_full = false;
                    return Poll::Ready(result);
                }
            }
        }
    }

    /// Writes what there is room for, without waiting for more.
    pub(crate) fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut io = self.io()?.get_ref();
        if let [one] = slices { io.write(one) } else { io.write_vectored(slices) }
    }

    fn io(&self) -> io::Result<&AsyncFd<StdStream>> {
        self.io.as_ref().ok_or_else(|| ErrorKind::NotConnected.into())
    }

    /// Registers for room too: from now on, since a request that did not fit once goes on.
    fn watch_for_room(&mut self) -> io::Result<()> {
        if !self.watches_room
            && let Some(io) = self.io.take()
        {
            self.io = Some(register(io.into_inner(), Interest::READABLE | Interest::WRITABLE)?);
            self.watches_room = true;
        }
        self.is_full = true;
        Ok(())
    }
}

fn register(io: StdStream, interest: Interest) -> io::Result<AsyncFd<StdStream>> {
    #[expect(unsafe_code, reason = "tokio's own stream cannot be registered for reading alone")]
    // SAFETY: a stream of the standard library is one descriptor, open for as long as it lives.
    let registered = unsafe { AsyncFd::register_with_interest(io, interest) };
    Ok(registered?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::net::TcpListener;
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    fn pair() -> (StdStream, StdStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let near = StdStream::connect(listener.local_addr().expect("its address")).expect("a connection");
        near.set_nonblocking(true).expect("not blocking");
        (near, listener.accept().expect("the other end").0)
    }

    #[test]
    fn what_finds_no_room_is_written_when_the_peer_reads() {
        let (near, mut far) = pair();
        let (go, may) = mpsc::channel();
        let reads = thread::spawn(move || {
            may.recv().expect("told");
            let mut all = Vec::new();
            far.read_to_end(&mut all).expect("all of it");
            all.len()
        });
        let part = vec![7; 1 << 20];
        let sent = runtime().block_on(async {
            let mut socket = Socket::new(TcpStream::from_std(near).expect("a stream")).expect("a socket");
            let mut sent = 0;
            let mut write = |context: &mut Context<'_>| socket.poll_write(context, &[IoSlice::new(&part)]);
            poll_fn(|context| {
                while let Poll::Ready(count) = write(context) {
                    sent += count.expect("written");
                }
                Poll::Ready(())
            })
            .await;
            go.send(()).expect("somebody reads");
            for _ in 0..20 {
                sent += poll_fn(&mut write).await.expect("written");
            }
            sent
        });
        assert_eq!(reads.join().expect("the reader"), sent);
    }

    #[test]
    fn the_answer_wakes_the_thread_that_it_was_moved_to() {
        let (near, mut far) = pair();
        let (give, take) = mpsc::channel::<Socket>();
        let (tell, told) = mpsc::channel();
        let other = thread::spawn(move || {
            let runtime = runtime();
            tell.send(runtime.handle().clone()).expect("somebody listens");
            runtime.block_on(async {
                let socket = take.recv().expect("a socket");
                let mut answer = [0; 16];
                let read = poll_fn(|context| socket.poll_read(context, &mut answer));
                let count = tokio::time::timeout(Duration::from_secs(30), read)
                    .await
                    .expect("in time")
                    .expect("bytes");
                answer[..count].to_vec()
            })
        });
        let handle = told.recv().expect("a runtime");
        let here = runtime();
        let socket = here.block_on(async { Socket::new(TcpStream::from_std(near).expect("a stream")) });
        let socket = socket.expect("a socket").move_to(&handle).expect("moved");
        assert_eq!(socket.try_write(&[IoSlice::new(b"question")]).expect("sent"), 8);
        give.send(socket).expect("it is taken");
        let mut question = [0; 8];
        far.read_exact(&mut question).expect("the question");
        far.write_all(b"answer").expect("answered");
        assert_eq!(other.join().expect("the other thread"), b"answer");
    }
}
