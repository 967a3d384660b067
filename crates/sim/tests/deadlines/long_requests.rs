//! A few requests that take far longer than the others' deadline: each holds one worker, and no other request waits for it.

use crate::scene::{Flow, Heard, Kind, Scene, ms};
use plimsoll_core::promises::Mode;
use plimsoll_sim::workload::Law;

/// Pages of 20 ms within 500 ms at this rate, and one download of so many seconds every so many seconds.
fn scene((workers, pages): (u32, f64), path: &'static str, (long, every): (u64, f64), seed: u64) -> Scene {
    let page = Kind::new("/page-*.html", 1.0, ms(20), Law::Lognormal { variation: 0.3 });
    let long = Kind::new(path, 1.0, ms(1000 * long), Law::Deterministic);
    let flows = vec![
        Flow::new("pages", pages, vec![page]).within(Some(ms(500))),
        Flow::new("downloads", 1.0 / every, vec![long]).within(None),
    ];
    Scene::new(workers, flows, 120.0, seed)
}

fn not_in_time(heard: &Heard) -> f64 {
    1.0 - heard.in_time(0, 0.5, (0.0, 119.0))
}

/// Nobody is refused who would be in time if nobody decided.
#[test]
fn a_download_is_not_everybodys_wait() {
    for (plant, seeds) in [
        ((8, 200.0), [1, 2, 8511, 8512].as_slice()),
        ((8, 300.0), &[2, 8513]),
        ((4, 90.0), &[2, 8514]),
        ((2, 25.0), &[1]),
    ] {
        for download in [(10, 10.0), (5, 10.0), (10, 60.0)] {
            for path in ["/file-*.zip", "/film-*.html"] {
                for seed in seeds {
                    let scene = scene(plant, path, download, *seed);
                    let found = not_in_time(&scene.run());
                    let twin = not_in_time(&Scene { mode: Mode::Off, ..scene }.run());
                    println!(
                        "{plant:?}, {download:?} {path}: {:.2} % not in time, {:.2} % without control",
                        100.0 * found,
                        100.0 * twin
                    );
                    assert!(found <= twin + 0.001, "{found} {twin}");
                }
            }
        }
    }
}

/// The same with nothing told but the address; the search itself costs up to one in a thousand.
#[test]
fn a_download_is_not_everybodys_wait_where_workers_are_found() {
    for (plant, seed) in [((8, 200.0), 8515), ((8, 300.0), 8516), ((4, 90.0), 8517)] {
        for (download, path) in [((10, 10.0), "/film-*.html"), ((5, 10.0), "/file-*.zip")] {
            let own = scene(plant, path, download, seed);
            let twin = not_in_time(&Scene { mode: Mode::Off, ..own.clone() }.run());
            let found = not_in_time(&own.finding_workers(true).run());
            println!("{plant:?}, {download:?} {path}: {found:.4} not in time, {twin:.4} without control");
            assert!(found <= twin + 0.002, "{found} {twin}");
        }
    }
}

/// Status tells mean and deviation of all requests of a type, and which part of them is in time alone. One page in twenty
/// takes three seconds, and nothing that it shows tells it from the others.
#[test]
fn status_tells_the_mean_and_the_deviation_of_the_same_requests() {
    let (short, long, part) = (0.02, 3.0, 0.05);
    let page = |seconds: f64, weight| {
        Kind::new("/page-*.html", weight, ms((1e3 * seconds) as u64), Law::Deterministic)
    };
    let mean = (1.0 - part) * short + part * long;
    let deviation = (long - short) * f64::sqrt(part * (1.0 - part));
    for seed in 11..=14 {
        let kinds = vec![page(short, 1.0 - part), page(long, part)];
        let flows = vec![Flow::new("pages", 12.0, kinds).within(Some(ms(500)))];
        let status = Scene::new(8, flows, 400.0, seed).run().status.expect("the engine ran");
        let own = status.sites[0].types.iter().find(|own| own.name == "static").expect("a default type");
        println!("seed {seed}: {:.3} of {mean:.3} s, {:.3} of {deviation:.3} s", own.mean, own.deviation);
        assert!((own.mean / mean - 1.0).abs() < 0.35, "{own:?}");
        assert!((own.deviation / deviation - 1.0).abs() < 0.2, "{own:?}");
        let in_time = own.in_time.expect("a deadline was promised");
        assert!((in_time - (1.0 - part)).abs() < 0.02, "{own:?}");
    }
}

/// Downloads that hold every worker are known to take long: a page is refused then, and does not wait in vain.
#[test]
fn pages_behind_downloads_at_every_worker_are_refused_at_once() {
    for (workers, pages, download) in [(2, 25.0, (10, 10.0)), (1, 20.0, (10, 30.0)), (4, 60.0, (5, 2.0))] {
        for path in ["/file-*.zip", "/film-*.html"] {
            for seed in 8501..=8503 {
                let heard = scene((workers, pages), path, download, seed).run();
                let (missed, good) =
                    (heard.missed(0, 0.5, (15.0, 119.0)), heard.in_time(0, 0.5, (15.0, 119.0)));
                println!("{workers} workers, {download:?} {path}: missed {missed:.4}, in time {good:.3}");
                let most = if workers == 1 { 0.015 } else { 0.01 };
                assert!(missed <= most && (0.5..=0.99).contains(&good), "{missed} {good}");
            }
            let twin = Scene { mode: Mode::Off, ..scene((workers, pages), path, download, 8501) }.run();
            let missed = twin.missed(0, 0.5, (15.0, 119.0));
            assert!(missed > 0.03, "the twin without control: {missed}");
        }
    }
}
