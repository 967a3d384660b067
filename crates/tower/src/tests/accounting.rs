//! Every request is accounted for once, and its place given back once, however it ends.

use super::*;
use http::StatusCode;
use plimsoll_core::request::Reason;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::task::Wake;

#[test]
fn a_request_that_is_answered_departs_once_as_completed() {
    let bench = Bench::new(workers(2));
    let response = answer(call(&bench, &answering("hello"), request("/")));
    assert_eq!(bench.under_way(), (0, 0), "a whole response holds no place");
    assert_eq!(bench.outcomes(Outcome::Completed), 0, "it is not delivered yet");
    let decision = response.extensions().get::<crate::Decision>().expect("a decision").clone();
    assert_eq!((decision.level(), decision.level_name(), decision.reason()), (1, "full", Reason::Full));
    assert_eq!(decision.class(), "default");
    assert_eq!(read(response.into_body()), "hello");
    bench.assert_settled();
    assert_eq!((bench.outcomes(Outcome::Completed), bench.counts().bytes), (1, 5));
}

#[test]
fn an_answer_that_is_an_error_of_the_server_is_a_failure() {
    let bench = Bench::new(workers(2));
    for (status, body) in [(404, "no"), (500, "oh"), (503, ""), (200, "page")] {
        let handler = BoxCloneSyncService::new(tower::service_fn(move |_| async move {
            Ok(Response::builder().status(status).body(Full::from(body)).expect("a response"))
        }));
        assert_eq!(read(answer(call(&bench, &handler, request("/"))).into_body()), body);
    }
    bench.assert_settled();
    assert_eq!([Outcome::Completed, Outcome::Failed].map(|outcome| bench.outcomes(outcome)), [2, 2]);
}

#[test]
fn loops_that_panic_are_seen_and_tried_again_and_requests_are_served() {
    let bench = Bench::new(workers(1));
    let running = &bench.layer.running;
    crate::running::ticker::start(running).expect("a thread");
    let becomes = |is_frozen: bool| {
        running.ticker.get().expect("it runs").unpark();
        let end = std::time::Instant::now() + Duration::from_secs(30);
        while bench.layer.is_frozen() != is_frozen {
            assert!(std::time::Instant::now() < end, "it never says {is_frozen}");
            std::thread::yield_now();
        }
    };
    for are_broken in [true, false, true, false] {
        running.are_loops_broken.store(are_broken, Ordering::Relaxed);
        becomes(are_broken);
        assert_eq!(read(answer(call(&bench, &answering("it"), request("/"))).into_body()), "it");
    }
    bench.assert_settled();
}

/// As in a process that was forked after the layer was built: it has no thread that runs them.
#[test]
fn loops_that_do_not_run_are_seen() {
    let bench = Bench::new(workers(1));
    bench.advance(Duration::from_secs(3));
    assert!(!bench.layer.is_frozen());
    bench.advance(Duration::from_nanos(1));
    assert!(bench.layer.is_frozen());
    bench.tick();
}

/// Each wakes its task when its verdict comes.
struct Woken(Mutex<bool>);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        *self.0.lock().expect("no panic") = true;
    }
}

#[test]
fn a_request_waits_for_a_place_and_is_woken_by_the_departure_that_leaves_it() {
    let bench = Bench::new(workers(1));
    let mut first = call(&bench, &silent(), request("/"));
    assert!(poll(&mut first).is_pending());
    let mut second = call(&bench, &answering("second"), request("/"));
    let woken = Arc::new(Woken(Mutex::new(false)));
    let waker = Waker::from(woken.clone());
    assert!(second.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    assert_eq!(bench.under_way(), (1, 1));
    assert!(!*woken.0.lock().expect("no panic"));
    drop(first);
    assert!(*woken.0.lock().expect("no panic"));
    assert_eq!(bench.under_way(), (1, 0), "its place is taken before it is polled");
    assert_eq!(read(answer(second).into_body()), "second");
    bench.assert_settled();
}

#[test]
fn the_place_of_a_request_that_was_started_and_dropped_unseen_goes_to_the_next() {
    let bench = Bench::new(workers(1));
    let first = call(&bench, &silent(), request("/"));
    let mut waiting: Vec<_> = (0..3).map(|_| call(&bench, &answering("it"), request("/"))).collect();
    waiting.iter_mut().for_each(|waiting| assert!(poll(waiting).is_pending()));
    drop(first);
    // The first of these requests has its verdict but was not polled since.
    drop(waiting.remove(0));
    drop(waiting.pop());
    assert_eq!(bench.under_way(), (1, 0));
    assert_eq!(read(answer(waiting.remove(0)).into_body()), "it");
    bench.assert_settled();
    assert_eq!(bench.outcomes(Outcome::Abandoned), 2);
    assert_eq!(bench.counts().reasons[Reason::ClientLeft as usize], 1);
}

#[test]
fn a_request_that_waits_too_long_is_told_so_while_loops_panic_too() {
    for are_loops_broken in [false, true] {
        let bench = Bench::new(workers(1));
        let first = call(&bench, &silent(), request("/"));
        let mut second = call(&bench, &answering("second"), request("/"));
        assert!(poll(&mut second).is_pending());
        bench.layer.running.are_loops_broken.store(are_loops_broken, Ordering::Relaxed);
        bench.tick();
        assert!(poll(&mut second).is_pending());
        bench.advance(Duration::from_secs(11));
        bench.tick();
        let response = answer(second);
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        let decision = response.extensions().get::<crate::Decision>().expect("a decision");
        assert_eq!((decision.reason(), decision.level()), (Reason::WaitTimeout, 0));
        drop((first, response));
        bench.assert_settled();
    }
}

/// Where the user's code panics.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PanicsIn {
    Ready,
    Call,
    Poll,
    FirstFrame,
    LaterFrame,
}

/// A service and a body that panic.
#[derive(Clone)]
struct Panicking(PanicsIn);

struct PanickingBody {
    panics_in: PanicsIn,
    frames: u32,
}

impl Service<Request<()>> for Panicking {
    type Response = Response<PanickingBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        assert_ne!(self.0, PanicsIn::Ready);
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        let panics_in = self.0;
        assert_ne!(panics_in, PanicsIn::Call);
        Box::pin(async move {
            assert_ne!(panics_in, PanicsIn::Poll);
            Ok(Response::new(PanickingBody { panics_in, frames: 0 }))
        })
    }
}

impl http_body::Body for PanickingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        self.frames += 1;
        assert!(self.panics_in != PanicsIn::FirstFrame && self.frames == 1);
        Poll::Ready(Some(Ok(http_body::Frame::data(Bytes::from_static(b"frame")))))
    }
}

#[test]
fn a_panic_of_the_handler_leaks_no_place_and_counts_as_a_failure() {
    let bench = Bench::new(workers(1));
    let all = [PanicsIn::Ready, PanicsIn::Call, PanicsIn::Poll, PanicsIn::FirstFrame, PanicsIn::LaterFrame];
    for (number, panics_in) in all.into_iter().enumerate() {
        let handler: Handler<PanickingBody> = BoxCloneSyncService::new(Panicking(panics_in));
        let mut pending = call(&bench, &handler, request("/"));
        let mut body = None;
        // As an executor does that catches the panic of a task and drops it later.
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let Poll::Ready(Ok(response)) = poll(&mut pending) else { panic!("no response") };
            body = Some(response.into_body());
            body.take().map(read)
        }));
        assert!(panic.is_err(), "{panics_in:?}");
        drop((pending, body));
        assert_eq!(bench.outcomes(Outcome::Failed), number as u64 + 1, "{panics_in:?}");
        bench.assert_settled();
    }
}

#[test]
fn an_error_of_the_service_passes_and_counts_as_a_failure() {
    let bench = Bench::new(workers(1));
    let failing = tower::service_fn(|_: Request<()>| async { Err::<Response<Full<Bytes>>, _>("broken") });
    let mut pending = Box::pin(bench.layer.layer(failing).call(request("/")));
    assert!(matches!(poll(&mut pending), Poll::Ready(Err("broken"))));
    drop(pending);
    bench.assert_settled();
    assert_eq!(bench.outcomes(Outcome::Failed), 1);
}

/// Other layers of tower, such as its concurrency limit, reserve a place in `poll_ready`, which others lack while the service
/// stays ready.
#[test]
fn a_service_that_is_ready_and_dropped_or_kept_holds_nothing() {
    let bench = Bench::new(workers(1));
    let behind = tower::ServiceBuilder::new().concurrency_limit(1).service(answering("it"));
    let mut context = Context::from_waker(Waker::noop());
    let service = bench.layer.layer(behind);
    let mut kept: Vec<_> = (0..100).map(|_| service.clone()).collect();
    for service in &mut kept {
        assert!(matches!(service.poll_ready(&mut context), Poll::Ready(Ok(()))));
    }
    kept.truncate(50);
    bench.assert_settled();
    for service in &mut kept {
        let mut pending = Box::pin(service.call(request("/")));
        let Poll::Ready(Ok(response)) = poll(&mut pending) else { panic!("nothing else holds a place") };
        assert_eq!(read(response.into_body()), "it");
    }
    bench.assert_settled();
}

#[test]
fn the_thread_of_the_loops_ends_with_the_last_of_its_users() {
    let layer = workers(1).build().expect("possible promises");
    let weak = Arc::downgrade(&layer.running);
    let mut service = layer.layer(silent());
    let pending = service.call(request("/"));
    drop((layer, service));
    assert!(weak.strong_count() > 0, "a request is under way");
    drop(pending);
    // The thread holds the layer only while it ticks.
    while weak.strong_count() > 0 {
        std::thread::yield_now();
    }
}
