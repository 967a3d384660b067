//! A status page: Apache's `server-status?auto`, or nginx's `stub_status`.
//!
//! A thread of its own requests the page, because under overload the page waits like all other requests. A look returns the
//! change of the totals between the two latest answers, or nothing if there was no new answer. An answer whose counters have
//! stopped is ignored: a server about which nothing is known must not seem idle.

use super::Complaint;
use super::totals::{self, Totals};
use crate::commands::agent::probe::repeat;
use crate::service::page::PageClient;
use crate::service::sync::lock;
use plimsoll_config::HttpUrl;
use plimsoll_core::agent::{Counters, LoadSense};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The time after which a request for the page is given up.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusFormat {
    Apache,
    Nginx,
}

/// The page, asked for once a sample.
pub(crate) struct StatusPage {
    latest: Arc<Mutex<Latest>>,
    seen: Option<(Instant, Totals)>,
}

/// The latest usable answer.
struct Latest {
    answer: (Instant, Totals),
    /// What later answers lack.
    lacking: Complaint,
}

impl StatusPage {
    /// Requests the page once, and starts the thread if the answer has what `sense` needs.
    pub(super) fn open(
        url: &HttpUrl,
        format: StatusFormat,
        (sense, every): (LoadSense, Duration),
    ) -> Result<StatusPage, String> {
        let client = PageClient::new(url, PATIENCE)
            .map_err(|error| format!("{}: cannot be looked up: {error}", url.address))?;
        let place = url.to_string();
        let first = read(&client, &place, format)?;
        lacks(&first, sense, format).map_or(Ok(()), Err)?;
        let latest =
            Arc::new(Mutex::new(Latest { answer: (Instant::now(), first), lacking: Complaint::default() }));
        let shared = Arc::downgrade(&latest);
        let thread = repeat("status", every, move || {
            let totals = read(&client, &place, format);
            let latest = shared.upgrade()?;
            let Ok(totals) = totals else { return Some(()) };
            let mut latest = lock(&latest);
            match lacks(&totals, sense, format) {
                None => {
                    latest.answer = (Instant::now(), totals);
                    latest.lacking.forget();
                }
                lacking => latest.lacking.make(lacking),
            }
            Some(())
        });
        thread.map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(StatusPage { latest, seen: None })
    }

    /// The change of the totals between the two latest answers.
    pub(super) fn look(&mut self) -> Option<(Counters, f64)> {
        let latest = lock(&self.latest).answer;
        let before = self.seen.replace(latest)?;
        moved(&before, &latest)
    }

    /// What the page lacks now and had before; returned once each time.
    pub(super) fn complaint(&mut self) -> Option<String> {
        lock(&self.latest).lacking.take()
    }
}

/// The change of the totals; `None` without a new answer, if the server has restarted, or if its counters have stopped.
fn moved((then, before): &(Instant, Totals), (now, totals): &(Instant, Totals)) -> Option<(Counters, f64)> {
    let seconds = now.saturating_duration_since(*then).as_secs_f64();
    // The request for the page was counted too. If not even that request was counted, the page's counters have stopped.
    let requests = totals.requests?.checked_sub(before.requests?)?.checked_sub(1)?;
    let bytes = match (totals.bytes, before.bytes) {
        (None, None) => 0,
        (now, then) => now?.checked_sub(then?)?,
    };
    let Totals { in_service, workers, .. } = *totals;
    let counters = Counters { requests, bytes, in_service, workers, ..Counters::default() };
    (seconds > 0.0).then_some((counters, seconds))
}

fn read(client: &PageClient, place: &str, format: StatusFormat) -> Result<Totals, String> {
    let page = client.get().map_err(|error| format!("{place}: {error}"))?;
    if page.status != 200 {
        let how = match format {
            StatusFormat::Apache => "`SetHandler server-status` in a `<Location>` that this host may read",
            StatusFormat::Nginx => "`stub_status;` in a `location` that this host may read",
        };
        return Err(format!("{place} is answered with {}; the server needs {how}", page.status));
    }
    let totals = match format {
        StatusFormat::Apache => totals::apache(&page.body),
        StatusFormat::Nginx => totals::nginx(&page.body),
    };
    match totals.in_service.is_some() || totals.requests.is_some() {
        true => Ok(totals),
        false => Err(match format {
            StatusFormat::Apache => format!("{place} is no status page of Apache; end it with `?auto`"),
            StatusFormat::Nginx => format!("{place} is no `stub_status` page of nginx"),
        }),
    }
}

/// A sentence about what the page lacks, and how to make the server state it; `None` if it lacks nothing.
fn lacks(totals: &Totals, sense: LoadSense, format: StatusFormat) -> Option<String> {
    match sense {
        _ if totals.requests.is_none() => {
            Some("the status page counts no requests: write `ExtendedStatus On`".to_owned())
        }
        LoadSense::Gap { .. } if totals.in_service.is_none() => {
            Some("the status page does not say how many workers are busy".to_owned())
        }
        LoadSense::Gap { workers: None } if totals.workers.is_none() => Some(
            "the status page does not say how many workers there are: write `workers` under [server]"
                .to_owned(),
        ),
        LoadSense::Linear { .. } if totals.bytes.is_none() && format == StatusFormat::Apache => {
            Some("the status page counts no bytes: write `ExtendedStatus On`".to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::totals::tests::{APACHE, NGINX};
    use super::*;

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
        assert_eq!(moved(&at(0, 100), &at(2, 3)), None, "the server restarted");
        assert_eq!(moved(&at(0, 100), &at(2, 100)), None, "not even the request for the page was counted");
    }

    #[test]
    fn a_page_that_stops_counting_is_not_a_calm_server() {
        let start = Instant::now();
        let later = start + Duration::from_secs(1);
        let counting = Totals { requests: Some(100), bytes: Some(1000), ..Totals::default() };
        let silent = Totals { in_service: Some(3), ..Totals::default() };
        assert_eq!(moved(&(start, counting), &(later, silent)), None);
        assert_eq!(moved(&(start, silent), &(later, silent)), None, "and it stays so");
        let without_bytes = Totals { requests: Some(150), ..silent };
        assert_eq!(
            moved(&(start, counting), &(later, without_bytes)),
            None,
            "its bytes are no longer counted"
        );
        let gap = LoadSense::Gap { workers: Some(8) };
        let idle = Totals { in_service: None, ..without_bytes };
        assert!(lacks(&idle, gap, StatusFormat::Apache).is_some_and(|what| what.contains("busy")));
    }

    #[test]
    fn a_page_that_stops_counting_is_said_once_and_moves_nothing() {
        use std::io::{Read, Write};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let body = if number == 0 { APACHE } else { "BusyWorkers: 3\nIdleWorkers: 2\n" };
                let mut stream = stream.unwrap();
                _ = stream.read(&mut [0; 4096]);
                let length = body.len();
                _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
            }
        });
        let (host, target) = (address.clone(), "/server-status?auto".to_owned());
        let url = HttpUrl { scheme: plimsoll_config::Scheme::Http, address, host, target };
        let gap = LoadSense::Gap { workers: None };
        let mut page =
            StatusPage::open(&url, StatusFormat::Apache, (gap, Duration::from_millis(10))).unwrap();
        let complaint = loop {
            assert_eq!(page.look(), None);
            if let Some(complaint) = page.complaint() {
                break complaint;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(complaint.contains("ExtendedStatus"), "{complaint}");
        for _ in 0..50 {
            std::thread::sleep(Duration::from_millis(1));
            assert_eq!((page.look(), page.complaint()), (None, None));
        }
    }

    #[test]
    fn what_a_page_lacks_is_named_with_the_remedy() {
        let gap = LoadSense::Gap { workers: None };
        assert_eq!(lacks(&totals::apache(APACHE), gap, StatusFormat::Apache), None);
        assert!(
            lacks(&totals::nginx(NGINX), gap, StatusFormat::Nginx)
                .is_some_and(|what| what.contains("`workers`"))
        );
        let brief = totals::apache("BusyWorkers: 3\nIdleWorkers: 2\n");
        assert!(lacks(&brief, gap, StatusFormat::Apache).is_some_and(|what| what.contains("ExtendedStatus")));
    }
}
