//! Upstreams that answer too early, too late or wrongly, or stop half-way, and what clients see of that.

use crate::support::{self, *};
use plimsoll_gateway::Gateway;
use rustix::net::sockopt::set_socket_linger;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A listener with a full queue: a connection to it is made only once one is accepted.
fn full_listener() -> (TcpListener, SocketAddr, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    rustix::net::listen(&listener, 1).expect("a short queue");
    let address = listener.local_addr().expect("its address");
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(200)) {
        queued.push(stream);
        assert!(queued.len() < 10, "the queue never fills");
    }
    (listener, address, queued)
}

#[test]
fn a_body_that_comes_while_the_upstream_is_connected_is_sent() {
    let (listener, upstream, queued) = full_listener();
    let mut settings = streaming(&[upstream]);
    settings.timeouts.connect = PATIENCE;
    settings.timeouts.body_idle = Duration::from_secs(3);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\n").expect("sent");
    eventually("it is in service", || gateway.status().plants[0].in_service == 1);
    // The gateway needs time to begin its connection, then to read. With less time the test sees less and does not fail.
    std::thread::sleep(Duration::from_millis(100));
    client.send("body").expect("sent");
    std::thread::sleep(Duration::from_millis(100));
    drop(queued);
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut peer = Peer::new(stream);
            if let Some(head) = peer.head() {
                let body = peer.body(&head);
                let _ = peer.send_response(&body);
                return;
            }
        }
    });
    assert_eq!(client.answer(), (200, b"body".to_vec()));
    settled(&gateway);
}

/// A close ends a body without a length; a reset does not.
#[test]
fn a_body_that_ends_with_a_reset_is_cut_short() {
    let (seen, was_seen) = mpsc::channel();
    let was_seen = std::sync::Mutex::new(was_seen);
    let origin = Origin::start(move |mut peer| {
        peer.head();
        let _ = peer.send("HTTP/1.0 200 OK\r\n\r\npart");
        let _ = was_seen.lock().expect("no panic").recv_timeout(PATIENCE);
        set_socket_linger(peer.stream.get_ref(), Some(Duration::ZERO)).expect("a reset at its close");
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    assert_eq!(status(&client.head().expect("a head")), 200);
    assert_eq!(client.exactly(9), b"4\r\npart\r\n");
    seen.send(()).expect("the upstream listens");
    assert_eq!(client.rest(), b"", "no last chunk");
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [0, 1, 0]);
}

/// Otherwise the client would send its next request on a connection that is not read any more.
#[test]
fn an_answer_before_the_request_has_ended_says_that_the_connection_closes() {
    let origin = Origin::once("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    let gateway = Gateway::start(streaming(&[origin.address]), &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    let head = client.ask_head("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nabc");
    assert_eq!((status(&head), field(&head, "connection")), (403, Some("close")));
    assert_eq!(client.rest(), b"no");
    settled(&gateway);
}

#[test]
fn a_bad_chunk_that_comes_with_the_head_is_502() {
    for chunk in ["zz\r\n", "3\r\nabcde\r\n"] {
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}");
        let origin = Origin::start(move |mut peer| {
            peer.head();
            let _ = peer.send(&answer);
        });
        let gateway = gateway(&origin);
        assert_eq!(client(&gateway).get("/").0, 502, "{chunk:?}");
        let mut old = client(&gateway);
        assert_eq!(old.ask("GET / HTTP/1.0\r\n\r\n").0, 502, "{chunk:?} for HTTP/1.0");
        settled(&gateway);
        assert_eq!(outcomes(&gateway), [0, 2, 0]);
    }
}

#[test]
fn a_request_without_a_host_names_the_upstream() {
    let (heads, seen) = mpsc::channel();
    let origin = Origin::answering(move |head, _| {
        heads.send(head.to_owned()).expect("the test listens");
        b""
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    assert_eq!(client.ask("GET /health HTTP/1.0\r\n\r\n").0, 200);
    let head = seen.recv_timeout(PATIENCE).expect("a head");
    assert!(head.starts_with(&format!("GET /health HTTP/1.1\r\nhost: {}\r\n", origin.address)), "{head}");
    assert!(
        head.ends_with("\r\nx-forwarded-for: 127.0.0.1\r\nx-forwarded-proto: http\r\n")
            && head.lines().count() == 5,
        "{head}"
    );
}

#[test]
fn an_upstream_that_is_silent_on_an_expectation_is_504() {
    let origin = Origin::once("");
    let mut settings = streaming(&[origin.address]);
    settings.timeouts.first_byte = Duration::from_millis(600);
    settings.timeouts.body_idle = Duration::from_millis(200);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    client
        .send("POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        .expect("sent");
    assert_eq!(client.answer().0, 504);
    settled(&gateway);
}

/// Each byte of a head is none of the answer: only a whole head ends the wait.
#[test]
fn an_upstream_that_drips_its_head_is_504() {
    let origin = Origin::start(|mut peer| {
        peer.head();
        let field = format!("x-long: {}", "x".repeat(200));
        for byte in format!("HTTP/1.1 200 OK\r\n{field}\r\n\r\n").bytes() {
            if peer.send([byte]).is_err() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let mut settings = settings(&[origin.address]);
    settings.timeouts.first_byte = Duration::from_millis(500);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let begin = Instant::now();
    assert_eq!(client(&gateway).get("/").0, 504);
    assert!(begin.elapsed() < PATIENCE / 2, "{:?}", begin.elapsed());
    settled(&gateway);
}

#[test]
fn a_client_that_expects_100_and_then_stalls_is_408() {
    let origin = Origin::once("HTTP/1.1 100 Continue\r\n\r\n");
    let mut settings = streaming(&[origin.address]);
    settings.timeouts.body_idle = Duration::from_millis(200);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    client
        .send("POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        .expect("sent");
    assert_eq!(status(&client.head().expect("an interim answer")), 100);
    assert_eq!(client.answer().0, 408);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [1, 0, 0]);
}

/// As the same body is none that is read before its request arrives.
#[test]
fn what_a_client_does_wrong_in_a_body_that_streams_is_no_failure_of_the_plant() {
    let origin = Origin::start(|mut peer| drop(peer.rest()));
    let mut settings = streaming(&[origin.address]);
    settings.limits.body_bytes = 10;
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    for (number, (more, answer)) in [("zz\r\n", 400), ("8\r\nabcdefgh\r\n", 413)].into_iter().enumerate() {
        let mut client = client(&gateway);
        let head = "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(format!("{head}3\r\nabc\r\n")).expect("sent");
        eventually("it is served", || gateway.status().plants[0].in_service == 1);
        client.send(more).expect("sent");
        assert_eq!(client.answer().0, answer);
        settled(&gateway);
        assert_eq!(outcomes(&gateway), [number as u64 + 1, 0, 0]);
    }
}

/// A server may close an idle connection at any time: the close says nothing about the server's health.
#[test]
fn a_reused_connection_that_was_closed_is_no_failure_of_its_server() {
    let origin = Origin::start(|mut peer| {
        peer.head();
        let _ = peer.send_response(b"once");
        peer.head();
    });
    let other = Origin::sending(|_| "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nother");
    let gateway =
        Gateway::start(settings(&[origin.address, other.address]), &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    assert_eq!(client.get("/"), (200, b"once".to_vec()));
    // Idle servers take turns: the next request but one finds the kept connection.
    assert_eq!(client.get("/"), (200, b"other".to_vec()));
    assert_eq!(client.ask("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx").0, 502);
    // Turns alternate between healthy addresses.
    let mut client = support::client(&gateway);
    let answers = [client.get("/").1, client.get("/").1];
    assert!(answers.contains(&b"once".to_vec()), "the first address is still used: {answers:?}");
    assert!(origin.accepted.load(std::sync::atomic::Ordering::SeqCst) >= 2);
}

/// Kept connections do not bind a gateway to the server that they lead to.
#[test]
fn requests_go_to_all_servers_on_kept_connections_too() {
    let origins = [b"one", b"two"].map(|name| Origin::serving(name));
    let addresses = origins.each_ref().map(|origin| origin.address);
    let gateway = Gateway::start(settings(&addresses), &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    let answers: Vec<_> = (0..20).map(|_| client.get("/")).collect();
    assert!(answers.iter().all(|(status, _)| *status == 200));
    for name in [b"one", b"two"] {
        let count = answers.iter().filter(|(_, body)| body == name).count();
        assert!(count >= 5, "{count} of 20");
    }
    settled(&gateway);
}

#[test]
fn the_report_is_ours_alone() {
    use plimsoll_gateway::settings::{Report, ReportMode, Settings};
    let origin = Origin::sending(|_| "HTTP/1.1 200 OK\r\nX-Level: forged\r\nContent-Length: 0\r\n\r\n");
    for (mode, seen) in [
        (ReportMode::Always, Some("level=2; reason=guaranteed")),
        (ReportMode::Rejections, None),
        (ReportMode::Off, Some("forged")),
    ] {
        let report = Report { mode, name: "x-level".to_owned() };
        let settings = Settings { report, ..settings(&[origin.address]) };
        let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
        let mut client = client(&gateway);
        client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
        assert_eq!(field(&client.head().expect("an answer"), "x-level"), seen, "{mode:?}");
    }
}
