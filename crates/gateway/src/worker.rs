//! A thread of the gateway: its runtime, its lane, its connections, its mailbox.
//!
//! One single-threaded runtime per thread, and everything of a request stays on its thread, so nothing on the path
//! of a request is shared but the engine's words and the lists of idle upstream connections.

use crate::clock::Clock;
use crate::connection;
use crate::files::Files;
use crate::held::Held;
use crate::listen::acceptor;
use crate::listen::placement::SpareTime;
use crate::mailbox::{Mailbox, Message};
use crate::reload::Reloads;
use crate::settings::Backend;
use crate::slot::{Decision, Slot, Slots, lane_of};
use crate::tables::{Exchange, Tables};
use plimsoll_core::Lane;
use plimsoll_core::request::{Outcome, Permit, Token, Verdict, Verdicts};
use plimsoll_core::time::Instant;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker, ready};
use std::time::{Duration, SystemTime};
use tokio::net::TcpStream;

/// How often deadlines, stale connections and the date are looked after.
const LOOK_AROUND: Duration = Duration::from_millis(100);

/// A connection that waits for its next request is left alone for so long, however many wait for its place: its
/// client may be about to send.
const LEAST_IDLE: Duration = Duration::from_secs(1);

/// What all threads share.
pub(crate) struct Shared {
    pub tables: Exchange,
    pub clock: Clock,
    pub mailboxes: Vec<Arc<Mailbox>>,
    /// How much of its time each thread can spare.
    pub spare: Arc<[SpareTime]>,
    pub draining: AtomicBool,
    pub reloads: Mutex<Reloads>,
    /// How many workers plants say that they have, by index, since the last tick.
    pub told_workers: Mutex<Vec<(usize, u32)>>,
}

impl Shared {
    pub(crate) fn reloads(&self) -> MutexGuard<'_, Reloads> {
        // Three numbers: whole whatever else broke.
        self.reloads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a client's connection to a thread.
    pub(crate) fn give(&self, thread: usize, io: TcpStream, peer: IpAddr) {
        if let Ok(stream) = io.into_std() {
            self.mailboxes[thread].connections.fetch_add(1, Relaxed);
            self.mailboxes[thread].post(Message::Connection(stream, peer));
        }
    }

    /// Sends verdicts to the threads whose requests they are about.
    pub(crate) fn deliver(&self, verdicts: impl Iterator<Item = Verdict>) {
        for verdict in verdicts {
            let (Verdict::Start(token, _) | Verdict::Drop { token, .. }) = &verdict;
            if let Some(mailbox) = self.mailboxes.get(lane_of(*token)) {
                mailbox.post(Message::Verdict(verdict));
            }
        }
    }
}

/// The tables of now, as a thread holds them: one count of its own instead of one that all threads write.
pub(crate) struct HeldTables {
    pub generation: u64,
    tables: Arc<Tables>,
    /// By plant; `None` for an upstream.
    pub files: Vec<Option<Rc<RefCell<Files>>>>,
}

impl std::ops::Deref for HeldTables {
    type Target = Tables;
    fn deref(&self) -> &Tables {
        &self.tables
    }
}

impl HeldTables {
    /// Holds them anew. A folder that stays keeps what is in memory; one that cannot be opened any more is `None`, or
    /// as it was.
    fn new(exchange: &Exchange, before: Option<&HeldTables>, failed: &mut Option<io::Error>) -> Self {
        // The word first: tables published in between are then held once more, not missed.
        let (generation, tables) = (exchange.generation(), exchange.current());
        let open = |(plant, backend): (usize, &Backend)| {
            let Backend::Files(settings) = backend else { return None };
            let known = before.and_then(|before| before.files.get(plant).cloned().flatten());
            let same = before.is_some_and(|before| before.settings.backends.get(plant) == Some(backend));
            if known.is_some() && same {
                return known;
            }
            match Files::new(settings.clone()) {
                Ok(files) => Some(Rc::new(RefCell::new(files))),
                Err(error) => {
                    *failed = Some(error);
                    known
                }
            }
        };
        let files = tables.settings.backends.iter().enumerate().map(open).collect();
        HeldTables { generation, files, tables }
    }
}

/// A thread's own.
pub(crate) struct Worker {
    pub index: usize,
    pub shared: Arc<Shared>,
    pub lane: RefCell<Lane>,
    pub slots: RefCell<Slots>,
    held: RefCell<Rc<HeldTables>>,
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
        let held = HeldTables::new(&shared.tables, None, &mut failed);
        if let Some(error) = failed {
            return Err(error);
        }
        let worker = Worker {
            index,
            lane: RefCell::new(lane),
            slots: RefCell::default(),
            held: RefCell::new(Rc::new(held)),
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

    /// Reads the clock.
    pub(crate) fn now(&self) -> Instant {
        let now = self.shared.clock.now();
        self.coarse.set(now);
        now
    }

    /// When `timeout` from about now has passed.
    pub(crate) fn after(&self, timeout: Duration) -> Instant {
        self.coarse.get() + timeout
    }

    /// About now, without reading the clock.
    pub(crate) fn coarse(&self) -> Instant {
        self.coarse.get()
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.shared.draining.load(Relaxed)
    }

    /// Calls the engine and acts on its verdicts.
    pub(crate) fn with_lane<T>(&self, call: impl FnOnce(&mut Lane, Instant, &mut Verdicts) -> T) -> T {
        self.shared.mailboxes[self.index].remind();
        let now = self.now();
        let mut verdicts = self.verdicts.take();
        let result = call(&mut self.lane.borrow_mut(), now, &mut verdicts);
        self.act_on(&mut verdicts);
        self.verdicts.replace(verdicts);
        result
    }

    /// Delivers verdicts in their order, and those that come of it. They leave their memory for the next ones.
    fn act_on(&self, verdicts: &mut Verdicts) {
        let mut more = Verdicts::new();
        while !verdicts.is_empty() {
            for verdict in verdicts.drain(..) {
                self.act(verdict, &mut more);
            }
            verdicts.append(&mut more);
        }
    }

    /// Delivers one verdict. A start for a request that is gone hands its slot on, which may bring more verdicts.
    fn act(&self, verdict: Verdict, more: &mut Verdicts) {
        let (token, decision) = match verdict {
            Verdict::Start(token, _) | Verdict::Drop { token, .. } if lane_of(token) != self.index => {
                return self.shared.deliver(std::iter::once(verdict));
            }
            Verdict::Start(token, permit) => (token, Decision::Start(permit)),
            Verdict::Drop { token, reason, retry_after } => (token, Decision::Drop { reason, retry_after }),
        };
        self.decide(token, decision, more);
    }

    /// Hands a decision to a request of this thread. A start for one that is gone hands its slot on.
    fn decide(&self, token: Token, decision: Decision, more: &mut Verdicts) {
        let refused = self.slots.borrow().decide(token, decision);
        if let Err(Decision::Start(permit)) = refused {
            let now = self.now();
            self.lane.borrow_mut().depart(now, permit, Outcome::Abandoned, more);
        }
    }

    /// The tables that this thread holds.
    pub(crate) fn tables(&self) -> Rc<HeldTables> {
        self.held.borrow().clone()
    }

    /// Holds new tables if there are any: between requests, and before a number that the engine gave is looked up.
    pub(crate) fn renew(&self) {
        if self.held.borrow().generation != self.shared.tables.generation() {
            let before = self.tables();
            // What cannot be opened was said by the reload, which tried; since then it is the request that fails.
            let held = HeldTables::new(&self.shared.tables, Some(&before), &mut None);
            self.held.replace(Rc::new(held));
        }
    }

    fn look_around(&self) {
        self.renew();
        let now = self.now();
        self.slots.borrow().expire(now);
        self.shared.spare[self.index].report(now);
        self.shared.mailboxes[self.index].remind();
        let tables = self.tables();
        for upstream in tables.upstreams.iter().flatten() {
            upstream.close_stale(self.index, now, tables.settings.timeouts.upstream_keep_alive);
        }
        crate::buffers::trim();
        self.date.replace(httpdate::fmt_http_date(SystemTime::now()));
    }

    /// Takes a client's connection that this thread was given.
    pub(crate) fn adopt(self: &Rc<Self>, io: TcpStream, peer: IpAddr) {
        tokio::task::spawn_local(connection::run(self.clone(), io, peer));
    }

    /// Ends the connection that has been idle the longest. False if none has been for long enough.
    pub(crate) fn end_idle(&self) -> bool {
        // One at a time: its place is counted as free only once it is gone.
        if self.ending.borrow().upgrade().is_some_and(|slot| slot.expired()) {
            return true;
        }
        let Some(slot) = self.slots.borrow().expire_idle(self.now(), LEAST_IDLE) else { return false };
        self.ending.replace(Rc::downgrade(&slot));
        true
    }

    fn receive(self: &Rc<Self>, message: Message) -> bool {
        match message {
            Message::Verdict(verdict) => {
                let mut verdicts = self.verdicts.take();
                verdicts.push(verdict);
                self.act_on(&mut verdicts);
                self.verdicts.replace(verdicts);
            }
            Message::Connection(stream, peer) => match TcpStream::from_std(stream) {
                Ok(io) => self.adopt(io, peer),
                Err(_) => {
                    self.shared.mailboxes[self.index].connections.fetch_sub(1, Relaxed);
                }
            },
            // By now there may be room again.
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

    /// Runs until told to stop. Must be called in a local runtime.
    pub(crate) async fn run(self: Rc<Self>, listeners: Vec<tokio::net::TcpListener>) {
        for listener in listeners {
            tokio::task::spawn_local(acceptor::run(self.clone(), listener));
        }
        let worker = self.clone();
        tokio::task::spawn_local(async move {
            let mut interval =
                tokio::time::interval_at(tokio::time::Instant::now() + LOOK_AROUND, LOOK_AROUND);
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                interval.tick().await;
                worker.look_around();
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

    /// Wraps a permit so that it departs on drop.
    pub(crate) fn hold(self: &Rc<Self>, permit: Permit) -> Held {
        Held::new(self, permit)
    }
}
