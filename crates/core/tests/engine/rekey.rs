//! `rekey`: the choice of clients turns, so that it is not always the same ones who are turned away.

use crate::{engine, get, ms};
use plimsoll_core::promises::{Plant, Promises, QueueBounds, Site};
use plimsoll_core::request::{Arrival, Outcome, Permit, Service, Token, Verdict, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

const CLIENTS: u32 = 100;

/// The clients that were served in each second, at twice the capacity: a request of each of a hundred clients a second, of
/// which four workers serve 50.
fn served(rekey: Option<Duration>, seconds: u64) -> Vec<BTreeSet<u32>> {
    let queue = QueueBounds { max_waiting: 20, max_wait: Some(Duration::from_secs(2)) };
    let plant = Plant { queue, set_point: 0.85, ..Plant::new("app", 4) };
    let mut promises = Promises::of(plant, Site::new("site", &["full"]));
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
    let of = |rekey| served(rekey, turn + 20).split_off(20);
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
