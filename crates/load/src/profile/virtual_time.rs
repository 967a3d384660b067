//! The profiler in virtual time: the same search on the origin's own plant, driven by events instead of sockets and clocks. Its
//! results are judged by the plant's true costs; a seed determines all randomness.

use super::fit::{Fit, Point};
use super::overload::{Overload, Undisturbed};
use super::reading::Reading;
use super::search::{Bench, Highest, OpenWindow, Window, highest};
use super::stage::{BEGIN, END, PARTS, slope};
use super::{Ended, Profile};
use crate::Random;
use crate::arrivals::PoissonArrivals;
use crate::origin::plant::{EndedJob, Plant, PlantShape};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

const MOST_CLIENTS: u32 = 256;
const WORKERS: u32 = 8;
/// The travel time to the server and back (ns).
const ROUND_TRIP: u64 = 200_000;

/// A server of known costs, all in nanoseconds.
#[derive(Clone)]
struct Server {
    service: u64,
    /// A worker's time for a request that finds no room.
    refusal: u64,
    queue: usize,
    bytes: f64,
    /// The time after which a client of the open loop gives up.
    timeout: u64,
    speed: f64,
}

impl Server {
    fn of(service_seconds: f64, bytes: f64) -> Server {
        let service = nanoseconds(service_seconds);
        Server { service, refusal: 0, queue: 511, bytes, timeout: nanoseconds(1.0), speed: 1.0 }
    }

    fn plant(&self) -> Plant<u64> {
        let shape = PlantShape { workers: WORKERS, queue: self.queue, exponential: None };
        let mut plant = Plant::new(shape);
        plant.set_speed(0, self.speed);
        plant
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// The requests of one load: when each arrives, and for each answer, when it came and when its request was sent.
struct Run {
    plant: Plant<u64>,
    arrivals: BinaryHeap<Reverse<u64>>,
    /// For each answer, when it came and when its request was sent.
    answers: Vec<(u64, u64)>,
    /// The times at which requests were refused.
    refused: Vec<u64>,
}

impl Run {
    /// Runs the load until `until`; a client of a closed loop sends its next request after each answer or refusal.
    fn play(server: &Server, arrivals: BinaryHeap<Reverse<u64>>, closed: bool, until: u64) -> Run {
        let mut run = Run { plant: server.plant(), arrivals, answers: Vec::new(), refused: Vec::new() };
        let mut ended: Vec<EndedJob<u64>> = Vec::new();
        loop {
            let arrival = run.arrivals.peek().map(|Reverse(at)| *at);
            let Some(now) = arrival.into_iter().chain(run.plant.next_end()).min().filter(|now| *now <= until)
            else {
                run.plant.advance(until, &mut ended);
                return run;
            };
            run.plant.advance(now, &mut ended);
            for answer in ended.drain(..) {
                run.answers.push((answer.at_ns, answer.payload));
                if closed {
                    run.arrivals.push(Reverse(answer.at_ns + ROUND_TRIP));
                }
            }
            if arrival == Some(now) {
                run.arrivals.pop();
                if run.plant.arrive(now, server.service, now).is_err() {
                    run.plant.waste(now, server.refusal);
                    run.refused.push(now);
                    if closed {
                        run.arrivals.push(Reverse(now + ROUND_TRIP));
                    }
                }
            }
        }
    }
}

impl Bench for Server {
    fn closed(&mut self, clients: u32, length: f64) -> Result<Window, Ended> {
        let first = (0..clients).map(|_| Reverse(0)).collect();
        let run = Run::play(self, first, true, nanoseconds(length));
        let moment = |part: u32| length * (BEGIN + (1.0 - BEGIN - END) * f64::from(part) / f64::from(PARTS));
        let reading = |part: u32| {
            let mut reading = Reading { at: moment(part), ..Reading::default() };
            let ends = run.answers.iter().map(|(end, _)| seconds(*end));
            ends.filter(|end| *end <= moment(part)).for_each(|end| reading.add_answer(end, 0.0));
            reading
        };
        let readings: Vec<_> = (0..=PARTS).map(reading).collect();
        let rate = |from: usize, until: usize| readings[until].rate(&readings[from]);
        let failed = run.refused.len() as f64 / (run.refused.len() + run.answers.len()).max(1) as f64;
        let responses: f64 = run.answers.iter().map(|(end, sent)| seconds(end - sent + ROUND_TRIP)).sum();
        Ok(Window {
            rate: rate(0, PARTS as usize),
            parts: (0..PARTS as usize).map(|part| rate(part, part + 1)).collect(),
            bytes: self.bytes,
            failed,
            response_seconds: Some(responses / run.answers.len() as f64),
            ..Window::default()
        })
    }

    fn open(&mut self, rate: f64, length: f64) -> Result<OpenWindow, Ended> {
        let steps = vec![(Duration::from_secs_f64(length), rate)];
        let arrivals: Vec<u64> =
            PoissonArrivals::new(steps, Random::new(1)).map(|due| due.as_nanos() as u64).collect();
        let first = arrivals.iter().map(|at| Reverse(*at)).collect();
        let run = Run::play(self, first, false, nanoseconds(length));
        let (begin, end) = (nanoseconds(length * BEGIN), nanoseconds(length * (1.0 - END)));
        let in_window = |at: &u64| (begin..end).contains(at);
        let timely = |(end, sent): &&(u64, u64)| end - sent <= self.timeout;
        let good = run.answers.iter().filter(timely).filter(|(end, _)| in_window(end)).count() as f64;
        // A request that is neither answered nor refused in time counts as failed then.
        let mut settled: Vec<u64> = run.answers.iter().filter(timely).map(|(_, sent)| *sent).collect();
        settled.extend(&run.refused);
        settled.sort_unstable();
        let late = arrivals.iter().filter(|sent| settled.binary_search(sent).is_err());
        let late = late.map(|sent| sent + self.timeout).filter(|at| in_window(at)).count();
        let failed = (run.refused.iter().filter(|at| in_window(at)).count() + late) as f64;
        let under_way = |at: u64| {
            let gone =
                run.answers.iter().map(|(end, _)| end).chain(&run.refused).filter(|end| **end <= at).count();
            arrivals.partition_point(|sent| *sent <= at) as f64 - gone as f64
        };
        let points: Vec<_> = (0..50)
            .map(|step| begin + (end - begin) * step / 50)
            .map(|at| (seconds(at), under_way(at)))
            .collect();
        let window = seconds(end - begin);
        Ok(OpenWindow {
            rate: good / window,
            bytes_per_second: good * self.bytes / window,
            failures: failed / window,
            growth: slope(&points),
            ..OpenWindow::default()
        })
    }
}

fn close(what: &str, value: f64, wanted: f64, part: f64) {
    println!("{what}: {value:.4e}, truth {wanted:.4e}, {:+.2} %", (value / wanted - 1.0) * 100.0);
    assert!((value / wanted - 1.0).abs() < part, "{what} is {value:e}, not {wanted:e}");
}

const KILOBYTES: [f64; 4] = [1.0, 16.0, 64.0, 128.0];

/// Profiles a server of 6 ms and 0.1 ms a KB in the way of a real profile: each size, then rejections of 3 ms.
fn profile() -> Profile {
    let find = |mut server: Server| highest(&mut server, 4.0, MOST_CLIENTS).unwrap();
    let found = KILOBYTES.map(|kb| find(Server::of(6e-3 + 1e-4 * kb, kb * 1024.0)));
    let point = |found: &Highest| Point { bytes: found.bytes, seconds: found.service_seconds() };
    let fit = Fit::of(&found.iter().map(point).collect::<Vec<_>>());
    let rejecting = Some(find(Server::of(3e-3, 0.0)));
    let highest = found.into();
    Profile { highest, rejecting, overload: None, fit, ended: Ended::Complete, requests: 0 }
}

#[test]
fn a_b_and_c_are_right_within_three_percent() {
    let profile = profile();
    let workers = f64::from(WORKERS);
    for (found, kb) in profile.highest.iter().zip(KILOBYTES) {
        close(&format!("rate at {kb} KB"), found.rate, workers / (6e-3 + 1e-4 * kb), 0.03);
        assert!(found.sustained.is_some(), "{found:?}");
    }
    let Fit { per_request_seconds, per_byte_seconds, link_per_byte_seconds } = profile.fit.unwrap();
    close("a", per_request_seconds, 6e-3 / workers, 0.03);
    close("b", per_byte_seconds, 1e-4 / 1024.0 / workers, 0.03);
    close("c", profile.rejecting.as_ref().unwrap().service_seconds(), 3e-3 / workers, 0.03);
    assert_eq!(link_per_byte_seconds, None, "no link binds this server");
    assert_eq!(profile.workers(), Some(WORKERS));
    assert!((6..=32).contains(&profile.busy_clients().unwrap()), "{:?}", profile.busy_clients());
    // The twin: a server that is a twentieth slower must be found to differ.
    let slower = highest(&mut Server::of(1.05 * 6.1e-3, 1024.0), 4.0, MOST_CLIENTS).unwrap();
    assert!((slower.rate * 6.1e-3 / workers - 1.0).abs() > 0.03, "{slower:?}");
}

/// Overloads a server with one size, 16 ms of one of 8 workers, at twice its rate.
fn failing(server: Server, seconds: f64) -> Overload {
    let mut server = Server { service: nanoseconds(16e-3), ..server };
    // As many clients as find room: in a closed loop a refused client retries at once, so refusals would take all of the
    // server.
    let found = highest(&mut server, seconds, 32).unwrap();
    let again = server.closed(32, seconds).unwrap();
    let undisturbed = Undisturbed::of(&found, &again);
    let offered = 2.0 * undisturbed.rate;
    let open = server.open(offered, seconds).unwrap();
    let fit = Fit::of(&[Point { bytes: found.bytes, seconds: found.service_seconds() }]).unwrap();
    let overload = Overload::of((0, &found), undisturbed, &fit, offered, &open);
    println!("{overload:?}");
    overload
}

#[test]
fn failures_of_a_full_queue_cost_nothing() {
    let overload = failing(Server { queue: 32, ..Server::of(0.0, 1024.0) }, 2.0);
    assert!(overload.failed > 0.7 * overload.answered, "twice the rate fails half of it: {overload:?}");
    assert!(overload.per_failure_seconds.unwrap() < 0.1 * 16e-3 / f64::from(WORKERS), "{overload:?}");
}

/// UC 7.5: a server that spends 4 ms of a worker on each client for which it has no room.
#[test]
fn what_a_failure_costs_is_right_within_ten_percent() {
    let server = Server { queue: 32, refusal: nanoseconds(4e-3), ..Server::of(0.0, 1024.0) };
    let overload = failing(server, 4.0);
    // X' 16 + F 4 = 8000 and X' + F = 1000: a third is answered.
    let answered = overload.answered / overload.offered;
    assert!((0.30..0.37).contains(&answered), "{answered:.3} answered: {overload:?}");
    close("T_f", overload.per_failure_seconds.unwrap(), 4e-3 / f64::from(WORKERS), 0.1);
}

/// A server that works on requests whose clients have left. If its queue is longer than their patience, every client has left
/// when its turn comes. All of the server is then wasted on twice as many requests as it can serve, so T_f is half of an
/// answer's cost.
#[test]
fn work_for_clients_that_left_is_a_cost_of_failures() {
    let overload = failing(Server { queue: 100_000, ..Server::of(0.0, 1024.0) }, 12.0);
    assert!(overload.answered < 0.05 * overload.offered, "{overload:?}");
    close("T_f", overload.per_failure_seconds.unwrap(), 0.5 * 16e-3 / f64::from(WORKERS), 0.1);
}

/// 24 clients keep eight workers of 8 ms busy, first come first served; at half the speed they get half as much.
#[test]
fn eight_workers_of_eight_milliseconds_do_a_thousand_a_second() {
    let (from, until) = (nanoseconds(0.3), nanoseconds(2.3));
    for speed in [1.0, 0.5] {
        let server = Server { speed, ..Server::of(8e-3, 1024.0) };
        let clients = || (0..24).map(|_| Reverse(0)).collect();
        let mut early = Run::play(&server, clients(), true, from);
        let mut run = Run::play(&server, clients(), true, until);
        let rate = run.answers.iter().filter(|(end, _)| *end > from).count() as f64 / 2.0;
        let utilization = run.plant.busy(until).utilization_since(&early.plant.busy(from));
        assert!((970.0 * speed..=1030.0 * speed).contains(&rate), "{rate:.1}/s at speed {speed}");
        assert!((0.97..=1.0).contains(&utilization), "busy {utilization:.4}");
    }
}
