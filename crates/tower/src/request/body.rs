//! The response's body: counts the bytes that are handed to the server, and ends the request with its last frame.
//!
//! **When the place is given back.** The layer asks the handler's body for its first frame as soon as the response is made. If
//! that frame is also the last, the handler has done its work, and the place is given back before anything is sent. Otherwise
//! the response is made while it is sent, and the request holds its place up to the last frame. The time from one frame to the
//! server's request for the next is spent on the client and does not count as service time.
//!
//! **When the request departs.** With the last frame of its response. The last frame is known by the body's own word, by the
//! announced length, by an error (the request failed), or by the drop of the body before its end (the request was abandoned).

use super::grpc::status_of_call;
use super::guard::PermitGuard;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use plimsoll_core::request::{Outcome, Service};
use plimsoll_core::time::Instant;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// The body of a response that went through the layer: the handler's own, or the layer's sentence on why the request was
/// rejected.
pub struct ResponseBody<B: Body> {
    /// The handler's body; `None` once it has ended, so that it is not polled again.
    body: Option<B>,
    /// The first frame to send: it was polled when the response was made, or is the layer's own.
    first: Option<Asked<B>>,
    delivery: Option<Delivery>,
}

/// A frame that a body gave.
type Asked<B> = Result<Frame<<B as Body>::Data>, <B as Body>::Error>;

/// A frame is stored by value and never pinned.
impl<B: Body + Unpin> Unpin for ResponseBody<B> {}

/// A request whose response is on its way.
struct Delivery {
    guard: PermitGuard,
    expected: Expected,
    /// Body bytes handed over.
    sent: u64,
    /// When the last frame was handed over, if more frames follow.
    waits_since: Option<Instant>,
}

/// What the head of a response says about its body.
pub(crate) struct Expected {
    pub(crate) length: Option<u64>,
    /// How the request ends if the client takes the whole body.
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

    /// If this frame is the last, gives the place back before the frame is handed over.
    fn release_before_last(&mut self, frame: &Frame<B::Data>) {
        if let (Some(body), Some(delivery)) = (&self.body, &mut self.delivery)
            && delivery.is_last(body, frame)
        {
            delivery.release(length_of(frame));
        }
    }

    /// Counts a frame that is handed over, and ends the request with the last one.
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
    /// A body that is passed on without counting.
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

/// If a body is dropped before its end, its client took until now for the last frame, and this time is no service time.
impl<B: Body> Drop for ResponseBody<B> {
    fn drop(&mut self) {
        if let Some(delivery) = &mut self.delivery {
            delivery.resume();
        }
    }
}

impl Delivery {
    /// Reads the status of a gRPC call from a frame that has just come: it stands in the trailers.
    fn see<D>(&mut self, frame: &Frame<D>) {
        if let Some(status) = frame.trailers_ref().and_then(status_of_call) {
            self.expected.outcome = self.guard.answered(status);
        }
    }

    /// Whether this frame is the last.
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

    /// Called when the server asks for the next frame: the client has taken the one before.
    fn resume(&mut self) {
        if let Some(since) = self.waits_since.take() {
            let now = self.guard.now();
            self.guard.excuse(now.since(since));
        }
    }

    /// Ends the request with its last frame, which has this length: the client took the whole body.
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
