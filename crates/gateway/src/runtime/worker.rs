//! A worker thread: its runtime, its lane of the engine, its connections, its mailbox.
//!
//! Each worker thread has a single-threaded runtime, and a connection stays on its thread. Threads share nothing on the
//! path of a request but the engine's words and the lists of idle upstream connections.

use super::acceptor;
use super::mailbox::{Mailbox, Message};
use super::memory::{self, HighWater};
use super::reload::Reloads;
use super::tables::{PublishedTables, ThreadTables};
use crate::client::awaited_clients::{AwaitedClients, make_room_in_files};
use crate::client::buffers;
use crate::client::slots::{Slot, Slots, lane_of, token_of};
use crate::client::spill_files::Storage;
use crate::clock::Clock;
use crate::http2::floods::EndedConnections;
use crate::listen::accepted::Accepted;
use crate::listen::bound::Listening;
use crate::listen::clients::ClientConnections;
use crate::listen::kernel_shed::ShedState;
use crate::listen::placement::SpareTime;
use crate::request::entrance;
use crate::transport::tls::server::TlsServer;
use crate::upstream::checks::Checks;
use crate::upstream::loop_mark::LoopMark;
use plimsoll_core::Lane;
use plimsoll_core::random::Random;
use plimsoll_core::request::{Outcome, Verdict, Verdicts};
use plimsoll_core::time::Instant;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker, ready};
use std::time::{Duration, SystemTime};

/// How often deadlines, stale connections and the date are looked after.
const INTERVAL: Duration = Duration::from_millis(100);

/// A connection is ended to make room only after it has waited this long: its client may be about to send.
const LEAST_IDLE: Duration = Duration::from_secs(1);

/// What a connection takes, and what it takes besides while it is ready to serve a request, without its buffers.
const ABOUT_A_CONNECTION: usize = 1024;
const ABOUT_READY: usize = 3072;

/// What all threads share.
pub(crate) struct Shared {
    pub tables: PublishedTables,
    pub clock: Clock,
    pub mailboxes: Vec<Arc<Mailbox>>,
    pub spare: Arc<[SpareTime]>,
    pub draining: AtomicBool,
    /// Connections without a request are ended: at once where the gateway stops, after a while where another takes its place.
    pub ends_idle: AtomicBool,
    pub reloads: Mutex<Reloads>,
    pub storage: Arc<Storage>,
    pub tls: TlsServer,
    pub floods: EndedConnections,
    pub clients: Arc<ClientConnections>,
    /// Clients that the system is to turn away for a while.
    pub shed: Arc<ShedState>,
    /// What requests carry that this gateway has sent on.
    pub mark: LoopMark,
    /// How many workers plants have reported since the last tick, each with the plant's number.
    pub reported_workers: Mutex<Vec<(usize, u32)>>,
}

impl Shared {
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
            if let Some(mailbox) = self.mailboxes.get(lane_of(token_of(&verdict))) {
                mailbox.post(Message::Verdict(verdict));
            }
        }
    }
}

/// What belongs to one thread alone.
pub(crate) struct Worker {
    pub index: usize,
    pub shared: Arc<Shared>,
    pub lane: RefCell<Lane>,
    pub slots: RefCell<Slots>,
    /// Clients that have not sent all of a head, and all others that are waited for.
    pub heads: Rc<RefCell<AwaitedClients>>,
    pub slow: Rc<RefCell<AwaitedClients>>,
    /// Connections of HTTP/2, and what they hold besides their clients' bytes.
    pub http2: Rc<RefCell<AwaitedClients>>,
    /// What requests that wait for their place hold, in bytes.
    pub waiting: Cell<usize>,
    /// Those of the others whose bytes are in files.
    pub filed: Rc<RefCell<AwaitedClients>>,
    /// How many connections serve requests, or did a moment ago.
    pub ready: Cell<usize>,
    memory: Cell<HighWater>,
    tables: RefCell<Rc<ThreadTables>>,
    /// For identifiers of traces.
    pub random: RefCell<Random>,
    /// For the `date` field.
    pub date: RefCell<String>,
    verdicts: RefCell<Verdicts>,
    /// Now, to a tenth of a second: good enough for deadlines and free to read.
    coarse: Cell<Instant>,
    pub acceptors: RefCell<Vec<Waker>>,
    /// The idle connection that was ended last, to make room.
    ending: RefCell<Weak<Slot>>,
}

impl Worker {
    pub(crate) fn new(index: usize, shared: Arc<Shared>, lane: Lane) -> io::Result<Rc<Self>> {
        let mut failed = None;
        let tables = ThreadTables::new(&shared.tables, None, &mut failed);
        if let Some(error) = failed {
            return Err(error);
        }
        let worker = Worker {
            index,
            lane: RefCell::new(lane),
            slots: RefCell::default(),
            heads: Rc::default(),
            slow: Rc::default(),
            filed: Rc::default(),
            http2: Rc::default(),
            waiting: Cell::default(),
            ready: Cell::default(),
            memory: Cell::default(),
            tables: RefCell::new(Rc::new(tables)),
            random: RefCell::new(Random::new(RandomState::new().hash_one(index))),
            date: RefCell::default(),
            verdicts: RefCell::default(),
            coarse: Cell::new(shared.clock.now()),
            acceptors: RefCell::default(),
            ending: RefCell::default(),
            shared,
        };
        worker.look_around();
        Ok(Rc::new(worker))
    }

    pub(crate) fn now(&self) -> Instant {
        let now = self.shared.clock.now();
        self.coarse.set(now);
        now
    }

    /// The time `timeout` from about now.
    pub(crate) fn after(&self, timeout: Duration) -> Instant {
        self.coarse.get() + timeout
    }

    /// About now, without reading the clock.
    pub(crate) fn coarse(&self) -> Instant {
        self.coarse.get()
    }

    /// Whether no connection is accepted any more, and each connection's next answer is its last.
    pub(crate) fn is_draining(&self) -> bool {
        self.shared.draining.load(Relaxed)
    }

    /// Whether a connection without a request is to end.
    pub(crate) fn ends_idle(&self) -> bool {
        self.shared.ends_idle.load(Relaxed)
    }

    /// Calls the engine and acts on the verdicts that come of the call.
    pub(crate) fn with_lane<T>(&self, call: impl FnOnce(&mut Lane, Instant, &mut Verdicts) -> T) -> T {
        self.shared.mailboxes[self.index].remind();
        let now = self.now();
        let mut verdicts = self.verdicts.take();
        let result = call(&mut self.lane.borrow_mut(), now, &mut verdicts);
        self.act_on(&mut verdicts);
        self.verdicts.replace(verdicts);
        result
    }

    /// Delivers verdicts in their order, and those that come of delivering them. The vector keeps its memory.
    fn act_on(&self, verdicts: &mut Verdicts) {
        let mut more = Verdicts::new();
        while !verdicts.is_empty() {
            for verdict in verdicts.drain(..) {
                self.act(verdict, &mut more);
            }
            verdicts.append(&mut more);
        }
    }

    /// Delivers one verdict: to another thread, or to a request of this one. The place of a request that is gone goes
    /// to the next request, which may bring more verdicts.
    fn act(&self, verdict: Verdict, more: &mut Verdicts) {
        if lane_of(token_of(&verdict)) != self.index {
            return self.shared.deliver(std::iter::once(verdict));
        }
        let undelivered = self.slots.borrow().deliver(verdict);
        if let Err(Verdict::Start(_, permit)) = undelivered {
            let now = self.now();
            self.lane.borrow_mut().depart(now, permit, Outcome::Abandoned, more);
        }
    }

    pub(crate) fn tables(&self) -> Rc<ThreadTables> {
        self.tables.borrow().clone()
    }

    /// Takes new tables if any were published: between requests, and before a number that the engine gave is looked up.
    pub(crate) fn renew(&self) {
        if self.tables.borrow().generation != self.shared.tables.generation() {
            let before = self.tables();
            // The reload has reported a folder that cannot be opened: requests for it fail.
            let tables = ThreadTables::new(&self.shared.tables, Some(&before), &mut None);
            self.tables.replace(Rc::new(tables));
        }
    }

    /// How many bytes of buffers this thread may use before bodies and responses go to files early, and how many may be held by
    /// clients that are waited for and requests that wait, the latter at most half.
    pub(crate) fn buffer_memory(&self) -> usize {
        let most = self.tables.borrow().settings.limits.buffer_memory / self.shared.mailboxes.len() as u64;
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// How many bytes the clients that this thread waits for may hold: what requests that wait for their place leave.
    pub(crate) fn standing_memory(&self) -> usize {
        self.buffer_memory().saturating_sub(self.waiting.get())
    }

    /// Whether clients that hold room in files must keep up.
    pub(crate) fn are_files_scarce(&self) -> bool {
        self.shared.storage.is_scarce(&self.tables.borrow().settings.limits)
    }

    /// Gives up the client that has stood the longest with bytes in a file, if room in files is scarce.
    pub(crate) fn spare_files(&self) {
        if self.are_files_scarce() {
            make_room_in_files(&self.filed);
        }
    }

    /// How many bytes the connections of HTTP/2 of this thread may hold besides their clients' bytes.
    pub(crate) fn http2_memory(&self) -> usize {
        self.buffer_memory().saturating_mul(2)
    }

    /// How many bytes the unfinished heads of this thread may hold.
    pub(crate) fn head_memory(&self) -> usize {
        self.tables.borrow().settings.limits.head_memory / self.shared.mailboxes.len()
    }

    /// Gives memory back if the thread holds much less than it did.
    fn look_at_memory(&self, now: Instant) {
        let connections = self.shared.mailboxes[self.index].connections.load(Relaxed);
        let tasks = connections * ABOUT_A_CONNECTION + self.ready.get() * ABOUT_READY;
        let held = buffers::in_memory()
            + self.heads.borrow().bytes()
            + self.slow.borrow().bytes()
            + self.http2.borrow().bytes()
            + tasks;
        let mut water = self.memory.get();
        if water.has_fallen(now, held) {
            memory::give_back();
            water.gave_back(now, self.now());
        }
        self.memory.set(water);
    }

    fn look_around(&self) {
        self.renew();
        let now = self.now();
        self.slots.borrow().expire(now);
        self.shared.spare[self.index].report(now);
        self.shared.mailboxes[self.index].remind();
        let tables = self.tables();
        for upstream in tables.plants.iter().filter_map(|row| row.upstream.as_ref()) {
            upstream.pool.close_stale(self.index, now, tables.settings.timeouts.upstream_keep_alive);
            if self.index == 0 {
                upstream.pool.roster().look(now);
            }
        }
        buffers::keep_within(self.buffer_memory());
        buffers::trim();
        self.look_at_memory(now);
        self.shared.storage.note_memory(self.index, buffers::in_use());
        self.date.replace(httpdate::fmt_http_date(SystemTime::now()));
    }

    pub(crate) fn adopt(self: &Rc<Self>, accepted: Accepted) {
        tokio::task::spawn_local(entrance::enter(self.clone(), accepted));
    }

    /// Ends the connection that has been idle the longest. False if none has been idle for long enough.
    pub(crate) fn end_idle(&self) -> bool {
        // Connections are ended one at a time: the place of the last one counts as free only once it is gone.
        if self.ending.borrow().upgrade().is_some_and(|slot| slot.expired()) {
            return true;
        }
        let Some(slot) = self.slots.borrow().expire_idle(self.now(), LEAST_IDLE) else { return false };
        self.ending.replace(Rc::downgrade(&slot));
        true
    }

    /// Acts on a message. False if the thread is to stop.
    fn receive(self: &Rc<Self>, message: Message) -> bool {
        match message {
            Message::Verdict(verdict) => {
                let mut verdicts = self.verdicts.take();
                verdicts.push(verdict);
                self.act_on(&mut verdicts);
                self.verdicts.replace(verdicts);
            }
            Message::Connection(accepted) => self.adopt(accepted),
            // There may be room again by now.
            Message::EndIdle if acceptor::is_full(self) => {
                self.end_idle();
            }
            Message::EndIdle => {}
            Message::Drain => {
                self.acceptors.take().into_iter().for_each(Waker::wake);
                self.slots.borrow().wake_all();
            }
            Message::Stop => return false,
        }
        true
    }

    /// Runs until the thread is told to stop. Must be called in a local runtime.
    pub(crate) async fn run(self: Rc<Self>, listeners: Vec<Listening>) {
        for listener in listeners {
            tokio::task::spawn_local(acceptor::run(self.clone(), listener));
        }
        let worker = self.clone();
        tokio::task::spawn_local(async move {
            let mut interval = tokio::time::interval_at(tokio::time::Instant::now() + INTERVAL, INTERVAL);
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            let mut checks = Checks::new(RandomState::new().hash_one(0_u8));
            loop {
                interval.tick().await;
                worker.look_around();
                if worker.index == 0 {
                    let due = checks.due(worker.coarse(), worker.tables().checked());
                    due.into_iter().for_each(|check| {
                        drop(tokio::task::spawn_local(check.run(worker.shared.clock)));
                    });
                }
            }
        });
        let mut messages = Vec::new();
        poll_fn(|context| {
            loop {
                ready!(self.shared.mailboxes[self.index].poll_take(context, &mut messages));
                for message in messages.drain(..) {
                    if !self.receive(message) {
                        return Poll::Ready(());
                    }
                }
            }
        })
        .await;
    }
}
