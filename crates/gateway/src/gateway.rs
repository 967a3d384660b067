//! A running gateway, as its owner sees it.

use crate::admin::{Journal, MetricsPusher, Operator, Owner, OwnerCell, RunningGateway, Sight};
use crate::background::Background;
use crate::client::spill_files::Storage;
use crate::clock::Clock;
use crate::http2::floods::EndedConnections;
use crate::listen::binding::{Bound, bind_all};
use crate::listen::bound::BoundSocket;
use crate::listen::inherited::{Inherited, ListeningSocket};
use crate::listen::kernel_shed::{KernelShed, ShedTable};
use crate::listen::placement::SpareTime;
use crate::runtime::reload::Reloader;
use crate::runtime::ticker;
use crate::settings::{Address, Listener, Settings, check};
use crate::sync::lock;
use crate::transport::tls::server::TlsServer;
use crate::upstream::ejection::ServerNews;
use crate::upstream::forwarding_loop::LoopMark;
use crate::worker::mailbox::Message;
use crate::worker::memory::keep_little;
use crate::worker::shared::Reloads;
use crate::worker::tables::{PlantRow, PublishedTables, TableParts, Tables};
use crate::worker::{Worker, shared::Shared};
use plimsoll_core::promises::Promises;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::{Engine, Lane, LearnedState};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::runtime::{Builder, LocalOptions};

/// A running gateway. Dropping it stops it at once; [`drain`](Gateway::drain) stops it gently.
pub struct Gateway {
    shared: Arc<Shared>,
    engine: Arc<Mutex<Engine>>,
    /// The thread of the control loops.
    ticker: Background,
    /// The journal that the operator is shown.
    journal: Arc<Mutex<Journal>>,
    /// The owner, once it is set; the admin listener asks it for a reload.
    owner: OwnerCell,
    operator: Option<Operator>,
    /// The pusher of metrics, if they are pushed.
    pusher: Option<MetricsPusher>,
    /// The table that has the system turn clients away, if there is one.
    shed: Option<KernelShed>,
    threads: Vec<JoinHandle<()>>,
    listening: Vec<Listener>,
    /// Whether another process has taken over the sockets.
    is_replaced: bool,
    /// The sockets that listen, for the process that takes this one's place.
    listeners: Vec<ListeningSocket>,
    /// The paths of Unix sockets that the gateway removes at its end: all but those of a supervisor.
    own_paths: Vec<PathBuf>,
}

/// What a gateway takes over from the one before it.
#[derive(Debug, Default)]
pub struct Before {
    /// Listening sockets; `start_after` takes out those whose addresses the settings have.
    pub sockets: Inherited,
    /// What was learned, and whether that was just now, so that the service levels are taken over too. `start_after` takes it
    /// out.
    pub learned: Option<(LearnedState, bool)>,
    /// The learned parts that did not fit the promises, a sentence each.
    pub left_out: Vec<String>,
}

const NO_DESCRIPTOR: &str = "connections wait, since no file descriptor is left: allow more (`LimitNOFILE`, `ulimit -n`) or set \
                             `connections` below that";

/// A line for the operator's log about a failure that is no request's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultNews {
    /// The upstream, if the failure is of one.
    pub upstream: Option<String>,
    /// The line, without the upstream.
    pub text: String,
}

impl Gateway {
    /// Binds, starts the threads, and returns once all of them accept connections.
    ///
    /// # Errors
    /// An address is taken, a folder cannot be opened, or settings and promises do not fit each other.
    pub fn start(settings: Settings, promises: &Promises) -> io::Result<Gateway> {
        Gateway::start_after(&mut Before::default(), settings, promises)
    }

    /// Starts on sockets that listen already, going on from what an earlier gateway has learned.
    ///
    /// # Errors
    /// As [`start`](Gateway::start).
    pub fn start_after(before: &mut Before, settings: Settings, promises: &Promises) -> io::Result<Gateway> {
        check(&settings, promises).map_err(invalid)?;
        keep_little();
        let threads = match settings.threads {
            0 => thread::available_parallelism()?.get(),
            threads => threads,
        };
        // A token has eight bits for the number of its thread.
        let threads = threads.min(256);
        let (mut engine, lanes) = Engine::new(promises, threads, settings.hash_seed)
            .map_err(|problems| invalid(problems.join("; ")))?;
        let numbers = engine.prepare(promises).map_err(|problems| invalid(problems.join("; ")))?;
        let tls = TlsServer::new()?;
        tls.install(tls.prepare(settings.tls.as_ref()).map_err(|wrong| invalid(wrong.join("\n")))?);
        let tables = Tables::default();
        let parts = TableParts::prepare(&settings, threads, &tables.access_logs);
        let parts = parts.map_err(|wrong| invalid(wrong.join("\n")))?;
        let Bound { listeners: listening, sockets, kept: listeners, own_paths } =
            bind_all(&settings.listen, threads, &mut before.sockets)?;
        if let Some((learned, at_once)) = before.learned.take() {
            before.left_out = engine.restore(&learned, at_once);
        }
        let shared = Arc::new(Shared {
            mailboxes: (0..threads).map(|_| Arc::default()).collect(),
            spare: (0..threads).map(|_| SpareTime::default()).collect(),
            draining: AtomicBool::new(false),
            ends_idle: AtomicBool::new(false),
            clock: Clock::start(),
            reloads: Mutex::new(Reloads::start()),
            storage: Arc::new(Storage::new(threads)),
            tls,
            floods: EndedConnections::default(),
            clients: Arc::default(),
            unaccepted: Default::default(),
            shed: Arc::default(),
            reported_workers: Mutex::default(),
            mark: LoopMark::draw(),
            tables: PublishedTables::new(tables.next(settings, promises, &numbers, &parts)?),
        });
        let engine = Arc::new(Mutex::new(engine));
        let ticker = ticker::start(engine.clone(), shared.clone())?;
        let (journal, owner) = (Arc::default(), Arc::default());
        let (operator, pusher, shed, threads, is_replaced) = (None, None, None, Vec::new(), false);
        let mut gateway = Gateway {
            shared,
            engine,
            ticker,
            journal,
            owner,
            operator,
            pusher,
            shed,
            threads,
            listening,
            is_replaced,
            listeners,
            own_paths,
        };
        // An early return drops the gateway, which stops what was started. The program `nft` takes a moment, in which no client
        // may be served by half a gateway.
        gateway.start_shed()?;
        gateway.start_operator(&mut before.sockets)?;
        gateway.start_workers(lanes, sockets)?;
        Ok(gateway)
    }

    /// Starts the admin listener and the push of metrics, if they are configured.
    fn start_operator(&mut self, inherited: &mut Inherited) -> io::Result<()> {
        let settings = self.shared.tables.current().settings.clone();
        let (engine, shared, owner) = (self.engine.clone(), self.shared.clone(), self.owner.clone());
        if let Some(address) = settings.admin {
            let (engine, shared, owner) = (engine.clone(), shared.clone(), owner.clone());
            let journal = self.journal.clone();
            let gateway = RunningGateway { engine, shared, journal, owner };
            let (listener, kept) = Operator::listen(address, inherited)?;
            self.listeners.push(kept);
            self.operator = Some(Operator::start_for(gateway, listener)?);
        }
        if let Some(metrics) = settings.metrics {
            self.pusher = Some(MetricsPusher::start(metrics, engine, shared, owner)?);
        }
        Ok(())
    }

    /// Has the system turn clients away, if that is configured.
    fn start_shed(&mut self) -> io::Result<()> {
        let Some(table) = ShedTable::of(self.local_addrs()) else { return Ok(()) };
        if self.shared.tables.current().settings.kernel_shed {
            let (engine, shared) = (self.engine.clone(), &self.shared);
            let (state, clients) = (shared.shed.clone(), shared.clients.clone());
            self.shed = Some(KernelShed::start(table, engine, state, clients, shared.clock)?);
        } else {
            table.remove_left();
        }
        Ok(())
    }

    fn start_workers(&mut self, lanes: Vec<Lane>, sockets: Vec<Vec<BoundSocket>>) -> io::Result<()> {
        let (sender, receiver) = mpsc::channel();
        for (index, (lane, sockets)) in lanes.into_iter().zip(sockets).enumerate() {
            let (shared, sender) = (self.shared.clone(), sender.clone());
            let thread = thread::Builder::new()
                .name(format!("plimsoll-{index}"))
                .spawn(move || run_worker(index, shared, lane, sockets, &sender))?;
            self.threads.push(thread);
        }
        drop(sender);
        for _ in 0..self.threads.len() {
            receiver
                .recv()
                .unwrap_or_else(|_| Err(io::Error::other("a worker thread ended at its start")))?;
        }
        Ok(())
    }

    /// The handle that reloads the gateway, from any thread.
    pub fn reloader(&self) -> Reloader {
        let (shared, engine) = (self.shared.clone(), self.engine.clone());
        Reloader { shared, engine, ticker: self.ticker.thread.clone() }
    }

    /// Sets the owner that `POST /reload` asks, on a thread where it may wait. Only the first owner is set; without an owner
    /// the answer is 404.
    pub fn set_owner(&self, owner: Box<dyn Owner>) {
        let _ = self.owner.set(owner);
    }

    /// The listeners, in the order of [`Settings::listen`].
    pub fn listening(&self) -> &[Listener] {
        &self.listening
    }

    /// The network addresses among the listeners.
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        let addresses = self.listening.iter().filter_map(|listener| match listener.address {
            Address::Tcp(address) => Some(address),
            Address::Unix(_) => None,
        });
        addresses.collect()
    }

    /// The address of the admin listener, if there is one.
    pub fn admin_addr(&self) -> Option<SocketAddr> {
        self.operator.as_ref().map(|operator| operator.address)
    }

    /// The engine's status.
    pub fn status(&self) -> Status {
        lock(&self.engine).status()
    }

    /// The engine's status, after the operator's journal has seen it.
    pub fn watch(&self) -> Status {
        let status = self.status();
        lock(&self.journal).look(&Sight::of(&self.shared, &status));
        status
    }

    /// New failures that are no request's: TLS with upstreams, the delivery of traces, metrics and the access log, and a lack
    /// of descriptors for clients.
    pub fn faults(&self) -> Vec<FaultNews> {
        let tables = self.shared.tables.current();
        let faults = tables.plants.iter().enumerate().filter_map(|(plant, row)| {
            let why = row.upstream.as_ref()?.secured.as_ref()?.take_news()?;
            let upstream = tables.names.plant(plant).unwrap_or_default().to_owned();
            Some(FaultNews { upstream: Some(upstream), text: format!("TLS fails: {why}") })
        });
        let traces = tables.traces.as_ref().and_then(|traces| traces.take_news());
        let metrics = self.pusher.as_ref().and_then(MetricsPusher::take_news);
        let shed = self.shared.shed.take_news();
        let shed =
            shed.map(|why| format!("clients are turned away by the gateway alone, not by nftables: {why}"));
        let lines = tables.access_logs.take_news(Instant::now());
        let (count, reported) = &self.shared.unaccepted;
        let waits = reported.take(count.load(Relaxed), Instant::now()).then_some(NO_DESCRIPTOR);
        let lost = [("traces", traces), ("metrics", metrics), ("lines of the access log", lines)];
        let lost = lost.into_iter().filter_map(|(what, why)| Some(format!("{what} are lost: {}", why?)));
        let others =
            lost.chain(shed).chain(waits.map(str::to_owned)).map(|text| FaultNews { upstream: None, text });
        faults.chain(others).collect()
    }

    /// News of the upstreams' servers: which are out of use, and which are in use again.
    pub fn server_news(&self) -> Vec<ServerNews> {
        let (tables, now) = (self.shared.tables.current(), self.shared.clock.now());
        let of = |(plant, row): (usize, &PlantRow)| {
            let upstream = row.upstream.as_ref()?;
            Some(upstream.pool.roster().news(now, tables.names.plant(plant).unwrap_or_default()))
        };
        tables.plants.iter().enumerate().filter_map(of).flatten().collect()
    }

    /// Client connections open now.
    pub fn client_connections(&self) -> usize {
        self.shared.connections()
    }

    /// Client connections open now, by thread.
    pub fn connections_by_thread(&self) -> Vec<usize> {
        self.shared.connections_by_thread()
    }

    /// How long the settings in force let requests under way take after the order to stop.
    pub fn drain_timeout(&self) -> Duration {
        self.shared.tables.current().settings.timeouts.drain
    }

    /// The listening sockets, with that of the admin listener, to be handed to another process.
    pub fn listeners(&self) -> &[ListeningSocket] {
        &self.listeners
    }

    /// Stops accepting, lets requests under way finish for at most `timeout`, then stops. True if all of them finished.
    pub fn drain(self, timeout: Duration) -> bool {
        self.finish(Duration::ZERO, timeout)
    }

    /// [Drains](Self::drain) a gateway whose sockets another process accepts from. The operator's listener is given up at once.
    /// An idle connection may send one more request within `grace`, whose answer ends it: if it were ended at once, a client
    /// that sends at that moment would lose its request.
    pub fn hand_over(mut self, grace: Duration, timeout: Duration) -> bool {
        self.is_replaced = true;
        if let Some(operator) = &mut self.operator {
            operator.stop();
        }
        self.finish(grace, timeout)
    }

    fn finish(mut self, grace: Duration, timeout: Duration) -> bool {
        let start = Instant::now();
        self.listeners.clear();
        self.shed.iter().for_each(KernelShed::stop);
        self.shared.draining.store(true, Relaxed);
        if !grace.is_zero() {
            self.post_drain();
            self.wait_for_clients(start + grace.min(timeout));
        }
        self.shared.ends_idle.store(true, Relaxed);
        self.post_drain();
        let finished = self.wait_for_clients(start + timeout);
        self.stop();
        finished
    }

    fn post_drain(&self) {
        self.shared.mailboxes.iter().for_each(|mailbox| mailbox.post(Message::Drain));
    }

    /// Waits until no client is connected. False if some still are at `deadline`.
    fn wait_for_clients(&self, deadline: Instant) -> bool {
        while self.client_connections() > 0 && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        self.client_connections() == 0
    }

    /// Stops at once: requests under way are abandoned.
    pub fn shutdown(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        self.listeners.clear();
        self.shared.mailboxes.iter().for_each(|mailbox| mailbox.post(Message::Stop));
        for thread in self.threads.drain(..) {
            // A panic was already reported by the thread.
            let _ = thread.join();
        }
        let tables = self.shared.tables.current();
        tables.access_logs.finish();
        tables.traces.iter().for_each(|traces| traces.finish());
        self.pusher.iter().for_each(MetricsPusher::stop);
        self.shed.iter().for_each(KernelShed::stop);
        // Connections that were handed to a thread after it had stopped are closed here.
        self.shared.mailboxes.iter().for_each(|mailbox| mailbox.clear());
        self.ticker.stop();
        if let Some(operator) = &mut self.operator {
            operator.stop();
        }
        for path in self.own_paths.drain(..).filter(|_| !self.is_replaced) {
            // Somebody may have removed the socket's file already.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

fn run_worker(
    index: usize,
    shared: Arc<Shared>,
    lane: Lane,
    sockets: Vec<BoundSocket>,
    started: &mpsc::Sender<io::Result<()>>,
) {
    // The closures take parts of `shared`, not `shared` itself: the worker in the runtime holds that.
    let (mailbox, spare, clock) = (shared.mailboxes[index].clone(), shared.spare.clone(), shared.clock);
    let falls_asleep = move || {
        spare[index].fall_asleep(clock.now());
        mailbox.fall_asleep();
    };
    let (mailbox, spare) = (shared.mailboxes[index].clone(), shared.spare.clone());
    let wakes_up = move || {
        spare[index].wake_up(clock.now());
        mailbox.wake_up();
    };
    let runtime = Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .on_thread_park(falls_asleep)
        .on_thread_unpark(wakes_up)
        .build_local(LocalOptions::default());
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return drop(started.send(Err(error))),
    };
    runtime.block_on(async {
        let listeners = sockets.into_iter().map(BoundSocket::listen).collect::<io::Result<Vec<_>>>();
        match listeners.and_then(|listeners| Ok((Worker::new(index, shared, lane)?, listeners))) {
            Ok((worker, listeners)) => {
                let _ = started.send(Ok(()));
                worker.run(listeners).await;
            }
            Err(error) => drop(started.send(Err(error))),
        }
    });
}
