//! A body that is all there: shared bytes, or none. Hyper wants a type; this is the smallest.

use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The bytes not yet handed over.
#[derive(Debug, Default)]
pub(crate) struct Whole(Bytes);

impl Whole {
    pub(crate) fn new(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.0);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// Reads the next piece of `body`: its length, or none at the end. Trailers count as nothing.
pub(crate) async fn next_length<B>(body: &mut B) -> Option<Result<usize, B::Error>>
where
    B: Body<Data = Bytes> + Unpin,
{
    let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await?;
    Some(frame.map(|frame| frame.data_ref().map_or(0, Bytes::len)))
}
