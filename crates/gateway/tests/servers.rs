//! Upstreams of several servers, some of which fail: nothing is lost, all is counted once, and who is out gets nothing.

use crate::support::*;
use plimsoll_gateway::settings::{Backend, HealthCheck, UpstreamSettings};
use plimsoll_gateway::{Gateway, Settings};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// An address at which nobody listens.
fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address")
}

fn sum(upstream: &serde_json::Value, key: &str) -> u64 {
    let servers = upstream["servers"].as_array().expect("servers");
    servers.iter().map(|server| server[key].as_u64().expect("a count")).sum()
}

/// An answer that is an error, and one that breaks off.
const ERROR: &str = "HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n";
const CUT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf";
/// The beginning of a stream of events.
const EVENTS: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n:\r\n";

/// A server that answers with 500 while it is told to.
fn failing(is_failing: &Arc<AtomicBool>) -> (Origin, Arc<AtomicUsize>) {
    failing_with(is_failing, ERROR)
}

/// A server that sends `failure` while it is told to.
fn failing_with(is_failing: &Arc<AtomicBool>, failure: &'static str) -> (Origin, Arc<AtomicUsize>) {
    let (is_failing, asked) = (is_failing.clone(), Arc::<AtomicUsize>::default());
    let count = asked.clone();
    let origin = Origin::start(move |mut peer| {
        while peer.head().is_some() {
            count.fetch_add(1, SeqCst);
            let fails = is_failing.load(SeqCst);
            let answer = if fails { failure } else { "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" };
            if peer.send(answer).is_err() || (fails && failure == CUT) {
                return;
            }
        }
    });
    (origin, asked)
}

#[test]
fn requests_of_a_server_that_is_gone_are_served_by_the_others_and_counted_once() {
    let origins = [b"one", b"two"].map(|body| Origin::serving(body));
    let dead = closed();
    let gateway = watched(&[origins[0].address, dead, origins[1].address]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = client(&gateway);
                (0..100).for_each(|_| assert_eq!(client.get("/").0, 200));
            });
        }
    });
    settled(&gateway);
    let upstream = upstream(&gateway);
    assert_eq!((sum(&upstream, "served"), sum(&upstream, "errors")), (400, 0), "{upstream}");
    assert_eq!(sum(&upstream, "in_service"), 0, "{upstream}");
    let server = &upstream["servers"][1];
    assert_eq!((&server["address"], &server["served"]), (&dead.to_string().into(), &0.into()));
    assert!(server["unreachable"].as_u64() >= Some(1), "{upstream}");
    assert_eq!(upstream["retries"], sum(&upstream, "unreachable"), "{upstream}");
    assert_eq!(upstream["retries_refused"], 0);
}

/// By the rule of a server that decides itself (`Outcome::of_answer`).
#[test]
fn an_answer_that_is_an_error_of_the_server_is_a_failure() {
    let is_failing = Arc::new(AtomicBool::new(false));
    let (origin, _) = failing(&is_failing);
    let gateway = watched(&[origin.address]);
    let mut client = client(&gateway);
    (0..3).for_each(|_| assert_eq!(client.get("/").0, 200));
    is_failing.store(true, SeqCst);
    (0..2).for_each(|_| assert_eq!(client.get("/").0, 500));
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [3, 2, 0]);
}

/// Their connections stay open for as long as their clients like, so that the switch itself is the answer.
#[test]
fn servers_that_only_switch_protocols_have_answered() {
    let switch = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    some_fail_and_none_is_ejected("Connection: upgrade\r\nUpgrade: echo\r\n", switch, 101);
}

/// So is it with the first of the events.
#[test]
fn servers_that_only_send_events_have_answered() {
    some_fail_and_none_is_ejected("", EVENTS, 200);
}

/// Whatever ends the events, their server has answered: a request has one outcome there, and silence is no error of it.
#[test]
fn servers_whose_events_break_off_or_cease_have_answered_once() {
    let origins = [true, false].map(|breaks_off| {
        Origin::start(move |mut peer| {
            while peer.head().is_some() {
                let _ = peer.send(EVENTS);
                if breaks_off {
                    return;
                }
                peer.rest();
            }
        })
    });
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let mut settings = Settings { admin, ..settings(&origins.each_ref().map(|origin| origin.address)) };
    settings.timeouts.upstream_idle = Duration::from_millis(100);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    for _ in 0..20 {
        let mut client = client(&gateway);
        assert_eq!(status(&client.ask_head("GET / HTTP/1.1\r\nHost: t\r\n\r\n")), 200);
        assert_eq!(client.rest(), b"1\r\n:\r\n", "it ends, and not as if it were whole");
    }
    settled(&gateway);
    let upstream = upstream(&gateway);
    assert_eq!((sum(&upstream, "served"), sum(&upstream, "errors")), (20, 0), "{upstream}");
    let servers = upstream["servers"].as_array().expect("servers");
    assert!(servers.iter().all(|server| server["served"].as_u64() > Some(0)), "{upstream}");
}

/// Two servers send `answer`, and keep its connection until the client ends it; one answers every tenth request with 503.
fn some_fail_and_none_is_ejected(fields: &str, answer: &'static str, answered: u16) {
    let origins = [10, usize::MAX].map(|failing| {
        let asked = AtomicUsize::new(0);
        Origin::start(move |mut peer| {
            while peer.head().is_some() {
                if asked.fetch_add(1, SeqCst) % failing == failing - 1 {
                    let _ = peer.send("HTTP/1.1 503 Oh\r\nContent-Length: 0\r\n\r\n");
                } else {
                    let _ = peer.send(answer);
                    peer.rest();
                }
            }
        })
    });
    let gateway = watched(&origins.each_ref().map(|origin| origin.address));
    let mut counts = [0, 0];
    for _ in 0..400 {
        let head = client(&gateway).ask_head(format!("GET / HTTP/1.1\r\nHost: t\r\n{fields}\r\n"));
        counts[usize::from(status(&head) == 503)] += 1;
        assert!([answered, 503].contains(&status(&head)), "{head}");
    }
    settled(&gateway);
    let upstream = upstream(&gateway);
    assert_eq!((sum(&upstream, "served"), sum(&upstream, "errors")), (counts[0], counts[1]), "{upstream}");
    assert!(counts[1] >= 15 && sum(&upstream, "ejections") == 0, "{upstream}");
}

/// An outlier gets no request but those that were chosen before it was ejected, until its time is over.
#[test]
fn a_server_that_alone_answers_with_errors_is_ejected() {
    a_server_that_alone_fails_is_ejected(ERROR);
    a_server_that_alone_fails_is_ejected(CUT);
}

/// Whether a request gets a whole answer that is no error.
fn is_served(gateway: &Gateway) -> bool {
    let mut client = client(gateway);
    let head = client.ask_head("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
    let length = field(&head, "content-length").and_then(|length| length.parse().ok());
    status(&head) == 200 && length == Some(client.rest().len())
}

fn a_server_that_alone_fails_is_ejected(failure: &'static str) {
    let is_failing = Arc::new(AtomicBool::new(false));
    let (bad, asked) = failing_with(&is_failing, failure);
    let good = Origin::serving(b"good");
    let gateway = watched(&[bad.address, good.address]);
    (0..50).for_each(|_| assert!(is_served(&gateway)));
    is_failing.store(true, SeqCst);
    let mut failed = 0;
    let mut ejected = false;
    for _ in 0..1000 {
        let before = asked.load(SeqCst);
        let is_out = upstream(&gateway)["servers"][0]["state"] == "ejected";
        ejected |= is_out;
        failed += u32::from(!is_served(&gateway));
        let is_still_out = upstream(&gateway)["servers"][0]["state"] == "ejected";
        let same = upstream(&gateway)["servers"][0]["ejections"].clone();
        if is_out && is_still_out && same == 1 {
            assert_eq!(asked.load(SeqCst), before, "it is ejected");
            break;
        }
    }
    assert!(ejected && failed >= 5, "{failed} errors");
    settled(&gateway);
    let upstream = upstream(&gateway);
    assert_eq!(upstream["servers"][0]["errors"], failed, "{upstream}");
    assert_eq!(upstream["all_servers_out"], false);
}

#[test]
fn servers_that_all_fail_are_all_used_and_the_first_that_is_back_serves() {
    let addresses = [closed(), closed()];
    let gateway = watched(&addresses);
    let mut all = client(&gateway);
    for _ in 0..5 {
        assert_eq!(all.get("/").0, 502);
    }
    let before = upstream(&gateway);
    assert_eq!(before["all_servers_out"], true, "{before}");
    assert!(sum(&before, "unreachable") >= 9, "each request tries both: {before}");
    let listener = TcpListener::bind(addresses[1]).expect("the port is free");
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut peer = Peer::new(stream);
            while peer.head().is_some() && peer.send_response(b"back").is_ok() {}
        }
    });
    assert_eq!(all.get("/"), (200, b"back".to_vec()), "it is tried at once");
    settled(&gateway);
    assert_eq!(upstream(&gateway)["all_servers_out"], false);
}

fn eventually_state(gateway: &Gateway, number: usize, state: &str) {
    eventually(state, || upstream(gateway)["servers"][number]["state"] == state);
}

/// Checks alone find a server that no request has met, and are no requests: nothing counts them.
#[test]
fn checks_take_a_server_out_and_bring_it_back_and_end_with_a_reload() {
    let is_failing = Arc::new(AtomicBool::new(true));
    let (bad, asked) = failing(&is_failing);
    let good = Origin::serving(b"good");
    let mut servers = UpstreamSettings::new(vec![bad.address.into(), good.address.into()]);
    let short = Duration::from_millis(100);
    servers.check = Some(HealthCheck { interval: short, failures: 2, ..HealthCheck::default() });
    let backends = vec![Backend::Upstream(servers.clone())];
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let all = Settings { admin, backends, ..settings(&[]) };
    let gateway = Gateway::start(all.clone(), &promises(8)).expect("a gateway");
    eventually_state(&gateway, 0, "down");
    let mut client = client(&gateway);
    (0..50).for_each(|_| assert_eq!(client.get("/"), (200, b"good".to_vec())));
    is_failing.store(false, SeqCst);
    eventually("it is in use", || upstream(&gateway)["servers"][0]["weight"].as_f64() > Some(0.0));
    settled(&gateway);
    let counted = upstream(&gateway);
    assert_eq!((sum(&counted, "served"), sum(&counted, "errors")), (50, 0), "{counted}");
    assert_eq!(gateway.status().classes[0].counts.arrivals, 50);
    is_failing.store(true, SeqCst);
    eventually_state(&gateway, 0, "down");
    servers.check = None;
    let backends = vec![Backend::Upstream(servers)];
    gateway.reloader().reload(Settings { backends, ..all }, &promises(8)).expect("nothing is wrong");
    eventually("nothing holds it down", || upstream(&gateway)["servers"][0]["state"] != "down");
    eventually("the last check is over", || bad.open.load(SeqCst) == 0);
    let before = asked.load(SeqCst);
    std::thread::sleep(5 * short);
    assert_eq!(asked.load(SeqCst), before, "no check is made any more");
}
