//! The paper's server and requests (AC, tables 1 and 2), and the stand-in for its week.
//!
//! One server, 1 ms for a quantum. There are two of it.
//!
//! **As printed**: a static object takes a quantum, a dynamic one 10 ms, and each type varies by a tenth, as the paper measured
//! (0.09 to 0.11). Disk and network are devices of their own, which are less than half busy; they are left out.
//!
//! **Harder**, where nothing else is said: a dynamic object's time is exponential, and the server waits with its disk. What
//! misses the cache (0.3) waits for the disk of 10 Mb/s: for its first 64 KB at most, since what follows is read ahead while
//! the rest is sent. The server waits with it: it is a process that reads and then writes. Sizes are not printed. With 1,500
//! bytes for a static object the disk takes a fifth of the server's time, so that the most throughput is 0.8 of the nominal
//! capacity, which is what figure 11 shows. The network of 50 Mb/s would be a tenth busy, and is left out. 1,000 connections
//! are the server's listen queue.
//!
//! The paper's log of a week is not public. The stand-in has the arrivals of the busiest week of the NASA server in
//! 1995, minute by minute, each with type and size of a request of 1 August. A week is let pass in the time in which the
//! server could answer its 567,810 requests at the wanted load, so that a day takes minutes; the hours of the day are as much
//! shorter.

use plimsoll_core::random::Random;
use plimsoll_sim::workload::{
    self, Arrivals, Content, Discipline, Input, Law, LogFormat, Page, Phase, Process, Replay, Stream,
    Workload,
};
use std::fmt::Write as _;
use std::time::Duration;

/// One quantum.
pub(crate) const QUANTUM: f64 = 0.001;
/// T, and the bound of a response.
pub(crate) const BOUND: f64 = 1.0;
const MISSES: f64 = 0.3;
const DISK_BYTES_PER_SECOND: f64 = 10e6 / 8.0;
const BLOCK_BYTES: f64 = 65_536.0;
const CONNECTIONS: usize = 1000;

/// A type of table 2.
pub(crate) struct Type {
    name: &'static str,
    path: &'static str,
    pub(crate) share: f64,
    quanta: f64,
    bytes: f64,
    variation: f64,
}

/// Dynamic objects are made, not read.
pub(crate) const TYPES: [Type; 4] = [
    Type { name: "static", path: "/page.html", share: 0.947, quanta: 1.0, bytes: 1_500.0, variation: 0.1 },
    Type { name: "dynamic", path: "/run.cgi", share: 0.05, quanta: 10.0, bytes: 0.0, variation: 1.0 },
    Type { name: "audio", path: "/sound.wav", share: 0.002, quanta: 20.0, bytes: 100_000.0, variation: 0.1 },
    Type {
        name: "video",
        path: "/film.mpg",
        share: 0.001,
        quanta: 100.0,
        bytes: 1_000_000.0,
        variation: 0.1,
    },
];

fn disk_seconds(bytes: f64) -> f64 {
    bytes.min(BLOCK_BYTES) / DISK_BYTES_PER_SECOND
}

/// Mean service time (s) of the mix as printed.
pub(crate) fn printed_service() -> f64 {
    TYPES.iter().map(|of| of.share * of.quanta * QUANTUM).sum()
}

/// Mean service time (s) of the mix.
pub(crate) fn mean_service() -> f64 {
    TYPES.iter().map(|of| of.share * (of.quanta * QUANTUM + MISSES * disk_seconds(of.bytes))).sum()
}

/// Variance (s^2) of a request's time about that of its type: what an estimate by type cannot know.
pub(crate) fn service_variance(printed: bool) -> f64 {
    let of_type = |of: &Type| {
        let quanta = of.quanta * QUANTUM;
        if printed {
            return of.share * (0.1 * quanta).powi(2);
        }
        let disk = disk_seconds(of.bytes);
        let vary = |mean: f64| (of.variation * mean).powi(2);
        let within = (1.0 - MISSES) * vary(quanta) + MISSES * vary(quanta + disk);
        of.share * (within + MISSES * (1.0 - MISSES) * disk.powi(2))
    };
    TYPES.iter().map(of_type).sum()
}

fn law(variation: f64) -> Law {
    if variation == 1.0 { Law::Exponential } else { Law::Lognormal { variation } }
}

/// A type's page: its part of the requests of this type, and what it waits for the disk.
fn page(folder: &str, of: &Type, (part, disk): (f64, f64), variation: f64) -> Page {
    Page {
        weight: of.share * part,
        service: Some(Duration::from_secs_f64(of.quanta * QUANTUM + disk)),
        service_law: Some(law(variation)),
        ..Page::new(format!("{folder}{}", of.path), of.bytes)
    }
}

/// Each type twice under one path: found in the cache, and not.
pub(crate) fn pages(folder: &str) -> Vec<Page> {
    let of_type = |of: &Type| {
        [(1.0 - MISSES, 0.0), (MISSES, disk_seconds(of.bytes))]
            .map(|part| page(folder, of, part, of.variation))
    };
    TYPES.iter().flat_map(of_type).collect()
}

pub(crate) fn stream(name: &str, arrivals: Arrivals, content: Content) -> Stream {
    Stream { content, ..Stream::new(name, arrivals, Vec::new(), 2000) }
}

pub(crate) fn poisson(rate: &[(f64, f64)]) -> Arrivals {
    let phase =
        |(from, rate): &(f64, f64)| Phase { from: Duration::from_secs_f64(*from), rate: *rate, to: None };
    Arrivals::Process { process: Process::Poisson, rate: rate.iter().map(phase).collect() }
}

pub(crate) fn plant() -> workload::Plant {
    workload::Plant::new(Discipline::Workers(1), CONNECTIONS, Duration::from_secs_f64(QUANTUM))
}

pub(crate) fn workload(streams: Vec<Stream>, seconds: Option<f64>) -> Workload {
    let duration = seconds.map(Duration::from_secs_f64);
    Workload { streams, plants: vec![plant()], versions: vec![], duration, ..Workload::default() }
}

/// The mix at this part of the server's capacity.
pub(crate) fn mix(load: f64, seconds: f64) -> Workload {
    let visitors = stream("visitors", poisson(&[(0.0, load / mean_service())]), Content::Pages(pages("")));
    workload(vec![visitors], Some(seconds))
}

/// The types as printed, under this folder.
pub(crate) fn printed_pages(folder: &str) -> Vec<Page> {
    TYPES.iter().map(|of| page(folder, of, (1.0, 0.0), 0.1)).collect()
}

/// The mix at this part of the printed server's capacity.
pub(crate) fn printed_mix(load: f64, seconds: f64) -> Workload {
    let rate = load / printed_service();
    workload(
        vec![stream("visitors", poisson(&[(0.0, rate)]), Content::Pages(printed_pages("")))],
        Some(seconds),
    )
}

/// Per minute.
const WEEK: &str = include_str!("../data/nasa-1995-week-per-minute.txt");
/// Type, bytes, how many.
const OBJECTS: &str = include_str!("../data/nasa-1995-08-01-objects.csv");

/// Requests as a log whose lines are drawn from, with their mean service time (s).
fn objects(seed: u64) -> (String, f64) {
    let mut random = Random::new(seed);
    let (mut log, mut sum, mut count) = (String::new(), 0.0, 0.0);
    for line in OBJECTS.lines().skip(1) {
        let mut fields = line.split(',');
        let mut next = || fields.next().expect("type, bytes, how many");
        let of = next();
        let of = TYPES.iter().find(|known| known.name == of).expect("one of four types");
        let bytes: f64 = next().parse().expect("a number");
        for _ in 0..next().parse().expect("a number") {
            let reads = of.bytes > 0.0 && random.uniform() < MISSES;
            let mean = of.quanta * QUANTUM + if reads { disk_seconds(bytes) } else { 0.0 };
            let service = mean * draw(of.variation, &mut random);
            (sum, count) = (sum + service, count + 1.0);
            let place = count as u64;
            writeln!(
                log,
                "{{\"time\":{place},\"path\":\"{}\",\"bytes\":{bytes},\"status\":200,\"service_time\":{service:.9}}}",
                of.path
            )
            .expect("it is a string");
        }
    }
    (log, sum / count)
}

fn draw(variation: f64, random: &mut Random) -> f64 {
    if variation == 1.0 {
        return random.exponential(1.0);
    }
    // Near enough to a normal one, of which a tenth is the deviation.
    let normal: f64 = (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0;
    1.0 + variation * normal.clamp(-5.0, 5.0)
}

/// The first hours of the stand-in week at this mean load, and how long (s) an hour of it takes.
pub(crate) fn week(load: f64, hours: usize, seed: u64) -> (Workload, f64) {
    let (log, mean_service) = objects(seed);
    let minutes: Vec<&str> = WEEK.split_whitespace().take(60 * hours).collect();
    let requests: f64 = minutes.iter().map(|count| count.parse::<f64>().expect("a number")).sum();
    let speed = load / mean_service * 60.0 * minutes.len() as f64 / requests;
    let arrivals = Arrivals::Counts {
        input: Input::Text(minutes.join("\n").into()),
        every: Duration::from_secs(60),
        replay: Replay { speed, scale: 1.0 },
    };
    let content = Content::Log(Input::Text(log.into()), LogFormat::Json(Box::default()));
    (workload(vec![stream("week", arrivals, content)], None), 3600.0 / speed)
}
