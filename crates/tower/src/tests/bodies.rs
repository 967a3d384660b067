//! When a response gives its place back, what of it is counted, and what passes unchanged.

use super::*;
use http::{Method, StatusCode};
use http_body::Body;
use plimsoll_core::promises::{Class, Condition, Delay};
use std::sync::Mutex;

/// A handler that answers with this response.
fn with<B: Send + 'static>(response: Response<B>) -> Handler<B> {
    let once = Arc::new(Mutex::new(Some(response)));
    BoxCloneSyncService::new(tower::service_fn(move |_| {
        let response = once.lock().expect("no panic").take().expect("one request");
        async { Ok(response) }
    }))
}

fn next<B: Body<Data = Bytes> + Unpin>(
    body: &mut ResponseBody<B>,
) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
    Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop()))
}

fn data<E>(frame: Poll<Option<Result<Frame<Bytes>, E>>>) -> Bytes {
    let Poll::Ready(Some(Ok(frame))) = frame else { panic!("no frame") };
    frame.into_data().unwrap_or_else(|_| panic!("no data"))
}

#[test]
fn a_response_of_frames_holds_its_place_up_to_the_last_and_its_trailers_pass() {
    let bench = Bench::new(workers(1));
    let steps = [Step::Data("one"), Step::Later, Step::Data("two"), Step::Trailers("0")];
    let mut body = answer(call(&bench, &with(Response::new(scripted(steps))), request("/"))).into_body();
    assert_eq!(bench.under_way(), (1, 0));
    assert_eq!(body.size_hint().lower(), 3, "the first frame was asked for");
    assert!(!body.is_end_stream());
    assert_eq!(data(next(&mut body)), "one");
    assert_eq!(bench.counts().bytes, 3, "counted as it is handed over");
    assert!(next(&mut body).is_pending());
    assert_eq!(data(next(&mut body)), "two");
    let Poll::Ready(Some(Ok(trailers))) = next(&mut body) else { panic!("no trailers") };
    assert!(trailers.trailers_ref().is_some_and(|trailers| trailers.contains_key(GRPC_STATUS)));
    assert_eq!(bench.under_way(), (1, 0));
    assert!(matches!(next(&mut body), Poll::Ready(None)));
    bench.assert_settled();
    assert_eq!((bench.outcomes(Outcome::Completed), bench.counts().bytes), (1, 6));
    assert!(body.is_end_stream() && matches!(next(&mut body), Poll::Ready(None)), "it is not asked again");
}

/// A server stops after the announced number of bytes, and drops the body without polling for its end.
#[test]
fn a_body_that_came_as_long_as_its_length_says_is_complete() {
    for (length, outcome) in [("6", Outcome::Completed), ("7", Outcome::Abandoned)] {
        let bench = Bench::new(workers(1));
        let steps = [Step::Data("one"), Step::Later, Step::Data("two"), Step::Later];
        let response = Response::builder().header("content-length", length).body(scripted(steps));
        let handler = with(response.expect("a response"));
        let mut body = answer(call(&bench, &handler, request("/"))).into_body();
        assert_eq!(data(next(&mut body)), "one");
        assert!(next(&mut body).is_pending());
        assert_eq!(data(next(&mut body)), "two");
        drop(body);
        bench.assert_settled();
        assert_eq!((bench.outcomes(outcome), bench.counts().bytes), (1, 6), "{length}");
    }
}

#[test]
fn an_error_in_a_body_passes_once_and_counts_as_a_failure() {
    for steps in [[Step::Error, Step::Later], [Step::Data("one"), Step::Error]] {
        let bench = Bench::new(workers(1));
        let mut body = answer(call(&bench, &with(Response::new(scripted(steps))), request("/"))).into_body();
        let mut frame = next(&mut body);
        if !matches!(frame, Poll::Ready(Some(Err(_)))) {
            frame = next(&mut body);
        }
        assert!(matches!(frame, Poll::Ready(Some(Err("broken")))), "{steps:?}");
        bench.assert_settled();
        assert_eq!(bench.outcomes(Outcome::Failed), 1);
        assert!(matches!(next(&mut body), Poll::Ready(None)));
    }
}

/// A server sends no body in answer to HEAD or with such a status, and polls for none.
#[test]
fn a_response_without_a_body_is_complete_at_its_head() {
    for (method, status) in [
        (Method::HEAD, StatusCode::OK),
        (Method::GET, StatusCode::NOT_MODIFIED),
        (Method::GET, StatusCode::NO_CONTENT),
        (Method::GET, StatusCode::SWITCHING_PROTOCOLS),
        (Method::CONNECT, StatusCode::OK),
    ] {
        let bench = Bench::new(workers(1));
        let response = Response::builder().status(status).body(Full::from("unseen")).expect("a response");
        let mut asked = request("/");
        *asked.method_mut() = method.clone();
        let response = answer(call(&bench, &with(response), asked));
        bench.assert_settled();
        assert_eq!(bench.outcomes(Outcome::Completed), 1, "{method} {status}");
        assert_eq!(response.body().size_hint().exact(), Some(6), "the length that HEAD tells is as it was");
    }
}

fn events() -> Response<Scripted> {
    let response = Response::builder().header("content-type", "Text/Event-Stream; charset=utf-8");
    response.body(scripted([Step::Data("event"), Step::Later, Step::Data("event")])).expect("a response")
}

#[test]
fn a_stream_of_events_gives_its_place_back_and_is_bounded() {
    let bench = Bench::new(workers(1).promises(|promises| promises.plants[0].tunnels.most = 1));
    let mut body = answer(call(&bench, &with(events()), request("/"))).into_body();
    let status = bench.layer.status();
    assert_eq!((bench.under_way(), status.plants[0].tunnels), ((0, 0), 1));
    let refused = answer(call(&bench, &with(events()), request("/")));
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(read(refused.into_body()), "The server has as many streams open as it may.\n");
    assert_eq!(data(next(&mut body)), "event");
    drop(body);
    bench.assert_settled();
    assert_eq!(bench.layer.status().plants[0].tunnels, 0);
    assert_eq!(answer(call(&bench, &with(events()), request("/"))).status(), StatusCode::OK);
}

/// No stream is open after these.
#[test]
fn neither_an_upgrade_nor_the_head_of_a_stream_of_events_needs_a_free_stream() {
    let bench = Bench::new(workers(1).promises(|promises| promises.plants[0].tunnels.most = 1));
    let open = answer(call(&bench, &with(events()), request("/")));
    let asked = Request::head("/").body(()).expect("a request");
    assert_eq!(answer(call(&bench, &with(events()), asked)).status(), StatusCode::OK);
    let upgrade =
        Response::builder().status(StatusCode::SWITCHING_PROTOCOLS).body(scripted([])).expect("a response");
    assert_eq!(answer(call(&bench, &with(upgrade), request("/"))).status(), StatusCode::SWITCHING_PROTOCOLS);
    assert_eq!((bench.under_way(), bench.layer.status().plants[0].tunnels), ((0, 0), 1));
    drop(open);
    bench.assert_settled();
}

/// Time in which the server only waited for the client is in no figure.
#[test]
fn a_client_that_reads_slowly_makes_no_response_time() {
    let bench = Bench::new(workers(1));
    let steps = [Step::Data("one"), Step::Data("two")];
    let mut body = answer(call(&bench, &with(Response::new(scripted(steps))), request("/"))).into_body();
    bench.advance(Duration::from_millis(10));
    assert_eq!(data(next(&mut body)), "one");
    bench.advance(Duration::from_secs(60));
    assert_eq!(data(next(&mut body)), "two");
    bench.advance(Duration::from_secs(60));
    assert!(matches!(next(&mut body), Poll::Ready(None)));
    bench.assert_settled();
    assert_eq!(bench.layer.status().classes[0].response_times.sum_ns, 10_000_000);
}

/// The same holds if the client never takes the rest.
#[test]
fn a_client_that_stalls_and_leaves_makes_no_response_time() {
    let delay = Some(Delay { target: Duration::from_secs(1), percentile: Some(95.0) });
    let bench = Bench::new(workers(1).class(Class { delay, ..Class::new("all", Condition::path("/*")) }));
    let steps = [Step::Data("one"), Step::Data("two")];
    let mut body = answer(call(&bench, &with(Response::new(scripted(steps))), request("/"))).into_body();
    bench.advance(Duration::from_millis(10));
    assert_eq!(data(next(&mut body)), "one");
    bench.advance(Duration::from_secs(60));
    drop(body);
    bench.assert_settled();
    assert_eq!(bench.outcomes(Outcome::Abandoned), 1);
    assert_eq!(bench.layer.status().classes[0].response_times.sum_ns, 10_000_000);
}

/// A failed gRPC call has the HTTP status 200 all the same.
#[test]
fn a_call_of_grpc_that_fails_counts_as_a_failure() {
    for (code, outcome) in [
        ("0", Outcome::Completed),
        ("5", Outcome::Completed),
        ("13", Outcome::Failed),
        ("14", Outcome::Failed),
    ] {
        let bench = Bench::new(workers(1));
        let response =
            Response::builder().header("grpc-status", code).body(Full::from("")).expect("a response");
        answer(call(&bench, &with(response), request("/")));
        bench.assert_settled();
        assert_eq!(bench.outcomes(outcome), 1, "{code} in the head");
        for steps in [vec![Step::Trailers(code)], vec![Step::Data("message"), Step::Trailers(code)]] {
            let bench = Bench::new(workers(1));
            let body =
                answer(call(&bench, &with(Response::new(Scripted(steps.into()))), request("/"))).into_body();
            let mut collected = Box::pin(http_body_util::BodyExt::collect(body));
            assert!(poll(&mut collected).is_ready());
            bench.assert_settled();
            assert_eq!(bench.outcomes(outcome), 1, "{code} in the trailers");
        }
    }
}

#[test]
fn a_whole_body_keeps_its_length() {
    let bench = Bench::new(workers(1));
    let body = answer(call(&bench, &answering("whole"), request("/"))).into_body();
    assert_eq!(body.size_hint().exact(), Some(5));
    assert!(!body.is_end_stream());
    drop(body);
    assert_eq!(bench.outcomes(Outcome::Abandoned), 1);
    let empty = answer(call(&bench, &answering(""), request("/"))).into_body();
    assert!(empty.is_end_stream());
    assert_eq!(bench.outcomes(Outcome::Completed), 1, "an empty body is complete at its head");
}
