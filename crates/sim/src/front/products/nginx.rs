//! nginx: `limit_req`, a leaky bucket, and `limit_conn`, a limit on the requests at once.
//!
//! | directive | is |
//! |---|---|
//! | `limit_req rate=200r/s burst=50` | more than the rate waits until it conforms; more than `burst` beyond it is rejected |
//! | `... nodelay`, `... delay=10` | all requests of the burst, or this many, start at once |
//! | `limit_conn 64` | at most this many requests at once, and no queue |
//! | `... key=$binary_remote_addr` | a bucket, or a count, for each client; else one for the server (`$server_name`) |
//!
//! ```text
//! excess = max(0, excess - rate dt + 1), 0 for a key's first request
//! excess > burst: rejected, and nothing is counted;  else it starts after max(0, excess - delay) / rate
//! ```
//!
//! As in nginx, time is counted in milliseconds and requests in thousandths (`ngx_http_limit_req_module.c`,
//! `ngx_http_limit_req_lookup` and `_account`; `ngx_http_limit_conn_module.c`). `limit_req` decides first, so a request that it
//! delays is not yet a connection for `limit_conn`.

use super::directives::number;
use super::{Asked, Directives, Gone, MakeRules, Rules, Ruling};
use plimsoll_core::request::Reason;
use plimsoll_core::time::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::IpAddr;

const WRITTEN: &str = "nginx: limit_req rate=200r/s burst=50 nodelay; limit_conn 64";

/// One request, in thousandths.
const ONE: i64 = 1_000;

/// A server's directives.
#[derive(Clone, Debug, Default)]
struct Nginx {
    requests: Option<Buckets>,
    connections: Option<Connections>,
    /// Each client's number, which its requests hold.
    clients: BTreeMap<IpAddr, u32>,
}

/// `limit_req`.
#[derive(Clone, Debug)]
struct Buckets {
    /// The rate in thousandths of a request a second.
    rate: i64,
    burst: i64,
    delay: i64,
    by_client: bool,
    /// For each key: the excess, and when it was last counted (ms).
    all: BTreeMap<u32, (i64, i64)>,
}

/// `limit_conn`.
#[derive(Clone, Debug)]
struct Connections {
    most: u32,
    by_client: bool,
    all: BTreeMap<u32, u32>,
}

pub(super) fn read(directives: Directives<'_>) -> Result<MakeRules, String> {
    let mut rules = Nginx::default();
    directives.each(WRITTEN, |name, words| {
        let by_client = match words.value("key") {
            None | Some("$server_name") => false,
            Some("$binary_remote_addr" | "$remote_addr") => true,
            Some(key) => return Err(format!("{name}: \"{key}\" is not $binary_remote_addr or $server_name")),
        };
        match name {
            "limit_req" => {
                let rate = words.value("rate").ok_or("limit_req needs rate=200r/s")?;
                let burst = ONE * words.value("burst").map(number).transpose()?.map_or(0, i64::from);
                let delay = ONE * words.value("delay").map(number).transpose()?.map_or(0, i64::from);
                let delay = if words.flag("nodelay") { burst } else { delay };
                rules.requests =
                    Some(Buckets { rate: self::rate(rate)?, burst, delay, by_client, all: BTreeMap::new() });
            }
            "limit_conn" => {
                let most = words.count("the number of requests")?;
                rules.connections = Some(Connections { most, by_client, all: BTreeMap::new() });
            }
            _ => return Err(format!("there is no directive \"{name}\" here")),
        }
        Ok(())
    })?;
    Ok(Box::new(move |_, _| Box::new(rules.clone())))
}

/// `200r/s` or `90r/m`, in thousandths of a request a second.
fn rate(text: &str) -> Result<i64, String> {
    let read = |number: &str, seconds: i64| Some(i64::from(number.parse::<u32>().ok()?) * ONE / seconds);
    let per_second = text.strip_suffix("r/s").and_then(|number| read(number, 1));
    let rate = per_second.or_else(|| text.strip_suffix("r/m").and_then(|number| read(number, 60)));
    rate.filter(|rate| *rate > 0).ok_or_else(|| format!("\"{text}\" is not a rate such as 200r/s or 90r/m"))
}

impl Buckets {
    /// How long a request must wait; `None` if it is rejected.
    fn account(&mut self, now: Instant, client: u32) -> Option<Duration> {
        let now_ms = (now.as_nanos() / 1_000_000) as i64;
        let key = if self.by_client { client } else { 0 };
        let excess = match self.all.get(&key) {
            Some((excess, last)) => (excess - self.rate * (now_ms - last) / 1000 + ONE).max(0),
            None => 0,
        };
        if excess > self.burst {
            return None;
        }
        self.all.insert(key, (excess, now_ms));
        let beyond = (excess - self.delay).max(0);
        Some(Duration::from_millis((beyond * 1000 / self.rate) as u64))
    }
}

impl Nginx {
    fn client(&mut self, address: IpAddr) -> u32 {
        let next = self.clients.len() as u32;
        *self.clients.entry(address).or_insert(next)
    }

    /// Starts a request, unless the limit on requests at once is reached.
    fn connect(&mut self, client: u32) -> Ruling {
        let Some(limit) = &mut self.connections else { return Ruling::Start(client) };
        let under_way = limit.all.entry(if limit.by_client { client } else { 0 }).or_default();
        if *under_way >= limit.most {
            return Ruling::Reject(Reason::Overload);
        }
        *under_way += 1;
        Ruling::Start(client)
    }
}

impl Rules for Nginx {
    fn arrive(&mut self, now: Instant, asked: Asked<'_>) -> Ruling {
        let client = self.client(asked.request.client);
        let wait = self.requests.as_mut().map(|buckets| buckets.account(now, client));
        match wait {
            Some(None) => Ruling::Reject(Reason::Overload),
            Some(Some(wait)) if !wait.is_zero() => Ruling::After(wait, client),
            _ => self.connect(client),
        }
    }

    fn resume(&mut self, _now: Instant, holds: u32) -> Ruling {
        self.connect(holds)
    }

    fn released(&mut self, _now: Instant, gone: Gone) {
        if let Some(limit) = &mut self.connections
            && let Some(under_way) = limit.all.get_mut(if limit.by_client { &gone.holds } else { &0 })
        {
            *under_way -= 1;
        }
    }

    fn delays(&self) -> bool {
        self.requests.as_ref().is_some_and(|buckets| buckets.delay < buckets.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asked, request, rules, wrong};
    use super::*;
    use plimsoll_core::request::Outcome;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    /// The rulings on `count` requests that come at once.
    fn at_once(rules: &mut dyn Rules, ms: u64, count: usize) -> Vec<Ruling> {
        let one = request("/", 1);
        (0..count).map(|_| rules.arrive(at(ms), asked(&one, 1))).collect()
    }

    const OVER: Ruling = Ruling::Reject(Reason::Overload);

    #[test]
    fn one_and_the_burst_pass_at_once_with_nodelay() {
        let mut server = rules("nginx: limit_req rate=1r/s burst=5 nodelay");
        let of = |all: &[Ruling]| all.iter().filter(|one| **one == Ruling::Start(0)).count();
        assert_eq!(of(&at_once(&mut *server, 0, 20)), 6);
        assert!(!server.delays());
        // Rejected requests do not fill the bucket, so two seconds later two more pass.
        assert_eq!(of(&at_once(&mut *server, 2000, 20)), 2);
    }

    #[test]
    fn without_nodelay_the_burst_starts_at_the_rate() {
        let mut server = rules("nginx: limit_req rate=10r/s burst=3");
        let after = |ms| Ruling::After(Duration::from_millis(ms), 0);
        assert_eq!(at_once(&mut *server, 0, 5), [Ruling::Start(0), after(100), after(200), after(300), OVER]);
        assert!(server.delays());
        let mut server = rules("nginx: limit_req rate=10r/s burst=3 delay=2");
        assert_eq!(at_once(&mut *server, 0, 5)[2..], [Ruling::Start(0), after(100), OVER]);
        // Evenly spaced requests at the rate all pass.
        let mut server = rules("nginx: limit_req rate=600r/m");
        assert!((0..50).all(|n| at_once(&mut *server, 100 * n, 1) == [Ruling::Start(0)]));
        assert_eq!(at_once(&mut *server, 5000 - 60, 1), [OVER]);
    }

    #[test]
    fn connections_are_counted_until_they_end_and_clients_have_their_own() {
        let mut server = rules("nginx: limit_conn 2");
        assert_eq!(at_once(&mut *server, 0, 3), [Ruling::Start(0), Ruling::Start(0), OVER]);
        server.released(at(1), Gone { holds: 0, started: at(0), ended: Outcome::Completed });
        assert_eq!(at_once(&mut *server, 2, 2), [Ruling::Start(0), OVER]);
        let mut server =
            rules("nginx: limit_conn 1 key=$binary_remote_addr; limit_req rate=1r/s key=$binary_remote_addr");
        let mut ask = |client, ms| {
            let one = request("/", client);
            server.arrive(at(ms), asked(&one, 1))
        };
        assert_eq!(
            [ask(1, 0), ask(2, 0), ask(1, 5), ask(1, 2000)],
            [Ruling::Start(0), Ruling::Start(1), OVER, OVER]
        );
    }

    #[test]
    fn errors_say_what_to_write() {
        for text in [
            "nginx: limit_req burst=5",
            "nginx: limit_req rate=5",
            "nginx: limit_req rate=5r/s burst=x",
            "nginx: limit_req rate=5r/s zone=a",
            "nginx: limit_conn",
            "nginx: limit_rate 5",
            "nginx: limit_conn 5 key=$uri",
        ] {
            assert!(wrong(text).ends_with(&format!("; it is written {WRITTEN}")), "{}", wrong(text));
        }
    }
}
