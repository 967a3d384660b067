//! Recorded arrivals: counts and access logs.

use super::*;
use std::ops::ControlFlow;

#[test]
fn counts_come_within_their_intervals() {
    for (input, lines) in [
        ("2 0 1\n3", 4),
        ("2\n\n0\r\n1\n3\n", 4),
        ("when,requests\n10:00,2\n10:01,0\n10:02,1\n10:03,3\n", 5),
        ("when;requests\n10:00;\"2\"\n10:01;0.0\n10:02;1\n10:03;3", 5),
    ] {
        let (requests, notes) = run(&stream(counts(input, 60, 1.0, 1.0)), 1, f64::INFINITY);
        let times: Vec<f64> = requests.into_iter().map(|(time, _)| time).collect();
        assert_eq!(per_window(&times, 60.0, 240.0), [2.0, 0.0, 1.0, 3.0], "{input}");
        assert_eq!((notes.lines, notes.skipped, notes.requests), (lines, 0, 6), "{input}");
    }
}

#[test]
fn counts_are_sped_up_and_scaled() {
    let (requests, _) = run(&stream(counts("4000 0 1000", 60, 6.0, 2.5)), 1, f64::INFINITY);
    let times: Vec<f64> = requests.into_iter().map(|(time, _)| time).collect();
    assert_eq!(per_window(&times, 10.0, 30.0), [10_000.0, 0.0, 2_500.0]);
    // Requests are uniform in their interval: the mean and variance of a uniform number, with standard errors of 0.03 and
    // 0.075.
    let (mean, variance) = mean_and_variance(&times[..10_000]);
    assert!((mean - 5.0).abs() < 0.12 && (variance - 100.0 / 12.0).abs() < 0.3, "{mean} {variance}");
    // A fraction of a request is drawn by chance.
    let ones = "1 ".repeat(20_000);
    let (requests, _) = run(&stream(counts(&ones, 1, 1.0, 0.3)), 1, f64::INFINITY);
    assert!((requests.len() as f64 - 6_000.0).abs() < 260.0, "{}", requests.len());
}

#[test]
fn many_copies_of_a_line_are_spread_over_its_second() {
    let line = NASA.lines().next().unwrap();
    let times = times(log(line, 1.0, 300_000.0), 1, f64::INFINITY);
    let (mean, variance) = mean_and_variance(&times);
    assert_eq!(times.len(), 300_000);
    // Those of a uniform number, with standard errors of 0.0005 and 0.00014.
    assert!((mean - 0.5).abs() < 0.002 && (variance - 1.0 / 12.0).abs() < 0.0006, "{mean} {variance}");
}

#[test]
fn odd_counts() {
    let (requests, notes) = run(&stream(counts("5 x 5 -1 nan 2", 1, 1.0, 1.0)), 1, f64::INFINITY);
    assert_eq!((requests.len(), notes.skipped), (12, 3));
    assert_eq!(notes.first_skipped.map(|(line, text, _)| (line, text)), Some((2, "x".to_owned())));
    let last = requests.last().unwrap().0;
    assert!((5.0..6.0).contains(&last), "time passes in intervals that nobody can read: {last}");
    let mut source = source(&stream(counts("when,requests\na,b\nc,d\n", 1, 1.0, 1.0)), 1).unwrap();
    let error = source.next(&mut Request::default()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    assert!(error.to_string().contains("Line 2 is `a,b`"), "{error}");
}

#[test]
fn a_real_log_as_it_was() {
    let (requests, notes) = run(&stream(log(NASA, 1.0, 1.0)), 1, f64::INFINITY);
    assert_eq!((notes.lines, notes.skipped, notes.requests, notes.backwards), (200, 0, 200, 0));
    assert_eq!((notes.format, notes.gaps), (Some(FoundFormat::Common), (0, 0.0)));
    assert_eq!(requests.iter().map(|(_, request)| request.bytes).sum::<u64>(), 2_643_154);
    // 04:46:46 to 05:00:20, each within its second.
    let last = requests.last().unwrap().0;
    assert!((814.0..815.0).contains(&last), "{last}");
    let mut per_second = BTreeMap::new();
    for line in NASA.lines() {
        let (_, rest) = line.split_once('[').unwrap();
        *per_second.entry(rest.split_once(']').unwrap().0).or_insert(0_u32) += 1;
    }
    let mut found = BTreeMap::new();
    for (time, _) in &requests {
        *found.entry(*time as u64).or_insert(0_u32) += 1;
    }
    assert!(per_second.values().eq(found.values()), "as many in each second");
    let clients: std::collections::BTreeSet<IpAddr> =
        requests.iter().map(|(_, request)| request.client).collect();
    assert_eq!(clients.len(), 34, "cut -d' ' -f1 | sort -u | wc -l");
    let first = |path: &str| requests.iter().any(|(time, request)| *time < 1.0 && request.path == path);
    assert!(first("/images/USA-logosmall.gif") && first("/images/WORLD-logosmall.gif"));
}

#[test]
fn a_log_is_sped_up_and_multiplied() {
    let (requests, notes) = run(&stream(log(NASA, 4.0, 3.0)), 1, f64::INFINITY);
    assert_eq!((requests.len(), notes.requests, notes.lines), (600, 600, 200));
    let last = requests.last().unwrap().0;
    assert!((814.0 / 4.0..815.0 / 4.0).contains(&last), "{last}");
    let clients: std::collections::BTreeSet<IpAddr> =
        requests.iter().map(|(_, request)| request.client).collect();
    assert_eq!(clients.len(), 3 * 34, "each copy of a client is a client of its own");
    let together = requests.windows(2).filter(|pair| pair[1].0 - pair[0].0 < 1e-6).count();
    assert!(together <= 1, "copies come at moments of their own: {together}");
    let (requests, _) = run(&stream(log(&NASA.repeat(20), 1.0, 0.3)), 1, f64::INFINITY);
    assert!((requests.len() as f64 - 1_200.0).abs() < 120.0, "{}", requests.len());
    assert!(run(&stream(log(NASA, 1.0, 0.0)), 1, f64::INFINITY).0.is_empty());
}

#[test]
fn stamps_with_fractions_are_kept() {
    let lines: String =
        (0..100).map(|n| format!("{{\"ts\": {}.{:02}, \"path\": \"/{n}\"}}\n", 1_000_000 + n, n)).collect();
    let (requests, notes) = run(&stream(log(&lines, 1.0, 1.0)), 1, f64::INFINITY);
    assert_eq!(notes.format, Some(FoundFormat::Json));
    for (n, (time, request)) in requests.iter().enumerate() {
        assert_eq!(request.path, format!("/{n}"));
        assert!((time - 1.01 * n as f64).abs() < 2e-6, "{n}: {time}");
    }
    // Copies come within a second of the line.
    let (requests, _) = run(&stream(log(&lines, 1.0, 3.0)), 1, f64::INFINITY);
    assert_eq!(requests.len(), 300);
    for (time, request) in &requests {
        let n: f64 = request.path[1..].parse().unwrap();
        assert!((-2e-6..1.0).contains(&(time - 1.01 * n)), "{n}: {time}");
    }
}

#[test]
fn a_second_with_more_lines_than_fit() {
    let line = "192.0.2.1 - - [01/Aug/1995:00:00:01 -0400] \"GET / HTTP/1.0\" 200 1\n";
    let after = "192.0.2.1 - - [01/Aug/1995:00:00:02 -0400] \"GET /after HTTP/1.0\" 200 1\n";
    let lines = line.repeat(60_000) + after;
    let stream = stream(log(&lines, 1.0, 5.0));
    let (requests, _) = run(&stream, 1, f64::INFINITY);
    assert_eq!(requests.len(), 300_005);
    for (time, request) in &requests {
        assert_eq!(*time >= 1.0, request.path == "/after", "{time}");
    }
}

#[test]
fn lines_of_all_kinds() {
    let combined = "192.0.2.1 - - [01/Aug/1995:00:00:01 -0400] \"GET http://A.example:80/x?y HTTP/1.1\" 200 1 \"-\" \"agent\"";
    let mut lines = b"\xef\xbb\xbf\ngarbage \xff\xfe\n".to_vec();
    lines.extend_from_slice(combined.as_bytes());
    lines.extend_from_slice(b"\r\n\n   \n{\"ts\": 5, \"path\": \"/no\"}\n");
    lines.extend_from_slice("x".repeat(70_000).as_bytes());
    lines.extend_from_slice(
        b"\nvhost.example:443 2001:db8::1 - - [01/Aug/1995:00:00:01 -0400] \"GET /\xe4 HTTP/1.1\" 200 -",
    );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    std::fs::write(&path, &lines).unwrap();
    let arrivals = Arrivals::log(Input::File(path.clone()), Replay::default());
    let mut source = source(&stream(arrivals), 1).unwrap();
    folder.close().unwrap();
    let (mut request, mut found) = (Request::default(), Vec::new());
    while source.next(&mut request).unwrap().is_some() {
        found.push((request.host.clone(), request.path.clone(), request.bytes));
    }
    found.sort();
    assert_eq!(
        found,
        [
            ("a.example".to_owned(), "/x".to_owned(), 1),
            ("vhost.example".to_owned(), "/\u{fffd}".to_owned(), 0),
        ]
    );
    let notes = source.notes().remove(0);
    assert_eq!((notes.lines, notes.skipped, notes.format), (8, 3, Some(FoundFormat::Combined)));
    let (number, text, why) = notes.first_skipped.unwrap();
    assert_eq!((number, text.as_str()), (2, "garbage \u{fffd}\u{fffd}"));
    assert!(why.contains("no time in brackets"), "{why}");
    assert_eq!(source.progress(), Some(1.0));
}

/// Lines that HAProxy 2.6 wrote: a page, a redirect of its own, a request that waited in its queue in vain, and the one before
/// it.
const HAPROXY: &str = r#"127.0.0.1:40156 [27/Nov/2026:17:41:05.001] web pages/one 0/0/0/1/1 200 5117 - - ---- 1/1/0/0/0 0/0 {127.0.0.1:18180} "GET /page?a=b HTTP/1.1"
127.0.0.1:40168 [27/Nov/2026:17:41:05.026] web web/<NOSRV> 0/-1/-1/-1/0 302 85 - - LR-- 1/1/0/0/0 0/0 {127.0.0.1:18180} "GET /old HTTP/1.1"
127.0.0.1:40184 [27/Nov/2026:17:41:05.261] web pages/<NOSRV> 0/501/-1/-1/501 503 217 - - sQ-- 2/2/1/0/0 0/1 {127.0.0.1:18180} "GET /slow HTTP/1.1"
127.0.0.1:40178 [27/Nov/2026:17:41:05.061] web pages/one 0/0/0/1504/1504 200 5117 - - ---- 1/1/0/0/0 0/0 {127.0.0.1:18180} "GET /slow HTTP/1.1"
"#;

#[test]
fn requests_of_haproxys_log_take_what_its_servers_did() {
    let of = |times| {
        let options = LogOptions { times, ..LogOptions::default() };
        let arrivals = Arrivals::Log {
            input: text(HAPROXY),
            format: LogFormat::Auto,
            options,
            replay: Replay::default(),
        };
        let (requests, notes) = run(&stream(arrivals), 1, f64::INFINITY);
        let took = |(_, one): (f64, Request)| (one.path, one.bytes, one.service.map(|time| time.as_millis()));
        (requests.into_iter().map(took).collect::<Vec<_>>(), notes)
    };
    let (requests, notes) = of(crate::workload::LogTimes::default());
    let request = |path: &str, time| (path.to_owned(), 5117, Some(time));
    assert_eq!(requests, [request("/page", 1), request("/slow", 1504), request("/slow", 1504)]);
    assert_eq!((notes.format, notes.own, notes.timed), (Some(FoundFormat::Haproxy), (0, 1), (3, 0)));
    assert_eq!(notes.no_load.into_iter().collect::<Vec<_>>(), [(302, 1)]);
    let (ignored, notes) = of(crate::workload::LogTimes::Ignored);
    assert!(ignored.iter().all(|(.., time)| time.is_none()) && notes.times.is_none());
}

#[test]
fn a_log_in_which_nothing_parses_is_an_error() {
    for (format, lines, expected) in [
        (LogFormat::Auto, "one\ntwo\n", vec!["2 lines", "Line 1 is `one`", "common:", "combined:", "json:"]),
        (LogFormat::Common, "{\"ts\": 1, \"path\": \"/\"}", vec!["1 lines", "common:"]),
        (LogFormat::Json(Box::default()), NASA, vec!["200 lines", "not JSON", "json:"]),
    ] {
        let replay = Replay::default();
        let arrivals = Arrivals::Log {
            input: text(lines),
            format: format.clone(),
            options: LogOptions::default(),
            replay,
        };
        let error = source(&stream(arrivals), 1).unwrap().next(&mut Request::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = error.to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
        let mut drawn = stream(Arrivals::steady(Process::Poisson, 1.0));
        drawn.content = Content::Log(text(lines), format);
        assert!(source(&drawn, 1).is_err());
    }
    let empty = source(&stream(log("\n\n", 1.0, 1.0)), 1).unwrap().next(&mut Request::default());
    assert!(empty.unwrap_err().to_string().contains("there is nothing in it"));
}

#[test]
fn a_speed_that_makes_no_sense_is_an_error() {
    for (speed, scale) in [(0.0, 1.0), (f64::NAN, 1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, f64::INFINITY)] {
        for arrivals in [log(NASA, speed, scale), counts("1", 1, speed, scale)] {
            let error = source(&stream(arrivals), 1).err().unwrap();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{speed} {scale}");
        }
    }
}

#[test]
fn service_times_of_a_log_are_true() {
    let lines = r#"{"ts": 1, "path": "/", "service_time": 0.25, "client": "192.0.2.1"}"#;
    let mut drawn = stream(Arrivals::steady(Process::Poisson, 10.0));
    drawn.content = Content::Log(text(lines), LogFormat::Auto);
    for stream in [&stream(log(lines, 1.0, 1.0)), &drawn] {
        let (requests, _) = run(stream, 1, 10.0);
        assert!(!requests.is_empty());
        for (_, request) in requests {
            assert_eq!((request.service, request.work), (Some(Duration::from_millis(250)), Some(1.0)));
        }
    }
}

#[test]
fn content_of_a_log_keeps_its_shares() {
    let mut drawn = stream(Arrivals::steady(Process::Poisson, 1_000.0));
    drawn.content = Content::Log(text(NASA), LogFormat::Auto);
    let (requests, _) = run(&drawn, 1, 200.0);
    let (mut expected, mut found) = (BTreeMap::new(), BTreeMap::new());
    for (_, request) in run(&stream(log(NASA, 1.0, 1.0)), 1, f64::INFINITY).0 {
        *expected.entry((request.path, request.bytes)).or_insert(0.0) += requests.len() as f64 / 200.0;
    }
    for (_, request) in requests {
        assert!(matches!(request.client, IpAddr::V4(_)), "clients are the stream's");
        *found.entry((request.path, request.bytes)).or_insert(0.0) += 1.0;
    }
    assert!(found.keys().eq(expected.keys()));
    for (asked, expected) in expected {
        let found: f64 = found[&asked];
        assert!((found - expected).abs() < 4.5 * expected.sqrt(), "{asked:?}: {found}, expected {expected}");
    }
    let mut source = source(&drawn, 1).unwrap();
    source.next(&mut Request::default()).unwrap();
    let notes = &source.notes()[0];
    assert_eq!((notes.lines, notes.requests, notes.format), (200, 200, Some(FoundFormat::Common)));
}

#[test]
fn a_sample_of_a_long_log_is_even() {
    // There are 250,000 requests of which 100,000 are kept; both halves must be equally likely.
    let lines: String =
        (0..250_000).map(|n| format!("{{\"ts\":{n},\"path\":\"/{}\"}}\n", n * 10 / 250_000)).collect();
    let mut drawn = stream(Arrivals::steady(Process::Deterministic, 1_000.0));
    drawn.content = Content::Log(text(&lines), LogFormat::Auto);
    let (requests, _) = run(&drawn, 1, 100.0);
    for tenth in 0..10 {
        let path = format!("/{tenth}");
        let count = requests.iter().filter(|(_, request)| request.path == path).count() as f64;
        // The requests are sampled twice, so the standard error is about sqrt(2 x 10,000).
        assert!((count - 10_000.0).abs() < 600.0, "{path}: {count}");
    }
}

/// The log's lines in an order that has nothing to do with time.
fn shuffled(log: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = log.lines().collect();
    let mut random = plimsoll_core::random::Random::new(3);
    for last in (1..lines.len()).rev() {
        lines.swap(last, random.below(last as u64 + 1) as usize);
    }
    lines
}

/// The lines sorted by their stamps alone, which sort as text in this log; the sort is stable.
fn sorted_by_stamp(mut lines: Vec<&str>) -> String {
    lines.sort_by_key(|line| line.split_once('[').map(|(_, rest)| &rest[..20]));
    joined(&lines)
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn sorting(lines: &str) -> Arrivals {
    let options = LogOptions { sort: true, ..LogOptions::default() };
    Arrivals::Log { input: text(lines), format: LogFormat::Auto, options, replay: Replay::default() }
}

#[test]
fn a_shuffled_log_is_sorted_and_then_it_is_the_sorted_log() {
    let shuffled = shuffled(NASA);
    let in_order = run(&stream(log(&sorted_by_stamp(shuffled.clone()), 1.0, 1.0)), 1, f64::INFINITY);
    let text = joined(&shuffled) + "no line of a log\n";
    let sorted = run(&stream(sorting(&text)), 1, f64::INFINITY);
    assert_eq!(sorted.0, in_order.0);
    let notes = sorted.1;
    assert_eq!((notes.lines, notes.skipped, notes.backwards, notes.requests), (201, 1, 0, 200));
    assert!(notes.sorted && (150..200).contains(&notes.moved), "{notes:?}");
    // The twin without sorting: a line that is more than a minute late cannot be put back in its place.
    let (unsorted, notes) = run(&stream(log(&text, 1.0, 1.0)), 1, f64::INFINITY);
    assert!(unsorted != in_order.0 && notes.backwards > 50, "{notes:?}");
}

#[test]
fn lines_out_of_order_within_a_minute_are_put_in_place_unasked() {
    // The lines are shuffled within each minute.
    let minute = |line: &&str| line.split_once('[').map(|(_, rest)| rest[..17].to_owned());
    let mut lines = shuffled(NASA);
    lines.sort_by_key(minute);
    let in_order = run(&stream(log(&sorted_by_stamp(lines.clone()), 1.0, 1.0)), 1, f64::INFINITY);
    let (requests, notes) = run(&stream(log(&joined(&lines), 1.0, 1.0)), 1, f64::INFINITY);
    assert_eq!(requests, in_order.0);
    assert_eq!((notes.backwards, notes.sorted), (0, false));
    assert!((50..200).contains(&notes.moved), "{notes:?}");
}

#[test]
fn times_behind_a_combined_line_are_what_requests_take_or_what_they_weigh() {
    let line = |n: u32, time: &str| {
        format!(
            "192.0.2.1 - - [01/Aug/1995:00:00:{n:02} -0400] \"GET / HTTP/1.1\" 200 1 \"-\" \"agent\" {time}\n"
        )
    };
    let lines: String =
        (0..40).map(|n| line(n, if n % 2 == 0 { "0.100 0.020" } else { "0.300 0.060" })).collect();
    let of = |options: LogOptions| {
        let input = text(&lines);
        let arrivals = Arrivals::Log { input, format: LogFormat::Auto, options, replay: Replay::default() };
        let (requests, notes) = run(&stream(arrivals), 1, f64::INFINITY);
        let all: std::collections::BTreeSet<_> = requests
            .iter()
            .map(|(_, one)| (one.service, one.work.map(|work| (work * 1e3).round() as u64)))
            .collect();
        (all.into_iter().collect::<Vec<_>>(), notes)
    };
    let ms = |ms| Some(Duration::from_millis(ms));
    let (taken, notes) = of(LogOptions::default());
    assert_eq!(taken, [(ms(20), Some(1000)), (ms(60), Some(1000))]);
    assert_eq!((notes.timed, notes.times.map(|found| found.own)), ((40, 0), Some(true)));
    let learned = logged_times((&text(&lines), &LogFormat::Auto), &LogOptions::default(), &mut |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!((learned.lines, learned.timed), (40, 40));
    assert!((learned.mean - 0.04).abs() < 1e-9, "{learned:?}");
    let (weighed, _) = of(LogOptions { weigh_by: Some(learned.mean), ..LogOptions::default() });
    assert_eq!(weighed, [(None, Some(500)), (None, Some(1500))]);
    let (ignored, notes) =
        of(LogOptions { times: crate::workload::LogTimes::Ignored, ..LogOptions::default() });
    assert_eq!((ignored, notes.timed, notes.times), (vec![(None, None)], (0, 0), None));
}

#[test]
fn the_mean_of_a_log_is_that_of_all_its_lines() {
    let line = |n: u32| {
        format!("{{\"ts\": {n}, \"path\": \"/\", \"service_time\": {}}}\n", if n < 100_000 { 1 } else { 4 })
    };
    let lines: String = (0..150_000).map(line).collect();
    let of = |watch: &mut dyn FnMut(Option<f64>) -> ControlFlow<()>| {
        logged_times((&text(&lines), &LogFormat::Auto), &LogOptions::default(), watch).unwrap()
    };
    let learned = of(&mut |_| ControlFlow::Continue(()));
    assert_eq!((learned.lines, learned.timed, learned.mean), (150_000, 150_000, 2.0));
    let stopped = of(&mut |_| ControlFlow::Break(()));
    assert!(stopped.lines < 100_000 && stopped.mean == 1.0, "{stopped:?}");
}
