//! What clients and handlers are told.

use super::*;
use crate::request::arrival::unknown_address;
use crate::request::view::HeadView;
use crate::{BuildError, Decision};
use http::StatusCode;
use plimsoll_core::promises::{Class, Condition};
use plimsoll_core::request::Reason;
use std::sync::Mutex;

/// A layer with one place, which is taken, and no queue.
fn full() -> (Bench, Pending<Full<Bytes>>) {
    let bench = Bench::new(workers(1).promises(|promises| {
        promises.plants[0].queue.max_waiting = 0;
        promises.control.retry_after = Some(Duration::from_millis(2500));
    }));
    let mut held = call(&bench, &silent(), request("/"));
    assert!(poll(&mut held).is_pending());
    (bench, held)
}

#[test]
fn a_rejection_is_503_with_retry_after_and_says_why() {
    let (bench, held) = full();
    let response = answer(call(&bench, &answering("unseen"), request("/")));
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("retry-after"), Some("3"));
    assert_eq!(header("ratelimit"), Some("\"queue-full\";r=0;t=3"));
    assert_eq!(
        (header("cache-control"), header("content-type")),
        (Some("no-store"), Some("text/plain; charset=utf-8"))
    );
    let decision = response.extensions().get::<Decision>().expect("a decision");
    assert_eq!((decision.reason(), decision.level(), decision.level_name()), (Reason::QueueFull, 0, ""));
    assert_eq!(
        read(response.into_body()),
        "The server has more requests than it can serve, and as many wait as may.\n"
    );
    drop(held);
    bench.assert_settled();
}

/// Over HTTP/2 a body would be an error of the stream.
#[test]
fn a_rejected_head_has_the_length_of_the_sentence_and_no_body() {
    let (bench, _held) = full();
    let asked = Request::head("/").body(()).expect("a request");
    let response = answer(call(&bench, &answering("unseen"), asked));
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    let length = response.headers().get("content-length").expect("a length").clone();
    assert_eq!(
        length,
        &read(answer(call(&bench, &answering("unseen"), request("/"))).into_body()).len().to_string()
    );
    assert!(http_body::Body::is_end_stream(response.body()));
    assert_eq!(read(response.into_body()), "");
}

#[test]
fn a_client_of_grpc_is_told_in_its_own_terms() {
    let (bench, _held) = full();
    let mut asked = request("/package.Service/Method");
    asked.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc+proto"));
    let response = answer(call(&bench, &answering("unseen"), asked));
    assert_eq!(response.status(), StatusCode::OK);
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    assert_eq!((header("grpc-status"), header("grpc-retry-pushback-ms")), (Some("14"), Some("2500")));
    assert_eq!(
        header("grpc-message"),
        Some("The server has more requests than it can serve, and as many wait as may.")
    );
    assert_eq!(header("content-type"), Some("application/grpc"));
    assert_eq!(read(response.into_body()), "");
}

#[test]
fn a_host_that_no_site_has_is_misdirected() {
    let bench =
        Bench::new(workers(1).promises(|promises| promises.sites[0].hosts = vec!["a.example".to_owned()]));
    let mut asked = request("/");
    asked.headers_mut().insert("host", HeaderValue::from_static("b.example"));
    let response = answer(call(&bench, &answering("unseen"), asked));
    assert_eq!(
        (response.status(), response.headers().get("retry-after")),
        (StatusCode::MISDIRECTED_REQUEST, None)
    );
    let decision = response.extensions().get::<Decision>().expect("a decision");
    assert_eq!((decision.reason(), decision.class()), (Reason::NoSite, ""));
}

/// What a handler was asked: targets and decisions.
type Notes = Arc<Mutex<Vec<(String, Decision)>>>;

/// A handler that notes what it was asked.
fn noting() -> (Handler<Full<Bytes>>, Notes) {
    let asked = Notes::default();
    let notes = asked.clone();
    let handler = BoxCloneSyncService::new(tower::service_fn(move |request: Request<()>| {
        let decision = request.extensions().get::<Decision>().expect("a decision").clone();
        notes.lock().expect("no panic").push((request.uri().to_string(), decision));
        async { Ok(Response::new(Full::from("it"))) }
    }));
    (handler, asked)
}

#[test]
fn a_level_is_told_to_the_handler_and_may_put_a_prefix_before_its_paths() {
    let builder = workers(1).levels(["light", "full"]).prefix("full", "/best");
    let builder = builder.exempt(Condition::path("/healthz"));
    let (bench, (handler, asked)) = (Bench::new(builder), noting());
    for path in ["/", "/page?a=b", "http://a.example/page", "/healthz", "*"] {
        drop(answer(call(&bench, &handler, request(path))));
    }
    let asked = asked.lock().expect("no panic");
    let uris: Vec<_> = asked.iter().map(|(uri, _)| uri.as_str()).collect();
    assert_eq!(uris, ["/best/", "/best/page?a=b", "http://a.example/best/page", "/healthz", "*"]);
    let told = |number: usize| {
        let decision: &Decision = &asked[number].1;
        (decision.level(), decision.level_name().to_owned(), decision.class().to_owned(), decision.reason())
    };
    assert_eq!(told(0), (2, "full".to_owned(), "default".to_owned(), Reason::Full));
    assert_eq!(told(3), (2, "full".to_owned(), "exempt".to_owned(), Reason::Exempt));
    bench.assert_settled();
}

#[test]
fn all_that_is_impossible_is_said_at_once() {
    let broken = |promises: &mut plimsoll_core::promises::Promises| {
        promises.sites[0].weight = -1.0;
        promises.plants[0].set_point = 2.0;
    };
    let Err(BuildError::Promises(wrong)) = workers(1).promises(broken).build() else { panic!("impossible") };
    assert!(wrong.len() > 1, "{wrong:?}");
    let prefixes = workers(1).levels(["light", "full"]).prefix("lite", "/lite").prefix("light", "light/");
    let Err(error) = prefixes.build() else { panic!("impossible") };
    assert_eq!(
        error.to_string(),
        "no site has a level `lite`, to which the prefix `/lite` was given; the prefix `light/` of the level `light` is \
         not a path: write `/light`, with a slash before and none after"
    );
}

#[test]
fn a_prefix_that_would_make_another_path_is_refused() {
    for prefix in ["/light#", "/light#a", "/a/../light", "/a/%2e", "/./light"] {
        let Err(error) = workers(1).levels(["light", "full"]).prefix("light", prefix).build() else {
            panic!("{prefix} is no prefix")
        };
        assert_eq!(
            error.to_string(),
            format!(
                "the prefix `{prefix}` of the level `light` has a `#` or a dot segment: it would make another path"
            )
        );
    }
}

#[test]
fn a_reload_brings_levels_with_their_names_and_forgets_nothing() {
    let bench = Bench::new(workers(1));
    let (handler, asked) = noting();
    drop(answer(call(&bench, &handler, request("/"))));
    let changed = workers(1).levels(["light", "full"]).prefix("full", "/best");
    bench.layer.reload(changed).expect("possible promises");
    drop(answer(call(&bench, &handler, request("/"))));
    assert!(bench.layer.reload(workers(0)).is_err(), "nothing changes then");
    drop(answer(call(&bench, &handler, request("/"))));
    let asked = asked.lock().expect("no panic");
    let told: Vec<_> = asked.iter().map(|(uri, decision)| (uri.as_str(), decision.level())).collect();
    assert_eq!(told, [("/", 1), ("/best/", 2), ("/best/", 2)]);
    assert_eq!(bench.counts().arrivals, 3);
}

/// A request that waits across a reload gets a level of the new promises, with the new names.
#[test]
fn a_request_that_waits_over_a_reload_is_told_the_new_names() {
    let bench = Bench::new(workers(1).levels(["light", "full"]).prefix("full", "/old"));
    let (handler, asked) = noting();
    let mut held = call(&bench, &silent(), request("/"));
    assert!(poll(&mut held).is_pending());
    let mut waiting = call(&bench, &handler, request("/"));
    assert!(poll(&mut waiting).is_pending());
    bench
        .layer
        .reload(workers(1).levels(["text", "light", "full"]).prefix("full", "/best"))
        .expect("possible");
    drop(held);
    drop(answer(waiting));
    let asked = asked.lock().expect("no panic");
    let told: Vec<_> = asked.iter().map(|(uri, decision)| (uri.as_str(), decision.level_name())).collect();
    assert_eq!(told, [("/best/", "full")]);
}

/// A level's number means another level before a reload than after it.
#[test]
fn requests_that_come_while_levels_change_are_told_the_names_of_their_own() {
    let bench = Bench::new(workers(1).levels(["light", "full"]));
    let is_over = std::sync::atomic::AtomicBool::new(false);
    let (wrong, right) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let (mut wrong, mut right) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                let response = answer(call(&bench, &answering("it"), request("/")));
                let decision = response.extensions().get::<Decision>().expect("a decision");
                let is_full = decision.level_name() == "full";
                (wrong, right) = (wrong + u32::from(!is_full), right + u32::from(is_full));
            }
            (wrong, right)
        });
        for levels in [&["text", "light", "full"][..], &["light", "full"]].into_iter().cycle().take(2000) {
            bench.layer.reload(workers(1).levels(levels.iter().copied())).expect("possible promises");
        }
        is_over.store(true, Ordering::Relaxed);
        asking.join().expect("no panic")
    });
    assert!(right > 0);
    assert_eq!(wrong, 0, "beside {right} right names");
}

/// A server might resolve it to a path of another class or level.
#[test]
fn a_path_with_a_dot_segment_is_refused() {
    let bench = Bench::new(workers(1));
    let response = answer(call(&bench, &answering("unseen"), request("/buy/../dear")));
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    assert_eq!(read(response.into_body()), "The path has a dot segment.\n");
}

/// Clients that have no cookie yet do not all share one level.
#[test]
fn requests_of_unknown_clients_are_of_different_clients() {
    let bench = Bench::new(workers(1).client_cookie("session"));
    let running = &bench.layer.running;
    let client = |_| {
        let (head, ()) = request("/").into_parts();
        let view = HeadView::new(&head, unknown_address());
        running.lanes.lock(0).lane.classify(&view).expect("a site").client
    };
    let clients: Vec<u64> = (0..1000).map(client).collect();
    let lower_half = clients.iter().filter(|client| **client < 1 << 55).count();
    assert!((430..=570).contains(&lower_half), "{lower_half} of 1000");
}

/// A configuration file of the gateway derives the load line by the same rule.
#[test]
fn the_load_line_follows_from_what_was_promised_unless_it_is_told() {
    let set_point = |builder: Builder| Bench::new(builder).layer.status().plants[0].set_point;
    let quick =
        Class { deadline: Some(Duration::from_secs(1)), ..Class::new("quick", Condition::path("/q")) };
    assert!((set_point(workers(1)) - 0.85).abs() < 1e-9);
    assert!((set_point(workers(1).class(quick.clone())) - 1.0).abs() < 1e-9);
    assert!((set_point(workers(1).class(quick).load_line(0.7)) - 0.7).abs() < 1e-9);
}
