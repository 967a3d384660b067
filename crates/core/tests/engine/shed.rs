//! Clients that are turned away where no lane is asked: by the kernel, as those whose every request would be rejected.

use crate::{engine, get, ms};
use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_core::request::{Arrival, Outcome, Permit, Service, Token, Verdict, Verdicts};
use plimsoll_core::telemetry::Readings;
use plimsoll_core::telemetry::status::PlantStatus;
use plimsoll_core::time::Duration;
use std::net::{IpAddr, Ipv4Addr};

const CLIENTS: u32 = 2000;

/// Two hundred requests a second, a tenth from each of `CLIENTS` clients, at a plant that carries a hundred, for 60 seconds.
/// From this second on the clients that would be rejected are shed. The plant's status at the end of each second.
fn periods(shed_from: u64) -> Vec<PlantStatus> {
    let promises = Promises::of(Plant::new("server", 2), Site::new("site", &["full"]));
    let (mut engine, mut lane) = engine(&promises);
    let (mut verdicts, mut held, mut statuses) = (Verdicts::new(), Vec::<Permit>::new(), Vec::new());
    for n in 0..60_000_u64 {
        let now = ms(n);
        engine.tick(now, &Readings::default(), &mut verdicts);
        for mut permit in held.extract_if(.., |own| now.since(own.started()) >= Duration::from_millis(20)) {
            let answer = Service { response_bytes: 1000, representative: true, cost: None };
            lane.release(now, &mut permit, answer, &mut verdicts);
            lane.depart(now, permit, Outcome::Completed, &mut verdicts);
        }
        if n % 5 == 0 {
            // One client after the other, with a stride that mixes them.
            let client = ((n / 5 * 1201) % u64::from(CLIENTS)) as u32;
            let address = IpAddr::V4(Ipv4Addr::from_bits(client));
            let target = lane.classify(&get("/", client)).expect("any host");
            if n >= 1000 * shed_from && engine.rejects_client(address) {
                engine.count_rejected_client(now, address);
            } else if let Arrival::Serve(permit) = lane.arrive(now, target, Token(0), &mut verdicts) {
                held.push(permit);
            }
        }
        held.extend(verdicts.drain(..).filter_map(Verdict::permit));
        if n % 1000 == 999 {
            statuses.push(engine.status().plants.swap_remove(0));
        }
    }
    statuses
}

#[test]
fn clients_that_the_kernel_sheds_are_offered_load_as_those_that_a_lane_rejects() {
    let [asked, shed] = [60, 30].map(periods);
    let about = |plant: &PlantStatus| (plant.service_level, plant.utilization_offered);
    for (second, (asked, shed)) in asked.iter().zip(&shed).enumerate().skip(20) {
        let ((m, offered), (own_m, own_offered)) = (about(asked), about(shed));
        assert!((0.3..0.6).contains(&m), "m is {m} in second {second}");
        assert!((own_m - m).abs() < 0.1, "{second}: m is {own_m}, and {m} where lanes reject them");
        assert!((own_offered - offered).abs() < 0.2, "{second}: {own_offered} are offered, and {offered}");
    }
}
