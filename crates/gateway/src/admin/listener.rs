//! The admin listener: one request per connection, on a single-threaded runtime.
//!
//! Bounds: [`MAX_CONNECTIONS`] at once, a head of [`MAX_HEAD_BYTES`] and [`MAX_FIELDS`], [`TIMEOUT`] for the head and for
//! the answer. A reload in between may take as long as reading a file and looking up names takes. A connection beyond the
//! bound takes the place of the oldest one that is not being answered, so that idle connections keep no probe waiting; it is
//! closed unanswered if all of them are.
//!
//! A browser must not be made to ask here by a page of somebody else: a host name that is not this listener's own is refused
//! (a name of the page's author may lead to this address), and so is an order from another site.

use super::live::{AdminBody, Dropped, Viewers};
use super::operator::Desk;
use super::{
    EVENTS, HEALTH, INCIDENTS, JSON, LIVE, RELOAD, dashboard, document, incidents, page, reloaded, route,
    text, unauthorized, what_if,
};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use plimsoll_core::request::Pattern;
use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_blocking, spawn_local};
use tokio::time::{sleep, timeout};

const MAX_CONNECTIONS: usize = 32;
const MAX_HEAD_BYTES: usize = 8 * 1024;
const MAX_FIELDS: usize = 64;
const TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after an accept that failed: the process has no file descriptor left, and trying at once would spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(super) async fn serve(listener: TcpListener, desk: Desk) -> Infallible {
    let (desk, viewers) = (Rc::new(desk), Rc::<Viewers>::default());
    let accept = async move {
        let mut open: VecDeque<Rc<AdminConnection>> = VecDeque::new();
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                sleep(ACCEPT_PAUSE).await;
                continue;
            };
            open.retain(|connection| !connection.closed.get());
            if open.len() >= MAX_CONNECTIONS {
                let Some(longest) = open.iter().position(|connection| !connection.answering.get()) else {
                    continue;
                };
                if let Some(idle) = open.remove(longest) {
                    idle.give_way.notify_one();
                }
            }
            let at = Hall { desk: desk.clone(), viewers: viewers.clone() };
            let connection = Rc::<AdminConnection>::default();
            open.push_back(connection.clone());
            spawn_local(async move {
                tokio::select! {
                    // If the client is gone or too slow, nothing is lost and there is nobody to report it to.
                    _ = exchange(stream, &at, &connection.answering) => {}
                    () = connection.give_way.notified() => {}
                }
                connection.closed.set(true);
            });
        }
    };
    LocalSet::new().run_until(accept).await
}

/// What all connections of the listener share.
struct Hall {
    desk: Rc<Desk>,
    viewers: Rc<Viewers>,
}

/// A connection as the accept loop sees it.
#[derive(Default)]
struct AdminConnection {
    /// The request has come, and its answer is not written yet.
    answering: Cell<bool>,
    closed: Cell<bool>,
    /// Notified if another connection takes this one's place.
    give_way: Notify,
}

async fn exchange(stream: TcpStream, hall: &Hall, answering: &Cell<bool>) -> io::Result<()> {
    let (answered, dropped) = (Notify::new(), Cell::<Option<Dropped>>::default());
    let service = service_fn(|request| {
        answering.set(true);
        Box::pin(async {
            let (response, viewer) = answer(request, hall).await;
            dropped.set(viewer);
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
        match dropped.take() {
            // A stream may last for as long as its viewer reads.
            Some(dropped) => dropped.notified().await,
            None => sleep(TIMEOUT).await,
        }
    };
    tokio::select! {
        result = poll_fn(|context| connection.poll_without_shutdown(context)) => {
            if result.is_err_and(|error| error.is_timeout()) {
                return Ok(());
            }
        }
        () = too_slow => return Ok(()),
    }
    answering.set(false);
    timeout(TIMEOUT, close(connection.into_parts().io.into_inner())).await?
}

/// Reads until the client closes: a close over unread bytes would reset the connection, and the answer could be lost.
async fn close(mut stream: TcpStream) -> io::Result<()> {
    stream.shutdown().await?;
    let mut unread = [0; 1024];
    while stream.read(&mut unread).await? > 0 {}
    Ok(())
}

/// Whether the request names this listener by an address or a name that only this machine resolves, or names none, as old
/// probes do. Any other name could belong to the author of a page, who has made it lead here ("DNS rebinding").
fn names_this_listener(request: &Request<Incoming>, own_names: &[Pattern]) -> bool {
    let Some(host) = request.headers().get(HOST) else { return true };
    let Ok(Ok(authority)) = host.to_str().map(str::parse::<Authority>) else { return false };
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || own_names.iter().any(|own| own.matches_ignoring_case(name))
}

/// Whether a page of another site had a browser send this. Browsers say where a request comes from in `Sec-Fetch-Site`,
/// and older ones in `Origin`; other programs send neither.
fn is_from_another_site(request: &Request<Incoming>) -> bool {
    let field = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
    let elsewhere = |site| !matches!(site, "same-origin" | "none");
    let other_origin = |origin: &str| origin.split_once("://").map(|(_, host)| host) != field(HOST);
    field(HeaderName::from_static("sec-fetch-site")).is_some_and(elsewhere)
        || field(ORIGIN).is_some_and(other_origin)
}

/// Whether a browser asks for a page.
fn wants_page(request: &Request<Incoming>) -> bool {
    let accepted = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    request.uri().path() == "/" && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// The answer, and for a viewer of the stream the signal that it is dropped.
async fn answer(request: Request<Incoming>, hall: &Hall) -> (Response<AdminBody>, Option<Dropped>) {
    if request.uri().path() == LIVE && request.method() == Method::GET && may_view(&request, &hall.desk) {
        return match hall.viewers.join(&hall.desk) {
            Some((response, dropped)) => (response, Some(dropped)),
            None => {
                let full =
                    text(StatusCode::SERVICE_UNAVAILABLE, "As many watch as may. Close another page.\n");
                (full.map(AdminBody::from), None)
            }
        };
    }
    (answer_at_once(request, &hall.desk).await, None)
}

fn may_view(request: &Request<Incoming>, desk: &Desk) -> bool {
    names_this_listener(request, &desk.names) && shows_token(request, desk) && !is_from_another_site(request)
}

/// Whether the request shows a token, or needs none. The health check needs no token, since it shows only whether the loops
/// run.
fn shows_token(request: &Request<Incoming>, desk: &Desk) -> bool {
    let shown = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
    request.uri().path() == HEALTH || desk.admits(shown)
}

async fn answer_at_once(request: Request<Incoming>, desk: &Desk) -> Response<AdminBody> {
    let (method, path) = (request.method(), request.uri().path());
    if !names_this_listener(&request, &desk.names) {
        let said = "This listener does not have that name. Ask by its address, or name it in `admin_names` under [gateway].\n";
        return text(StatusCode::MISDIRECTED_REQUEST, said).map(AdminBody::from);
    }
    if !shows_token(&request, desk) {
        return unauthorized().map(AdminBody::from);
    }
    let is_guarded =
        path.starts_with(what_if::PATH) || path == LIVE || (method, path) == (&Method::POST, RELOAD);
    if is_guarded && is_from_another_site(&request) {
        return text(StatusCode::FORBIDDEN, "Not from a page of another site.\n").map(AdminBody::from);
    }
    if path.starts_with(what_if::PATH) {
        let owner = desk.owner.clone();
        return what_if::answer(request, owner.get().map(Box::as_ref)).await;
    }
    if matches!(*method, Method::GET | Method::HEAD) {
        if wants_page(&request) {
            return dashboard::page();
        }
        match path {
            INCIDENTS => return incidents(desk.owner.get().map(Box::as_ref)).map(AdminBody::from),
            EVENTS => {
                let events = document::render(&desk.events_after(0));
                return page(StatusCode::OK, JSON, events).map(AdminBody::from);
            }
            _ => {}
        }
    }
    if (method, path) != (&Method::POST, RELOAD) {
        return route(method, path, desk.look()).map(AdminBody::from);
    }
    let owner = desk.owner.clone();
    let reloading = spawn_blocking(move || owner.get().map(|owner| owner.reload()));
    let response = match reloading.await {
        Ok(result) => reloaded(result),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "The reload failed; the log says why.\n"),
    };
    response.map(AdminBody::from)
}
