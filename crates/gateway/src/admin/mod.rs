//! The operator's view: `/metrics` for Prometheus, `/status` as JSON, `/healthz`.
//!
//! Everything is rendered from one [`Status`], plain data that the engine hands out, by pure functions; [`serve`] is the
//! small loop that puts them on a socket. It does not share the proxy's listeners, threads or limits, so that it answers
//! while they are full. Nothing can be changed here; `POST /reload` only has the gateway read its own file again, and is
//! refused to pages of a browser. There is nothing to authorize, then: keep it on loopback.
//!
//! Words are the design's: *upstream* is what the engine calls a plant, *level* is m in [0, M].

mod document;
pub mod json;
mod listener;
mod metrics;
mod pulse;
#[cfg(test)]
mod tests;

use crate::reload::{Reloaded, Reloads};
pub use document::{delay_json, render_status, status_json};
pub use listener::serve;
pub use metrics::{render_metrics, render_reloads};
use plimsoll_core::telemetry::status::Status;
pub use pulse::{Health, Pulse};

/// An answer of the admin listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The status code.
    pub status: u16,
    /// The value of `content-type`.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

const TEXT: &str = "text/plain; charset=utf-8";
/// The exposition format that Prometheus has read since 2014.
const EXPOSITION: &str = "text/plain; version=0.0.4; charset=utf-8";
const INDEX: &str = "/metrics  for Prometheus\n/status   the same and more, as JSON\n/healthz  200 while the loops run\n\
     /reload   POST: read the configuration again\n";

/// What `POST /reload` calls: reads the file again, and says what changed or everything that is wrong.
pub type ReloadOrder = Box<dyn Fn() -> Result<Reloaded, String> + Send + Sync>;

/// The path that is posted to.
const RELOAD: &str = "/reload";

/// The answer to `POST /reload`.
fn reloaded(result: Result<Reloaded, String>) -> Page {
    match result {
        Ok(reloaded) => {
            Page { status: 200, content_type: "application/json", body: format!("{:#}\n", reloaded.json()) }
        }
        Err(wrong) => text(422, format!("{}\n", wrong.trim_end())),
    }
}

/// Which page a request gets that is no order. `target` is the request's target; a query is ignored.
pub fn route((method, target): (&str, &str), status: &Status, reloads: Reloads, health: Health) -> Page {
    let path = target.split('?').next().unwrap_or_default();
    if path == RELOAD {
        return text(405, "Only POST.\n".to_owned());
    }
    if !matches!(method, "GET" | "HEAD") {
        return text(405, "Only GET and HEAD.\n".to_owned());
    }
    match path {
        "/metrics" => {
            let body = render_metrics(status) + &render_reloads(reloads);
            Page { status: 200, content_type: EXPOSITION, body }
        }
        "/status" => Page { status: 200, content_type: "application/json", body: render_status(status) },
        "/healthz" => match health {
            Health::Running => text(200, "ok\n".to_owned()),
            Health::Stalled(since) => text(
                503,
                format!("The control loop has not run for {} s: levels are frozen.\n", since.as_secs()),
            ),
        },
        "/" => text(200, INDEX.to_owned()),
        _ => text(404, format!("Not here. There is:\n{INDEX}")),
    }
}

fn text(status: u16, body: String) -> Page {
    Page { status, content_type: TEXT, body }
}
