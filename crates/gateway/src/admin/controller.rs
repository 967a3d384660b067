//! The admin listener beside a controller, whose server's own processes decide.
//!
//! The controller reports what there is to show after each of its ticks, and the listener shows what was reported last: it
//! answers while a tick hangs, and its probe then says so.

use super::journal::{Journal, JournalDocument, Sight, View};
use super::metrics::ProcessFigures;
use super::operator::Source;
use super::scrape::{Scrape, ShellFigures};
use super::{AdminTokens, Operator, Owner, OwnerCell, ShellKind};
use crate::clock::since_1970;
use crate::listen::inherited::Inherited;
use crate::settings::SeedSource;
use crate::sync::lock;
use crate::worker::shared::Reloads;
use plimsoll_core::request::Pattern;
use plimsoll_core::telemetry::status::Status;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What only a controller has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerFigures {
    /// The most processes that may attach.
    pub lanes: usize,
    /// The processes that are attached.
    pub attached: usize,
    /// Processes that were found dead, since the state was made.
    pub deaths: u64,
    /// The requests that they held.
    pub returned: u64,
    /// How many connections wait in the server's listen queue; `None` if no process has looked lately, or if the queue is full.
    pub listen_queue: Option<u32>,
}

/// How a controller's listener is set up, and where the key of its client hash is from.
#[derive(Clone, Debug, Default)]
pub struct ControllerAdmin {
    /// The host names under which the listener answers, besides addresses and `localhost`.
    pub names: Vec<Pattern>,
    /// The tokens of the listener; a request must show one of them.
    pub tokens: AdminTokens,
    /// The origin of the key of the client hash.
    pub seed_from: SeedSource,
}

/// The running listener. Dropping it ends it.
pub struct ControllerDesk {
    reported: Arc<ReportedByController>,
    operator: Operator,
}

impl ControllerDesk {
    /// Binds the listener to this address.
    ///
    /// # Errors
    /// The address cannot be had; the error names it.
    pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
        let (listener, _) = Operator::listen(address, &mut Inherited::default())?;
        Ok(listener)
    }

    /// Starts to answer requests, with these first figures. `owner` does what the operator orders.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        (listener, admin): (TcpListener, ControllerAdmin),
        owner: Box<dyn Owner>,
        (status, figures): (Status, ControllerFigures),
    ) -> io::Result<Self> {
        let ControllerAdmin { names, tokens, seed_from } = admin;
        let latest = Latest { status, figures, last_step: since_1970() };
        let cell = OwnerCell::default();
        let _ = cell.set(owner);
        let reloads = Reloads::start();
        let reported = ReportedByController {
            latest: Mutex::new(latest),
            journal: Mutex::default(),
            tokens,
            seed_from,
            in_force_since: reloads.in_force_since,
            owner: cell.clone(),
        };
        let reported = Arc::new(reported);
        reported.look();
        let operator = Operator::start(listener, reported.clone(), cell, names)?;
        Ok(ControllerDesk { reported, operator })
    }

    /// The address of the listener.
    pub fn address(&self) -> SocketAddr {
        self.operator.address
    }

    /// Takes what there is to show after a tick.
    pub fn report(&self, status: Status, figures: ControllerFigures) {
        self.reported.report(status, figures);
    }
}

impl Drop for ControllerDesk {
    fn drop(&mut self) {
        self.operator.stop();
    }
}

/// What the controller has reported.
pub(super) struct ReportedByController {
    latest: Mutex<Latest>,
    journal: Mutex<Journal>,
    tokens: AdminTokens,
    seed_from: SeedSource,
    in_force_since: Duration,
    owner: OwnerCell,
}

/// What it has reported last.
#[derive(Clone, Debug)]
struct Latest {
    status: Status,
    figures: ControllerFigures,
    /// When the loops last ran, in Unix time; before the first period the start.
    last_step: Duration,
}

impl ReportedByController {
    fn report(&self, status: Status, figures: ControllerFigures) {
        let mut latest = lock(&self.latest);
        if status.at != latest.status.at {
            latest.last_step = since_1970();
        }
        (latest.status, latest.figures) = (status, figures);
        drop(latest);
        self.look();
    }

    /// Shows the journal what was reported last.
    fn look(&self) {
        let status = lock(&self.latest).status.clone();
        lock(&self.journal).look(&self.sight(&status));
    }

    /// What the journal looks at. A controller reads its file once and knows no server address, so no reload and no outage is
    /// shown.
    fn sight<'a>(&self, status: &'a Status) -> Sight<'a> {
        Sight {
            kind: ShellKind::Controller,
            status,
            reloads: Reloads { in_force_since: self.in_force_since, ..Reloads::default() },
            down: Vec::new(),
            unix_seconds: since_1970().as_secs_f64(),
        }
    }
}

impl Source for Arc<ReportedByController> {
    fn scrape(&self) -> Scrape {
        let Latest { status, figures, last_step } = lock(&self.latest).clone();
        Scrape {
            status,
            shell: ShellFigures::Controller(figures),
            in_force_since: self.in_force_since,
            log_lines_dropped: self.owner.get().map_or(0, |owner| owner.log_lines_dropped()),
            seed_from: self.seed_from,
            last_step,
            process: ProcessFigures::read(),
        }
    }

    fn view(&self, status: &Status) -> View {
        lock(&self.journal).view(&self.sight(status))
    }

    fn events_after(&self, number: u64) -> JournalDocument {
        lock(&self.journal).after(number)
    }

    fn tokens(&self) -> AdminTokens {
        self.tokens.clone()
    }
}
