//! The layer in real servers, over real connections: nothing is lost, and each request is accounted for once.

use axum::{Extension, Router, extract::ConnectInfo, routing::get};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use plimsoll_tower::core::request::{Outcome, Reason};
use plimsoll_tower::{Decision, PlimsollLayer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tower::Layer;

/// A page that is made once its handler is let go on.
async fn held(doors: Arc<Semaphore>) -> &'static str {
    doors.acquire().await.expect("never closed").forget();
    "a page"
}

fn layer(workers: u32) -> PlimsollLayer {
    let address = |head: &http::request::Parts| {
        head.extensions.get().map(|ConnectInfo(address): &ConnectInfo<SocketAddr>| address.ip())
    };
    PlimsollLayer::builder().workers(workers).client_address(address).build().expect("possible promises")
}

/// Serves pages that are held, one that panics, and one that tells its decision.
async fn serve_axum(plimsoll: &PlimsollLayer, doors: &Arc<Semaphore>) -> SocketAddr {
    let doors = doors.clone();
    let app = Router::new()
        .route("/held", get(move || held(doors)))
        .route("/panics", get(|| async { panic!("as handlers do") as &'static str }))
        .route(
            "/told",
            get(|Extension(decision): Extension<Decision>| async move { decision.level_name().to_owned() }),
        )
        .layer(plimsoll.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
    });
    address
}

/// A client of one connection, which ends when it is dropped.
async fn connect(address: SocketAddr) -> SendRequest<Empty<Bytes>> {
    let socket = TcpStream::connect(address).await.expect("the server listens");
    let (client, connection) = http1::handshake(TokioIo::new(socket)).await.expect("a connection");
    tokio::spawn(connection);
    client
}

fn asked(path: &str) -> Request<Empty<Bytes>> {
    Request::get(path).header("host", "a.example").body(Empty::new()).expect("a request")
}

/// Waits until something holds, for as long as a test may take.
async fn until(what: &str, holds: impl Fn() -> bool) {
    let waited = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waited).await.unwrap_or_else(|_| panic!("never: {what}"));
}

fn under_way(plimsoll: &PlimsollLayer) -> (u32, u32) {
    let plant = &plimsoll.status().plants[0];
    (plant.in_service, plant.waiting)
}

fn outcomes(plimsoll: &PlimsollLayer) -> [u64; 3] {
    let status = plimsoll.status();
    std::array::from_fn(|outcome| status.classes.iter().map(|class| class.counts.outcomes[outcome]).sum())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_axum_that_leave_give_their_places_back() {
    let (plimsoll, doors) = (layer(1), Arc::new(Semaphore::new(0)));
    let address = serve_axum(&plimsoll, &doors).await;
    let mut clients = Vec::new();
    for expected in [(1, 0), (1, 1), (1, 2)] {
        let mut client = connect(address).await;
        clients.push(tokio::spawn(async move { client.send_request(asked("/held")).await }));
        until("each request comes", || under_way(&plimsoll) == expected).await;
    }
    // One that waits leaves, then the one in service: the last is served.
    clients.remove(1).abort();
    until("it leaves the queue", || under_way(&plimsoll) == (1, 1)).await;
    clients.remove(0).abort();
    until("the next has its place", || under_way(&plimsoll) == (1, 0)).await;
    doors.add_permits(1);
    let response = clients.remove(0).await.expect("not aborted").expect("an answer");
    assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "a page");
    until("all have departed", || under_way(&plimsoll) == (0, 0) && outcomes(&plimsoll) == [1, 0, 1]).await;
    let left = plimsoll.status().classes[0].counts.reasons[Reason::ClientLeft as usize];
    assert_eq!(left, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_an_axum_handler_gives_its_place_back() {
    let (plimsoll, doors) = (layer(1), Arc::new(Semaphore::new(0)));
    let address = serve_axum(&plimsoll, &doors).await;
    for number in 1..=3 {
        let answer = connect(address).await.send_request(asked("/panics")).await;
        assert!(answer.is_err(), "the server ends the connection");
        until("it departs", || outcomes(&plimsoll)[Outcome::Failed as usize] == number).await;
        assert_eq!(under_way(&plimsoll), (0, 0));
    }
    let response = connect(address).await.send_request(asked("/told")).await.expect("an answer");
    assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "full");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hyper_server_answers_a_rejection_with_503_and_goes_on() {
    let plimsoll = PlimsollLayer::builder()
        .workers(1)
        .promises(|promises| promises.plants[0].queue.max_waiting = 0)
        .build()
        .expect("possible promises");
    let doors = Arc::new(Semaphore::new(0));
    let page = {
        let doors = doors.clone();
        tower::service_fn(move |_: Request<hyper::body::Incoming>| {
            let doors = doors.clone();
            async move { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(held(doors).await))) }
        })
    };
    let service = TowerToHyperService::new(plimsoll.layer(page));
    let connected = || async {
        let (near, far) = tokio::io::duplex(4096);
        let service = service.clone();
        tokio::spawn(async move {
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service).await
        });
        let (client, connection) = http1::handshake(TokioIo::new(near)).await.expect("a connection");
        tokio::spawn(connection);
        client
    };
    let (mut first, mut second) = (connected().await, connected().await);
    let held = tokio::spawn(async move { first.send_request(asked("/")).await });
    until("it has its place", || under_way(&plimsoll) == (1, 0)).await;
    for _ in 0..2 {
        second.ready().await.expect("the connection stays");
        let response = second.send_request(asked("/")).await.expect("an answer");
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(response.headers().contains_key("retry-after"));
        let text = response.into_body().collect().await.expect("a body").to_bytes();
        assert_eq!(text, "The server has more requests than it can serve, and as many wait as may.\n");
    }
    doors.add_permits(1);
    assert_eq!(held.await.expect("no panic").expect("an answer").status(), StatusCode::OK);
    until("all have departed", || under_way(&plimsoll) == (0, 0) && outcomes(&plimsoll) == [1, 0, 0]).await;
}
