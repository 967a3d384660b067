//! The engine's decisions as the client and the upstream see them: rejections, levels, reports; files and the
//! operator's listener.

use crate::support::{self, *};
use plimsoll_core::promises::{Condition, Identity, QueueBounds, Sense};
use plimsoll_core::request::Pattern;
use plimsoll_gateway::settings::{
    Backend, FilesSettings, HeaderRules, Report, ReportMode, Rewrite, SiteHeaders, UpstreamSettings,
};
use plimsoll_gateway::{Gateway, Settings};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An upstream that takes so many milliseconds for each request, and answers with the value of a field of it.
fn telling(name: &'static str, ms: u64) -> Origin {
    Origin::answering(move |head, _| {
        std::thread::sleep(Duration::from_millis(ms));
        field(head, name).unwrap_or("nothing").to_owned()
    })
}

/// One place that is always taken is told a server that decides itself, and no other; whatever clients say of it.
#[test]
fn a_server_that_decides_itself_is_told_of_the_places_that_are_taken() {
    let origin = telling("x-plimsoll-places", 20);
    for decides_itself in [true, false] {
        let mut promises = promises(1);
        promises.plants[0].decides_itself = decides_itself;
        let gateway = Gateway::start(settings(&[origin.address]), &promises).expect("a gateway");
        let told = || {
            let ask = "GET / HTTP/1.1\r\nHost: t\r\nX-Plimsoll-Places: 1.999\r\n\r\n";
            let (_, body) = client(&gateway).ask(ask);
            String::from_utf8(body).expect("text")
        };
        if decides_itself {
            assert_eq!(told(), "0.000", "nothing was taken before");
            eventually("it is told", || told().parse::<f64>().is_ok_and(|part| (0.3..1.99).contains(&part)));
        } else {
            assert_eq!(told(), "nothing");
        }
    }
}

/// Two upstreams, each with a level: what the first does not carry is passed down to the second. Every request is answered
/// once, by one of them or by a rejection.
#[test]
fn a_level_on_another_upstream_takes_what_the_first_does_not_carry() {
    let origins = [("full", 20), ("light", 1)].map(|(name, ms)| {
        Origin::answering(move |_, _| {
            std::thread::sleep(Duration::from_millis(ms));
            name.as_bytes()
        })
    });
    let mut promises = promises(1);
    promises.plants.push(plant(1));
    let site = &mut promises.sites[0];
    site.guarantee = None;
    site.levels[0].plant = Some(1);
    site.identity = Identity::Header("x-client".to_owned());
    let mut settings = settings(&[origins[0].address]);
    settings.backends.push(Backend::Upstream(UpstreamSettings::new(vec![origins[1].address.into()])));
    let gateway = Gateway::start(settings, &promises).expect("a gateway");
    let (asked, light) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = client(&gateway);
                while light.load(SeqCst) < 50 {
                    let number = asked.fetch_add(1, SeqCst);
                    assert!(number < 20_000, "the second upstream was never used");
                    client
                        .send(format!("GET / HTTP/1.1\r\nHost: t\r\nX-Client: {number}\r\n\r\n"))
                        .expect("sent");
                    match client.answer() {
                        (200, body) if body == b"light" => _ = light.fetch_add(1, SeqCst),
                        (200, body) => assert_eq!(body, b"full"),
                        (status, _) => assert_eq!(status, 503),
                    }
                }
            });
        }
    });
    settled(&gateway);
    let counts = gateway.status().classes[0].counts;
    assert_eq!(counts.arrivals, u64::from(asked.load(SeqCst)));
    assert_eq!(counts.reasons.iter().sum::<u64>(), counts.arrivals, "each has one reason");
}

/// A request that would be rejected now is rejected before its client is told to send the body.
#[test]
fn overload_is_told_before_the_body_is_sent() {
    let origin = ten_a_second();
    let mut promises = promises(1);
    let site = &mut promises.sites[0];
    site.guarantee = None;
    site.levels.truncate(1);
    // Many clients, since one alone would be rejected by chance.
    site.identity = Identity::Header("x-client".to_owned());
    let gateway = Gateway::start(settings(&[origin.address]), &promises).expect("a gateway");
    let number = AtomicU32::new(0);
    let head = |more: &str| {
        let client = number.fetch_add(1, SeqCst);
        format!("POST / HTTP/1.1\r\nHost: t\r\nX-Client: {client}\r\nContent-Length: 4\r\n{more}\r\n")
    };
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // As many at once as the server could serve in three seconds.
        for _ in 0..30 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    if enough.load(SeqCst) {
                        return;
                    }
                    client(&gateway).ask(head("") + "body");
                    std::thread::sleep(Duration::from_millis(10));
                }
            });
        }
        eventually("one is rejected at once", || {
            let mut one = client(&gateway);
            let answer = one.ask_head(head("Expect: 100-continue\r\n"));
            if status(&answer) == 100 {
                one.send("body").expect("sent");
                one.answer();
            }
            status(&answer) == 503 && field(&answer, "connection") == Some("close")
        });
        enough.store(true, SeqCst);
    });
    eventually("all is settled", || in_flight(&gateway) == 0);
    let status = gateway.status();
    let arrivals: u64 = status.classes.iter().map(|class| class.counts.arrivals).sum();
    let reasons: u64 = status.classes.iter().flat_map(|class| class.counts.reasons).sum();
    assert_eq!((arrivals, reasons), (number.load(SeqCst).into(), arrivals), "each is counted once");
}

#[test]
fn a_rejection_says_why_and_keeps_the_connection() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"served");
    let mut settings = settings(&[origin.address]);
    settings.stream_paths.push(Pattern::new("/stream"));
    let gateway = Gateway::start(settings, &tight()).expect("a gateway");
    let mut first = client(&gateway);
    first.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    let mut second = client(&gateway);
    for request in [
        "GET / HTTP/1.1\r\nHost: t\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    ] {
        let head = second.ask_head(request);
        assert_eq!(status(&head), 503, "{request:?}");
        assert_eq!(field(&head, "retry-after"), Some("1"), "nothing is forecast yet");
        assert_eq!(field(&head, "ratelimit"), Some("\"queue-full\";r=0;t=1"));
        assert_eq!(field(&head, "x-plimsoll"), Some("level=0; reason=queue-full"));
        assert_eq!(field(&head, "connection"), None);
        assert!(field(&head, "date").is_some_and(|date| date.ends_with(" GMT")));
        assert_eq!(second.body(&head), b"This site is busy right now. Please try again in a moment.\n");
    }
    // A client that waits for `100 Continue` may send its body or not: the next request cannot be found.
    let head = second
        .ask_head("POST /stream HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!((status(&head), field(&head, "connection")), (503, Some("close")));
    go.store(true, SeqCst);
    assert_eq!(first.answer(), (200, b"served".to_vec()));
    settled(&gateway);
}

#[test]
fn a_rejected_head_has_no_body() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"served");
    let gateway = Gateway::start(settings(&[origin.address]), &tight()).expect("a gateway");
    let mut first = client(&gateway);
    first.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    let mut second = client(&gateway);
    for _ in 0..2 {
        second.send("HEAD / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
        assert_eq!(status(&second.head().expect("an answer")), 503);
    }
    go.store(true, SeqCst);
}

#[test]
fn a_request_that_waits_too_long_is_rejected_with_its_reason() {
    let go = Arc::new(AtomicBool::new(false));
    let origin = Origin::patient(&go, b"served");
    let mut promises = tight();
    promises.plants[0].queue = QueueBounds { max_waiting: 10, max_wait: Some(Duration::from_millis(200)) };
    let gateway = Gateway::start(settings(&[origin.address]), &promises).expect("a gateway");
    let mut first = client(&gateway);
    first.send("GET / HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("it is served", || gateway.status().plants[0].in_service == 1);
    let mut second = client(&gateway);
    let head = second.ask_head("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!((status(&head), field(&head, "x-plimsoll")), (503, Some("level=0; reason=wait-timeout")));
    go.store(true, SeqCst);
    assert_eq!(first.answer().0, 200);
    settled(&gateway);
}

#[test]
fn a_level_rewrites_and_the_report_tells() {
    let origin = Origin::answering(|head, _| {
        let quality = field(head, "x_quality").or(field(head, "x-quality"));
        format!("{} {quality:?}", head.lines().next().expect("a line"))
    });
    let rewrite = Rewrite {
        prefix: "/light".to_owned(),
        headers: vec![("x-quality".to_owned(), "low".to_owned())],
        falls_back: false,
    };
    let settings = Settings {
        rewrites: vec![vec![rewrite]],
        report: Report { mode: ReportMode::Always, name: "x-level".to_owned() },
        ..settings(&[origin.address])
    };
    let mut promises = promises(8);
    promises.sites[0].levels.truncate(1);
    promises.sites[0].guarantee = None;
    let gateway = Gateway::start(settings, &promises).expect("a gateway");
    let mut client = client(&gateway);
    let head = client.ask_head("GET /a?b HTTP/1.1\r\nHost: t\r\nX-Quality: high\r\n\r\n");
    assert_eq!(field(&head, "x-level"), Some("level=1; reason=full"));
    assert_eq!(client.body(&head), b"GET /light/a?b HTTP/1.1 Some(\"low\")");
    // CGI does not tell the two spellings apart, nor does a server that merges trailers into the head.
    assert_eq!(
        client.ask("GET / HTTP/1.1\r\nHost: t\r\nX_Quality: high\r\n\r\n"),
        (200, b"GET /light/ HTTP/1.1 Some(\"low\")".to_vec())
    );
    let head = "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(client.ask(format!("{head}0\r\nX_qualitY: high\r\n\r\n")).0, 400);
}

#[test]
fn redirects_and_cookies_do_not_name_the_level_and_exempt_requests_go_as_they_came() {
    let origin = Origin::sending(|head| {
        let path = head.split(' ').nth(1).expect("a path");
        let fields = format!("Location: {path}/\r\nSet-Cookie: a=b; Path={path}\r\nX-Asked: {path}");
        format!("HTTP/1.1 301 Moved\r\n{fields}\r\nContent-Length: 0\r\n\r\n")
    });
    let prefix = "/full".to_owned();
    let settings = Settings {
        rewrites: vec![vec![Rewrite { prefix, headers: Vec::new(), falls_back: false }]],
        ..settings(&[origin.address])
    };
    let mut promises = promises(8);
    promises.sites[0].levels.truncate(1);
    promises.sites[0].exempt = vec![Condition { paths: vec!["/healthz".to_owned()], ..Condition::default() }];
    let gateway = Gateway::start(settings, &promises).expect("a gateway");
    let mut client = client(&gateway);
    for (path, asked) in [("/images", "/full/images"), ("/healthz", "/healthz")] {
        let head = client.ask_head(format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n"));
        assert_eq!(field(&head, "x-asked"), Some(asked));
        assert_eq!(field(&head, "location"), Some(format!("{path}/").as_str()));
        assert_eq!(field(&head, "set-cookie"), Some(format!("a=b; Path={path}").as_str()));
    }
}

/// Levels `/text`, `/light` and `/full` of one upstream. The first two fall back, and every request is at the first.
fn falling_back(origin: &Origin) -> Gateway {
    let rewrite =
        |prefix: &str, falls_back| Rewrite { prefix: prefix.to_owned(), headers: Vec::new(), falls_back };
    let settings = Settings {
        rewrites: vec![vec![rewrite("/text", true), rewrite("/light", true), rewrite("/full", false)]],
        report: Report { mode: ReportMode::Always, name: "x-level".to_owned() },
        ..settings(&[origin.address])
    };
    let mut promises = promises(1);
    promises.sites[0].levels.truncate(1);
    promises.plants[0].stops_when_abandoned = true;
    Gateway::start(settings, &promises).expect("a gateway")
}

/// An upstream that has `/light/b`, `/full/a` and `/full/b`, and answers 404 in several forms otherwise. It records the
/// paths that are requested.
fn with_gaps(asked: &Arc<Mutex<Vec<String>>>) -> Origin {
    let asked = asked.clone();
    Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            peer.body(&head);
            let line = head.lines().next().expect("a line").trim_end_matches(" HTTP/1.1").to_owned();
            let path = line.split(' ').nth(1).expect("a path").to_owned();
            let number = {
                let mut asked = asked.lock().expect("no test has failed here");
                asked.push(line);
                asked.len()
            };
            let is_head = head.starts_with("HEAD ");
            if ["/light/b", "/full/a", "/full/b"].contains(&path.as_str()) {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", path.len());
                peer.send(head + if is_head { "" } else { &path }).expect("sent");
                continue;
            }
            let form = if is_head { 0 } else { number % 3 };
            let answer = match form {
                0 => "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\n",
                1 => "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n4\r\ngone\r\n0\r\n\r\n",
                _ => "HTTP/1.1 404 Not Found\r\nConnection: close\r\n\r\ngone",
            };
            peer.send(answer).expect("sent");
            if form == 0 && !is_head {
                // The body comes later; the gateway may have closed the connection by then.
                let _ = peer.send("gone");
            }
            if form == 2 {
                return;
            }
        }
    })
}

#[test]
fn what_an_upstream_lacks_is_asked_at_the_next_level() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let origin = with_gaps(&asked);
    let gateway = falling_back(&origin);
    let mut client = client(&gateway);
    let mut ask = |method: &str, path: &str| {
        let head =
            client.ask_head(format!("{method} {path} HTTP/1.1\r\nHost: t\r\nContent-Length: 0\r\n\r\n"));
        let body = if method == "HEAD" { Vec::new() } else { client.body(&head) };
        let level =
            field(&head, "x-level").map(|report| report.split(';').next().unwrap_or_default().to_owned());
        let asked = std::mem::take(&mut *asked.lock().expect("no upstream has failed"));
        (
            status(&head),
            String::from_utf8_lossy(&body).into_owned(),
            level.unwrap_or_default(),
            asked.join(", "),
        )
    };
    // Each path is requested several times: the upstream sends its three forms of 404 in turn.
    for _ in 0..3 {
        let (status, body, level, asked) = ask("GET", "/a");
        assert_eq!((status, body.as_str(), level.as_str()), (200, "/full/a", "level=3"));
        assert_eq!(asked, "GET /text/a, GET /light/a, GET /full/a");
        let (status, body, level, asked) = ask("GET", "/b");
        assert_eq!((status, body.as_str(), level.as_str()), (200, "/light/b", "level=2"));
        assert_eq!(asked, "GET /text/b, GET /light/b", "no further than it has to");
        let (status, body, level, asked) = ask("GET", "/c");
        assert_eq!(
            (status, body.as_str(), level.as_str()),
            (404, "gone", "level=3"),
            "what the last one says"
        );
        assert_eq!(asked, "GET /text/c, GET /light/c, GET /full/c");
        let (status, _, level, asked) = ask("HEAD", "/a");
        assert_eq!((status, level.as_str()), (200, "level=3"));
        assert_eq!(asked, "HEAD /text/a, HEAD /light/a, HEAD /full/a");
        let (status, body, level, asked) = ask("POST", "/a");
        assert_eq!((status, body.as_str(), level.as_str()), (404, "gone", "level=1"), "it may do something");
        assert_eq!(asked, "POST /text/a");
    }
    // There is one place. Each request gave it back, or the next request would have waited for ever.
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [15, 0, 0]);
}

#[test]
fn a_client_that_leaves_while_the_next_level_is_requested_gives_the_place_back() {
    let asked = Arc::new(Mutex::new(Vec::<String>::new()));
    let seen = asked.clone();
    let origin = Origin::start(move |mut peer| {
        while let Some(head) = peer.head() {
            let line = head.lines().next().expect("a line").to_owned();
            let is_next = line.contains("/light/slow");
            seen.lock().expect("no test has failed here").push(line);
            if !is_next {
                peer.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").expect("sent");
            }
        }
    });
    let gateway = falling_back(&origin);
    let mut leaver = client(&gateway);
    leaver.send("GET /slow HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    eventually("the next level is asked", || asked.lock().is_ok_and(|asked| asked.len() == 2));
    assert_eq!(gateway.status().plants[0].in_service, 1);
    drop(leaver);
    settled(&gateway);
    assert_eq!(outcomes(&gateway), [0, 0, 1]);
    assert_eq!(client(&gateway).get("/other").0, 404, "the place is free");
}

/// Levels `/light` and `/full`; every request is at the first.
fn two_levels(backend: Backend) -> Gateway {
    let rewrite =
        |prefix: &str| Rewrite { prefix: prefix.to_owned(), headers: Vec::new(), falls_back: false };
    let added = vec![("cache-control".to_owned(), "max-age=60".to_owned())];
    let headers = SiteHeaders {
        response: HeaderRules::new(vec!["x-dropped".to_owned()], added),
        ..SiteHeaders::default()
    };
    let settings = Settings {
        backends: vec![backend],
        rewrites: vec![vec![rewrite("/light"), rewrite("/full")]],
        headers: vec![headers],
        ..settings(&[])
    };
    let mut promises = promises(8);
    promises.sites[0].levels.truncate(1);
    promises.sites[0].exempt = vec![Condition { paths: vec!["/full/*".to_owned()], ..Condition::default() }];
    Gateway::start(settings, &promises).expect("a gateway")
}

/// The values of a response's fields of this name.
fn all<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    let fields = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    fields.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

#[test]
fn caches_keep_no_lighter_copy_under_the_pages_name() {
    let origin = Origin::sending(|head| {
        let known = field(head, "if-none-match").is_some();
        let start = if known { "304 Not Modified" } else { "200 OK\r\nContent-Length: 4" };
        let kept = "Cache-Control: public, max-age=86400\r\nExpires: Fri, 27 Nov 2099 08:00:00 GMT\r\n\
                        CDN-Cache-Control: max-age=9\r\nSurrogate-Control: max-age=9\r\n\
                        Last-Modified: Fri, 27 Nov 2026 08:00:00 GMT";
        let body = if known { "" } else { "page" };
        format!("HTTP/1.1 {start}\r\nETag: \"a\"\r\n{kept}\r\n\r\n{body}")
    });
    let gateway = two_levels(servers(&[origin.address]));
    let mut client = client(&gateway);
    for (more, expected) in [("", 200), ("If-None-Match: \"a\"\r\n", 304)] {
        let head = client.ask_head(format!("GET /page HTTP/1.1\r\nHost: t\r\n{more}\r\n"));
        assert_eq!((status(&head), field(&head, "etag")), (expected, Some("\"a\"")));
        assert_eq!(all(&head, "cache-control"), ["private, no-cache"]);
        for name in ["expires", "cdn-cache-control", "surrogate-control", "last-modified"] {
            assert_eq!(all(&head, name), [""; 0], "{name}");
        }
        client.rest_of(&head);
    }
    let head = client.ask_head("GET /full/page HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!(all(&head, "cache-control"), ["public, max-age=86400", "max-age=60"], "exempt, as it came");
    assert!(field(&head, "last-modified").is_some());
}

#[test]
fn caches_keep_of_folders_what_the_highest_tree_has() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    for (name, content) in [
        ("manifest.json", r#"{"plimsoll": 1, "trees": [{"tree": "light"}, {"tree": "full"}]}"#),
        ("light/a.txt", "small"),
        ("full/a.txt", "large"),
        ("full/style.css", "the same"),
    ] {
        std::fs::create_dir_all(root.join(name).parent().expect("a folder")).expect("a folder");
        std::fs::write(root.join(name), content).expect("a file");
    }
    let gateway = two_levels(Backend::Files(FilesSettings::new(root)));
    let mut client = client(&gateway);
    for (path, content, kept) in
        [("/a.txt", "small", false), ("/style.css", "the same", true), ("/full/a.txt", "large", true)]
    {
        let head = client.ask_head(format!("GET {path} HTTP/1.1\r\nHost: t\r\n\r\n"));
        assert_eq!(client.body(&head), content.as_bytes());
        assert!(field(&head, "etag").is_some());
        assert_eq!(all(&head, "cache-control"), [if kept { "max-age=60" } else { "private, no-cache" }]);
        assert_eq!(field(&head, "last-modified").is_some(), kept, "{path}");
    }
}

/// A download that is resumed has its beginning from the level that the client had then.
#[test]
fn a_part_of_a_lighter_copy_is_sent_only_to_who_has_its_beginning() {
    let origin = Origin::sending(|head| {
        let range = field(head, "range").unwrap_or("none");
        format!("HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nContent-Length: {}\r\n\r\n{range}", range.len())
    });
    let root = tempfile::tempdir().expect("a folder");
    for (name, content) in [
        ("manifest.json", r#"{"plimsoll": 1, "trees": [{"tree": "light"}, {"tree": "full"}]}"#),
        ("light/a", "small"),
        ("full/a", "large"),
        ("full/film", "pictures"),
    ] {
        std::fs::create_dir_all(root.path().join(name).parent().expect("a folder")).expect("a folder");
        std::fs::write(root.path().join(name), content).expect("a file");
    }
    let proxied = two_levels(servers(&[origin.address]));
    let folder = two_levels(Backend::Files(FilesSettings::new(root.path())));
    let ask = |gateway: &Gateway, path: &str, more: &str| {
        let mut client = client(gateway);
        let ask = format!("GET {path} HTTP/1.1\r\nHost: t\r\nRange: bytes=2-\r\n{more}\r\n");
        let head = client.ask_head(ask);
        let body = String::from_utf8(client.body(&head)).expect("text");
        (body, field(&head, "accept-ranges").map(str::to_owned), field(&head, "etag").map(str::to_owned))
    };
    let answer = |body: &str, ranges: &str| (body.to_owned(), Some(ranges.to_owned()));
    let short = |(body, ranges, _): (String, Option<String>, Option<String>)| (body, ranges);
    assert_eq!(short(ask(&proxied, "/a", "")), answer("none", "none"));
    assert_eq!(short(ask(&proxied, "/a", "If-Range: \"a\"\r\n")), answer("bytes=2-", "none"));
    assert_eq!(short(ask(&proxied, "/full/a", "")), answer("bytes=2-", "bytes"), "exempt, as it came");
    let (body, ranges, tag) = ask(&folder, "/a", "");
    assert_eq!((body, ranges), answer("small", "none"));
    let condition = format!("If-Range: {}\r\n", tag.expect("a tag"));
    assert_eq!(short(ask(&folder, "/a", &condition)), answer("all", "none"));
    assert_eq!(short(ask(&folder, "/a", "If-Range: \"other\"\r\n")), answer("small", "none"));
    assert_eq!(short(ask(&folder, "/film", "")), answer("ctures", "bytes"), "the highest level's for all");
}

#[test]
fn a_host_of_no_site_is_421_and_the_connection_stays() {
    let origin = Origin::serving(b"here");
    let mut promises = promises(8);
    promises.sites[0].hosts = vec!["known.example".to_owned()];
    let gateway = Gateway::start(settings(&[origin.address]), &promises).expect("a gateway");
    let mut client = client(&gateway);
    assert_eq!(client.get("/").0, 421);
    // The dot at the end marks the name as complete, and does not make it another name.
    for host in ["Known.Example:80", "known.example.", "known.example.:80"] {
        assert_eq!(
            client.ask(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")),
            (200, b"here".to_vec()),
            "{host}"
        );
    }
}

#[test]
fn files_are_served_by_level_and_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    std::fs::create_dir_all(root.join("light")).expect("a folder");
    std::fs::write(root.join("light/a.txt"), "small").expect("a file");
    std::fs::write(root.join("light/big.bin"), vec![7; 3_000_000]).expect("a file");
    let settings = Settings {
        backends: vec![Backend::Files(FilesSettings::new(root))],
        rewrites: vec![vec![Rewrite { prefix: "/light".to_owned(), headers: Vec::new(), falls_back: false }]],
        ..settings(&[])
    };
    let mut promises = promises(8);
    promises.sites[0].levels.truncate(1);
    let gateway = Gateway::start(settings, &promises).expect("a gateway");
    let mut client = client(&gateway);
    assert_eq!(client.get("/a.txt"), (200, b"small".to_vec()));
    assert_eq!(client.get("/big.bin"), (200, vec![7; 3_000_000]));
    assert_eq!(client.get("/nothing").0, 404);
    let head = client.ask_head("HEAD /a.txt HTTP/1.1\r\nHost: t\r\n\r\n");
    assert_eq!((status(&head), field(&head, "content-length")), (200, Some("5")));
    assert_eq!(
        client.ask("GET /a.txt HTTP/1.1\r\nHost: t\r\nRange: bytes=1-2\r\n\r\n"),
        (206, b"ma".to_vec())
    );
    settled(&gateway);
    assert_eq!(gateway.status().classes.iter().map(|class| class.counts.bytes).sum::<u64>(), 3_000_007);
    let mut leaver = support::client(&gateway);
    leaver.send("GET /big.bin HTTP/1.1\r\nHost: t\r\n\r\n").expect("sent");
    assert_eq!(status(&leaver.head().expect("an answer")), 200);
    drop(leaver);
    settled(&gateway);
}

#[test]
fn a_reported_load_reaches_the_engine_and_no_further() {
    let origin = Origin::sending(|_| {
        let report = "endpoint-load-metrics: TEXT cpu_utilization=0.3, application_utilization=0.625";
        format!("HTTP/1.1 200 OK\r\n{report}\r\nContent-Length: 0\r\n\r\n")
    });
    let mut promises = promises(8);
    promises.plants[0].sense = Sense::Reported;
    promises.control.period = Duration::from_millis(100);
    let gateway = Gateway::start(settings(&[origin.address]), &promises).expect("a gateway");
    let client = std::cell::RefCell::new(client(&gateway));
    eventually("the report is the measured utilization", || {
        let mut client = client.borrow_mut();
        let head = client.ask_head("GET / HTTP/1.1\r\nHost: t\r\n\r\n");
        assert_eq!(field(&head, "endpoint-load-metrics"), None);
        (gateway.status().plants[0].utilization - 0.625).abs() < 1e-3
    });
}

#[test]
fn the_operator_is_answered() {
    let origin = Origin::serving(b"");
    let admin = Some("127.0.0.1:0".parse().expect("an address"));
    // The name by which these clients ask.
    let admin_names = vec![Pattern::new("test")];
    let settings = Settings { admin, admin_names, ..settings(&[origin.address]) };
    let gateway = Gateway::start(settings, &promises(8)).expect("a gateway");
    let mut peer = Peer::connect(gateway.admin_addr().expect("an address"));
    assert_eq!(peer.get("/healthz").0, 200);
    let mut peer = Peer::connect(gateway.admin_addr().expect("an address"));
    let (status, body) = peer.get("/metrics");
    assert_eq!(status, 200);
    assert!(String::from_utf8(body).expect("text").contains("plimsoll"));
    gateway.shutdown();
}

#[test]
fn settings_that_do_not_match_the_promises_are_refused() {
    let start = |settings: Settings| Gateway::start(settings, &promises(8)).map(drop);
    let origin = "127.0.0.1:9".parse().expect("an address");
    assert!(start(Settings { backends: Vec::new(), ..settings(&[origin]) }).is_err());
    assert!(start(settings(&[])).is_err());
    assert!(start(Settings { listen: Vec::new(), ..settings(&[origin]) }).is_err());
    let running = Gateway::start(settings(&[origin]), &promises(8)).expect("a gateway");
    let taken = Settings { listen: running.listening().to_vec(), ..settings(&[origin]) };
    assert_eq!(start(taken).map_err(|error| error.kind()), Err(std::io::ErrorKind::AddrInUse));
    let nowhere = Backend::Files(FilesSettings::new("/does/not/exist"));
    assert!(start(Settings { backends: vec![nowhere], ..settings(&[]) }).is_err());
}
