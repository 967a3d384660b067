//! How many processes each pool is to have: by M/M/1 (PR, eq. 4 and 5), in whole numbers (Algorithm 1), corrected by PID (eq.
//! 7).

use plimsoll_core::time::Duration;

/// What one more period weighs in a prediction: five of them, 2 / (5 + 1) (PR 5.1).
const FRESH: f64 = 1.0 / 3.0;
/// The sum of errors is kept within so many.
const MOST_SUM: f64 = 20.0;
/// The normalized allocation is the smallest whole numbers that are this close to the shares.
const CLOSE: f64 = 0.1;

/// What a period has shown of one class.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) arrivals: u32,
    /// Service-seconds that arrived.
    pub(super) work: f64,
    pub(super) departures: u32,
    /// The sum of response times (s).
    pub(super) responses: f64,
}

/// What is known of one class, from period to period.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) delta: f64,
    /// Predicted requests and work per second of capacity; `None` before the first period.
    predicted: Option<(f64, f64)>,
    error: f64,
    error_sum: f64,
}

impl Class {
    pub(super) fn new(delta: f64) -> Class {
        Class { delta, predicted: None, error: 0.0, error_sum: 0.0 }
    }

    /// Predicts the next period's load, by exponential averaging.
    pub(super) fn learn(&mut self, seen: &Seen, capacity: f64) {
        let measured = (f64::from(seen.arrivals) / capacity, seen.work / capacity);
        let before = self.predicted.unwrap_or(measured);
        let average = |before: f64, measured: f64| before + FRESH * (measured - before);
        self.predicted = Some((average(before.0, measured.0), average(before.1, measured.1)));
    }

    fn load(&self) -> f64 {
        self.predicted.map_or(0.0, |(_, work)| work)
    }

    /// S_i / delta_i; the service time of a class that nobody asks for does not count.
    fn weight(&self) -> f64 {
        let service = self.predicted.map_or(1.0, |(requests, work)| work / requests.max(1e-12));
        service.max(1e-9) / self.delta
    }
}

/// Shares of the capacity by M/M/1: `rho_i + (1 - sum rho) (S_i / delta_i) / sum_l (S_l / delta_l)`. A class with the share p_i
/// is an M/M/1 queue of `T_i = S_i / (p_i - rho_i)`.
///
/// The printed eq. 4, `lambda_i + (1 - sum lambda) / (delta_i / sum_l delta_l)`, does not sum to 1, as eq. 2 wants: from
/// `T_i = 1 / (mu_i - lambda_i) = delta_i K` follows `mu_i = lambda_i + 1 / (delta_i K)`, and the sum over i gives
/// `1 / K = (1 - sum lambda) / sum_l (1 / delta_l)`. So `sum_l (1 / delta_l)` belongs where `1 / sum_l delta_l` stands. It
/// assumes equal service times too.
pub(super) fn shares(classes: &[Class]) -> Vec<f64> {
    let all: f64 = classes.iter().map(Class::load).sum();
    let spare = (1.0 - all).max(0.0) / classes.iter().map(Class::weight).sum::<f64>();
    classes.iter().map(|class| class.load() / all.max(1.0) + spare * class.weight()).collect()
}

/// mu*, the normalized allocation: the smallest whole numbers, each at least 1 and together at most `most`, that are close to
/// these shares.
pub(super) fn normalized(shares: &[f64], most: u32) -> Vec<u32> {
    let least = shares.len() as u32;
    let sum: f64 = shares.iter().sum();
    let is_close = |whole: &[u32], all: u32| {
        let off =
            |(share, whole): (&f64, &u32)| (f64::from(*whole) * sum / (share * f64::from(all)) - 1.0).abs();
        shares.iter().zip(whole).map(off).fold(0.0, f64::max) <= CLOSE
    };
    let of = |all: u32| largest_remainders(shares, all);
    (least..most)
        .map(|all| (all, of(all)))
        .find(|(all, whole)| is_close(whole, *all))
        .map_or_else(|| of(most.max(least)), |(_, whole)| whole)
}

/// Whole numbers that sum to `all`, each at least 1, as near as can be to these shares of it.
fn largest_remainders(shares: &[f64], all: u32) -> Vec<u32> {
    // Each class gets one first; the rest is shared by what is still wanted.
    let sum: f64 = shares.iter().sum();
    let wanted: Vec<f64> = shares.iter().map(|share| (share / sum * f64::from(all) - 1.0).max(0.0)).collect();
    let scale = (f64::from(all) - shares.len() as f64) / wanted.iter().sum::<f64>().max(1e-12);
    let exact: Vec<f64> = wanted.iter().map(|wanted| wanted * scale).collect();
    let mut whole: Vec<u32> = exact.iter().map(|exact| exact.floor() as u32 + 1).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()));
    let missing = all.saturating_sub(whole.iter().sum()) as usize;
    order.iter().cycle().take(missing).for_each(|class| whole[*class] += 1);
    whole
}

/// PID, in processes, with the same three gains for all classes.
///
/// `e_i = ln(T_i / delta_i)` less its mean over the classes, so that no class is the base and the corrections sum to zero. The
/// printed error, `(delta_i / delta_1) T_1 - T_i` (eq. 8 and 9), is positive for a class that is too fast, and eq. 7 would give
/// it more processes for that: positive feedback.
pub(super) fn corrections(classes: &mut [Class], seen: &[Seen], gain: f64) -> Vec<f64> {
    let normalized = |(class, seen): (&Class, &Seen)| {
        (seen.departures > 0)
            .then(|| (seen.responses / f64::from(seen.departures) / class.delta).max(1e-9).ln())
    };
    let logs: Vec<Option<f64>> = classes.iter().zip(seen).map(normalized).collect();
    let known: Vec<f64> = logs.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    let correct = |(class, log): (&mut Class, &Option<f64>)| {
        let error = log.map_or(0.0, |log| log - mean);
        let change = error - class.error;
        // Eq. 7 sums up to the period before: the error of this one counts once, by K_P.
        let correction = gain * (error + class.error_sum + change);
        class.error = error;
        class.error_sum = (class.error_sum + error).clamp(-MOST_SUM, MOST_SUM);
        correction
    };
    classes.iter_mut().zip(&logs).map(correct).collect()
}

/// A sampling period: "the processing time of a thousand average-size requests".
pub(super) fn sampling_period(requests: u32, service: Duration, servers: u32) -> Duration {
    (service * requests / servers).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(delta: f64, rate: f64, service: f64) -> Class {
        let mut class = Class::new(delta);
        class.predicted = Some((rate, rate * service));
        class
    }

    #[test]
    fn shares_sum_to_one_and_give_the_ratios() {
        let (deltas, services) = ([1.0, 2.0, 3.0], [0.01, 0.04, 0.02]);
        for load in [0.3, 0.6, 0.9, 0.99] {
            // 3:2:1 arrivals, 0.13 s of work in six.
            let rates = [3.0, 2.0, 1.0].map(|part| part * load / 0.13);
            let classes = [0, 1, 2].map(|n| class(deltas[n], rates[n], services[n]));
            let shares = shares(&classes);
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{shares:?}");
            let responses = [0, 1, 2].map(|n| services[n] / (shares[n] - rates[n] * services[n]));
            for n in [1, 2] {
                let ratio = responses[n] / responses[0];
                assert!((ratio / deltas[n] - 1.0).abs() < 1e-9, "{responses:?} at {load}");
            }
        }
        let overloaded = shares(&[class(1.0, 120.0, 0.01), class(2.0, 20.0, 0.04)]);
        assert!((overloaded.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{overloaded:?}");
    }

    #[test]
    fn the_normalized_allocation_is_the_smallest_that_is_close() {
        assert_eq!(normalized(&[0.75, 0.25], 32), [3, 1]);
        assert_eq!(normalized(&[0.74, 0.26], 32), [3, 1]);
        assert_eq!(normalized(&[0.6, 0.4], 32), [3, 2]);
        assert_eq!(normalized(&[0.5, 1.0 / 3.0, 1.0 / 6.0], 32), [3, 2, 1]);
        // Nothing small is close, and no class is left without one.
        assert_eq!(normalized(&[0.9, 0.1], 4), [3, 1]);
        assert_eq!(normalized(&[0.9, 0.1], 1), [1, 1]);
    }

    #[test]
    fn whole_numbers_sum_to_all_and_no_class_has_none() {
        assert_eq!(largest_remainders(&[0.5, 0.3, 0.2], 10), [5, 3, 2]);
        assert_eq!(largest_remainders(&[1.3, -0.3], 8), [7, 1]);
        for part in 1..20 {
            let share = f64::from(part) / 20.0;
            let whole = largest_remainders(&[share, 1.0 - share], 8);
            assert_eq!(whole.iter().sum::<u32>(), 8);
            assert!((f64::from(whole[0]) - share * 8.0).abs() <= 1.0, "{whole:?} for {share}");
        }
    }

    #[test]
    fn a_class_that_is_too_slow_gets_more_and_the_others_as_much_less() {
        let mut classes = [class(1.0, 10.0, 0.01), class(2.0, 10.0, 0.01)];
        let seen = |response: f64| Seen { departures: 10, responses: 10.0 * response, ..Seen::default() };
        // The second is three times as slow as the first, and should be twice.
        let found = corrections(&mut classes, &[seen(0.1), seen(0.3)], 1.0);
        assert!(found[1] > 0.0 && (found[0] + found[1]).abs() < 1e-12, "{found:?}");
        // Half of ln 1.5 for P and for D; in the next period, where nothing has changed, for P and for I, and then I grows.
        assert!((found[1] - 1.5_f64.ln()).abs() < 1e-9, "{found:?}");
        for errors in [2.0, 3.0] {
            let found = corrections(&mut classes, &[seen(0.1), seen(0.3)], 1.0);
            assert!((found[1] - 0.5 * errors * 1.5_f64.ln()).abs() < 1e-9, "{found:?}");
        }
    }
}
