//! The origin and the clients against each other, in real time: requests are counted exactly once on both sides, work is done
//! exactly as it was set, and what is broken is seen. How much work is done in a second is judged in virtual time, where the
//! plant's capacity is exact: `src/profile/virtual_time.rs` and `src/origin/plant.rs`.

use plimsoll_load::{
    BusyReading, ClosedLoop, ErrorKind, OpenLoop, Origin, OriginHandle, OriginSettings, Outcome, PathClass,
    Served, Target,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn origin(change: impl FnOnce(&mut OriginSettings)) -> OriginHandle {
    let mut settings = OriginSettings::default();
    change(&mut settings);
    Origin::start(settings).expect("a free port on loopback")
}

fn milliseconds(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Readings and counters at the same moment, so that they can be compared over the time between.
fn reading(origin: &OriginHandle) -> (BusyReading, Served) {
    (origin.busy(), origin.served())
}

/// Waits until `seen` holds.
fn eventually(what: &str, mut seen: impl FnMut() -> bool) {
    let start = Instant::now();
    while !seen() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} does not come");
        std::thread::sleep(milliseconds(10));
    }
}

#[test]
fn every_client_of_a_closed_loop_is_served() {
    let origin = origin(|_| ());
    let load = ClosedLoop::new(Target::new(origin.address()), 24, milliseconds(1000)).start(None).unwrap();
    let tally = load.join();
    assert_eq!(tally.server_errors(), 0, "{:?}", tally.errors);
    assert_eq!((tally.by_client.len(), tally.status(200)), (24, origin.served().answers));
    assert!(tally.by_client.iter().all(|answers| *answers > 0), "{:?}", tally.by_client);
}

#[test]
fn at_half_load_the_ledger_shows_what_was_offered() {
    let origin = origin(|_| ());
    let mut load = OpenLoop::new(Target::new(origin.address()), vec![(milliseconds(2500), 500.0)]);
    load.clients = 200;
    let before = origin.busy();
    let load = load.start(None).unwrap();
    let tally = load.join();
    let (after, served) = reading(&origin);

    let answers = served.answers;
    let offered = answers as f64 * 0.008 / 8.0 / (after.at - before.at).as_secs_f64();
    let utilization = after.utilization_since(&before);
    // All work is done, none is cut off by the readings: the two are the same integral.
    assert!((utilization / offered - 1.0).abs() < 0.001, "offered {offered:.4}, ledger {utilization:.4}");
    // The seed decides how many arrivals there are: 1250 are expected, four standard deviations are 141.
    assert!(answers.abs_diff(1250) < 141, "{answers} answers");
    assert_eq!((tally.server_errors(), tally.errors_of(ErrorKind::LocalLimit)), (0, 0));
    assert_eq!(tally.status(200), answers);
}

#[test]
fn the_light_level_costs_what_it_was_set_to() {
    let origin = origin(|_| ());
    let mut load = OpenLoop::new(Target::new(origin.address()), vec![(milliseconds(1000), 500.0)]);
    load.path = "/light/page".into();
    let before = origin.busy();
    let tally = load.start(None).unwrap().join();
    let after = origin.busy();
    let each_ns = (after.busy_worker_ns - before.busy_worker_ns) as f64 / tally.answers() as f64;
    assert!((each_ns / 1.2e6 - 1.0).abs() < 0.001, "a light page costs 0.15 of 8 ms, not {each_ns:.0} ns");
    assert_eq!(tally.by_status[&200].bytes, tally.answers() * 4096);
}

#[test]
fn beyond_workers_and_queue_connections_are_closed_without_an_answer() {
    let origin = origin(|settings| {
        settings.workers = 2;
        settings.queue = 4;
    });
    // Twice the capacity of 250/s, until some have found no room.
    let mut load = OpenLoop::new(Target::new(origin.address()), vec![(Duration::from_secs(60), 500.0)]);
    load.clients = 100;
    let load = load.start(None).unwrap();
    eventually("a refusal", || origin.served().refused > 20);
    load.stop();
    let tally = load.join();
    let served = origin.served();
    let closed = tally.errors_of(ErrorKind::Closed) + tally.errors_of(ErrorKind::Reset);
    assert_eq!(closed, served.refused, "{:?}", tally.errors);
    assert_eq!(tally.status(200), served.answers);
    assert_eq!(tally.requests, served.answers + served.refused, "{:?}", tally.errors);
}

#[test]
fn switches_break_it_and_accounting_comes_back_to_zero() {
    let mut origin = origin(|_| ());
    let mut target = Target::new(origin.address());
    target.timeout = milliseconds(400);
    let mut load = OpenLoop::new(target, vec![(Duration::from_secs(60), 300.0)]);
    load.clients = 50;
    let load = load.start(None).unwrap();
    let errors = |kind| load.with_tally(|tally| tally.errors_of(kind));

    eventually("an answer", || origin.served().answers > 0);
    origin.set_speed(0.0);
    eventually("a request for each worker", || origin.busy().inside >= 8);
    let stalled = origin.busy();
    eventually("a client's time-out", || errors(ErrorKind::Timeout) > 0);
    assert!(origin.busy().utilization_since(&stalled) > 0.999, "a stalled server is busy");
    origin.set_speed(1.0);

    origin.set_down(true).unwrap();
    eventually("a refused connection", || errors(ErrorKind::Connect) > 0);
    origin.set_down(false).unwrap();
    let before = origin.served().answers;
    eventually("an answer at the same address", || origin.served().answers > before);
    load.stop();
    load.join();
    eventually("an empty server", || origin.busy().inside + origin.held().inside == 0);
    assert!(origin.served().abandoned > 0);
}

#[test]
fn every_arrival_becomes_one_record_and_the_socket_limit_is_told_apart() {
    let origin = origin(|settings| settings.classes = vec![PathClass::new("/", 1000)]);
    let mut load = OpenLoop::new(Target::new(origin.address()), vec![(Duration::from_secs(60), 800.0)]);
    load.max_sockets = 3;
    load.clients = 400;
    let records = Arc::new(AtomicU64::new(0));
    let limited = Arc::new(AtomicU64::new(0));
    let (count, count_limited) = (Arc::clone(&records), Arc::clone(&limited));
    let sink = move |record: &plimsoll_load::Record| {
        count.fetch_add(1, Ordering::Relaxed);
        if record.outcome == Outcome::Error(ErrorKind::LocalLimit) {
            count_limited.fetch_add(1, Ordering::Relaxed);
        }
    };
    let load = load.start(Some(Box::new(sink))).unwrap();
    eventually("an answer beside the limit", || {
        load.with_tally(|tally| tally.answers() > 0 && tally.errors_of(ErrorKind::LocalLimit) > 50)
    });
    load.stop();
    let tally = load.join();
    assert_eq!(tally.requests, records.load(Ordering::Relaxed));
    assert_eq!(tally.requests, tally.answers() + tally.errors.iter().sum::<u64>());
    assert_eq!(tally.requests, tally.slots.iter().map(|slot| slot.arrivals).sum::<u64>());
    assert_eq!(tally.errors_of(ErrorKind::LocalLimit), limited.load(Ordering::Relaxed));
    assert_eq!(tally.server_errors(), 0, "{:?}", tally.errors);
}

#[test]
fn a_dropped_load_ends_at_once_and_a_stopped_one_finishes_what_it_began() {
    let origin = origin(|_| ());
    let load =
        || OpenLoop::new(Target::new(origin.address()), vec![(Duration::from_secs(60), 200.0)]).start(None);
    let stopped = load().unwrap();
    eventually("requests", || stopped.with_tally(|tally| tally.requests > 5));
    // Some are in the server when it is told to end.
    eventually("a request in the server", || origin.busy().inside > 0);
    stopped.stop();
    let tally = stopped.join();
    assert_eq!(tally.requests, tally.status(200), "{:?}", tally.errors);

    origin.set_speed(0.0);
    let dropped = load().unwrap();
    eventually("a stalled request", || origin.busy().inside > 0);
    let start = Instant::now();
    drop(dropped);
    // The stalled requests would have taken their time-out, 10 s.
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
}

#[test]
fn unknown_paths_are_404_and_cost_nothing() {
    let origin = origin(|settings| settings.classes = vec![PathClass::new("/some/", 10)]);
    let mut load = OpenLoop::new(Target::new(origin.address()), vec![(milliseconds(300), 200.0)]);
    load.path = "/other".into();
    let tally = load.start(None).unwrap().join();
    assert_eq!(tally.status(404), tally.requests);
    assert_eq!((origin.served().not_found, origin.busy().busy_worker_ns), (tally.requests, 0));
}
