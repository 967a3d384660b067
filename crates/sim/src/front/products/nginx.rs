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
//! Each may be written several times: a request is rejected if one of them rejects it, and then none of its kind counts it;
//! else the longest wait counts.
//!
//! Time is counted in milliseconds and requests in thousandths, as there (`ngx_http_limit_req_module.c`,
//! `ngx_http_limit_req_lookup` and `_account`; `ngx_http_limit_conn_module.c`). `limit_req` is asked first, so that a request
//! that it delays is no connection yet for `limit_conn`.

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
    requests: Vec<Buckets>,
    connections: Vec<Connections>,
    /// Numbers for clients, which requests hold.
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
                let (rate, all) = (self::rate(rate)?, BTreeMap::new());
                rules.requests.push(Buckets { rate, burst, delay, by_client, all });
            }
            "limit_conn" => {
                let most = words.count("the number of requests")?;
                rules.connections.push(Connections { most, by_client, all: BTreeMap::new() });
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
    fn key(&self, client: u32) -> u32 {
        if self.by_client { client } else { 0 }
    }

    /// What a request exceeds the rate by; `None` if it is rejected.
    fn excess(&self, now_ms: i64, client: u32) -> Option<i64> {
        let counted = self.all.get(&self.key(client));
        let excess = counted.map_or(0, |(excess, last)| excess - self.rate * (now_ms - last) / 1000 + ONE);
        Some(excess.max(0)).filter(|excess| *excess <= self.burst)
    }

    /// Counts it; says how long it waits.
    fn account(&mut self, now_ms: i64, client: u32, excess: i64) -> Duration {
        self.all.insert(self.key(client), (excess, now_ms));
        let beyond = (excess - self.delay).max(0);
        Duration::from_millis((beyond * 1000 / self.rate) as u64)
    }
}

impl Connections {
    fn under_way(&mut self, client: u32) -> &mut u32 {
        self.all.entry(if self.by_client { client } else { 0 }).or_default()
    }
}

impl Nginx {
    fn client(&mut self, address: IpAddr) -> u32 {
        let next = self.clients.len() as u32;
        *self.clients.entry(address).or_insert(next)
    }

    /// Starts a request, unless the limit on requests at once is reached.
    fn connect(&mut self, client: u32) -> Ruling {
        if self.connections.iter_mut().any(|limit| *limit.under_way(client) >= limit.most) {
            return Ruling::Reject(Reason::Overload);
        }
        self.connections.iter_mut().for_each(|limit| *limit.under_way(client) += 1);
        Ruling::Start(client)
    }
}

impl Rules for Nginx {
    fn arrive(&mut self, now: Instant, asked: Asked<'_>) -> Ruling {
        let client = self.client(asked.request.client);
        let now_ms = (now.as_nanos() / 1_000_000) as i64;
        let excesses = self.requests.iter().map(|buckets| buckets.excess(now_ms, client));
        let Some(excesses) = excesses.collect::<Option<Vec<i64>>>() else {
            return Ruling::Reject(Reason::Overload);
        };
        let each = self.requests.iter_mut().zip(excesses);
        match each.map(|(buckets, excess)| buckets.account(now_ms, client, excess)).max() {
            Some(wait) if !wait.is_zero() => Ruling::After(wait, client),
            _ => self.connect(client),
        }
    }

    fn resume(&mut self, _now: Instant, holds: u32) -> Ruling {
        self.connect(holds)
    }

    fn released(&mut self, _now: Instant, gone: Gone) {
        self.connections.iter_mut().for_each(|limit| *limit.under_way(gone.holds) -= 1);
    }

    fn delays(&self) -> bool {
        self.requests.iter().any(|buckets| buckets.delay < buckets.burst)
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
    fn all_of_several_are_asked_and_what_one_rejects_fills_none() {
        let ask = |server: &mut dyn Rules, ms, client| {
            let one = request("/", client);
            server.arrive(at(ms), asked(&one, 1))
        };
        let mut server = rules(
            "nginx: limit_req rate=20r/s burst=5 nodelay; limit_req rate=5r/s burst=5 nodelay key=$binary_remote_addr",
        );
        let started = (0..100).filter(|n| ask(&mut *server, n * 10, *n as u8) != OVER).count();
        assert_eq!(started, 6 + 19, "each client is its first: the server's bucket alone limits them");
        let mut server = rules(
            "nginx: limit_req rate=1r/s burst=2 nodelay key=$binary_remote_addr; limit_req rate=1r/s burst=3",
        );
        let ruled = [1, 1, 1, 1, 2, 2].map(|client| ask(&mut *server, 0, client));
        let after = |seconds, holds| Ruling::After(Duration::from_secs(seconds), holds);
        assert_eq!(ruled, [Ruling::Start(0), after(1, 0), after(2, 0), OVER, after(3, 1), OVER]);
        assert!(server.delays());
        let mut server = rules("nginx: limit_conn 3; limit_conn 1 key=$binary_remote_addr");
        let ruled = [1, 1, 2, 3, 4].map(|client| ask(&mut *server, 0, client) != OVER);
        assert_eq!(ruled, [true, false, true, true, false]);
        server.released(at(1), Gone { holds: 0, started: at(0), ended: Outcome::Completed });
        assert_eq!([2, 1].map(|client| ask(&mut *server, 2, client) != OVER), [false, true]);
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
