//! The admin listener: one request per connection, on a single-threaded runtime.
//!
//! Bounds: [`MAX_CONNECTIONS`] at once, a head of [`MAX_HEAD_BYTES`], [`TIMEOUT`] for the head and for the answer; a
//! reload in between takes as long as it takes to read a file and to look up names.
//! More connections than that are closed unanswered; a scraper opens one.

use super::{Page, Pulse, RELOAD, ReloadOrder, reloaded, route, text};
use crate::reload::Reloads;
use plimsoll_core::telemetry::status::Status;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
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

/// Answers for as long as the future lives. `source` and `reloads` are asked once per request; `order` is called on a thread where it
/// may wait.
pub async fn serve(
    listener: TcpListener,
    source: impl Fn() -> Status + 'static,
    reloads: impl Fn() -> Reloads + 'static,
    order: Arc<OnceLock<ReloadOrder>>,
) -> Infallible {
    let reloads = Box::new(reloads);
    let shared =
        Rc::new(Shared { source, reloads, order, pulse: RefCell::default(), connections: Cell::new(0) });
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
                        let _ = exchange(stream, &guard.0).await;
                    });
                }
            }
        })
        .await
}

struct Shared<S> {
    source: S,
    reloads: Box<dyn Fn() -> Reloads>,
    order: Arc<OnceLock<ReloadOrder>>,
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
    let (page, is_head, allow) = match timeout(TIMEOUT, read_head(&stream)).await?? {
        Ok(asked) if asked.method == "POST" && asked.target == RELOAD => {
            (order(shared, &asked).await, false, "")
        }
        Ok(Asked { method, target, .. }) => {
            let status = (shared.source)();
            let health = shared.pulse.borrow_mut().look(Instant::now(), &status);
            let allow = if target == RELOAD { "POST" } else { "GET, HEAD" };
            (route((&method, &target), &status, (shared.reloads)(), health), method == "HEAD", allow)
        }
        Err(page) => (page, false, ""),
    };
    let answer = async {
        write_all(&stream, response(&page, is_head, allow).as_bytes()).await?;
        poll_fn(|context| Pin::new(&mut stream).poll_shutdown(context)).await?;
        // Closing over unread bytes would reset the connection, and the answer with it: read until the client closes.
        let mut rest = [0; 1024];
        while read(&stream, &mut rest).await? > 0 {}
        Ok(())
    };
    timeout(TIMEOUT, answer).await?
}

/// Has the configuration read again.
async fn order<S>(shared: &Shared<S>, asked: &Asked) -> Page {
    if asked.of_a_page {
        return text(403, "Not from a page in a browser: a site could send it.\n".to_owned());
    }
    let orders = shared.order.clone();
    let result = tokio::task::spawn_blocking(move || orders.get().map(|order| order())).await;
    match result {
        Ok(Some(result)) => reloaded(result),
        Ok(None) => text(404, "This gateway was not started from a file.\n".to_owned()),
        Err(_) => text(500, "The reload failed; the log says why.\n".to_owned()),
    }
}

/// A head, as far as it matters here.
struct Asked {
    method: String,
    target: String,
    /// A browser sent it for a page: those say where the page came from.
    of_a_page: bool,
}

/// The head, or the page that says what is wrong with the head.
async fn read_head(stream: &TcpStream) -> io::Result<Result<Asked, Page>> {
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
                let (method, target) = (word(request.method), word(request.path));
                let of_a_page = request.headers.iter().any(|field| field.name.eq_ignore_ascii_case("origin"));
                return Ok(Ok(Asked { method, target, of_a_page }));
            }
            Err(httparse::Error::TooManyHeaders) => break,
            Err(error) => return Ok(Err(text(400, format!("Not an HTTP/1.1 request: {error}.\n")))),
        }
    }
    Ok(Err(text(431, format!("More than {MAX_HEAD_BYTES} bytes or 64 fields of head.\n"))))
}

fn response(page: &Page, is_head: bool, allow: &str) -> String {
    let phrase = match page.status {
        200 => "OK",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        _ => "Service Unavailable",
    };
    let allow = if page.status == 405 { format!("allow: {allow}\r\n") } else { String::new() };
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
