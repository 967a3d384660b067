//! The profile of servers whose costs are known: is it right, and what becomes of it if the server does not last?
//!
//! The origin's work is waited for and not computed, so its capacity is exact on a machine that is not.

use plimsoll_load::profile::{Ended, Fit, Highest, Plan, Profile, Progress, Subject, Watch};
use plimsoll_load::{
    ClosedLoop, Cost, Origin, OriginHandle, OriginSettings, Outcome, PathClass, Target, on_a_steady_machine,
};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One test at a time: they judge rates, and the machine may have two processors.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

const KILOBYTES: [usize; 4] = [1, 16, 64, 128];
const WORKERS: u32 = 8;

/// 8 workers, 6 ms and 0.1 ms for each KB.
fn origin(change: impl FnOnce(&mut OriginSettings)) -> OriginHandle {
    let class = |kb: &usize| PathClass::new(&format!("{kb}"), &format!("/{kb}k"), kb * 1024);
    let mut settings = OriginSettings {
        workers: WORKERS,
        cost: Cost { fixed: Duration::from_millis(6), per_kilobyte: Duration::from_micros(100) },
        classes: KILOBYTES.iter().map(class).collect(),
        ..OriginSettings::default()
    };
    change(&mut settings);
    Origin::start(settings).expect("a free port on loopback")
}

fn subject(origin: &OriginHandle, path: &str) -> Subject {
    Subject { name: path.into(), target: Target::new(origin.address()), path: path.into() }
}

fn plan(origin: &OriginHandle, each: Duration) -> Plan {
    Plan {
        subjects: KILOBYTES.iter().map(|kb| subject(origin, &format!("/{kb}k"))).collect(),
        rejecting: None,
        each,
        overload: None,
        most_requests: 1_000_000,
        most_clients: 256,
    }
}

/// Calls a closure at every look.
struct Looks<F>(F);

impl<F: FnMut(&Progress<'_>) -> ControlFlow<()>> Watch for Looks<F> {
    fn progress(&mut self, progress: &Progress<'_>) -> ControlFlow<()> {
        (self.0)(progress)
    }
}

fn run(plan: &Plan) -> Profile {
    plan.run(&mut Looks(|_: &Progress<'_>| ControlFlow::Continue(())))
}

fn close(what: &str, value: f64, wanted: f64) {
    println!("{what}: {value:.4e}, truth {wanted:.4e}, {:+.2} %", (value / wanted - 1.0) * 100.0);
    assert!((value / wanted - 1.0).abs() < 0.03, "{what} is {value:e}, not {wanted:e}");
}

#[test]
fn a_b_and_c_are_right_within_three_percent() {
    on_a_steady_machine(|| {
        let _alone = alone();
        let (origin, rejecting) = (
            origin(|_| ()),
            origin(|settings| {
                settings.cost = Cost::constant(Duration::from_millis(3));
                settings.classes = vec![PathClass::new("rejection", "/", 0)];
            }),
        );
        let plan =
            Plan { rejecting: Some(subject(&rejecting, "/")), ..plan(&origin, Duration::from_secs(4)) };
        assert_eq!(plan.longest(), Duration::from_secs(20));
        let begin = Instant::now();
        let profile = run(&plan);
        assert!(begin.elapsed() < Duration::from_secs(22), "{:?}", begin.elapsed());
        assert_eq!(profile.ended, Ended::Complete);
        for (highest, kb) in profile.highest.iter().zip(KILOBYTES) {
            let wanted = f64::from(WORKERS) / (6e-3 + 1e-4 * kb as f64);
            println!("{highest:?}");
            close(&format!("rate at {kb} KB"), highest.rate, wanted);
            assert_eq!(highest.bytes, kb as f64 * 1024.0);
            assert!(highest.sustained.is_some(), "{highest:?}");
        }
        let Fit { per_request_seconds, per_byte_seconds, link_per_byte_seconds } = profile.fit.unwrap();
        close("a", per_request_seconds, 6e-3 / f64::from(WORKERS));
        close("b", per_byte_seconds, 1e-4 / 1024.0 / f64::from(WORKERS));
        close(
            "c",
            profile.rejecting.as_ref().map_or(0.0, Highest::service_seconds),
            3e-3 / f64::from(WORKERS),
        );
        assert_eq!(link_per_byte_seconds, None, "no link binds this server");
        println!("workers {:?}, busy clients {:?}", profile.workers(), profile.busy_clients());
        assert!(
            profile.workers().is_none_or(|workers| workers.abs_diff(WORKERS) <= 1),
            "{:?}",
            profile.workers()
        );
        assert!((6..=32).contains(&profile.busy_clients().unwrap()), "{:?}", profile.busy_clients());
        // What a window leaves behind is worked on unseen, or never read.
        let seen = |origin: &OriginHandle| origin.served().answers() + origin.served().abandoned;
        let served = seen(&origin) + seen(&rejecting);
        assert!(profile.requests.abs_diff(served) < served / 30, "{} of {served}", profile.requests);
    });
}

#[test]
fn failures_of_a_full_queue_cost_this_server_nothing() {
    on_a_steady_machine(|| {
        let _alone = alone();
        let origin = origin(|settings| settings.queue = 32);
        let mut plan = plan(&origin, Duration::from_secs(2));
        plan.subjects.truncate(1);
        plan.overload = Some(2.0);
        let overload = run(&plan).overload.unwrap();
        println!("{overload:?}");
        assert!(overload.failed > 0.7 * overload.answered, "twice the rate fails half of it: {overload:?}");
        let answer = 6.1e-3 / f64::from(WORKERS);
        let cost = overload.per_failure_seconds;
        // On a machine that is busy with something else the client may be too late to say.
        assert!(cost.is_some_and(|cost| cost < 0.1 * answer) || overload.late_seconds > 0.1, "{overload:?}");
    });
}

/// Of one size, 16 ms of one of 8 workers, at twice its rate; with what a failure is believed to take of the server.
fn failing(change: impl FnOnce(&mut OriginSettings), each: u64) -> (OriginHandle, Profile) {
    let origin = origin(|settings| {
        settings.cost = Cost::constant(Duration::from_millis(16));
        change(settings);
    });
    let mut plan = plan(&origin, Duration::from_secs(each));
    plan.subjects.truncate(1);
    plan.overload = Some(2.0);
    // As many as find room: who is refused in a closed loop is back at once, and refusing would be all that is done.
    plan.most_clients = 32;
    let profile = run(&plan);
    println!("{:?} {:?} {:?}", profile.ended, profile.highest, profile.overload);
    (origin, profile)
}

/// UC 7.5: a server that spends 4 ms of a worker on each client that it has no room for.
#[test]
fn what_a_failure_costs_is_right_within_ten_percent() {
    on_a_steady_machine(|| {
        let _alone = alone();
        let (origin, profile) = failing(
            |settings| {
                settings.queue = 32;
                settings.refusal = Duration::from_millis(4);
            },
            4,
        );
        let overload = profile.overload.unwrap();
        assert!(origin.served().refused > 500, "{:?}", origin.served());
        // X' 16 + F 4 = 8000 and X' + F = 1000: a third is answered.
        let answered = overload.answered / overload.offered;
        assert!((0.30..0.37).contains(&answered), "{answered:.3} answered: {overload:?}");
        let (cost, truth) = (overload.per_failure_seconds.unwrap(), 4e-3 / f64::from(WORKERS));
        assert_within_a_tenth(cost, truth);
    });
}

fn assert_within_a_tenth(cost: f64, truth: f64) {
    let error = cost / truth - 1.0;
    println!("T_f {:.1} us, truth {:.1} us, {:+.2} %", cost * 1e6, truth * 1e6, error * 100.0);
    assert!(error.abs() < 0.1, "T_f is {cost:e}, not {truth:e}");
}

/// A server that works on requests whose clients have left: with a line longer than their patience everybody has left
/// by the time that it comes to them. All of the server is wasted then, on twice as many as it can serve: T_f is half
/// of what an answer costs.
#[test]
fn work_for_clients_that_left_is_a_cost_of_failures() {
    on_a_steady_machine(|| {
        let _alone = alone();
        let (origin, profile) = failing(|settings| settings.queue = 100_000, 12);
        let overload = profile.overload.unwrap();
        assert!(origin.served().abandoned > 1000, "{:?}", origin.served());
        assert!(overload.answered < 0.05 * overload.offered, "{overload:?}");
        let (cost, truth) = (overload.per_failure_seconds.unwrap(), 0.5 * 16e-3 / f64::from(WORKERS));
        assert_within_a_tenth(cost, truth);
    });
}

#[test]
fn what_was_measured_before_the_server_died_is_kept() {
    let _alone = alone();
    let mut origin = origin(|_| ());
    let plan = plan(&origin, Duration::from_millis(1500));
    let mut down = false;
    let profile = plan.run(&mut Looks(|progress: &Progress<'_>| {
        if progress.subject == "/64k" && progress.done > 0.6 && !std::mem::replace(&mut down, true) {
            origin.set_down(true).expect("it closes");
        }
        ControlFlow::Continue(())
    }));
    let Ended::Died(subject, why) = &profile.ended else { panic!("{:?}", profile.ended) };
    assert_eq!((subject.as_str(), profile.highest.len()), ("/64k", 2));
    assert!(why.contains("refused") || why.contains("closed"), "{why}");
    assert!(profile.fit.is_some());
}

#[test]
fn it_ends_by_count_and_when_told() {
    let _alone = alone();
    let origin = origin(|_| ());
    let few = Plan { most_requests: 700, ..plan(&origin, Duration::from_secs(2)) };
    let profile = run(&few);
    assert_eq!((profile.ended, profile.requests), (Ended::RequestsUsedUp, 700));
    assert!(origin.served().answers() <= 700);

    let plan = plan(&origin, Duration::from_secs(60));
    let begin = Instant::now();
    let told = plan.run(&mut Looks(|_: &Progress<'_>| {
        if begin.elapsed() > Duration::from_millis(300) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }));
    assert!(begin.elapsed() < Duration::from_secs(3), "{:?}", begin.elapsed());
    assert_eq!((told.ended, told.highest.len(), told.fit), (Ended::Interrupted, 0, None));
}

#[test]
fn a_load_of_one_request_makes_one() {
    let _alone = alone();
    let origin = origin(|_| ());
    let mut plan = plan(&origin, Duration::from_secs(1));
    plan.subjects.push(subject(&origin, "/nowhere"));
    let answers = plan.probe().unwrap();
    let statuses: Vec<u16> = answers
        .iter()
        .map(|outcome| if let Outcome::Answer(answer) = outcome { answer.status } else { 0 })
        .collect();
    assert_eq!(statuses, [200, 200, 200, 200, 404]);
    assert_eq!((origin.served().answers(), origin.served().not_found), (4, 1));

    let ten =
        ClosedLoop { most: 10, ..ClosedLoop::new(Target::new(origin.address()), 4, Duration::from_secs(60)) };
    assert_eq!(ten.start(None).unwrap().join().requests, 10);
}
