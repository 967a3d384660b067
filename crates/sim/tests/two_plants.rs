//! A site whose lower level another plant serves: each plant is held at its own line, and only what neither carries is
//! rejected.
//!
//! Each plant has eight workers; a request takes 80 ms, so a plant carries 100 requests a second, and 85 at its line.

use plimsoll_core::promises::{Mode, Plant, Promises, Site};
use plimsoll_core::request::Outcome;
use plimsoll_sim::workload::{
    self, Arrivals, Discipline, Fault, FaultKind, Law, Page, Process, Stream, Version, Workload,
};
use plimsoll_sim::{Row, Setup};
use std::time::Duration;

const WORKERS: u32 = 8;
/// What a plant carries at its line (1/s).
const LINE: f64 = 85.0;
/// The loops have settled.
const SETTLED: usize = 40;

/// Sites with one stream each before plants of 100 requests a second.
struct Scene {
    promises: Promises,
    rates: Vec<f64>,
    process: Process,
    /// What a request takes at levels 1..=M, relative to 80 ms.
    costs: Vec<Vec<f64>>,
    faults: Vec<Vec<Fault>>,
    clients: u32,
    seed: u64,
}

impl Scene {
    /// One site; the plants serve its levels from the lowest up.
    fn new(plants: &[usize], rate: f64) -> Scene {
        let count = plants.iter().max().map_or(1, |most| most + 1);
        Scene {
            promises: Promises {
                plants: (0..count).map(|number| Plant::new(&format!("plant{number}"), WORKERS)).collect(),
                sites: vec![site("shop", plants)],
                ..Promises::default()
            },
            rates: vec![rate],
            process: Process::Poisson,
            costs: vec![vec![1.0; plants.len()]],
            faults: vec![Vec::new(); count],
            clients: 5000,
            seed: 1,
        }
    }

    fn run(&self) -> Vec<Row> {
        let stream = |(site, rate): (&Site, &f64)| {
            let pages = vec![page(&format!("{}.example", site.name))];
            Stream::new(&site.name, Arrivals::steady(self.process, *rate), pages, self.clients)
        };
        let plant = |faults: &Vec<Fault>| workload::Plant {
            law: Law::Exponential,
            faults: faults.clone(),
            ..workload::Plant::new(Discipline::Workers(WORKERS), 511, Duration::from_millis(80))
        };
        let version = |cost: &f64| Version { cost: Some(*cost), bytes: 1.0 };
        let workload = Workload {
            streams: self.promises.sites.iter().zip(&self.rates).map(stream).collect(),
            plants: self.faults.iter().map(plant).collect(),
            versions: self.costs.iter().map(|costs| costs.iter().map(version).collect()).collect(),
            duration: Some(Duration::from_secs(240)),
            ..Workload::default()
        };
        let setup = Setup { promises: &self.promises, workload: &workload, seed: self.seed };
        let run = setup.run().expect("the promises are valid");
        let lost: u64 =
            run.status.iter().flat_map(|s| &s.classes).map(|class| class.counts.in_flight()).sum();
        assert!(lost < 2000, "{lost} requests are not accounted for");
        run.rows
    }
}

fn site(name: &str, plants: &[usize]) -> Site {
    let names = ["one", "two", "three", "four"];
    let mut site = Site::new(name, &names[..plants.len()]);
    site.hosts = vec![format!("{name}.example")];
    site.plant = plants[plants.len() - 1];
    for (level, plant) in site.levels.iter_mut().zip(plants) {
        level.plant = (*plant != site.plant).then_some(*plant);
    }
    site
}

fn page(host: &str) -> Page {
    Page { host: host.to_owned(), ..Page::new("/", 1000.0) }
}

fn utilization(rows: &[Row], plant: usize) -> f64 {
    rows.iter().map(|row| row.plants[plant].utilization).sum::<f64>() / rows.len() as f64
}

/// The class `default` of the site at this place.
fn class(site: usize) -> usize {
    2 * site
}

/// Requests per second of a site that were completed at a level; level 0 are those that were turned away.
fn rate(rows: &[Row], site: usize, level: usize) -> f64 {
    let count = |row: &Row| match level {
        0 => row.classes[class(site)].rejected,
        _ => row.classes[class(site)].completed[level],
    };
    rows.iter().map(count).sum::<u64>() as f64 / rows.len() as f64
}

fn assert_near(what: &str, found: f64, wanted: f64, within: f64) {
    assert!((found - wanted).abs() <= within, "{what}: {found:.3}, wanted {wanted:.3} within {within}");
}

#[test]
fn both_plants_are_held_and_only_what_neither_carries_is_rejected() {
    for (rate_in, seed) in [(300.0, 1), (300.0, 2), (220.0, 3), (600.0, 4)] {
        let rows = Scene { seed, ..Scene::new(&[1, 0], rate_in) }.run();
        let settled = &rows[SETTLED..];
        for plant in 0..2 {
            assert_near(
                &format!("U of plant {plant} at {rate_in}/s"),
                utilization(settled, plant),
                0.85,
                0.02,
            );
        }
        let rejected = rate(settled, 0, 0) / rate_in;
        assert_near("the rejected share", rejected, (rate_in - 2.0 * LINE) / rate_in, 0.02);
    }
}

#[test]
fn without_control_the_upper_plant_is_overrun() {
    let mut scene = Scene::new(&[1, 0], 300.0);
    scene.promises.control.mode = Mode::Off;
    let rows = scene.run();
    assert!(utilization(&rows[SETTLED..], 0) > 0.97);
    assert!(utilization(&rows[SETTLED..], 1) < 0.01, "nobody is passed down");
}

#[test]
fn the_same_clients_lose() {
    let rows = Scene::new(&[1, 0], 300.0).run();
    let settled = &rows[SETTLED..];
    let (changes, served) =
        (settled.iter().map(|row| row.classes[0].changes).sum::<u64>(), 170.0 * settled.len() as f64);
    assert!((changes as f64) < 0.1 * served, "{changes} of {served} requests had another level than before");
}

#[test]
fn bursts_leave_both_plants_about_as_used_as_a_plant_alone() {
    let found = [(&[1, 0][..], 300.0), (&[0, 0], 300.0)].map(|(plants, rate)| {
        let mut scene = Scene::new(plants, rate);
        scene.process =
            Process::Modulated { ratio: 3.0, burst: Duration::from_secs(2), calm: Duration::from_secs(4) };
        scene.run().split_off(SETTLED)
    });
    let alone = utilization(&found[1], 0);
    for plant in 0..2 {
        let own = utilization(&found[0], plant);
        assert!((alone - 0.08..0.87).contains(&own), "plant {plant}: {own:.3}, a plant alone {alone:.3}");
    }
}

#[test]
fn a_slower_lower_plant_has_what_it_carries() {
    let mut scene = Scene::new(&[1, 0], 300.0);
    scene.costs = vec![vec![4.0, 1.0]];
    let rows = scene.run();
    let settled = &rows[SETTLED..];
    assert_near("U above", utilization(settled, 0), 0.85, 0.02);
    assert_near("U below", utilization(settled, 1), 0.85, 0.03);
    assert_near("served below", rate(settled, 0, 1), LINE / 4.0, 2.0);
}

#[test]
fn three_plants_in_a_row_are_held() {
    let mut scene = Scene::new(&[2, 1, 0], 400.0);
    let rows = scene.run();
    let settled = &rows[SETTLED..];
    for plant in 0..3 {
        assert_near(&format!("U of plant {plant}"), utilization(settled, plant), 0.85, 0.02);
    }
    assert_near("rejected", rate(settled, 0, 0), 400.0 - 3.0 * LINE, 8.0);
    scene.promises.control.mode = Mode::Off;
    let twin = scene.run();
    let used = [0, 1, 2].map(|plant| utilization(&twin[SETTLED..], plant));
    assert!(used[0] > 0.97 && used[1].max(used[2]) < 0.01, "the twin without control: {used:?}");
}

#[test]
fn two_levels_above_another_plants_light_one() {
    // Level 2 takes half of what level 3 does.
    let mut scene = Scene::new(&[1, 0, 0], 120.0);
    scene.costs = vec![vec![1.0, 0.5, 1.0]];
    let rows = scene.run();
    let settled = &rows[SETTLED..];
    assert_near("U above", utilization(settled, 0), 0.85, 0.02);
    assert_near("nobody is passed down", rate(settled, 0, 1), 0.0, 0.5);
    scene.rates = vec![220.0];
    let rows = scene.run();
    let settled = &rows[SETTLED..];
    assert_near("U above", utilization(settled, 0), 0.85, 0.02);
    assert_near("passed down", rate(settled, 0, 1), 220.0 - 2.0 * LINE, 4.0);
    assert_near("rejected", rate(settled, 0, 0), 0.0, 0.5);
}

#[test]
fn a_site_alone_on_the_lower_plant_keeps_its_share() {
    let mut scene = Scene::new(&[1, 0], 300.0);
    scene.promises.sites.push(Site { weight: 3.0, ..site("blog", &[1]) });
    (scene.rates, scene.costs) = (vec![300.0, 200.0], vec![vec![1.0, 1.0], vec![1.0]]);
    let rows = scene.run();
    let settled = &rows[SETTLED..];
    for plant in 0..2 {
        assert_near(&format!("U of plant {plant}"), utilization(settled, plant), 0.85, 0.02);
    }
    assert_near("three quarters", rate(settled, 1, 1), 0.75 * LINE, 3.0);
    assert_near("a quarter", rate(settled, 0, 1), 0.25 * LINE, 3.0);
    // A site that wants less than its share has all of it.
    scene.rates = vec![300.0, 40.0];
    let rows = scene.run();
    assert_near("rejected", rate(&rows[SETTLED..], 1, 0), 0.0, 0.5);
}

#[test]
fn two_sites_that_pass_requests_down_to_each_other_are_held() {
    let mut scene = Scene::new(&[1, 0], 150.0);
    scene.promises.sites.push(site("blog", &[0, 1]));
    (scene.rates, scene.costs) = (vec![150.0, 150.0], vec![vec![1.0, 1.0]; 2]);
    let rows = scene.run();
    for plant in 0..2 {
        assert_near(&format!("U of plant {plant}"), utilization(&rows[SETTLED..], plant), 0.85, 0.03);
    }
}

#[test]
fn a_lower_plant_that_becomes_slow_or_fails_takes_nothing_from_the_upper_one() {
    for kind in [FaultKind::Slower(4.0), FaultKind::Fails(Duration::from_millis(80))] {
        let mut scene = Scene::new(&[1, 0], 300.0);
        scene.faults[1] =
            vec![Fault { from: Duration::from_secs(80), until: Duration::from_secs(140), kind }];
        let rows = scene.run();
        assert_near("U above, meanwhile", utilization(&rows[90..140], 0), 0.85, 0.02);
        assert_near("U below, later", utilization(&rows[200..], 1), 0.85, 0.05);
        scene.promises.control.mode = Mode::Off;
        let used = utilization(&scene.run()[90..140], 0);
        assert!(used > 0.97, "the twin without control: {used:.3}");
        let failed = rows[SETTLED..80].iter().map(|row| row.classes[0].ended(Outcome::Failed)).sum::<u64>();
        assert_eq!(failed, 0);
    }
}
