//! A status page: Apache's `server-status?auto`, or nginx's `stub_status`.
//!
//! It is asked for by a thread of its own, because in overload the page waits like all others. What a look sees is how
//! the totals moved between the two latest answers; without a new one it sees nothing.

use crate::service::page::PageClient;
use plimsoll_config::HttpUrl;
use plimsoll_core::agent::{Counters, LoadSense};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// A page that takes longer is asked for anew.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Apache,
    Nginx,
}

/// What a page says: totals since the server's start, and the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    requests: Option<u64>,
    bytes: Option<u64>,
    in_service: Option<u32>,
    workers: Option<u32>,
}

type Latest = Mutex<Option<(Instant, Totals)>>;

/// The page, asked for again and again.
pub(crate) struct StatusPage {
    latest: Arc<Latest>,
    seen: Option<(Instant, Totals)>,
}

impl StatusPage {
    /// Asks once, and goes on if the answer says what `sense` needs.
    pub(super) fn open(
        url: &HttpUrl,
        format: Format,
        (sense, every): (LoadSense, Duration),
    ) -> Result<StatusPage, String> {
        let client = PageClient::new(url, PATIENCE)
            .map_err(|error| format!("{}: cannot be looked up: {error}", url.address))?;
        let place = url.to_string();
        let first = read(&client, &place, format)?;
        lacks(&first, sense, format).map_or(Ok(()), Err)?;
        let latest = Arc::new(Mutex::new(Some((Instant::now(), first))));
        let shared = Arc::downgrade(&latest);
        let ask = move || while ask(&shared, (&client, &place), format, every).is_some() {};
        let thread = thread::Builder::new().name("status".to_owned()).spawn(ask);
        thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(StatusPage { latest, seen: None })
    }

    pub(super) fn look(&mut self) -> Option<(Counters, f64)> {
        let latest = (*self.latest.lock().unwrap_or_else(PoisonError::into_inner))?;
        let before = self.seen.replace(latest)?;
        moved(&before, &latest)
    }
}

/// How totals moved; none if nothing is new, or the server was started anew.
fn moved((then, before): &(Instant, Totals), (now, totals): &(Instant, Totals)) -> Option<(Counters, f64)> {
    let seconds = now.saturating_duration_since(*then).as_secs_f64();
    let since = |now: Option<u64>, then: Option<u64>| match (now, then) {
        (Some(now), Some(then)) => now.checked_sub(then),
        _ => Some(0),
    };
    let requests = since(totals.requests, before.requests)?;
    let bytes = since(totals.bytes, before.bytes)?;
    let Totals { in_service, workers, .. } = *totals;
    // The page itself was one of them.
    let requests = requests.saturating_sub(1);
    (seconds > 0.0).then_some((Counters { requests, bytes, in_service, workers }, seconds))
}

/// One question, and the rest of the interval; none when nobody looks any more.
fn ask(
    latest: &Weak<Latest>,
    (client, place): (&PageClient, &str),
    format: Format,
    every: Duration,
) -> Option<()> {
    let started = Instant::now();
    let totals = read(client, place, format);
    let latest = latest.upgrade()?;
    if let Ok(totals) = totals {
        *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), totals));
    }
    drop(latest);
    thread::sleep(every.saturating_sub(started.elapsed()));
    Some(())
}

fn read(client: &PageClient, place: &str, format: Format) -> Result<Totals, String> {
    let page = client.get().map_err(|error| format!("{place}: {error}"))?;
    if page.status != 200 {
        let how = match format {
            Format::Apache => "`SetHandler server-status` in a `<Location>` that this host may read",
            Format::Nginx => "`stub_status;` in a `location` that this host may read",
        };
        return Err(format!("{place} is answered with {}; the server needs {how}", page.status));
    }
    let totals = match format {
        Format::Apache => apache(&page.body),
        Format::Nginx => nginx(&page.body),
    };
    match totals.in_service.is_some() || totals.requests.is_some() {
        true => Ok(totals),
        false => Err(match format {
            Format::Apache => format!("{place} is no status page of Apache; end it with `?auto`"),
            Format::Nginx => format!("{place} is no `stub_status` page of nginx"),
        }),
    }
}

/// What a page does not say, and how to make it.
fn lacks(totals: &Totals, sense: LoadSense, format: Format) -> Option<String> {
    match sense {
        _ if totals.requests.is_none() => {
            Some("the status page counts no requests: write `ExtendedStatus On`".to_owned())
        }
        LoadSense::Gap { workers: None } if totals.workers.is_none() => Some(
            "the status page does not say how many workers there are: write `workers` under [server]"
                .to_owned(),
        ),
        LoadSense::Linear { .. } if totals.bytes.is_none() && format == Format::Apache => {
            Some("the status page counts no bytes: write `ExtendedStatus On`".to_owned())
        }
        _ => None,
    }
}

/// Lines `Name: value`. The slots of the scoreboard are all that may ever be started, the workers only those that are.
fn apache(body: &str) -> Totals {
    let value = |name: &str| body.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let number = |name: &str| value(name).and_then(|text| text.trim().parse::<u64>().ok());
    let slots = value("Scoreboard").map(|slots| slots.trim().len() as u32).filter(|slots| *slots > 0);
    let running = number("BusyWorkers").zip(number("IdleWorkers")).map(|(busy, idle)| (busy + idle) as u32);
    let workers = slots.or(running);
    // Less the one that answers this. If that is the last one, the question waited for it, mostly: then all are busy
    // without it too, and a full server would seem to have one worker to spare.
    let others = |busy: u32| if Some(busy) == workers { busy } else { busy.saturating_sub(1) };
    Totals {
        requests: number("Total Accesses"),
        bytes: number("Total kBytes").map(|kilobytes| kilobytes * 1024),
        in_service: number("BusyWorkers").map(|busy| others(busy as u32)),
        workers,
    }
}

/// ```text
/// Active connections: 2
/// server accepts handled requests
///  10 10 21
/// Reading: 0 Writing: 1 Waiting: 1
/// ```
fn nginx(body: &str) -> Totals {
    let mut lines = body.lines();
    let totals = lines.by_ref().skip_while(|line| !line.contains("accepts")).nth(1);
    let requests = totals.and_then(|line| line.split_ascii_whitespace().nth(2)?.parse().ok());
    let mut words = body.split_ascii_whitespace().skip_while(|word| *word != "Writing:").skip(1);
    let writing = words.next().and_then(|word| word.parse::<u32>().ok());
    // Less the one that answers this.
    let in_service = writing.map(|writing| writing.saturating_sub(1));
    Totals { requests, bytes: None, in_service, workers: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APACHE: &str = "localhost\nServerVersion: Apache/2.4.62\nTotal Accesses: 120\nTotal kBytes: 30\n\
                          ReqPerSec: 2.5\nBusyWorkers: 3\nIdleWorkers: 2\nScoreboard: __WWK...\n";
    const NGINX: &str = "Active connections: 5 \nserver accepts handled requests\n 10 10 21 \nReading: 0 Writing: 4 \
                         Waiting: 1 \n";

    #[test]
    fn both_pages() {
        let apache = apache(APACHE);
        assert_eq!((apache.requests, apache.bytes), (Some(120), Some(30_720)));
        assert_eq!((apache.in_service, apache.workers), (Some(2), Some(8)));
        let full = super::apache(&APACHE.replace("BusyWorkers: 3", "BusyWorkers: 8"));
        assert_eq!((full.in_service, full.workers), (Some(8), Some(8)));
        let nginx = nginx(NGINX);
        assert_eq!((nginx.requests, nginx.bytes), (Some(21), None));
        assert_eq!((nginx.in_service, nginx.workers), (Some(3), None));
        assert_eq!(super::nginx("<html>"), Totals::default());
    }

    #[test]
    fn totals_move_and_a_restart_is_no_movement() {
        let start = Instant::now();
        let at = |seconds, requests| {
            let totals = Totals { requests: Some(requests), bytes: Some(10 * requests), ..Totals::default() };
            (start + Duration::from_secs(seconds), totals)
        };
        let (counters, seconds) = moved(&at(0, 100), &at(2, 141)).unwrap();
        assert_eq!((counters.requests, counters.bytes, seconds), (40, 410, 2.0));
        assert_eq!(moved(&at(0, 100), &at(0, 100)), None, "the same answer");
        assert_eq!(moved(&at(0, 100), &at(2, 3)), None, "started anew");
    }

    #[test]
    fn what_a_page_does_not_say_is_asked_for() {
        let gap = LoadSense::Gap { workers: None };
        assert_eq!(lacks(&apache(APACHE), gap, Format::Apache), None);
        assert!(lacks(&nginx(NGINX), gap, Format::Nginx).is_some_and(|what| what.contains("`workers`")));
        let brief = apache("BusyWorkers: 3\nIdleWorkers: 2\n");
        assert!(lacks(&brief, gap, Format::Apache).is_some_and(|what| what.contains("ExtendedStatus")));
    }
}
