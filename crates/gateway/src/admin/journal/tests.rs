//! The journal over made-up periods.

use super::*;
use crate::admin::tests::empty;
use plimsoll_core::promises::plan::{ContractRow, DelayRow, Feasibility, PlantPlan};
use plimsoll_core::promises::{Delay, Guarantee, Mode};
use plimsoll_core::request::Reason;
use plimsoll_core::telemetry::status::{
    ClassStatus, Counts, DeadlineStatus, HeardPlaces, PartStatus, PlacesStatus, PlantStatus, ResponseStatus,
    SiteStatus,
};

/// A second of a site with a delay of 100 ms.
struct Second {
    at: u64,
    utilization: f64,
    response: f64,
    light: u64,
}

fn status(second: &Second) -> Status {
    let Second { at, utilization, response, light } = *second;
    let mut counts = Counts { arrivals: 100 * at, ..Counts::default() };
    (counts.served[1], counts.served[2]) = (light * at, (100 - light) * at);
    let class = ClassStatus {
        site: "shop".to_owned(),
        class: "gold".to_owned(),
        levels: vec!["light".to_owned(), "full".to_owned()],
        counts,
        response: Some(ResponseStatus {
            response,
            missed: response > 0.1,
            quota: Some(2.0),
            ..ResponseStatus::default()
        }),
        ..ClassStatus::default()
    };
    let row = DelayRow {
        site: "shop".to_owned(),
        class: "gold".to_owned(),
        delay: Delay { target: Duration::from_millis(100), percentile: None },
        rate: None,
        service_seconds: None,
        least_seconds: None,
        fitting_rate: None,
        yields: false,
    };
    let plan = PlantPlan { plant: "origin".to_owned(), delays: vec![row], ..PlantPlan::default() };
    let plant = PlantStatus {
        name: "origin".to_owned(),
        workers: 8,
        set_point: 0.85,
        utilization,
        utilization_offered: utilization,
        ..PlantStatus::default()
    };
    let at = Instant::from_nanos(at * 1_000_000_000);
    Status { at, plants: vec![plant], plan: vec![plan], classes: vec![class], ..empty() }
}

/// Lets a journal see these seconds; the view of the last one.
fn seen(journal: &mut Journal, seconds: &[Second]) -> View {
    let mut view = View::default();
    for second in seconds {
        let status = status(second);
        let unix_seconds = 1e9 + second.at as f64;
        let sight = Sight {
            kind: ShellKind::Gateway,
            status: &status,
            reloads: Reloads::default(),
            down: vec![false],
            unix_seconds,
        };
        journal.look(&sight);
        view = journal.view(&sight);
    }
    view
}

fn seconds(from: u64, until: u64, utilization: f64, response: f64, light: u64) -> Vec<Second> {
    (from..until).map(|at| Second { at, utilization, response, light }).collect()
}

#[test]
fn a_promise_that_is_kept_says_what_the_loop_does() {
    let mut journal = Journal::default();
    let view = seen(&mut journal, &seconds(1, 20, 0.84, 0.05, 38));
    assert_eq!(view.promises.len(), 2);
    let line = view.promises.iter().find(|row| row.kind == PromiseKind::LoadLine).unwrap();
    assert_eq!((line.state, line.site.as_str()), (PromiseState::Kept, "shop"));
    assert_eq!(line.sentence, "holding 0.85: 38 % of requests on light, nobody rejected");
    let delay = view.promises.iter().find(|row| row.kind == PromiseKind::Delay).unwrap();
    assert_eq!((delay.guarantee.as_str(), delay.now.as_str()), ("100 ms on average", "50.0 ms"));
    assert_eq!(delay.since_unix_seconds, 1e9 + 1.0);
    assert!(delay.margin.is_some_and(|margin| (margin - 0.5).abs() < 1e-9), "{delay:?}");
}

/// A controlled value exceeds its promise a little now and then: beside a negative margin the sentence says from which value on
/// it is at risk.
#[test]
fn what_is_kept_beyond_its_promise_says_where_the_risk_begins() {
    let view = seen(&mut Journal::default(), &seconds(1, 20, 0.92, 0.05, 38));
    let line = view.promises.iter().find(|row| row.kind == PromiseKind::LoadLine).unwrap();
    assert_eq!((line.state, line.margin.is_some_and(|margin| margin < 0.0)), (PromiseState::Kept, true));
    assert!(line.sentence.starts_with("holding 0.85, at risk above 0.93: 38 % of requests"), "{line:?}");
    let delay = delay_row(|held| ResponseStatus { response: 0.104, ..held });
    assert_eq!((delay.state, delay.margin.is_some_and(|margin| margin < 0.0)), (PromiseState::Kept, true));
    assert!(delay.sentence.starts_with("held, at risk above 105 ms: 2.0 of 8 workers"), "{delay:?}");
}

#[test]
fn a_missed_promise_comes_first_at_once_and_is_kept_again_once_that_lasts() {
    let mut journal = Journal::default();
    seen(&mut journal, &seconds(1, 10, 0.5, 0.05, 0));
    let view = seen(&mut journal, &seconds(10, 11, 0.5, 0.3, 0));
    let first = &view.promises[0];
    assert_eq!((first.kind, first.state), (PromiseKind::Delay, PromiseState::Missed));
    assert_eq!(first.since_unix_seconds, 1e9 + 10.0);
    assert!(first.margin.is_some_and(|margin| margin < 0.0));
    let missed = journal.after(1).events;
    assert_eq!(
        (missed.len(), missed[0].kind, missed[0].subject.as_str()),
        (1, EventKind::PromiseMissed, "shop/gold")
    );
    let view = seen(&mut journal, &seconds(11, 15, 0.5, 0.05, 0));
    assert_eq!(view.promises[0].state, PromiseState::Missed, "not for long enough");
    let view = seen(&mut journal, &seconds(15, 17, 0.5, 0.05, 0));
    assert!(view.promises.iter().all(|row| row.state == PromiseState::Kept), "{:?}", view.promises);
    assert_eq!(journal.after(2).events[0].kind, EventKind::PromiseKept);
}

#[test]
fn a_time_of_rejections_has_a_beginning_and_an_end() {
    let mut journal = Journal::default();
    // A hundred requests a second, of which some are rejected from 21 s to 45 s.
    let run = |journal: &mut Journal, from: u64, until: u64, each: u64| {
        for at in from..until {
            let mut status = status(&Second { at, utilization: 0.5, response: 0.05, light: 0 });
            status.classes[0].counts.reasons[Reason::Overload as usize] =
                each * at.clamp(20, 45).saturating_sub(20);
            let (reloads, unix_seconds) = (Reloads::default(), 1e9 + at as f64);
            journal.look(&Sight {
                kind: ShellKind::Gateway,
                status: &status,
                reloads,
                down: vec![false],
                unix_seconds,
            });
        }
    };
    run(&mut journal, 1, 70, 50);
    let events = journal.after(1).events;
    let [began, ended] = &events[..] else { panic!("{events:?}") };
    assert_eq!((began.kind, ended.kind), (EventKind::RejectionsBegan, EventKind::RejectionsEnded));
    assert!((began.unix_seconds, began.subject.as_str()) == (1e9 + 21.0, "shop/gold"), "{began:?}");
    assert!(began.text.ends_with("% of requests are rejected"), "{began:?}");
    assert_eq!(ended.text, "shop/gold: nobody is rejected any more; 1250 were in 25 s");
    // One rejection in a thousand requests is no event.
    let mut journal = Journal::default();
    let mut quiet = status(&Second { at: 1, utilization: 0.5, response: 0.05, light: 0 });
    for at in 1..30 {
        quiet = Status { at: Instant::from_nanos(at * 1_000_000_000), ..quiet };
        quiet.classes[0].counts.served[2] = 1000 * at;
        quiet.classes[0].counts.reasons[Reason::Overload as usize] = at;
        journal.look(&Sight {
            kind: ShellKind::Gateway,
            status: &quiet,
            reloads: Reloads::default(),
            down: vec![false],
            unix_seconds: 1.0,
        });
    }
    assert_eq!(journal.after(1).events, []);
}

#[test]
fn a_delay_that_is_missed_by_failures_says_so() {
    let delay = delay_row(|held| ResponseStatus { lost: 0.2, missed: true, ..held });
    assert_eq!(
        (delay.state, delay.now.as_str()),
        (PromiseState::Missed, "50.0 ms, 20 % failed or turned away")
    );
    assert!(delay.margin.is_some_and(|margin| margin < 0.0), "{delay:?}");
    assert!(delay.sentence.starts_with("missed by requests that failed or were turned away: "), "{delay:?}");
}

/// The row of a delay with this status.
fn delay_row(change: impl Fn(ResponseStatus) -> ResponseStatus) -> PromiseRow {
    let mut journal = Journal::default();
    let mut status = status(&Second { at: 1, utilization: 0.5, response: 0.05, light: 0 });
    status.classes[0].response = status.classes[0].response.map(change);
    let sight = Sight {
        kind: ShellKind::Gateway,
        status: &status,
        reloads: Reloads::default(),
        down: Vec::new(),
        unix_seconds: 1.0,
    };
    journal.look(&sight);
    let rows = journal.view(&sight).promises;
    rows.into_iter().find(|row| row.kind == PromiseKind::Delay).expect("a delay")
}

#[test]
fn a_ratio_that_is_not_reached_is_not_kept() {
    let status = status(&Second { at: 1, utilization: 0.5, response: 0.05, light: 0 });
    let recent = Recent { arrivals: 100, ..Recent::default() };
    let state = |reached: f64| {
        let held =
            ResponseStatus { ratio: Some(2.0), ratio_reached: Some(reached), ..ResponseStatus::default() };
        promise::ratio_row(&status, &recent, &held).map(|row| row.state)
    };
    assert_eq!(state(1.95), Some(PromiseState::Kept));
    assert_eq!([1.5, 2.5].map(state), [Some(PromiseState::AtRisk); 2]);
}

#[test]
fn a_ratio_without_requests_says_so_beside_what_was_reached() {
    let status = status(&Second { at: 1, utilization: 0.5, response: 0.05, light: 0 });
    let held = ResponseStatus { ratio: Some(2.0), ratio_reached: Some(1.6), ..ResponseStatus::default() };
    let row = promise::ratio_row(&status, &Recent::default(), &held).expect("a row");
    assert_eq!(
        (row.state, row.sentence.as_str()),
        (PromiseState::Idle, "no requests in the last ten seconds")
    );
}

/// More is guaranteed than the server can keep, while the site asks for no more than its contract.
#[test]
fn a_contract_within_which_requests_are_not_served_in_full_is_missed() {
    let site = SiteStatus { name: "shop".to_owned(), ..SiteStatus::default() };
    let row = |rate: f64, full: u64| {
        let mut status = status(&Second { at: 1, utilization: 0.5, response: 0.05, light: 0 });
        status.classes[0].request_rate = rate;
        status.plan[0].verdict = Feasibility::Exceeds;
        let guarantee = Guarantee::new(100.0, 1e9);
        status.plan[0].rows = vec![ContractRow { site: "shop".to_owned(), guarantee, utilization: None }];
        let recent = Recent { arrivals: 1000, served: vec![0, 0, full], ..Recent::default() };
        promise::contract(&status, &[recent], &site).map(|row| row.state)
    };
    assert_eq!(row(73.0, 995), Some(PromiseState::AtRisk));
    assert_eq!(row(73.0, 550), Some(PromiseState::Missed));
    assert_eq!(row(150.0, 550), Some(PromiseState::AtRisk), "it asks for more than its contract");
}

/// All guarantees fit, but the server hangs: of 50 requests a second, half of the contract, none is served.
#[test]
fn a_contract_whose_requests_are_turned_away_is_not_kept() {
    let site = SiteStatus { name: "shop".to_owned(), ..SiteStatus::default() };
    let state = |bandwidth: Option<f64>, came: u64, lost: [u64; 2], verdict: Feasibility, mode: Mode| {
        let mut status = status(&Second { at: 1, utilization: 0.5, response: 0.05, light: 0 });
        (status.classes[0].request_rate, status.plan[0].verdict, status.mode) = (50.0, verdict, mode);
        let guarantee = Guarantee { bandwidth_bytes_per_second: bandwidth, ..Guarantee::new(100.0, 1e9) };
        status.plan[0].rows = vec![ContractRow { site: "shop".to_owned(), guarantee, utilization: None }];
        let full = came - lost.iter().sum::<u64>();
        let mut recent =
            Recent { seconds: 10.0, arrivals: came, served: vec![0, 0, full], ..Recent::default() };
        recent.reasons[Reason::QueueFull as usize] = lost[0];
        recent.reasons[Reason::WaitTimeout as usize] = lost[1];
        promise::contract(&status, &[recent], &site).map(|row| (row.state, row.sentence))
    };
    for verdict in [Feasibility::Fits, Feasibility::Unverified] {
        let of = |bandwidth, came, lost| {
            state(bandwidth, came, lost, verdict, Mode::Control).map(|(state, _)| state)
        };
        assert_eq!(of(None, 500, [400, 100]), Some(PromiseState::Missed));
        assert_eq!(of(None, 500, [0, 20]), Some(PromiseState::Missed));
        assert_eq!(of(Some(1e9), 500, [400, 100]), Some(PromiseState::AtRisk), "their bytes may exceed it");
        assert_eq!(of(None, 500, [0, 3]), Some(PromiseState::Kept), "a few by chance");
        assert_eq!(of(None, 1500, [800, 0]), Some(PromiseState::Kept), "more came than the contract is for");
        assert_eq!(state(None, 500, [500, 0], verdict, Mode::Off).map(|row| row.0), Some(PromiseState::Kept));
    }
    let (_, sentence) = state(None, 500, [400, 100], Feasibility::Fits, Mode::Control).expect("a row");
    assert_eq!(
        sentence,
        "requests inside the contract are turned away: 100 % rejected, mostly for queue-full"
    );
}

#[test]
fn a_mean_is_at_risk_on_the_way_to_a_miss_and_not_where_the_loop_holds_it() {
    for (response, at_limit, expected) in [
        (0.02, true, PromiseState::Kept),
        (0.098, false, PromiseState::Kept),
        (0.098, true, PromiseState::Kept),
        (0.104, false, PromiseState::Kept),
        (0.104, true, PromiseState::AtRisk),
        (0.106, false, PromiseState::AtRisk),
    ] {
        let row = delay_row(|held| ResponseStatus { response, at_limit, ..held });
        assert_eq!(row.state, expected, "{response} {at_limit}");
    }
    assert_eq!(delay_row(|held| ResponseStatus { lost: 0.0095, ..held }).state, PromiseState::AtRisk);
}

#[test]
fn a_deadline_is_judged_by_the_hundredth_part_that_may_be_late() {
    let deadline =
        DeadlineStatus { deadline: Duration::from_millis(500), in_time: 99.0, ..DeadlineStatus::default() };
    let row = |late: u64| {
        let mut recent = Recent { late, ..Recent::default() };
        recent.responses.buckets[0] = 1000;
        let status = status(&Second { at: 1, utilization: 0.5, response: 0.05, light: 0 });
        promise::deadline_row(&status, &recent, &deadline)
    };
    assert_eq!(row(9).guarantee, "99.0 % within 500 ms");
    assert_eq!(
        [9, 15, 30].map(|late| row(late).state),
        [PromiseState::Kept, PromiseState::AtRisk, PromiseState::Missed]
    );
    assert!(row(9).margin.is_some_and(|margin| (margin - 0.1).abs() < 1e-9));
    let failing = |failed: u64| {
        let mut recent = Recent { failed, ..Recent::default() };
        recent.responses.buckets[0] = 1000;
        let status = status(&Second { at: 1, utilization: 0.5, response: 0.05, light: 0 });
        promise::deadline_row(&status, &recent, &deadline).state
    };
    assert_eq!([failing(0), failing(1000)], [PromiseState::Kept, PromiseState::Missed]);
}

#[test]
fn what_is_missed_with_all_workers_says_so_with_a_margin_that_can_be_read() {
    let row = delay_row(|held| ResponseStatus { response: 1.5, missed: true, quota: Some(7.97), ..held });
    assert_eq!(row.margin, Some(-1.0));
    assert!(
        row.sentence.starts_with("missed although 8.0 of 8 workers are its own, which is all it can have"),
        "{}",
        row.sentence
    );
}

#[test]
fn a_missed_promise_of_which_nobody_asks_any_more_is_idle_and_not_said_to_be_kept() {
    let mut journal = Journal::default();
    seen(&mut journal, &seconds(1, 10, 0.5, 0.3, 0));
    let view = seen(&mut journal, &seconds(10, 20, 0.5, 0.0, 0));
    let delay = view.promises.iter().find(|row| row.kind == PromiseKind::Delay).unwrap();
    assert_eq!((delay.state, journal.after(2).events.len()), (PromiseState::Idle, 0));
    let view = seen(&mut journal, &seconds(20, 21, 0.5, 0.05, 0));
    assert!(view.promises.iter().all(|row| row.state == PromiseState::Kept), "{:?}", view.promises);
}

#[test]
fn an_upstream_that_serves_levels_of_others_has_its_own_line() {
    let mut journal = Journal::default();
    let mut sight_at = |at| {
        let mut status = status(&Second { at, utilization: 0.5, response: 0.05, light: 40 });
        status.plants.push(PlantStatus { name: "cache".to_owned(), ..status.plants[0].clone() });
        let part = PartStatus { plant: "cache".to_owned(), top: 1, ..PartStatus::default() };
        status.classes[0].parts = vec![part];
        let sight = Sight {
            kind: ShellKind::Gateway,
            status: &status,
            reloads: Reloads::default(),
            down: Vec::new(),
            unix_seconds: at as f64,
        };
        journal.look(&sight);
        journal.view(&sight)
    };
    (1..20).map(&mut sight_at).for_each(drop);
    let view = sight_at(20);
    let line = view.promises.iter().find(|row| row.upstream == "cache").unwrap();
    assert_eq!(line.sentence, "holding 0.85: 100 % of requests on light, nobody rejected");
}

#[test]
fn one_full_period_breaks_no_load_line_and_ten_do() {
    let mut journal = Journal::default();
    seen(&mut journal, &seconds(1, 12, 0.6, 0.05, 0));
    let state =
        |view: View| view.promises.iter().find(|row| row.kind == PromiseKind::LoadLine).unwrap().state;
    assert_eq!(state(seen(&mut journal, &seconds(12, 14, 1.0, 0.05, 0))), PromiseState::Kept);
    assert_eq!(state(seen(&mut journal, &seconds(14, 25, 1.0, 0.05, 0))), PromiseState::Missed);
}

#[test]
fn reloads_and_upstreams_are_events_once() {
    let mut journal = Journal::default();
    let status = status(&Second { at: 1, utilization: 0.5, response: 0.05, light: 0 });
    let mut reloads = Reloads::default();
    let mut look = |reloads, down| {
        journal.look(&Sight {
            kind: ShellKind::Gateway,
            status: &status,
            reloads,
            down: vec![down],
            unix_seconds: 5.0,
        });
        journal.after(0).events.iter().map(|event| event.kind).collect::<Vec<_>>()
    };
    assert_eq!(look(reloads, false), [EventKind::Started]);
    reloads.applied = 1;
    assert_eq!(look(reloads, false).len(), 2);
    assert_eq!(look(reloads, true).len(), 3);
    reloads.refused = 1;
    look(reloads, true);
    let all = look(reloads, false);
    assert_eq!(
        all,
        [
            EventKind::Started,
            EventKind::Reloaded,
            EventKind::UpstreamDown,
            EventKind::ReloadRefused,
            EventKind::UpstreamUp
        ]
    );
}

#[test]
fn no_more_events_are_kept_than_are_said() {
    let mut journal = Journal::default();
    (0..3 * KEPT).for_each(|second| journal.note(second as f64, EventKind::Reloaded, "", ""));
    let kept = journal.after(0).events;
    assert_eq!((kept.len(), kept[0].number), (KEPT, 2 * KEPT as u64 + 1));
}

#[test]
fn a_server_that_lowers_its_levels_for_a_gateways_places_says_so() {
    let sentence = |set_point_reduction| {
        let mut journal = Journal::default();
        let mut sight_at = |at| {
            let mut status = status(&Second { at, utilization: 0.5, response: 0.05, light: 40 });
            let heard = HeardPlaces { age: Duration::ZERO, set_point_reduction };
            status.plants[0].places = Some(PlacesStatus { taken: 1.25, heard: Some(heard) });
            let (reloads, unix_seconds) = (Reloads::default(), at as f64);
            let sight = Sight {
                kind: ShellKind::Controller,
                status: &status,
                reloads,
                down: Vec::new(),
                unix_seconds,
            };
            journal.look(&sight);
            journal.view(&sight)
        };
        (1..20).map(&mut sight_at).for_each(drop);
        let view = sight_at(20);
        assert_eq!(journal.after(0).events[0].text, "the controller started");
        let line = view.promises.iter().find(|row| row.kind == PromiseKind::LoadLine).unwrap();
        line.sentence.clone()
    };
    let holding = "holding 0.85: 40 % of requests on light, nobody rejected";
    let lowered = "; its levels hold 0.51, since the gateway before it has its places taken";
    assert_eq!(sentence(0.4), format!("{holding}{lowered}"));
    assert_eq!(sentence(0.004), holding);
}
