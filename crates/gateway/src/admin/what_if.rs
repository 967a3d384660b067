//! What-if: a simulation of an access log under another configuration, which the gateway's owner runs aside.
//!
//! | request | does |
//! |---|---|
//! | `PUT /what-if/log` | keeps the body as the access log, plain or compressed by gzip |
//! | `PUT /what-if/configuration` | keeps the body as the configuration; the gateway's own one is taken if none was sent |
//! | `POST /what-if?scale=3` | starts the simulation; each request of the log comes three times |
//! | `GET /what-if` | says how far it is, as JSON |
//! | `GET /what-if/report` | the report, as a page |
//! | `DELETE /what-if` | stops it, and forgets what was sent |
//!
//! With `&capacity=200` the server can do 200 requests a second where neither file says what a request takes; with
//! `&host=shop.example` a line of the log that names no host is for that one.

use super::live::AdminBody;
use super::{Owner, dashboard, document, page, text};
use hyper::body::{Body, Incoming};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

pub(super) const PATH: &str = "/what-if";
/// The most that an access log or a configuration may be (bytes).
const MOST_BYTES: u64 = 1 << 30;
/// How long a body may pause.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is sent before a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhatIfInput {
    /// The access log.
    Log,
    /// A configuration in the place of the one in force.
    Configuration,
}

/// What is asked of a simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIfQuestion {
    /// How often each request of the log comes.
    pub scale: f64,
    /// What the server can do, in requests a second at full quality, where neither the log nor the configuration says it.
    pub capacity: Option<f64>,
    /// The host of requests whose line of the log names none.
    pub host: Option<String>,
}

/// How far a simulation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum WhatIfState {
    /// None was started.
    #[default]
    Idle,
    /// The simulation runs.
    Running,
    /// The simulation has ended, and there is a report.
    Done,
    /// The simulation failed: `message` says why.
    Failed,
}

/// What `GET /what-if` answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub struct WhatIfDocument {
    /// How far it is.
    pub state: WhatIfState,
    /// The part of the log that is done, from 0 to 1; null if it is not known.
    pub done: Option<f64>,
    /// What it does, or why it failed.
    pub message: String,
}

/// A place where simulations run.
pub trait WhatIf: Send + Sync {
    /// A file for what is sent, which is removed unless it is handed back.
    ///
    /// # Errors
    /// It cannot be made.
    fn receive(&self) -> io::Result<NamedTempFile>;
    /// Takes a file of [`receive`](Self::receive) that is complete: it counts from now on.
    ///
    /// # Errors
    /// It cannot be kept.
    fn received(&self, input: WhatIfInput, file: NamedTempFile) -> io::Result<()>;
    /// Starts the simulation.
    ///
    /// # Errors
    /// Why it cannot: no log was sent, or one runs already.
    fn start(&self, question: WhatIfQuestion) -> Result<(), String>;
    /// How far it is.
    fn state(&self) -> WhatIfDocument;
    /// The report, once it is done.
    fn report(&self) -> Option<String>;
    /// Stops it, and forgets what was sent.
    fn stop(&self);
}

/// The answer to a request below `/what-if`, which comes from this listener's own page or from no page.
pub(super) async fn answer(request: Request<Incoming>, owner: Option<&dyn Owner>) -> Response<AdminBody> {
    let Some(desk) = owner.and_then(Owner::what_if) else {
        return text(StatusCode::NOT_FOUND, "Nobody simulates here; `plimsoll simulate` does.\n")
            .map(AdminBody::from);
    };
    let rest = request.uri().path().strip_prefix(PATH).unwrap_or_default();
    match (request.method().clone(), rest) {
        (Method::GET, "/report") => match desk.report() {
            Some(report) => return dashboard::report(report),
            None => text(StatusCode::NOT_FOUND, "There is no report yet.\n"),
        },
        (Method::GET, "") => state(desk, StatusCode::OK),
        (Method::PUT, "/log") => receive(request.into_body(), desk, WhatIfInput::Log).await,
        (Method::PUT, "/configuration") => {
            receive(request.into_body(), desk, WhatIfInput::Configuration).await
        }
        (Method::POST, "") => match question(request.uri().query()) {
            Err(wrong) => text(StatusCode::BAD_REQUEST, format!("{wrong}.\n")),
            Ok(question) => match desk.start(question) {
                Ok(()) => state(desk, StatusCode::ACCEPTED),
                Err(why) => text(StatusCode::CONFLICT, format!("{why}\n")),
            },
        },
        (Method::DELETE, "") => {
            desk.stop();
            state(desk, StatusCode::OK)
        }
        _ => text(
            StatusCode::METHOD_NOT_ALLOWED,
            "PUT the log, POST to start, GET the state, DELETE to stop.\n",
        ),
    }
    .map(AdminBody::from)
}

fn state(desk: &dyn WhatIf, status: StatusCode) -> Response<String> {
    page(status, super::JSON, document::render(&desk.state()))
}

/// What a query asks for.
fn question(query: Option<&str>) -> Result<WhatIfQuestion, String> {
    let mut question = WhatIfQuestion { scale: 1.0, capacity: None, host: None };
    for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let number = value.parse().ok().filter(|number| (0.001..=1e6).contains(number));
        match (name, number) {
            ("scale", Some(scale)) if scale <= 10_000.0 => question.scale = scale,
            ("capacity", Some(capacity)) => question.capacity = Some(capacity),
            // A name needs no other characters, so that none is escaped.
            ("host", _)
                if !value.is_empty()
                    && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) =>
            {
                question.host = Some(value.to_owned());
            }
            ("host", _) => return Err(format!("`{pair}`: write a name, such as shop.example")),
            ("scale", _) => return Err(format!("`{pair}`: write a factor from 0.001 to 10000")),
            ("capacity", _) => {
                return Err(format!("`{pair}`: write requests a second, from 0.001 to 1000000"));
            }
            _ => return Err(format!("`{pair}` is none of `scale`, `capacity` and `host`")),
        }
    }
    Ok(question)
}

async fn receive(body: Incoming, desk: &dyn WhatIf, input: WhatIfInput) -> Response<String> {
    match keep(body, desk, input).await {
        Ok(bytes) => text(StatusCode::OK, format!("{bytes} bytes are kept.\n")),
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => text(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("More than {} MiB. Compress it by gzip.\n", MOST_BYTES >> 20),
        ),
        Err(error) if error.kind() == io::ErrorKind::TimedOut => {
            text(StatusCode::REQUEST_TIMEOUT, "The body paused for too long.\n")
        }
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("It cannot be kept: {error}.\n")),
    }
}

async fn keep(mut body: Incoming, desk: &dyn WhatIf, input: WhatIfInput) -> io::Result<u64> {
    let kept = desk.receive()?;
    let mut file = tokio::fs::File::from_std(kept.reopen()?);
    let mut bytes = 0;
    while let Some(frame) =
        timeout(PATIENCE, poll_fn(|context| Pin::new(&mut body).poll_frame(context))).await?
    {
        let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
        bytes += data.len() as u64;
        if bytes > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        file.write_all(&data).await?;
    }
    file.flush().await?;
    desk.received(input, kept)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_a_factor_a_capacity_and_a_host() {
        let asked = question;
        let is = |scale, capacity, host: Option<&str>| {
            Ok(WhatIfQuestion { scale, capacity, host: host.map(str::to_owned) })
        };
        assert_eq!(asked(None), is(1.0, None, None));
        assert_eq!(asked(Some("scale=3&capacity=200")), is(3.0, Some(200.0), None));
        assert_eq!(asked(Some("capacity=0.5&")), is(1.0, Some(0.5), None));
        assert_eq!(asked(Some("host=shop-1.example")), is(1.0, None, Some("shop-1.example")));
        for wrong in [
            "scale=0",
            "scale=20000",
            "scale",
            "capacity=-1",
            "capacity=NaN",
            "scale=inf",
            "times=3",
            "host=",
            "host=%20",
        ] {
            assert!(asked(Some(wrong)).unwrap_err().starts_with(&format!("`{wrong}`")), "{wrong}");
        }
    }
}
