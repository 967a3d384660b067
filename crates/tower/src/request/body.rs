//! The response's body: counts what is handed over to be sent, and ends the request with its last frame.
//!
//! **When the place is given back.** The first frame is asked for as soon as the handler has made the response. If that is all,
//! the handler has done its work, and the place is given back before anything is sent. Otherwise the response is made while it
//! is sent, and holds its place up to its last frame. Time from a frame to the question for the next one is the client's
//! and no time of the server's.
//!
//! **When the request departs.** With its last frame: where the body says that it ends, where as many bytes came as its length
//! says, with an error (it failed), or when it is dropped before (it was abandoned).

use super::guard::PermitGuard;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use plimsoll_core::request::{Outcome, Service};
use plimsoll_core::time::Instant;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The body of a response that went through the layer: the handler's own, or a sentence that says why there is none.
pub struct ResponseBody<B: Body>(Source<B>);

enum Source<B: Body> {
    /// The handler's.
    Handler(Watched<B>),
    /// The layer's.
    Text(Option<&'static str>),
}

/// The handler's body, and what ends with it.
struct Watched<B: Body> {
    body: B,
    /// The frame that was asked for when the response was made.
    first: Option<Result<Frame<B::Data>, B::Error>>,
    /// The handler's body has ended, and is not asked again.
    has_ended: bool,
    delivery: Option<Delivery>,
}

/// A frame that was asked for is not pinned.
impl<B: Body + Unpin> Unpin for ResponseBody<B> {}

/// A request whose response is on its way.
struct Delivery {
    guard: PermitGuard,
    expected: Expected,
    /// Body bytes handed over.
    sent: u64,
    /// When a frame was handed over after which there are more.
    waits_since: Option<Instant>,
}

/// What the head of a response says of its body.
pub(crate) struct Expected {
    pub(crate) length: Option<u64>,
    /// The models learn from this request.
    pub(crate) representative: bool,
}

impl<B: Body + Unpin> ResponseBody<B> {
    /// The body of a response that was just made.
    pub(crate) fn begin(body: B, guard: PermitGuard, expected: Expected, context: &mut Context<'_>) -> Self {
        let length = expected.length.or(body.size_hint().exact());
        let expected = Expected { length, ..expected };
        let mut delivery = Delivery { guard, expected, sent: 0, waits_since: None };
        let mut watched = Watched { body, first: None, has_ended: false, delivery: None };
        let body = &mut watched.body;
        if body.is_end_stream() {
            delivery.end(0, Outcome::Completed);
            return ResponseBody(Source::Handler(watched));
        }
        match delivery.guard.run(|| Pin::new(body).poll_frame(context)) {
            Poll::Pending => watched.delivery = Some(delivery),
            Poll::Ready(None) => {
                delivery.end(0, Outcome::Completed);
                watched.has_ended = true;
            }
            Poll::Ready(Some(Err(error))) => {
                delivery.end(0, Outcome::Failed);
                watched.first = Some(Err(error));
            }
            Poll::Ready(Some(Ok(frame))) => {
                if delivery.is_last(&watched.body, &frame) {
                    delivery.release(length_of(&frame));
                }
                watched.first = Some(Ok(frame));
                watched.delivery = Some(delivery);
            }
        }
        ResponseBody(Source::Handler(watched))
    }
}

impl<B: Body> ResponseBody<B> {
    /// A body that nobody will ask for.
    pub(crate) fn unwatched(body: B) -> Self {
        ResponseBody(Source::Handler(Watched { body, first: None, has_ended: false, delivery: None }))
    }

    pub(crate) fn text(text: &'static str) -> Self {
        ResponseBody(Source::Text(Some(text)))
    }

    pub(crate) fn empty() -> Self {
        ResponseBody(Source::Text(None))
    }
}

impl<B: Body + Unpin> Watched<B> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let body = Pin::new(&mut self.body);
        let frame = match (self.first.take(), &mut self.delivery) {
            (Some(first), _) => Some(first),
            (None, _) if self.has_ended => None,
            (None, None) => ready!(body.poll_frame(context)),
            (None, Some(delivery)) => {
                delivery.resume();
                ready!(delivery.guard.run(|| body.poll_frame(context)))
            }
        };
        self.has_ended |= !matches!(frame, Some(Ok(_)));
        if let Some(mut delivery) = self.delivery.take() {
            match &frame {
                Some(Ok(frame)) if !delivery.is_last(&self.body, frame) => {
                    delivery.hand_over(length_of(frame));
                    self.delivery = Some(delivery);
                }
                Some(Ok(frame)) => delivery.end(length_of(frame), Outcome::Completed),
                Some(Err(_)) => delivery.end(0, Outcome::Failed),
                None => delivery.end(0, Outcome::Completed),
            }
        }
        Poll::Ready(frame)
    }
}

impl Delivery {
    /// Whether nothing comes after this frame.
    fn is_last<B: Body>(&self, body: &B, frame: &Frame<B::Data>) -> bool {
        let sent = self.sent + length_of(frame);
        body.is_end_stream() || self.expected.length.is_some_and(|length| sent >= length)
    }

    /// Gives the place back before the last frame, which has this length, is handed over.
    fn release(&mut self, length: u64) {
        let service = self.service(length);
        self.guard.release(service);
    }

    fn service(&self, length: u64) -> Service {
        let representative = self.expected.representative;
        Service { response_bytes: self.sent + length, representative, cost: None }
    }

    fn hand_over(&mut self, length: u64) {
        self.sent += length;
        self.guard.sent(length);
        self.waits_since = Some(self.guard.now());
    }

    /// The next frame is asked for: the client has taken the one before.
    fn resume(&mut self) {
        if let Some(since) = self.waits_since.take() {
            let now = self.guard.now();
            self.guard.excuse(now.since(since));
        }
    }

    fn end(self, length: u64, outcome: Outcome) {
        let service = if outcome == Outcome::Completed { self.service(length) } else { Service::default() };
        self.guard.depart(length, service, outcome);
    }
}

fn length_of<D: bytes::Buf>(frame: &Frame<D>) -> u64 {
    frame.data_ref().map_or(0, |data| data.remaining() as u64)
}

impl<B: Body<Data: From<Bytes>> + Unpin> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        match &mut self.get_mut().0 {
            Source::Handler(watched) => watched.poll(context),
            Source::Text(text) => Poll::Ready(
                text.take().map(|text| Ok(Frame::data(Bytes::from_static(text.as_bytes()).into()))),
            ),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Source::Handler(Watched { body, first, has_ended, .. }) => {
                first.is_none() && (*has_ended || body.is_end_stream())
            }
            Source::Text(text) => text.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Source::Handler(Watched { body, first, .. }) => {
                let (own, first) = (body.size_hint(), first.as_ref().and_then(|first| first.as_ref().ok()));
                let length = first.map_or(0, length_of);
                let mut hint = SizeHint::new();
                hint.set_lower(own.lower() + length);
                if let Some(upper) = own.upper() {
                    hint.set_upper(upper + length);
                }
                hint
            }
            Source::Text(text) => SizeHint::with_exact(text.map_or(0, |text| text.len() as u64)),
        }
    }
}

impl<B: Body + fmt::Debug> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Handler(watched) => f.debug_tuple("ResponseBody").field(&watched.body).finish(),
            Source::Text(text) => f.debug_tuple("ResponseBody").field(text).finish(),
        }
    }
}
