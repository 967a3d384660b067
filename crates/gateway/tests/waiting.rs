//! Thousands of waiting requests. The test is a program of its own, since it counts the memory of its process.

mod support;

use plimsoll_core::promises::QueueBounds;
use plimsoll_gateway::{Gateway, Settings};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed, Ordering::SeqCst};
use support::*;

/// How many bytes the process has allocated now.
static HELD: AtomicI64 = AtomicI64::new(0);

struct Counting;

#[expect(unsafe_code, reason = "what is held cannot be counted otherwise; it only forwards")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as i64, Relaxed);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as i64, Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A browser's request head, of about 470 bytes.
fn head(path: usize) -> String {
    format!(
        "GET /{path} HTTP/1.1\r\nHost: www.example.org\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) \
         Gecko/20100101 Firefox/140.0\r\nAccept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
         Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate, br\r\nConnection: keep-alive\r\n\
         Cookie: session=4b1f0c9a7d3e52868a90\r\nUpgrade-Insecure-Requests: 1\r\nSec-Fetch-Dest: document\r\n\
         Sec-Fetch-Mode: navigate\r\nSec-Fetch-Site: none\r\n\r\n"
    )
}

/// An upstream that holds every request until `go` is set, then answers each with its path.
fn patient_origin(go: &Arc<AtomicBool>) -> Origin {
    let go = go.clone();
    Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            eventually("the origin may answer", || go.load(SeqCst));
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            if peer.send_response(path.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn read_answer(mut stream: &TcpStream) -> String {
    let mut answer = [0; 512];
    let mut length = 0;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // The response is complete when its announced body has come; head and body are short.
    loop {
        let so_far = text(&answer[..length]);
        if let Some((head, body)) = so_far.split_once("\r\n\r\n")
            && field(head, "content-length") == Some(&body.len().to_string())
        {
            return body.to_owned();
        }
        let count = stream.read(&mut answer[length..]).expect("an answer in time");
        assert!(count > 0, "the end came after {so_far:?}");
        length += count;
    }
}

#[test]
fn a_waiting_request_takes_less_than_four_kilobytes_beyond_an_idle_connection() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("more open files");
    // Both ends of each connection are in this process.
    let clients = (limit.maximum.unwrap_or(u64::MAX).saturating_sub(200) / 2).min(3_000) as usize;
    let go = Arc::new(AtomicBool::new(false));
    let origin = patient_origin(&go);
    let mut promises = promises(1);
    promises.plants[0].queue = QueueBounds { max_wait: Some(PATIENCE), ..QueueBounds::default() };
    let settings = Settings { threads: 2, ..settings(&[origin.address]) };
    let gateway = Gateway::start(settings, &promises).expect("a gateway");
    let connect = |_| {
        let stream = TcpStream::connect(address(&gateway)).expect("the gateway accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a read timeout");
        stream
    };
    let mut streams: Vec<TcpStream> = (0..clients).map(connect).collect();
    eventually("all are accepted", || gateway.client_connections() == clients);
    let heads: Vec<String> = (0..clients).map(head).collect();
    let idle = HELD.load(Relaxed);
    for (stream, head) in streams.iter_mut().zip(&heads) {
        stream.write_all(head.as_bytes()).expect("sent");
    }
    let waiting = || gateway.status().plants[0].waiting as usize;
    eventually("all but one wait", || waiting() == clients - 1);
    let each = (HELD.load(Relaxed) - idle) / clients as i64;
    println!("{each} bytes for each of {clients} waiting requests, heads of {} bytes", heads[0].len());
    // A request needs more memory than its head, or nothing was counted.
    assert!(each > heads[0].len() as i64, "{each} bytes: nothing was counted");
    assert!(each < 4096, "{each} bytes");
    // The packed bytes are the bytes that were sent.
    go.store(true, SeqCst);
    for (number, stream) in streams.iter().enumerate() {
        assert_eq!(read_answer(stream), format!("/{number}"));
    }
    settled(&gateway);
}
