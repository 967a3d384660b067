//! Compares sources with theory, and reads real logs.

mod processes;
mod recorded;

use super::*;
use crate::workload::{Input, Law, LogFormat, LogOptions, Page, Phase, Process};
use plimsoll_core::time::Duration;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// 200 lines of a real log.
const NASA: &str = include_str!("../../../tests/data/nasa-1995-08-01.log");

fn page(path: &str, weight: f64) -> Page {
    Page { host: "example.org".to_owned(), weight, ..Page::new(path, 1000.0) }
}

fn stream(arrivals: Arrivals) -> Stream {
    Stream::new("test", arrivals, vec![page("/", 1.0)], 100)
}

fn text(text: &str) -> Input {
    Input::Text(Arc::from(text))
}

fn log(lines: &str, speed: f64, scale: f64) -> Arrivals {
    Arrivals::log(text(lines), Replay { speed, scale })
}

fn counts(lines: &str, every: u64, speed: f64, scale: f64) -> Arrivals {
    let every = Duration::from_secs(every);
    Arrivals::Counts { input: text(lines), every, replay: Replay { speed, scale } }
}

fn source(stream: &Stream, seed: u64) -> io::Result<Box<dyn Source>> {
    super::source(stream, seed, Instant::FAR)
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

/// The arrival times alone, for long runs.
fn times(arrivals: Arrivals, seed: u64, until: f64) -> Vec<f64> {
    let mut source = source(&stream(arrivals), seed).unwrap();
    let mut request = Request::default();
    std::iter::from_fn(|| source.next(&mut request).unwrap())
        .map(Instant::as_secs_f64)
        .take_while(|time| *time < until)
        .collect()
}

/// The number of arrivals in each window.
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

fn processes() -> [Process; 6] {
    let (burst, calm) = (Duration::from_secs(1), Duration::from_secs(4));
    [
        Process::Poisson,
        Process::Deterministic,
        Process::Pareto { shape: 2.5 },
        Process::SelfSimilar { hurst: 0.8, sources: 50 },
        Process::Modulated { ratio: 6.0, burst, calm },
        Process::Surge { users: 200, waits: false },
    ]
}
