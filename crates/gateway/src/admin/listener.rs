//! The admin listener: one request per connection, on a single-threaded runtime.
//!
//! Bounds: [`MAX_CONNECTIONS`] at once, a head of [`MAX_HEAD_BYTES`], [`TIMEOUT`] for a connection from accept to close.
//! More connections than that are closed unanswered; a scraper opens one.

use super::{Page, Pulse, route, text};
use plimsoll_core::status::Status;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWrite;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

const MAX_CONNECTIONS: u32 = 32;
const MAX_HEAD_BYTES: usize = 8 * 1024;
const TIMEOUT: Duration = Duration::from_secs(5);
/// When the process has no file descriptors left: try again, do not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers for as long as the future lives. `source` is asked once per request.
pub async fn serve(listener: TcpListener, source: impl Fn() -> Status + 'static) -> Infallible {
    let shared = Rc::new(Shared { source, pulse: RefCell::default(), connections: Cell::new(0) });
    LocalSet::new()
        .run_until(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                if let Some(guard) = shared.enter() {
                    tokio::task::spawn_local(async move {
                        // A client that is gone or too slow: nothing is lost, nobody is to be told.
                        let _ = timeout(TIMEOUT, exchange(stream, &guard.0)).await;
                    });
                }
            }
        })
        .await
}

struct Shared<S> {
    source: S,
    pulse: RefCell<Pulse>,
    connections: Cell<u32>,
}

/// A place among the connections, given back when its task ends or is cancelled.
struct Guard<S>(Rc<Shared<S>>);

impl<S> Shared<S> {
    fn enter(self: &Rc<Self>) -> Option<Guard<S>> {
        let free = self.connections.get() < MAX_CONNECTIONS;
        free.then(|| {
            self.connections.set(self.connections.get() + 1);
            Guard(self.clone())
        })
    }
}

impl<S> Drop for Guard<S> {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get() - 1);
    }
}

async fn exchange<S: Fn() -> Status>(mut stream: TcpStream, shared: &Shared<S>) -> io::Result<()> {
    let (page, is_head) = match read_head(&stream).await? {
        Ok((method, target)) => {
            let status = (shared.source)();
            let health = shared.pulse.borrow_mut().look(Instant::now(), &status);
            (route(&method, &target, &status, health), method == "HEAD")
        }
        Err(page) => (page, false),
    };
    write_all(&stream, response(&page, is_head).as_bytes()).await?;
    poll_fn(|context| Pin::new(&mut stream).poll_shutdown(context)).await?;
    // Closing over unread bytes would reset the connection, and the answer with it: read until the client closes.
    let mut rest = [0; 1024];
    while read(&stream, &mut rest).await? > 0 {}
    Ok(())
}

/// Method and target, or the page that says what is wrong with the head.
async fn read_head(stream: &TcpStream) -> io::Result<Result<(String, String), Page>> {
    let mut head = [0; MAX_HEAD_BYTES];
    let mut filled = 0;
    while filled < head.len() {
        match read(stream, &mut head[filled..]).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&head[..filled]) {
            Ok(httparse::Status::Partial) => {}
            Ok(httparse::Status::Complete(_)) => {
                let word = |part: Option<&str>| part.unwrap_or_default().to_owned();
                return Ok(Ok((word(request.method), word(request.path))));
            }
            Err(httparse::Error::TooManyHeaders) => break,
            Err(error) => return Ok(Err(text(400, format!("Not an HTTP/1.1 request: {error}.\n")))),
        }
    }
    Ok(Err(text(431, format!("More than {MAX_HEAD_BYTES} bytes or 64 fields of head.\n"))))
}

fn response(page: &Page, is_head: bool) -> String {
    let phrase = match page.status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        431 => "Request Header Fields Too Large",
        _ => "Service Unavailable",
    };
    let allow = if page.status == 405 { "allow: GET, HEAD\r\n" } else { "" };
    format!(
        "HTTP/1.1 {} {phrase}\r\ncontent-type: {}\r\ncontent-length: {}\r\ncache-control: no-store\r\n{allow}\
         connection: close\r\n\r\n{}",
        page.status,
        page.content_type,
        page.body.len(),
        if is_head { "" } else { &page.body },
    )
}

async fn read(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

async fn write_all(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
