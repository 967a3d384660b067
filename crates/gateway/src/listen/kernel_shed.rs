//! Clients that the system itself turns away, before any process is woken for them: nftables, for `[kernel] shed`.
//!
//! A client that was turned away at accept was told by `Retry-After` when to come again. Until then it stands in a set of
//! nftables, and the system resets each connection that it begins to a listener of the gateway. So the decision stays the
//! engine's, a client hears of it before it is shed, and no client is shed for longer than it was told.
//!
//! **The loop goes on counting.** Twice a second the resets are read, and each counts as a request of a client of the set, one
//! after the other: arrived and rejected, in its class. Clients that would not be rejected any more leave the set then.
//!
//! **The table is the gateway's alone**, named by the port of its first listener. It is made anew at the start, which removes
//! what a crash has left, and removed at the end; a process that another one replaces leaves it to that one. What a crash
//! leaves matches nobody after a minute at most, since entries end by themselves.
//!
//! Not here: XDP and other places still earlier, which need a driver's help; clients behind proxies that are believed, whose
//! address is the proxy's; connections that are open.

use super::clients::TurnedAway;
use crate::runtime::lock;
use crate::runtime::worker::Shared;
use crate::settings::{Address, Listener};
use plimsoll_core::Engine;
use plimsoll_core::time::Instant;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often the set follows the loop.
const INTERVAL: Duration = Duration::from_millis(500);
/// The most clients of a set. More are turned away at accept, as without it.
const MOST: usize = 50_000;
/// The longest time in the set. A client that was told to stay away for longer asks once a minute.
const LONGEST: Duration = Duration::from_secs(60);
/// Where nft is looked for besides `PATH`, which often has no `sbin` for users.
const NFT: [&str; 3] = ["nft", "/usr/sbin/nft", "/sbin/nft"];

/// Clients that were turned away lately, and until when they were told to stay away.
#[derive(Debug, Default)]
pub(crate) struct ToldClients(Mutex<Vec<(IpAddr, Instant)>>);

impl ToldClients {
    pub(crate) fn note(&self, client: IpAddr, until: Instant) {
        let mut told = lock(&self.0);
        if told.len() < MOST {
            told.push((client, until));
        }
    }
}

/// The thread that keeps the set.
#[derive(Debug)]
pub(crate) struct KernelShed {
    table: ShedTable,
    state: Arc<ShedState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct ShedState {
    is_ending: AtomicBool,
    /// Why the set does not follow, until the operator was told.
    news: Mutex<Option<String>>,
}

impl KernelShed {
    /// Makes the table, and keeps it from then on.
    ///
    /// # Errors
    /// nft is not there, may not change rules or refuses these.
    pub(crate) fn start(
        listening: &[Listener],
        engine: Arc<Mutex<Engine>>,
        shared: Arc<Shared>,
    ) -> io::Result<Self> {
        let addresses = listening.iter().filter_map(|listener| match listener.address {
            Address::Tcp(address) => Some(address),
            Address::Unix(_) => None,
        });
        let table = ShedTable::of(addresses.collect());
        run(&table.made()).map_err(|why| {
            let what = "[kernel] shed: nft cannot make its table: ";
            let help = "; install nftables, and run the gateway with CAP_NET_ADMIN, or leave `shed` out";
            io::Error::other(format!("{what}{why}{help}"))
        })?;
        let state = Arc::<ShedState>::default();
        let keeper =
            Keeper { table: table.clone(), engine, shared, state: state.clone(), held: Held::default() };
        let thread = thread::Builder::new().name("kernel-shed".to_owned()).spawn(move || keeper.run())?;
        Ok(KernelShed { table, state, thread: Some(thread) })
    }

    /// Why the set does not follow, if that is news.
    pub(crate) fn take_news(&self) -> Option<String> {
        lock(&self.state.news).take()
    }

    /// Ends. `stays`: another process has made the table anew, and keeps it.
    pub(crate) fn stop(&mut self, stays: bool) {
        let Some(thread) = self.thread.take() else { return };
        self.state.is_ending.store(true, Relaxed);
        thread.thread().unpark();
        // A panic there was reported by its thread.
        let _ = thread.join();
        if !stays {
            // Nobody is left to be told; entries end by themselves.
            let _ = run(&format!("delete table inet {}\n", self.table.name));
        }
    }
}

/// What the thread has.
struct Keeper {
    table: ShedTable,
    engine: Arc<Mutex<Engine>>,
    shared: Arc<Shared>,
    state: Arc<ShedState>,
    held: Held,
}

impl Keeper {
    fn run(mut self) {
        let mut fails = false;
        loop {
            thread::park_timeout(INTERVAL);
            if self.state.is_ending.load(Relaxed) {
                return;
            }
            // The operator's firewall may have been loaded anew, which takes all tables away.
            let followed = self.follow().or_else(|_| self.make_anew());
            if let Err(why) = &followed
                && !fails
            {
                *lock(&self.state.news) = Some(why.clone());
            }
            fails = followed.is_err();
        }
    }

    fn make_anew(&mut self) -> Result<(), String> {
        self.held = Held::default();
        run(&self.table.made()).map(drop)
    }

    /// Counts the resets, and has the set follow the loop.
    fn follow(&mut self) -> Result<(), String> {
        let now = self.shared.clock.now();
        // Resets of clients that have just left the set are counted, too.
        if !self.held.clients.is_empty() {
            let resets = packets(&run(&format!("reset counter inet {} turned_away\n", self.table.name))?);
            self.shared.clients.count_many(TurnedAway::Kernel, resets);
            let mut engine = lock(&self.engine);
            self.held.turns(resets).for_each(|client| engine.count_rejected_client(now, client));
        }
        let told = std::mem::take(&mut *lock(&self.shared.told.0));
        let added = self.held.add(now, told);
        let mut engine = lock(&self.engine);
        let lifted = self.held.lift(now, |client| engine.rejects_client(client));
        drop(engine);
        let script = self.table.changed(&added, &lifted);
        if script.is_empty() { Ok(()) } else { run(&script).map(drop) }
    }
}

/// The clients of the set, each until when.
#[derive(Debug, Default)]
struct Held {
    until: HashMap<IpAddr, Instant>,
    /// Those that were in it when it last changed, in order.
    clients: Vec<IpAddr>,
    /// How many resets were counted.
    turn: usize,
}

impl Held {
    /// So many of its clients, one after the other.
    fn turns(&mut self, count: u64) -> impl Iterator<Item = IpAddr> {
        let from = self.turn;
        self.turn = from.wrapping_add(count as usize);
        let clients = &self.clients;
        (0..count as usize).map(move |number| clients[from.wrapping_add(number) % clients.len()])
    }

    /// Those that come into the set, and for how long.
    fn add(&mut self, now: Instant, told: Vec<(IpAddr, Instant)>) -> Vec<(IpAddr, Duration)> {
        let mut added = Vec::new();
        for (client, until) in told {
            let (client, wait) = (as_known(client), until.since(now).min(LONGEST));
            // What is over before the set follows again is not worth it.
            if wait > INTERVAL && self.until.len() < MOST && self.until.insert(client, now + wait).is_none() {
                added.push((client, wait));
            }
        }
        added
    }

    /// Those that leave before their time, since they would not be rejected any more. Those whose time is over are forgotten.
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

/// A client as the engine knows it: an IPv6 client is the first 64 bits of its address.
fn as_known(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// The gateway's table.
#[derive(Clone, Debug)]
struct ShedTable {
    name: String,
    addresses: Vec<SocketAddr>,
}

impl ShedTable {
    fn of(addresses: Vec<SocketAddr>) -> Self {
        let port = addresses.first().map_or(0, SocketAddr::port);
        ShedTable { name: format!("plimsoll_{port}"), addresses }
    }

    /// What makes it anew, whatever is there.
    fn made(&self) -> String {
        let name = &self.name;
        let mut rules = String::new();
        for address in &self.addresses {
            let port = address.port();
            let here = |family: &str| match address.ip().is_unspecified() {
                true => String::new(),
                false => format!("{family} daddr {} ", address.ip()),
            };
            let reset = "counter name turned_away reject with tcp reset";
            let begins = format!("tcp dport {port} tcp flags & (fin|syn|rst|ack) == syn");
            if address.is_ipv4() || address.ip().is_unspecified() {
                let _ = writeln!(rules, "{}{begins} ip saddr @clients4 {reset}", here("ip"));
            }
            if address.is_ipv6() {
                let masked = "ip6 saddr & ffff:ffff:ffff:ffff::";
                let _ = writeln!(rules, "{}{begins} {masked} @clients6 {reset}", here("ip6"));
            }
        }
        format!(
            "add table inet {name}\ndelete table inet {name}\ntable inet {name} {{\n\
             set clients4 {{ type ipv4_addr; size 65535; flags timeout; }}\n\
             set clients6 {{ type ipv6_addr; size 65535; flags timeout; }}\n\
             counter turned_away {{ packets 0 bytes 0 }}\n\
             chain arrivals {{ type filter hook input priority -150; policy accept;\n{rules}}}\n}}\n"
        )
    }

    /// What puts clients into the set and takes others out. To take out what is there no more is an error, so it is put in
    /// first, which changes nothing where it is there.
    fn changed(&self, added: &[(IpAddr, Duration)], lifted: &[IpAddr]) -> String {
        let mut script = String::new();
        let mut line = |what: &str, client: &IpAddr, timeout: &str| {
            let set = if client.is_ipv4() { "clients4" } else { "clients6" };
            let _ = writeln!(script, "{what} element inet {} {set} {{ {client}{timeout} }}", self.name);
        };
        for (client, wait) in added {
            line("add", client, &format!(" timeout {}ms", wait.as_millis()));
        }
        for client in lifted {
            line("add", client, " timeout 1s");
            line("delete", client, "");
        }
        script
    }
}

/// How many packets a counter has counted, as nft prints it.
fn packets(text: &str) -> u64 {
    let after = text.split("packets ").nth(1).and_then(|rest| rest.split_whitespace().next());
    after.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Runs nft with a script; returns what it prints, or why it failed.
fn run(script: &str) -> Result<String, String> {
    let start = |program: &&str| {
        let command = &mut Command::new(program);
        command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
    };
    let mut started = NFT.iter().map(start);
    let is_there =
        |result: &io::Result<_>| !matches!(result, Err(error) if error.kind() == ErrorKind::NotFound);
    let mut child = match started.find(is_there) {
        Some(Ok(child)) => child,
        Some(Err(error)) => return Err(format!("it cannot be started: {error}")),
        None => return Err("there is no program nft".to_owned()),
    };
    // Nothing is printed before all of it is read.
    let written = child.stdin.take().map_or(Ok(()), |mut input| input.write_all(script.as_bytes()));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if output.status.success() && written.is_ok() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(said.lines().next().unwrap_or("it failed and did not say why").to_owned())
}

#[cfg(test)]
mod tests;
