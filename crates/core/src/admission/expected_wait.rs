//! How long a request waits for a worker, from the work ahead of it.
//!
//! With s workers, all busy until the request starts, its wait is at most
//!
//! ```text
//! (waiting work of equal and higher ranks + residual work of the requests in service) / s
//! ```
//!
//! which is the bound of AC's theorem; the residual work is in it because nothing is preempted. The expected wait is below
//! the bound ([`until_free`]), and the decision uses the expected wait and its variance. Requests of higher ranks go on
//! arriving during the wait. The part of the workers that they take is measured by `tick`, with its noise, and the
//! probability that they make the request late must be small ([`Wait::outlasts`]).

use core::f64::consts::FRAC_1_SQRT_2;
use libm::{erfc, exp, sqrt};

/// The coefficient of variation of the time at which the first of many workers is free: a half, as for residual times that
/// are uniformly distributed.
const SPREAD: f64 = 0.5;
/// Two steps leave an error below a hundredth.
const NEWTON_STEPS: u32 = 2;
/// The slope of the equation, which is 0 where no work and none in small pieces is ahead.
const LEAST_SLOPE: f64 = 1e-3;
/// With more free workers than this, the chance that requests before it hold all of them counts as 0.
const MOST_HELD: u32 = 16;
/// The part of the workers that higher ranks leave is taken to be at least this.
const LEAST_LEFT: f64 = 0.05;

/// The wait of a request (us).
pub(super) struct Wait {
    /// The work ahead of the request, as time, if none of higher rank arrived any more; its variance, and its third
    /// central moment.
    pub(super) ahead: f64,
    pub(super) variance: f64,
    /// The third central moment is that of a sum of gamma variables: 2 v^2 / m for one of mean m and variance v.
    pub(super) third: f64,
    /// The part of the workers that higher ranks leave, its standard error, and the variance of the work that they
    /// bring, per time.
    pub(super) left: f64,
    pub(super) unsure: f64,
    pub(super) noise_us: f64,
    pub(super) same: SamePriority,
    /// The chance that requests before it hold all workers that are free.
    pub(super) held: f64,
    /// The least slack of those requests of its priority that it passes ([`WaitingByAge::least_slack`]).
    ///
    /// [`WaitingByAge::least_slack`]: crate::admission::waiting_by_age::WaitingByAge::least_slack
    pub(super) slack_of_passed: f64,
}

/// What requests of the same priority with shorter deadlines go on to bring before a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SamePriority {
    /// The part of the workers that these requests take.
    part: f64,
    /// The time (us) until which these requests come first, and that time multiplied by the part.
    until: f64,
    brings: f64,
    /// As [`Wait::noise_us`].
    noise_us: f64,
}

impl SamePriority {
    /// Adds a rank that takes this part of the workers until `until`.
    pub(super) fn add(&mut self, part: f64, noise_us: f64, until: f64) {
        self.part += part;
        self.brings += part * until;
        self.noise_us += noise_us;
        self.until = self.brings / self.part.max(f64::MIN_POSITIVE);
    }

    /// What the requests bring, as a part of the workers that are free.
    pub(super) fn of_free(self, times: f64) -> Self {
        let SamePriority { part, until, brings, noise_us } = self;
        SamePriority { part: part * times, until, brings: brings * times, noise_us: noise_us * times * times }
    }
}

impl Wait {
    /// The expected wait.
    pub(super) fn expected(&self) -> f64 {
        let goes_on = self.ahead / (self.left - self.same.part).max(LEAST_LEFT);
        goes_on.min((self.ahead + self.same.brings) / self.left.max(LEAST_LEFT))
    }

    /// The probability that the wait is longer than `time`: that a Brownian motion which starts at `ahead`, falls at
    /// the rate that higher ranks leave, and has the noise of the work that they bring and of the work ahead, has not reached
    /// zero (the inverse Gaussian distribution). Zero where higher ranks bring nothing.
    ///
    /// Near its mean this distribution is far from normal: of two requests with the same expected wait one starts soon, and
    /// the other meets a burst of higher ranks that takes all workers for a second.
    pub(super) fn outlasts(&self, time: f64) -> f64 {
        let same = &self.same;
        if (self.noise_us <= 0.0 && same.part <= 0.0) || self.ahead <= 0.0 {
            return 0.0;
        }
        if time <= 0.0 {
            return 1.0;
        }
        // Ranks of the same priority come before this request for a part of the time.
        let within = (same.until / time).min(1.0);
        let fall = (self.left - self.unsure - same.part * within).max(LEAST_LEFT);
        let noise_us = self.noise_us + same.noise_us * within + self.variance * fall / self.ahead;
        if noise_us <= 0.0 {
            return f64::from(u8::from(self.ahead > fall * time));
        }
        let deviation = sqrt(noise_us * time);
        let beyond = |x: f64| 0.5 * erfc(x / deviation * FRAC_1_SQRT_2);
        // The second term is the smaller one. Where it is infinity times zero it is negligible.
        let reflected = exp(2.0 * fall * self.ahead / noise_us) * beyond(fall * time + self.ahead);
        let reflected = if reflected.is_finite() { reflected } else { 0.0 };
        beyond(fall * time - self.ahead) - reflected
    }
}

/// The chance that a Poisson number with this mean is `least` or more; none from [`MOST_HELD`] on.
pub(super) fn at_least(least: u32, mean: f64) -> f64 {
    if mean <= 0.0 || least > MOST_HELD {
        return 0.0;
    }
    let (mut term, mut below) = (exp(-mean), 0.0);
    for number in 1..=least {
        below += term;
        term *= mean / f64::from(number);
    }
    (1.0 - below).max(0.0)
}

/// When workers become free.
pub(super) struct Free {
    /// The time after which the first worker is free for the request (us).
    pub(super) after: f64,
    /// How much of the variance of the residual work enters: 1 with one worker.
    pub(super) serving: f64,
    /// The deviation that comes from knowing only the sum of many residual times.
    pub(super) spread: f64,
}

/// The time after which the first of s workers is free, when they first finish their residual work, together `serving`, and
/// then the work `ahead`, whose requests have the mean residual life `life` when one looks at them in service.
///
/// With one worker that time is `serving` plus `ahead`. With many workers some are free sooner. A worker with the mean residual
/// time r is free at t with the chance `1 - exp(-t / r)`. Until then it has done nothing of the work ahead. From then on it
/// does that work, and is always in the middle of a request. So what has been *started* of the work ahead, w for each worker,
/// is
///
/// ```text
/// t - (r - life) (1 - exp(-t / r)) = w
/// ```
///
/// For small pieces (life = 0) this is the work that the free workers have done; where waiting requests are like those in
/// service (life = r), t = w: departures go on at their rate. Between one and many workers the time is interpolated. AC's
/// bound, the sum of both over s, is much too large when a few long requests are in service: requests of a higher class would
/// be refused for a wait that they never have.
pub(super) fn until_free(ahead: f64, serving: f64, life: f64, s: f64) -> Free {
    let (w, r) = (ahead / s, serving / s);
    let many = if r > 0.0 { r * started_after(w / r, (life / r).min(1.0)) } else { w };
    // The part of the workers that have been free until then, and what they do if pieces are small.
    let moved = if r > 0.0 { 1.0 - exp(-many / r) } else { 1.0 };
    let follows = moved * (1.0 - (life / r.max(1.0)).min(1.0));
    let unknown = SPREAD * (1.0 - moved) * (1.0 - 1.0 / s) * r / s;
    let spread = sqrt(unknown * unknown + moved * (s - 1.0) * life * life / (s * s));
    Free { after: many + (w + r - many) / s, serving: follows + (1.0 - follows) / s, spread }
}

/// The u for which `u - (1 - life) (1 - exp(-u)) = w`.
fn started_after(w: f64, life: f64) -> f64 {
    let less = 1.0 - life;
    // With u / (1 + u) for 1 - exp(-u), which is a little less, the equation is quadratic. Newton's steps take it from there.
    let half = 0.5 * (w - life);
    let mut u = half + sqrt(half * half + w);
    for _ in 0..NEWTON_STEPS {
        let rest = exp(-u);
        u -= (u - less * (1.0 - rest) - w) / (1.0 - less * rest).max(LEAST_SLOPE);
    }
    u.max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn wait(ahead: f64, left: f64, noise_us: f64) -> Wait {
        let same = SamePriority::default();
        Wait {
            ahead,
            variance: 0.0,
            third: 0.0,
            left,
            unsure: 0.0,
            noise_us,
            same,
            held: 0.0,
            slack_of_passed: f64::INFINITY,
        }
    }

    /// How often the work ahead, to which small pieces are added at random, is not done within `time`.
    fn simulated(wait: &Wait, time: f64) -> f64 {
        const RUNS: u32 = 4000;
        const PIECE: f64 = 4000.0;
        let mut random = Random::new(7);
        // Pieces are exponential, and the rate of their squares is the noise.
        let every = 2.0 * PIECE * PIECE / wait.noise_us;
        let brought = PIECE / every;
        let late = (0..RUNS).filter(|_| {
            let (mut now, mut work) = (0.0, wait.ahead);
            loop {
                let step = -every * libm::log(1.0 - (random.bits() >> 11) as f64 / (1_u64 << 53) as f64);
                let speed = wait.left + brought;
                if work <= step * speed || now > time {
                    return now + work / speed > time;
                }
                (now, work) = (now + step, work - step * speed);
                work -= PIECE * libm::log(1.0 - (random.bits() >> 11) as f64 / (1_u64 << 53) as f64);
            }
        });
        late.count() as f64 / f64::from(RUNS)
    }

    #[test]
    fn few_workers_are_taken_by_chance() {
        assert!((at_least(1, 0.01) - 0.00995).abs() < 1e-5 && (at_least(2, 1.0) - 0.26424).abs() < 1e-5);
        assert_eq!((at_least(3, 0.0), at_least(MOST_HELD + 1, 5.0)), (0.0, 0.0));
    }

    #[test]
    fn departures_of_like_requests_go_on_at_their_rate() {
        // Exponential requests of mean S before s workers: the (n + 1)th departure is after (n + 1) S / s.
        for (waiting, s) in [(0.0, 8.0), (3.0, 8.0), (40.0, 8.0), (5.0, 1.0)] {
            let free = until_free(waiting * 40e3, s * 40e3, 40e3, s);
            assert!(
                (free.after / ((waiting + 1.0) * 40e3 / s) - 1.0).abs() < 1e-3,
                "{waiting} {s}: {}",
                free.after
            );
        }
    }

    #[test]
    fn small_work_waits_for_the_workers_that_are_free() {
        // By the equation above, with 100 ms of residual work at each of many workers.
        for until in [5e3_f64, 50e3, 300e3] {
            let ahead = until - 100e3 * (1.0 - exp(-until / 100e3));
            let free = until_free(1000.0 * ahead, 1000.0 * 100e3, 0.0, 1000.0);
            assert!((free.after / until - 1.0).abs() < 0.03, "{until}: {}", free.after);
        }
        assert!((until_free(30e3, 0.0, 0.0, 3.0).after - 10e3).abs() < 1.0);
    }

    #[test]
    fn the_chance_to_be_overtaken_is_that_of_a_first_passage() {
        for (ahead, left, noise) in
            [(40e3, 0.2, 10e3), (150e3, 0.2, 10e3), (300e3, 0.4, 8e3), (200e3, 0.6, 5e3), (20e3, 0.05, 12e3)]
        {
            let one = wait(ahead, left, noise);
            let (predicted, found) = (one.outlasts(900e3), simulated(&one, 900e3));
            assert!(
                (predicted - found).abs() < 0.02 + 0.15 * found,
                "{ahead} {left} {noise}: {predicted} for {found}"
            );
        }
    }

    #[test]
    fn without_higher_ranks_no_request_is_overtaken() {
        assert_eq!(wait(500e3, 1.0, 0.0).outlasts(900e3), 0.0);
        // The second term would be infinity times zero.
        let sure = wait(800e3, 1.0, 1e-3).outlasts(900e3);
        assert!((0.0..1e-9).contains(&sure), "{sure}");
        assert_eq!(wait(100.0, 0.5, 10.0).outlasts(-1.0), 1.0);
    }
}
