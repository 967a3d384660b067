//! The gateway replaced while it serves: no request is lost at full load, and a process that cannot start changes nothing.

use nix::sys::signal::Signal;
use plimsoll_e2e::configuration::{before, site, two_levels};
use plimsoll_e2e::{
    Folder, PlayedUpstream, Plimsoll, Process, SLOW_PAGES, answer, binary, free_port, get, is_gone, signal,
    wait_until,
};
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, mem};

/// What a client saw.
#[derive(Debug, Default)]
struct Seen {
    asked: usize,
    answered: usize,
    /// Answers after which the server ended the connection, as it said.
    closed: usize,
    lost: Vec<String>,
}

/// Asks again and again, on a connection that it keeps as long as the server does, or on a new one each time.
struct Client {
    server: SocketAddr,
    keeps: bool,
    open: Option<TcpStream>,
    seen: Seen,
}

impl Client {
    fn start(server: SocketAddr, keeps: bool, stop: &Arc<AtomicBool>) -> JoinHandle<Seen> {
        let stop = Arc::clone(stop);
        let mut client = Client { server, keeps, open: None, seen: Seen::default() };
        thread::spawn(move || {
            while !stop.load(Relaxed) {
                client.ask();
            }
            client.seen
        })
    }

    fn ask(&mut self) {
        self.seen.asked += 1;
        let fresh = self.open.is_none();
        match self.exchange() {
            Ok(closes) => {
                self.seen.answered += 1;
                self.seen.closed += usize::from(closes && self.keeps);
                if closes {
                    self.open = None;
                }
            }
            Err(why) => {
                self.seen.lost.push(format!("{why}, on a {} connection", if fresh { "new" } else { "kept" }));
                self.open = None;
            }
        }
    }

    /// One request and its answer; whether the server ends the connection.
    fn exchange(&mut self) -> Result<bool, String> {
        let mut stream = match self.open.take() {
            Some(stream) => stream,
            None => TcpStream::connect(self.server).map_err(|error| format!("connecting: {error}"))?,
        };
        stream.set_read_timeout(Some(Duration::from_secs(30))).map_err(|error| error.to_string())?;
        let close = if self.keeps { "" } else { "Connection: close\r\n" };
        write!(stream, "GET /page HTTP/1.1\r\nHost: e2e.test\r\n{close}\r\n")
            .map_err(|error| format!("sending: {error}"))?;
        let (head, body) = read_answer(&mut stream).map_err(|error| format!("receiving: {error}"))?;
        let head = head.to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap_or_default();
        if !["200", "503"].contains(&status) {
            return Err(format!("status {status}: {}", String::from_utf8_lossy(&body)));
        }
        if status == "503" {
            // A client that is turned away does not ask as fast as it can.
            thread::sleep(Duration::from_millis(5));
        }
        let closes = head.contains("connection: close");
        self.open = Some(stream);
        Ok(closes)
    }
}

/// More clients than the server works for at once, so that requests wait in the gateway at every moment.
struct Load {
    clients: Vec<JoinHandle<Seen>>,
    stop: Arc<AtomicBool>,
}

impl Load {
    fn start(gateway: &Plimsoll) -> Load {
        let stop = Arc::default();
        let client = |number| Client::start(gateway.address, number % 4 != 3, &stop);
        Load { clients: (0..16).map(client).collect(), stop }
    }

    /// What all of them saw.
    fn end(self) -> Seen {
        self.stop.store(true, Relaxed);
        let mut all = Seen::default();
        for client in self.clients {
            let mut seen = client.join().expect("a client does not panic");
            all.asked += seen.asked;
            all.answered += seen.answered;
            all.closed += seen.closed;
            all.lost.append(&mut seen.lost);
        }
        all
    }
}

/// The head and the body of an answer that says its length.
fn read_answer(stream: &mut TcpStream) -> std::io::Result<(String, Vec<u8>)> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 16 << 10]);
    loop {
        let count = stream.read(&mut piece)?;
        if count == 0 {
            let error = format!("it ends after {} bytes", bytes.len());
            return Err(std::io::Error::other(error));
        }
        bytes.extend_from_slice(&piece[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok()
        });
        let length = length.ok_or_else(|| std::io::Error::other(format!("no length in {head}")))?;
        if bytes.len() >= end + 4 + length {
            return Ok((head, bytes.split_off(end + 4)));
        }
    }
}

#[test]
fn no_request_fails_while_the_gateway_is_replaced_three_times() {
    let origin = SLOW_PAGES.origin(&[]);
    let text = before(origin.address(), &two_levels()) + "\n[access_log]\nfile = \"access.log\"\n";
    let mut gateway = Plimsoll::run(&text);
    let load = Load::start(&gateway);
    let mut processes = BTreeSet::from([gateway.pid()]);
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(700));
        let old = gateway.pid();
        processes.insert(gateway.upgrade());
        gateway.wait_for_end_of(old);
    }
    thread::sleep(Duration::from_millis(500));
    let all = load.end();
    assert_eq!(processes.len(), 4, "each upgrade is a process of its own");
    assert!(all.lost.is_empty(), "{} of {} requests are lost: {:?}", all.lost.len(), all.asked, all.lost);
    assert!(all.answered > 100 && all.closed >= 12, "{all:?}");
    let log = gateway.file().parent().unwrap_or(Path::new("")).join("access.log");
    assert!(gateway.stop().success());
    let lines = fs::read_to_string(log).expect("it was written");
    assert_eq!(lines.lines().count(), all.asked, "each request has one line, whichever process served it");
}

/// What was learned for sites, upstreams and classes that are there no more is of no use to the next process, and no harm.
#[test]
fn no_request_fails_while_sites_upstreams_and_classes_change_with_the_process() {
    let origins = [SLOW_PAGES.origin(&[]), SLOW_PAGES.origin(&[])];
    let log = "\n[access_log]\nfile = \"access.log\"\n";
    let one = before(origins[0].address(), &two_levels()) + log;
    let class =
        "\n[[site.class]]\nname = \"gold\"\nmatch = { header = { x-plan = \"gold\" } }\npriority = 1\n";
    let more = |host: &str| format!("{host}upstream = \"renamed\"\n");
    // The clients' site has another name, another upstream and classes, and is not the first one.
    let others = one
        .split("\n[[site]]")
        .next()
        .expect("a beginning")
        .replace("[upstream.server]", "[upstream.renamed]");
    let second = format!(
        "\n[upstream.second]\naddress = \"{}\"\ncapacity = {{ workers = 2 }}\n",
        origins[1].address()
    );
    let blog = site("blog", "host = \"blog.test\"\nupstream = \"second\"\n");
    let several = others + &second + &blog + &site("shop", &more("host = \"e2e.test\"\n")) + class + log;
    // The same site before the other server.
    let moved = several.replace("upstream = \"renamed\"", "upstream = \"second\"");
    let mut gateway = Plimsoll::run(&one);
    let load = Load::start(&gateway);
    for (text, names) in [
        (&several, &["\"renamed\"", "\"blog\"", "\"shop\"", "\"gold\""][..]),
        (&moved, &["\"second\"", "\"shop\""]),
        (&one, &["\"server\"", "\"site\""]),
    ] {
        thread::sleep(Duration::from_millis(700));
        let old = gateway.pid();
        gateway.rewrite(text);
        gateway.upgrade();
        gateway.wait_for_end_of(old);
        let status = gateway.ask_admin("/status").text();
        assert!(names.iter().all(|name| status.contains(name)), "no {names:?} in\n{status}");
    }
    thread::sleep(Duration::from_millis(500));
    let all = load.end();
    assert!(all.lost.is_empty(), "{} of {} requests are lost: {:?}", all.lost.len(), all.asked, all.lost);
    assert!(all.answered > 100, "{all:?}");
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    let log = gateway.file().parent().unwrap_or(Path::new("")).join("access.log");
    assert!(gateway.stop().success());
    let lines = fs::read_to_string(log).expect("it was written");
    assert_eq!(lines.lines().count(), all.asked, "each request has one line, whichever process served it");
}

#[test]
fn a_process_that_cannot_start_changes_nothing() {
    let origin = SLOW_PAGES.origin(&[]);
    let text = before(origin.address(), &two_levels());
    let mut gateway = Plimsoll::run(&text);
    let first = gateway.pid();
    gateway.rewrite(&text.replace("[report]", "[reprot]"));
    gateway.process.signal(Signal::SIGUSR2);
    let log = gateway.process.wait_for("a refusal", |log| {
        log.contains("not upgraded, this process goes on: ").then(|| log.to_owned())
    });
    for part in ["reprot", "exit status: 2"] {
        assert!(log.contains(part), "no {part} in\n{log}");
    }
    assert_eq!(get(gateway.address, "/page").status, 200);
    assert_eq!(gateway.ask_admin("/healthz").status, 200);
    gateway.rewrite(&text);
    assert_ne!(gateway.upgrade(), first);
    gateway.wait_for_end_of(first);
    assert_eq!(get(gateway.address, "/page").status, 200);
    assert_eq!(gateway.ask_admin("/healthz").status, 200);
}

/// Whichever of the two the new process has come to by then, it is gone too, and nothing is said to have gone wrong.
#[test]
fn an_upgrade_and_at_once_the_end_is_the_end() {
    let origin = SLOW_PAGES.origin(&[]);
    for pause in [0, 0, 0, 2, 5, 10, 20, 40] {
        let mut gateway = Plimsoll::run(&before(origin.address(), &two_levels()));
        let process = &mut gateway.process;
        process.signal(Signal::SIGUSR2);
        thread::sleep(Duration::from_millis(pause));
        process.signal(Signal::SIGTERM);
        assert_eq!(process.wait().code(), Some(0), "{}", process.log());
        let log = process.log();
        if log.contains("handed over to process ") {
            // The new process was ready before this one was told to end, and goes on.
            let next = successor(&log, 1).expect("its number");
            signal(next, Signal::SIGTERM);
            continue;
        }
        assert!(!log.contains("ERROR") && !log.contains("already in use"), "after {pause} ms:\n{log}");
        if let Some(next) = log.split("upgrading: process ").nth(1).and_then(|rest| rest.split(' ').next()) {
            let next = next.parse().expect("a number");
            assert!(wait_until(PATIENCE, || is_gone(next).then_some(())).is_some(), "it goes on:\n{log}");
        }
    }
}

/// A supervisor that ends a service asks all of its processes, also the one that was replaced a moment ago.
#[test]
fn a_process_that_was_replaced_finishes_its_requests_when_it_is_asked_to_end() {
    let upstream = PlayedUpstream::new();
    let mut gateway = Plimsoll::run(&before(upstream.address(), &two_levels()));
    let (address, old) = (gateway.address, gateway.pid());
    let client = thread::spawn(move || {
        let mut stream = TcpStream::connect(address).expect("the gateway accepts");
        stream.write_all(b"GET /page HTTP/1.1\r\nHost: e2e.test\r\n\r\n").expect("it reads");
        read_answer(&mut stream)
    });
    let (request, _) = upstream.request();
    gateway.upgrade();
    signal(old, Signal::SIGTERM);
    thread::sleep(Duration::from_millis(300));
    answer(&request, "a page");
    let seen = client.join().expect("it does not panic");
    assert!(seen.is_ok_and(|(_, body)| body == b"a page"), "{}", gateway.process.log());
    gateway.wait_for_end_of(old);
}

const PATIENCE: Duration = Duration::from_secs(60);

/// How long the gateway leaves an idle connection open for one more request.
const GRACE: Duration = Duration::from_secs(5);

/// The process that is replaced learns of it a moment after its successor is ready, so that the client may be served by it as
/// before meanwhile. Only a client that the machine kept from asking for longer than the grace may find its connection ended.
#[test]
fn an_idle_connection_has_time_for_one_more_request() {
    let origin = SLOW_PAGES.origin(&[]);
    let mut gateway = Plimsoll::run(&before(origin.address(), &two_levels()));
    let mut client = Client { server: gateway.address, keeps: true, open: None, seen: Seen::default() };
    client.ask();
    assert!(client.open.is_some(), "{:?}", client.seen);
    let (first, mut last) = (gateway.pid(), Instant::now());
    gateway.upgrade();
    while client.open.is_some() {
        // It is idle when the process is replaced, most likely.
        thread::sleep(Duration::from_millis(300));
        client.ask();
        if last.elapsed() >= GRACE {
            break;
        }
        assert!(client.seen.lost.is_empty(), "{:?}", client.seen);
        last = Instant::now();
    }
    let seen = mem::take(&mut client.seen);
    assert!(
        seen.closed == 1 || last.elapsed() >= GRACE,
        "it is told when its last request is answered: {seen:?}"
    );
    gateway.wait_for_end_of(first);
    client.open = None;
    client.ask();
    assert_eq!((client.seen.answered, client.open.is_some()), (1, true));
}

/// As systemd starts it: the first socket is descriptor 3, and the variable names the process that it is for.
fn run_supervised(socket: OwnedFd, folder: &Folder, file: &Path) -> Process {
    let mut shell = Command::new("sh");
    let script = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$0\" run \"$1\"";
    shell.arg("-c").arg(script).arg(binary()).arg(file);
    Process::spawn_with("plimsoll", &mut shell, socket.into(), &folder.path().join("log"))
}

#[test]
fn a_socket_that_was_opened_for_it_is_taken() {
    let origin = SLOW_PAGES.origin(&[]);
    let socket = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = socket.local_addr().expect("it is bound");
    // A client that comes before the gateway waits in the socket's queue.
    let early = thread::spawn(move || get(address, "/page").status);
    let text = before(origin.address(), &two_levels());
    let folder = Folder::new();
    let file = folder.write("own.toml", text.replacen("127.0.0.1:0", &address.to_string(), 1));
    let descriptor = OwnedFd::from(socket.try_clone().expect("there are descriptors"));
    let mut process = run_supervised(descriptor, &folder, &file);
    process.wait_for("its address", |log| log.contains(&format!("listening on {address}\n")).then_some(()));
    assert_eq!(early.join().expect("it does not panic"), 200);
    assert_eq!(get(address, "/page").status, 200);
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
    drop(socket);
}

/// Its supervisor goes on listening there, so that clients must still find it, whichever process was the last to serve.
#[test]
fn a_unix_socket_of_a_supervisor_stays_at_its_path() {
    let origin = SLOW_PAGES.origin(&[]);
    for upgrades in [0, 2] {
        let folder = Folder::new();
        let path = folder.path().join("front.sock");
        let socket = UnixListener::bind(&path).expect("it can be bound");
        let own = format!("\"unix:{}\"", path.display());
        let text = before(origin.address(), &two_levels()).replacen("\"127.0.0.1:0\"", &own, 1);
        let file = folder.write("own.toml", text);
        let descriptor = OwnedFd::from(socket.try_clone().expect("there are descriptors"));
        let mut process = run_supervised(descriptor, &folder, &file);
        process.wait_for("its address", |log| log.contains("admin on ").then_some(()));
        let mut serving = process.pid();
        for nth in 1..=upgrades {
            signal(serving, Signal::SIGUSR2);
            let next = wait_until(PATIENCE, || successor(&process.log(), nth));
            serving = next.unwrap_or_else(|| panic!("no upgrade:\n{}", process.log()));
        }
        signal(serving, Signal::SIGTERM);
        let ended = wait_until(PATIENCE, || (process.ended().is_some() && is_gone(serving)).then_some(()));
        assert!(ended.is_some(), "{}", process.log());
        assert!(path.exists(), "after {upgrades} upgrades it is gone:\n{}", process.log());
    }
}

/// A listener that the file no longer has is closed with the old process, its path too, and it can come back later.
#[test]
fn listeners_come_and_go_with_upgrades() {
    let origin = SLOW_PAGES.origin(&[]);
    let folder = Folder::new();
    let (port, path) = (free_port(), folder.path().join("front.sock"));
    let both = format!("[\"127.0.0.2:0\", \"127.0.0.1:{port}\", \"unix:{}\"]", path.display());
    let text = |listen: &str| {
        let text = before(origin.address(), &two_levels());
        // Port 0 would take the other's socket.
        text.replacen("\"127.0.0.1:0\"", listen, 1).replace("127.0.0.1:0", "127.0.0.3:0")
    };
    let texts = [text(&both), text("\"127.0.0.2:0\"")];
    let file = folder.write("own.toml", &texts[0]);
    let mut run = Command::new(binary());
    let mut process = Process::spawn("plimsoll", run.arg("run").arg(&file), &folder.path().join("log"));
    process.wait_for("its address", |log| log.contains("admin on ").then_some(()));
    let mut serving = process.pid();
    for (nth, text) in [&texts[1], &texts[0]].into_iter().enumerate() {
        folder.write("own.toml", text);
        signal(serving, Signal::SIGUSR2);
        let next = wait_until(PATIENCE, || successor(&process.log(), nth + 1));
        let next = next.unwrap_or_else(|| panic!("no upgrade:\n{}", process.log()));
        assert!(wait_until(PATIENCE, || is_gone(serving).then_some(())).is_some(), "{}", process.log());
        serving = next;
        let is_there = nth == 1;
        assert_eq!(TcpStream::connect(("127.0.0.1", port)).is_ok(), is_there, "{}", process.log());
        assert_eq!(path.exists(), is_there, "{}", process.log());
    }
    signal(serving, Signal::SIGTERM);
    assert!(wait_until(PATIENCE, || is_gone(serving).then_some(())).is_some(), "{}", process.log());
}

/// The process that was the nth to take over.
fn successor(log: &str, nth: usize) -> Option<u32> {
    log.split("handed over to process ").nth(nth)?.split(':').next()?.parse().ok()
}
