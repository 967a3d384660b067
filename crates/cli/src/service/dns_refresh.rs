//! Looks up the names of upstreams again while the gateway runs. If a name has new addresses, requests go there, as after a
//! reload.
//!
//! A thread of its own looks up one upstream at a time, and each lookup runs on a further thread (`hanging_reads.rs`), because
//! a call of the resolver cannot be interrupted: a name server that hangs delays neither requests nor reloads. If a name cannot
//! be looked up, it keeps its addresses, so a failing name server takes no server away; the log says so once, and the status as
//! long as it lasts.
//!
//! Lookups follow the configured interval and not the answers' time to live, which the system's resolver does not tell. The
//! system's resolver knows `/etc/hosts` and this machine's other sources of names, which a resolver of the gateway's own would
//! not.

use crate::service::hanging_reads::Readings;
use crate::service::reload::Turns;
use crate::service::resolve::{Found, look_up};
use crate::service::sync::lock;
use plimsoll_config::{Backend, Configuration};
use plimsoll_gateway::Reloader;
use plimsoll_gateway::settings::Address;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How often the thread checks which upstream is due.
const LOOK: Duration = Duration::from_millis(100);

/// The upstreams whose addresses contain names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookups(Arc<Mutex<Vec<Watched>>>);

#[derive(Clone, Debug)]
struct Watched {
    upstream: String,
    hosts: Vec<Host>,
    every: Duration,
    due: Instant,
    failure: Option<String>,
}

/// A server's address as it is configured.
#[derive(Clone, Debug, PartialEq)]
struct Host {
    at: String,
    /// If TLS is used, the name that the server's certificate must have.
    name: Option<String>,
    /// The addresses at the last successful lookup.
    found: Vec<Address>,
}

impl Host {
    fn is_name(&self) -> bool {
        !self.at.starts_with("unix:") && self.at.parse::<SocketAddr>().is_err()
    }
}

impl Watched {
    /// Takes the results of a lookup, by host; returns the line to be logged, if any.
    fn take(&mut self, found: Vec<Result<Vec<Address>, String>>) -> Option<String> {
        let mut failures = Vec::new();
        for (host, found) in self.hosts.iter_mut().zip(found) {
            match found {
                Ok(found) => host.found = found,
                Err(why) => failures.push(format!("`{}` cannot be looked up: {why}", host.at)),
            }
        }
        let before = self.failure.take();
        self.failure = (!failures.is_empty()).then(|| failures.join("; "));
        match (&before, &self.failure) {
            (None, Some(why)) => Some(format!("{why}; its earlier addresses stay in use")),
            (Some(_), None) => Some("its names are found again".to_owned()),
            _ => None,
        }
    }

    /// All addresses, each once.
    fn addresses(&self) -> Vec<(Address, Option<String>)> {
        let mut all: Vec<(Address, Option<String>)> = Vec::new();
        for (host, address) in
            self.hosts.iter().flat_map(|host| host.found.iter().map(move |one| (host, one)))
        {
            if all.iter().all(|(known, _)| known != address) {
                all.push((address.clone(), host.name.clone()));
            }
        }
        all
    }
}

impl Lookups {
    /// Takes the upstreams of a configuration, with the addresses just found for their names.
    pub(crate) fn follow(&self, configuration: &Configuration, found: Found) {
        let plants = configuration.promises.plants.iter().zip(&configuration.gateway.backends).zip(found);
        let watched = plants.filter_map(|((plant, backend), found)| {
            let Backend::Upstream { addresses, settings, look_up_every: Some(every), .. } = backend else {
                return None;
            };
            let host = |(number, (at, found)): (usize, (&String, Vec<Address>))| {
                let name = settings.tls.as_ref().and_then(|tls| tls.names.get(number)).cloned();
                Host { at: at.clone(), name, found }
            };
            let hosts: Vec<Host> = addresses.iter().zip(found).enumerate().map(host).collect();
            let due = Instant::now() + *every;
            let (upstream, every) = (plant.name.clone(), *every);
            hosts.iter().any(Host::is_name).then_some(Watched { upstream, hosts, every, due, failure: None })
        });
        *lock(&self.0) = watched.collect();
    }

    /// The last known addresses of a name, if it is looked up again and again.
    pub(crate) fn found(&self, at: &str) -> Option<Vec<Address>> {
        let all = lock(&self.0);
        let host = all.iter().flat_map(|one| &one.hosts).find(|host| host.at == at && host.is_name())?;
        Some(host.found.clone())
    }

    /// Starts the thread that looks names up as long as the process runs.
    pub(crate) fn start(&self, gateway: Reloader, turns: Arc<Turns>) -> io::Result<()> {
        let lookups = self.clone();
        let readings = Readings::default();
        let run = move || {
            loop {
                thread::sleep(LOOK);
                for one in lookups.due(Instant::now()) {
                    let found = look(&readings, &one.hosts);
                    let _turn = turns.wait();
                    lookups.take(&one, found, &gateway);
                }
            }
        };
        thread::Builder::new().name("lookups".to_owned()).spawn(run).map(drop)
    }

    /// The upstreams that are due; their next lookup is an interval from now.
    fn due(&self, now: Instant) -> Vec<Watched> {
        let mut all = lock(&self.0);
        let due = all.iter_mut().filter(|one| one.due <= now);
        due.map(|one| {
            one.due = now + one.every;
            one.clone()
        })
        .collect()
    }

    /// Takes the results for an upstream, unless a reload has changed it meanwhile.
    fn take(&self, asked: &Watched, found: Vec<Result<Vec<Address>, String>>, gateway: &Reloader) {
        let mut all = lock(&self.0);
        let same = |one: &&mut Watched| one.upstream == asked.upstream && one.hosts == asked.hosts;
        let Some(one) = all.iter_mut().find(same) else { return };
        let had_failed = one.failure.is_some();
        let news = one.take(found);
        match gateway.readdress(&one.upstream, &one.addresses()) {
            Ok(Some([new, gone])) => {
                let parts = [("new", new), ("gone", gone)].into_iter().filter(|(_, list)| !list.is_empty());
                let texts: Vec<String> =
                    parts.map(|(what, list)| format!("{what}: {}", listed(&list))).collect();
                if !texts.is_empty() {
                    let upstream = &one.upstream;
                    tracing::info!(upstream, "its names have other addresses; {}", texts.join("; "));
                }
            }
            Ok(None) => {}
            Err(why) => {
                tracing::warn!(upstream = one.upstream, "its new addresses are not used: {why}")
            }
        }
        gateway.note_lookup(&one.upstream, one.failure.clone());
        if let Some(news) = news {
            match had_failed {
                true => tracing::info!(upstream = one.upstream, "{news}"),
                false => tracing::warn!(upstream = one.upstream, "{news}"),
            }
        }
    }
}

fn listed(addresses: &[Address]) -> String {
    addresses.iter().map(Address::to_string).collect::<Vec<_>>().join(", ")
}

/// Looks up each of these hosts on a thread of its own.
fn look(readings: &Readings, hosts: &[Host]) -> Vec<Result<Vec<Address>, String>> {
    let asked: Vec<String> = hosts.iter().map(|host| host.at.clone()).collect();
    let found = readings.in_time(move || Ok(asked.iter().map(|at| look_up(at)).collect()));
    let unanswered = || vec![Err("no answer in time".to_owned()); hosts.len()];
    found.unwrap_or_else(|_| unanswered())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Address {
        Address::Tcp(SocketAddr::from(([10, 0, 0, last], 80)))
    }

    fn watched() -> Watched {
        let host = |at: &str, found| Host { at: at.to_owned(), name: Some(at.to_owned()), found };
        let hosts = vec![host("a:80", vec![address(1)]), host("b:80", vec![address(2)])];
        let (every, due) = (Duration::from_secs(1), Instant::now());
        Watched { upstream: "app".to_owned(), hosts, every, due, failure: None }
    }

    fn addresses(one: &Watched) -> Vec<Address> {
        one.addresses().into_iter().map(|(address, _)| address).collect()
    }

    #[test]
    fn a_name_that_is_not_found_keeps_its_addresses_and_others_move() {
        let mut one = watched();
        let failed = || Err("no such host".to_owned());
        let said = one.take(vec![Ok(vec![address(3), address(4)]), failed()]).expect("it is news");
        assert_eq!(said, "`b:80` cannot be looked up: no such host; its earlier addresses stay in use");
        assert_eq!(addresses(&one), [address(3), address(4), address(2)]);
        assert_eq!(one.take(vec![failed(), failed()]), None, "it was said");
        assert!(one.failure.as_deref().is_some_and(|why| why.contains("`a:80`") && why.contains("`b:80`")));
        assert_eq!(addresses(&one), [address(3), address(4), address(2)], "all stay as they are");
        let found = one.take(vec![Ok(vec![address(1)]), Ok(vec![address(1)])]);
        assert_eq!(found.as_deref(), Some("its names are found again"));
        assert_eq!(one.addresses(), [(address(1), Some("a:80".to_owned()))], "two names of one server");
    }

    #[test]
    fn only_upstreams_with_names_are_looked_up_and_none_that_is_to_be_left_alone() {
        let source = "[gateway]\nlisten = \"127.0.0.1:0\"\n[upstream.named]\naddress = [\"10.0.0.9:80\", \"localhost:80\"]\n\
                      resolve = \"1s\"\n[upstream.still]\naddress = \"localhost:80\"\nresolve = \"off\"\n\
                      [upstream.number]\naddress = [\"127.0.0.1:80\", \"unix:/run/a\"]\n\
                      [[site]]\nname = \"a\"\nupstream = \"named\"\n";
        let configuration = crate::args::source::understand(source, "test.toml").expect("the file is right");
        let lookups = Lookups::default();
        lookups.follow(
            &configuration,
            vec![vec![vec![address(9)], vec![address(1)]], vec![vec![address(1)]], vec![]],
        );
        let names: Vec<String> = lock(&lookups.0).iter().map(|one| one.upstream.clone()).collect();
        assert_eq!(names, ["named"]);
        let found = ["localhost:80", "10.0.0.9:80", "other:80"].map(|at| lookups.found(at));
        assert_eq!(found, [Some(vec![address(1)]), None, None], "for a reload at which a name is not found");
        let now = Instant::now();
        assert!(lookups.due(now).is_empty(), "they were found a moment ago");
        let later = now + Duration::from_secs(2);
        assert_eq!((lookups.due(later).len(), lookups.due(later).len()), (1, 0), "once in an interval");
    }
}
