//! `/status`: what the engine knows, as one JSON object.
//!
//! [`StatusDocument`] borrows from a [`Scrape`]. Its fields are the keys of the document, each with its unit in its name;
//! durations are seconds. A figure that is not known yet, or is not finite, is `null`. Counters count from the start, and
//! every other figure is of the last control period.
//!
//! - `upstream`: upstreams and folders
//! - `site`: sites
//! - `class`: classes
//! - `reload`: what `POST /reload` answers with

use super::controller::ControllerFigures;
use super::journal::{PromiseRow, View};
use super::scrape::Scrape;
use crate::client::spill_files::Buffered;
use crate::http2::floods::{self, Http2Status};
use crate::listen::kernel_shed::ShedStatus;
use crate::settings::SeedSource;
use plimsoll_core::promises::Mode;
use plimsoll_core::promises::plan::PlantPlan;
use plimsoll_core::telemetry::status::{ClassStatus, PlantStatus, Status};
use serde::Serialize;
use std::collections::BTreeMap;

/// The document as indented JSON with a line's end.
pub(super) fn render(document: &impl Serialize) -> String {
    // The documents of this module hold texts, numbers and lists of them: writing these to a string cannot fail.
    serde_json::to_string_pretty(document).unwrap_or_default() + "\n"
}

/// The plants that are promised, or still at work, with their numbers.
pub(super) fn plants(status: &Status) -> impl Iterator<Item = (usize, &PlantStatus)> {
    status.plants.iter().enumerate().filter(|(_, plant)| !plant.is_gone())
}

/// The classes that are promised, or have requests under way.
pub(super) fn classes(status: &Status) -> impl Iterator<Item = &ClassStatus> {
    status.classes.iter().filter(|class| !class.is_gone())
}

/// The configuration's word for a mode.
pub const fn mode_word(mode: Mode) -> &'static str {
    match mode {
        Mode::Control => "control",
        Mode::Observe => "observe",
        Mode::Off => "off",
    }
}

/// A type that serializes to a JSON object: each key with its type, and where its value comes from.
macro_rules! document {
    ($(#[$doc:meta])* $visibility:vis $name:ident$(<$life:lifetime>)?($($from:tt)*) {
        $($(#[$how:meta])* $key:ident: $type:ty = $value:expr,)+
    }) => {
        $(#[$doc])*
        #[derive(Debug, Serialize)]
        #[cfg_attr(test, derive(ts_rs::TS))]
        $visibility struct $name$(<$life>)? {
            $($(#[$how])* $key: $type,)+
        }
        impl$(<$life>)? $name$(<$life>)? {
            $visibility fn new($($from)*) -> Self {
                $name { $($key: $value,)+ }
            }
        }
    };
}

mod class;
mod reload;
mod site;
mod upstream;

use class::ClassDocument;
pub(super) use reload::ReloadDocument;
use site::SiteDocument;
use upstream::{PlanDocument, PlantDocument};

document! {
    /// What `/status` answers with.
    pub(super) StatusDocument<'a>(scrape: &'a Scrape, view: &'a View) {
        /// The program's version.
        version: &'static str = env!("CARGO_PKG_VERSION"),
        /// When it was asked (s, Unix time).
        unix_seconds: f64 = view.unix_seconds,
        /// When the last control period ended (s, by the clock of the loops, which begins with the process, and of a controller
        /// with the machine).
        at_seconds: f64 = scrape.status.at.as_secs_f64(),
        /// What the controller does: `control`, `observe` or `off`.
        mode: &'static str = mode_word(scrape.status.mode),
        /// The control period T.
        period_seconds: f64 = scrape.status.period.as_secs_f64(),
        /// c: the gateway's processor time for a rejection; null before anything was rejected.
        rejection_cost_seconds: Option<f64> = scrape.status.rejection_cost_seconds,
        /// All promises and how they are kept, the worst first.
        promises: &'a [PromiseRow] = &view.promises,
        /// How it is chosen which clients get the better level.
        clients: ClientsDocument = ClientsDocument::new(&scrape.status, scrape.seed_from),
        /// The processes of the server that attach to a controller; null in a gateway.
        controller: Option<ControllerDocument> = scrape.controller().map(ControllerDocument::new),
        /// What is kept for slow clients; null in a controller.
        buffers: Option<BuffersDocument> = scrape.gateway().map(|own| BuffersDocument::new(own.buffered)),
        /// The bounds of HTTP/2; null in a controller.
        http2: Option<Http2Document> = scrape.gateway().map(|own| Http2Document::new(own.http2)),
        /// Client connections that are open; null in a controller.
        connections: Option<usize> = scrape.gateway().map(|own| own.connections),
        /// Connections that were closed when they came, by why; null in a controller.
        connections_turned_away: Option<BTreeMap<&'static str, u64>> =
            scrape.gateway().map(|own| own.turned_away.map(|(why, count)| (why.as_str(), count)).into()),
        /// The table of nftables that resets connections in the gateway's place; null where there is none.
        kernel_shed: Option<KernelShedDocument<'a>> =
            scrape.gateway().and_then(|own| own.shed.as_ref()).map(KernelShedDocument::new),
        /// Upstreams and folders.
        upstreams: Vec<PlantDocument<'a>> = plants(&scrape.status)
            .map(|(number, plant)| PlantDocument::new(plant, scrape.roster(number))).collect(),
        /// The sites.
        sites: Vec<SiteDocument<'a>> =
            scrape.status.sites.iter().map(|site| SiteDocument::new(&scrape.status, site)).collect(),
        /// Contracts and delays of each upstream that has any, judged by the costs as they are known now.
        plan: Vec<PlanDocument<'a>> =
            scrape.status.plan.iter().filter(has_promises).map(PlanDocument::new).collect(),
        /// The classes of all sites, with `default` and `exempt`.
        classes: Vec<ClassDocument<'a>> = numbered_classes(scrape, view).collect(),
    }
}

document! {
    /// The processes of a server that decide themselves, and the controller's view of them.
    ControllerDocument(own: &ControllerFigures) {
        /// The most processes that may attach.
        lanes: usize = own.lanes,
        /// Processes that are attached.
        attached: usize = own.attached,
        /// Processes that were found dead while they were attached, since the state was made.
        deaths: u64 = own.deaths,
        /// Requests that these held, which were returned and have failed.
        returned_requests: u64 = own.returned,
        /// Connections that wait in the server's listen queue, by the process that looked last; null if none has looked of
        /// late, and of a full queue, whose length says nothing.
        listen_queue: Option<u32> = own.listen_queue,
    }
}

document! {
    /// What is kept of requests and responses for slow clients, and how often a temporary file failed.
    BuffersDocument(buffered: Buffered) {
        /// Bytes in memory.
        memory_bytes: u64 = buffered.in_memory,
        /// Bytes in temporary files.
        file_bytes: u64 = buffered.in_files,
        /// Temporary files that could not be made, written or read.
        file_failures: u64 = buffered.failures,
    }
}

document! {
    /// HTTP/2: the limits of a connection, of its streams and of the frames that ask for nothing, and how many were ended for
    /// such frames.
    Http2Document(http2: Http2Status) {
        /// The most requests under way on one connection.
        streams: u32 = http2.streams,
        /// How many frames that ask for nothing a connection may send at once.
        idle_frames: u32 = floods::ALLOWANCE,
        /// How many more it may send in each second.
        idle_frames_per_second: u32 = floods::A_SECOND,
        /// Connections that were ended for such frames, by the kind of frame.
        ended: BTreeMap<&'static str, u64> = http2.ended.map(|(flood, count)| (flood.as_str(), count)).into(),
    }
}

document! {
    /// The table of nftables that resets connections of clients that were told to stay away, and whether it follows the loop.
    KernelShedDocument<'a>(shed: &'a ShedStatus) {
        /// The table's name: `nft list table inet` with it shows who is turned away.
        table: &'a str = &shed.table,
        /// How often it could not be brought up to date, which is tried twice a second.
        failures: u64 = shed.failures,
        /// Why it could not the last time, so that the gateway alone turns clients away; null where it could.
        failing: Option<&'a str> = shed.failing.as_deref(),
    }
}

document! {
    /// How it is chosen which clients get the better level: where the key of the hash is from, and whether the choice turns.
    ClientsDocument(status: &Status, seed: SeedSource) {
        /// Where the key of the hash is from: `configured` in the file, `kept` from an earlier run, or `drawn`.
        seed: &'static str = seed.as_str(),
        /// After what time the choice turns; null if it does not.
        rekey_seconds: Option<f64> = status.rekey.map(|rekey| rekey.as_secs_f64()),
    }
}

/// The classes that are shown, each with its last seconds.
fn numbered_classes<'a>(scrape: &'a Scrape, view: &'a View) -> impl Iterator<Item = ClassDocument<'a>> {
    let status = &scrape.status;
    let shown = status.classes.iter().zip(&view.recent).filter(|(class, _)| !class.is_gone());
    shown.map(|(class, recent)| ClassDocument::new(scrape, class, recent))
}

fn has_promises(plan: &&PlantPlan) -> bool {
    !plan.rows.is_empty() || !plan.delays.is_empty()
}

fn plant_name(status: &Status, plant: usize) -> Option<&str> {
    status.plants.get(plant).map(|plant| plant.name.as_str())
}
