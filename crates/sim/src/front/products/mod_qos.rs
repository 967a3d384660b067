//! mod_qos of Apache: limits on connections and on requests by location, above which requests are rejected.
//!
//! - `QS_SrvMaxConn 256`: the most connections at the server at once; here each request has a connection of its own.
//! - `QS_SrvMaxConnPerIP 10`: the most connections from one client address.
//! - `QS_LocRequestLimit /buy 10`: the most requests at once whose path begins with this text; the longest that fits counts.
//! - `QS_LocRequestLimitDefault 50`: the same for locations without a limit of their own, here for all other paths together.
//!
//! There is no queue (mod_qos, "Request Level Control" and "Connection Level Control"). `QS_LocRequestPerSecLimit`, which
//! delays by a measured rate, and limits by bandwidth are left out.

use super::directives::once;
use super::{Asked, Directives, Gone, MakeRules, Rules, Ruling};
use plimsoll_core::request::Reason;
use plimsoll_core::time::Instant;
use std::collections::BTreeMap;
use std::net::IpAddr;

const WRITTEN: &str = "mod_qos: QS_SrvMaxConn 256; QS_SrvMaxConnPerIP 10; QS_LocRequestLimit /buy 10";

/// A server's limits.
#[derive(Clone, Debug, Default)]
struct ModQos {
    most: Option<u32>,
    most_per_client: Option<u32>,
    /// Locations by the beginning of the path; the empty one is the default.
    locations: BTreeMap<String, Location>,
    clients: BTreeMap<IpAddr, u32>,
    under_way: u32,
    /// For each request in progress, its client and its location.
    held: Vec<Option<(IpAddr, Option<String>)>>,
}

#[derive(Clone, Debug)]
struct Location {
    most: u32,
    under_way: u32,
}

pub(super) fn read(directives: Directives<'_>) -> Result<MakeRules, String> {
    let mut rules = ModQos::default();
    directives.each(WRITTEN, |name, words| {
        let mut limit = |path: &str, most| {
            let before = rules.locations.insert(path.to_owned(), Location { most, under_way: 0 });
            before.map_or(Ok(()), |_| Err(format!("{name} {path} is written twice")))
        };
        match name {
            "QS_SrvMaxConn" => once(&mut rules.most, words.count("the number of connections")?, name),
            "QS_SrvMaxConnPerIP" => {
                once(&mut rules.most_per_client, words.count("the number of connections")?, name)
            }
            "QS_LocRequestLimitDefault" => limit("", words.count("the number of requests")?),
            "QS_LocRequestLimit" => {
                let path = words.word("the location")?;
                limit(path, words.count("the number of requests")?)
            }
            _ => Err(format!("there is no directive \"{name}\" here")),
        }
    })?;
    Ok(Box::new(move |_, _| Box::new(rules.clone())))
}

impl ModQos {
    /// The location of a path: the longest one with which the path begins.
    fn location(&self, path: &str) -> Option<String> {
        let fits = self.locations.keys().filter(|location| path.starts_with(location.as_str()));
        fits.max_by_key(|location| location.len()).cloned()
    }

    fn is_full(&self, client: IpAddr, location: Option<&String>) -> bool {
        let of_client = self.clients.get(&client).copied().unwrap_or(0);
        let place = location.and_then(|location| self.locations.get(location));
        self.most.is_some_and(|most| self.under_way >= most)
            || self.most_per_client.is_some_and(|most| of_client >= most)
            || place.is_some_and(|place| place.under_way >= place.most)
    }
}

impl Rules for ModQos {
    fn arrive(&mut self, _now: Instant, asked: Asked<'_>) -> Ruling {
        let client = asked.request.client;
        let location = self.location(&asked.request.path);
        if self.is_full(client, location.as_ref()) {
            return Ruling::Reject(Reason::Overload);
        }
        self.under_way += 1;
        *self.clients.entry(client).or_default() += 1;
        if let Some(place) = location.as_ref().and_then(|location| self.locations.get_mut(location)) {
            place.under_way += 1;
        }
        let free = self.held.iter().position(Option::is_none).unwrap_or(self.held.len());
        if free == self.held.len() {
            self.held.push(None);
        }
        self.held[free] = Some((client, location));
        Ruling::Start(free as u32)
    }

    fn released(&mut self, _now: Instant, gone: Gone) {
        let Some((client, location)) = self.held[gone.holds as usize].take() else { return };
        self.under_way -= 1;
        if let Some(of_client) = self.clients.get_mut(&client) {
            *of_client -= 1;
            if *of_client == 0 {
                self.clients.remove(&client);
            }
        }
        if let Some(place) = location.and_then(|location| self.locations.get_mut(&location)) {
            place.under_way -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{asked, request, rules, wrong};
    use super::*;
    use plimsoll_core::request::Outcome;

    const OVER: Ruling = Ruling::Reject(Reason::Overload);

    fn ask(rules: &mut dyn Rules, path: &str, client: u8) -> Ruling {
        let one = request(path, client);
        rules.arrive(Instant::ZERO, asked(&one, 1))
    }

    #[test]
    fn each_limit_counts_its_own() {
        let mut server = rules("mod_qos: QS_SrvMaxConn 4; QS_SrvMaxConnPerIP 2; QS_LocRequestLimit /buy 1");
        assert_eq!(ask(&mut *server, "/buy/a", 1), Ruling::Start(0));
        assert_eq!(ask(&mut *server, "/buy/b", 2), OVER, "the location is full");
        assert_eq!(ask(&mut *server, "/", 1), Ruling::Start(1));
        assert_eq!(ask(&mut *server, "/", 1), OVER, "the client has two");
        assert_eq!(
            [ask(&mut *server, "/", 2), ask(&mut *server, "/", 2)],
            [Ruling::Start(2), Ruling::Start(3)]
        );
        assert_eq!(ask(&mut *server, "/", 3), OVER, "the server has four");
        server.released(Instant::ZERO, Gone { holds: 0, started: Instant::ZERO, ended: Outcome::Completed });
        assert_eq!(ask(&mut *server, "/buy/c", 3), Ruling::Start(0));
    }

    #[test]
    fn the_longest_location_counts_and_the_default_takes_the_rest() {
        let mut server =
            rules("mod_qos: QS_LocRequestLimitDefault 1; QS_LocRequestLimit /a 1; QS_LocRequestLimit /a/b 2");
        let ruled =
            ["/a/b/c", "/a/b", "/a/b", "/a", "/a", "/", "/x"].map(|path| ask(&mut *server, path, 1) != OVER);
        assert_eq!(ruled, [true, true, false, true, false, true, false]);
    }

    #[test]
    fn errors_say_what_to_write() {
        for text in [
            "mod_qos: QS_SrvMaxConn x",
            "mod_qos: QS_LocRequestLimit /a",
            "mod_qos: QS_EventLimit 5",
            "mod_qos: QS_SrvMaxConn 5; QS_SrvMaxConn 6",
            "mod_qos: QS_SrvMaxConnPerIP 5; QS_SrvMaxConnPerIP 6",
            "mod_qos: QS_LocRequestLimitDefault 5; QS_LocRequestLimitDefault 6",
            "mod_qos: QS_LocRequestLimit /a 5; QS_LocRequestLimit /b 5; QS_LocRequestLimit /a 6",
            "mod_qos: ",
        ] {
            assert!(wrong(text).ends_with(&format!("; it is written {WRITTEN}")), "{}", wrong(text));
        }
    }
}
