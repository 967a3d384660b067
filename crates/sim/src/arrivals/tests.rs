//! Sources against theory, and logs as they are found.

use super::*;
use crate::workload::{Clients, Input, Law, LogFormat, Page, Phase, Process};
use plimsoll_core::time::Duration;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// 200 lines of a real log.
const NASA: &str = include_str!("../../tests/data/nasa-1995-08-01.log");

fn page(path: &str, weight: f64) -> Page {
    Page {
        method: "GET".to_owned(),
        host: "example.org".to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        weight,
        bytes: 1000.0,
        bytes_law: Law::Deterministic,
        service: None,
        service_law: None,
    }
}

fn stream(arrivals: Arrivals) -> Stream {
    Stream {
        name: "test".to_owned(),
        arrivals,
        content: Content::Pages(vec![page("/", 1.0)]),
        clients: Clients { count: 100, skew: 1.0, first_address: 0x0a00_0000 },
        patience: None,
        retry: None,
    }
}

fn steady(process: Process, rate: f64) -> Arrivals {
    Arrivals::Process { process, rate: vec![Phase { from: Duration::ZERO, rate, to: None }] }
}

fn text(text: &str) -> Input {
    Input::Text(Arc::from(text))
}

fn log(lines: &str, speed: f64, scale: f64) -> Arrivals {
    Arrivals::Log { input: text(lines), format: LogFormat::Auto, replay: Replay { speed, scale } }
}

fn counts(lines: &str, every: u64, speed: f64, scale: f64) -> Arrivals {
    let every = Duration::from_secs(every);
    Arrivals::Counts { input: text(lines), every, replay: Replay { speed, scale } }
}

/// All requests of a stream, or those before a time (s); and what was noted.
fn run(stream: &Stream, seed: u64, until: f64) -> (Vec<(f64, Request)>, LogNotes) {
    let mut source = source(stream, seed).unwrap();
    let (mut request, mut all, mut last) = (Request::default(), Vec::new(), Instant::ZERO);
    while let Some(at) = source.next(&mut request).unwrap() {
        assert!(at >= last, "backwards: {at:?} after {last:?}");
        last = at;
        if at.as_secs_f64() >= until {
            break;
        }
        all.push((at.as_secs_f64(), request.clone()));
    }
    (all, source.notes().into_iter().next().unwrap_or_default())
}

/// Their times alone, for long runs.
fn times(arrivals: Arrivals, seed: u64, until: f64) -> Vec<f64> {
    let mut source = source(&stream(arrivals), seed).unwrap();
    let mut request = Request::default();
    std::iter::from_fn(|| source.next(&mut request).unwrap())
        .map(Instant::as_secs_f64)
        .take_while(|time| *time < until)
        .collect()
}

/// How many come in each window.
fn per_window(times: &[f64], window: f64, until: f64) -> Vec<f64> {
    let mut counts = vec![0.0; (until / window).round() as usize];
    for time in times {
        if let Some(count) = counts.get_mut((time / window) as usize) {
            *count += 1.0;
        }
    }
    counts
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0))
}

fn processes() -> [Process; 5] {
    let (burst, calm) = (Duration::from_secs(1), Duration::from_secs(4));
    [
        Process::Poisson,
        Process::Deterministic,
        Process::Pareto { shape: 2.5 },
        Process::SelfSimilar { hurst: 0.8, sources: 50 },
        Process::Modulated { ratio: 6.0, burst, calm },
    ]
}

#[test]
fn the_same_seed_gives_the_same_requests() {
    let ramps = vec![
        Phase { from: Duration::from_secs(1), rate: 0.0, to: Some(300.0) },
        Phase { from: Duration::from_secs(6), rate: 300.0, to: Some(0.0) },
        Phase { from: Duration::from_secs(9), rate: 0.0, to: None },
        Phase { from: Duration::from_secs(12), rate: 1000.0, to: None },
    ];
    let random = |process| Arrivals::Process { process, rate: ramps.clone() };
    let mut all: Vec<Arrivals> = processes().into_iter().map(random).collect();
    all.push(counts("5\n0\n7\n100\n", 3, 1.0, 1.5));
    all.push(log(NASA, 2.0, 2.5));
    for arrivals in all {
        let mut stream = stream(arrivals.clone());
        stream.content = Content::Pages(vec![page("/*/x", 3.0), page("/y", 1.0)]);
        let first = run(&stream, 1, 13.0);
        assert!(first.0.len() > 20, "{arrivals:?}: {}", first.0.len());
        assert!(first == run(&stream, 1, 13.0), "{arrivals:?}: the same seed, other requests");
        assert!(first.0 != run(&stream, 2, 13.0).0, "{arrivals:?}: another seed, the same requests");
    }
}

#[test]
fn times_do_not_depend_on_content() {
    let one = stream(steady(Process::Poisson, 50.0));
    let mut other = one.clone();
    other.content = Content::Pages(vec![page("/*", 1.0), page("/b", 1.0)]);
    let only_times = |stream| run(stream, 3, 20.0).0.into_iter().map(|(time, _)| time).collect::<Vec<_>>();
    assert_eq!(only_times(&one), only_times(&other));
}

#[test]
fn rates_are_as_given_on_steps_and_ramps() {
    let rate = vec![
        Phase { from: Duration::from_secs(100), rate: 100.0, to: Some(500.0) },
        Phase { from: Duration::from_secs(200), rate: 0.0, to: None },
        Phase { from: Duration::from_secs(300), rate: 400.0, to: Some(0.0) },
        Phase { from: Duration::from_secs(400), rate: 50.0, to: None },
    ];
    for process in processes() {
        // Means over seeds: a self-similar process forgets slowly.
        let mut sums = [0.0; 5];
        let runs = 8;
        for seed in 0..runs {
            let arrivals = Arrivals::Process { process, rate: rate.clone() };
            let counts = per_window(&times(arrivals, seed, 500.0), 100.0, 500.0);
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += count / runs as f64;
            }
        }
        for (found, expected) in sums.into_iter().zip([0.0, 30_000.0, 0.0, 20_000.0, 5_000.0]) {
            let share = match process {
                Process::SelfSimilar { .. } => 0.15,
                Process::Modulated { .. } => 0.1,
                _ => 0.02,
            };
            assert!((found - expected).abs() <= share * expected + 1.0, "{process:?}: {sums:?}");
        }
    }
}

#[test]
fn counts_in_long_windows_vary_as_theory_says() {
    // Variance over mean of the count in a long window. Renewal: c^2 of an interval, 1 / (a (a - 2)) for Pareto.
    // Markov-modulated with rates l1, l2, stays 1/r1, 1/r2 in them (Fischer and Meier-Hellstern 1993, eq. 21), in a
    // window much longer than both: 1 + 2 (l1 - l2)^2 r1 r2 / ((r1 + r2)^2 (l1 r2 + l2 r1)).
    let (calm, burst) = (10.0 / 2.0, 10.0 / 2.0 * 6.0);
    let (out_of_calm, out_of_burst) = (0.25, 1.0);
    let sum: f64 = out_of_calm + out_of_burst;
    let modulated = 1.0
        + 2.0 * (burst - calm) * (burst - calm) * out_of_calm * out_of_burst
            / (sum * sum * (calm * out_of_burst + burst * out_of_calm));
    for (process, window, expected) in [
        (Process::Poisson, 20.0, 1.0),
        (Process::Pareto { shape: 5.0 }, 20.0, 1.0 / 15.0),
        (processes()[4], 100.0, modulated),
    ] {
        let windows = 4_000;
        let until = window * f64::from(windows);
        let found = per_window(&times(steady(process, 10.0), 11, until), window, until);
        let (mean, variance) = mean_and_variance(&found);
        let found = variance / mean;
        // Standard error of a variance: about sqrt(2 / windows) of it, 2.2 %.
        assert!((found / expected - 1.0).abs() < 0.08, "{process:?}: {found}, expected {expected}");
        assert!((mean / (10.0 * window) - 1.0).abs() < 0.02, "{process:?}: {mean}");
    }
}

#[test]
fn intervals_of_a_poisson_process_are_exponential() {
    let times = times(steady(Process::Poisson, 100.0), 5, 2_000.0);
    let intervals: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (mean, variance) = mean_and_variance(&intervals);
    let variation = variance / (mean * mean);
    // Standard errors with 200,000 of them: 0.2 % of the mean, 0.6 % of c^2.
    assert!((mean * 100.0 - 1.0).abs() < 0.01 && (variation - 1.0).abs() < 0.03, "{mean} {variation}");
    let longer =
        intervals.iter().filter(|interval| **interval > 0.02).count() as f64 / intervals.len() as f64;
    assert!((longer - (-2.0_f64).exp()).abs() < 0.004, "{longer}");
}

#[test]
fn equal_distances() {
    let found = times(steady(Process::Deterministic, 8.0), 1, 1.05);
    assert_eq!(found, [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0]);
}

/// The slope of log variance over log window, from windows that are long against a source's period: 1 without memory,
/// 2 H for a self-similar process (Leland et al. 1994, section 3.2).
fn variance_slope(process: Process) -> f64 {
    let until = 20_000.0;
    let windows = [5.0, 10.0, 20.0, 40.0, 80.0];
    let mut variances = [0.0; 5];
    for seed in 100..104 {
        let times = times(steady(process, 50.0), seed, until);
        for (sum, window) in variances.iter_mut().zip(windows) {
            *sum += mean_and_variance(&per_window(&times, window, until)).1;
        }
    }
    let points: Vec<(f64, f64)> = windows.iter().zip(variances).map(|(w, v)| (w.ln(), v.ln())).collect();
    let count = points.len() as f64;
    let (x, y) =
        (points.iter().map(|p| p.0).sum::<f64>() / count, points.iter().map(|p| p.1).sum::<f64>() / count);
    points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>()
        / points.iter().map(|p| (p.0 - x).powi(2)).sum::<f64>()
}

#[test]
fn self_similar_arrivals_stay_bursty_over_long_times() {
    let poisson = variance_slope(Process::Poisson);
    let mild = variance_slope(Process::SelfSimilar { hurst: 0.6, sources: 25 });
    let wild = variance_slope(Process::SelfSimilar { hurst: 0.9, sources: 25 });
    assert!((poisson - 1.0).abs() < 0.06, "{poisson}");
    assert!((1.1..1.45).contains(&mild), "H = 0.6: {mild}, expected about 1.2");
    assert!((1.6..1.95).contains(&wild), "H = 0.9: {wild}, expected about 1.8");
}

#[test]
fn one_self_similar_source_and_rates_beyond_reason() {
    assert!(times(steady(Process::SelfSimilar { hurst: 0.7, sources: 0 }, 10.0), 2, 5_000.0).len() > 1_000);
    // 10^12 a second: thousands share a nanosecond.
    let mut source = source(&stream(steady(Process::Poisson, 1e12)), 1).unwrap();
    let mut last = None;
    for _ in 0..100_000 {
        last = source.next(&mut Request::default()).unwrap();
    }
    assert!((50..200).contains(&last.unwrap().as_nanos()), "{last:?}");
    // One in 30,000 years is never.
    assert!(times(steady(Process::Deterministic, 1e-12), 1, f64::INFINITY).is_empty());
    // States that last no time.
    let nothing = Process::Modulated { ratio: 5.0, burst: Duration::ZERO, calm: Duration::ZERO };
    assert!(times(steady(nothing, 100.0), 1, 10.0).len() > 800);
}

#[test]
fn clients_share_the_stream_as_the_skew_says() {
    for (skew, expected) in [(1.0, 0.25), (2.0, 0.5), (4.0, 0.25_f64.powf(0.25))] {
        let mut stream = stream(steady(Process::Poisson, 1_000.0));
        stream.clients.skew = skew;
        let (requests, _) = run(&stream, 1, 100.0);
        let place = |request: &Request| match request.client {
            IpAddr::V4(address) => u32::from(address) - 0x0a00_0000,
            IpAddr::V6(_) => unreachable!("generated clients are IPv4"),
        };
        assert!(requests.iter().all(|(_, request)| place(request) < 100));
        let first_quarter = requests.iter().filter(|(_, request)| place(request) < 25).count();
        let share = first_quarter as f64 / requests.len() as f64;
        assert!((share - expected).abs() < 0.006, "{skew}: {share}, expected {expected}");
    }
}

#[test]
fn pages_bring_what_they_say() {
    let mut first = page("/item/*/view", 3.0);
    first.headers = vec![("accept".to_owned(), "image/avif".to_owned())];
    first.service = Some(Duration::from_millis(7));
    first.service_law = Some(Law::Exponential);
    first.bytes_law = Law::Exponential;
    let mut stream = stream(steady(Process::Poisson, 1_000.0));
    stream.content = Content::Pages(vec![first.clone(), page("/b", 1.0)]);
    let (requests, _) = run(&stream, 4, 50.0);
    let (ours, others): (Vec<_>, Vec<_>) = requests.iter().map(|(_, r)| r).partition(|r| r.path != "/b");
    let share = ours.len() as f64 / requests.len() as f64;
    assert!((share - 0.75).abs() < 0.01, "{share}");
    assert!(
        ours.iter()
            .all(|r| r.headers == first.headers && r.service == first.service && r.host == "example.org")
    );
    assert!(
        others
            .iter()
            .all(|r| r.headers.is_empty() && r.service.is_none() && r.work.is_none() && r.bytes == 1000)
    );
    let mean = |of: &dyn Fn(&Request) -> f64| ours.iter().map(|r| of(r)).sum::<f64>() / ours.len() as f64;
    assert!((mean(&|r| r.bytes as f64) / 1000.0 - 1.0).abs() < 0.025);
    assert!((mean(&|r| r.work.unwrap()) - 1.0).abs() < 0.025);
    let mut numbers: Vec<u32> = Vec::new();
    for request in &ours {
        let number = request.path.strip_prefix("/item/").and_then(|rest| rest.strip_suffix("/view")).unwrap();
        assert!(number == "0" || !number.starts_with('0'), "{number}");
        numbers.push(number.parse().unwrap());
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!((numbers.len(), numbers[0], numbers[999]), (1000, 0, 999));
}

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
    // Uniform in their interval: mean and variance of a uniform number, with standard errors of 0.03 and 0.075.
    let (mean, variance) = mean_and_variance(&times[..10_000]);
    assert!((mean - 5.0).abs() < 0.12 && (variance - 100.0 / 12.0).abs() < 0.3, "{mean} {variance}");
    // A fraction is drawn by chance.
    let ones = "1 ".repeat(20_000);
    let (requests, _) = run(&stream(counts(&ones, 1, 1.0, 0.3)), 1, f64::INFINITY);
    assert!((requests.len() as f64 - 6_000.0).abs() < 260.0, "{}", requests.len());
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
    // Copies come within a second of it.
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
    let path = std::env::temp_dir().join(format!("plimsoll-lines-{}", std::process::id()));
    std::fs::write(&path, &lines).unwrap();
    let arrivals = Arrivals::Log {
        input: Input::File(path.clone()),
        format: LogFormat::Auto,
        replay: Replay::default(),
    };
    let mut source = source(&stream(arrivals), 1).unwrap();
    std::fs::remove_file(&path).unwrap();
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

#[test]
fn a_log_in_which_nothing_parses_is_an_error() {
    for (format, lines, expected) in [
        (LogFormat::Auto, "one\ntwo\n", vec!["2 lines", "Line 1 is `one`", "common:", "combined:", "json:"]),
        (LogFormat::Common, "{\"ts\": 1, \"path\": \"/\"}", vec!["1 lines", "common:"]),
        (LogFormat::Json(Box::default()), NASA, vec!["200 lines", "not JSON", "json:"]),
    ] {
        let replay = Replay::default();
        let arrivals = Arrivals::Log { input: text(lines), format: format.clone(), replay };
        let error = source(&stream(arrivals), 1).unwrap().next(&mut Request::default()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = error.to_string();
        assert!(expected.iter().all(|part| error.contains(part)), "{error}");
        let mut drawn = stream(steady(Process::Poisson, 1.0));
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
    let mut drawn = stream(steady(Process::Poisson, 10.0));
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
    let mut drawn = stream(steady(Process::Poisson, 1_000.0));
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
    // 250,000 requests: the halves must be as likely as each other, though 100,000 are kept.
    let lines: String =
        (0..250_000).map(|n| format!("{{\"ts\":{n},\"path\":\"/{}\"}}\n", n * 10 / 250_000)).collect();
    let mut drawn = stream(steady(Process::Deterministic, 1_000.0));
    drawn.content = Content::Log(text(&lines), LogFormat::Auto);
    let (requests, _) = run(&drawn, 1, 100.0);
    for tenth in 0..10 {
        let path = format!("/{tenth}");
        let count = requests.iter().filter(|(_, request)| request.path == path).count() as f64;
        // Sampled twice: standard error about sqrt(2 x 10,000).
        assert!((count - 10_000.0).abs() < 600.0, "{path}: {count}");
    }
}
