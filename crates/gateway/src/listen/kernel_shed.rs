//! Clients that the system itself turns away, before any process is woken for them: nftables, for `[kernel] shed`.
//!
//! A client that was turned away at accept was told by `Retry-After` when to come again. Until then it stands in a set of
//! nftables, and the system resets each connection that it begins to a listener of the gateway. So the decision stays the
//! engine's, a client hears of it before it is shed, and no client is shed for longer than it was told.
//!
//! **The loop goes on counting.** Twice a second the resets are read, and each counts as a request of a client of the set, one
//! after the other: arrived and rejected, in its class. Clients that would not be rejected any more leave the set then.
//!
//! **The table is the gateway's alone**, named after all addresses that it guards ([`table`]). It is made anew at the start,
//! which removes a table that a crash has left. It is removed at the end, unless the process that replaces this one has made it
//! anew. A gateway that starts without `shed` removes a table of its name. A table that a crash has left matches no client
//! after a minute at most, since entries expire.
//!
//! Not here: XDP and other earlier hooks, which need a driver's help; clients behind trusted proxies, whose address is the
//! proxy's; connections that are already open.

mod table;

pub(crate) use table::ShedTable;

use super::clients::{ClientConnections, TurnedAway};
use crate::background::Background;
use crate::clock::Clock;
use crate::sync::lock;
use plimsoll_core::Engine;
use plimsoll_core::request::client_address;
use plimsoll_core::time::Instant;
use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The time between two updates of the set.
const INTERVAL: Duration = Duration::from_millis(500);
/// The most clients of a set. Further clients are turned away at accept, as without the set.
const MOST: usize = 50_000;
/// The longest time in the set. A client that was told to stay away for longer asks once a minute.
const LONGEST: Duration = Duration::from_secs(60);

/// What all threads share: whom they have told, and how the set follows.
#[derive(Debug, Default)]
pub(crate) struct ShedState {
    /// Clients that were turned away lately, and until when they were told to stay away.
    told: Mutex<Vec<(IpAddr, Instant)>>,
    status: Mutex<Option<ShedStatus>>,
    /// Why the set does not follow, until it is logged.
    news: Mutex<Option<String>>,
}

/// Whether the set follows the loop.
#[derive(Clone, Debug)]
pub(crate) struct ShedStatus {
    /// The table's name.
    pub table: String,
    /// How often the set could not be updated.
    pub failures: u64,
    /// Why the last update failed; `None` if it did not.
    pub failing: Option<String>,
}

impl ShedState {
    pub(crate) fn note(&self, client: IpAddr, until: Instant) {
        let mut told = lock(&self.told);
        if told.len() < MOST {
            told.push((client, until));
        }
    }

    /// `None` if the system turns no client away.
    pub(crate) fn status(&self) -> Option<ShedStatus> {
        lock(&self.status).clone()
    }

    /// Why the set could not be updated, if that is new.
    pub(crate) fn take_news(&self) -> Option<String> {
        lock(&self.news).take()
    }

    fn begins(&self, table: &ShedTable) {
        *lock(&self.status) = Some(ShedStatus { table: table.name.clone(), failures: 0, failing: None });
    }

    fn followed(&self, result: Result<(), String>) {
        let mut status = lock(&self.status);
        let Some(status) = &mut *status else { return };
        let was_failing = status.failing.is_some();
        status.failing = result.err();
        if let Some(why) = &status.failing {
            status.failures += 1;
            if !was_failing {
                *lock(&self.news) = Some(why.clone());
            }
        }
    }
}

/// The thread that updates the set.
#[derive(Debug)]
pub(crate) struct KernelShed {
    table: ShedTable,
    thread: Background,
}

impl KernelShed {
    /// Makes the table, and keeps its set up to date from then on.
    ///
    /// # Errors
    /// The program nft is missing, may not change rules, or refuses these rules.
    pub(crate) fn start(
        table: ShedTable,
        engine: Arc<Mutex<Engine>>,
        state: Arc<ShedState>,
        clients: Arc<ClientConnections>,
        clock: Clock,
    ) -> io::Result<Self> {
        table.make().map_err(|why| {
            let what = "[kernel] shed: nft cannot make its table: ";
            let help = "; install nftables, and run the gateway with CAP_NET_ADMIN, or leave `shed` out";
            io::Error::other(format!("{what}{why}{help}"))
        })?;
        state.begins(&table);
        let keeper = Keeper { table: table.clone(), engine, state, clients, clock, held: Held::default() };
        let thread = Background::start("kernel-shed", |ending| keeper.run(ending))?;
        Ok(KernelShed { table, thread })
    }

    /// Ends the thread and removes the table, unless another process has made it anew.
    pub(crate) fn stop(&self) {
        if self.thread.stop() {
            self.table.remove_own();
        }
    }
}

/// What the thread owns.
struct Keeper {
    table: ShedTable,
    engine: Arc<Mutex<Engine>>,
    state: Arc<ShedState>,
    clients: Arc<ClientConnections>,
    clock: Clock,
    held: Held,
}

impl Keeper {
    fn run(mut self, ending: &AtomicBool) {
        loop {
            thread::park_timeout(INTERVAL);
            if ending.load(Relaxed) {
                return;
            }
            // If the operator's firewall was loaded anew, all tables are gone and this one is made again.
            let followed = self.follow().or_else(|_| self.make_anew());
            self.state.followed(followed);
        }
    }

    fn make_anew(&mut self) -> Result<(), String> {
        self.held = Held::default();
        self.table.make()
    }

    /// Counts the resets since the last call, and updates the set.
    fn follow(&mut self) -> Result<(), String> {
        let now = self.clock.now();
        // Resets are read before the set changes, so that those of clients that leave now are counted too.
        if !self.held.clients.is_empty() {
            let resets = self.table.take_resets()?;
            self.clients.count_many(TurnedAway::Kernel, resets);
            let mut engine = lock(&self.engine);
            self.held.turns(resets).for_each(|client| engine.count_rejected_client(now, client));
        }
        let told = std::mem::take(&mut *lock(&self.state.told));
        let added = self.held.add(now, told);
        let mut engine = lock(&self.engine);
        let lifted = self.held.lift(now, |client| engine.rejects_client(client));
        drop(engine);
        self.table.change(&added, &lifted)
    }
}

/// The clients of the set, each with the time until which it stays.
#[derive(Debug, Default)]
struct Held {
    until: HashMap<IpAddr, Instant>,
    /// The clients of the set when it last changed, in order.
    clients: Vec<IpAddr>,
    /// The number of resets counted so far, by which clients take turns.
    turn: usize,
}

impl Held {
    /// The next `count` of the clients, one after the other.
    fn turns(&mut self, count: u64) -> impl Iterator<Item = IpAddr> {
        let from = self.turn;
        self.turn = from.wrapping_add(count as usize);
        let clients = &self.clients;
        (0..count as usize).map(move |number| clients[from.wrapping_add(number) % clients.len()])
    }

    /// Clients that come into the set, and for how long.
    fn add(&mut self, now: Instant, told: Vec<(IpAddr, Instant)>) -> Vec<(IpAddr, Duration)> {
        let mut added = Vec::new();
        for (client, until) in told {
            let (client, wait) = (client_address(client), until.since(now).min(LONGEST));
            // A wait that ends before the next update is not worth an entry.
            if wait > INTERVAL && self.until.len() < MOST && self.until.insert(client, now + wait).is_none() {
                added.push((client, wait));
            }
        }
        added
    }

    /// Removes clients whose time is over. Returns the clients that must leave the set before their time, because they would no
    /// longer be rejected.
    fn lift(&mut self, now: Instant, mut is_rejected: impl FnMut(IpAddr) -> bool) -> Vec<IpAddr> {
        self.until.retain(|_, until| now < *until);
        self.clients = self.until.keys().copied().collect();
        self.clients.sort_unstable();
        let lifted: Vec<IpAddr> =
            self.clients.iter().copied().filter(|client| !is_rejected(*client)).collect();
        for client in &lifted {
            self.until.remove(client);
        }
        lifted
    }
}

#[cfg(test)]
mod tests;
