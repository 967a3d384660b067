//! The origin and the clients against each other, in real time: is the known capacity the true one?
//!
//! Each test lasts at most three seconds. Bounds are wide where the machine's own delay is in the figure, and narrow
//! where it is not: the plant's busy time and its capacity come from exact virtual time.

use plimsoll_load::{
    BusyReading, ClosedLoop, ErrorKind, OpenLoop, Origin, OriginHandle, OriginSettings, Outcome, PathClass,
    Paths, Served, Target,
};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One test at a time: they judge rates, and the machine may have two processors.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

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

#[test]
fn eight_workers_of_eight_milliseconds_do_a_thousand_a_second() {
    let _alone = alone();
    let origin = origin(|_| ());
    let load = ClosedLoop::new(Target::new(origin.address()), 24, milliseconds(2500)).start(None).unwrap();
    std::thread::sleep(milliseconds(300));
    let (busy, served) = reading(&origin);
    std::thread::sleep(milliseconds(2000));
    let (later_busy, later_served) = reading(&origin);
    let tally = load.join();

    let seconds = (later_busy.at - busy.at).as_secs_f64();
    let rate = (later_served.answers() - served.answers()) as f64 / seconds;
    let utilization = later_busy.utilization_since(&busy);
    println!("rate {rate:.1}/s, utilization {utilization:.4}");
    println!(
        "answers late by p50 {:?} p99 {:?}",
        later_served.lateness.quantile(0.5),
        later_served.lateness.quantile(0.99)
    );
    assert!((970.0..=1030.0).contains(&rate), "capacity is 1000/s, served {rate:.1}/s");
    assert!((0.97..=1.0).contains(&utilization), "24 clients on 8 workers, busy {utilization:.4}");
    assert_eq!(tally.server_errors(), 0, "{:?}", tally.errors);
    assert_eq!(tally.by_client.len(), 24);
    let (least, most) = (tally.by_client.iter().min(), tally.by_client.iter().max());
    assert!(least > Some(&60) && most < Some(&140), "first come first served is fair: {:?}", tally.by_client);
}

#[test]
fn at_half_load_the_ledger_shows_what_was_offered() {
    let _alone = alone();
    let origin = origin(|_| ());
    let mut load = OpenLoop::new(Target::new(origin.address()), vec![(milliseconds(2500), 500.0)]);
    load.clients = 200;
    let before = origin.busy();
    let load = load.start(None).unwrap();
    let tally = load.join();
    let (after, served) = reading(&origin);
    let held = origin.held().utilization_since(&before);

    let answers = served.answers();
    let offered = answers as f64 * 0.008 / 8.0 / (after.at - before.at).as_secs_f64();
    let utilization = after.utilization_since(&before);
    println!("held {held:.4}, answers late by p99 {:?}", served.lateness.quantile(0.99));
    println!(
        "offered {offered:.4}, ledger {utilization:.4}, dispatched late by p99 {:?}",
        tally.lateness.quantile(0.99)
    );
    // All work is done, none is cut off by the readings: the two are the same integral.
    assert!((utilization / offered - 1.0).abs() < 0.001, "offered {offered:.4}, ledger {utilization:.4}");
    // 1250 arrivals expected; four standard deviations are 141.
    assert!(answers.abs_diff(1250) < 141, "{answers} answers");
    assert_eq!((tally.server_errors(), tally.errors_of(ErrorKind::LocalLimit)), (0, 0));
    assert_eq!(tally.status(200), answers);
}

#[test]
fn the_light_level_costs_what_it_was_set_to() {
    let _alone = alone();
    let origin = origin(|_| ());
    let mut load = OpenLoop::new(Target::new(origin.address()), vec![(milliseconds(1000), 500.0)]);
    load.paths = Paths::one("/light/page");
    let before = origin.busy();
    let tally = load.start(None).unwrap().join();
    let after = origin.busy();
    let each_ns = (after.busy_worker_ns - before.busy_worker_ns) as f64 / tally.answers() as f64;
    assert!((each_ns / 1.2e6 - 1.0).abs() < 0.001, "a light page costs 0.15 of 8 ms, not {each_ns:.0} ns");
    assert_eq!(tally.by_status[&200].bytes, tally.answers() * 4096);
}

#[test]
fn beyond_workers_and_queue_connections_are_closed_without_an_answer() {
    let _alone = alone();
    let origin = origin(|settings| {
        settings.workers = 2;
        settings.queue = 4;
    });
    // Twice the capacity of 250/s.
    let mut load = OpenLoop::new(Target::new(origin.address()), vec![(milliseconds(1500), 500.0)]);
    load.clients = 100;
    let tally = load.start(None).unwrap().join();
    let served = origin.served();
    let closed = tally.errors_of(ErrorKind::Closed) + tally.errors_of(ErrorKind::Reset);
    assert!(served.refused > 200, "half of 750 should be refused, {} were", served.refused);
    assert_eq!(closed, served.refused, "{:?}", tally.errors);
    assert_eq!(tally.status(200), served.answers());
    // Six places of 8 ms / 2: nobody who was admitted waited longer than 24 ms, and this machine's delay.
    assert!(tally.latency.quantile(0.5) < milliseconds(60), "{:?}", tally.latency.quantile(0.5));
}

#[test]
fn in_prefork_mode_idle_connections_hold_the_workers() {
    let _alone = alone();
    let prefork = |settings: &mut OriginSettings| {
        settings.worker_per_connection = true;
        settings.queue = 100;
    };
    let origin = origin(prefork);
    let mut target = Target::new(origin.address());
    target.timeout = milliseconds(1500);
    let tally = ClosedLoop::new(target, 24, milliseconds(1200)).start(None).unwrap().join();
    // Who came first keeps its worker to the end (150 answers each); the others get one when those have gone.
    let best = tally.by_client.iter().filter(|&&answers| answers > 50).count();
    assert_eq!(best, 8, "eight workers serve eight connections: {:?}", tally.by_client);
    assert!(tally.by_client.iter().all(|&answers| answers > 50 || answers <= 2), "{:?}", tally.by_client);
}

#[test]
fn in_prefork_mode_the_listen_queue_has_its_length() {
    let _alone = alone();
    let origin = origin(|settings| {
        settings.workers = 2;
        settings.worker_per_connection = true;
        settings.queue = 3;
    });
    let tally =
        ClosedLoop::new(Target::new(origin.address()), 20, milliseconds(600)).start(None).unwrap().join();
    let refused = origin.served().refused;
    let closed = tally.errors_of(ErrorKind::Closed) + tally.errors_of(ErrorKind::Reset);
    // Fifteen of twenty are refused, again and again, until the two that are served leave.
    assert!(refused > 100, "{refused} refused");
    assert_eq!(closed, refused, "{:?}", tally.errors);
    assert_eq!(tally.by_client.iter().filter(|&&answers| answers > 20).count(), 2, "{:?}", tally.by_client);
}

#[test]
fn switches_break_it_and_accounting_comes_back_to_zero() {
    let _alone = alone();
    let mut origin = origin(|_| ());
    let mut target = Target::new(origin.address());
    target.timeout = milliseconds(400);
    let mut load = OpenLoop::new(target, vec![(milliseconds(2000), 300.0)]);
    load.clients = 50;
    let load = load.start(None).unwrap();

    std::thread::sleep(milliseconds(300));
    origin.stall(true);
    std::thread::sleep(milliseconds(100));
    let stalled = origin.busy();
    std::thread::sleep(milliseconds(400));
    let still = origin.busy();
    origin.stall(false);
    assert!(still.utilization_since(&stalled) > 0.999, "a stalled server is busy");
    std::thread::sleep(milliseconds(200));

    origin.drop_connections();
    origin.set_down(true).unwrap();
    std::thread::sleep(milliseconds(200));
    origin.set_down(false).unwrap();
    let before = origin.served().answers();
    std::thread::sleep(milliseconds(300));
    let after = origin.served().answers();
    let tally = load.join();
    assert!(after > before, "it serves again on the same address");
    assert!(tally.errors_of(ErrorKind::Timeout) > 0, "{:?}", tally.errors);
    assert!(tally.errors_of(ErrorKind::Connect) > 0, "{:?}", tally.errors);

    let deadline = Instant::now() + Duration::from_secs(2);
    while origin.busy().inside + origin.held().inside > 0 && Instant::now() < deadline {
        std::thread::sleep(milliseconds(10));
    }
    assert_eq!((origin.busy().inside, origin.held().inside), (0, 0));
    assert!(origin.served().abandoned > 0);
}

#[test]
fn half_the_speed_is_half_the_capacity() {
    let _alone = alone();
    let origin = origin(|_| ());
    origin.set_speed(0.5);
    let load = ClosedLoop::new(Target::new(origin.address()), 24, milliseconds(1500)).start(None).unwrap();
    std::thread::sleep(milliseconds(300));
    let (busy, served) = reading(&origin);
    std::thread::sleep(milliseconds(1000));
    let (later_busy, later_served) = reading(&origin);
    drop(load);
    let rate = (later_served.answers() - served.answers()) as f64 / (later_busy.at - busy.at).as_secs_f64();
    assert!((470.0..=530.0).contains(&rate), "{rate:.1}/s");
}

#[test]
fn every_arrival_becomes_one_record_and_the_socket_limit_is_told_apart() {
    let _alone = alone();
    let origin = origin(|settings| settings.classes = vec![PathClass::new("all", "/", 1000)]);
    let mut load = OpenLoop::new(Target::new(origin.address()), vec![(milliseconds(1000), 800.0)]);
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
    let tally = load.join();
    assert_eq!(tally.requests, records.load(Ordering::Relaxed));
    assert_eq!(tally.requests, tally.answers() + tally.errors.iter().sum::<u64>());
    assert_eq!(tally.requests, tally.slots.iter().map(|slot| slot.arrivals).sum::<u64>());
    assert!(tally.errors_of(ErrorKind::LocalLimit) > 500, "{:?}", tally.errors);
    assert_eq!(tally.errors_of(ErrorKind::LocalLimit), limited.load(Ordering::Relaxed));
    assert_eq!(tally.server_errors(), 0, "{:?}", tally.errors);
}

#[test]
fn a_dropped_load_ends_at_once_and_a_stopped_one_finishes_what_it_began() {
    let _alone = alone();
    let origin = origin(|_| ());
    let load =
        || OpenLoop::new(Target::new(origin.address()), vec![(Duration::from_secs(60), 200.0)]).start(None);
    let stopped = load().unwrap();
    std::thread::sleep(milliseconds(200));
    stopped.stop();
    let tally = stopped.join();
    assert!(tally.requests > 5);
    assert_eq!(tally.requests, tally.status(200), "{:?}", tally.errors);

    origin.stall(true);
    let dropped = load().unwrap();
    std::thread::sleep(milliseconds(200));
    let start = Instant::now();
    drop(dropped);
    // The stalled requests would have taken their time-out, 10 s.
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
}

#[test]
fn unknown_paths_are_404_and_cost_nothing() {
    let _alone = alone();
    let origin = origin(|settings| settings.classes = vec![PathClass::new("some", "/some/", 10)]);
    let mut load = OpenLoop::new(Target::new(origin.address()), vec![(milliseconds(300), 200.0)]);
    load.paths = Paths::one("/other");
    let tally = load.start(None).unwrap().join();
    assert_eq!(tally.status(404), tally.requests);
    assert_eq!((origin.served().not_found, origin.busy().busy_worker_ns), (tally.requests, 0));
}
