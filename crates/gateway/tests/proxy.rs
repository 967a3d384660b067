//! The data plane end to end: framing, order, errors, aborts, bounds.

use crate::support::http2::Connection;
use crate::support::{self, *};
use plimsoll_core::promises::{Mode, Promises, Tunnels};
use plimsoll_core::random::Random;
use plimsoll_gateway::settings::{HeaderRules, Report, ReportMode, SiteHeaders};
use plimsoll_gateway::{Gateway, Settings};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::{Duration, Instant};

#[test]
fn keep_alive_uses_one_connection_on_each_side() {
    let origin = Origin::serving(b"hello");
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    for _ in 0..20 {
        assert_eq!(client.get("/a"), (200, b"hello".to_vec()));
    }
    assert_eq!(origin.accepted.load(SeqCst), 1);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [20, 0, 0]);
}

#[test]
fn the_upstream_gets_a_clean_head() {
    let (heads, seen) = mpsc::channel();
    let origin = Origin::answering(move |head, _| {
        heads.send(head.to_owned()).expect("the test listens");
        b""
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    client
        .send("GET /x?y HTTP/1.1\r\nHost: a.b\r\nConnection: keep-alive, x-hop\r\nX-Hop: 1\r\nAccept: c\r\n\r\n")
        .expect("sent");
    assert_eq!(client.answer().0, 200);
    let head = seen.recv_timeout(PATIENCE).expect("a head");
    let mark = field(&head, "cdn-loop").expect("the gateway's mark");
    assert_eq!(mark.len(), "plimsoll-".len() + 16, "{mark}");
    assert_eq!(
        head.replace(&format!("cdn-loop: {mark}\r\n"), ""),
        "GET /x?y HTTP/1.1\r\nhost: a.b\r\nAccept: c\r\nx-forwarded-for: 127.0.0.1\r\n\
         x-forwarded-proto: http\r\nx-forwarded-host: a.b\r\n"
    );
}

#[test]
fn pipelined_requests_are_served_in_order() {
    let origin = Origin::answering(|head, _| head.split(' ').nth(1).expect("a path").to_owned());
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    let requests: String = (0..50).map(|n| format!("GET /{n} HTTP/1.1\r\nHost: test\r\n\r\n")).collect();
    client.send(requests).expect("sent");
    for n in 0..50 {
        assert_eq!(client.answer(), (200, format!("/{n}").into_bytes()));
    }
}

#[test]
fn bodies_pass_both_ways() {
    let origin = Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            let body = peer.body(&head);
            peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").expect("sent");
            for piece in body.chunks(1000) {
                peer.send(format!("{:x}\r\n", piece.len())).expect("sent");
                peer.send(piece).expect("sent");
                peer.send("\r\n").expect("sent");
            }
            peer.send("0\r\n\r\n").expect("sent");
        }
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    for size in [0, 1, 5000, 300_000] {
        let body: Vec<u8> = (0..size).map(|n| (n % 251) as u8).collect();
        let head = format!("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {size}\r\n\r\n");
        let sender = client.stream.get_ref().try_clone().expect("a second handle");
        let text = [head.as_bytes(), &body].concat();
        let sending = std::thread::spawn(move || std::io::Write::write_all(&mut &sender, &text));
        assert_eq!(client.answer(), (200, body.clone()));
        sending.join().expect("no panic").expect("sent");
        client.send("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n").expect("sent");
        let mut sender = Peer::new(client.stream.get_ref().try_clone().expect("a second handle"));
        let copy = body.clone();
        let sending = std::thread::spawn(move || {
            for piece in copy.chunks(7777) {
                sender.send(format!("{:x}\r\n", piece.len())).expect("sent");
                sender.send(piece).expect("sent");
                sender.send("\r\n").expect("sent");
            }
            sender.send("0\r\n\r\n").expect("sent");
        });
        assert_eq!(client.answer(), (200, body));
        sending.join().expect("sent");
    }
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [8, 0, 0]);
}

#[test]
fn head_204_304_and_ranges_pass() {
    let origin = Origin::sending(|head| match head.split(' ').nth(1) {
        Some("/head") => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n",
        Some("/204") => "HTTP/1.1 204 No Content\r\n\r\n",
        Some("/304") => "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: \"a\"\r\n\r\n",
        _ => {
            assert_eq!(field(head, "range"), Some("bytes=1-2"));
            "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 1-2/9\r\nContent-Length: 2\r\n\r\nbc"
        }
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    let head = client.ask_head("HEAD /head HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!((status(&head), field(&head, "content-length")), (200, Some("100")));
    client.send("GET /204 HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    assert_eq!(status(&client.head().expect("an answer")), 204);
    let head = client.ask_head("GET /304 HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!((status(&head), field(&head, "etag")), (304, Some("\"a\"")));
    assert_eq!(
        client.ask("GET /range HTTP/1.1\r\nHost: t\r\nRange: bytes=1-2\r\n\r\n"),
        (206, b"bc".to_vec())
    );
}

#[test]
fn a_client_that_expects_100_gets_it_before_it_sends() {
    let origin = Origin::start(|mut peer| {
        let head = peer.head().expect("a request");
        assert_eq!(field(&head, "expect"), Some("100-continue"));
        peer.send("HTTP/1.1 100 Continue\r\n\r\n").expect("sent");
        let body = peer.body(&head);
        peer.send_response(&body).expect("sent");
    });
    let gateway = Gateway::start(streaming(&[origin.address]), &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    client
        .send("POST / HTTP/1.1\r\nHost: t\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n")
        .expect("sent");
    assert_eq!(status(&client.head().expect("an interim answer")), 100);
    assert_eq!(client.ask("body"), (200, b"body".to_vec()));
}

#[test]
fn http10_clients_get_plain_bodies_and_a_close() {
    let origin = Origin::start(|mut peer| {
        while peer.head().is_some() {
            let _ = peer.send(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n",
            );
        }
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    let head = client.ask_head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert_eq!(field(&head, "transfer-encoding"), None);
    assert_eq!(field(&head, "connection"), Some("close"));
    assert_eq!(client.rest(), b"abcde");
}

#[test]
fn a_cut_short_body_resets_an_http10_client() {
    let origin = Origin::start(|mut peer| {
        peer.head();
        let _ = peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    });
    let gateway = gateway(&origin);
    for more in ["", "\r\n", "GET / HTTP/1.0\r\n\r\n"] {
        let mut client = client(&gateway);
        client.send(format!("GET / HTTP/1.0\r\n\r\n{more}")).expect("sent");
        client.head().expect("a head");
        assert_eq!(how_it_ends(&mut client), Err(ErrorKind::ConnectionReset), "behind the request: {more:?}");
    }
}

/// The last requests that the gateway does not wait for any longer end in the same way.
#[test]
fn a_stop_resets_an_http10_client_whose_body_has_not_ended() {
    let origin = Origin::once("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    client.send("GET / HTTP/1.0\r\n\r\n").expect("sent");
    client.head().expect("a head");
    assert_eq!(client.exactly(3), b"abc");
    gateway.shutdown();
    assert_eq!(how_it_ends(&mut client), Err(ErrorKind::ConnectionReset));
}

/// How the bytes end.
fn how_it_ends(client: &mut Peer) -> Result<usize, ErrorKind> {
    client.stream.read_to_end(&mut Vec::new()).map_err(|error| error.kind())
}

/// Bytes that the upstream did not take must not be read as the next request.
#[test]
fn an_early_answer_does_not_leave_the_body_behind() {
    let origin = Origin::start(|mut peer| {
        while peer.head().is_some() {
            let _ = peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
            // The upstream never reads the body.
            std::thread::sleep(Duration::from_millis(300));
        }
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    let hidden = "GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n".repeat(300_000);
    let head = format!("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {}\r\n\r\n", hidden.len());
    let mut sender = Peer::new(client.stream.get_ref().try_clone().expect("a second handle"));
    let sending = std::thread::spawn(move || sender.send([head, hidden].concat()));
    assert_eq!(client.answer().0, 413);
    assert_eq!(client.rest(), b"", "no second answer");
    let _ = sending.join().expect("no panic");
    settled(&gateway);
    assert_eq!(gateway.status().classes.iter().map(|class| class.counts.arrivals).sum::<u64>(), 1);
}

/// Clients send a whole body before they read; what a refusal leaves unread must not reset the connection.
#[test]
fn an_upload_that_is_refused_gets_its_answer_however_long_it_is() {
    let origin = Origin::once("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
    for (body_bytes, code) in [(1 << 20, 413), (1 << 30, 405)] {
        let mut settings = streaming(&[origin.address]);
        settings.limits.body_bytes = body_bytes;
        let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
        let mut client = client(&gateway);
        let head = format!("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: {LONG_UPLOAD}\r\n\r\n");
        client.send([head.into_bytes(), vec![b'a'; LONG_UPLOAD]].concat()).expect("all of it is taken");
        assert_eq!(client.answer().0, code);
        assert_eq!(client.rest(), b"");
        settled(&gateway);
    }
}

/// More than the kernel takes for a connection.
const LONG_UPLOAD: usize = 24_000_000;

/// In whatever pieces they come.
#[test]
fn trailers_that_the_client_is_not_to_see_are_dropped() {
    let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\
        X-A: 1\r\nX_Secret: 2\r\nX-Plimsoll: level=9\r\nX-B: 3\r\n\r\n";
    let cuts = Arc::new(AtomicUsize::new(response.find("ok").expect("a body")));
    let cut = cuts.clone();
    let origin = Origin::start(move |mut peer| {
        while peer.head().is_some() {
            let (first, second) = response.split_at(cut.load(SeqCst));
            let _ = peer.send(first);
            std::thread::sleep(Duration::from_millis(5));
            let _ = peer.send(second);
        }
    });
    let dropped = HeaderRules::new(vec!["x-secret".into()], Vec::new());
    let headers = SiteHeaders { response: dropped, ..SiteHeaders::default() };
    let report = Report { mode: ReportMode::Always, ..Report::default() };
    let settings = Settings { headers: vec![headers], report, h2c: true, ..settings(&[origin.address]) };
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    while cuts.fetch_add(1, SeqCst) + 1 < response.len() {
        let head = client.ask_head("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
        assert_eq!(status(&head), 200);
        let rest = "2\r\nok\r\n0\r\nX-A: 1\r\nX-B: 3\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&client.exactly(rest.len())), rest);
    }
    cuts.store(response.find("ok").expect("a body"), SeqCst);
    let answer = Connection::new(address(&gateway)).get("/");
    let trailers = answer.trailers.expect("some");
    let names: Vec<&str> = trailers.keys().map(|name| name.as_str()).collect();
    assert_eq!((answer.body, names), (b"ok".to_vec(), vec!["x-a", "x-b"]));
    settled(&gateway);
    assert_eq!(origin.accepted.load(SeqCst), 1, "its connection is kept");
}

#[test]
fn a_body_that_ends_with_the_connection_is_chunked() {
    let origin = Origin::start(|mut peer| {
        peer.head();
        let _ = peer.send("HTTP/1.0 200 OK\r\n\r\nuntil the end");
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    for _ in 0..2 {
        assert_eq!(client.get("/"), (200, b"until the end".to_vec()));
    }
    settled(&gateway);
}

#[test]
fn a_response_without_a_date_gets_one_and_one_with_a_date_keeps_it() {
    let origin = Origin::sending(|head| {
        let own = if head.contains("/dated") { "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n" } else { "" };
        let early = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        format!("{early}HTTP/1.1 200 OK\r\n{own}Content-Length: 0\r\n\r\n")
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    for (path, date) in [("/dated", Some("Sun, 06 Nov 1994 08:49:37 GMT")), ("/undated", None)] {
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n")).expect("sent");
        let (early, head) = (client.head().expect("hints"), client.head().expect("a response"));
        assert_eq!(field(&early, "date"), None, "{early}");
        let found = field(&head, "date").unwrap_or_else(|| panic!("no date: {head}"));
        assert_eq!(found, date.unwrap_or(found), "{head}");
        assert_eq!(head.to_ascii_lowercase().matches("\ndate:").count(), 1, "{head}");
        assert!(found.len() == 29 && found.ends_with(" GMT"), "{head}");
    }
}

#[test]
fn a_server_that_asks_for_another_protocol_names_it() {
    let origin = Origin::sending(|_| {
        let fields = "Connection: Upgrade\r\nUpgrade: TLS/1.0, HTTP/1.1\r\nContent-Length: 0";
        format!("HTTP/1.1 426 Upgrade Required\r\n{fields}\r\n\r\n")
    });
    let gateway = gateway(&origin);
    let head = client(&gateway).ask_head("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!((status(&head), field(&head, "upgrade")), (426, Some("TLS/1.0, HTTP/1.1")));
    assert_eq!(field(&head, "connection"), Some("upgrade"));
    let head = client(&gateway).ask_head("GET / HTTP/1.0\r\nHost: t\r\n\r\n");
    assert_eq!((status(&head), field(&head, "upgrade")), (426, None), "HTTP/1.0 cannot");
}

#[test]
fn an_upgrade_too_many_is_one_response() {
    let origin = Origin::start(|mut peer| {
        let _ = peer.head();
        let _ = peer.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
    });
    let mut promises = promises(8);
    promises.plants[0].tunnels = Tunnels { most: 0, keep_places: false };
    let gateway = Gateway::start(settings(&[origin.address]), &promises).expect("a gateway");
    let asked = "GET / HTTP/1.1\r\nHost: t\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n";
    assert_eq!(client(&gateway).ask(asked).0, 503);
    settled(&gateway);
    assert_eq!(gateway.status().classes[0].responses, [0, 0, 0, 0, 1]);
}

/// Hints before a page: as many and as large ones as the path says, in one piece.
fn hinting_origin() -> Origin {
    Origin::sending(|head| {
        let path = head.split(' ').nth(1).expect("a path");
        let mut numbers = path.trim_start_matches('/').split('/').map(|part| part.parse().expect("a number"));
        let (many, large): (usize, usize) = (numbers.next().expect("many"), numbers.next().expect("large"));
        let hint = format!("HTTP/1.1 103 Early Hints\r\nX-Hint: {}\r\n\r\n", "h".repeat(large));
        let page = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage";
        hint.repeat(many) + page
    })
}

/// However they fill the buffer, hints keep no page from coming; a client gets sixteen of them at the most.
#[test]
fn a_page_follows_hints_that_are_many_or_large() {
    let origin = hinting_origin();
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    for (many, large) in [(1, 60_000), (3, 30_000), (5, 60_000), (16, 5000), (17, 10), (400, 1000)] {
        client.send(format!("GET /{many}/{large} HTTP/1.1\r\nHost: t\r\n\r\n")).expect("sent");
        for _ in 0..many.min(16) {
            let head = client.head().expect("hints");
            assert_eq!((status(&head), field(&head, "x-hint").map(str::len)), (103, Some(large)), "{many}");
        }
        assert_eq!(client.answer(), (200, b"page".to_vec()), "{many} of {large}");
    }
    settled(&gateway);
}

/// A server that sends hints without end has no more time than one that sends nothing.
#[test]
fn hints_without_end_are_no_answer() {
    let origin = Origin::start(|mut peer| {
        let _ = peer.head();
        while peer.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let mut settings = settings(&[origin.address]);
    settings.timeouts.first_byte = Duration::from_millis(500);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    let heads: Vec<u16> = std::iter::from_fn(|| client.head()).map(|head| status(&head)).take(17).collect();
    assert_eq!(heads, [vec![103; 16], vec![504]].concat());
    settled(&gateway);
}

/// A client that reads slowly has a part of an interim response when its request fails.
#[test]
fn an_error_follows_interim_responses_that_are_under_way() {
    const PAGE: &[u8] = &[b'p'; 3_000_000];
    let fails = Arc::new(AtomicBool::new(false));
    let has_come = fails.clone();
    let origin = Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            if head.starts_with("GET /page ") {
                let _ = peer.send_response(PAGE);
                continue;
            }
            has_come.store(true, SeqCst);
            for number in 0..3 {
                let hint = "h".repeat(55_000);
                let _ = peer.send(format!("HTTP/1.1 103 Early Hints\r\nX-Hint: {number}{hint}\r\n\r\n"));
                std::thread::sleep(Duration::from_millis(20));
            }
            return;
        }
    });
    let gateway = gateway(&origin);
    // Segments and buffers are small, so that the system is full of the page when the next request begins.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    socket.set_tcp_mss(536).expect("small segments");
    socket.connect(&address(&gateway).into()).expect("the gateway accepts");
    let mut client = Peer::new(socket.into());
    client.send("GET /page HTTP/1.1\r\nHost: t\r\n\r\nGET /fails HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    assert_eq!(status(&client.head().expect("the page")), 200);
    let mut left = PAGE.len();
    while !fails.load(SeqCst) {
        left -= client.exactly(10_000).len();
        std::thread::sleep(Duration::from_millis(2));
    }
    settled(&gateway);
    client.exactly(left);
    for _ in 0..3 {
        let head = client.head().expect("an interim response");
        assert_eq!((status(&head), field(&head, "x-hint").map(str::len)), (103, Some(55_001)));
    }
    assert_eq!(client.answer().0, 502);
}

#[test]
fn upgrades_pass_and_hold_no_slot() {
    let origin = Origin::start(|mut peer| {
        let head = peer.head().expect("a request");
        assert_eq!(field(&head, "upgrade"), Some("echo"));
        assert_eq!(field(&head, "connection"), Some("upgrade"));
        let answer = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nhi";
        peer.send(answer).expect("sent");
        let mut byte = [0];
        while std::io::Read::read(&mut peer.stream, &mut byte).is_ok_and(|count| count == 1) {
            peer.send(byte).expect("sent");
        }
        let _ = peer.stream.get_ref().shutdown(Shutdown::Write);
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").expect("sent");
    assert_eq!(status(&client.head().expect("an answer")), 101);
    assert_eq!(client.exactly(2), b"hi");
    client.send("ping").expect("sent");
    assert_eq!(client.exactly(4), b"ping");
    eventually("the slot is free", || gateway.status().plants[0].in_service == 0);
    assert_eq!(in_flight(&gateway), 1);
    client.stream.get_ref().shutdown(Shutdown::Write).expect("half-closed");
    assert_eq!(client.rest(), b"");
    settled(&gateway);
    assert_eq!(gateway.status().classes.iter().map(|class| class.counts.bytes).sum::<u64>(), 6);
}

const UPGRADE: &str = "GET / HTTP/1.1\r\nHost: t\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n";

/// A server that upgrades every connection that wants it, and answers others with a page.
fn upgrading() -> Origin {
    Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            if field(&head, "upgrade").is_some() {
                let _ = peer.send("HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n");
                return drop(peer.rest());
            }
            let _ = peer.send_response(b"page");
        }
    })
}

#[test]
fn upgraded_connections_have_a_bound_of_their_own() {
    let origin = upgrading();
    let mut promises = promises(1);
    promises.plants[0].tunnels.most = 2;
    let gateway = Gateway::start(settings(&[origin.address]), &promises).expect("a gateway");
    let open = || {
        let mut client = client(&gateway);
        let status = status(&client.ask_head(UPGRADE));
        (status, client)
    };
    let (two, third) = ([open(), open()], open());
    assert_eq!((two[0].0, two[1].0, third.0), (101, 101, 503));
    assert_eq!(client(&gateway).get("/"), (200, b"page".to_vec()), "they hold no place");
    assert_eq!((gateway.status().plants[0].tunnels, gateway.status().plants[0].in_service), (2, 0));
    drop(two);
    eventually("both are closed", || gateway.status().plants[0].tunnels == 0);
    assert_eq!(open().0, 101);
    drop(third);
    settled(&gateway);
    assert_eq!(gateway.status().plants[0].tunnels, 0);
}

#[test]
fn upgraded_connections_that_keep_their_places_are_streams() {
    let origin = upgrading();
    let mut promises = promises(2);
    promises.plants[0].tunnels.keep_places = true;
    let gateway = Gateway::start(settings(&[origin.address]), &promises).expect("a gateway");
    let mut first = client(&gateway);
    assert_eq!(status(&first.ask_head(UPGRADE)), 101);
    assert_eq!(status(&client(&gateway).ask_head(UPGRADE)), 503, "half of two places are taken");
    assert_eq!((gateway.status().plants[0].tunnels, gateway.status().plants[0].in_service), (1, 1));
    assert_eq!(client(&gateway).get("/"), (200, b"page".to_vec()));
    drop(first);
    settled(&gateway);
    assert_eq!(gateway.status().plants[0].in_service, 0);
}

#[test]
fn a_refused_method_is_told_which_are_taken() {
    let origin = Origin::serving(b"");
    let gateway = gateway(&origin);
    let head = client(&gateway).ask_head("TRACE / HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(
        (status(&head), field(&head, "allow")),
        (405, Some("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"))
    );
    settled(&gateway);
}

#[test]
fn bad_requests_are_answered_and_never_reach_the_upstream() {
    let origin = Origin::serving(b"");
    let gateway = gateway(&origin);
    let table: &[(u16, &str)] = &[
        (400, "GET / HTTP/1.1\r\n\r\n"),
        (400, "GET / HTTP/1.1\nHost: a\n\n"),
        (
            400,
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
        (501, "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"),
        (505, "GET / HTTP/3.0\r\nHost: a\r\n\r\n"),
        (413, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999\r\n\r\n"),
        (417, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nExpect: magic\r\n\r\n"),
    ];
    for (expected, text) in table {
        let mut client = client(&gateway);
        let head = client.ask_head(text);
        assert_eq!(status(&head), *expected, "{text:?}");
        assert_eq!(field(&head, "connection"), Some("close"));
        client.body(&head);
        assert_eq!(client.rest(), b"", "{text:?}: closed");
    }
    let mut client = client(&gateway);
    assert_eq!(client.ask(format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(40_000))).0, 431);
    let mut client = support::client(&gateway);
    assert_eq!(client.ask(format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "y".repeat(40_000))).0, 414);
    assert_eq!(origin.accepted.load(SeqCst), 0);
    settled(&gateway);
}

#[test]
fn a_chunked_body_that_grows_too_long_is_413() {
    let origin = Origin::serving(b"");
    let mut settings = settings(&[origin.address]);
    settings.limits.body_bytes = 10;
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n").expect("sent");
    for _ in 0..4 {
        client.send("3\r\nabc\r\n").expect("sent");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(client.answer().0, 413);
    assert_eq!(client.rest(), b"");
    settled(&gateway);
    eventually("the upstream's connection is closed", || origin.open.load(SeqCst) == 0);
}

#[test]
fn bad_responses_are_502() {
    for answer in [
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 101 Switching\r\n\r\n",
        "nonsense\r\n\r\n",
        "HTTP/1.1 200",
        "",
    ] {
        let origin = Origin::start(move |mut peer| {
            peer.head();
            let _ = peer.send(answer);
        });
        let gateway = gateway(&origin);
        assert_eq!(client(&gateway).get("/").0, 502, "{answer:?}");
        settled(&gateway);
        assert_eq!(outcomes(&gateway), [0, 1, 0]);
    }
}

#[test]
fn a_response_cut_short_closes_the_connection() {
    let origin = Origin::start(|mut peer| {
        peer.head();
        let _ = peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    assert_eq!(status(&client.head().expect("a head")), 200);
    assert_eq!(client.rest(), b"abc");
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [0, 1, 0]);
}

#[test]
fn an_upstream_that_is_down_is_502_at_once_and_another_address_is_tried() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("address");
    let mut refused = settings(&[closed]);
    // A time-out would be a 504, and later than the client waits.
    refused.timeouts.connect = 3 * PATIENCE;
    let gateway = Gateway::start(refused, &promises(8)).expect("a gateway");
    assert_eq!(client(&gateway).get("/").0, 502);
    settled(&gateway);
    let origin = Origin::serving(b"up");
    let gateway = Gateway::start(settings(&[closed, origin.address]), &promises(8)).expect("a gateway");
    for _ in 0..10 {
        assert_eq!(client(&gateway).get("/"), (200, b"up".to_vec()));
    }
}

#[test]
fn an_upstream_that_stalls_is_504() {
    let origin = Origin::once("");
    let mut settings = settings(&[origin.address]);
    settings.timeouts.first_byte = Duration::from_millis(200);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    assert_eq!(client.get("/").0, 504);
    // All of the request was taken, so that the connection can go on.
    assert_eq!(client.get("/").0, 504);
    settled(&gateway);
    eventually("the stalled connections are closed", || origin.open.load(SeqCst) == 0);
}

#[test]
fn slow_clients_lose_their_connection() {
    let origin = Origin::serving(b"");
    let mut settings = settings(&[origin.address]);
    settings.timeouts.head = Duration::from_millis(200);
    settings.timeouts.keep_alive = Duration::from_millis(300);
    settings.timeouts.body_idle = Duration::from_millis(200);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut half_head = client(&gateway);
    assert_eq!(half_head.ask("GET / HTTP/1.1\r\nHo").0, 408);
    let mut half_body = client(&gateway);
    assert_eq!(half_body.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab").0, 408);
    let mut idle = client(&gateway);
    assert_eq!(idle.get("/").0, 200);
    assert_eq!(idle.rest(), b"", "closed after its idle time");
    settled(&gateway);
}

#[test]
fn a_reused_connection_that_died_is_replaced() {
    let origin = Origin::start(|mut peer| {
        // The upstream serves one request per connection, and does not announce that.
        peer.head();
        let _ = peer.send_response(b"once");
        peer.head();
    });
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    for _ in 0..10 {
        assert_eq!(client.get("/"), (200, b"once".to_vec()));
    }
    // A body that was sent may have had its effect, so that it is not sent twice.
    assert_eq!(client.ask("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\n\r\nx").0, 502);
    settled(&gateway);
}

/// A server that reads a request and then closes, as one does that kills a worker which takes too long, is not given each
/// request twice: such repetitions are counted, and only so many.
#[test]
fn requests_that_their_server_has_read_are_repeated_within_the_budget() {
    let read = Arc::new(AtomicUsize::new(0));
    let count = read.clone();
    let origin = Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            if head.starts_with("GET /killed") {
                count.fetch_add(1, SeqCst);
                return;
            }
            let _ = peer.send_response(b"ok");
        }
    });
    let gateway = watched(&[origin.address]);
    let mut client = client(&gateway);
    for _ in 0..40 {
        assert_eq!(client.get("/").0, 200);
        assert_eq!(client.get("/killed").0, 502);
    }
    settled(&gateway);
    // Eighty requests, of which a fifth, and ten.
    let repeated = read.load(SeqCst) - 40;
    assert!((10..=26).contains(&repeated), "{repeated}");
    let upstream = upstream(&gateway);
    assert_eq!(upstream["retries"], repeated, "{upstream}");
    assert_eq!(upstream["retries_refused"], 40 - repeated, "{upstream}");
}

#[test]
fn a_client_that_leaves_while_waiting_is_abandoned_and_the_rest_is_served() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"late");
    let gateway = Gateway::start(settings(&[origin.address]), &promises(1)).expect("a gateway");
    let mut clients: Vec<Peer> = (0..5).map(|_| client(&gateway)).collect();
    let served = 0;
    let ask = |client: &mut Peer| client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    ask(&mut clients[served]);
    eventually("the first is served", || in_flight(&gateway) == 1);
    clients[served + 1..].iter_mut().for_each(ask);
    eventually("four wait", || gateway.status().plants[0].waiting == 4);
    // A half-close counts as leaving.
    clients[served + 1].stream.get_ref().shutdown(Shutdown::Write).expect("half-closed");
    drop(clients.remove(served + 2));
    eventually("two are gone", || in_flight(&gateway) == 3);
    go.store(true, SeqCst);
    drop(clients.remove(1));
    for client in &mut clients {
        assert_eq!(client.answer(), (200, b"late".to_vec()));
    }
    settled(&gateway);
    assert_eq!(origin.most.load(SeqCst), 1);
}

#[test]
fn connections_never_exceed_their_bound_and_no_client_starves() {
    let origin = Origin::serving(b"x");
    let settings = Settings { threads: 4, ..settings(&[origin.address]) };
    let gateway = Gateway::start(settings, &patient(3)).expect("a gateway");
    let counts = answers_per_client(address(&gateway));
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    assert!(origin.most.load(SeqCst) <= 3, "{} connections", origin.most.load(SeqCst));
    settled(&gateway);
}

/// So many connections, and nothing that turns a request away because the machine stood still for a second: neither the queue
/// nor a loop, which may find that the requests inside the contract take more than the upstream can do.
fn patient(max_connections: u32) -> Promises {
    let mut promises = promises(max_connections);
    promises.plants[0].queue.max_wait = Some(PATIENCE);
    // No period ends within the test.
    promises.control.period = 10 * PATIENCE;
    promises
}

/// Clients on keep-alive ask again as soon as they are answered, each on whichever of four threads has its connection, and the
/// upstream answers one request after the other: no request overtakes another, so that every client has the same share.
#[test]
fn clients_take_turns_whichever_thread_has_their_connection() {
    const CLIENTS: usize = 24;
    const ROUNDS: usize = 4;
    let (heads, seen) = mpsc::channel();
    let origin = Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            let (answer, may) = mpsc::channel::<()>();
            let path = head.split(' ').nth(1).expect("a path").to_owned();
            // The test drops what it does not answer.
            if heads.send((path, answer)).is_err() || may.recv().is_err() {
                return;
            }
            let _ = peer.send_response(b"x");
        }
    });
    let settings = Settings { threads: 4, ..settings(&[origin.address]) };
    let gateway = Gateway::start(settings, &patient(3)).expect("a gateway");
    let mut clients: Vec<Peer> = (0..CLIENTS).map(|_| client(&gateway)).collect();
    let served = || seen.recv_timeout(PATIENCE).expect("a request comes to the upstream");
    let ask = |clients: &mut [Peer], number: usize, under_way: usize| {
        let request = format!("GET /{number} HTTP/1.1\r\nHost: t\r\n\r\n");
        clients[number].send(request).expect("sent");
        eventually("it is under way", || {
            let plant = &gateway.status().plants[0];
            plant.in_service as usize + plant.waiting as usize == under_way
        });
    };
    let mut in_service = VecDeque::new();
    for number in 0..CLIENTS {
        ask(&mut clients, number, number + 1);
        if number < 3 {
            in_service.push_back(served());
        }
    }
    let mut order = Vec::new();
    for turn in 0..ROUNDS * CLIENTS {
        let (path, answer) = in_service.pop_front().expect("three are in service");
        let number = turn % CLIENTS;
        assert_eq!(path, format!("/{number}"), "after {order:?}");
        answer.send(()).expect("the upstream waits");
        assert_eq!(clients[number].answer(), (200, b"x".to_vec()));
        in_service.push_back(served());
        ask(&mut clients, number, CLIENTS);
        order.push(path);
    }
    assert!(origin.most.load(SeqCst) <= 3, "{} connections", origin.most.load(SeqCst));
    for (_, answer) in in_service {
        let _ = answer.send(());
    }
    // The others are answered too, one for each that ends.
    for _ in 3..CLIENTS {
        let _ = served().1.send(());
    }
    for client in &mut clients {
        assert_eq!(client.answer().0, 200);
    }
    settled(&gateway);
}

/// The address of a prefork server of three workers: a connection holds a worker while it is open.
fn prefork() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    for _ in 0..3 {
        let listener = listener.try_clone().expect("a descriptor");
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut peer = Peer::new(stream.expect("a connection"));
                while peer.head().is_some() && peer.send_response(b"x").is_ok() {}
            }
        });
    }
    address
}

/// Whether the gateway is told how many workers there are, or not.
#[test]
fn a_prefork_server_starves_no_client() {
    for (mode, max_connections) in [(Mode::Observe, 3), (Mode::Observe, 1024), (Mode::Control, 1024)] {
        let mut promises = promises(max_connections);
        promises.control.mode = mode;
        let mut settings = Settings { threads: 2, ..settings(&[prefork()]) };
        // A client that starves gives up before an idle connection is too old.
        settings.timeouts.upstream_keep_alive = 3 * PATIENCE;
        let gateway = Gateway::start(settings, &promises).expect("a gateway");
        let counts = answers_per_client(address(&gateway));
        assert!(counts.iter().all(|count| *count > 0), "{mode:?}, {max_connections}: {counts:?}");
        settled(&gateway);
    }
}

/// How many responses each of 24 clients on keep-alive gets in two seconds.
fn answers_per_client(address: SocketAddr) -> Vec<usize> {
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..24)
            .map(|_| {
                scope.spawn(move || {
                    let mut client = Peer::connect(address);
                    let end = Instant::now() + Duration::from_secs(2);
                    let mut count = 0;
                    while Instant::now() < end {
                        assert_eq!(client.get("/").0, 200);
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().expect("no panic")).collect()
    })
}

#[test]
fn connections_go_to_the_thread_with_the_fewest() {
    fn can_be_sent<T: Send>(_: &T) {}
    let origin = Origin::serving(b"");
    let settings = Settings { threads: 4, ..settings(&[origin.address]) };
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    can_be_sent(&gateway);
    // A thread that the machine keeps waiting for a moment gets none meanwhile: then all come again.
    eventually("each thread has as many", || {
        let mut clients: Vec<Peer> = Vec::new();
        for count in 1..=20 {
            clients.push(client(&gateway));
            // Each is accepted before the next one comes, since two threads that accept at once may choose the same thread.
            eventually("it is accepted", || gateway.client_connections() == count);
        }
        let by_thread = gateway.connections_by_thread();
        for client in &mut clients {
            assert_eq!(client.get("/").0, 200);
        }
        drop(clients);
        eventually("all are gone", || gateway.client_connections() == 0);
        by_thread == [5; 4]
    });
}

#[test]
fn killing_the_upstream_under_load_loses_no_accounting() {
    let alive = Arc::new(AtomicBool::new(true));
    let served = Arc::new(AtomicUsize::new(0));
    let (up, count) = (alive.clone(), served.clone());
    let origin = Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            peer.body(&head);
            let cut_short = count.fetch_add(1, SeqCst) % 7 == 0;
            if !up.load(SeqCst) {
                return;
            }
            let _ = peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n");
            let _ = peer.send(vec![b'x'; if cut_short { 1000 } else { 2000 }]);
            if cut_short {
                return;
            }
        }
    });
    let settings = Settings { threads: 2, ..settings(&[origin.address]) };
    let gateway = Gateway::start(settings, &promises(4)).expect("a gateway");
    let address = address(&gateway);
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(move || {
                for _ in 0..60 {
                    let mut client = Peer::connect(address);
                    let _ = client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc");
                    if let Some(head) = client.head() {
                        client.rest_of(&head);
                    }
                }
            });
        }
        scope.spawn(|| {
            eventually("some were served", || served.load(SeqCst) > 100);
            alive.store(false, SeqCst);
        });
    });
    settled(&gateway);
    let sum: u64 = outcomes(&gateway).iter().sum();
    assert_eq!(sum, 720);
}

#[test]
fn a_slow_reader_frees_the_upstream_and_gets_everything() {
    // The body fits into the read-ahead and the sockets' buffers, so that the upstream is done before the client reads.
    let body: &'static [u8] = vec![b'z'; 200_000].leak();
    let origin = Origin::serving(body);
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("the request arrived", || {
        gateway.status().classes.iter().any(|class| class.counts.arrivals == 1)
    });
    eventually("the plant is free", || gateway.status().plants[0].in_service == 0);
    assert_eq!(client.answer(), (200, body.to_vec()));
    settled(&gateway);
    assert_eq!(gateway.status().classes.iter().map(|class| class.counts.bytes).sum::<u64>(), 200_000);
}

#[test]
fn a_large_body_passes_a_reader_that_pauses() {
    let body: &'static [u8] = vec![b'z'; 30_000_000].leak();
    let origin = Origin::serving(body);
    let gateway = gateway(&origin);
    let mut client = client(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(client.answer(), (200, body.to_vec()));
    settled(&gateway);
}

#[test]
fn a_reader_that_never_reads_is_given_up() {
    let body: &'static [u8] = vec![b'z'; 30_000_000].leak();
    let origin = Origin::serving(body);
    let mut settings = settings(&[origin.address]);
    settings.timeouts.send = Duration::from_millis(300);
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("it is served", || gateway.status().classes.iter().any(|class| class.counts.arrivals == 1));
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [0, 0, 1]);
}

#[test]
fn draining_finishes_what_is_under_way() {
    let (arrived, seen) = mpsc::channel();
    let go = Arc::new(AtomicBool::new(false));
    let may = go.clone();
    let origin = Origin::answering(move |_, _| {
        arrived.send(()).expect("the test listens");
        eventually("the test lets it go", || may.load(SeqCst));
        b"done"
    });
    let gateway = gateway(&origin);
    let address = address(&gateway);
    let idle = client(&gateway);
    let mut busy = client(&gateway);
    busy.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    seen.recv_timeout(PATIENCE).expect("it arrives");
    let draining = std::thread::spawn(move || gateway.drain(PATIENCE));
    let mut idle = idle;
    assert_eq!(idle.rest(), b"", "idle connections are closed");
    eventually("nobody listens", || std::net::TcpStream::connect(address).is_err());
    go.store(true, SeqCst);
    let head = busy.head().expect("an answer");
    assert_eq!((status(&head), field(&head, "connection")), (200, Some("close")));
    assert_eq!((busy.body(&head), busy.rest()), (b"done".to_vec(), Vec::new()));
    assert!(draining.join().expect("no panic"));
}

/// A client that was told to keep its connection would send its next request on it, into a reset.
#[test]
fn what_was_under_way_or_waited_when_the_gateway_was_told_to_end_says_that_its_connection_closes() {
    let go = Arc::new(AtomicBool::new(false));
    let may = go.clone();
    let origin = Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            eventually("the test lets it go", || may.load(SeqCst));
            if head.starts_with("GET /broken ") {
                return;
            }
            let _ = peer.send_response(b"done");
        }
    });
    let gateway = Gateway::start(settings(&[origin.address]), &promises(2)).expect("a gateway");
    let mut idle = client(&gateway);
    let mut busy = [client(&gateway), client(&gateway), client(&gateway)];
    for (client, path) in busy.iter_mut().zip(["/", "/broken", "/"]) {
        let before = in_flight(&gateway);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n")).expect("sent");
        eventually("it is under way", || in_flight(&gateway) == before + 1);
    }
    assert_eq!(gateway.status().plants[0].waiting, 1);
    let handed_over = std::thread::spawn(move || gateway.hand_over(Duration::ZERO, PATIENCE));
    assert_eq!(idle.rest(), b"", "idle connections are closed");
    go.store(true, SeqCst);
    for (client, code) in busy.iter_mut().zip([200, 502, 200]) {
        let head = client.head().expect("an answer");
        assert_eq!((status(&head), field(&head, "connection")), (code, Some("close")));
        client.body(&head);
        assert_eq!(client.rest(), b"");
    }
    assert!(handed_over.join().expect("no panic"));
}

/// Sends `bytes` in pieces of up to `longest`, each a segment of its own as far as the kernel allows.
fn send(peer: &mut Peer, mut bytes: &[u8], longest: u64, random: &mut Random) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(bytes.len().min(1 + random.below(longest) as usize));
        peer.send(piece)?;
        if random.below(4) == 0 {
            std::thread::yield_now();
        }
        bytes = rest;
    }
    Ok(())
}

#[test]
fn any_division_into_reads_gives_the_same_answers() {
    let seeds = AtomicUsize::new(1);
    let origin = Origin::start(move |mut peer| {
        let mut random = Random::new(seeds.fetch_add(1, SeqCst) as u64);
        while let Some(head) = peer.head() {
            let body = peer.body(&head);
            let answer = match random.below(2) {
                0 => [format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).as_bytes(), &body]
                    .concat(),
                _ => {
                    let mut text = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\n\
                                     Transfer-Encoding: chunked\r\n\r\n"
                        .to_vec();
                    for piece in body.chunks(7) {
                        text.extend([format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat());
                    }
                    text.extend(b"0\r\n\r\n");
                    text
                }
            };
            if send(&mut peer, &answer, 40, &mut random).is_err() {
                return;
            }
        }
    });
    let gateway = gateway(&origin);
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut client = client(&gateway);
        let bodies: Vec<String> =
            (0..10).map(|n| format!("{n}-").repeat(1 + random.below(60) as usize)).collect();
        let mut text = Vec::new();
        for (n, body) in bodies.iter().enumerate() {
            let length = body.len();
            text.extend(match n % 2 {
                0 => format!("POST /{n} HTTP/1.1\r\nHost: t\r\nContent-Length: {length}\r\n\r\n{body}"),
                _ => format!(
                    "POST /{n} HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"
                ),
            }
            .into_bytes());
        }
        let mut sender = Peer::new(client.stream.get_ref().try_clone().expect("a second handle"));
        let sending = std::thread::spawn(move || send(&mut sender, &text, 90, &mut random));
        for body in &bodies {
            let mut head = client.head().expect("an answer");
            if status(&head) == 103 {
                head = client.head().expect("the final answer");
            }
            assert_eq!((status(&head), client.body(&head)), (200, body.clone().into_bytes()), "seed {seed}");
        }
        sending.join().expect("no panic").expect("sent");
    }
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [200, 0, 0]);
}

/// A stream of events may stay open for days.
#[test]
fn a_response_is_counted_when_it_begins_and_once() {
    let go = Arc::new(AtomicBool::new(false));
    let may_end = go.clone();
    let origin = Origin::start(move |mut peer| {
        peer.head();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let _ = peer.send(format!("{head}1\r\n:\r\n"));
        eventually("the test lets it end", || may_end.load(SeqCst));
        let _ = peer.send("0\r\n\r\n");
    });
    let gateway = watched(&[origin.address]);
    let mut client = client(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    assert_eq!(status(&client.head().expect("a head")), 200);
    let begun = || metric(&gateway, "plimsoll_responses_total{site=\"site\",class=\"default\",code=\"2xx\"}");
    assert_eq!((begun(), in_flight(&gateway)), (1.0, 1));
    go.store(true, SeqCst);
    settled(&gateway);
    assert_eq!(begun(), 1.0);
}
