//! The profile of a server in real time: it ends, keeps what it has, and makes no more requests than it may. That what it finds
//! is right is judged in virtual time: `src/profile/virtual_time.rs`.

use plimsoll_load::profile::{Ended, Plan, Profile, Progress, Subject, Watch};
use plimsoll_load::{ClosedLoop, Cost, Origin, OriginHandle, OriginSettings, Outcome, PathClass, Target};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const KILOBYTES: [usize; 4] = [1, 16, 64, 128];
const WORKERS: u32 = 8;

/// 8 workers, 6 ms and 0.1 ms for each KB.
fn origin(change: impl FnOnce(&mut OriginSettings)) -> OriginHandle {
    let class = |kb: &usize| PathClass::new(&format!("/{kb}k"), kb * 1024);
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

#[test]
fn everything_that_was_asked_for_is_measured() {
    let origin = origin(|settings| settings.queue = 32);
    let all = plan(&origin, Duration::from_secs(1));
    let plan =
        Plan { rejecting: Some(subject(&origin, "/1k")), overload: Some(2.0), most_clients: 32, ..all };
    assert_eq!(plan.longest(), Duration::from_secs(7));
    let profile = run(&plan);
    assert_eq!((&profile.ended, profile.highest.len()), (&Ended::Complete, 4));
    assert!(profile.rejecting.is_some() && profile.fit.is_some(), "{profile:?}");
    assert!(profile.overload.is_some_and(|overload| overload.failed > 0.0) && origin.served().refused > 0);
    // What a window leaves behind is worked on unseen, or never read.
    let seen = origin.served().answers + origin.served().abandoned + origin.served().refused;
    assert!(seen > 0 && profile.requests >= origin.served().answers, "{} of {seen}", profile.requests);
}

#[test]
fn what_was_measured_before_the_server_died_is_kept() {
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
fn a_server_that_refuses_for_a_moment_is_not_dead() {
    let mut origin = origin(|_| ());
    let plan = plan(&origin, Duration::from_millis(1500));
    let (mut down, mut up) = (None, false);
    let profile = plan.run(&mut Looks(|progress: &Progress<'_>| {
        if down.is_none() && progress.subject == "/64k" && progress.done > 0.6 {
            down = Some(Instant::now());
            origin.set_down(true).expect("it closes");
        }
        if !up && down.is_some_and(|down| down.elapsed() > Duration::from_millis(300)) {
            up = true;
            origin.set_down(false).expect("it listens again");
        }
        ControlFlow::Continue(())
    }));
    assert_eq!((&profile.ended, profile.highest.len()), (&Ended::Complete, 4));
}

#[test]
fn it_ends_by_count_and_when_told() {
    let origin = origin(|_| ());
    let few = Plan { most_requests: 700, ..plan(&origin, Duration::from_secs(2)) };
    let profile = run(&few);
    assert_eq!((profile.ended, profile.requests), (Ended::RequestsUsedUp, 700));
    assert!(origin.served().answers <= 700);

    let plan = plan(&origin, Duration::from_secs(60));
    let begin = Instant::now();
    let interrupted = plan.run(&mut Looks(|_: &Progress<'_>| {
        if begin.elapsed() > Duration::from_millis(300) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }));
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(
        (interrupted.ended, interrupted.highest.len(), interrupted.fit),
        (Ended::Interrupted, 0, None)
    );
}

#[test]
fn a_load_of_one_request_makes_one() {
    let origin = origin(|_| ());
    let mut plan = plan(&origin, Duration::from_secs(1));
    plan.subjects.push(subject(&origin, "/nowhere"));
    let answers = plan.probe().unwrap();
    let statuses: Vec<u16> = answers
        .iter()
        .map(|outcome| if let Outcome::Answer(answer) = outcome { answer.status } else { 0 })
        .collect();
    assert_eq!(statuses, [200, 200, 200, 200, 404]);
    assert_eq!((origin.served().answers, origin.served().not_found), (4, 1));

    let ten =
        ClosedLoop { most: 10, ..ClosedLoop::new(Target::new(origin.address()), 4, Duration::from_secs(60)) };
    assert_eq!(ten.start(None).unwrap().join().requests, 10);
}
