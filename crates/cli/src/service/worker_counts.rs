//! Reads how many workers a server reports: `[upstream.NAME.capacity] workers_from`.
//!
//! Apache's `server-status?auto` reports the workers that exist now, `BusyWorkers + IdleWorkers`. Its scoreboard is longer: it
//! has a place for each worker that `ServerLimit` would allow, whatever `MaxRequestWorkers` says; a request given to a worker
//! that does not exist would wait in the server instead of in the gateway. Apache starts more workers when few are idle; the
//! next look sees them. PHP-FPM's page has `total processes`, which follows the same rule. nginx's `stub_status` has only
//! connections, whose number does not tell how many requests the server behind nginx works on.
//!
//! A thread of its own requests the page, which waits like any other request. If there is no answer, or it is not understood,
//! the last report stays in force.

use crate::service::page::PageClient;
use crate::service::sync::lock;
use plimsoll_config::{Backend, Configuration, HttpUrl};
use plimsoll_gateway::Reloader;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const EVERY: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a page must have answered, or not, before a line says so: an overloaded server sometimes answers late.
const LASTS: Duration = Duration::from_secs(10);

/// The upstreams that have such a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerCounts(Arc<Mutex<Vec<WorkerPage>>>);

#[derive(Clone, Debug)]
struct WorkerPage {
    upstream: String,
    page: HttpUrl,
    said: Said,
}

/// What was logged about a page.
#[derive(Clone, Copy, Debug, Default)]
struct Said {
    /// Whether the page answers, according to the log, and since when; `None` before the first look.
    answers: Option<(bool, Instant)>,
    has_answered: bool,
    /// Since when each look has found the opposite.
    contrary: Option<Instant>,
}

/// The news in a look's result.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    /// The page's state was found for the first time.
    First,
    /// The state has lasted this long.
    Lasts(Duration),
    /// The page answers again, after it did not for this long.
    Over(Duration),
}

impl Said {
    /// Takes the result of a look. Returns the news, which then counts as logged.
    fn look(&mut self, answers: bool, now: Instant) -> Option<Change> {
        let Some((said, since)) = self.answers else {
            *self = Said { answers: Some((answers, now)), has_answered: answers, contrary: None };
            return Some(Change::First);
        };
        if said == answers {
            self.contrary = None;
            return None;
        }
        let from = *self.contrary.get_or_insert(now);
        if now - from < LASTS {
            return None;
        }
        let change = match answers {
            true if self.has_answered => Change::Over(from - since),
            true => Change::First,
            false => Change::Lasts(now - from),
        };
        *self = Said { answers: Some((answers, from)), has_answered: true, contrary: None };
        Some(change)
    }
}

impl WorkerCounts {
    /// Takes the pages of a configuration. A page that stays keeps its state, so that nothing is logged twice.
    pub(crate) fn follow(&self, configuration: &Configuration) {
        let mut pages = lock(&self.0);
        let before = std::mem::take(&mut *pages);
        let plants = configuration.promises.plants.iter().zip(&configuration.gateway.backends);
        pages.extend(plants.filter_map(|(plant, backend)| {
            let Backend::Upstream { workers_from: Some(page), .. } = backend else { return None };
            let same = before.iter().find(|known| known.upstream == plant.name && known.page == *page);
            let new =
                || WorkerPage { upstream: plant.name.clone(), page: page.clone(), said: Said::default() };
            Some(same.cloned().unwrap_or_else(new))
        }));
    }

    /// Starts the thread that requests the pages as long as the process runs.
    pub(crate) fn start(self, gateway: Reloader) -> io::Result<()> {
        let ask = move || {
            loop {
                let pages = lock(&self.0).clone();
                pages.iter().for_each(|page| self.look(page, &gateway));
                thread::sleep(EVERY);
            }
        };
        thread::Builder::new().name("worker-counts".to_owned()).spawn(ask).map(drop)
    }

    fn look(&self, looked_at: &WorkerPage, gateway: &Reloader) {
        let WorkerPage { upstream, page, mut said } = looked_at.clone();
        let counted = ask(&page).and_then(|workers| {
            let reported = gateway.report_workers(&upstream, workers).map(|()| workers);
            reported.map_err(|servers| {
                format!("it speaks of one server, and the name of {upstream} has {servers}; write `workers`, their sum, instead")
            })
        });
        if let Some(change) = said.look(counted.is_ok(), Instant::now()) {
            let (line, page) = (line(&page, &counted, change), page.to_string());
            match counted {
                Ok(workers) => tracing::info!(upstream, page, workers, "{line}"),
                Err(_) => tracing::warn!(upstream, page, "{line}"),
            }
        }
        let mut pages = lock(&self.0);
        if let Some(known) = pages.iter_mut().find(|known| known.upstream == upstream && known.page == page) {
            known.said = said;
        }
    }
}

/// The log line for a page that begins to answer, or ceases to.
fn line(page: &HttpUrl, counted: &Result<u32, String>, change: Change) -> String {
    match (counted, change) {
        (Ok(workers), Change::Over(without)) => {
            format!(
                "{page} says again that it has {workers} workers, after {:.0} s without",
                without.as_secs_f64()
            )
        }
        (Ok(workers), _) => format!("{page} says that it has {workers} workers"),
        (Err(why), Change::First) => format!(
            "{page} does not say how many workers there are: {why}; the workers are looked for until it does"
        ),
        (Err(why), Change::Lasts(time) | Change::Over(time)) => format!(
            "{page} has not said for {:.0} s how many workers there are: {why}; what it said last stays in force",
            time.as_secs_f64()
        ),
    }
}

fn ask(url: &HttpUrl) -> Result<u32, String> {
    let why = |error: io::Error| error.to_string();
    let page = PageClient::new(url, PATIENCE).and_then(|client| client.get()).map_err(why)?;
    match page.status {
        200 => workers(&page.body),
        status => Err(format!("it is answered with {status}; let this host read it")),
    }
}

fn workers(body: &str) -> Result<u32, String> {
    let number = |name: &str| {
        let value = body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|text| text.trim().parse::<u32>().ok())
    };
    let apache = number("BusyWorkers").zip(number("IdleWorkers"));
    let all = apache.map(|(busy, idle)| busy.saturating_add(idle)).or_else(|| number("total processes"));
    match all {
        Some(0) => Err("it counts none".to_owned()),
        Some(workers) => Ok(workers),
        None if body.starts_with("Active connections") => {
            Err("nginx's `stub_status` counts connections and no workers: write `workers`, or leave both out"
                .to_owned())
        }
        None => Err("it is neither Apache's status page (end it with `?auto`) nor PHP-FPM's".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_say_it_and_pages_that_do_not() {
        let apache =
            "ServerVersion: Apache/2.4.62\nBusyWorkers: 3\nIdleWorkers: 5\nScoreboard: __WWK___........\n";
        assert_eq!(workers(apache), Ok(8), "those that are there, not the places for more");
        let fpm = "pool:                 www\nprocess manager:      dynamic\nidle processes:       2\n\
                   active processes:     1\ntotal processes:      3\nmax active processes: 9\n";
        assert_eq!(workers(fpm), Ok(3));
        let nginx = "Active connections: 5 \nserver accepts handled requests\n 10 10 21 \n";
        assert!(workers(nginx).is_err_and(|why| why.contains("no workers: write `workers`")));
        assert!(workers("<html>").is_err_and(|why| why.contains("`?auto`")));
        assert!(workers("BusyWorkers: 0\nIdleWorkers: 0\n").is_err());
        assert!(workers("BusyWorkers: -1\nIdleWorkers: 4294967295\n").is_err());
    }

    #[test]
    fn what_is_said_of_a_page_says_what_is_done_without_it() {
        let page = HttpUrl {
            scheme: plimsoll_config::Scheme::Http,
            address: "a:80".to_owned(),
            host: "a".to_owned(),
            target: "/s?auto".to_owned(),
        };
        assert_eq!(line(&page, &Ok(8), Change::First), "http://a/s?auto says that it has 8 workers");
        let failed = Err("no answer in time".to_owned());
        let never = line(&page, &failed, Change::First);
        assert!(never.ends_with("no answer in time; the workers are looked for until it does"), "{never}");
        let lasts = line(&page, &failed, Change::Lasts(LASTS));
        assert!(lasts.contains("has not said for 10 s") && lasts.ends_with("stays in force"), "{lasts}");
        let over = line(&page, &Ok(8), Change::Over(Duration::from_secs(95)));
        assert!(over.ends_with("says again that it has 8 workers, after 95 s without"), "{over}");
    }

    /// The page of an overloaded server is late now and then.
    #[test]
    fn what_lasts_is_said_once() {
        let (mut said, start) = (Said::default(), Instant::now());
        let mut look = |second: u64, answers| said.look(answers, start + Duration::from_secs(second));
        assert_eq!(look(0, true), Some(Change::First));
        assert!((1..=100).all(|n| look(2 * n, n % 2 == 0).is_none()), "it answers every second time");
        assert!((201..211).all(|second| look(second, false).is_none()));
        assert_eq!(look(211, false), Some(Change::Lasts(LASTS)));
        assert!((212..230).all(|second| look(second, second % 9 == 0).is_none()));
        assert!((231..241).all(|second| look(second, true).is_none()));
        assert_eq!(look(241, true), Some(Change::Over(Duration::from_secs(30))));
        assert_eq!(look(250, true), None);
        let mut late = Said::default();
        let looks = [0, 2, 12].map(|second| late.look(second > 0, start + Duration::from_secs(second)));
        assert_eq!(looks, [Some(Change::First), None, Some(Change::First)], "it answers for the first time");
    }
}
