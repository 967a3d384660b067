//! How long requests wait for one of s workers, and how many workers keep a promised delay (QM 2.3).
//!
//! `D_q = (C(s, a) / (s / S - lambda)) (c_a^2 + c_s^2) / 2`, Allen and Cunneen's approximation with Erlang's C for the chance
//! to wait. (QM eq. 1 has an exponent in place of Erlang's C: 0.106 against 0.059 at s = 8, rho = 0.5. For one worker both are
//! QM eq. 3.) The mean response time is `D_q + S`.
//!
//! A quota is dithered between whole numbers, so s need not be whole: between two whole numbers log C is linear. At a >= s the
//! delay is infinite. Below one worker this makes the chance to wait too small, which is not corrected. A worker that is there
//! for a share s of the time and busy for a share a of it is free for s - a, so C would be 1 - s + a, 0.8 instead of 0.55 at s
//! = 0.5, a = 0.3.

use libm::{exp, fabs, pow};

/// The traffic of a class with its own workers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// lambda, the arrival rate (1/s).
    pub rate: f64,
    /// S, mean service time (s).
    pub service_seconds: f64,
    /// c_a^2 of the times between arrivals.
    pub arrival_variability: f64,
    /// c_s^2 of the service times.
    pub service_variability: f64,
}

/// C(s, a): the chance that a Poisson arrival has to wait, at a load of `load` erlangs.
pub(crate) fn erlang_c(servers: u32, load: f64) -> f64 {
    let own = f64::from(servers);
    if load >= own {
        return 1.0;
    }
    let blocked = (1..=servers).fold(1.0, |b, k| load * b / (f64::from(k) + load * b));
    blocked / (1.0 - load / own * (1.0 - blocked))
}

/// C at a load, for numbers of servers that need not be whole. A search tries many numbers between the same two whole ones,
/// whose C is kept, since it takes one step of computation for each server.
struct ChanceToWait {
    load: f64,
    /// A whole number, and C at it and at the next one.
    whole: Option<(u32, [f64; 2])>,
}

impl ChanceToWait {
    fn at(load: f64) -> Self {
        ChanceToWait { load, whole: None }
    }

    fn of(&mut self, servers: f64) -> f64 {
        let whole = servers as u32;
        let [below, above] = match self.whole {
            Some((known, around)) if known == whole => around,
            _ => [whole, whole + 1].map(|servers| erlang_c(servers, self.load)),
        };
        self.whole = Some((whole, [below, above]));
        let part = servers - f64::from(whole);
        if part <= 0.0 { below } else { pow(below, 1.0 - part) * pow(above, part) }
    }
}

/// D_q (s) of `rate` requests a second before `servers` workers; `variability` is (c_a^2 + c_s^2) / 2. It is infinite if the
/// rate is not below their capacity.
pub(crate) fn queue_delay(servers: f64, service_seconds: f64, rate: f64, variability: f64) -> f64 {
    let waits = &mut ChanceToWait::at(rate * service_seconds);
    queue_delay_of(waits, servers, service_seconds, variability)
}

fn queue_delay_of(waits: &mut ChanceToWait, servers: f64, service_seconds: f64, variability: f64) -> f64 {
    if waits.load >= servers {
        return f64::INFINITY;
    }
    waits.of(servers) * service_seconds / (servers - waits.load) * variability
}

impl Traffic {
    /// a = lambda S, in erlangs.
    pub fn load(&self) -> f64 {
        self.rate * self.service_seconds
    }

    fn variability(&self) -> f64 {
        0.5 * (self.arrival_variability + self.service_variability)
    }

    /// Mean response time (s) with `servers` workers.
    pub fn response_seconds(&self, servers: f64) -> f64 {
        self.response_of(&mut ChanceToWait::at(self.load()), servers)
    }

    fn response_of(&self, waits: &mut ChanceToWait, servers: f64) -> f64 {
        queue_delay_of(waits, servers, self.service_seconds, self.variability()) + self.service_seconds
    }

    /// The share of requests whose response takes longer than `target_seconds`. Requests that wait have an exponential wait
    /// (`t_p = (W / P_w) ln(P_w / (1 - p))`); it is convolved with the service time, which counts as a fixed part and an
    /// exponential part of the measured deviation.
    pub fn late_share(&self, servers: f64, target_seconds: f64) -> f64 {
        self.late_of(&mut ChanceToWait::at(self.load()), servers, (target_seconds, self.deviation()))
    }

    /// The part of the service time that counts as exponential (s).
    fn deviation(&self) -> f64 {
        self.service_seconds * pow(self.service_variability, 0.5).clamp(1e-3, 1.0)
    }

    fn late_of(&self, waits: &mut ChanceToWait, servers: f64, (target, deviation): (f64, f64)) -> f64 {
        let mean = self.service_seconds;
        if waits.load >= servers {
            return 1.0;
        }
        let wait = mean / (servers - waits.load) * self.variability();
        share_over(target - (mean - deviation), (waits.of(servers), wait), deviation)
    }

    /// The fewest workers, at most `most`, with a mean response time of at most `target_seconds`; `most` if that is too few.
    pub fn servers_for_mean(&self, target_seconds: f64, most: f64) -> f64 {
        self.fewest(most, |waits, servers| self.response_of(waits, servers) <= target_seconds)
    }

    /// The fewest workers, at most `most`, with at most `late` of the responses over `target_seconds`; `most` if that is too
    /// few.
    pub fn servers_for_share(&self, target_seconds: f64, late: f64, most: f64) -> f64 {
        let times = (target_seconds, self.deviation());
        self.fewest(most, |waits, servers| self.late_of(waits, servers, times) <= late)
    }

    fn fewest(&self, most: f64, enough: impl Fn(&mut ChanceToWait, f64) -> bool) -> f64 {
        let (mut low, mut high) = (self.load().min(most), most);
        let waits = &mut ChanceToWait::at(self.load());
        if !enough(waits, most) {
            return most;
        }
        while high - low > 1e-7 * high {
            let middle = 0.5 * (low + high);
            *(if enough(waits, middle) { &mut high } else { &mut low }) = middle;
        }
        high
    }
}

/// The share of responses longer than `left` (s). The share `waits` of requests has an exponential wait of mean `wait`, the
/// others none; the wait is convolved with an exponential service of mean `service`.
fn share_over(left: f64, (waits, wait): (f64, f64), service: f64) -> f64 {
    if left <= 0.0 {
        return 1.0;
    }
    let wait = wait.max(1e-9);
    // The formula divides by the difference of the two means, so they must not be equal.
    let wait = if fabs(wait - service) < 1e-4 * service { 1.0001 * service } else { wait };
    let (slow, own) = (exp(-left / wait), exp(-left / service));
    let both = (wait * slow - service * own) / (wait - service);
    ((1.0 - waits) * own + waits * both).clamp(0.0, 1.0)
}

/// The response time that a share `p` of requests stays within (s). Service is exponential of mean `service`; the share `waits`
/// of requests waits, and the mean wait of all requests is `mean_wait`. The percentiles of the wait and of service do not add
/// up to it.
pub(crate) fn response_percentile(mean_wait: f64, waits: f64, service: f64, p: f64) -> f64 {
    if mean_wait.is_infinite() {
        return mean_wait;
    }
    let wait = (waits, mean_wait / waits.max(1e-9));
    let (mut low, mut high) = (0.0, service + mean_wait);
    while share_over(high, wait, service) > 1.0 - p {
        high *= 2.0;
    }
    while high - low > 1e-6 * high {
        let middle = 0.5 * (low + high);
        *(if share_over(middle, wait, service) > 1.0 - p { &mut low } else { &mut high }) = middle;
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use libm::log;

    fn near(found: f64, wanted: f64) {
        assert!(fabs(found - wanted) <= 1e-3 * fabs(wanted).max(1e-3), "{found} instead of {wanted}");
    }

    const POISSON: Traffic =
        Traffic { rate: 1.0, service_seconds: 0.5, arrival_variability: 1.0, service_variability: 1.0 };

    #[test]
    fn erlang_and_one_server_are_as_in_the_books() {
        near(erlang_c(8, 4.0), 0.0590);
        near(erlang_c(1, 0.7), 0.7);
        // M/M/1 responds in 1 / (mu - lambda); M/D/1 waits half as long.
        near(POISSON.response_seconds(1.0), 1.0);
        near(Traffic { service_variability: 0.0, ..POISSON }.response_seconds(1.0), 0.75);
        assert_eq!(POISSON.response_seconds(0.5), f64::INFINITY);
        // M/M/1 responses are exponential with that mean.
        near(POISSON.late_share(1.0, 3.0), exp(-3.0));
        // The same law, from its parts: half of the requests wait, for 1 in the mean, and service takes 1/2.
        near(response_percentile(0.5, 0.5, 0.5, 0.95), log(20.0));
        // If no request waits, the percentile is that of service. If each waits as long as its service, the law is Erlang's.
        near(response_percentile(0.0, 0.0, 0.04, 0.9), 0.04 * log(10.0));
        near(response_percentile(1.0, 1.0, 1.0, 0.95), 4.743_9);
    }

    #[test]
    fn what_is_solved_for_is_what_was_asked_for() {
        let traffic = Traffic { rate: 100.0, service_seconds: 0.04, ..POISSON };
        for target in [0.05, 0.2, 2.0] {
            let servers = traffic.servers_for_mean(target, 64.0);
            assert!((4.0..8.0).contains(&servers));
            near(traffic.response_seconds(servers), target);
        }
        let servers = traffic.servers_for_share(0.2, 0.05, 64.0);
        near(traffic.late_share(servers, 0.2), 0.05);
        assert_eq!(traffic.servers_for_mean(0.03, 64.0), 64.0, "no number of workers undercuts S");
        assert_eq!(traffic.servers_for_mean(0.2, 3.0), 3.0);
    }

    #[test]
    fn more_workers_never_wait_longer() {
        let traffic = Traffic { rate: 100.0, service_seconds: 0.04, ..POISSON };
        let mut last = (f64::INFINITY, 1.0);
        for tenth in 41..200 {
            let servers = f64::from(tenth) * 0.1;
            let now = (traffic.response_seconds(servers), traffic.late_share(servers, 0.3));
            assert!(now.0 <= last.0 && now.1 <= last.1 + 1e-9, "{servers}");
            last = now;
        }
    }
}
