//! The closed loop: n clients, each with one keep-alive connection, each sending its next request after its answer.
//!
//! A closed loop finds a server's capacity, because it always has n requests in it, and shows whether clients are starved:
//! answers are counted by client. It is not a model of a public site under load; that is the open loop.

use super::connection::{Connection, Requests, Target};
use super::record::Outcome;
use super::run::{LoadHandle, Run, Sink};
use super::tally::Tally;
use crate::Random;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a client waits after an error before its next request, so that a refusing server is not flooded.
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
    /// The mean of an exponential pause between an answer and the next request, to a millisecond; `None`: no pause.
    pub think: Option<Duration>,
    /// The path of the requests.
    pub path: String,
    /// The seed that determines the pauses.
    pub seed: u64,
    /// The number of requests after which the load ends.
    pub most: u64,
}

impl ClosedLoop {
    /// `clients` clients on `target` for `duration`: path `/`, no pause, addresses from 127.1.0.1 on.
    pub fn new(target: Target, clients: u32, duration: Duration) -> Self {
        Self { target, clients, duration, think: None, path: "/".into(), seed: 1, most: u64::MAX }
    }

    /// Starts the load on a thread of its own; `sink` is called with every record.
    ///
    /// # Errors
    /// If a host, header or path is not valid in HTTP, or the thread or its runtime cannot be made.
    pub fn start(self, sink: Option<Sink>) -> io::Result<LoadHandle> {
        // Twice the clients, because a socket that the server has closed may still be counted when its successor opens.
        let sockets = self.clients as usize * 2;
        let requests = Requests::new(self.target, &self.path, Ipv4Addr::new(127, 1, 0, 1), sockets)?;
        let run = Run::new(requests, Tally::new(self.clients, Duration::from_secs(1)), sink, self.most);
        let mut seeds = Random::new(self.seed);
        let client = |number| {
            let (run, random) = (Arc::clone(&run), Random::new(seeds.bits()));
            Client { run, number, random, connection: None }.live(self.duration, self.think)
        };
        let clients: Vec<_> = (0..self.clients).map(client).collect();
        LoadHandle::start("closed-loop", run, async {
            let mut tasks: JoinSet<()> = clients.into_iter().collect();
            // A panic in a task has printed itself already.
            while tasks.join_next().await.is_some() {}
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
        while self.run.since_start() < duration && self.run.begin() {
            let mut connection = self.connection.take();
            let keep = |idle| self.connection = Some(idle);
            let arrival = self.run.since_start();
            let outcome = self.run.request((self.number, arrival), || connection.take(), keep).await;
            let pause = match (outcome, think) {
                (Outcome::Error(_), _) => AFTER_ERROR,
                (Outcome::Answer(_), Some(mean)) => mean.mul_f64(self.random.exponential(1.0)),
                (Outcome::Answer(_), None) => continue,
            };
            tokio::time::sleep(pause).await;
        }
    }
}
