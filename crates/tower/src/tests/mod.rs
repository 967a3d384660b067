//! The layer in virtual time: no thread, no executor, no clock of the system.

mod accounting;
mod answers;
mod bodies;
mod cancelled;
mod promises;

use crate::builder::Builder;
use crate::layer::PlimsollLayer;
use crate::request::body::ResponseBody;
use crate::running::clock::Clock;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::Full;
use plimsoll_core::request::Outcome;
use plimsoll_core::telemetry::status::Counts;
use plimsoll_core::time::Duration;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use tower::util::BoxCloneSyncService;
use tower_layer::Layer;
use tower_service::Service;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// A layer whose time a test moves.
struct Bench {
    layer: PlimsollLayer,
    time: Arc<AtomicU64>,
}

/// A service of any kind, and the body of its responses.
type Handler<B> = BoxCloneSyncService<Request<()>, Response<B>, Infallible>;

impl Bench {
    fn new(builder: Builder) -> Self {
        let time = Arc::new(AtomicU64::new(1));
        let running = builder.running(Clock::Virtual(time.clone())).expect("possible promises");
        let bench = Bench { layer: PlimsollLayer { running: Arc::new(running) }, time };
        bench.tick();
        bench
    }

    fn tick(&self) -> Duration {
        let running = &self.layer.running;
        let sleep = running.try_tick();
        assert_eq!(self.layer.is_frozen(), running.are_loops_broken.load(Ordering::Relaxed), "a loop panics");
        sleep
    }

    fn advance(&self, time: Duration) {
        self.time.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Requests in service and waiting now.
    fn under_way(&self) -> (u32, u32) {
        let status = self.layer.status();
        (status.plants[0].in_service, status.plants[0].waiting)
    }

    /// The counts of all classes together.
    fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for class in self.layer.status().classes {
            sum.arrivals += class.counts.arrivals;
            sum.unserved += class.counts.unserved;
            sum.bytes += class.counts.bytes;
            sum.outcomes.iter_mut().zip(class.counts.outcomes).for_each(|(sum, count)| *sum += count);
            sum.reasons.iter_mut().zip(class.counts.reasons).for_each(|(sum, count)| *sum += count);
        }
        sum
    }

    /// The number of requests that ended with this outcome.
    fn outcomes(&self, outcome: Outcome) -> u64 {
        self.counts().outcomes[outcome as usize]
    }

    /// Nothing is under way, and each request that came was accounted for once.
    fn assert_settled(&self) {
        assert_eq!(self.under_way(), (0, 0), "in service and waiting");
        let counts = self.counts();
        let ended = counts.unserved + counts.outcomes.iter().sum::<u64>();
        assert_eq!((counts.arrivals, counts.reasons.iter().sum::<u64>()), (ended, ended), "{counts:?}");
    }
}

/// A builder for this number of workers that finds nothing by itself.
fn workers(workers: u32) -> Builder {
    PlimsollLayer::builder().workers(workers).seed(7)
}

fn request(path: &str) -> Request<()> {
    Request::get(path).body(()).expect("a request")
}

/// A handler that answers with these bytes at once.
fn answering(bytes: &'static str) -> Handler<Full<Bytes>> {
    let answer = move |_| async move { Ok(Response::new(Full::from(bytes))) };
    BoxCloneSyncService::new(tower::service_fn(answer))
}

/// A handler that never answers.
fn silent() -> Handler<Full<Bytes>> {
    BoxCloneSyncService::new(tower::service_fn(|_| pending()))
}

/// A request under way.
type Pending<B> = Pin<Box<crate::request::future::ResponseFuture<Handler<B>, ()>>>;

fn call<B>(bench: &Bench, handler: &Handler<B>, request: Request<()>) -> Pending<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    Box::pin(bench.layer.layer(handler.clone()).call(request))
}

fn poll<F: Future + ?Sized>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// The response of a request that gets one at once.
fn answer<B>(mut pending: Pending<B>) -> Response<ResponseBody<B>>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    match poll(&mut pending) {
        Poll::Ready(Ok(response)) => response,
        Poll::Pending => panic!("no response yet"),
    }
}

/// The bytes of a body whose frames are all there.
fn read<B>(body: B) -> Bytes
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
{
    let mut collected = Box::pin(http_body_util::BodyExt::collect(body));
    match poll(&mut collected) {
        Poll::Ready(collected) => collected.expect("no error").to_bytes(),
        Poll::Pending => panic!("no frame yet"),
    }
}

/// A step of a body: a frame, or a pause until it is asked again.
#[derive(Clone, Copy, Debug)]
enum Step {
    Data(&'static str),
    Trailers(&'static str),
    Later,
    Error,
}

/// A body that goes through these steps and does not say beforehand where it ends.
struct Scripted(VecDeque<Step>);

fn scripted<const N: usize>(steps: [Step; N]) -> Scripted {
    Scripted(steps.into())
}

impl http_body::Body for Scripted {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(match self.0.pop_front() {
            None => None,
            Some(Step::Later) => return Poll::Pending,
            Some(Step::Error) => Some(Err("broken")),
            Some(Step::Data(data)) => Some(Ok(Frame::data(Bytes::from_static(data.as_bytes())))),
            Some(Step::Trailers(code)) => {
                let trailers = [(GRPC_STATUS, HeaderValue::from_static(code))];
                Some(Ok(Frame::trailers(HeaderMap::from_iter(trailers))))
            }
        })
    }
}
