//! Reload, as clients and upstreams see it: no request fails, requests under way finish where they began, connections out
//! of use are closed, and a wrong configuration changes nothing.

use crate::support::{self, *};
use plimsoll_core::promises::{Condition, Network, Promises, Site};
use plimsoll_gateway::admin::Owner;
use plimsoll_gateway::settings::{
    AccessLogSettings, Backend, FilesSettings, Report, ReportMode, Rewrite, SiteLog, UpstreamSettings,
};
use plimsoll_gateway::{Gateway, Reloaded, Reloader, Settings};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

fn upstream(address: SocketAddr) -> Backend {
    Backend::Upstream(UpstreamSettings::new(vec![address.into()]))
}

#[test]
fn an_upstream_moves_under_load_and_no_request_fails() {
    let [first, second] = [b"first", b"other"].map(|body| Origin::serving(body));
    let gateway = Gateway::start(Settings { threads: 2, ..settings(&[first.address]) }, &promises(8));
    let gateway = gateway.expect("a gateway");
    let reloader = gateway.reloader();
    let stop = AtomicBool::new(false);
    let served = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                let mut client = client(&gateway);
                while !stop.load(SeqCst) {
                    let (status, body) = client.get("/");
                    assert!(
                        status == 200 && [b"first", b"other"].contains(&&body[..].try_into().expect("five"))
                    );
                    served.fetch_add(1, SeqCst);
                }
            });
        }
        for round in 0..20 {
            let address = if round % 2 == 0 { second.address } else { first.address };
            let reloaded = reloader.reload(Settings { threads: 2, ..settings(&[address]) }, &promises(8));
            let needs_restart = reloaded.expect("nothing is wrong").needs_restart;
            assert!(needs_restart.is_empty(), "{needs_restart:?}");
            let before = served.load(SeqCst);
            eventually("traffic goes on", || served.load(SeqCst) > before + 20);
            // An upstream counts a connection until its own thread has seen the end, so the next round waits for that.
            let unused = if round % 2 == 0 { &first } else { &second };
            eventually("connections that are out of use are closed", || unused.open.load(SeqCst) == 0);
        }
        stop.store(true, SeqCst);
    });
    settled(&gateway);
    // The last round is odd, so that the first upstream serves.
    let [kept, most] = [first.open.load(SeqCst), first.most.load(SeqCst).max(second.most.load(SeqCst))];
    assert!(kept > 0 && most <= 8, "{kept} connections are kept, {most} were open at once");
    assert_eq!(client(&gateway).get("/"), (200, b"first".to_vec()));
}

fn two_sites() -> Promises {
    let mut promises = promises(1);
    promises.plants.push(plant(1));
    promises.plants[1].name = "other".to_owned();
    promises.sites[0].hosts = vec!["test".to_owned()];
    promises.sites[0].guarantee = None;
    let all = vec![Condition { paths: vec!["*".to_owned()], ..Condition::default() }];
    let site = Site::new("other", &["full"]);
    promises.sites.push(Site { plant: 1, hosts: vec!["other".to_owned()], exempt: all, ..site });
    promises
}

#[test]
fn a_request_under_way_and_one_that_waits_finish_at_an_upstream_that_is_gone() {
    let go = Arc::new(AtomicBool::new(false));
    let old = Origin::patient(&go, b"old");
    let new = Origin::serving(b"new");
    let backends = vec![upstream(old.address), upstream(new.address)];
    let gateway = Gateway::start(Settings { backends, ..settings(&[]) }, &two_sites()).expect("a gateway");
    let [mut served, mut waiting] = [client(&gateway), client(&gateway)];
    served.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    waiting.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n").expect("sent");
    eventually("it waits", || gateway.status().plants[0].waiting == 1);

    let mut other_only = two_sites();
    other_only.sites.remove(0);
    other_only.sites[0].plant = 0;
    other_only.plants.remove(0);
    let reloaded =
        gateway.reloader().reload(settings(&[new.address]), &other_only).expect("nothing is wrong");
    assert_eq!(reloaded.changes.sites.removed, ["site"]);
    assert_eq!(reloaded.changes.plants.removed, ["origin"]);
    let mut fresh = client(&gateway);
    assert_eq!(fresh.get("/").0, 421, "the site is gone");
    assert_eq!(fresh.ask("GET / HTTP/1.1\r\nHost: other\r\n\r\n"), (200, b"new".to_vec()));

    go.store(true, SeqCst);
    assert_eq!(served.answer(), (200, b"old".to_vec()));
    assert_eq!(waiting.answer(), (200, b"old".to_vec()));
    settled(&gateway);
    eventually("its connections are closed", || old.open.load(SeqCst) == 0);
    let status = gateway.status();
    assert!(status.plants[0].is_gone() && !status.plants[1].removed);
    assert_eq!(status.classes[0].counts.outcomes, [2, 0, 0], "accounted to the class that it came to");
}

#[test]
fn a_proxy_is_trusted_as_the_file_says_now_on_a_connection_that_stays() {
    let origin =
        Origin::answering(|head, _| field(head, "x-forwarded-for").expect("the gateway tells it").to_owned());
    let network = Network { address: [127, 0, 0, 0].into(), prefix_bits: 8 };
    let trusting = |trusted_proxies| Settings { trusted_proxies, ..settings(&[origin.address]) };
    let gateway = Gateway::start(trusting(vec![network]), &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    let asked = "GET / HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n";
    assert_eq!(client.ask(asked), (200, b"203.0.113.9, 127.0.0.1".to_vec()));
    for (trusted, told) in [(vec![], "127.0.0.1"), (vec![network], "203.0.113.9, 127.0.0.1")] {
        gateway.reloader().reload(trusting(trusted), &promises(8)).expect("nothing is wrong");
        assert_eq!(client.ask(asked), (200, told.as_bytes().to_vec()));
    }
}

#[test]
fn rewrites_reports_and_limits_change_between_requests_of_a_connection() {
    let origin = Origin::answering(|head, _| head.lines().next().expect("a line").to_owned());
    let rewriting = |prefix: &str| Settings {
        rewrites: vec![vec![
            Rewrite::default(),
            Rewrite { prefix: prefix.to_owned(), headers: Vec::new(), falls_back: false },
        ]],
        ..settings(&[origin.address])
    };
    let gateway = Gateway::start(rewriting("/a"), &promises(8)).expect("a gateway");
    let mut client = client(&gateway);
    assert_eq!(client.get("/x"), (200, b"GET /a/x HTTP/1.1".to_vec()));
    let mut changed = rewriting("/b");
    changed.report = Report { mode: ReportMode::Always, name: "x-level".to_owned() };
    changed.limits.body_bytes = 1;
    changed.listen = vec![SocketAddr::from(([127, 0, 0, 1], 1)).into()];
    changed.threads = 7;
    changed.timeouts.keep_alive = Duration::from_millis(300);
    let reloaded = gateway.reloader().reload(changed, &promises(8)).expect("nothing is wrong");
    assert_eq!(reloaded.settings, ["report", "limits", "timeouts"]);
    assert_eq!(reloaded.needs_restart, ["listen", "threads"]);
    assert_eq!(reloaded.changes.sites.changed, ["site"]);
    assert_eq!(
        reloaded.to_string(),
        "site changed: site; changed: report, limits, timeouts; needs a restart: listen, threads"
    );
    let head = client.ask_head("GET /x HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(field(&head, "x-level"), Some("level=2; reason=guaranteed"));
    assert_eq!(client.body(&head), b"GET /b/x HTTP/1.1");
    assert!(client.head().is_none(), "idle for longer than it may be now");
    let mut large = support::client(&gateway);
    assert_eq!(large.ask("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\nab").0, 413);
}

#[test]
fn what_is_wrong_changes_nothing() {
    let origin = Origin::serving(b"here");
    let gateway = gateway(&origin);
    let reloader = gateway.reloader();
    let files = Backend::Files(FilesSettings::new("/no/such/folder"));
    let folder = Settings { backends: vec![files], ..settings(&[]) };
    let wrong = reloader.reload(folder, &promises(8)).expect_err("there is no such folder");
    assert!(wrong[0].contains("/no/such/folder"), "{wrong:?}");
    let mut promised = promises(8);
    promised.plants[0].workers = 0;
    reloader.reload(settings(&[origin.address]), &promised).expect_err("no workers");
    reloader.reload(settings(&[]), &promises(8)).expect_err("no address");
    assert_eq!(client(&gateway).get("/"), (200, b"here".to_vec()));
    let same = reloader.reload(settings(&[origin.address]), &promises(8)).expect("nothing is wrong");
    assert_eq!((same.clone(), same.to_string()), (Default::default(), "nothing changed".to_owned()));
}

#[test]
fn a_folder_takes_the_place_of_an_upstream_and_back() {
    let origin = Origin::serving(b"proxied");
    let gateway = gateway(&origin);
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    std::fs::write(folder.join("x"), "from a file").expect("a file");
    let files = || Settings { backends: vec![Backend::Files(FilesSettings::new(folder))], ..settings(&[]) };
    let mut client = client(&gateway);
    for _ in 0..3 {
        assert_eq!(client.get("/x"), (200, b"proxied".to_vec()));
        let reloaded = gateway.reloader().reload(files(), &promises(8)).expect("nothing is wrong");
        assert_eq!(reloaded.changes.plants.changed, ["origin"]);
        assert_eq!(client.get("/x"), (200, b"from a file".to_vec()));
        gateway.reloader().reload(settings(&[origin.address]), &promises(8)).expect("nothing is wrong");
    }
}

/// Reloads with five workers, or with a plant that has no worker.
struct FromMemory {
    reloader: Reloader,
    start: Settings,
    right: Arc<AtomicBool>,
}

impl Owner for FromMemory {
    fn incidents(&self) -> String {
        "{}".to_owned()
    }

    fn reload(&self) -> Result<Reloaded, String> {
        let workers = if self.right.load(SeqCst) { 5 } else { 0 };
        self.reloader.reload(self.start.clone(), &promises(workers)).map_err(|wrong| wrong.join("\n"))
    }
    fn log_lines_dropped(&self) -> u64 {
        0
    }
}

#[test]
fn the_operator_posts_a_reload() {
    let origin = Origin::serving(b"here");
    let admin = Some("127.0.0.1:0".parse().expect("an address"));
    let start = Settings { admin, ..settings(&[origin.address]) };
    let gateway = Gateway::start(start.clone(), &promises(8)).expect("a gateway");
    let ask = |request: &str| {
        let mut peer = Peer::connect(gateway.admin_addr().expect("an operator's listener"));
        peer.send(format!("{request} HTTP/1.1\r\nHost: localhost\r\n\r\n")).expect("sent");
        let (status, body) = peer.answer();
        (status, String::from_utf8(body).expect("text"))
    };
    let metric = |name: &str| {
        let page = ask("GET /metrics").1;
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse::<f64>().ok()).expect("a number")
    };
    let counts = || {
        ["applied", "refused"].map(|result| metric(&format!("plimsoll_reloads_total{{result=\"{result}\"}}")))
    };
    let since = || metric("plimsoll_configuration_in_force_timestamp_seconds ");
    let started = since();
    assert!(counts() == [0.0, 0.0] && started > 1e9, "{:?} {started}", counts());
    assert_eq!(ask("POST /reload").0, 404, "nobody said what a reload is");
    let reloader = gateway.reloader();
    reloader.refuse();
    assert_eq!((counts(), since()), ([0.0, 1.0], started), "a file that is wrong");
    let right = Arc::new(AtomicBool::new(true));
    gateway.set_owner(Box::new(FromMemory { reloader, start, right: right.clone() }));
    let (status, body) = ask("POST /reload");
    assert!(status == 200 && body.contains("\"changed\": [\n      \"origin\"\n"), "{status} {body}");
    assert_eq!(gateway.status().plants[0].workers, 5);
    let applied = since();
    assert!(counts() == [1.0, 1.0] && applied > started, "{:?} {applied}", counts());
    right.store(false, SeqCst);
    assert_eq!(ask("POST /reload"), (422, "origin: workers and connections must be at least 1\n".to_owned()));
    assert_eq!(gateway.status().plants[0].workers, 5);
    assert_eq!((counts(), since()), ([1.0, 2.0], applied), "as it was since the good one");
    assert_eq!(ask("GET /reload").0, 405);
}

#[test]
fn what_changed_is_named() {
    let origin = Origin::serving(b"here");
    let before = || settings(&[origin.address]);
    for (name, after) in [
        ("h2c", Settings { h2c: true, ..before() }),
        ("reject_at_accept", Settings { reject_at_accept: true, ..before() }),
    ] {
        let gateway = Gateway::start(before(), &promises(8)).expect("a gateway");
        let reloaded = gateway.reloader().reload(after, &promises(8)).expect("nothing is wrong");
        assert_eq!(reloaded.settings, [name]);
    }
}

#[test]
fn the_access_log_of_a_site_changes_with_its_site_alone() {
    let origin = Origin::serving(b"here");
    let with = |sites: &[SiteLog]| Settings {
        access_log: AccessLogSettings { sites: sites.to_vec(), ..AccessLogSettings::default() },
        backends: vec![upstream(origin.address), upstream(origin.address)],
        ..settings(&[])
    };
    let one = || Promises { sites: two_sites().sites.split_off(1), ..two_sites() };
    let gateway = Gateway::start(with(&[SiteLog::Off, SiteLog::Shared]), &two_sites()).expect("a gateway");
    let reload = |logs: &[SiteLog], promises: &Promises| {
        let reloaded = gateway.reloader().reload(with(logs), promises).expect("nothing is wrong");
        assert!(reloaded.settings.is_empty(), "{reloaded}");
        reloaded.changes.sites
    };
    assert_eq!(reload(&[SiteLog::Shared], &one()).changed, [""; 0], "a site went");
    assert_eq!(
        reload(&[SiteLog::Shared, SiteLog::Shared], &two_sites()).changed,
        [""; 0],
        "and another came"
    );
    assert_eq!(reload(&[SiteLog::Shared, SiteLog::Off], &two_sites()).changed, ["other"]);
}
