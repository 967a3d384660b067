//! The application behind the real servers: a page in two versions, and what it costs to make one.
//!
//! A page holds its worker for a fixed time without using the CPU, as a slow database does. So a server of `WORKERS`
//! workers has a capacity that does not depend on how fast the machine is, it fails as such servers fail, and neither
//! the gateway nor the clients have to share two cores with a burning loop. The times are long beside what a CGI process
//! costs to start, so that a busy machine does not change the price of a light page much.

use std::thread;
use std::time::Duration;

/// How many requests the application works on at once, in Apache and behind nginx alike.
pub const WORKERS: usize = 8;
/// What a page of full quality takes.
pub const FULL: Duration = Duration::from_millis(200);
/// What a page of the light tree takes: less than a third.
pub const LIGHT: Duration = Duration::from_millis(30);
/// Where the light tree begins.
pub const LIGHT_TREE: &str = "/light";

const FULL_BYTES: usize = 24 << 10;
const LIGHT_BYTES: usize = 4 << 10;

/// The most full pages per second that the application can make.
#[must_use]
pub fn capacity() -> f64 {
    WORKERS as f64 / FULL.as_secs_f64()
}

/// Makes the page for `path`: takes its time, and returns a CGI response, head and body.
#[must_use]
pub fn make(path: &str) -> Vec<u8> {
    let light = path.starts_with(LIGHT_TREE);
    let (time, bytes) = if light { (LIGHT, LIGHT_BYTES) } else { (FULL, FULL_BYTES) };
    thread::sleep(time);
    response(if light { "<p>light</p>\n" } else { "<p>full</p>\n" }, bytes)
}

/// Makes a small page that takes this long.
#[must_use]
pub fn make_for(time: Duration) -> Vec<u8> {
    thread::sleep(time);
    response("<p>varied</p>\n", LIGHT_BYTES)
}

fn response(text: &str, bytes: usize) -> Vec<u8> {
    let head = format!("Status: 200 OK\r\nContent-Type: text/html\r\nContent-Length: {bytes}\r\n\r\n");
    let mut page = head.into_bytes();
    page.extend(text.bytes().cycle().take(bytes));
    page
}
