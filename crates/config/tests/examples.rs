//! Every example is right, and means what its comments say.

use plimsoll_config::{Backend, Code, Configuration, parse};
use plimsoll_core::promises::{
    Choice, Control, Delay, Guarantee, Identity, LAST_PRIORITY, Mode, Prefer, QueueBounds, Sense,
    WorkerBounds,
};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::{
    FilesSettings, Limits, Listener, Rejection, Report, ReportMode, Timeouts, UpstreamSettings,
};
use std::net::SocketAddr;
use std::path::Path;

fn example(name: &str) -> Configuration {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse(&source, name).unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
}

#[test]
fn every_example_parses() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // The agent's is of another kind: tests/agent.rs.
        if name.ends_with(".toml") && name != "agent.toml" {
            example(&name);
            count += 1;
        }
    }
    assert!(count >= 4, "only {count} examples found");
}

#[test]
fn one_site() {
    let Configuration { promises, gateway } = example("one-site.toml");
    assert_eq!(gateway.settings.listen, [Listener::from(SocketAddr::from(([127, 0, 0, 1], 8080)))]);
    assert_eq!(gateway.settings.admin, Some("127.0.0.1:9090".parse().unwrap()));
    let plant = &promises.plants[0];
    assert_eq!((plant.name.as_str(), plant.workers, plant.max_connections), ("app", 8, 8));
    assert_eq!((plant.set_point, plant.sense, plant.same_host), (0.85, Sense::Gap, false));
    assert_eq!(plant.queue, QueueBounds::default());
    assert_eq!(
        gateway.backends,
        [Backend::Upstream {
            addresses: vec!["127.0.0.1:8000".to_owned()],
            settings: Box::new(UpstreamSettings::new(Vec::new())),
            workers_from: None,
            look_up_every: Some(Duration::from_secs(10))
        }]
    );
    let site = &promises.sites[0];
    assert_eq!((site.name.as_str(), site.plant, site.choice), ("shop", 0, Choice::Client));
    assert!(site.hosts.is_empty());
    assert_eq!(site.exempt[0].paths, ["/healthz"]);
    let levels: Vec<_> = site.levels.iter().map(|level| (level.name.as_str(), level.cost_ratio)).collect();
    assert_eq!(levels, [("light", Some(0.15)), ("full", None)]);
    assert_eq!(gateway.settings.rewrites[0][0].prefix, "/light");
    assert_eq!(gateway.settings.rewrites[0][1].prefix, "");
    assert_eq!(promises.control, Control::default());
}

#[test]
fn folder() {
    let Configuration { promises, gateway } = example("folder.toml");
    let plant = &promises.plants[0];
    assert_eq!(
        (plant.workers, plant.set_point, plant.sense, plant.same_host),
        (2, 0.8, Sense::Reported, true)
    );
    assert_eq!(plant.bandwidth_bytes_per_second, Some(12.5e6));
    let files = Backend::Files(FilesSettings {
        root: "www".into(),
        index: vec!["index.html".to_owned()],
        follow_symlinks: false,
        cache_bytes: 64 << 20,
    });
    assert_eq!(gateway.backends, [files]);
    assert_eq!(promises.sites[0].hosts, ["pictures.example", "*.pictures.example"]);
    assert_eq!(gateway.settings.rewrites[0][1].prefix, "/full");
}

#[test]
fn classes() {
    let Configuration { promises, gateway } = example("classes.toml");
    assert_eq!((gateway.settings.listen.len(), gateway.settings.trusted_proxies.len()), (2, 1));
    let shop = &promises.sites[0];
    assert_eq!(shop.identity, Identity::Cookie("session".to_owned()));
    assert_eq!(shop.levels.iter().map(|level| level.plant).collect::<Vec<_>>(), [Some(1), None, None]);
    assert_eq!(
        shop.classes.iter().map(|class| class.name.as_str()).collect::<Vec<_>>(),
        ["checkout", "gold"]
    );
    assert_eq!(shop.classes[0].condition.methods, ["GET", "POST"]);
    assert_eq!(shop.classes[1].condition.headers, [("x-plan".to_owned(), "gold*".to_owned())]);
    assert_eq!(gateway.settings.rewrites[0][1].headers, [("x-quality".to_owned(), "low".to_owned())]);
    assert_eq!((promises.sites.len(), gateway.settings.rewrites.len()), (2, 2));
    assert_eq!((promises.sites[1].levels.len(), gateway.settings.rewrites[1].len()), (1, 1));
}

#[test]
fn contracts() {
    let Configuration { promises, .. } = example("contracts.toml");
    assert_eq!(promises.plants[0].ceiling, Some(0.7));
    let [news, shop, others] = &promises.sites[..] else { panic!("three sites") };
    let guarantee = Guarantee { burst: Duration::from_secs(2), ..Guarantee::new(100.0, 27.0 * 125e3) };
    assert_eq!((shop.guarantee, shop.weight, shop.share_excess), (Some(guarantee), 2.0, true));
    assert_eq!((news.guarantee, news.share_excess), (Some(Guarantee::new(50.0, 13.0 * 125e3)), false));
    let priorities: Vec<u8> = shop.classes.iter().map(|class| class.priority).collect();
    assert_eq!((priorities.as_slice(), shop.default_priority), (&[1, 2][..], 3));
    assert_eq!((others.guarantee, others.default_priority, others.weight), (None, LAST_PRIORITY, 1.0));
}

#[test]
fn delays() {
    let Configuration { promises, .. } = example("delays.toml");
    let plant = &promises.plants[0];
    assert_eq!(plant.find_workers, Some(WorkerBounds { least: 1, most: 64 }));
    assert_eq!((plant.workers, plant.max_connections, plant.set_point), (16, 64, 0.85));
    let [shop, reports, others] = &promises.sites[..] else { panic!("three sites") };
    let delay = Delay { target: Duration::from_millis(200), percentile: Some(95.0) };
    assert_eq!((shop.classes[0].delay, shop.classes[0].priority), (Some(delay), 1));
    assert_eq!((shop.default_delay, shop.default_priority), (None, LAST_PRIORITY));
    assert_eq!((reports.classes[0].ratio, reports.default_ratio), (Some(1.0), Some(2.0)));
    assert_eq!((reports.classes[0].priority, reports.strict_ratios), (LAST_PRIORITY, false));
    assert!(others.default_delay.is_none() && others.default_ratio.is_none());
}

#[test]
fn deadlines() {
    let Configuration { promises, .. } = example("deadlines.toml");
    assert_eq!(promises.plants[0].set_point, 1.0);
    let site = &promises.sites[0];
    assert_eq!((site.deadline, site.prefer), (Some(Duration::from_millis(500)), Prefer::Throughput));
    assert_eq!((site.classes[0].priority, site.default_priority), (1, 2));
    assert_eq!((site.types[0].name.as_str(), site.types[0].quantum), ("report", 100.0));
    assert_eq!(site.types[0].condition.paths, ["/reports/*"]);
}

#[test]
fn a_site_s_delay_is_for_whoever_has_none_and_sets_the_load_line() {
    let source = "gateway.listen = \"127.0.0.1:80\"\n[upstream.a]\naddress = \"a:80\"\ncapacity.workers = 8\n\
        [[site]]\nname = \"s\"\ndelay = \"1s\"\npercentile = 90\n\
        [[site.class]]\nname = \"gold\"\nmatch.path = \"/gold/*\"\ndelay = \"200ms\"\n\
        [[site.class]]\nname = \"told\"\nmatch.path = \"/told/*\"\npriority = 3\n";
    let parsed =
        |source: &str| parse(source, "delay.toml").unwrap_or_else(|found| panic!("{found}")).promises;
    let promises = parsed(source);
    let site = &promises.sites[0];
    let of_site = Some(Delay { target: Duration::from_secs(1), percentile: Some(90.0) });
    let own = Some(Delay { target: Duration::from_millis(200), percentile: None });
    assert_eq!((site.classes[0].delay, site.classes[0].priority), (own, 1));
    assert_eq!((site.classes[1].delay, site.classes[1].priority), (of_site, 3));
    assert_eq!((site.default_delay, site.default_priority), (of_site, 1));
    assert_eq!(promises.plants[0].set_point, 1.0);
    // A class without a promise may stand beside it, at this site or another.
    let alone = source.replace("delay = \"1s\"\npercentile = 90\n", "");
    assert_eq!(parsed(&alone).plants[0].set_point, 1.0);
    let source = &source.replace("name = \"s\"", "name = \"s\"\nhost = \"s\"");
    let other = "[[site]]\nname = \"t\"\n";
    assert_eq!(parsed(&format!("{source}{other}")).plants[0].set_point, 1.0);
    assert_eq!(parsed(&format!("{source}{other}guarantee.rate = \"5/s\"\n")).plants[0].set_point, 0.85);
    // A ratio, or an operator who says otherwise, and utilization is held.
    let ratios = "[[site.class]]\nname = \"one\"\nmatch.path = \"/1/*\"\nratio = 1\n\
        [[site.class]]\nname = \"two\"\nmatch.path = \"/2/*\"\nratio = 2\n";
    assert_eq!(parsed(&format!("{source}{ratios}")).plants[0].set_point, 0.85);
    let stated = source.replace("capacity.workers = 8", "capacity = { workers = 8, load_line = 0.7 }");
    assert_eq!(parsed(&stated).plants[0].set_point, 0.7);
}

#[test]
fn workers_are_looked_for_where_they_are_not_configured() {
    let plant = |upstream: &str| {
        let source =
            format!("gateway.listen = \"127.0.0.1:80\"\nupstream.a = {{ address = \"a:80\"{upstream} }}\n");
        let plant = parse(&source, "workers.toml")
            .unwrap_or_else(|found| panic!("{found}"))
            .promises
            .plants
            .remove(0);
        let bounds = plant.find_workers.map(|bounds| (bounds.least, bounds.most));
        (plant.workers, bounds, plant.max_connections)
    };
    assert_eq!(plant(""), (16, Some((1, 1024)), 1024));
    assert_eq!(plant(", max_connections = 10"), (10, Some((1, 10)), 10));
    assert_eq!(plant(", capacity.max_workers = 9"), (9, Some((1, 9)), 9));
    assert_eq!(plant(", capacity.min_workers = 20"), (20, Some((20, 1024)), 1024));
    assert_eq!(plant(", capacity.workers = 3"), (3, None, 3));
}

#[test]
fn observe() {
    let Configuration { promises, gateway } = example("observe.toml");
    assert_eq!(promises.control.mode, Mode::Observe);
    assert_eq!(gateway.settings.report.mode, ReportMode::Always);
    assert_eq!((promises.sites.len(), promises.sites[0].name.as_str()), (1, "app"));
}

#[test]
fn the_smallest_file_has_every_default() {
    let source =
        "gateway.listen = \"127.0.0.1:80\"\nupstream.a = { address = \"a:80\", capacity.workers = 3 }\n";
    let Configuration { promises, gateway } = parse(source, "smallest.toml").unwrap();
    assert_eq!(promises.control, Control::default());
    assert_eq!((promises.plants[0].max_connections, promises.plants[0].set_point), (3, 0.85));
    assert_eq!(gateway.settings.admin, Some("127.0.0.1:9090".parse().unwrap()));
    assert_eq!(
        (gateway.settings.report, gateway.settings.rejection),
        (Report::default(), Rejection::default())
    );
    assert_eq!(
        (gateway.settings.limits, gateway.settings.timeouts),
        (Limits::default(), Timeouts::default())
    );
    assert_eq!((promises.sites.len(), promises.sites[0].name.as_str()), (1, "a"));
}

#[test]
fn paths_are_taken_from_the_file_and_sites_may_be_many() {
    let source = "gateway.listen = \"127.0.0.1:80\"\nfolder.www.root = \"www\"\n";
    let root_beside = |name: &str| match &parse(source, name).unwrap().gateway.backends[0] {
        Backend::Files(files) => files.root.clone(),
        Backend::Upstream { .. } => panic!("a folder became an upstream"),
    };
    assert_eq!(root_beside("/etc/plimsoll/site.toml"), Path::new("/etc/plimsoll/www"));
    assert_eq!(root_beside("site.toml"), Path::new("www"));

    let mut many = source.to_owned();
    for number in 0..40_000 {
        many.push_str(&format!("[[site]]\nname = \"s{number}\"\nhost = \"h{number}\"\n"));
    }
    let refused = parse(&many, "many.toml").unwrap_err();
    assert_eq!(refused.all.iter().map(|found| found.code).collect::<Vec<_>>(), [Code::TooMany]);
}
