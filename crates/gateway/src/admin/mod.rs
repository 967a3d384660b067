//! The operator's view: the dashboard with its stream `/live`, `/metrics` for Prometheus, `/status`, `/events` and
//! `/incidents` as JSON, `/healthz`, and `POST /reload`.
//!
//! In comes a `scrape`, plain data that the engine and the gateway hand out, or a controller inside a server (`controller`);
//! pure functions render it. The listener has a thread of its own and shares neither the proxy's sockets nor its limits, so
//! that it answers while they are full.
//! Nothing can be changed here but what the gateway's own file says: `POST /reload` has it read again, and is refused to pages
//! of other sites. Beyond loopback whoever asks must show a token ([`AdminTokens`]).
//!
//! Words are the operator's: *upstream* is what the engine calls a plant.

mod controller;
mod dashboard;
mod document;
mod journal;
mod listener;
mod live;
mod metrics;
mod operator;
mod scrape;
#[cfg(test)]
mod tests;
mod what_if;

use crate::runtime::reload::Reloaded;
pub use crate::settings::{AdminTokens, MetricsSettings};
pub use controller::{ControllerAdmin, ControllerDesk, ControllerFigures};
use document::StatusDocument;
pub use document::mode_word;
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Response, StatusCode};
pub use journal::{EventKind, JournalDocument, OperatorEvent, PromiseKind, PromiseRow, PromiseState};
pub(crate) use journal::{Journal, Sight};
pub(crate) use metrics::MetricsPusher;
use operator::OperatorLook;
pub(crate) use operator::{Operator, OwnerCell, RunningGateway};
pub use what_if::{WhatIf, WhatIfDocument, WhatIfInput, WhatIfQuestion, WhatIfState};

/// What kind of process the operator looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShellKind {
    /// A gateway before servers.
    Gateway,
    /// The controller inside a server.
    Controller,
}

impl ShellKind {
    /// The word for it.
    const fn as_str(self) -> &'static str {
        match self {
            ShellKind::Gateway => "gateway",
            ShellKind::Controller => "controller",
        }
    }
}

/// What the process that runs a gateway or a controller does for its operator.
pub trait Owner: Send + Sync {
    /// Reads the configuration again. May wait.
    ///
    /// # Errors
    /// All that is wrong, or why it cannot be read again, as text. Nothing changed then.
    fn reload(&self) -> Result<Reloaded, String>;
    /// How many lines of the log could not be written.
    fn log_lines_dropped(&self) -> u64;
    /// The last times in which classes were degraded or rejected, as JSON.
    fn incidents(&self) -> String;
    /// Where simulations beside the gateway run; nowhere by default.
    fn what_if(&self) -> Option<&dyn WhatIf> {
        None
    }
}

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
/// The exposition format that Prometheus has read since 2014.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";
const LOOKS: &str = "/           in a browser: the dashboard\n/metrics    for Prometheus\n/status     the same and more, as JSON\n\
     /live       the same each second, as server-sent events\n\
     /events     what happened lately: reloads, promises missed, rejections, upstreams that did not answer, as JSON\n\
     /incidents  when classes were degraded or rejected lately, as JSON\n/healthz    200 while the loops run\n";
const ORDERS: &str = "/reload     POST: read the configuration again\n\
     /what-if    an access log under another configuration, simulated: PUT /what-if/log, POST /what-if?scale=3\n";

/// The path of what the gateway's owner remembers.
const INCIDENTS: &str = "/incidents";
/// The path of what the gateway remembers.
const EVENTS: &str = "/events";
/// The path of the stream.
const LIVE: &str = "/live";
/// The path of probes, who have no token.
const HEALTH: &str = "/healthz";
/// The path that is posted to.
const RELOAD: &str = "/reload";

/// The answer to any request but an order to reload.
fn route(method: &Method, path: &str, look: OperatorLook) -> Response<String> {
    if path == RELOAD {
        return method_not_allowed("POST", "Only POST.\n");
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        return method_not_allowed("GET, HEAD", "Only GET and HEAD.\n");
    }
    match path {
        "/metrics" => page(StatusCode::OK, EXPOSITION, metrics::render(look.scrape)),
        "/status" => {
            let document = StatusDocument::new(&look.scrape, &look.view);
            page(StatusCode::OK, JSON, document::render(&document))
        }
        HEALTH => match look.stalled {
            None => text(StatusCode::OK, "ok\n"),
            Some(since) => text(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("The control loop has not run for {} s: levels are frozen.\n", since.as_secs()),
            ),
        },
        "/" => text(StatusCode::OK, index(look.scrape.kind())),
        _ => text(StatusCode::NOT_FOUND, format!("Not here. There is:\n{}", index(look.scrape.kind()))),
    }
}

/// The list of paths. A controller reads its file once and runs no simulation.
fn index(kind: ShellKind) -> String {
    match kind {
        ShellKind::Gateway => format!("{LOOKS}{ORDERS}"),
        ShellKind::Controller => LOOKS.to_owned(),
    }
}

/// The answer to `GET /incidents`; the gateway may have no owner that remembers any.
fn incidents(owner: Option<&dyn Owner>) -> Response<String> {
    match owner {
        Some(owner) => page(StatusCode::OK, JSON, owner.incidents()),
        None => text(StatusCode::NOT_FOUND, "Nobody keeps the incidents of this gateway.\n"),
    }
}

/// The answer to `POST /reload`; `None` if the gateway has no owner that could reload it.
fn reloaded(result: Option<Result<Reloaded, String>>) -> Response<String> {
    match result {
        Some(Ok(reloaded)) => {
            page(StatusCode::OK, JSON, document::render(&document::ReloadDocument::new(&reloaded)))
        }
        Some(Err(wrong)) => text(StatusCode::UNPROCESSABLE_ENTITY, format!("{}\n", wrong.trim_end())),
        None => text(StatusCode::NOT_FOUND, "This gateway was not started from a file.\n"),
    }
}

/// The answer to a request that shows no token where one is needed.
fn unauthorized() -> Response<String> {
    let said = "This listener asks for a token, a line of the file that `admin_token_file` under [gateway] names: send \
                `Authorization: Bearer TOKEN`; in a browser it is the password, with any name.\n";
    let mut response = text(StatusCode::UNAUTHORIZED, said);
    let challenge = HeaderValue::from_static("Basic realm=\"plimsoll\", charset=\"UTF-8\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

fn method_not_allowed(allowed: &'static str, body: &str) -> Response<String> {
    let mut response = text(StatusCode::METHOD_NOT_ALLOWED, body);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn text(status: StatusCode, body: impl Into<String>) -> Response<String> {
    page(status, TEXT, body.into())
}

fn page(status: StatusCode, content_type: &'static str, body: String) -> Response<String> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
