//! QM's own scheme (3.1) before 128 processes: eq. 3 with b processes as one server, exponential service, a service rate that
//! was profiled; eq. 4, linear, with a part of the gain of 2.2; a sampling period of 600 events for rates and delays alike; a
//! quota that is all that the class has. The delay is the wait for a process.

use plimsoll_core::random::Random;
use std::collections::VecDeque;

const PROCESSES: f64 = 128.0;
/// Mean service time (s), as it is and as it was profiled.
const SERVICE: f64 = 0.5;
/// D_ref, 2 in the paper's units.
const WANTED: f64 = 0.1;
const RATES: [f64; 2] = [100.0, 160.0];
const PERIOD: usize = 600;
/// For the steady state, sampling periods of each rate, and of each those that are not judged: what the linear integral takes
/// in at the step it gives back over some thirty periods.
const PERIODS: usize = 100;
const UNSETTLED: usize = 40;
/// For the sums of table 1, which are of a whole experiment: the periods of each rate, with the step between them.
const WHOLE: usize = 30;
const SEEDS: std::ops::RangeInclusive<u64> = 41..=80;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Scheme {
    Predictor,
    P,
    PI,
}

/// A part of `1 / |slope|`, and the zero of eq. 4. The queue of many processes is 2.4 to 2.7 times as steep as eq. 3 has it
/// for one server, so half of the gain of 2.2 is more than the whole one here.
const GAIN: f64 = 0.5;
const ZERO: f64 = 0.8;

/// One class's queue and the processes of its quota.
struct Apache {
    random: Random,
    now: f64,
    next_arrival: f64,
    rate: f64,
    quota: usize,
    waiting: VecDeque<f64>,
    ends: Vec<f64>,
    waits: Vec<f64>,
    gaps: Vec<f64>,
}

impl Apache {
    fn start(&mut self) {
        while self.ends.len() < self.quota {
            let Some(arrived) = self.waiting.pop_front() else { return };
            self.waits.push(self.now - arrived);
            let service = self.random.exponential(SERVICE);
            self.ends.push(self.now + service);
        }
    }

    /// A sampling period: so many requests begin. The rate, c_a^2, and the mean wait.
    fn period(&mut self) -> (f64, f64, f64) {
        self.waits.clear();
        self.gaps.clear();
        while self.waits.len() < PERIOD {
            let first = (0..self.ends.len()).min_by(|a, b| self.ends[*a].total_cmp(&self.ends[*b]));
            match first.filter(|first| self.ends[*first] <= self.next_arrival) {
                Some(first) => self.now = self.ends.swap_remove(first),
                None => {
                    self.now = self.next_arrival;
                    self.waiting.push_back(self.now);
                    let gap = self.random.exponential(1.0 / self.rate);
                    self.gaps.push(gap);
                    self.next_arrival += gap;
                }
            }
            self.start();
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let gap = mean(&self.gaps);
        let variance = self.gaps.iter().map(|own| (own - gap).powi(2)).sum::<f64>() / self.gaps.len() as f64;
        (1.0 / gap, variance / (gap * gap), mean(&self.waits))
    }
}

/// Eq. 3 solved for b, `D = (c_a^2 + 1) / 2 lambda / (m (m - lambda))` with m = b mu, and |dD/db| there.
fn predicted(rate: f64, variability: f64) -> (f64, f64) {
    let factor = (variability + 1.0) / 2.0;
    let speed = 0.5 * (rate + (rate * rate + 4.0 * factor * rate / WANTED).sqrt());
    (speed * SERVICE, WANTED * (1.0 / speed + 1.0 / (speed - rate)) / SERVICE)
}

/// The errors of the periods' mean waits where D_ref is 2, of so many periods of each rate.
fn errors(scheme: Scheme, seed: u64, periods: usize) -> Vec<f64> {
    let mut apache = Apache {
        random: Random::new(seed),
        now: 0.0,
        next_arrival: 0.0,
        rate: RATES[0],
        quota: predicted(RATES[0], 1.0).0.round() as usize,
        waiting: VecDeque::new(),
        ends: Vec::new(),
        waits: Vec::new(),
        gaps: Vec::new(),
    };
    let (mut change, mut last, mut errors) = (0.0, 0.0, Vec::new());
    for period in 0..2 * periods {
        apache.rate = RATES[period / periods];
        let (rate, variability, wait) = apache.period();
        let error = wait - WANTED;
        let (feed_forward, slope) = predicted(rate, variability);
        let gain = GAIN / slope;
        change = match scheme {
            Scheme::Predictor => 0.0,
            Scheme::P => gain * error,
            Scheme::PI => change + gain * (error - ZERO * last),
        };
        last = error;
        apache.quota = (feed_forward + change).round().clamp(1.0, PROCESSES) as usize;
        errors.push(2.0 * error / WANTED);
    }
    errors
}

/// The steady state error, of both rates; the aggregate squared error of sixty periods of it, without the step; and that of a
/// run of sixty periods with the step in the middle.
struct Found {
    offset: f64,
    settled: f64,
    whole: f64,
}

fn found(scheme: Scheme) -> Found {
    let (mut offset, mut squares, mut count, mut whole) = (0.0, 0.0, 0.0, 0.0);
    for seed in SEEDS {
        for (period, error) in errors(scheme, seed, PERIODS).iter().enumerate() {
            if period % PERIODS >= UNSETTLED {
                (offset, squares, count) = (offset + error, squares + error * error, count + 1.0);
            }
        }
        whole += errors(scheme, seed, WHOLE).iter().map(|error| error * error).sum::<f64>();
    }
    let found = Found {
        offset: offset / count,
        settled: 2.0 * WHOLE as f64 * squares / count,
        whole: whole / SEEDS.count() as f64,
    };
    println!(
        "the paper's scheme, {scheme:?}: steady state error {:.2}, aggregate error {:.0}, with the step {:.0}",
        found.offset, found.settled, found.whole
    );
    found
}

/// Fig. 8: the prediction alone has a large steady state error, P lessens it, PI removes it. The waits are too short, since b
/// processes are not one server. Table 1 has sums of the whole experiment: with the step prediction alone is worse than with P
/// by as much as in the paper, while PI is somewhat worse than P. Settled, the order is the other way round: waits that are as
/// long as was wanted vary more than those that are too short.
#[test]
fn the_papers_own_scheme_before_its_processes() {
    let [alone, p, pi] = [Scheme::Predictor, Scheme::P, Scheme::PI].map(found);
    // By Erlang's C the processes of eq. 3 leave 0.046 and 0.053 s of the 0.1 s that were wanted: -1.08 and -0.94.
    assert!((-1.2..-0.8).contains(&alone.offset), "{}", alone.offset);
    assert!((-0.7..-0.35).contains(&p.offset), "{}", p.offset);
    assert!((-0.15..0.15).contains(&pi.offset), "{}", pi.offset);
    // Without the step.
    assert!((150.0..260.0).contains(&alone.settled), "{}", alone.settled);
    assert!((140.0..240.0).contains(&p.settled), "{}", p.settled);
    assert!((220.0..380.0).contains(&pi.settled), "{}", pi.settled);
    // With it. The paper: 214, 75 and 30; the first over the second 2.9, and the second over the third 2.5.
    let by_p = alone.whole / p.whole;
    assert!((2.0..3.6).contains(&by_p), "{} and {}", alone.whole, p.whole);
    let by_pi = p.whole / pi.whole;
    assert!((0.7..0.92).contains(&by_pi), "{} and {}", p.whole, pi.whole);
    for (whole, bounds) in
        [(alone.whole, 2000.0..3150.0), (p.whole, 800.0..1080.0), (pi.whole, 1040.0..1290.0)]
    {
        assert!(bounds.contains(&whole), "{whole}");
    }
}
