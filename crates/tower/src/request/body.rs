//! The response's body: counts what is handed over to be sent, and ends the request with its last frame.
//!
//! **When the place is given back.** The first frame is asked for as soon as the handler has made the response. If that is all,
//! the handler has done its work, and the place is given back before anything is sent. Otherwise the response is made while it
//! is sent, and holds its place up to its last frame. Time from a frame to the question for the next one is the client's
//! and no time of the server's.
//!
//! **When the request departs.** With its last frame: where the body says that it ends, where as many bytes came as its length
//! says, with an error (it failed), or when it is dropped before (it was abandoned).

use super::grpc::status_of_call;
use super::guard::PermitGuard;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use plimsoll_core::request::{Outcome, Service};
use plimsoll_core::time::Instant;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The body of a response that went through the layer: the handler's own, or a sentence that says why there is none.
pub struct ResponseBody<B: Body> {
    /// The handler's body, until it has ended. It is not asked again then.
    body: Option<B>,
    /// The frame that comes first: it was asked for when the response was made, or is the layer's own.
    first: Option<Asked<B>>,
    delivery: Option<Delivery>,
}

/// A frame that a body gave.
type Asked<B> = Result<Frame<<B as Body>::Data>, <B as Body>::Error>;

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
    /// How the request ends if all of it is taken.
    pub(crate) outcome: Outcome,
}

impl<B: Body + Unpin> ResponseBody<B> {
    /// The body of a response that was just made.
    pub(crate) fn begin(
        mut body: B,
        guard: PermitGuard,
        expected: Expected,
        context: &mut Context<'_>,
    ) -> Self {
        let length = expected.length.or(body.size_hint().exact());
        let expected = Expected { length, ..expected };
        let mut delivery = Delivery { guard, expected, sent: 0, waits_since: None };
        if body.is_end_stream() {
            delivery.end_with(0);
            return ResponseBody::unwatched(body);
        }
        let polled = delivery.guard.run(|| Pin::new(&mut body).poll_frame(context));
        let mut this = ResponseBody { body: Some(body), first: None, delivery: Some(delivery) };
        match polled {
            Poll::Pending => {}
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(delivery) = &mut this.delivery {
                    delivery.see(&frame);
                }
                this.release_before_last(&frame);
                this.first = Some(Ok(frame));
            }
            Poll::Ready(last) => {
                this.account(last.as_ref());
                this.first = last;
            }
        }
        this
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Asked<B>>> {
        let is_new = self.first.is_none();
        let frame = match (self.first.take(), &mut self.body, &mut self.delivery) {
            (Some(first), ..) => Some(first),
            (None, None, _) => None,
            (None, Some(body), None) => ready!(Pin::new(body).poll_frame(context)),
            (None, Some(body), Some(delivery)) => {
                delivery.resume();
                ready!(delivery.guard.run(|| Pin::new(body).poll_frame(context)))
            }
        };
        if let (true, Some(Ok(frame)), Some(delivery)) = (is_new, &frame, &mut self.delivery) {
            delivery.see(frame);
        }
        self.account(frame.as_ref());
        Poll::Ready(frame)
    }

    /// Gives the place back if this is the last frame, before it is handed over.
    fn release_before_last(&mut self, frame: &Frame<B::Data>) {
        if let (Some(body), Some(delivery)) = (&self.body, &mut self.delivery)
            && delivery.is_last(body, frame)
        {
            delivery.release(length_of(frame));
        }
    }

    /// Accounts what is handed over, and the end.
    fn account(&mut self, frame: Option<&Asked<B>>) {
        if !matches!(frame, Some(Ok(_))) {
            self.body = None;
        }
        let Some(mut delivery) = self.delivery.take() else { return };
        match (frame, &self.body) {
            (Some(Ok(frame)), Some(body)) if !delivery.is_last(body, frame) => {
                delivery.hand_over(length_of(frame));
                self.delivery = Some(delivery);
            }
            (Some(Ok(frame)), _) => delivery.end_with(length_of(frame)),
            (Some(Err(_)), _) => delivery.guard.depart(0, Service::default(), Outcome::Failed),
            (None, _) => delivery.end_with(0),
        }
    }
}

impl<B: Body> ResponseBody<B> {
    /// A body of which nothing is counted.
    pub(crate) fn unwatched(body: B) -> Self {
        ResponseBody { body: Some(body), first: None, delivery: None }
    }

    pub(crate) fn empty() -> Self {
        ResponseBody { body: None, first: None, delivery: None }
    }
}

impl<B: Body<Data: From<Bytes>>> ResponseBody<B> {
    pub(crate) fn text(text: &'static str) -> Self {
        let frame = Frame::data(Bytes::from_static(text.as_bytes()).into());
        ResponseBody { body: None, first: Some(Ok(frame)), delivery: None }
    }
}

/// What is dropped before its end leaves its client with the last frame.
impl<B: Body> Drop for ResponseBody<B> {
    fn drop(&mut self) {
        if let Some(delivery) = &mut self.delivery {
            delivery.resume();
        }
    }
}

impl Delivery {
    /// Looks at a frame that has just come. Trailers say how a call of gRPC has ended.
    fn see<D>(&mut self, frame: &Frame<D>) {
        if let Some(status) = frame.trailers_ref().and_then(status_of_call) {
            self.expected.outcome = self.guard.answered(status);
        }
    }

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
        let representative = self.expected.outcome == Outcome::Completed;
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

    /// All of it is taken with the last frame, which has this length.
    fn end_with(self, length: u64) {
        let (service, outcome) = (self.service(length), self.expected.outcome);
        self.guard.depart(length, service, outcome);
    }
}

fn length_of<D: bytes::Buf>(frame: &Frame<D>) -> u64 {
    frame.data_ref().map_or(0, |data| data.remaining() as u64)
}

impl<B: Body + Unpin> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Asked<B>>> {
        self.get_mut().poll(context)
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.body.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        let first = self.first.as_ref().and_then(|first| first.as_ref().ok()).map_or(0, length_of);
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + first);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + first);
        }
        hint
    }
}

impl<B: Body + fmt::Debug> fmt::Debug for ResponseBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseBody").field("body", &self.body).finish_non_exhaustive()
    }
}
