//! mod_plimsoll in Apache's threads (worker, event), over HTTP/1.1 with kept connections and over HTTP/2: what clients are told
//! is what was decided, and each request is accounted for once.

use crate::module::{FULL, LIGHT, apache_of, configuration, impatient, slow};
use nix::sys::signal::Signal;
use plimsoll_e2e::{Accounts, Apache, Control, get, program};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Clients at addresses of their own; four workers are overloaded by six times as many.
const CLIENTS: u8 = 24;
const PAGE: &str = "/page.html";
/// Requests of a client in one connection, at least.
const IN_A_ROW: usize = 4;
/// Requests in all, at least.
const ENOUGH: u64 = 300;
/// Each response names its level, and clients have the addresses that they say.
const NAMED: &str = "Header set X-Plimsoll \"level=%{PLIMSOLL_LEVEL}e; reason=%{PLIMSOLL_REASON}e\"\n\
    RemoteIPHeader X-Forwarded-For\nRemoteIPInternalProxy 127.0.0.1\n";

/// How clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    /// HTTP/1.1, by curl.
    Http1,
    /// HTTP/2 from the beginning, by nghttp.
    Http2,
}

/// What clients were told.
#[derive(Debug, Default)]
struct Answers {
    full: AtomicU64,
    light: AtomicU64,
    rejected: AtomicU64,
    /// Clients that left when they had the head of a page.
    left: AtomicU64,
}

impl Answers {
    /// Full, light, rejected, left.
    fn all(&self) -> [u64; 4] {
        [&self.full, &self.light, &self.rejected, &self.left].map(|count| count.load(Relaxed))
    }

    /// Asks for the page several times as one client, in one connection that is kept. Panics if an answer is neither a page of
    /// the tree that its level says nor a rejection with a time.
    fn ask(&self, server: SocketAddr, client: u8, protocol: Protocol) {
        let answers = match protocol {
            Protocol::Http1 => by_curl(server, client, &[]),
            Protocol::Http2 => streams(&said(nghttp(server, PAGE, client, &["-m", "4"]))),
        };
        assert_eq!(answers.len(), IN_A_ROW, "{answers:?}");
        answers.iter().for_each(|answer| self.note(answer));
    }

    /// Asks once, and leaves with the head of a page.
    fn leave(&self, server: SocketAddr, client: u8, protocol: Protocol) {
        if protocol == Protocol::Http1 {
            // The page is longer than the client says that it takes.
            return by_curl(server, client, &["--max-filesize", "1000"])
                .iter()
                .for_each(|one| self.note(one));
        }
        let mut nghttp = nghttp(server, PAGE, client, &[]);
        let mut running = nghttp.stdout(Stdio::piped()).spawn().expect("nghttp runs");
        let mut answer = Answer::default();
        let lines = BufReader::new(running.stdout.take().expect("its output")).lines();
        for line in lines.map_while(Result::ok) {
            answer.read(&line);
            // A rejection is read to its end.
            if answer.code == 200 && answer.bytes > 0 {
                answer.is_left = true;
                drop(running.kill());
            }
        }
        running.wait().expect("its end");
        self.note(&answer);
    }

    fn note(&self, answer: &Answer) {
        let Answer { code, bytes, level, retry_after, is_left } = answer;
        let kind = match (code, level.split(';').next(), bytes, is_left) {
            (503, Some("level=0"), _, false) => {
                assert_eq!(level, "level=0; reason=overload", "{answer:?}");
                assert!(retry_after.parse::<u32>().is_ok(), "{answer:?}");
                &self.rejected
            }
            (200, Some("level=2"), &FULL, false) => &self.full,
            (200, Some("level=1"), &LIGHT, false) => &self.light,
            (200, Some("level=1" | "level=2"), _, true) => &self.left,
            _ => panic!("{answer:?}"),
        };
        kind.fetch_add(1, Relaxed);
    }
}

/// An answer, as a client's program tells it.
#[derive(Debug, Default)]
struct Answer {
    code: u16,
    bytes: usize,
    level: String,
    retry_after: String,
    /// The client has left before its end.
    is_left: bool,
}

impl Answer {
    /// Reads a line of nghttp.
    fn read(&mut self, line: &str) {
        let value = |name| Some(line.split_once(name)?.1.trim().to_owned());
        if let Some(code) = value(") :status: ") {
            self.code = code.parse().unwrap_or_default();
        } else if let Some(level) = value(") x-plimsoll: ") {
            self.level = level;
        } else if let Some(after) = value(") retry-after: ") {
            self.retry_after = after;
        } else if let Some(frame) = value("recv DATA frame <length=") {
            self.bytes += frame.split(',').next().and_then(|bytes| bytes.parse::<usize>().ok()).unwrap_or(0);
        }
    }
}

/// By curl with these options.
fn by_curl(server: SocketAddr, client: u8, options: &[&str]) -> Vec<Answer> {
    const WRITTEN: &str = "%{http_code}|%{size_download}|%header{x-plimsoll}|%header{retry-after}|%{exitcode}|%{http_version}\n";
    let mut curl = Command::new(program("curl"));
    curl.args(["--silent", "--http1.1", "--max-time", "60", "--output", "/dev/null", "--write-out", WRITTEN]);
    curl.args(["--header", &format!("X-Forwarded-For: 10.0.0.{client}")]).args(options);
    curl.arg(format!("http://{server}{PAGE}?[1-{IN_A_ROW}]"));
    let output = curl.output().expect("curl runs");
    let read = |line: &str| {
        let words: Vec<&str> = line.split('|').collect();
        let [code, bytes, level, retry_after, end @ ("0" | "63"), "1.1"] = words[..] else {
            panic!("{line}")
        };
        Answer {
            code: code.parse().expect("a status code"),
            bytes: bytes.parse().expect("a number"),
            level: level.to_owned(),
            retry_after: retry_after.to_owned(),
            is_left: end == "63",
        }
    };
    String::from_utf8_lossy(&output.stdout).lines().map(read).collect()
}

/// nghttp, which tells each frame.
fn nghttp(server: SocketAddr, path: &str, client: u8, options: &[&str]) -> Command {
    let mut nghttp = Command::new(program("nghttp"));
    nghttp.args([
        "--null-out",
        "--verbose",
        "--timeout=60",
        "--header",
        &format!("x-forwarded-for: 10.0.0.{client}"),
    ]);
    nghttp.args(options).arg(format!("http://{server}{path}"));
    nghttp
}

fn said(mut command: Command) -> String {
    String::from_utf8_lossy(&command.output().expect("nghttp runs").stdout).into_owned()
}

/// The answers of each stream.
fn streams(told: &str) -> Vec<Answer> {
    let mut streams: BTreeMap<&str, Answer> = BTreeMap::new();
    for line in told.lines().filter(|line| line.contains("] recv (") || line.contains("] recv DATA")) {
        let number = line.split_once("stream_id=").map_or("", |(_, rest)| rest.trim_end_matches('>'));
        streams.entry(number.split(')').next().unwrap_or_default()).or_default().read(line);
    }
    streams.into_values().collect()
}

/// All clients ask again and again until some have got light pages and others were rejected; then each leaves in the middle of
/// its pages, and comes again until one was served what it has left.
fn ask_until_degraded(server: SocketAddr, protocol: Protocol) -> Answers {
    let (start, answers) = (Instant::now(), Answers::default());
    thread::scope(|scope| {
        for client in 1..=CLIENTS {
            let answers = &answers;
            scope.spawn(move || {
                loop {
                    let [full, light, rejected, _] = answers.all();
                    if light > 0 && rejected > 0 && full + light + rejected >= ENOUGH {
                        break;
                    }
                    assert!(start.elapsed() < Duration::from_secs(60), "{answers:?}");
                    answers.ask(server, client, protocol);
                }
                // While there is overload, all of a client's requests may be rejected.
                loop {
                    answers.leave(server, client, protocol);
                    if answers.all()[3] > 0 {
                        break;
                    }
                    assert!(start.elapsed() < Duration::from_secs(60), "{answers:?}");
                }
            });
        }
    });
    answers
}

/// What the server has counted is what the clients were told.
fn assert_accounted(apache: &Apache, answers: &Answers) {
    let [full, light, rejected, left] = answers.all();
    println!("{full} full, {light} light, {rejected} rejected, {left} left");
    let told = Accounts::at_rest(apache.direct);
    let sent = full + light + rejected + left;
    assert_eq!((told.arrived - told.asked, told.rejected), (sent, rejected), "{told:?}");
    assert_eq!(told.deaths, 0, "{told:?}");
}

fn threads_decide(mpm: &str) {
    let control = Control::start(&impatient());
    let apache = apache_of(&control, 4, &[mpm, "headers", "remoteip"], &(slow() + NAMED));
    let answers = ask_until_degraded(apache.upstream, Protocol::Http1);
    assert_accounted(&apache, &answers);
}

#[test]
fn threads_of_worker_decide_and_every_request_is_accounted_once() {
    threads_decide("mpm_worker");
}

#[test]
fn threads_of_event_decide_and_every_request_is_accounted_once() {
    threads_decide("mpm_event");
}

/// Connections have a thread each, and their requests two threads in each process.
fn with_http2(control: &Control, pages: &str) -> Apache {
    let more = "Protocols h2c http/1.1\nH2MinWorkers 2\nH2MaxWorkers 2\n";
    let modules = ["mpm_event", "http2", "headers", "remoteip"];
    apache_of(control, 2 * u32::from(CLIENTS), &modules, &format!("{pages}{NAMED}{more}"))
}

#[test]
fn streams_of_http2_are_decided_and_accounted_once() {
    let control = Control::start(&impatient());
    let apache = with_http2(&control, &slow());
    let answers = ask_until_degraded(apache.upstream, Protocol::Http2);
    assert_accounted(&apache, &answers);
}

/// A request that asks for HTTP/2 by `Upgrade` is answered as the first stream of its connection. (The page is small: Apache
/// 2.4.71 closes such a connection as soon as it would have to wait, with the module and without.)
#[test]
fn a_request_that_becomes_http2_is_accounted_once() {
    let control = Control::start(&configuration());
    let apache = with_http2(&control, "");
    let told = said(nghttp(apache.upstream, "/healthz", 1, &["--upgrade"]));
    let answers = streams(&told);
    assert!(told.contains("HTTP Upgrade success") && answers.len() == 1, "{told}");
    assert_eq!(
        (answers[0].code, answers[0].bytes, answers[0].level.as_str()),
        (200, 5, "level=2; reason=exempt")
    );
    let told = Accounts::at_rest(apache.direct);
    assert_eq!((told.arrived - told.asked, told.rejected), (1, 0), "{told:?}");
}

/// A response that its client does not take belongs to no thread of event. It has ended when its process ends, at once or when
/// Apache is started anew, whatever became of it.
#[test]
fn a_process_that_ends_takes_what_is_still_being_written_with_it() {
    let control = Control::start(&configuration());
    // A file that is not read into memory is written without a thread.
    let as_files = "EnableMMAP Off\nEnableSendfile On\n";
    let mut asked = 0;
    for (signals, signal) in (1..).zip([Signal::SIGTERM, Signal::SIGHUP]) {
        let mut apache = apache_of(&control, 4, &["mpm_event"], as_files);
        apache.folder.write("light/page.html", "light".repeat(4 << 20));
        apache.folder.write("page.html", "full".repeat(5 << 20));
        let mut stuck = TcpStream::connect(apache.direct).expect("a connection");
        stuck.write_all(b"GET /page.html HTTP/1.1\r\nHost: www.test\r\n\r\n").expect("sent");
        stuck.read_exact(&mut [0; 12]).expect("the beginning of its answer");
        let told = get(apache.direct, "/server-status?auto").text();
        assert!(told.contains("PlimsollInService: 2\n"), "{told}");
        apache.process.signal(signal);
        if signal == Signal::SIGTERM {
            apache.process.wait();
        } else {
            apache.process.wait_for("another start", |log| {
                (log.matches("resuming normal operations").count() == 2).then_some(())
            });
        }
        assert!(!apache.process.log().contains("Segmentation"), "{}", apache.process.log());
        drop(apache);
        let after = apache_of(&control, 4, &["mpm_event"], "");
        // The page at its beginning, what told then, and what tells now.
        let told = Accounts::at_rest(after.direct);
        asked += told.asked;
        assert_eq!((told.arrived, told.rejected), (2 * signals + asked, 0), "{signal}: {told:?}");
    }
}
