//! The true servers against queueing theory: means of response times within 2 %, variances within 5 %, run until the
//! 95 % interval is half of that on each side. Driven by arrivals alone; no engine has a hand in it.

mod estimate;
mod formulas;
mod service;

use estimate::{BATCH, Batch, Claim, judge, mean, replay, variance};
use formulas::{Response, mg1, mg1_shared, mm1, mm1_shared, mm1k_loss, mmk};
use plimsoll_core::random::Random;
use plimsoll_core::time::{Duration, Instant};
use plimsoll_sim::workload::{Discipline, Plant};
use plimsoll_sim::{Overflow, Server, Work};
use service::Service;

/// Mean service time (s).
const MEAN: f64 = 0.001;
const MU: f64 = 1.0 / MEAN;
const EXPONENTIAL: Service = Service::Exponential { mean: MEAN };
const DETERMINISTIC: Service = Service::Deterministic { mean: MEAN };
/// Squared coefficient of variation 1.5; mean 1.27 ms.
const PARETO: Service = Service::BoundedPareto { shape: 1.5, least: 0.000_5, most: 0.02 };
/// Squared coefficient of variation e^0.64 - 1 = 0.9; mean 1 ms.
const LOGNORMAL: Service = Service::Lognormal { log_mean: -7.227_755, log_deviation: 0.8 };
/// On the link, bytes take as long as service takes: 10^9 bytes/s.
const NS: f64 = 1e9;

const FIRST_COME: Discipline = Discipline::Workers(1);
const SHARED: Discipline = Discipline::Sharing { cores: 1, most: u32::MAX };

fn plant(discipline: Discipline) -> Plant {
    Plant::new(discipline, usize::MAX, Duration::ZERO)
}

/// Poisson arrivals at a server.
struct Queue {
    server: Server,
    service: Service,
    /// Bytes are drawn, too.
    link: bool,
    /// Mean interval (ns).
    interval: f64,
    random: Random,
    now: f64,
    /// By a job's number, which is used again.
    arrived: Vec<Instant>,
    free: Vec<u64>,
}

impl Queue {
    fn new(truth: &Plant, service: Service, lambda: f64, seed: u64) -> Self {
        Queue {
            server: Server::new(truth),
            service,
            link: truth.link.is_some(),
            interval: NS / lambda,
            random: Random::new(seed),
            now: 0.0,
            arrived: Vec::new(),
            free: Vec::new(),
        }
    }

    /// The next arrival; what is done before it is told.
    fn arrive(&mut self, mut done: impl FnMut(Duration)) -> Result<(), Overflow> {
        self.now += self.random.exponential(self.interval);
        let now = Instant::from_nanos(self.now as u64);
        while self.server.due() <= now {
            let at = self.server.due();
            if let Some(end) = self.server.step(at) {
                done(at.since(self.arrived[end.job as usize]));
                self.free.push(end.job);
            }
        }
        let service = Duration::from_nanos((NS * self.service.draw(&mut self.random)).round() as u64);
        let bytes = if self.link { (NS * self.service.draw(&mut self.random)).round() as u64 } else { 0 };
        let job = self.free.pop().unwrap_or(self.arrived.len() as u64);
        if job as usize == self.arrived.len() {
            self.arrived.push(now);
        }
        self.arrived[job as usize] = now;
        let taken = self.server.offer(now, job, Work { service, bytes });
        if taken.is_err() {
            self.free.push(job);
        }
        taken
    }

    /// Response times (s) of a batch of arrivals.
    fn responses(&mut self) -> Batch {
        let mut batch = Batch::default();
        while batch.count < BATCH {
            self.arrive(|response| batch.add(response.as_secs_f64())).expect("there is always room");
        }
        batch
    }

    /// How many arrivals of each batch were lost.
    fn losses(&mut self) -> Batch {
        let mut batch = Batch::default();
        for _ in 0..BATCH {
            batch.add(f64::from(u8::from(self.arrive(|_| {}).is_err())));
        }
        batch
    }
}

/// Whether a server's response times are as theory says.
fn compare(
    truth: &Plant,
    service: Service,
    lambda: f64,
    theory: Response,
    seed: u64,
) -> Result<usize, String> {
    let mut queue = Queue::new(truth, service, lambda, seed);
    let mut claims = vec![Claim { what: "mean", theory: theory.mean, bound: 0.02, of: mean }];
    if let Some(expected) = theory.variance {
        claims.push(Claim { what: "variance", theory: expected, bound: 0.05, of: variance });
    }
    judge(&claims, || queue.responses()).map_err(|why| format!("{why}{}", replay(seed)))
}

/// At half and at four fifths of the capacity, or says which is not as theory says.
fn holds(truth: &Plant, service: Service, theory: impl Fn(f64) -> Response, seed: u64) {
    for rho in [0.5, 0.8] {
        let lambda = rho * f64::from(truth.discipline.servers()) / service.moments()[0];
        match compare(truth, service, lambda, theory(lambda), seed) {
            Ok(batches) => println!("rho {rho}: {batches} batches"),
            Err(why) => panic!("rho {rho}: {why}"),
        }
    }
}

#[test]
fn mm1_first_come() {
    holds(&plant(FIRST_COME), EXPONENTIAL, |lambda| mm1(lambda, MU), 1);
}

#[test]
fn md1_first_come() {
    holds(&plant(FIRST_COME), DETERMINISTIC, |lambda| mg1(lambda, DETERMINISTIC.moments()), 2);
}

#[test]
fn mm2_first_come() {
    holds(&plant(Discipline::Workers(2)), EXPONENTIAL, |lambda| mmk(lambda, MU, 2), 3);
}

#[test]
fn mm8_first_come() {
    holds(&plant(Discipline::Workers(8)), EXPONENTIAL, |lambda| mmk(lambda, MU, 8), 4);
}

/// Under heavy tails the variance would take too long to estimate: it depends on the sixth moment.
fn mean_alone(response: Response) -> Response {
    Response { variance: None, ..response }
}

#[test]
fn mg1_with_a_bounded_pareto() {
    holds(&plant(FIRST_COME), PARETO, |lambda| mean_alone(mg1(lambda, PARETO.moments())), 5);
}

#[test]
fn mg1_with_a_lognormal() {
    holds(&plant(FIRST_COME), LOGNORMAL, |lambda| mean_alone(mg1(lambda, LOGNORMAL.moments())), 6);
}

#[test]
fn mm1_shared_evenly() {
    holds(&plant(SHARED), EXPONENTIAL, |lambda| mm1_shared(lambda, MU), 7);
}

#[test]
fn md1_shared_evenly_has_the_same_mean() {
    holds(&plant(SHARED), DETERMINISTIC, |lambda| mg1_shared(lambda, MEAN), 8);
}

#[test]
fn mg1_shared_evenly_has_the_same_mean() {
    holds(&plant(SHARED), PARETO, |lambda| mg1_shared(lambda, PARETO.moments()[0]), 9);
}

/// How many are there follows the same law as with workers; so does the mean, by Little.
#[test]
fn two_cores_shared_have_the_mean_of_two_workers() {
    let cores = Discipline::Sharing { cores: 2, most: u32::MAX };
    holds(&plant(cores), EXPONENTIAL, |lambda| mean_alone(mmk(lambda, MU, 2)), 10);
}

/// What leaves an M/M/1 is Poisson (Burke 1956), so the link behind it is M/M/1, shared; both together as if apart.
#[test]
fn a_link_in_series_adds_its_own_response_time() {
    let truth = Plant { link: Some(NS), ..plant(FIRST_COME) };
    let both = |lambda| Response { mean: 2.0 * mm1(lambda, MU).mean, variance: None };
    holds(&truth, EXPONENTIAL, both, 11);
}

/// Another system's formula is told apart, in mean and in variance.
#[test]
fn a_wrong_formula_is_refused() {
    let lambda = 0.8 * MU;
    let (right, wrong) = (mg1(lambda, DETERMINISTIC.moments()), mm1(lambda, MU));
    let refused = |truth: &Plant, theory| compare(truth, DETERMINISTIC, lambda, theory, 12);
    let one = plant(FIRST_COME);
    assert_eq!(refused(&one, right).err(), None);
    let why = refused(&one, Response { variance: None, ..wrong }).expect_err("the mean is M/M/1's");
    assert!(why.contains("mean: ") && why.contains("seed 12, commit "), "{why}");
    let why =
        refused(&one, Response { variance: wrong.variance, ..right }).expect_err("the variance is M/M/1's");
    assert!(why.contains("variance: ") && !why.contains("mean: "), "{why}");
    // Just outside the bounds, on both sides.
    for factor in [0.965, 1.035] {
        let near = Response { mean: factor * right.mean, variance: None };
        assert!(refused(&one, near).is_err(), "{factor}");
    }
    for factor in [0.91, 1.09] {
        let near = Response { variance: right.variance.map(|v| factor * v), ..right };
        assert!(refused(&one, near).is_err(), "{factor}");
    }
    let shared = plant(SHARED);
    assert!(refused(&shared, Response { variance: None, ..right }).is_err(), "shared is not first come");
}

#[test]
fn a_finite_queue_loses_as_mm1k_does() {
    let loss = |rho: f64, places: usize, theory: f64| {
        let truth = Plant { listen_queue: places - 1, ..plant(FIRST_COME) };
        let mut queue = Queue::new(&truth, EXPONENTIAL, rho * MU, 13);
        let claim = Claim { what: "loss", theory, bound: 0.03, of: mean };
        judge(&[claim], || queue.losses()).map_err(|why| format!("rho {rho}: {why}{}", replay(13)))
    };
    for (rho, places) in [(0.5, 3), (0.8, 8), (1.5, 2)] {
        let theory = mm1k_loss(rho, places as i32);
        assert_eq!(loss(rho, places, theory).err(), None);
        assert!(loss(rho, places + 1, theory).is_err(), "one place more is told apart");
    }
}

/// UC, tables 1 and 3: a = 1.604 ms, b = 0.063 ms/KB of the server, b' = 0.093 ms/KB of the link. Clients who ask again
/// at once find its highest throughput, 1 / max(a + b x, b' x). (With arrivals that do not wait, an overloaded link would
/// end less than it can: see Jean-Marie and Robert 1994.)
#[test]
fn two_resources_bound_the_throughput() {
    let (fixed, per_kb, link_per_kb) = (1.604e-3, 0.063e-3, 0.093e-3);
    let truth = Plant { link: Some(1.0 / link_per_kb), ..plant(FIRST_COME) };
    let mut bounds = [0, 0];
    for size in [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] {
        let x = f64::from(size);
        let (service, transfer) = (fixed + per_kb * x, link_per_kb * x);
        bounds[usize::from(transfer > service)] += 1;
        let work = Work { service: Duration::from_secs_f64(service), bytes: size as u64 };
        let (rate, busy) = highest_throughput(&truth, work);
        let theory = 1.0 / service.max(transfer);
        assert!((rate / theory - 1.0).abs() < 0.01, "{size} KB: {rate} per second, not {theory}");
        // U = max(a R + b W, b' W) = 1, and each resource is busy for its own part of it.
        let expected = [service * theory, transfer * theory];
        for (busy, expected) in busy.into_iter().zip(expected) {
            assert!((busy - expected).abs() < 0.01, "{size} KB: busy {busy}, not {expected}");
        }
    }
    assert_eq!(bounds, [6, 4], "the server bounds up to 32 KB, the link above");
}

/// The throughput of 20 clients, with the busy shares of server and link.
fn highest_throughput(truth: &Plant, work: Work) -> (f64, [f64; 2]) {
    let mut server = Server::new(truth);
    for client in 0..20 {
        server.offer(Instant::ZERO, client, work).expect("there is always room");
    }
    let (mut done, mut begin) = (0_u32, None);
    loop {
        let now = server.due();
        let Some(end) = server.step(now) else { continue };
        server.offer(now, end.job, work).expect("there is always room");
        done += 1;
        if done == 100 {
            begin = Some((now, server.busy(now)));
        } else if let Some((from, before)) = begin
            && done == 5100
        {
            let (seconds, after) = (now.since(from).as_secs_f64(), server.busy(now));
            let busy = [after.servers - before.servers, after.link - before.link];
            return (5000.0 / seconds, busy.map(|busy| busy.as_secs_f64() / seconds));
        }
    }
}
