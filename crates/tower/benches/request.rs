//! The cost of a layer for each request, beside tower's own limits around the same service.
//!
//! `cargo bench -p plimsoll-tower` prints nanoseconds of CPU time, medians of rounds in which all take turns, on one thread and
//! on two that share the layer: a clone of the service, its readiness, the call, and the body to its end. CPU time and not
//! the clock's, because other processes may have the processor meanwhile. `… -- --count N` makes N requests through the layer
//! and prints nothing, for callgrind.

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use plimsoll_tower::PlimsollLayer;
use rustix::time::{ClockId, clock_gettime};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use tower::{Layer, Service, limit::ConcurrencyLimitLayer, load_shed::LoadShedLayer};

const EACH: i64 = 1000;
const ROUNDS: usize = 1001;
/// Requests that are under way at once are few: nothing waits.
const PLACES: usize = 64;

/// A service that answers at once.
#[derive(Clone)]
struct Page;

impl Service<Request<()>> for Page {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Full<Bytes>>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        ready(Ok(Response::new(Full::from("a page"))))
    }
}

/// One request, as a server makes it of a connection's service.
fn request<S, B>(service: &S, asked: Request<()>)
where
    S: Service<Request<()>, Response = Response<B>> + Clone,
    B: Body,
{
    let mut context = Context::from_waker(Waker::noop());
    let mut service = service.clone();
    assert!(matches!(service.poll_ready(&mut context), Poll::Ready(Ok(()))));
    let Poll::Ready(Ok(response)) = pin!(service.call(asked)).poll(&mut context) else {
        panic!("not answered")
    };
    let mut body = pin!(response.into_body());
    while !body.is_end_stream() {
        assert!(matches!(body.as_mut().poll_frame(&mut context), Poll::Ready(Some(Ok(_)))));
    }
}

/// The CPU time that this thread has used (ns).
fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Nanoseconds of CPU time for each request.
fn nanoseconds<S, B>(threads: i64, service: &S) -> f64
where
    S: Service<Request<()>, Response = Response<B>> + Clone + Sync,
    B: Body,
{
    let used = AtomicI64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let start = cpu_ns();
                for _ in 0..EACH {
                    let asked = Request::get("/index.html").header("host", "www.example.org").body(());
                    request(service, asked.expect("a request"));
                }
                used.fetch_add(cpu_ns() - start, Relaxed);
            });
        }
    });
    used.into_inner() as f64 / (threads * EACH) as f64
}

fn median(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(f64::total_cmp);
    rounds[rounds.len() / 2]
}

/// N of `--count N`.
fn count() -> Option<u64> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--count");
    arguments.nth(1)?.parse().ok()
}

fn main() {
    if let Some(count) = count() {
        let plimsoll = PlimsollLayer::builder().workers(PLACES as u32).levels(["light", "full"]).build();
        let service = plimsoll.expect("possible promises").layer(Page);
        for _ in 0..count {
            let asked = Request::get("/index.html").header("host", "www.example.org").body(());
            request(&service, asked.expect("a request"));
        }
        return;
    }
    let limit = ConcurrencyLimitLayer::new(PLACES);
    let plimsoll = PlimsollLayer::builder().workers(PLACES as u32).levels(["light", "full"]).build();
    let plimsoll = plimsoll.expect("possible promises").layer(Page);
    let (limited, shed) = (limit.layer(Page), LoadShedLayer::new().layer(limit.layer(Page)));
    println!("ns of CPU time per request: no layer, ConcurrencyLimit, LoadShed around it, Plimsoll");
    for threads in 1..=2 {
        let mut rounds: [Vec<f64>; 4] = Default::default();
        for _ in 0..ROUNDS {
            rounds[0].push(nanoseconds(threads, &Page));
            rounds[1].push(nanoseconds(threads, &limited));
            rounds[2].push(nanoseconds(threads, &shed));
            rounds[3].push(nanoseconds(threads, &plimsoll));
        }
        let [none, limited, shed, own] = rounds.map(median);
        println!(
            "{threads} thread(s): {none:.0}, {limited:.0}, {shed:.0}, {own:.0}; Plimsoll - ConcurrencyLimit: {:.0}",
            own - limited
        );
    }
}
