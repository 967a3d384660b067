//! A log tells the hour in which its requests came, and by that hour rates are learned and predicted.

use crate::scenario::Scenario;
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_core::promises::{Admission, Plant, Promises, Site};
use plimsoll_sim::Setup;
use plimsoll_sim::front::Gateway;
use plimsoll_sim::workload::{Arrivals, Input, Replay, Workload};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

/// A request a second from 07:40 to 08:20, in a zone three hours east.
fn replayed() -> (Promises, Workload) {
    let mut log = String::new();
    for second in 0..2400 {
        let (hour, minute) = (10 + (2400 + second) / 3600, (2400 + second) / 60 % 60);
        let stamp = format!("01/Aug/1995:{hour:02}:{minute:02}:{:02} +0300", second % 60);
        writeln!(log, "10.0.0.1 - - [{stamp}] \"GET / HTTP/1.0\" 200 100").expect("into a string");
    }
    let mut site = Site::new("site", &["full"]);
    site.deadline = Some(Duration::from_secs(1));
    let mut promises = Promises::of(Plant::new("origin", 2), site);
    promises.control.admission = Admission::Budget;
    let scenario = Scenario {
        listen_queue: 16,
        clients: 1,
        ..Scenario::new(promises, vec![Duration::from_millis(10)], vec![100])
    };
    let mut workload = scenario.workload();
    workload.duration = None;
    let replay = Replay { speed: 1.0, scale: 1.0 };
    workload.streams[0].arrivals = Arrivals::log(Input::Text(log.into()), replay);
    (scenario.promises, workload)
}

/// By hour, how many steps of ordinary requests' rate were learned.
fn learned(known: RateForecasts) -> BTreeMap<u32, u32> {
    let (promises, workload) = replayed();
    let mut gateway = Gateway::new(&promises, 1).expect("the promises are valid");
    gateway.restore_rate_forecasts(known);
    let setup = Setup { promises: &promises, workload: &workload, seed: 1 };
    setup.run_with(&mut gateway, &mut ()).expect("it runs");
    let mut hours = BTreeMap::new();
    for line in gateway.rate_forecasts().to_string().lines().filter(|line| line.starts_with(char::is_numeric))
    {
        let numbers: Vec<u32> = line.split_whitespace().map(|word| word.parse().expect("a number")).collect();
        if numbers[1] >= 1025 {
            *hours.entry(numbers[0]).or_default() += numbers[2..].iter().sum::<u32>();
        }
    }
    hours
}

#[test]
fn rates_are_learned_in_the_hour_of_the_log_and_go_on_from_what_is_known() {
    let fresh = learned(RateForecasts::default());
    assert_eq!(fresh.keys().collect::<Vec<_>>(), [&7, &8], "{fresh:?}");
    assert!(fresh.values().all(|steps| (1150..1250).contains(steps)), "{fresh:?}");
    // An earlier run was at noon and at eight.
    let known = "upstream origin\n8 1280  0 0 0  100 100 100  0 0 0\n12 1280  0 0 0  100 100 100  0 0 0\n";
    let both = learned(known.parse().expect("a forecast"));
    assert_eq!((both[&7], both[&8], both[&12]), (fresh[&7], fresh[&8] + 300, 300), "{both:?}");
}
