//! Every example of a workload is right against the configuration that it names, and means what its comments say.

mod against;

use plimsoll_config::{ParsedWorkload, Reading, parse_workload, parse_workload_as, replay};
use plimsoll_core::promises::{Costs, Plant as Promised, Promises, Site, WorkerBounds};
use plimsoll_core::time::Duration;
use plimsoll_sim::workload::{
    Arrivals, Content, Discipline, FaultKind, Input, JsonFields, Law, LogFormat, Page, Phase, Process,
    Replay, Retry, Stream, Version,
};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workloads")
}

fn example(name: &str) -> ParsedWorkload {
    let source =
        std::fs::read_to_string(folder().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    understood(&source, &against::promises_for(&source))
}

fn understood(source: &str, promises: &Promises) -> ParsedWorkload {
    parse_workload(source, "folder/w.toml", promises).unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

/// One plant of 4 workers, `app`, and one site of two levels, `shop`.
fn promises() -> Promises {
    Promises::of(Promised::new("app", 4), Site::new("shop", &["light", "full"]))
}

fn phases(stream: &Stream) -> &[Phase] {
    match &stream.arrivals {
        Arrivals::Process { rate, .. } => rate,
        other => panic!("{other:?} is no process"),
    }
}

fn page(stream: &Stream, number: usize) -> &Page {
    match &stream.content {
        Content::Pages(pages) => &pages[number],
        other => panic!("{other:?} are no pages"),
    }
}

fn near(is: f64, wanted: f64) -> bool {
    (is - wanted).abs() <= 1e-9 * wanted.abs()
}

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn every_example_parses_and_assumes_nothing_but_says_its_command() {
    let mut count = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let source = std::fs::read_to_string(folder().join(&name)).unwrap();
        assert!(source.contains(&format!("--workload examples/workloads/{name}\n")), "{name}");
        let understood = example(&name);
        assert_eq!(understood.untimed, [], "{name}");
        assert_eq!(understood.assumptions, [""; 0], "{name}");
        count += 1;
    }
    assert!(count >= 7, "only {count} examples found");
}

#[test]
fn demo_is_the_demo() {
    let ParsedWorkload { workload, .. } = example("demo.toml");
    assert_eq!(workload.duration, Some(Duration::from_secs(30)));
    let stream = &workload.streams[0];
    // 256 workers of 128 ms carry 2000 full pages a second.
    assert_eq!(phases(stream), [Phase { from: Duration::ZERO, rate: 6000.0, to: None }]);
    assert_eq!((stream.clients.count, stream.clients.skew), (4000, 1.0));
    assert_eq!((stream.patience, stream.retry), (Some(MS(3000)), None));
    let page = page(stream, 0);
    assert_eq!((page.host.as_str(), page.path.as_str(), page.bytes), ("shop.example", "/page.html", 16384.0));
    let plant = &workload.plants[0];
    assert_eq!(
        (plant.discipline, plant.listen_queue, plant.service),
        (Discipline::Workers(256), 511, MS(128))
    );
    assert_eq!(workload.versions, [vec![Version { cost: Some(0.15), bytes: 0.125 }, Version::FULL]]);
}

#[test]
fn a_step_in_loads_becomes_one_in_rates() {
    let ParsedWorkload { workload, .. } = example("step.toml");
    // 8 workers of 40 ms carry 200 a second.
    let rates: Vec<_> =
        phases(&workload.streams[0]).iter().map(|phase| (phase.from, phase.rate, phase.to)).collect();
    assert_eq!(rates, [(MS(0), 100.0, None), (MS(10_000), 600.0, None), (MS(40_000), 100.0, None)]);
    assert_eq!(workload.plants[0].law, Law::Exponential);
}

#[test]
fn bursts_become_phases_on_the_ramp() {
    let ParsedWorkload { workload, .. } = example("bursts.toml");
    let visitors = phases(&workload.streams[0]);
    // Two phases, and 17 bursts of two edges each in two minutes.
    assert_eq!(visitors.len(), 2 + 2 * 17);
    assert!(visitors.is_sorted_by(|a, b| a.from < b.from));
    assert_eq!((visitors[0].rate, visitors[1].from), (120.0, MS(7000)));
    // The rate is twice continuous: times 8 in the burst, back on the line after it.
    let (before, burst, after) = (visitors[0], visitors[1], visitors[2]);
    assert!(near(burst.rate, 8.0 * before.to.unwrap()) && near(after.rate, burst.to.unwrap() / 8.0));
    assert_eq!((visitors.last().unwrap().rate, visitors.last().unwrap().to), (280.0, None));
    let Arrivals::Process { process, .. } = &workload.streams[1].arrivals else { panic!("no process") };
    assert_eq!(*process, Process::Modulated { ratio: 10.0, burst: MS(2000), calm: MS(20_000) });
    assert_eq!(workload.streams[1].clients.first_address, 0xc000_0207);
}

#[test]
fn a_slow_server_has_its_faults() {
    let ParsedWorkload { workload, .. } = example("slow-server.toml");
    let plant = &workload.plants[0];
    let kinds: Vec<FaultKind> = plant.faults.iter().map(|fault| fault.kind).collect();
    let pause = FaultKind::Slower(f64::INFINITY);
    assert_eq!(kinds, [FaultKind::Slower(2.5), pause, FaultKind::Takes(MS(8000)), FaultKind::Fails(MS(1))]);
    assert_eq!((plant.faults[1].from, plant.faults[1].until), (MS(60_000), MS(62_000)));
    assert_eq!((plant.service, plant.failure, plant.listen_queue), (MS(2), MS(1), 100));
    assert!(near(plant.service_per_byte, 2e-3 / 1024.0));
    assert_eq!(plant.law, Law::Lognormal { variation: 1.5 });
    // The page that nobody describes has 8 KiB: 18 ms on 8 workers.
    assert!(near(phases(&workload.streams[0])[0].rate, 0.7 * 8.0 / 18e-3));
    assert_eq!(workload.streams[0].retry, Some(Retry { after: MS(2000), most: 3, obeys: false }));
}

#[test]
fn load_is_that_of_the_link_where_the_link_is_full_first() {
    let ParsedWorkload { workload, .. } = example("heavy-tails.toml");
    // (3 x 12 + 60) / 4 = 24 KiB a page on average, 12.5 MB/s.
    assert!(near(phases(&workload.streams[0])[0].rate, 0.9 * 12.5e6 / (24.0 * 1024.0)));
    assert_eq!(page(&workload.streams[0], 1).bytes_law, Law::BoundedPareto { shape: 1.2, ratio: 10_000.0 });
    let Arrivals::Process { process, .. } = &workload.streams[0].arrivals else { panic!("no process") };
    assert_eq!(*process, Process::SelfSimilar { hurst: 0.85, sources: 200 });
    assert_eq!(page(&workload.streams[0], 0).host, "pictures.example");
}

#[test]
fn pages_go_to_the_servers_of_their_sites() {
    let ParsedWorkload { workload, .. } = example("two-sites.toml");
    let [app, cache] = &workload.plants[..] else { panic!("two plants") };
    // Costs in time of all 16 workers.
    assert_eq!((app.discipline, app.service), (Discipline::Workers(16), MS(32)));
    assert!(near(app.service_per_byte, 1.6e-6));
    assert_eq!(cache.discipline, Discipline::Sharing { cores: 2, most: 256 });
    let mean = (9.0 * (0.032 + 1.6e-6 * 20_480.0) + 0.09) / 10.0;
    assert!(near(phases(&workload.streams[0])[1].rate, 2.5 * 16.0 / mean));
    assert_eq!(page(&workload.streams[1], 0).headers, [("x-plan".to_owned(), "gold-2".to_owned())]);
    let [stale, plain, full] = workload.versions[0][..] else { panic!("three levels") };
    assert_eq!((plain.cost, plain.bytes, full), (Some(0.4), 0.3, Version::FULL));
    assert!(stale.cost.is_none() && near(stale.bytes, 0.99));
    assert_eq!(workload.versions[1], [Version::FULL]);
}

#[test]
fn a_server_is_as_promised_where_nothing_is_said() {
    let mut promises = promises();
    promises.plants[0].costs =
        Some(Costs { per_request_seconds: 2e-3, per_byte_seconds: 1e-7, per_rejection_seconds: 1e-3 });
    promises.plants[0].bandwidth_bytes_per_second = Some(1e6);
    promises.sites[0].levels[0].cost_ratio = Some(0.2);
    let ParsedWorkload { workload, assumptions, untimed } =
        understood("duration = \"60s\"\n[[stream]]\nrate = \"1/s\"\n", &promises);
    let plant = &workload.plants[0];
    assert_eq!((plant.discipline, plant.listen_queue, plant.link), (Discipline::Workers(4), 511, Some(1e6)));
    assert_eq!((plant.service, plant.rejection, plant.reports), (MS(8), MS(4), false));
    assert!(near(plant.service_per_byte, 4e-7));
    assert_eq!(workload.versions, [vec![Version { cost: Some(0.2), bytes: 0.2 }, Version::FULL]]);
    assert_eq!((assumptions.len(), untimed.len()), (1, 0), "{assumptions:?}");
    // The configuration's costs are of its own workers, the file's of those that it gives.
    let halved = "duration = \"60s\"\n[[stream]]\nrate = \"1/s\"\n[plant.app]\nworkers = 2\n";
    assert_eq!(understood(halved, &promises).workload.plants[0].service, MS(8));
    let own = format!("{halved}costs = {{ request = \"1ms\" }}\n");
    assert_eq!(understood(&own, &promises).workload.plants[0].service, MS(2));
}

#[test]
fn levels_are_compared_with_full_quality_and_assumptions_are_reported() {
    let mut promises = promises();
    promises.sites[0] = Site::new("shop", &["text", "light", "plain", "full"]);
    let source = "duration = \"60s\"\n[[stream]]\nrate = \"1/s\"\n[plant.app]\nservice = \"1ms\"\n\
                  [site.shop.level.light]\ncost = 0.5\nbytes = 0.1\n[site.shop.level.plain]\ncost = 0.5\n";
    let ParsedWorkload { workload, assumptions, .. } = understood(source, &promises);
    let versions: Vec<_> =
        workload.versions[0].iter().map(|version| (version.cost.unwrap(), version.bytes)).collect();
    assert_eq!(versions, [(0.0625, 0.0125), (0.25, 0.05), (0.5, 0.5), (1.0, 1.0)]);
    assert_eq!(assumptions.len(), 2, "{assumptions:?}");
    assert!(assumptions[0].contains("level plain") && assumptions[0].contains("0.5"), "{assumptions:?}");
    assert!(assumptions[1].contains("level text") && assumptions[1].contains("0.25"), "{assumptions:?}");
    assert!(assumptions[1].contains("[site.shop.level.text]"), "{assumptions:?}");
}

#[test]
fn paths_are_taken_from_the_folder_of_the_file() {
    let source = "[[stream]]\ncounts = \"counts.txt.gz\"\nevery = \"1min\"\nspeed = 60\nscale = 0.5\n\
                  pages_from = \"/var/log/access.log\"\nformat = \"common\"\n[[stream]]\nlog = \"-\"\n\
                  fields = { time = \"ts\", bytes = [\"size\", \"len\"] }\n[plant.app]\nservice = \"1ms\"\n";
    let workload = understood(source, &promises()).workload;
    let Arrivals::Counts { input: Input::File(path), every, replay } = &workload.streams[0].arrivals else {
        panic!("no counts")
    };
    assert_eq!((path.as_path(), *every), (Path::new("folder/counts.txt.gz"), MS(60_000)));
    assert_eq!(*replay, Replay { speed: 60.0, scale: 0.5 });
    let Content::Log(Input::File(path), LogFormat::Common) = &workload.streams[0].content else {
        panic!("no log")
    };
    assert_eq!(path, Path::new("/var/log/access.log"));
    let Arrivals::Log { input: Input::File(path), format: LogFormat::Json(fields), .. } =
        &workload.streams[1].arrivals
    else {
        panic!("no log")
    };
    assert_eq!(path, Path::new("-"));
    let bytes = vec!["size".to_owned(), "len".to_owned()];
    assert_eq!(**fields, JsonFields { time: vec!["ts".to_owned()], bytes, ..JsonFields::default() });
}

#[test]
fn a_log_may_bring_the_times_that_nobody_says() {
    let promises = promises();
    let ParsedWorkload { workload, untimed, assumptions } =
        understood("[[stream]]\nlog = \"access.json\"\n", &promises);
    assert_eq!((workload.duration, untimed.len(), untimed[0].plant), (None, 1, 0));
    assert!(untimed[0].message.contains("`app`") && untimed[0].help.contains("[plant.app]"), "{untimed:?}");
    assert_eq!(assumptions.len(), 1, "{assumptions:?}");
    let alone = replay(Path::new("access.json"), Replay { speed: 2.0, scale: 3.0 }, &promises, &[]);
    // Without a workload nobody has said how the server and its clients are either.
    let (last, others) = alone.assumptions.split_last().expect("some");
    assert_eq!((&alone.untimed, others), (&untimed, &assumptions[..]));
    for part in ["511", "`listen_queue`", "`service_law`", "`patience`"] {
        assert!(last.contains(part), "{part} in {last}");
    }
    let Arrivals::Log { replay, format: LogFormat::Auto, .. } = &alone.workload.streams[0].arrivals else {
        panic!("no log")
    };
    assert_eq!((replay.speed, replay.scale), (2.0, 3.0));
    assert_eq!((alone.workload.plants.len(), alone.workload.versions.len()), (1, 1));
}

#[test]
fn workers_that_are_to_be_found_are_stated_or_guessed_aloud() {
    let mut promises = promises();
    promises.plants[0].find_workers = Some(WorkerBounds { least: 1, most: 64 });
    let speed = Replay { speed: 1.0, scale: 1.0 };
    for (known, from) in
        [(None, "THAT IS A GUESS"), (Some("as site.state keeps it".to_owned()), "as site.state keeps it")]
    {
        let guessed = replay(Path::new("access.json"), speed, &promises, &[known]).assumptions;
        let sentence = format!("`app` works on 4 requests at once: {from}");
        assert!(guessed.iter().any(|own| own.starts_with(&sentence)), "{guessed:?}");
    }
    let source =
        "duration = \"60s\"\n[plant.app]\nservice = \"40ms\"\nworkers = 7\n[[stream]]\nrate = \"100/s\"\n";
    let stated = understood(source, &promises);
    assert_eq!(stated.workload.plants[0].discipline, Discipline::Workers(7));
    assert!(stated.assumptions.iter().all(|own| !own.contains("at once")), "{:?}", stated.assumptions);
}

#[test]
fn a_page_with_its_own_time_needs_no_other() {
    let source = "duration = \"1s\"\n[[stream]]\nload = 2\npage = [{ service = \"10ms\" }]\n";
    let ParsedWorkload { workload, .. } = understood(source, &promises());
    assert!(near(phases(&workload.streams[0])[0].rate, 800.0));
}

#[test]
fn surge_s_users_wait_for_its_files() {
    let source = "duration = \"60s\"\n[[stream]]\nload = 1\n\
                  process = { kind = \"surge\", sources = 50, waits = true }\n\
                  [[stream.page]]\npath = \"/pictures/*.jpg\"\nweight = 2\nfiles = 500\n\
                  [plant.app]\nservice = \"1ms\"\nservice_per_kib = \"1ms\"\n";
    let ParsedWorkload { workload, .. } = understood(source, &promises());
    let stream = &workload.streams[0];
    let Arrivals::Process { process, .. } = &stream.arrivals else { panic!("no process") };
    assert_eq!(*process, Process::Surge { users: 50, waits: true });
    let Content::Pages(files) = &stream.content else { panic!("no files") };
    assert_eq!((files.len(), files[499].path.as_str()), (500, "/pictures/500.jpg"));
    // A load is a multiple of what the server carries of these files.
    let mean = files.iter().map(|file| file.weight * file.bytes).sum::<f64>() / 2.0;
    assert!(near(phases(stream)[0].rate, 4.0 / (1e-3 + 1e-3 * mean / 1024.0)));
}

#[test]
fn a_stream_may_end_by_itself() {
    let source = "[[stream]]\nrate = [{ from = \"1s\", rate = \"5/s\" }, { from = \"2s\", rate = \"0/s\" }]\n\
                  [plant.app]\nservice = \"1ms\"\n";
    let ParsedWorkload { workload, .. } = understood(source, &promises());
    assert_eq!((workload.duration, workload.streams[0].name.as_str()), (None, "stream 1"));
    assert_eq!(phases(&workload.streams[0])[0].from, MS(1000));
}

#[test]
fn a_log_takes_the_place_of_the_streams() {
    let promises = promises();
    let log = Some((Path::new("access.log"), Replay { speed: 2.0, scale: 3.0 }));
    let reading = Reading { log, ..Reading::default() };
    let timed = parse_workload_as("[plant.app]\nservice = \"1ms\"\n", "w.toml", &promises, reading).unwrap();
    assert_eq!((timed.workload.streams.len(), timed.workload.plants[0].service), (1, MS(1)));
    assert!(
        matches!(&timed.workload.streams[0].arrivals, Arrivals::Log { replay, .. } if replay.scale == 3.0)
    );
    assert_eq!(timed.untimed, []);
    let untimed = "duration = \"60s\"\n[[stream]]\nrate = \"1/s\"\n[plant.app]\nworkers = 2\n";
    assert!(parse_workload(untimed, "w.toml", &promises).is_err());
    let untimed = parse_workload_as(untimed, "w.toml", &promises, reading).unwrap();
    assert_eq!((untimed.workload.streams.len(), untimed.untimed.len()), (1, 1));
}

#[test]
fn a_configuration_that_is_compared_may_have_other_sites_and_levels() {
    let source = "duration = \"60s\"\n[[stream]]\nload = 1\n[[stream.page]]\nhost = \"shop.example\"\n\
                  [plant.app]\nservice = \"1ms\"\n[site.shop.level.light]\ncost = 0.5\nbytes = 0.5\n\
                  [site.blog.level.text]\ncost = 0.5\nbytes = 0.5\n";
    let mut other = promises();
    other.sites[0].levels.remove(0);
    other.sites[0].hosts = vec!["blog.example".to_owned()];
    assert_eq!(parse_workload(source, "w.toml", &other).unwrap_err().all.len(), 3);
    let reading = Reading { compared: true, ..Reading::default() };
    let ParsedWorkload { workload, .. } = parse_workload_as(source, "w.toml", &other, reading).unwrap();
    assert_eq!(workload.versions, [vec![Version::FULL]]);
    let typo = source.replace("plant.app", "plant.ap");
    assert!(parse_workload_as(&typo, "w.toml", &other, reading).is_err());
}

#[test]
fn a_slip_in_a_server_is_not_answered_by_asking_for_its_time() {
    for plant in
        ["[plant.ap]\nservice = \"1ms\"\n", "[plant.app]\nservice = 1\n", "[plant.app]\nservise = \"1ms\"\n"]
    {
        let source = format!("duration = \"60s\"\n[[stream]]\nload = 1\n{plant}");
        let refused = parse_workload(&source, "w.toml", &promises()).unwrap_err();
        assert_eq!(refused.all.len(), 1, "{refused}");
    }
}
