//! The gateway replaced while connections of HTTP/2 are full of streams: each request is answered once, or its stream is
//! refused in the words by which a client may send it again.

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream};
use http::Request;
use plimsoll_e2e::certificates::{certificate, tls_address};
use plimsoll_e2e::configuration::{before, two_levels};
use plimsoll_e2e::{Folder, Plimsoll, SLOW_PAGES, program, wait_until};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{fs, mem};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Together they ask for more than the server works on, so that streams wait in the gateway at every moment.
const CONNECTIONS: usize = 3;
const STREAMS: usize = 8;
const PATIENCE: Duration = Duration::from_secs(60);

/// What each connection is answered, at least, between one replacement and the next.
const ANSWERS: usize = 2 * STREAMS;

/// What the clients saw, all of them together.
#[derive(Debug, Default)]
struct Seen {
    /// How often a request was answered, by its number.
    answered: BTreeMap<usize, usize>,
    /// Answers of the connections that are there one after the other, for each place.
    by_place: [usize; CONNECTIONS],
    /// Streams that were refused, and connections that took no more of them.
    refused: usize,
    goodbyes: usize,
    lost: Vec<String>,
}

/// Clients by the crate `h2`, without TLS.
#[derive(Debug, Default)]
struct Clients {
    next: AtomicUsize,
    stops: AtomicBool,
    seen: Mutex<Seen>,
}

/// What became of a stream.
enum Fate {
    Answered(u16),
    /// Its request may be sent again, on another connection: it was not looked at.
    Refused,
    /// The connection took no more streams, so that nothing was sent.
    Unsent,
    Lost(String),
}

impl Clients {
    fn start(self: &Arc<Self>, server: SocketAddr) -> Vec<JoinHandle<()>> {
        let run = |place| {
            let clients = Arc::clone(self);
            thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.expect("a runtime").block_on(clients.connect(server, place));
            })
        };
        (0..CONNECTIONS).map(run).collect()
    }

    fn note<T>(&self, note: impl FnOnce(&mut Seen) -> T) -> T {
        note(&mut self.seen.lock().expect("no client panics"))
    }

    /// Waits until each connection has been answered again.
    fn wait_for_answers(&self) {
        let by_place = || self.note(|seen| seen.by_place);
        let before = by_place();
        let more = wait_until(PATIENCE, || {
            by_place().iter().zip(before).all(|(now, before)| *now >= before + ANSWERS).then_some(())
        });
        assert!(more.is_some(), "{before:?} answers, and then {:?}", by_place());
    }

    /// One connection after the other; what was refused on one is sent again on the next.
    async fn connect(self: Arc<Self>, server: SocketAddr, place: usize) {
        let mut again = Vec::new();
        while !self.stops.load(Relaxed) || !again.is_empty() {
            let io = TcpStream::connect(server).await.expect("the gateway accepts");
            let (send, connection) = Builder::new().handshake(io).await.expect("a handshake");
            let moved = tokio::spawn(connection);
            let mut streams = JoinSet::new();
            for _ in 0..STREAMS {
                streams.spawn(Arc::clone(&self).ask_on(send.clone(), again.pop(), place));
            }
            drop(send);
            while let Some(left) = streams.join_next().await {
                again.extend(left.expect("no client panics"));
            }
            let end = moved.await.expect("no client panics");
            self.note(|seen| match end {
                Ok(()) => seen.goodbyes += 1,
                Err(error) => seen.lost.push(format!("a connection: {error}")),
            });
        }
    }

    /// One request after the other, until the connection takes none; returns the number of the one that is to be sent again.
    async fn ask_on(
        self: Arc<Self>,
        send: SendRequest<Bytes>,
        mut again: Option<usize>,
        place: usize,
    ) -> Option<usize> {
        while again.is_some() || !self.stops.load(Relaxed) {
            let number = again.take().unwrap_or_else(|| self.next.fetch_add(1, Relaxed));
            let asked = tokio::time::timeout(PATIENCE, ask(send.clone(), number)).await;
            match asked.unwrap_or_else(|_| Fate::Lost("no answer in time".to_owned())) {
                Fate::Answered(status) => {
                    self.note(|seen| {
                        *seen.answered.entry(number).or_default() += 1;
                        seen.by_place[place] += 1;
                    });
                    if status == 503 {
                        // A client that is turned away does not ask as fast as it can.
                        tokio::time::sleep(Duration::from_millis(5)).await;
                    }
                }
                Fate::Refused => {
                    self.note(|seen| seen.refused += 1);
                    return Some(number);
                }
                Fate::Unsent => return Some(number),
                Fate::Lost(why) => self.note(|seen| seen.lost.push(format!("{number}: {why}"))),
            }
        }
        None
    }
}

/// Sends a request and reads its answer. Each third has a body, whose second half comes later.
async fn ask(send: SendRequest<Bytes>, number: usize) -> Fate {
    let Ok(mut send) = send.ready().await else { return Fate::Unsent };
    let has_body = number.is_multiple_of(3);
    let method = if has_body { "POST" } else { "GET" };
    let request = Request::builder().method(method).uri(format!("http://e2e.test/page?id={number}"));
    let Ok((response, mut body)) = send.send_request(request.body(()).expect("it is good"), !has_body) else {
        return Fate::Unsent;
    };
    if has_body {
        // What became of it, the response tells.
        drop(body.send_data(Bytes::from_static(b"one half, "), false));
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(body.send_data(Bytes::from_static(b"and the other"), true));
    }
    let whole = async {
        let (head, stream) = response.await?.into_parts();
        let expected = head.headers.get("content-length").and_then(|text| text.to_str().ok()?.parse().ok());
        Ok((head.status.as_u16(), expected, length(stream).await?))
    };
    match whole.await {
        Ok((status @ (200 | 503), expected, length)) if expected == Some(length) => Fate::Answered(status),
        Ok((status, expected, length)) => Fate::Lost(format!("{status}, {length} bytes of {expected:?}")),
        Err(error) if is_refusal(&error) => Fate::Refused,
        Err(error) => Fate::Lost(error.to_string()),
    }
}

async fn length(mut stream: RecvStream) -> Result<usize, h2::Error> {
    let mut length = 0;
    while let Some(bytes) = stream.data().await {
        let bytes = bytes?;
        stream.flow_control().release_capacity(bytes.len())?;
        length += bytes.len();
    }
    Ok(length)
}

/// Whether the server says that it has not looked at the request (RFC 9113 8.7).
fn is_refusal(error: &h2::Error) -> bool {
    let is_goodbye = error.is_go_away() && error.reason() == Some(Reason::NO_ERROR);
    error.is_remote() && (is_goodbye || error.reason() == Some(Reason::REFUSED_STREAM))
}

/// Asks over TLS by curl, many requests at once and again and again, until it is told to stop; the numbers are `C` and more.
/// Returns what curl said of each, and what went wrong.
fn curl_over_tls(server: SocketAddr, folder: &Path, clients: &Clients) -> (Vec<String>, Vec<String>) {
    let (mut said, mut wrong, mut round) = (Vec::new(), Vec::new(), 0);
    while !clients.stops.load(Relaxed) {
        let mut list = String::new();
        for number in 0..100 {
            let _ = writeln!(
                list,
                "url = \"https://shop.test/page?id=C{round}-{number}\"\noutput = \"/dev/null\""
            );
        }
        let file = folder.join("urls");
        fs::write(&file, list).expect("it can be written");
        let ran = Command::new(program("curl"))
            .args(["--silent", "--show-error", "--max-time", "60", "--noproxy", "*", "--http2"])
            .args(["--parallel", "--parallel-max", "12", "--write-out", "%{http_version} %{http_code}\\n"])
            .args(["--connect-to", &format!("shop.test:443:{}:{}", server.ip(), server.port())])
            .arg("--cacert")
            .arg(folder.join("site.pem"))
            .arg("--config")
            .arg(&file)
            .output()
            .unwrap_or_else(|error| panic!("cannot run curl: {error}"));
        said.extend(String::from_utf8_lossy(&ran.stdout).lines().map(str::to_owned));
        if !ran.status.success() {
            wrong.push(format!("{}: {}", ran.status, String::from_utf8_lossy(&ran.stderr)));
        }
        round += 1;
    }
    (said, wrong)
}

#[test]
fn no_stream_is_lost_while_the_gateway_is_replaced_three_times() {
    let origin = SLOW_PAGES.origin(&[]);
    let folder = Folder::new();
    let (chain, key) = certificate(&folder, "site", "shop.test");
    let (chain, key, log) = (chain.display(), key.display(), folder.path().join("access.log"));
    let text = before(origin.address(), &two_levels()).replacen("[gateway]\n", "[gateway]\nh2c = true\n", 1);
    let mut gateway = Plimsoll::run(&format!(
        "{text}\n[access_log]\nfile = \"{}\"\n\n\
         [tls]\nlisten = \"127.0.0.1:0\"\ncertificate = \"{chain}\"\nkey = \"{key}\"\n",
        log.display()
    ));
    let tls = tls_address(&mut gateway);
    let clients = Arc::<Clients>::default();
    let threads = clients.start(gateway.address);
    let (own, place) = (Arc::clone(&clients), folder.path().to_owned());
    let over_tls = thread::spawn(move || curl_over_tls(tls, &place, &own));
    let lines = || fs::read_to_string(&log).unwrap_or_default();
    wait_until(PATIENCE, || lines().contains("/page?id=C").then_some(())).expect("a stream over TLS");
    for _ in 0..3 {
        clients.wait_for_answers();
        let old = gateway.pid();
        gateway.upgrade();
        gateway.wait_for_end_of(old);
    }
    clients.wait_for_answers();
    clients.stops.store(true, Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("a client does not panic"));
    let (said, wrong) = over_tls.join().expect("it does not panic");
    let seen = mem::take(&mut *clients.seen.lock().expect("no client panics"));
    assert!(gateway.stop().success());
    eprintln!(
        "{} answered, {} refused, {} goodbyes, {} curl",
        seen.answered.len(),
        seen.refused,
        seen.goodbyes,
        said.len()
    );
    assert!(seen.lost.is_empty(), "{} are lost: {:?}", seen.lost.len(), seen.lost);
    assert!(seen.answered.len() == clients.next.load(Relaxed), "a request was forgotten");
    assert!(seen.answered.values().all(|&times| times == 1), "{:?}", seen.answered);
    // Each replacement ended every connection, since each was in use.
    assert!(seen.goodbyes >= 3 * CONNECTIONS, "{seen:?}");
    assert!(wrong.is_empty(), "{wrong:?}");
    assert!(said.iter().all(|line| ["2 200", "2 503"].contains(&&line[..])), "{said:?}");
    let lines = lines();
    for number in seen.answered.keys() {
        let own = format!("/page?id={number}\"");
        assert_eq!(lines.matches(&own).count(), 1, "lines of {number}, whichever process served it");
    }
    assert_eq!(lines.lines().count(), seen.answered.len() + said.len(), "nothing else has a line");
}
