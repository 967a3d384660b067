//! The closed loop: n clients, each with one keep-alive connection, each asking again after its answer.
//!
//! A closed loop finds a server's capacity, since it always has n requests in it, and shows which clients are starved:
//! answers are counted by client. It is not a model of a public site under load; that is the open loop.

use super::connection::{Connection, Paths, Requests, Target};
use super::record::{Outcome, Record};
use super::run::{LoadHandle, Run, Sink};
use super::tally::Tally;
use crate::Random;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long a client waits after an error before it asks again, so that a refusing server is not hammered.
const AFTER_ERROR: Duration = Duration::from_millis(10);

/// A closed-loop load; see [`ClosedLoop::start`].
#[derive(Clone, Debug)]
pub struct ClosedLoop {
    /// The server under load.
    pub target: Target,
    /// The number of clients, each with its own address and one connection.
    pub clients: u32,
    /// How long new requests are made.
    pub duration: Duration,
    /// Mean of an exponential pause between an answer and the next request; none: no pause. To a millisecond.
    pub think: Option<Duration>,
    /// What is asked for.
    pub paths: Paths,
    /// The address of the first client; the others follow.
    pub first_address: Ipv4Addr,
    /// Determines paths and pauses.
    pub seed: u64,
    /// The length of a slot of the tally.
    pub slot: Duration,
    /// The load ends after so many requests.
    pub most: u64,
}

impl ClosedLoop {
    /// `clients` clients on `target` for `duration`: path `/`, no pause, addresses from 127.1.0.1 on.
    pub fn new(target: Target, clients: u32, duration: Duration) -> Self {
        Self {
            target,
            clients,
            duration,
            think: None,
            paths: Paths::one("/"),
            first_address: Ipv4Addr::new(127, 1, 0, 1),
            seed: 1,
            slot: Duration::from_secs(1),
            most: u64::MAX,
        }
    }

    /// Starts the load on a thread of its own; `sink` is called with every record.
    ///
    /// # Errors
    /// If a host, header or path is not valid in HTTP, or the thread or its runtime cannot be made.
    pub fn start(self, sink: Option<Sink>) -> io::Result<LoadHandle> {
        // Twice: a socket that the server has closed may still be counted when its successor opens.
        let sockets = self.clients as usize * 2;
        let requests = Requests::new(self.target, self.paths, self.first_address, sockets)?;
        let run = Run::new(requests, Tally::new(self.clients, self.slot), sink, self.most);
        let (clients, duration, think, seed) = (self.clients, self.duration, self.think, self.seed);
        LoadHandle::start("closed-loop", run, move |run| async move {
            let mut seeds = Random::new(seed);
            let client = |number| {
                let random = Random::new(seeds.bits());
                let client = Client { run: Arc::clone(&run), number, random, connection: None };
                tokio::spawn(client.live(duration, think))
            };
            let tasks: Vec<_> = (0..clients).map(client).collect();
            for task in tasks {
                // A panic in there has printed itself.
                let _ = task.await;
            }
        })
    }
}

struct Client {
    run: Arc<Run>,
    number: u32,
    random: Random,
    connection: Option<Connection>,
}

impl Client {
    async fn live(mut self, duration: Duration, think: Option<Duration>) {
        while self.run.since_start() < duration && !self.run.is_stopping() && self.run.take_one() {
            let error = self.once().await;
            let pause = match (error, think) {
                (true, _) => AFTER_ERROR,
                (false, Some(mean)) => mean.mul_f64(self.random.exponential(1.0)),
                (false, None) => continue,
            };
            tokio::time::sleep(pause).await;
        }
    }

    /// Makes one request. Returns whether it ended in an error.
    async fn once(&mut self) -> bool {
        let run = Arc::clone(&self.run);
        let arrival = run.since_start();
        let path = run.requests.draw(self.random.uniform());
        run.in_flight.fetch_add(1, Ordering::Relaxed);
        let mut connection = self.connection.take();
        let client = self.number;
        let outcome = run.ask(client, path, || connection.take(), |idle| self.connection = Some(idle)).await;
        run.in_flight.fetch_sub(1, Ordering::Relaxed);
        let latency = run.since_start().saturating_sub(arrival);
        run.record(&Record { client, path, arrival, lateness: Duration::ZERO, latency, outcome });
        matches!(outcome, Outcome::Error(_))
    }
}
