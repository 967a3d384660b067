//! Servers that stay as they are decide by their socket calls, and pass what they do not understand.

use crate::module::wait_until;
use plimsoll_core::request::Outcome;
use plimsoll_e2e::certificates::curl;
use plimsoll_e2e::{Control, Folder, Preloaded, TLS_HOST, Unchanged, connect_from, exchange, get};
use plimsoll_ffi::{Fields, Server};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Every host, with a light tree, on a server of four workers.
const CONFIGURATION: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\nseed = 7\n\
     [upstream.server]\naddress = \"127.0.0.1:1\"\n[upstream.server.capacity]\nworkers = 4\n\
     [[site]]\nname = \"www\"\nupstream = \"server\"\nexempt = [{ path = \"/healthz\" }]\n\
     [[site.level]]\nname = \"light\"\nprefix = \"/light\"\n[[site.level]]\nname = \"full\"\n";

/// A client that asks again and again in one connection.
struct Client(BufReader<TcpStream>);

/// An answer: its status, its head and the beginning of its body.
type Answer = (u16, String, String);

impl Client {
    fn new(server: SocketAddr) -> Client {
        let stream = TcpStream::connect(server).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
        Client(BufReader::new(stream))
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).expect("it is sent");
    }

    fn answer(&mut self) -> Answer {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.0.read_line(&mut head).expect("a head") > 0, "an end within {head:?}");
        }
        let field = |name: &str| {
            let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
            line.and_then(|line| line.split_once(": ")).map(|(_, value)| value.trim().to_owned())
        };
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        let length = field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).expect("a body");
        body.truncate(5);
        (status, head.to_ascii_lowercase(), String::from_utf8_lossy(&body).into_owned())
    }

    fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: e2e.test\r\n\r\n").as_bytes());
        self.answer()
    }
}

#[derive(Debug, Default)]
struct Got {
    sent: AtomicU64,
    full: AtomicU64,
    light: AtomicU64,
    rejected: AtomicU64,
    /// Answers in a connection in which one was rejected before.
    went_on: AtomicU64,
}

/// Asks in one connection until it is over, and in the next where one ends with a rejection.
fn ask(server: SocketAddr, got: &Got, is_over: &AtomicBool) {
    let (mut client, mut was_rejected) = (Client::new(server), false);
    while !is_over.load(Relaxed) {
        let (status, head, body) = client.get("/page.html");
        got.sent.fetch_add(1, Relaxed);
        let kind = match (status, body.as_str()) {
            (200, "fullf") => &got.full,
            (200, "light") => &got.light,
            (503, _) => {
                assert!(head.contains("\r\nx-plimsoll: level=0; reason=overload\r\n"), "{head}");
                assert!(head.contains("\r\nretry-after: "), "{head}");
                &got.rejected
            }
            other => panic!("{other:?}: {head}"),
        };
        kind.fetch_add(1, Relaxed);
        got.went_on.fetch_add(u64::from(was_rejected), Relaxed);
        was_rejected |= status == 503;
        if status == 503 && head.contains("\r\nconnection: close\r\n") {
            assert_eq!(client.0.read(&mut [0; 1]).expect("its end"), 0, "nothing follows");
            (client, was_rejected) = (Client::new(server), false);
        }
    }
}

/// How many requests have arrived, once all have ended.
fn arrived(state: &Path) -> u64 {
    let own = Server::attach(state).expect("the state");
    wait_until("all have ended", || {
        let counts = own.counts();
        counts.in_service == 0 && counts.arrived == counts.ended
    });
    own.counts().arrived
}

fn degrades_rejects_and_counts_once(kind: Unchanged) {
    let control = Control::start(CONFIGURATION);
    let server = Preloaded::start(kind, &control);
    assert_eq!(Client::new(server.address).get("/page.html").2, "fullf", "nothing is overloaded yet");
    let (got, is_over) = (Got::default(), AtomicBool::new(false));
    let start = Instant::now();
    // A server whose reads wait would be held by a client that was rejected and stays.
    let goes_on = !matches!(kind, Unchanged::Python | Unchanged::PythonChecked);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..8).map(|_| scope.spawn(|| ask(server.address, &got, &is_over))).collect();
        let has_all = || {
            let went_on = got.went_on.load(Relaxed) > 0 || !goes_on;
            went_on && [&got.light, &got.rejected].iter().all(|count| count.load(Relaxed) > 0)
        };
        // A client that has failed ends this too.
        while !has_all()
            && !clients.iter().any(|client| client.is_finished())
            && start.elapsed().as_secs() < 60
        {
            thread::sleep(Duration::from_millis(20));
        }
        is_over.store(true, Relaxed);
    });
    assert!(got.light.load(Relaxed) > 0 && got.rejected.load(Relaxed) > 0, "{got:?}");
    assert_eq!(got.went_on.load(Relaxed) > 0, goes_on, "{got:?}");
    assert_eq!(get(server.address, "/healthz").text(), "well\n", "what is exempt is served whatever comes");
    let [sent, full, light, rejected] =
        [&got.sent, &got.full, &got.light, &got.rejected].map(|count| count.load(Relaxed));
    assert_eq!(full + light + rejected, sent);
    assert_eq!(arrived(&control.state()), sent + 2, "each is counted once: {got:?}");
}

/// Asked for a folder of the light tree, a server names it with a slash at its end, and as the client asked for it.
fn leads_back_to_where_the_client_asked(kind: Unchanged) {
    let control = Control::start(&CONFIGURATION.replace("[[site.level]]\nname = \"full\"\n", ""));
    let server = Preloaded::start(kind, &control);
    let mut client = Client::new(server.address);
    for _ in 0..2 {
        let (status, head, _) = client.get("/docs");
        let place = head.lines().find_map(|line| line.strip_prefix("location: "));
        let place = place.unwrap_or_else(|| panic!("no place in {head}")).trim();
        assert!(status == 301 && place.ends_with("/docs/") && !place.contains("light"), "{kind:?}: {head}");
        assert_eq!(client.get("/page.html").2, "light");
    }
    assert_eq!(arrived(&control.state()), 4);
}

#[test]
fn redirects_lead_back_to_where_the_client_asked() {
    [Unchanged::Apache, Unchanged::Nginx, Unchanged::Python]
        .into_iter()
        .for_each(leads_back_to_where_the_client_asked);
}

#[test]
fn apache_prefork() {
    degrades_rejects_and_counts_once(Unchanged::Apache);
}

#[test]
fn nginx_with_workers() {
    degrades_rejects_and_counts_once(Unchanged::Nginx);
}

#[test]
fn python() {
    degrades_rejects_and_counts_once(Unchanged::Python);
}

#[test]
fn python_by_the_c_librarys_checked_functions() {
    degrades_rejects_and_counts_once(Unchanged::PythonChecked);
}

#[test]
fn node() {
    degrades_rejects_and_counts_once(Unchanged::Node);
}

#[test]
fn a_stream_of_events_gives_its_place_back_with_its_head() {
    let control = Control::start(CONFIGURATION);
    let server = Preloaded::start(Unchanged::Python, &control);
    let mut client = Client::new(server.address);
    let (status, head, _) = client.get("/events");
    assert!(status == 200 && head.contains("text/event-stream"), "{head}");
    client.0.read_exact(&mut [0; 9]).expect("the first event");
    let counts = Server::attach(&control.state()).expect("the state").counts();
    assert_eq!((counts.arrived, counts.ended, counts.in_service), (1, 0, 0));
    drop(client);
    assert_eq!(arrived(&control.state()), 1);
}

#[test]
fn what_is_no_http_passes_as_it_came() {
    let control = Control::start(CONFIGURATION);
    let server = Preloaded::start(Unchanged::Echo, &control);
    let long = "x".repeat(100_000);
    let http2 = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for bytes in ["\u{16}\u{3}\u{1}\0\u{1}", http2, "SSH-2.0-test\r\n", "GET", &long] {
        let mut stream = TcpStream::connect(server.address).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time limit");
        let mut back = vec![0; 5];
        stream.read_exact(&mut back).expect("the server's first words");
        assert_eq!(back, b"hello");
        let mut sending = stream.try_clone().expect("a copy");
        thread::scope(|scope| {
            scope.spawn(move || {
                sending.write_all(bytes.as_bytes()).expect("it is sent");
                sending.shutdown(std::net::Shutdown::Write).expect("its end is sent");
            });
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).expect("what comes back");
            assert!(rest == bytes.as_bytes(), "{} bytes of {bytes:.20?}", rest.len());
        });
    }
    assert_eq!(arrived(&control.state()), 0);
}

/// Over TLS and HTTP/2 nothing is understood, and nothing is in the way: several requests in a connection, and several
/// connections at once.
#[test]
fn tls_passes_as_it_came() {
    let control = Control::start(CONFIGURATION);
    for (kind, versions) in
        [(Unchanged::NginxTls, &["--http1.1", "--http2"][..]), (Unchanged::PythonTls, &["--http1.1"])]
    {
        let server = Preloaded::start(kind, &control);
        let authority = server.folder.path().join("own.pem").display().to_string();
        thread::scope(|scope| {
            for version in versions.iter().cycle().take(4) {
                let (server, authority) = (&server, &authority);
                scope.spawn(move || {
                    let page = "https://e2e.test/page.html";
                    let arguments = ["--cacert", authority, version, page, page];
                    let (code, text) = curl(server.address, TLS_HOST, "/healthz", &arguments);
                    let wanted = "full".repeat(50_000) + "well\n";
                    assert!(code == 0 && text == wanted, "{kind:?} {version}: {code}, {} bytes", text.len());
                });
            }
        });
        assert_eq!(arrived(&control.state()), 0, "{kind:?}");
    }
}

#[test]
fn heads_in_pieces_bodies_and_pipelines_reach_each_server_whole() {
    let control = Control::start(CONFIGURATION);
    let mut count = 0;
    for kind in [Unchanged::Apache, Unchanged::Nginx, Unchanged::Python, Unchanged::Node] {
        let server = Preloaded::start(kind, &control);
        let mut client = Client::new(server.address);
        // The head of one request comes in three pieces, and is more than nginx reads at once.
        let padding = "a".repeat(3000);
        for piece in ["GET /hea", "lthz HTTP/1.1\r\nHost: e2e.test\r\nCookie: ", &padding, "\r\n\r\n"] {
            client.send(piece.as_bytes());
            thread::sleep(Duration::from_millis(30));
        }
        assert_eq!(client.answer().2, "well\n", "{kind:?}");
        // The connection goes on.
        assert_eq!(client.get("/healthz").2, "well\n", "{kind:?}");
        // The second of two that come at once is not looked at, nor is what follows it.
        let one = "GET /healthz HTTP/1.1\r\nHost: e2e.test\r\n\r\n";
        client.send(one.repeat(2).as_bytes());
        assert_eq!([client.answer().2, client.answer().2], ["well\n"; 2], "{kind:?}");
        assert_eq!(client.get("/healthz").2, "well\n", "{kind:?}");
        // A client that closes its side when it has asked is answered.
        let closed = exchange(server.address, "GET /healthz HTTP/1.0\r\nHost: e2e.test\r\n\r\n");
        assert_eq!((closed.status, closed.text().as_str()), (200, "well\n"), "{kind:?}");
        // A body that comes after its head; only node knows what to do with it.
        let post =
            "POST /healthz HTTP/1.1\r\nHost: e2e.test\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
        let posted = exchange(server.address, post);
        assert!([200, 405, 501].contains(&posted.status), "{kind:?}: {posted:?}");
        count += 5;
        assert_eq!(arrived(&control.state()), count, "{kind:?}");
    }
}

/// The status of the answer to an upload, if it arrives at a client that gives up where it cannot send.
fn upload(client: u8, server: SocketAddr) -> Option<u16> {
    const LENGTH: usize = 3_000_000;
    let mut stream = connect_from(Ipv4Addr::new(127, 0, 2, client), server).ok()?;
    let head = format!("POST /page.html HTTP/1.1\r\nHost: e2e.test\r\nContent-Length: {LENGTH}\r\n\r\n");
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&vec![b'a'; LENGTH])).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    line.split(' ').nth(1)?.parse().ok()
}

/// Another process of the server, which holds requests of its own.
struct Beside<'s> {
    own: &'s Server,
    held: Vec<u64>,
    asked: u8,
}

impl Beside<'_> {
    /// Asks for another client, and holds the request if it is served.
    fn is_rejected(&mut self) -> bool {
        self.asked += 1;
        let client = Ipv4Addr::new(127, 0, 3, self.asked).into();
        let (method, host, path, query) = ("GET", "e2e.test", b"/page.html".as_slice(), "");
        let fields = Fields { method, host, path, query, client, header: &|_| None };
        let served = self.own.adapt(&fields, 100).expect("a decision");
        self.held.extend((served.level > 0).then_some(served.request));
        served.level == 0
    }
}

impl Drop for Beside<'_> {
    fn drop(&mut self) {
        self.held.drain(..).for_each(|request| self.own.done(request, Outcome::Abandoned).expect("it ends"));
    }
}

/// A process beside the server holds twice what its workers take, so that fewer and fewer uploads are served.
#[test]
fn the_rejection_of_an_upload_reaches_its_client() {
    for kind in [Unchanged::Python, Unchanged::Nginx] {
        let control = Control::start(CONFIGURATION);
        let server = Preloaded::start(kind, &control);
        let (got, is_over) = (Got::default(), AtomicBool::new(false));
        let own = Server::attach(&control.state()).expect("the state");
        let mut beside = Beside { own: &own, held: Vec::new(), asked: 0 };
        // Requests of other threads go as they came while a process attaches itself.
        assert_eq!(get(server.address, "/healthz").status, 200);
        let uploads: Vec<_> = thread::scope(|scope| {
            (0..8).for_each(|_| drop(scope.spawn(|| ask(server.address, &got, &is_over))));
            wait_until("what another asks is rejected", || {
                thread::sleep(Duration::from_millis(100));
                beside.is_rejected() && beside.held.len() >= 8
            });
            let (mut uploads, start) = (Vec::new(), Instant::now());
            let rejected = |uploads: &[_]| uploads.iter().filter(|status| **status == Some(503)).count();
            while rejected(&uploads) < 3 && start.elapsed().as_secs() < 60 {
                uploads.push(upload(uploads.len() as u8, server.address));
            }
            is_over.store(true, Relaxed);
            uploads
        });
        let asked = u64::from(beside.asked);
        drop(beside);
        let is_told = uploads.iter().all(Option::is_some);
        assert!(is_told && uploads.contains(&Some(503)), "{kind:?}: {uploads:?}");
        assert_eq!(
            arrived(&control.state()),
            got.sent.into_inner() + asked + uploads.len() as u64 + 1,
            "{kind:?}"
        );
    }
}

/// A server of one process and one connection at a time reads the head of its first request in a call that waits.
#[test]
fn a_client_that_was_rejected_and_stays_holds_no_process() {
    let closed = "[[site]]\nname = \"closed\"\nhost = \"closed.test\"\nupstream = \"server\"\nshare_excess = false\n\
                  guarantee = { rate = \"0.01/s\", burst = \"1s\" }\n[[site]]\n";
    let control = Control::start(&CONFIGURATION.replacen("[[site]]\n", closed, 1));
    let server = Preloaded::start(Unchanged::PythonAlone, &control);
    let ask = || {
        let mut client = Client::new(server.address);
        client.send(b"GET /page.html HTTP/1.1\r\nHost: closed.test\r\n\r\n");
        let (status, head, _) = client.answer();
        assert!(status == 200 || head.contains("\r\nconnection: close\r\n"), "{head}");
        (status == 503).then_some(client)
    };
    // What the contract allows at its beginning is served.
    let (mut asked, mut staying) = (0, Vec::new());
    wait_until("three are rejected", || {
        asked += 1;
        staying.extend(ask());
        staying.len() == 3
    });
    assert_eq!(get(server.address, "/healthz").text(), "well\n", "another is served while they stay");
    drop(staying);
    assert_eq!(arrived(&control.state()), asked + 1);
}

/// A call that waits for the rest of a head is told of the signal, as without the library, and not that nothing has come.
#[test]
fn a_signal_while_the_rest_of_a_head_is_waited_for_ends_no_request() {
    let control = Control::start(CONFIGURATION);
    let server = Preloaded::start(Unchanged::PythonAlone, &control);
    let mut client = Client::new(server.address);
    client.send(b"GET /page.html HTTP/1.1\r\nHost: ");
    for round in 1..=3 {
        // It waits in the call by then, or is asked again.
        thread::sleep(Duration::from_millis(200));
        server.process.signal(nix::sys::signal::Signal::SIGUSR1);
        wait_until("the signal is handled", || server.process.log().matches("signal").count() >= round);
    }
    client.send(b"e2e.test\r\n\r\n");
    assert_eq!(client.answer().0, 200);
    assert_eq!(arrived(&control.state()), 1);
}

#[test]
fn without_a_state_requests_go_as_they_came_and_with_one_they_are_counted() {
    let folder = Folder::new();
    let server = Preloaded::start_at(Unchanged::Python, &folder.path().join("none"));
    assert_eq!(get(server.address, "/page.html").status, 200);
    wait_until("it says so", || {
        server.process.log().contains("plimsoll: requests go as they came: the shared state cannot be opened")
    });
    let mut control = Control::start(CONFIGURATION);
    let other = Preloaded::start(Unchanged::Python, &control);
    assert_eq!(get(other.address, "/page.html").status, 200);
    assert_eq!(arrived(&control.state()), 1);
    // Levels stand still when the controller has died, and requests are served.
    control.process.signal(nix::sys::signal::Signal::SIGKILL);
    control.process.wait();
    wait_until("it is said that no controller is awake", || {
        assert_eq!(get(other.address, "/healthz").status, 200);
        other.process.log().contains("plimsoll: no controller is awake")
    });
}
