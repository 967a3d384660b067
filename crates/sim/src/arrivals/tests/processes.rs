//! Arrivals by a process: rates, variances, intervals, clients and pages.

use super::*;

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
    let one = stream(Arrivals::steady(Process::Poisson, 50.0));
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
        // Means over seeds are compared, because a self-similar process has a long memory.
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
                Process::SelfSimilar { .. } | Process::Surge { .. } => 0.15,
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
        let found = per_window(&times(Arrivals::steady(process, 10.0), 11, until), window, until);
        let (mean, variance) = mean_and_variance(&found);
        let found = variance / mean;
        // The standard error of a variance is about sqrt(2 / windows) of it, 2.2 %.
        assert!((found / expected - 1.0).abs() < 0.08, "{process:?}: {found}, expected {expected}");
        assert!((mean / (10.0 * window) - 1.0).abs() < 0.02, "{process:?}: {mean}");
    }
}

#[test]
fn intervals_of_a_poisson_process_are_exponential() {
    let times = times(Arrivals::steady(Process::Poisson, 100.0), 5, 2_000.0);
    let intervals: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (mean, variance) = mean_and_variance(&intervals);
    let variation = variance / (mean * mean);
    // With 200,000 intervals the standard errors are 0.2 % of the mean and 0.6 % of c^2.
    assert!((mean * 100.0 - 1.0).abs() < 0.01 && (variation - 1.0).abs() < 0.03, "{mean} {variation}");
    let longer =
        intervals.iter().filter(|interval| **interval > 0.02).count() as f64 / intervals.len() as f64;
    assert!((longer - (-2.0_f64).exp()).abs() < 0.004, "{longer}");
}

#[test]
fn equal_distances() {
    let found = times(Arrivals::steady(Process::Deterministic, 8.0), 1, 1.05);
    assert_eq!(found, [0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875, 1.0]);
}

/// The slope of log variance over log window, from windows that are long against a source's period: 1 without memory,
/// 2 H for a self-similar process (Leland et al. 1994, section 3.2).
fn variance_slope(process: Process) -> f64 {
    let until = 20_000.0;
    let windows = [5.0, 10.0, 20.0, 40.0, 80.0];
    let mut variances = [0.0; 5];
    for seed in 100..104 {
        let times = times(Arrivals::steady(process, 50.0), seed, until);
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
    // Inactive times of tail 1.5 make H = 0.75 over windows that are long against a user's times.
    let surge = variance_slope(Process::Surge { users: 180, waits: false });
    assert!((1.2..1.7).contains(&surge), "SURGE: {surge}, expected about 1.5");
    assert!((poisson - 1.0).abs() < 0.06, "{poisson}");
    assert!((1.1..1.45).contains(&mild), "H = 0.6: {mild}, expected about 1.2");
    assert!((1.6..1.95).contains(&wild), "H = 0.9: {wild}, expected about 1.8");
}

#[test]
fn one_self_similar_source_and_rates_beyond_reason() {
    assert!(
        times(Arrivals::steady(Process::SelfSimilar { hurst: 0.7, sources: 0 }, 10.0), 2, 5_000.0).len()
            > 1_000
    );
    // At 10^12 requests a second, thousands share a nanosecond.
    let mut source = source(&stream(Arrivals::steady(Process::Poisson, 1e12)), 1).unwrap();
    let mut last = None;
    for _ in 0..100_000 {
        last = source.next(&mut Request::default()).unwrap();
    }
    assert!((50..200).contains(&last.unwrap().as_nanos()), "{last:?}");
    // A request in 30,000 years never comes.
    assert!(times(Arrivals::steady(Process::Deterministic, 1e-12), 1, f64::INFINITY).is_empty());
    // The states of this process last no time.
    let nothing = Process::Modulated { ratio: 5.0, burst: Duration::ZERO, calm: Duration::ZERO };
    assert!(times(Arrivals::steady(nothing, 100.0), 1, 10.0).len() > 800);
}

#[test]
fn clients_share_the_stream_as_the_skew_says() {
    for (skew, expected) in [(1.0, 0.25), (2.0, 0.5), (4.0, 0.25_f64.powf(0.25))] {
        let mut stream = stream(Arrivals::steady(Process::Poisson, 1_000.0));
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
    let mut stream = stream(Arrivals::steady(Process::Poisson, 1_000.0));
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
