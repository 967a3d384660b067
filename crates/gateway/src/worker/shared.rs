//! What all threads share.

use super::mailbox::{Mailbox, Message};
use super::tables::PublishedTables;
use crate::client::spill_files::Storage;
use crate::clock::{Clock, since_1970};
use crate::http2::floods::EndedConnections;
use crate::listen::accepted::Accepted;
use crate::listen::clients::ClientConnections;
use crate::listen::kernel_shed::ShedState;
use crate::listen::placement::SpareTime;
use crate::sync::RareNews;
use crate::transport::tls::server::TlsServer;
use crate::upstream::forwarding_loop::LoopMark;
use plimsoll_core::request::Verdict;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What all threads share.
pub(crate) struct Shared {
    pub tables: PublishedTables,
    pub clock: Clock,
    pub mailboxes: Vec<Arc<Mailbox>>,
    pub spare: Arc<[SpareTime]>,
    pub draining: AtomicBool,
    /// Connections without a request are ended: at once if the gateway stops, after a while if another process takes its place.
    pub ends_idle: AtomicBool,
    pub reloads: Mutex<Reloads>,
    pub storage: Arc<Storage>,
    pub tls: TlsServer,
    pub floods: EndedConnections,
    pub clients: Arc<ClientConnections>,
    /// How often no descriptor was left for a connection that came, and what was logged of that.
    pub unaccepted: (AtomicU64, RareNews),
    /// Clients that the system is to turn away until they may come again.
    pub shed: Arc<ShedState>,
    /// The mark on requests that this gateway has forwarded.
    pub mark: LoopMark,
    /// The numbers of workers that servers have reported since the last tick, each with the plant's number.
    pub reported_workers: Mutex<Vec<(usize, u32)>>,
}

impl Shared {
    /// Client connections that are open.
    pub(crate) fn connections(&self) -> usize {
        self.mailboxes.iter().map(|mailbox| mailbox.connections.load(Relaxed)).sum()
    }

    /// Client connections that are open, by thread.
    pub(crate) fn connections_by_thread(&self) -> Vec<usize> {
        self.mailboxes.iter().map(|mailbox| mailbox.connections.load(Relaxed)).collect()
    }

    pub(crate) fn give(&self, thread: usize, accepted: Accepted) {
        self.mailboxes[thread].connections.fetch_add(1, Relaxed);
        self.mailboxes[thread].post(Message::Connection(accepted));
    }

    /// Sends verdicts to the threads whose requests they are about.
    pub(crate) fn deliver(&self, verdicts: impl Iterator<Item = Verdict>) {
        for verdict in verdicts {
            if let Some(mailbox) = self.mailboxes.get(verdict.token().lane()) {
                mailbox.post(Message::Verdict(verdict));
            }
        }
    }
}

/// How often a gateway was asked to reload, and since when its settings have been in force.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reloads {
    /// Reloads that were applied, also if they changed nothing.
    pub applied: u64,
    /// Reloads that were refused and changed nothing.
    pub refused: u64,
    /// When the settings in force came into force, at the start or by the last reload applied; time since 1970.
    pub in_force_since: Duration,
}

impl Reloads {
    /// The counts of a gateway that starts now.
    pub(crate) fn start() -> Self {
        Reloads { in_force_since: since_1970(), ..Reloads::default() }
    }

    pub(crate) fn count(&mut self, is_applied: bool) {
        if is_applied {
            self.applied += 1;
            self.in_force_since = since_1970();
        } else {
            self.refused += 1;
        }
    }
}
