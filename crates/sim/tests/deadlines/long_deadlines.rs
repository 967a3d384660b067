//! Deadlines of minutes, and deadlines far apart under admission by budget.

use crate::scene::{Flow, Kind, Scene, ms};
use plimsoll_core::promises::{Admission, Mode};
use plimsoll_sim::workload::Law;

/// Jobs within ten minutes before one worker.
fn jobs(seconds: u64, every: f64, seed: u64) -> Scene {
    let job = Kind::new("/job-*", 1.0, ms(1000 * seconds), Law::Lognormal { variation: 0.05 });
    Scene::new(1, vec![Flow::new("jobs", 1.0 / every, vec![job]).within(Some(ms(600_000)))], 60_000.0, seed)
}

#[test]
fn jobs_longer_than_the_deadline_are_not_started_one_after_the_other() {
    for seed in 8711..=8713 {
        let heard = jobs(700, 100.0, seed).run();
        let started = heard.of(0, 0.0).filter(|job| job.is_admitted()).count();
        println!("{started} of {} were started", heard.answers.len());
        assert!((1..=5).contains(&started), "{started}");
    }
    let twin = Scene { mode: Mode::Off, ..jobs(700, 100.0, 8711) }.run();
    let started = twin.of(0, 0.0).filter(|job| job.is_admitted()).count();
    assert!(started > 70, "the twin without control: {started} were started");
}

#[test]
fn a_budget_of_short_periods_does_not_refuse_long_requests_on_an_idle_server() {
    for (pages, seed) in [(0.01, 8721), (5.0, 8722)] {
        let page = Kind::new("/page-*", 1.0, ms(2), Law::Lognormal { variation: 0.3 });
        let report = Kind::new("/report-*", 1.0, ms(150), Law::Lognormal { variation: 0.3 });
        let flows = vec![
            Flow::new("pages", pages, vec![page]).within(Some(ms(100))),
            Flow::new("reports", 1.0, vec![report]).within(Some(ms(10_000))),
        ];
        let mut scene = Scene::new(1, flows, 200.0, seed);
        scene.admission = Admission::Budget;
        let heard = scene.run();
        let good = heard.in_time(1, 10.0, (20.0, 190.0));
        println!("beside {pages}/s: {good:.3} in time");
        assert!((0.85..=1.0).contains(&good), "{good}");
    }
}

/// Requests of the high class take three times the deadline, and are refused but for those that are tried on an idle server.
/// They reserve nothing of the low class's, which has nearly all of the time that these leave.
#[test]
fn a_budget_keeps_no_room_for_requests_that_are_refused_for_their_own_time() {
    for seed in 8731..=8733 {
        let film = Kind::new("/film-*", 1.0, ms(3000), Law::Deterministic);
        let page = Kind::new("/page-*", 1.0, ms(20), Law::Lognormal { variation: 0.3 });
        let films = Flow::new("films", 1.2, vec![film]).priority(1);
        let pages = Flow::new("pages", 20.0, vec![page]).priority(2);
        let mut scene = Scene::new(1, vec![films, pages], 300.0, seed);
        scene.admission = Admission::Budget;
        let heard = scene.run();
        let tried = heard.of(0, 60.0).filter(|film| film.is_admitted()).count();
        let (left, good) = (1.0 - 3.0 * tried as f64 / 240.0, heard.in_time(1, 1.0, (60.0, 299.0)));
        println!("{tried} films leave {left:.3} of the time, pages {good:.3} in time");
        assert!(good >= 0.3 && good >= 0.75 * left, "{good} of {left}");
    }
}
