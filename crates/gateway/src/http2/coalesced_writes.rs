//! The small writes of one turn of a connection's task, gathered into one write.
//!
//! `h2` writes each frame that carries bytes by itself, so that 32 short answers that are ready at once would be 32 records of
//! TLS, and as many system calls. Here small frames are copied one behind the other until the turn ends; a large frame is
//! written without a copy, behind the gathered bytes.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes that are gathered: a TLS record.
const MOST: usize = 16 * 1024;
/// Pieces from this size on are not copied.
const LONG: usize = MOST / 4;
/// How many pieces one write has besides the gathered bytes: `h2` passes a frame's head and its payload.
const PIECES: usize = 4;

/// A socket that keeps small writes back until it is flushed.
#[derive(Debug)]
pub(crate) struct GatheringSocket<T> {
    io: T,
    /// The gathered bytes, and how many of them are sent. The vector takes no memory while it is empty.
    gathered: Vec<u8>,
    sent: usize,
    /// Whether only the owner flushes the socket, so that other flushes do nothing.
    pub(crate) is_held: bool,
}

impl<T: AsyncRead + Unpin> GatheringSocket<T> {
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, into)
    }
}

impl<T: AsyncWrite + Unpin> GatheringSocket<T> {
    pub(crate) fn new(io: T) -> Self {
        GatheringSocket { io, gathered: Vec::new(), sent: 0, is_held: false }
    }

    /// The underlying socket.
    pub(crate) fn below(&mut self) -> &mut T {
        &mut self.io
    }

    /// Takes the underlying socket out.
    pub(crate) fn into_below(self) -> T {
        self.io
    }

    /// How much memory the gathered bytes take.
    pub(crate) fn held(&self) -> usize {
        self.gathered.capacity()
    }

    /// Takes bytes; ready with the number taken.
    pub(crate) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length: usize = slices.iter().map(|slice| slice.len()).sum();
        if length >= LONG {
            return self.poll_write_through(context, slices);
        }
        if self.gathered.len() + length > MOST {
            ready!(self.poll_send(context))?;
        }
        if self.gathered.capacity() == 0 {
            self.gathered.reserve_exact(MOST);
        }
        slices.iter().for_each(|slice| self.gathered.extend_from_slice(slice));
        Poll::Ready(Ok(length))
    }

    /// Writes the gathered bytes and then these.
    fn poll_write_through(
        &mut self,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            if self.gathered.is_empty() {
                return Pin::new(&mut self.io).poll_write_vectored(context, slices);
            }
            let mut all = [IoSlice::new(&[]); 1 + PIECES];
            let gathered = &self.gathered[self.sent..];
            all[0] = IoSlice::new(gathered);
            let more = slices.len().min(PIECES);
            all[1..=more].copy_from_slice(&slices[..more]);
            let count = ready!(Pin::new(&mut self.io).poll_write_vectored(context, &all[..=more]))?;
            let own = count.min(gathered.len());
            self.take(own)?;
            if count > own {
                return Poll::Ready(Ok(count - own));
            }
        }
    }

    /// Sends the gathered bytes.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.gathered.is_empty() {
            let count = ready!(Pin::new(&mut self.io).poll_write(context, &self.gathered[self.sent..]))?;
            self.take(count)?;
        }
        Poll::Ready(Ok(()))
    }

    /// Removes the first `count` bytes, which have been sent.
    fn take(&mut self, count: usize) -> io::Result<()> {
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.sent += count;
        if self.sent == self.gathered.len() {
            (self.gathered, self.sent) = (Vec::new(), 0);
        }
        Ok(())
    }

    /// Sends all bytes that were taken.
    pub(crate) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.io).poll_flush(context)
    }

    pub(crate) fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(context))?;
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// A sink that keeps each write, takes this number of bytes at a time and, if it is slow, nothing at each third write.
    #[derive(Default)]
    struct Sink {
        writes: Vec<Vec<u8>>,
        most: usize,
        is_slow: bool,
        asked: usize,
    }

    impl AsyncWrite for Sink {
        fn poll_write(
            self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.poll_write_vectored(context, &[IoSlice::new(bytes)])
        }

        fn poll_write_vectored(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            slices: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            let own = self.get_mut();
            own.asked += 1;
            if own.is_slow && own.asked.is_multiple_of(3) {
                return Poll::Pending;
            }
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).take(own.most).collect();
            let count = all.len();
            own.writes.push(all);
            Poll::Ready(Ok(count))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn write(socket: &mut GatheringSocket<Sink>, mut bytes: &[u8]) {
        let mut context = Context::from_waker(Waker::noop());
        while !bytes.is_empty() {
            let (head, body) = bytes.split_at(bytes.len().min(9));
            let slices = [IoSlice::new(head), IoSlice::new(body)];
            match socket.poll_write(&mut context, &slices) {
                Poll::Ready(count) => bytes = &bytes[count.expect("it can be written")..],
                // The sink takes bytes at the next try.
                Poll::Pending => {}
            }
        }
    }

    fn flush(socket: &mut GatheringSocket<Sink>) {
        let mut context = Context::from_waker(Waker::noop());
        while socket.poll_flush(&mut context).is_pending() {}
    }

    #[test]
    fn short_pieces_are_one_write_and_long_ones_go_behind_them() {
        let mut socket = GatheringSocket::new(Sink { most: usize::MAX, ..Sink::default() });
        (0..10).for_each(|_| write(&mut socket, &[1; 1100]));
        assert!(socket.io.writes.is_empty(), "they wait for the flush");
        assert_eq!(socket.held(), MOST);
        flush(&mut socket);
        assert_eq!(socket.io.writes.iter().map(Vec::len).collect::<Vec<_>>(), [11_000]);
        assert_eq!(socket.held(), 0, "an idle connection holds nothing");
        write(&mut socket, &[2; 100]);
        write(&mut socket, &[3; LONG]);
        write(&mut socket, &[4; LONG]);
        assert_eq!(socket.io.writes[1..].iter().map(Vec::len).collect::<Vec<_>>(), [100 + LONG, LONG]);
        (0..100).for_each(|_| write(&mut socket, &[5; 1000]));
        assert!(socket.held() <= MOST && socket.io.writes.len() > 6, "what is gathered is bounded");
    }

    #[test]
    fn bytes_stay_in_order_however_few_are_taken() {
        for most in [1, 7, 100, 5000, 40_000] {
            let mut socket = GatheringSocket::new(Sink { most, is_slow: true, ..Sink::default() });
            let mut all = Vec::new();
            for (number, length) in [5, 1100, LONG, 30, 3 * MOST, 2, LONG - 1, MOST].into_iter().enumerate() {
                let bytes: Vec<u8> = (0..length).map(|place| (place * 31 + number) as u8).collect();
                write(&mut socket, &bytes);
                all.extend_from_slice(&bytes);
            }
            flush(&mut socket);
            assert!(socket.io.writes.concat() == all, "in pieces of {most}");
        }
    }
}
