//! Which clients are turned away: by default always the same; with `rekey` the choice turns, and with `choice = "random"` it
//! is made anew for each request.

use crate::{engine, get, ms};
use plimsoll_core::promises::{Choice, Plant, Promises, QueueBounds, Site};
use plimsoll_core::request::{Arrival, Outcome, Permit, Service, Token, Verdict, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

const CLIENTS: u32 = 100;

/// The clients that were served in each second, at twice the capacity: a request of each of a hundred clients a second, of
/// which four workers serve 50.
fn served(rekey: Option<Duration>, choice: Choice, seconds: u64) -> Vec<BTreeSet<u32>> {
    let queue = QueueBounds { max_waiting: 20, max_wait: Some(Duration::from_secs(2)) };
    let plant = Plant { queue, set_point: 0.85, ..Plant::new("app", 4) };
    let mut promises = Promises::of(plant, Site { choice, ..Site::new("site", &["full"]) });
    promises.control.rekey = rekey;
    let (mut engine, mut lane) = engine(&promises);
    let mut verdicts = Verdicts::new();
    let mut ends: BTreeMap<(u64, u64), Permit> = BTreeMap::new();
    let mut served = vec![BTreeSet::new(); seconds as usize];
    for now in 0..seconds * 1000 {
        while let Some(entry) = ends.first_entry().filter(|entry| entry.key().0 <= now) {
            let mut permit = entry.remove();
            let service = Service { response_bytes: 1000, representative: true, cost: None };
            lane.release(ms(now), &mut permit, service, &mut verdicts);
            lane.depart(ms(now), permit, Outcome::Completed, &mut verdicts);
        }
        if now % 250 == 0 {
            // It began long after the epoch.
            let unix_time = Some(Duration::from_millis(now + 1_700_000_000_000));
            engine.tick(ms(now), &Readings { unix_time, ..Readings::default() }, &mut verdicts);
        }
        if now % 10 == 0 {
            let client = (now / 10 % u64::from(CLIENTS)) as u32;
            let target = lane.classify(&get("/", client)).expect("any host");
            let arrival = lane.arrive(ms(now), target, Token(now), &mut verdicts);
            if !matches!(arrival, Arrival::Reject(_)) {
                served[(now / 1000) as usize].insert(client);
            }
            if let Arrival::Serve(permit) = arrival {
                ends.insert((now + 80, now), permit);
            }
        }
        for verdict in verdicts.drain(..) {
            if let Verdict::Start(Token(token), permit) = verdict {
                ends.insert((now + 80, token), permit);
            }
        }
    }
    served
}

#[test]
fn in_a_turn_everybody_is_served_and_few_change_at_once() {
    let turn = 400;
    let of = |rekey| served(rekey, Choice::Client, turn + 20).split_off(20);
    let union = |seconds: &[BTreeSet<u32>]| seconds.iter().flatten().copied().collect::<BTreeSet<_>>().len();
    let still = of(None);
    assert!((40..65).contains(&union(&still[100..])), "always the same: {}", union(&still[100..]));
    let turning = of(Some(Duration::from_secs(turn)));
    assert_eq!(union(&turning), CLIENTS as usize);
    let counts = (0..CLIENTS).map(|client| turning.iter().filter(|second| second.contains(&client)).count());
    let (least, most) = (counts.clone().min(), counts.max());
    let share = |count: Option<usize>| count.expect("clients") as f64 / turn as f64;
    assert!(share(least) > 0.3 && share(most) < 0.65, "{least:?} to {most:?} of {turn} seconds");
    let changes = turning.windows(2).map(|pair| pair[0].symmetric_difference(&pair[1]).count());
    assert!(changes.sum::<usize>() < 4 * turn as usize, "a few of a hundred clients in a second");
}

/// The part of the seconds in which each client was served, and how often it changed from one to the next.
fn by_client(seconds: &[BTreeSet<u32>]) -> Vec<(f64, usize)> {
    let of = |client: u32| {
        let was: Vec<bool> = seconds.iter().map(|second| second.contains(&client)).collect();
        let changes = was.windows(2).filter(|pair| pair[0] != pair[1]).count();
        (was.iter().filter(|was| **was).count() as f64 / was.len() as f64, changes)
    };
    (0..CLIENTS).map(of).collect()
}

#[test]
fn by_random_choice_nobody_is_always_turned_away_nor_always_served() {
    let of = |choice| by_client(&served(None, choice, 220).split_off(20));
    // The chance is about 0.43, and six deviations of 200 draws are 0.21. Each draw is independent of the one before it, so
    // half of them, 2 * 0.43 * 0.57, change.
    for (client, (share, changes)) in of(Choice::Random).into_iter().enumerate() {
        assert!((0.2..0.7).contains(&share), "client {client} was served in {share} of the seconds");
        assert!((50..150).contains(&changes), "client {client} changed {changes} times in 200 seconds");
    }
    let by_hash = of(Choice::Client);
    let steady = by_hash.iter().filter(|(share, _)| *share < 0.02 || *share > 0.98).count();
    assert!(steady >= 80, "by client {steady} of {CLIENTS} keep their level");
}
