//! A thread's own data, and the data that all threads share: the context in which connections and requests are served.
//!
//! Each thread has one [`Worker`]: its lane of the engine, its connections' slots, the clients that it waits for. Threads share
//! only [`Shared`], and of that a request needs only the engine's words and the lists of idle upstream connections. Verdicts
//! and connections for a thread come by its [`mailbox`]. [`tables`] are the settings in force, with what serves each plant,
//! under the numbers whose names the access log says. [`memory`] is given back after a burst.
//!
//! Not here: the loops that a thread runs (`runtime`), and a request's way (`request`), which both work in this context.

pub(crate) mod mailbox;
pub(crate) mod memory;
pub(crate) mod shared;
pub(crate) mod tables;

use crate::client::awaited_clients::{AwaitedClients, make_room_in_files};
use crate::client::buffers;
use crate::client::slots::{Slot, Slots};
use memory::HighWater;
use plimsoll_core::Lane;
use plimsoll_core::random::Random;
use plimsoll_core::request::{Outcome, Verdict, Verdicts};
use plimsoll_core::time::Instant;
use shared::Shared;
use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Waker;
use std::time::{Duration, SystemTime};
use tables::ThreadTables;

/// A connection is ended to make room only after it has waited this long: its client may be about to send.
const LEAST_IDLE: Duration = Duration::from_secs(1);

/// The approximate memory of a connection, and the additional memory while it is ready to serve a request, without its buffers.
const ABOUT_A_CONNECTION: usize = 1024;
const ABOUT_READY: usize = 3072;

/// The data of one thread.
pub(crate) struct Worker {
    pub index: usize,
    pub shared: Arc<Shared>,
    pub lane: RefCell<Lane>,
    pub slots: RefCell<Slots>,
    /// Clients that have not sent all of a head, and all others that are waited for.
    pub heads: Rc<RefCell<AwaitedClients>>,
    pub slow: Rc<RefCell<AwaitedClients>>,
    /// HTTP/2 connections, and the memory that they hold besides their clients' bytes.
    pub http2: Rc<RefCell<AwaitedClients>>,
    /// The memory of requests that wait for their place (bytes).
    pub waiting: Cell<usize>,
    /// Clients in `slow` whose bytes are in files.
    pub filed: Rc<RefCell<AwaitedClients>>,
    /// How many connections serve requests, or did a moment ago.
    pub ready: Cell<usize>,
    memory: Cell<HighWater>,
    tables: RefCell<Rc<ThreadTables>>,
    /// The random numbers for identifiers of traces.
    pub random: RefCell<Random>,
    /// The value of the `date` field.
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

    /// The time that lies `timeout` after about now.
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

    /// Calls the engine and delivers the verdicts that the call produces.
    pub(crate) fn with_lane<T>(&self, call: impl FnOnce(&mut Lane, Instant, &mut Verdicts) -> T) -> T {
        self.shared.mailboxes[self.index].remind();
        let now = self.now();
        let mut verdicts = self.verdicts.take();
        let result = call(&mut self.lane.borrow_mut(), now, &mut verdicts);
        self.act_on(&mut verdicts);
        self.verdicts.replace(verdicts);
        result
    }

    /// Delivers a verdict that came from another thread.
    pub(crate) fn take_verdict(&self, verdict: Verdict) {
        let mut verdicts = self.verdicts.take();
        verdicts.push(verdict);
        self.act_on(&mut verdicts);
        self.verdicts.replace(verdicts);
    }

    /// Delivers verdicts in order, and those that the delivery produces. The vector keeps its memory.
    fn act_on(&self, verdicts: &mut Verdicts) {
        let mut more = Verdicts::new();
        while !verdicts.is_empty() {
            for verdict in verdicts.drain(..) {
                self.act(verdict, &mut more);
            }
            verdicts.append(&mut more);
        }
    }

    /// Delivers one verdict: to another thread, or to a request of this one. If the request is gone, its place goes to the next
    /// request in the queue, which may produce more verdicts.
    fn act(&self, verdict: Verdict, more: &mut Verdicts) {
        if verdict.token().lane() != self.index {
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

    /// Takes new tables if any were published: between requests, and before a number from the engine is looked up.
    pub(crate) fn renew(&self) {
        if self.tables.borrow().generation != self.shared.tables.generation() {
            let before = self.tables();
            // If a folder cannot be opened, the reload has reported it, and requests for it fail.
            let tables = ThreadTables::new(&self.shared.tables, Some(&before), &mut None);
            self.tables.replace(Rc::new(tables));
        }
    }

    /// How many bytes of buffers this thread may use before bodies and responses go to files early. Clients that are waited for
    /// and waiting requests together may hold the same number, and the requests at most half of it.
    pub(crate) fn buffer_memory(&self) -> usize {
        let most = self.tables.borrow().settings.limits.buffer_memory / self.shared.mailboxes.len() as u64;
        usize::try_from(most).unwrap_or(usize::MAX)
    }

    /// How many bytes the clients that this thread waits for may hold: the part that waiting requests leave.
    pub(crate) fn standing_memory(&self) -> usize {
        self.buffer_memory().saturating_sub(self.waiting.get())
    }

    /// Whether room in files is scarce, so that clients with bytes in files must keep their pace.
    pub(crate) fn are_files_scarce(&self) -> bool {
        self.shared.storage.is_scarce(&self.tables.borrow().settings.limits)
    }

    /// If room in files is scarce, gives up the client whose bytes have been in a file the longest.
    pub(crate) fn spare_files(&self) {
        if self.are_files_scarce() {
            make_room_in_files(&self.filed);
        }
    }

    /// How many bytes this thread's HTTP/2 connections may hold besides their clients' bytes.
    pub(crate) fn http2_memory(&self) -> usize {
        self.buffer_memory().saturating_mul(2)
    }

    /// How many bytes the unfinished heads of this thread may hold.
    pub(crate) fn head_memory(&self) -> usize {
        self.tables.borrow().settings.limits.head_memory / self.shared.mailboxes.len()
    }

    /// Gives memory back to the system if the thread holds much less than before.
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

    /// Does the work of each tenth of a second: ends expired connections, takes published tables, and frees unneeded memory.
    pub(crate) fn look_around(&self) {
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

    /// Ends the connection that has been idle the longest. False if no connection has been idle for [`LEAST_IDLE`].
    pub(crate) fn end_idle(&self) -> bool {
        // Connections are ended one at a time: the place of the last one counts as free only once it is gone.
        if self.ending.borrow().upgrade().is_some_and(|slot| slot.expired()) {
            return true;
        }
        let Some(slot) = self.slots.borrow().expire_idle(self.now(), LEAST_IDLE) else { return false };
        self.ending.replace(Rc::downgrade(&slot));
        true
    }
}
