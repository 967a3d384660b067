//! Clients that send or read a few kilobytes a second hold no place at the server: everybody else is served as if they were not
//! there. Clients that ask again and again for a slow path that is exempt hold half of the places.

use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{Plimsoll, exchange, get, serving};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The size of the pages that slow clients read.
const LARGE: usize = 20_000_000;
/// How often a slow client moves its next bytes; it moves 1,200 or 20,000 bytes a second.
const STEP: Duration = Duration::from_millis(100);
/// The workers of the server.
const WORKERS: usize = 2;

/// A server of some workers, each of which serves one connection to its end: bodies are read, `/large` is answered with a large
/// page and every other path with `page`.
fn server(workers: usize) -> SocketAddr {
    let large = vec![b'x'; LARGE];
    serving(workers, move |stream| serve(stream, &large))
}

fn serve(stream: TcpStream, large: &[u8]) -> std::io::Result<()> {
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone()?), stream);
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line == "\r\n" {
                break;
            }
        }
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
        if path == "/healthz" {
            thread::sleep(Duration::from_millis(100));
        }
        let body = if path == "/large" { large } else { b"page" };
        write!(writer, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len())?;
        writer.write_all(body)?;
    }
}

/// Clients that do the same until they are dropped.
struct Attack {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Attack {
    /// Each of `clients` connects, sends `head`, and then calls `step` every tenth of a second until that fails; then it begins
    /// again. Returns once all have sent their head.
    fn start(
        gateway: SocketAddr,
        clients: usize,
        head: &'static str,
        step: fn(&mut TcpStream) -> std::io::Result<()>,
    ) -> Attack {
        let (stop, begun) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let client = |_| {
            let (stop, begun) = (stop.clone(), begun.clone());
            thread::spawn(move || {
                while !stop.load(SeqCst) {
                    let Ok(mut stream) = TcpStream::connect(gateway) else { continue };
                    drop(stream.set_read_timeout(Some(STEP)));
                    drop(stream.set_write_timeout(Some(STEP)));
                    let mut sent = stream.write_all(head.as_bytes());
                    begun.fetch_add(1, SeqCst);
                    while sent.is_ok() && !stop.load(SeqCst) {
                        thread::sleep(STEP);
                        sent = step(&mut stream);
                    }
                }
            })
        };
        let attack = Attack { stop: stop.clone(), clients: (0..clients).map(client).collect() };
        while begun.load(SeqCst) < clients {
            thread::sleep(Duration::from_millis(10));
        }
        // Time to take every place at the server. With less the test sees less and does not fail.
        thread::sleep(Duration::from_secs(1));
        attack
    }
}

impl Drop for Attack {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        self.clients.drain(..).for_each(|client| drop(client.join()));
    }
}

fn send_slowly(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(&[b'x'; 120])
}

/// Reads what came, up to these bytes, and says how many there were; an end begins the next try.
fn read<const MOST: usize>(stream: &mut TcpStream) -> std::io::Result<usize> {
    match stream.read(&mut [0; MOST]) {
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(0),
        Ok(0) => Err(std::io::ErrorKind::UnexpectedEof.into()),
        result => result,
    }
}

fn send_nothing(stream: &mut TcpStream) -> std::io::Result<()> {
    read::<64>(stream).map(drop)
}

fn read_slowly(stream: &mut TcpStream) -> std::io::Result<()> {
    read::<2000>(stream).map(drop)
}

fn file(origin: SocketAddr, more: &str) -> String {
    let file = before(origin, &plain()) + more;
    let two = format!("{WORKERS}");
    file.replace("max_connections = 8", &format!("max_connections = {two}"))
        .replace("workers = 8", &format!("workers = {two}"))
}

/// Reads what came, and asks again.
fn ask_again(stream: &mut TcpStream) -> std::io::Result<()> {
    if read::<4096>(stream)? > 0 { stream.write_all(HEALTH.as_bytes()) } else { Ok(()) }
}

/// Everybody else gets pages, and once the slow clients are gone nothing is left of them.
fn all_others_are_served(
    more: &str,
    clients: usize,
    head: &'static str,
    step: fn(&mut TcpStream) -> std::io::Result<()>,
) {
    let origin = server(WORKERS);
    let gateway = Plimsoll::run(&file(origin, more));
    others_are_served(gateway, clients, head, step);
}

fn others_are_served(
    gateway: Plimsoll,
    clients: usize,
    head: &'static str,
    step: fn(&mut TcpStream) -> std::io::Result<()>,
) {
    let attack = Attack::start(gateway.address, clients, head, step);
    if head == DOWNLOAD {
        // While the server still works on what the slow clients will read, others may be turned away for its load.
        gateway.wait_for_metric("plimsoll_in_service", 0.0);
        let mut tries = (0..100).map(|_| {
            thread::sleep(STEP);
            get(gateway.address, "/page").status
        });
        assert!(tries.any(|status| status == 200), "with {clients} slow readers nobody else is served");
    }
    let answers: Vec<(u16, String)> = (0..20)
        .map(|_| get(gateway.address, "/page"))
        .map(|response| (response.status, response.text()))
        .collect();
    let pages = answers.iter().filter(|(status, text)| (*status, text.as_str()) == (200, "page")).count();
    assert_eq!(pages, answers.len(), "with {clients} slow clients: {answers:?}");
    drop(attack);
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    gateway.wait_for_metric("plimsoll_in_service", 0.0);
}

const HEALTH: &str = "GET /healthz HTTP/1.1\r\nHost: e2e.test\r\n\r\n";
const UPLOAD: &str = "POST /upload HTTP/1.1\r\nHost: e2e.test\r\nContent-Length: 100000000\r\n\r\n";
const ONE_BYTE: &str = "POST /form HTTP/1.1\r\nHost: e2e.test\r\nContent-Length: 1\r\n\r\n";
const DOWNLOAD: &str = "GET /large HTTP/1.1\r\nHost: e2e.test\r\n\r\n";

/// A site whose health checks are exempt for anybody.
const EXEMPT: &str = "\n[[site]]\nname = \"site\"\nexempt = [{ path = \"/healthz\" }]\n";

#[test]
fn forty_clients_that_ask_for_an_exempt_path() {
    all_others_are_served(EXEMPT, 40, HEALTH, ask_again);
}

#[test]
fn forty_clients_that_ask_for_an_exempt_path_where_workers_are_found() {
    // More than the gateway begins with, so that the places are what runs out.
    let origin = server(64);
    let told = format!("max_connections = {WORKERS}\ncapacity = {{ workers = {WORKERS} }}\n");
    let file = file(origin, EXEMPT);
    assert!(file.contains(&told), "{file}");
    others_are_served(Plimsoll::run(&file.replace(&told, "")), 40, HEALTH, ask_again);
}

#[test]
fn two_clients_that_send_a_large_body_slowly() {
    all_others_are_served("", 2, UPLOAD, send_slowly);
}

#[test]
fn sixteen_clients_that_send_a_large_body_slowly() {
    all_others_are_served("", 16, UPLOAD, send_slowly);
}

#[test]
fn sixteen_clients_that_do_not_send_their_one_byte() {
    all_others_are_served("", 16, ONE_BYTE, send_nothing);
}

#[test]
fn two_clients_that_read_slowly() {
    all_others_are_served("", 2, DOWNLOAD, read_slowly);
}

#[test]
fn sixteen_clients_that_read_slowly() {
    all_others_are_served("", 16, DOWNLOAD, read_slowly);
}

/// Uploads that stream on purpose hold half of the places at most.
#[test]
fn sixteen_clients_that_stream_slowly() {
    all_others_are_served("\n[limits]\nstream = \"/upload\"\n", 16, UPLOAD, send_slowly);
}

/// Slow clients that find no room in files stream too.
#[test]
fn sixteen_clients_that_send_slowly_with_little_room() {
    all_others_are_served(
        "\n[limits]\nbuffer_memory = \"1 B\"\nbuffer_files = \"1 B\"\n",
        16,
        UPLOAD,
        send_slowly,
    );
}

/// A client that takes 20 KB a second is slow and honest: it is not cut, although the kernel would hide for most of a minute
/// that it reads. After twice as long as it may stand still it takes the rest at once, so that the test ends.
#[test]
fn a_reader_of_twenty_kilobytes_a_second_is_not_cut() {
    const RATE: f64 = 20_000.0;
    let origin = server(WORKERS);
    let gateway = Plimsoll::run(&file(origin, "\n[timeouts]\nsend = \"10s\"\n"));
    let mut client = TcpStream::connect(gateway.address).expect("a connection");
    client.set_read_timeout(Some(Duration::from_secs(30))).expect("a time limit");
    client
        .write_all(DOWNLOAD.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n").as_bytes())
        .expect("it takes a head");
    let (start, mut took) = (Instant::now(), 0);
    let mut some = [0; 2000];
    while start.elapsed() < Duration::from_secs(20) {
        if (took as f64) < RATE * start.elapsed().as_secs_f64() {
            let count = client.read(&mut some).expect("it is not cut");
            assert!(count > 0, "cut after {took} bytes");
            took += count;
        } else {
            thread::sleep(Duration::from_millis(20));
        }
    }
    took += std::io::copy(&mut client, &mut std::io::sink()).expect("the rest") as usize;
    assert!(took > LARGE, "{took} bytes of a head and {LARGE}");
}

/// Where no file can be made, a body that needs one is refused with the reason; everything else is served, long responses too.
#[test]
fn without_a_place_for_files_only_long_bodies_are_refused() {
    let origin = server(WORKERS);
    let gateway = Plimsoll::run_with(&file(origin, ""), &[("TMPDIR", "/nonexistent")]);
    let post = |length: usize| {
        let head = format!(
            "POST /form HTTP/1.1\r\nHost: e2e.test\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n"
        );
        exchange(gateway.address, [head.as_bytes(), &vec![b'x'; length]].concat())
    };
    let refused = post(1_000_000);
    assert_eq!(
        (refused.status, refused.text().as_str()),
        (503, "no temporary file can be made for the request body\n")
    );
    assert_eq!(post(50_000).text(), "page");
    assert_eq!(get(gateway.address, "/large").body.len(), LARGE);
    assert!(gateway.metric("plimsoll_buffer_file_failures_total") >= 1.0);
}
