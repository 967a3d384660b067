//! Tests each mechanism by hand-made figures; then random operations, judged by invariants and by a slow second method.

use super::*;
use crate::workload::Plant;
use plimsoll_core::random::Random;

fn plant(discipline: Discipline) -> Plant {
    Plant::new(discipline, 1000, Duration::ZERO)
}

fn workers(workers: u32) -> Plant {
    plant(Discipline::Workers(workers))
}

fn sharing(cores: u32, most: u32) -> Plant {
    plant(Discipline::Sharing { cores, most })
}

fn fault(from: u64, until: u64, kind: FaultKind) -> Fault {
    Fault { from: Duration::from_nanos(from), until: Duration::from_nanos(until), kind }
}

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn work(ns: u64) -> Work {
    Work { service: Duration::from_nanos(ns), bytes: 0 }
}

fn response(ns: u64, bytes: u64) -> Work {
    Work { service: Duration::from_nanos(ns), bytes }
}

/// The requests that are done until `end`: when (ns), and which.
fn run_until(server: &mut Server, end: Instant) -> Vec<(u64, u64)> {
    let mut done = Vec::new();
    while server.due() <= end && server.due() < Instant::FAR {
        let now = server.due();
        if let Some(Done { job, .. }) = server.step(now) {
            done.push((now.as_nanos(), job));
        }
    }
    done
}

fn run(server: &mut Server) -> Vec<(u64, u64)> {
    run_until(server, Instant::FAR)
}

fn busy_ns(server: &mut Server, now: u64) -> (u128, u128) {
    let Busy { servers, link } = server.busy(at(now));
    (servers.as_nanos(), link.as_nanos())
}

#[test]
fn workers_serve_in_order_of_arrival_and_overflow() {
    let mut server = Server::new(&Plant { listen_queue: 2, ..workers(2) });
    assert_eq!(server.due(), Instant::FAR);
    for (job, ns) in [(1, 100), (2, 50), (3, 10), (4, 10)] {
        assert_eq!(server.offer(at(0), job, work(ns)), Ok(()));
    }
    assert_eq!(server.offer(at(0), 5, work(10)), Err(Overflow));
    assert_eq!(server.step(at(49)), None, "nothing is due yet");
    assert_eq!(run_until(&mut server, at(55)), [(50, 2)]);
    assert_eq!(server.offer(at(55), 6, work(40)), Ok(()));
    assert_eq!(run(&mut server), [(60, 3), (70, 4), (100, 1), (110, 6)]);
    assert_eq!(busy_ns(&mut server, 1000), (210, 0), "100 + 50 + 10 + 10 + 40");
}

#[test]
fn equal_ends_come_in_order_of_entry() {
    for truth in [workers(3), sharing(3, 9)] {
        let mut server = Server::new(&truth);
        for job in [7, 3, 5] {
            server.offer(at(0), job, work(10)).unwrap();
        }
        assert_eq!(run(&mut server), [(10, 7), (10, 3), (10, 5)]);
    }
}

#[test]
fn sharing_gives_each_its_part() {
    // Two cores: one or two jobs run alone; three get 2/3 each.
    let mut server = Server::new(&sharing(2, 9));
    server.offer(at(0), 1, work(100)).unwrap();
    server.offer(at(0), 2, work(300)).unwrap();
    server.offer(at(40), 3, work(60)).unwrap();
    // From 40 on, 1 and 3 have 60 left each and are both done 90 later. Then 2 is alone, with 200 left.
    assert_eq!(run(&mut server), [(130, 1), (130, 3), (330, 2)]);
    assert_eq!(busy_ns(&mut server, 400), (460, 0), "all work: none is lost, none made");
}

#[test]
fn sharing_takes_so_many_and_the_rest_waits() {
    let mut server = Server::new(&Plant { listen_queue: 1, ..sharing(1, 2) });
    for job in 1..=3 {
        assert_eq!(server.offer(at(0), job, work(50 * job)), Ok(()));
    }
    assert_eq!(server.offer(at(0), 4, work(1)), Err(Overflow));
    // 1 and 2 share until 100, then 2 (50 left) and 3 until 200, then 3 (100 left) alone.
    assert_eq!(run(&mut server), [(100, 1), (200, 2), (300, 3)]);
}

#[test]
fn an_arrival_moves_what_is_due() {
    let mut server = Server::new(&sharing(1, 9));
    server.offer(at(0), 1, work(100)).unwrap();
    assert_eq!(server.due(), at(100));
    server.offer(at(50), 2, work(1000)).unwrap();
    assert_eq!(server.due(), at(150));
    server.offer(at(60), 3, work(1)).unwrap();
    assert_eq!(server.due(), at(63), "a third of a nanosecond each");
}

#[test]
fn a_virtual_clock_that_is_moved_down_changes_nothing() {
    let mut server = Server::new(&sharing(1, 9));
    let hour = 3_600_000_000_000;
    // A long job keeps the server busy all the time, so that the virtual clock grows large.
    server.offer(at(0), 1, work(hour)).unwrap();
    for (job, begin) in (2..).zip((0..hour).step_by(60_000_000_000)) {
        let done = run_until(&mut server, at(begin));
        assert!(done.iter().all(|(end, _)| end % 60_000_000_000 == 20_000_000), "{done:?}");
        server.offer(at(begin), job, work(10_000_000)).unwrap();
    }
    assert_eq!(run(&mut server).last(), Some(&(hour + 600_000_000, 1)));
}

#[test]
fn the_link_is_shared_and_frees_the_worker() {
    // The link carries a byte a nanosecond.
    let mut server = Server::new(&Plant { link: Some(1e9), ..workers(1) });
    server.offer(at(0), 1, response(10, 100)).unwrap();
    server.offer(at(0), 2, response(20, 30)).unwrap();
    server.offer(at(0), 3, work(5)).unwrap();
    // 1 is on the link from 10; 2 joins at 30, when 80 of 1 are left: 30 each by 90, then 1's last 50. 3 has no bytes.
    assert_eq!(run(&mut server), [(35, 3), (90, 2), (140, 1)]);
    assert_eq!(busy_ns(&mut server, 200), (35, 130));
}

#[test]
fn what_waits_for_a_client_that_left_takes_the_failures_time() {
    for (failure, third) in [(7, 117), (0, 110)] {
        let failure = Duration::from_nanos(failure);
        let mut server = Server::new(&Plant { failure, link: Some(1e9), listen_queue: 2, ..workers(1) });
        server.offer(at(0), 1, response(100, 0)).unwrap();
        server.offer(at(0), 2, response(1000, 1000)).unwrap();
        server.offer(at(0), 3, response(10, 0)).unwrap();
        server.abandon(2);
        assert_eq!(server.offer(at(0), 4, work(1)), Err(Overflow), "it keeps its place");
        assert_eq!(run(&mut server), [(100, 1), (third - 10, 2), (third, 3)]);
        assert_eq!(busy_ns(&mut server, 1000), (u128::from(third), 0), "and nothing of it on the link");
    }
}

#[test]
fn what_is_in_service_is_finished_though_the_client_left() {
    let mut server = Server::new(&Plant { link: Some(1e9), ..workers(1) });
    server.offer(at(0), 1, response(100, 50)).unwrap();
    server.abandon(1);
    assert_eq!(run(&mut server), [(150, 1)]);
    // The job's name is used again, and the second job's client has not left.
    server.offer(at(200), 1, response(100, 50)).unwrap();
    server.offer(at(200), 2, response(1, 0)).unwrap();
    assert_eq!(run(&mut server), [(301, 2), (350, 1)]);
    assert!(server.left.is_empty());
}

#[test]
fn a_charge_goes_before_what_waits_and_is_not_refused() {
    let mut server = Server::new(&Plant { listen_queue: 1, ..workers(1) });
    server.offer(at(0), 1, work(100)).unwrap();
    server.offer(at(0), 2, work(10)).unwrap();
    for charge in [5, 5, 6] {
        server.charge(at(1), Duration::from_nanos(charge));
    }
    assert_eq!(server.offer(at(2), 3, work(1)), Err(Overflow), "the queue is as long as before");
    assert_eq!(run(&mut server), [(100, 1), (126, 2)]);
    assert_eq!(busy_ns(&mut server, 200), (126, 0));
    server.charge(at(200), Duration::from_nanos(50));
    server.offer(at(210), 4, work(1)).unwrap();
    assert_eq!(run(&mut server), [(251, 4)], "a free worker takes it at once");
}

#[test]
fn a_charge_shares_the_cores_beyond_the_most() {
    let mut server = Server::new(&sharing(1, 1));
    server.offer(at(0), 1, work(100)).unwrap();
    server.charge(at(0), Duration::from_nanos(10));
    server.offer(at(0), 2, work(10)).unwrap();
    assert_eq!(run(&mut server), [(110, 1), (120, 2)]);
    assert_eq!(busy_ns(&mut server, 200), (120, 0));
}

#[test]
fn a_slow_down_meets_servers_and_link() {
    let faults =
        vec![fault(50, 150, FaultKind::Slower(2.0)), fault(300, 400, FaultKind::Slower(f64::INFINITY))];
    for truth in [workers(1), sharing(1, 9)] {
        let mut server = Server::new(&Plant { link: Some(1e9), faults: faults.clone(), ..truth });
        server.offer(at(0), 1, response(80, 60)).unwrap();
        // The service takes 50, then 30 at half speed; on the link 20 at half speed, then 40.
        assert_eq!(run(&mut server), [(190, 1)]);
        server.offer(at(290), 2, response(20, 5)).unwrap();
        assert_eq!(run(&mut server), [(415, 2)]);
        assert_eq!(busy_ns(&mut server, 500), (110 + 120, 80 + 5), "who stands still is busy");
    }
}

#[test]
fn faults_meet_what_starts_meanwhile() {
    let takes = fault(100, 200, FaultKind::Takes(Duration::from_nanos(30)));
    let fails = fault(150, 200, FaultKind::Fails(Duration::from_nanos(5)));
    let mut server = Server::new(&Plant { faults: vec![takes, fails], link: Some(1e9), ..workers(1) });
    let mut end = |now, job| {
        server.offer(at(now), job, response(60, 10)).unwrap();
        loop {
            let now = server.due();
            if let Some(done) = server.step(now) {
                return (now.as_nanos(), done);
            }
        }
    };
    assert_eq!(end(60, 1), (130, Done { job: 1, failed: false }), "under way");
    assert_eq!(end(140, 2), (180, Done { job: 2, failed: false }));
    assert_eq!(end(185, 3), (190, Done { job: 3, failed: true }), "and no response on the link");
    assert_eq!(end(200, 4), (270, Done { job: 4, failed: false }));
}

fn random_plant(random: &mut Random) -> Plant {
    let s = random.below(4) as u32 + 1;
    let truth = if random.below(2) == 0 { workers(s) } else { sharing(s, s + random.below(5) as u32) };
    let kinds = [
        FaultKind::Slower(1.5),
        FaultKind::Slower(40.0),
        FaultKind::Slower(f64::INFINITY),
        FaultKind::Takes(Duration::from_nanos(77)),
        FaultKind::Fails(Duration::from_nanos(3)),
    ];
    let one = |random: &mut Random| {
        let from = random.below(3000);
        fault(from, from + random.below(1500), kinds[random.below(5) as usize])
    };
    Plant {
        listen_queue: random.below(12) as usize,
        link: (random.below(2) == 0).then_some(4e8),
        failure: Duration::from_nanos(random.below(3) * 10),
        faults: (0..random.below(5)).map(|_| one(random)).collect(),
        ..truth
    }
}

/// Every accepted job is done exactly once, in order of time, whatever happens between. Servers and link are never busier than
/// they can be, and are idle when all is done.
#[test]
fn whatever_happens_nothing_is_lost_and_nothing_comes_twice() {
    for seed in 0..3000 {
        let random = &mut Random::new(seed);
        let truth = random_plant(random);
        let servers = u128::from(truth.discipline.servers());
        let mut server = Server::new(&truth);
        let mut open = BTreeSet::new();
        let (mut now, mut refused, mut done) = (0, 0, 0);
        let mut last = (0, 0);
        let mut finish = |server: &mut Server, end: Instant, open: &mut BTreeSet<u64>| {
            for (when, job) in run_until(server, end) {
                assert!(when >= last.0, "seed {seed}: back in time");
                assert!(open.remove(&job), "seed {seed}: {job} was not there");
                last = (when, job);
                done += 1;
            }
            last.0
        };
        for job in 0..120 {
            now += random.below(60);
            finish(&mut server, at(now), &mut open);
            match random.below(8) {
                0 => server.charge(at(now), Duration::from_nanos(random.below(50))),
                1 | 2 if !open.is_empty() => {
                    let place = random.below(open.len() as u64) as usize;
                    open.iter().nth(place).copied().into_iter().for_each(|job| server.abandon(job));
                }
                _ => match server.offer(at(now), job, response(random.below(200), random.below(60))) {
                    Ok(()) => assert!(open.insert(job)),
                    Err(Overflow) => refused += 1,
                },
            }
            assert!(server.due() >= at(now), "seed {seed}: due in the past");
            let (busy, link) = busy_ns(&mut server, now);
            assert!(busy <= servers * u128::from(now) && link <= u128::from(now), "seed {seed}");
        }
        let end = finish(&mut server, Instant::FAR, &mut open);
        assert!(open.is_empty(), "seed {seed}: {open:?} never came");
        assert!(done > 0 && done + refused <= 120 && server.left.is_empty(), "seed {seed}");
        let rest = busy_ns(&mut server, end.max(now) + 10_000);
        assert_eq!(busy_ns(&mut server, end.max(now) + 20_000), rest, "seed {seed}: busy with nothing");
    }
}

/// Without slow-downs the busy time of workers is the work, to the nanosecond.
#[test]
fn busy_time_is_the_work() {
    for seed in 0..200 {
        let random = &mut Random::new(seed);
        let (mut server, mut shared) = (Server::new(&workers(3)), Server::new(&sharing(3, 1000)));
        let (mut now, mut sum) = (0, 0);
        for job in 0..300 {
            now += random.below(30);
            let ns = random.below(100);
            for server in [&mut server, &mut shared] {
                run_until(server, at(now));
                if job % 5 == 0 {
                    server.charge(at(now), Duration::from_nanos(ns));
                } else {
                    server.offer(at(now), job, work(ns)).unwrap();
                }
            }
            sum += u128::from(ns);
        }
        run(&mut server);
        run(&mut shared);
        assert_eq!(busy_ns(&mut server, 1 << 20).0, sum, "seed {seed}");
        // Each end that is rounded up may add up to a nanosecond of a core.
        let shared = busy_ns(&mut shared, 1 << 20).0;
        assert!((sum..=sum + 300 * 3).contains(&shared), "seed {seed}: {shared} of {sum}");
    }
}

/// Compares processor sharing with counting down every job's remaining work, which needs no virtual time (ns).
#[test]
fn sharing_agrees_with_counting_down() {
    let mut ends = 0;
    for seed in 0..300 {
        let random = &mut Random::new(seed);
        let cores = random.below(3) + 1;
        let jobs: Vec<(u64, u64)> = (0..60)
            .scan(0, |now, _| {
                *now += random.below(3_000_000);
                Some((*now, random.below(5_000_000)))
            })
            .collect();
        let faults = vec![
            fault(10_000_000, 40_000_000, FaultKind::Slower(1.7)),
            fault(30_000_000, 50_000_000, FaultKind::Slower(3.0)),
            fault(60_000_000, 65_000_000, FaultKind::Slower(f64::INFINITY)),
        ];
        let expected = counted_down(cores as f64, &jobs, &faults);
        let mut server = Server::new(&Plant { faults, ..sharing(cores as u32, 1000) });
        let mut done = Vec::new();
        for (job, (arrival, ns)) in (0..).zip(&jobs) {
            done.extend(run_until(&mut server, at(*arrival)));
            server.offer(at(*arrival), job, work(*ns)).unwrap();
        }
        done.extend(run(&mut server));
        for (end, job) in done {
            // Each earlier end in the same busy period may have come up to 1 ns late.
            let difference = end as f64 - expected[job as usize];
            assert!((-1e-3..60.0 * 5.0).contains(&difference), "seed {seed}, job {job}: {difference}");
            ends += 1;
        }
    }
    assert_eq!(ends, 300 * 60);
}

fn counted_down(cores: f64, jobs: &[(u64, u64)], faults: &[Fault]) -> Vec<f64> {
    let speed = |now: f64| {
        let lasts = |f: &&Fault| f.from.as_nanos() as f64 <= now && now < f.until.as_nanos() as f64;
        faults.iter().filter(lasts).fold(1.0, |speed, fault| match fault.kind {
            FaultKind::Slower(factor) => speed / factor,
            _ => speed,
        })
    };
    let bounds: Vec<f64> =
        faults.iter().flat_map(|fault| [fault.from, fault.until]).map(|at| at.as_nanos() as f64).collect();
    let mut ends = vec![f64::NAN; jobs.len()];
    let mut rest: Vec<(usize, f64)> = Vec::new();
    let (mut now, mut next) = (0.0, 0);
    while next < jobs.len() || !rest.is_empty() {
        let rate = speed(now) * (cores / rest.len() as f64).min(1.0);
        let shortest = rest.iter().map(|(_, left)| *left).fold(f64::INFINITY, f64::min);
        let arrival = jobs.get(next).map_or(f64::INFINITY, |(arrival, _)| *arrival as f64);
        let bound = bounds.iter().copied().filter(|bound| *bound > now).fold(f64::INFINITY, f64::min);
        let end = if rate > 0.0 { now + shortest / rate } else { f64::INFINITY };
        let until = end.min(arrival).min(bound);
        rest.iter_mut().for_each(|(_, left)| *left -= (until - now) * rate);
        now = until;
        if until == end {
            rest.retain(|(job, left)| {
                if *left <= 1e-6 {
                    ends[*job] = now;
                }
                *left > 1e-6
            });
        } else if until == arrival {
            rest.push((next, jobs[next].1 as f64));
            next += 1;
        }
    }
    ends
}
