//! A real log: pages with a deadline beside photographs, texts and films that have none, whose costs are by their bytes.
//!
//! A photograph is of the same type as a page (a path with an extension), and takes up to a minute on a server that is
//! nearly idle. It must not spoil what is known of pages; and status names the type whose requests cost so differently.

use plimsoll_core::promises::{Class, Condition, Plant, Promises, Site};
use plimsoll_core::request::Outcome;
use plimsoll_core::telemetry::status::Status;
use plimsoll_core::time::Instant;
use plimsoll_sim::front::{Decision, Gateway, Order};
use plimsoll_sim::workload::{
    Arrivals, Discipline, Input, LogFormat, LogOptions, Replay, Stream, Version, Workload,
};
use plimsoll_sim::{Event, Setup, Watch};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// 9,499 requests in thirteen hours (data/README.md).
const LOG: &str = "tests/data/nasa-1995-08-01-pages-and-pictures.log.gz";
const DEADLINE: Duration = Duration::from_secs(4);
/// What a byte takes of a worker (s): a page of 8 KB a second, a photograph of half a megabyte a minute.
const PER_BYTE: f64 = 1.2e-4;
const WORKERS: u32 = 16;

/// What became of the pages that a worker serves within half of the deadline.
#[derive(Clone, Copy, Debug, Default)]
struct Pages {
    all: u32,
    refused: u32,
    late: u32,
}

#[derive(Default)]
struct Clocks {
    open: BTreeMap<u64, f64>,
    pages: Pages,
}

impl Watch for Clocks {
    fn event(&mut self, now: Instant, event: &Event<'_>) {
        let at = now.as_secs_f64();
        let (token, completed) = match event {
            Event::Arrived { token, request, decision, .. } => {
                let is_quick = request.bytes as f64 * PER_BYTE < 0.5 * DEADLINE.as_secs_f64();
                if is_quick && is_page(&request.path) {
                    self.pages.all += 1;
                    if matches!(decision, Decision::Reject(..)) {
                        self.pages.refused += 1;
                    } else {
                        self.open.insert(token.0, at);
                    }
                }
                return;
            }
            Event::Ordered(Order::Start(..)) => return,
            Event::Ordered(Order::Drop(token, _)) => (token, false),
            Event::Ended { token, outcome } => (token, *outcome == Outcome::Completed),
        };
        if let Some(arrived) = self.open.remove(&token.0) {
            self.pages.late += u32::from(!completed || at - arrived > DEADLINE.as_secs_f64());
        }
    }
}

fn is_page(path: &str) -> bool {
    [".html", ".htm", "/"].iter().any(|end| path.ends_with(end))
}

/// The log; the server's own utilization, what became of the pages, and the status at the end.
fn replay() -> (f64, Pages, Status) {
    let condition =
        Condition { paths: ["*.html", "*.htm", "*/"].map(String::from).into(), ..Condition::default() };
    let pages = Class { deadline: Some(DEADLINE), ..Class::new("pages", condition) };
    let site = Site { classes: vec![pages], ..Site::new("site", &["full"]) };
    let mut plant = Plant::new("origin", WORKERS);
    plant.set_point = 1.0;
    let promises = Promises::of(plant, site);
    let input = Input::File(Path::new(env!("CARGO_MANIFEST_DIR")).join(LOG));
    let arrivals = Arrivals::Log {
        input,
        format: LogFormat::Common,
        options: LogOptions::default(),
        replay: Replay { speed: 1.0, scale: 1.0 },
    };
    let stream = Stream::new("log", arrivals, Vec::new(), 1);
    let server = plimsoll_sim::workload::Plant {
        service_per_byte: PER_BYTE,
        ..plimsoll_sim::workload::Plant::new(Discipline::Workers(WORKERS), 1000, Duration::from_millis(2))
    };
    let workload = Workload {
        streams: vec![stream],
        plants: vec![server],
        versions: vec![vec![Version::FULL]],
        duration: None,
        ..Workload::default()
    };
    let mut clocks = Clocks::default();
    let mut gateway = Gateway::new(&promises, 77).expect("the promises are valid");
    let setup = Setup { promises: &promises, workload: &workload, seed: 77 };
    let run = setup.run_with(&mut gateway, &mut clocks).expect("it runs");
    let busy = run.rows.iter().map(|row| row.plants[0].utilization).sum::<f64>() / run.rows.len() as f64;
    (busy, clocks.pages, run.status.expect("the engine ran"))
}

/// Before what is known of a type was a distribution, a mean and its deviation refused such pages for hours on an idle
/// server: of a log of 10,000 requests a third.
#[test]
fn pictures_without_a_deadline_refuse_no_page_of_a_real_log() {
    let (busy, pages, status) = replay();
    println!("{busy:.3} of the server used, {pages:?}");
    assert!(pages.all > 6_500 && (0.02..0.1).contains(&busy), "{pages:?} {busy}");
    assert_eq!((pages.refused, pages.late), (0, 0), "{pages:?}");
    // The log has what must be told apart: by mean and deviation, pages of this type would be refused.
    let own = status.sites[0].types.iter().find(|own| own.name == "static").expect("a default type");
    assert!(own.mean + 4.0 * own.deviation > 2.0 * DEADLINE.as_secs_f64(), "{own:?}");
    // Status names the types that pages have and of which many requests take too long, and no other.
    let named = |name: &str| status.sites[0].types.iter().find(|own| own.name == name)?.in_time;
    assert!(named("static").is_some_and(|share| (0.9..0.98).contains(&share)), "{:?}", named("static"));
    assert_eq!((named("video"), named("audio")), (None, None), "no page is one");
}
