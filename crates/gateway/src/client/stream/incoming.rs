//! A request's body as a stream brings it: its frames become bytes in the inbox, in the form that upstreams of HTTP/1.1 expect.
//!
//! A body of known length goes unchanged, any other body in chunks, with its trailers. The client may send more only after the
//! inbox has taken what it sent, so that a stream holds at most its window besides the inbox.

use crate::client::inbox::Inbox;
use crate::http1::body::Framing;
use crate::http2::head::write_trailers;
use bytes::Bytes;
use h2::FlowControl;
use h2::RecvStream;
use std::io;
use std::task::{Context, Poll, ready};

pub(super) struct RequestFrames {
    receive: RecvStream,
    flow: FlowControl,
    framing: Framing,
    /// Bytes for which the inbox had no room yet.
    queue: Bytes,
    /// How many bytes of the window the queue takes.
    owed: usize,
    has_ended: bool,
}

impl RequestFrames {
    pub(super) fn new(mut receive: RecvStream) -> Self {
        let flow = receive.flow_control().clone();
        let (framing, queue) = (Framing::None, Bytes::new());
        RequestFrames { receive, flow, framing, queue, owed: 0, has_ended: false }
    }

    pub(super) fn is_end(&self) -> bool {
        self.receive.is_end_stream()
    }

    /// How the body is put into the inbox.
    pub(super) fn frame(&mut self, framing: Framing) {
        self.framing = framing;
        self.has_ended = framing == Framing::None;
    }

    /// How many bytes the stream holds that the inbox has not taken.
    pub(super) fn held(&self) -> usize {
        // Bytes in the queue count as used capacity too.
        self.flow.used_capacity()
    }

    /// Puts the next bytes into the inbox, which has room. `None` once the body has ended.
    pub(super) fn poll_fill(
        &mut self,
        inbox: &mut Inbox,
        context: &mut Context<'_>,
        large: bool,
    ) -> Poll<Option<io::Result<usize>>> {
        while self.queue.is_empty() {
            if self.has_ended {
                return Poll::Ready(None);
            }
            match ready!(self.receive.poll_data(context)) {
                Some(Ok(bytes)) => self.take(bytes),
                Some(Err(error)) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                None => match ready!(self.poll_last(context)) {
                    Ok(()) => self.has_ended = true,
                    Err(error) => return Poll::Ready(Some(Err(io::Error::other(error)))),
                },
            }
        }
        let count = inbox.put(&self.queue, large);
        let _ = self.queue.split_to(count);
        if self.queue.is_empty() && self.owed > 0 {
            // A stream that is gone needs no window.
            let _ = self.flow.release_capacity(std::mem::take(&mut self.owed));
        }
        if count > 0 { Poll::Ready(Some(Ok(count))) } else { Poll::Pending }
    }

    /// Takes a frame's bytes; an empty frame has none.
    fn take(&mut self, bytes: Bytes) {
        self.owed = bytes.len();
        self.queue = match self.framing {
            Framing::Chunked if !bytes.is_empty() => {
                let size = format!("{:x}\r\n", bytes.len());
                [size.as_bytes(), &bytes, b"\r\n"].concat().into()
            }
            _ => bytes,
        };
    }

    /// Takes the end of the body, with its trailers. Trailers of a body of known length are dropped.
    fn poll_last(&mut self, context: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        let trailers = ready!(self.receive.poll_trailers(context))?;
        if self.framing == Framing::Chunked {
            let mut last = b"0\r\n".to_vec();
            write_trailers(&trailers.unwrap_or_default(), &mut last);
            last.extend_from_slice(b"\r\n");
            self.queue = last.into();
        }
        Poll::Ready(Ok(()))
    }
}
