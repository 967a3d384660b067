//! A gateway in this process, a raw upstream, and clients, all on loopback and all bounded in time.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "shared by several test programs")]

pub mod grpc;
pub mod http2;

use plimsoll_core::promises::{Control, Guarantee, Mode, Plant, Promises, QueueBounds, Site};
use plimsoll_core::request::Pattern;
use plimsoll_gateway::settings::{Backend, UpstreamSettings};
use plimsoll_gateway::{Gateway, Settings};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// No step of a test takes this long, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// An upstream. A closure handles each of its connections on a thread of its own.
pub struct Origin {
    pub address: SocketAddr,
    /// Connections open now, and the most that were ever open at once.
    pub open: Arc<AtomicUsize>,
    pub most: Arc<AtomicUsize>,
    pub accepted: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Origin {
    pub fn start(handle: impl Fn(Peer) + Send + Sync + 'static) -> Origin {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        let (open, most, accepted) =
            (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let stop = Arc::new(AtomicBool::new(false));
        let handle = Arc::new(handle);
        let origin = Origin { address, open, most, accepted, stop };
        let (open, most, accepted, stop) =
            (origin.open.clone(), origin.most.clone(), origin.accepted.clone(), origin.stop.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stop.load(SeqCst) {
                    return;
                }
                // A test may leave no descriptor for it.
                let Ok(stream) = stream else {
                    std::thread::sleep(Duration::from_millis(5));
                    continue;
                };
                accepted.fetch_add(1, SeqCst);
                let now = open.fetch_add(1, SeqCst) + 1;
                most.fetch_max(now, SeqCst);
                let (handle, open) = (handle.clone(), open.clone());
                std::thread::spawn(move || {
                    let counted = Counted(open);
                    handle(Peer::new(stream));
                    drop(counted);
                });
            }
        });
        origin
    }

    /// Answers every request, by its head and its body, until the connection ends.
    pub fn answering<B: AsRef<[u8]>>(answer: impl Fn(&str, Vec<u8>) -> B + Send + Sync + 'static) -> Origin {
        Origin::start(move |mut peer| {
            while let Some(head) = peer.head() {
                let body = peer.body(&head);
                if peer.send_response(answer(&head, body).as_ref()).is_err() {
                    return;
                }
            }
        })
    }

    /// The same with whole responses; no body is read.
    pub fn sending<B: AsRef<[u8]>>(response: impl Fn(&str) -> B + Send + Sync + 'static) -> Origin {
        Origin::start(move |mut peer| {
            while let Some(head) = peer.head() {
                if peer.send(response(&head)).is_err() {
                    return;
                }
            }
        })
    }

    /// Answers the first request with these bytes, and sends nothing more.
    pub fn once(response: &'static str) -> Origin {
        Origin::start(move |mut peer| {
            peer.head();
            let _ = peer.send(response);
            peer.rest();
        })
    }

    /// Answers every request with `body`.
    pub fn serving(body: &'static [u8]) -> Origin {
        Origin::answering(move |_, _| body)
    }

    /// Answers every request with `body` once `go` is set.
    pub fn patient(go: &Arc<AtomicBool>, body: &'static [u8]) -> Origin {
        let go = go.clone();
        Origin::answering(move |_, _| {
            eventually("the test lets it go", || go.load(SeqCst));
            body
        })
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

struct Counted(Arc<AtomicUsize>);
impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// One end of a connection, with what a test needs to speak HTTP by hand.
pub struct Peer {
    pub stream: BufReader<TcpStream>,
}

impl Peer {
    pub fn new(stream: TcpStream) -> Peer {
        stream.set_read_timeout(Some(PATIENCE)).expect("a read timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a write timeout");
        stream.set_nodelay(true).expect("no delay");
        Peer { stream: BufReader::new(stream) }
    }

    pub fn connect(address: SocketAddr) -> Peer {
        Peer::new(TcpStream::connect(address).expect("the gateway accepts"))
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> std::io::Result<()> {
        self.stream.get_mut().write_all(bytes.as_ref())
    }

    /// The next head, without its empty line; `None` at the end of the stream.
    pub fn head(&mut self) -> Option<String> {
        let mut head = String::new();
        loop {
            let mut line = String::new();
            match self.stream.read_line(&mut line) {
                Ok(0) | Err(_) => return None,
                Ok(_) if line == "\r\n" => return Some(head),
                Ok(_) => head.push_str(&line),
            }
        }
    }

    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).expect("a line");
        line
    }

    pub fn exactly(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.stream.read_exact(&mut bytes).expect("enough bytes");
        bytes
    }

    /// All bytes up to the end of the stream, or to its reset.
    pub fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = self.stream.read_to_end(&mut bytes);
        bytes
    }

    /// The body that `head` announces.
    pub fn body(&mut self, head: &str) -> Vec<u8> {
        if let Some(length) = field(head, "content-length") {
            return self.exactly(length.parse().expect("a length"));
        }
        let mut body = Vec::new();
        if field(head, "transfer-encoding").is_some() {
            loop {
                let mut line = String::new();
                self.stream.read_line(&mut line).expect("a chunk's line");
                let size = usize::from_str_radix(line.trim(), 16).expect("a chunk's size");
                body.extend(self.exactly(size));
                self.exactly(2);
                if size == 0 {
                    return body;
                }
            }
        }
        body
    }

    /// The part of the body announced by `head` that comes.
    pub fn rest_of(&mut self, head: &str) {
        let length = field(head, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let _ = std::io::copy(&mut (&mut self.stream).take(length), &mut std::io::sink());
    }

    pub fn send_response(&mut self, body: &[u8]) -> std::io::Result<()> {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        self.send([head.as_bytes(), body].concat())
    }

    /// Sends a GET and reads the response.
    pub fn get(&mut self, path: &str) -> (u16, Vec<u8>) {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n")).expect("sent");
        self.answer()
    }

    /// Sends a request and reads the response.
    pub fn ask(&mut self, request: impl AsRef<[u8]>) -> (u16, Vec<u8>) {
        self.send(request).expect("sent");
        self.answer()
    }

    /// Sends a request and reads the response's head.
    pub fn ask_head(&mut self, request: impl AsRef<[u8]>) -> String {
        self.send(request).expect("sent");
        self.head().expect("an answer")
    }

    pub fn answer(&mut self) -> (u16, Vec<u8>) {
        let head = self.head().expect("an answer");
        let body = self.body(&head);
        (status(&head), body)
    }
}

pub fn status(head: &str) -> u16 {
    head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status")
}

pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

pub fn plant(max_connections: u32) -> Plant {
    Plant { set_point: 1.0, ..Plant::new("origin", max_connections) }
}

pub fn promises(max_connections: u32) -> Promises {
    // All requests are inside a contract, so that no loop degrades or rejects one: these tests are about bytes and bounds.
    let (rate, burst) = (1e6, Duration::from_secs(2));
    let guarantee = Some(Guarantee { rate, bandwidth_bytes_per_second: None, burst });
    Promises {
        plants: vec![plant(max_connections)],
        sites: vec![Site { guarantee, ..Site::new("site", &["light", "full"]) }],
        control: Control { mode: Mode::Control, ..Control::default() },
    }
}

pub fn servers(addresses: &[SocketAddr]) -> Backend {
    Backend::Upstream(UpstreamSettings::new(addresses.iter().map(|address| (*address).into()).collect()))
}

pub fn settings(addresses: &[SocketAddr]) -> Settings {
    Settings {
        listen: vec![SocketAddr::from(([127, 0, 0, 1], 0)).into()],
        admin: None,
        threads: 1,
        backends: vec![servers(addresses)],
        ..Settings::default()
    }
}

/// The same, where bodies pass while they come.
pub fn streaming(addresses: &[SocketAddr]) -> Settings {
    Settings { stream_paths: vec![Pattern::new("*")], ..settings(addresses) }
}

/// An origin that answers ten requests a second on each connection.
pub fn ten_a_second() -> Origin {
    Origin::start(|mut peer| {
        while let Some(head) = peer.head() {
            peer.rest_of(&head);
            std::thread::sleep(Duration::from_millis(100));
            let _ = peer.send_response(b"page");
        }
    })
}

pub fn gateway(origin: &Origin) -> Gateway {
    Gateway::start(settings(&[origin.address]), &promises(8)).expect("a gateway")
}

/// One place, no request may wait, and none is inside a contract: a second request is rejected.
pub fn tight() -> Promises {
    let mut promises = promises(1);
    promises.sites[0].guarantee = None;
    promises.plants[0].queue = QueueBounds { max_waiting: 0, max_wait: Some(Duration::from_secs(10)) };
    promises
}

pub fn address(gateway: &Gateway) -> SocketAddr {
    gateway.local_addrs()[0]
}

pub fn client(gateway: &Gateway) -> Peer {
    Peer::connect(address(gateway))
}

/// Waits until `condition` holds.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn in_flight(gateway: &Gateway) -> u64 {
    gateway.status().classes.iter().map(|class| class.counts.in_flight()).sum()
}

pub fn outcomes(gateway: &Gateway) -> [u64; 3] {
    let mut sum = [0; 3];
    for class in gateway.status().classes {
        for (total, count) in sum.iter_mut().zip(class.counts.outcomes) {
            *total += count;
        }
    }
    sum
}

/// Waits until no request is under way: every request was accounted for, and no place is held.
pub fn settled(gateway: &Gateway) {
    eventually("in-flight returns to zero", || in_flight(gateway) == 0);
    eventually("in-service returns to zero", || {
        gateway.status().plants.iter().all(|plant| plant.in_service == 0 && plant.waiting == 0)
    });
}

/// A gateway in front of these servers, with a page of its status.
pub fn watched(addresses: &[SocketAddr]) -> Gateway {
    let admin = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    Gateway::start(Settings { admin, threads: 2, ..settings(addresses) }, &promises(8)).expect("a gateway")
}

/// The status of the upstream, as `/status` has it.
pub fn upstream(gateway: &Gateway) -> serde_json::Value {
    let mut peer = Peer::connect(gateway.admin_addr().expect("an admin listener"));
    let (status, body) = peer.ask("GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(status, 200);
    let mut all: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    all["upstreams"][0].take()
}

/// The value of a metric with its labels, as the operator is told.
pub fn metric(gateway: &Gateway, name: &str) -> f64 {
    let mut operator = Peer::connect(gateway.admin_addr().expect("the operator's listener"));
    let (_, page) = operator.ask("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let page = String::from_utf8(page).expect("text");
    let line = page.lines().find_map(|line| line.strip_prefix(name)).expect("the metric");
    line.trim().parse().expect("a number")
}
