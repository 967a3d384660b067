//! The admin listener: one request per connection, on a single-threaded runtime.
//!
//! Bounds: [`MAX_CONNECTIONS`] at once, a head of [`MAX_HEAD_BYTES`] and [`MAX_FIELDS`], [`TIMEOUT`] for the head and for
//! the answer. A reload in between may take as long as reading a file and looking up names takes. A connection beyond the
//! bound is closed unanswered; a scraper opens one.

use super::operator::Desk;
use super::{RELOAD, reloaded, route, text};
use hyper::body::Incoming;
use hyper::header::ORIGIN;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::{LocalSet, spawn_blocking, spawn_local};
use tokio::time::{sleep, timeout};

const MAX_CONNECTIONS: usize = 32;
const MAX_HEAD_BYTES: usize = 8 * 1024;
const MAX_FIELDS: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after an accept that failed: the process has no file descriptor left, and trying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn serve(listener: TcpListener, desk: Desk) -> Infallible {
    let desk = Rc::new(desk);
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let accept = async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            if let Ok(place) = places.clone().try_acquire_owned() {
                let desk = desk.clone();
                spawn_local(async move {
                    // If the client is gone or too slow, nothing is lost and nobody is to be told.
                    let _ = exchange(stream, &desk).await;
                    drop(place);
                });
            }
        }
    };
    LocalSet::new().run_until(accept).await
}

async fn exchange(stream: TcpStream, desk: &Desk) -> io::Result<()> {
    let answered = Notify::new();
    let service = service_fn(|request| {
        Box::pin(async {
            let response = answer(request, desk).await;
            answered.notify_one();
            Ok::<_, Infallible>(response)
        })
    });
    let mut connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TIMEOUT)
        .keep_alive(false)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_FIELDS)
        .serve_connection(TokioIo::new(stream), service);
    let too_slow = async {
        answered.notified().await;
        sleep(TIMEOUT).await;
    };
    tokio::select! {
        result = poll_fn(|context| connection.poll_without_shutdown(context)) => {
            if result.is_err_and(|error| error.is_timeout()) {
                return Ok(());
            }
        }
        () = too_slow => return Ok(()),
    }
    timeout(TIMEOUT, close(connection.into_parts().io.into_inner())).await?
}

/// Closing over unread bytes would reset the connection, and the answer with it: read until the client closes.
async fn close(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut unread = [0; 1024];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

async fn answer(request: Request<Incoming>, desk: &Desk) -> Response<String> {
    let path = request.uri().path();
    if (request.method(), path) != (&Method::POST, RELOAD) {
        let (scrape, health) = desk.look();
        return route(request.method(), path, scrape, health);
    }
    // A browser says which page a request comes from.
    if request.headers().contains_key(ORIGIN) {
        return text(StatusCode::FORBIDDEN, "Not from a page in a browser: a site could send it.\n");
    }
    let owner = desk.owner.clone();
    match spawn_blocking(move || owner.get().map(|owner| owner.reload())).await {
        Ok(result) => reloaded(result),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "The reload failed; the log says why.\n"),
    }
}
