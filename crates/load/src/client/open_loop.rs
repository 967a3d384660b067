//! The open loop: arrivals keep their schedule, whatever has become of earlier ones.
//!
//! This is the load of a site that was linked from somewhere large, and the only load that shows overload, because a closed
//! loop slows down with its server. Each arrival belongs to one of n simulated clients, uniformly drawn, and takes the idle
//! connection that this client used last, or opens one. If this thread was busy and an arrival is late, it is dispatched at
//! once, never skipped; its lateness is recorded and is part of its latency.

use super::connection::{Connection, Requests, Target};
use super::run::{LoadHandle, Run, Sink};
use super::tally::Tally;
use crate::Random;
use crate::alarm::Alarm;
use crate::arrivals::{PoissonArrivals, Step};
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An open-loop load; see [`OpenLoop::start`].
#[derive(Clone, Debug)]
pub struct OpenLoop {
    /// The server under load.
    pub target: Target,
    /// The steps of the rate (arrivals per second), one after the other.
    pub steps: Vec<Step>,
    /// The path of the requests.
    pub path: String,
    /// The number of simulated clients, each with its own address; at least 1 is used.
    pub clients: u32,
    /// The address of the first client; the others follow.
    pub first_address: Ipv4Addr,
    /// The seed that determines arrival times and clients.
    pub seed: u64,
    /// Arrivals that would need more sockets than this are counted as [`LocalLimit`](crate::client::ErrorKind::LocalLimit).
    pub max_sockets: usize,
    /// A connection that was idle for longer is not used again, because most servers close theirs after some time.
    pub idle_limit: Duration,
    /// The length of a slot of the tally.
    pub slot: Duration,
    /// The number of requests after which the load ends.
    pub most: u64,
}

impl OpenLoop {
    /// `steps` on `target`: 1000 clients from 127.1.0.1 on, path `/`, at most 8000 sockets, slots of a second.
    pub fn new(target: Target, steps: Vec<Step>) -> Self {
        Self {
            target,
            steps,
            path: "/".into(),
            clients: 1000,
            first_address: Ipv4Addr::new(127, 1, 0, 1),
            seed: 1,
            max_sockets: 8000,
            idle_limit: Duration::from_secs(30),
            slot: Duration::from_secs(1),
            most: u64::MAX,
        }
    }

    /// Starts the load on a thread of its own; `sink` is called with every record.
    ///
    /// # Errors
    /// If a host, header or path is not valid in HTTP, or the thread, its runtime or its timer cannot be made.
    pub fn start(self, sink: Option<Sink>) -> io::Result<LoadHandle> {
        let requests = Requests::new(self.target, &self.path, self.first_address, self.max_sockets)?;
        let clients = self.clients.max(1);
        let run = Run::new(requests, Tally::new(clients, self.slot), sink, self.most);
        let mut random = Random::new(self.seed);
        let arrivals = PoissonArrivals::new(self.steps, Random::new(random.bits()));
        let idle = (0..clients).map(|_| Vec::new()).collect();
        let pool = Arc::new(Pool { clients, idle: Mutex::new(idle), limit: self.idle_limit });
        LoadHandle::start("open-loop", Arc::clone(&run), drive(run, pool, arrivals, random))
    }
}

/// Idle connections by client.
struct Pool {
    clients: u32,
    idle: Mutex<Vec<Vec<(Connection, Instant)>>>,
    limit: Duration,
}

impl Pool {
    fn take(&self, client: u32) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = &mut idle[client as usize];
        while let Some((connection, since)) = connections.pop() {
            if !connection.is_closed() && since.elapsed() < self.limit {
                return Some(connection);
            }
        }
        None
    }

    fn put(&self, client: u32, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle[client as usize].push((connection, Instant::now()));
    }
}

/// Starts a request at each of `arrivals`, and waits for the last of them to end.
async fn drive(run: Arc<Run>, pool: Arc<Pool>, arrivals: PoissonArrivals, mut random: Random) {
    let Ok(alarm) = Alarm::new() else { return };
    for due in arrivals {
        let wait = due.saturating_sub(run.since_start());
        if !wait.is_zero() {
            alarm.set(wait);
        }
        // The loop may wake without cause, for instance when the last request in progress ends; the alarm is then still set.
        while run.since_start() < due && !run.is_stopping() {
            tokio::select! {
                rung = alarm.rung() => if rung.is_err() { return },
                () = run.changed.notified() => {}
            }
        }
        if !run.begin() {
            break;
        }
        let client = random.below(pool.clients.into()) as u32;
        let (run, pool) = (Arc::clone(&run), Arc::clone(&pool));
        tokio::spawn(async move {
            run.request((client, due), || pool.take(client), |idle| pool.put(client, idle)).await;
        });
    }
    // Every request ends at its time-out at the latest, so this loop ends.
    while run.in_flight.load(Ordering::Relaxed) > 0 {
        run.changed.notified().await;
    }
}
