//! The figures for one request of the operator: read at once, then rendered in the requested form.
//!
//! A [`Scrape`] has the figures of every process that runs an engine. [`ShellFigures`] has those of a gateway or of a
//! controller only, so that neither shows a figure that it does not count.

use super::controller::ControllerFigures;
use super::metrics::ProcessFigures;
use super::{Owner, ShellKind};
use crate::client::spill_files::Buffered;
use crate::clock::since_1970;
use crate::http2::floods::Http2Status;
use crate::listen::clients::TurnedAwayCounts;
use crate::listen::kernel_shed::ShedStatus;
use crate::settings::SeedSource;
use crate::sync::lock;
use crate::transport::tls::server::CertificateEnd;
use crate::upstream::ejection::RosterStatus;
use crate::worker::shared::Reloads;
use crate::worker::shared::Shared;
use plimsoll_core::Engine;
use plimsoll_core::telemetry::status::Status;
use std::sync::Mutex;
use std::time::Duration;

/// What one request of the operator's sees.
#[derive(Clone, Debug)]
pub(super) struct Scrape {
    pub(super) status: Status,
    pub(super) shell: ShellFigures,
    /// When the settings in force came into force, in Unix time.
    pub(super) in_force_since: Duration,
    pub(super) log_lines_dropped: u64,
    pub(super) seed_from: SeedSource,
    /// When the loops last ran, in Unix time.
    pub(super) last_step: Duration,
    pub(super) process: ProcessFigures,
}

/// The figures that only a gateway has, or only a controller.
#[derive(Clone, Debug)]
pub(super) enum ShellFigures {
    Gateway(Box<GatewayFigures>),
    Controller(ControllerFigures),
}

/// What only a gateway has: connections, servers, and what an operator can order.
#[derive(Clone, Debug)]
pub(super) struct GatewayFigures {
    /// The servers of each upstream, by the plant's number.
    pub(super) rosters: Vec<RosterStatus>,
    pub(super) reloads: Reloads,
    pub(super) access_log_lines_dropped: u64,
    /// The number of requests whose spans were sent to a collector, and of those whose spans were lost.
    pub(super) traced: [u64; 2],
    pub(super) buffered: Buffered,
    /// The number of client handshakes that were full, that resumed an earlier session, and that failed.
    pub(super) handshakes: [u64; 3],
    /// Until when certificates are valid.
    pub(super) certificate_ends: Vec<CertificateEnd>,
    pub(super) http2: Http2Status,
    /// Client connections that are open.
    pub(super) connections: usize,
    /// Connections that were closed when they came, by why.
    pub(super) turned_away: TurnedAwayCounts,
    /// How nftables turns clients away, where it does.
    pub(super) shed: Option<ShedStatus>,
}

impl GatewayFigures {
    fn take(shared: &Shared) -> Self {
        let tables = shared.tables.current();
        GatewayFigures {
            rosters: tables.rosters(shared.clock.now()),
            reloads: *lock(&shared.reloads),
            access_log_lines_dropped: tables.access_logs.dropped(),
            traced: tables.traced.read(),
            buffered: shared.storage.buffered(),
            handshakes: shared.tls.handshakes.counts(),
            certificate_ends: shared.tls.certificate_ends(),
            connections: shared.connections(),
            turned_away: shared.clients.turned_away(),
            shed: shared.shed.status(),
            http2: shared.floods.status(tables.settings.limits.streams),
        }
    }
}

impl Scrape {
    /// The scrape of a gateway.
    pub(super) fn take(engine: &Mutex<Engine>, shared: &Shared, owner: Option<&dyn Owner>) -> Self {
        let status = lock(engine).status();
        let figures = GatewayFigures::take(shared);
        Scrape {
            last_step: since_1970().saturating_sub(shared.clock.now().since(status.at)),
            process: ProcessFigures::read(),
            status,
            in_force_since: figures.reloads.in_force_since,
            log_lines_dropped: owner.map_or(0, |owner| owner.log_lines_dropped()),
            seed_from: shared.tables.current().settings.hash_seed_from,
            shell: ShellFigures::Gateway(Box::new(figures)),
        }
    }

    pub(super) fn kind(&self) -> ShellKind {
        match self.shell {
            ShellFigures::Gateway(_) => ShellKind::Gateway,
            ShellFigures::Controller(_) => ShellKind::Controller,
        }
    }

    pub(super) fn gateway(&self) -> Option<&GatewayFigures> {
        match &self.shell {
            ShellFigures::Gateway(own) => Some(own),
            ShellFigures::Controller(_) => None,
        }
    }

    pub(super) fn controller(&self) -> Option<&ControllerFigures> {
        match &self.shell {
            ShellFigures::Controller(own) => Some(own),
            ShellFigures::Gateway(_) => None,
        }
    }

    /// The servers of a plant; no servers for a folder, and `None` in a controller.
    pub(super) fn roster(&self, plant: usize) -> Option<&RosterStatus> {
        const NONE: &RosterStatus =
            &RosterStatus { servers: Vec::new(), retries: [0; 2], lookup_failure: None };
        self.gateway().map(|own| own.rosters.get(plant).unwrap_or(NONE))
    }
}
