//! What queueing theory says. Arrivals are Poisson of rate lambda; S is the service time, rho = lambda E S / s.
//!
//! Kleinrock, Queueing Systems I (3.2, 3.5, 3.6, 5.7) and II (4.4), but for the two that name others.

/// Mean and, where it has a closed form, variance of the response time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    pub(crate) mean: f64,
    pub(crate) variance: Option<f64>,
}

/// M/M/1: exponential of rate mu - lambda.
pub(crate) fn mm1(lambda: f64, mu: f64) -> Response {
    let mean = 1.0 / (mu - lambda);
    Response { mean, variance: Some(mean * mean) }
}

/// M/G/1 by Pollaczek and Khinchine: E W = lambda E S^2 / (2 (1 - rho)); its second moment by Takacs:
/// E W^2 = 2 (E W)^2 + lambda E S^3 / (3 (1 - rho)). `moments` of S: the first three.
pub(crate) fn mg1(lambda: f64, moments: [f64; 3]) -> Response {
    let [first, second, third] = moments;
    let idle = 1.0 - lambda * first;
    let wait = lambda * second / (2.0 * idle);
    let variance = wait * wait + lambda * third / (3.0 * idle) + second - first * first;
    Response { mean: wait + first, variance: Some(variance) }
}

/// M/M/k: with probability C (Erlang's) a request waits, then exponentially with rate k mu - lambda.
pub(crate) fn mmk(lambda: f64, mu: f64, k: u32) -> Response {
    let offered = lambda / mu;
    // Erlang's B by its recursion, then C from B.
    let blocked = (1..=k).fold(1.0, |b, i| offered * b / (f64::from(i) + offered * b));
    let waits = blocked / (1.0 - offered / f64::from(k) * (1.0 - blocked));
    let excess = f64::from(k) * mu - lambda;
    let variance = (2.0 * waits - waits * waits) / (excess * excess) + 1.0 / (mu * mu);
    Response { mean: waits / excess + 1.0 / mu, variance: Some(variance) }
}

/// M/M/1, shared: the mean of M/M/1; the variance is larger (Coffman, Muntz and Trotter 1970).
pub(crate) fn mm1_shared(lambda: f64, mu: f64) -> Response {
    let rho = lambda / mu;
    let mean = 1.0 / (mu - lambda);
    Response { mean, variance: Some(mean * mean * (2.0 + rho) / (2.0 - rho)) }
}

/// M/G/1, shared: the mean depends on that of S alone.
pub(crate) fn mg1_shared(lambda: f64, first: f64) -> Response {
    Response { mean: first / (1.0 - lambda * first), variance: None }
}

/// M/M/1/K: the share of the requests that find all K places taken.
pub(crate) fn mm1k_loss(rho: f64, k: i32) -> f64 {
    (1.0 - rho) * rho.powi(k) / (1.0 - rho.powi(k + 1))
}
