//! How many processes each pool gets: by M/M/1 (PR, eq. 4 and 5), in whole numbers (Algorithm 1), corrected by PID (eq. 7).

use plimsoll_core::time::Duration;

/// The weight of the latest period in a prediction: an exponential mean over five periods, 2 / (5 + 1) (PR 5.1).
const FRESH: f64 = 1.0 / 3.0;
/// The bound of the sum of errors, both above and below zero.
const MOST_SUM: f64 = 20.0;
/// The normalized allocation is the smallest whole numbers that give each class its part of the spare capacity with no larger
/// error than this.
const CLOSE: f64 = 0.1;
/// A class with a smaller predicted number of requests in a period than this has no part in the shares.
const ASKED_FOR: f64 = 0.5;

/// What was counted of one class in a period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) arrivals: u32,
    /// Service-seconds that arrived.
    pub(super) work: f64,
    pub(super) departures: u32,
    /// The sum of response times (s).
    pub(super) responses: f64,
}

/// The state of one class that is kept from period to period.
#[derive(Clone, Debug)]
pub(super) struct Class {
    pub(super) delta: f64,
    /// Requests and work predicted per second of capacity; `None` before the first period.
    predicted: Option<(f64, f64)>,
    /// Whether enough requests are predicted for the class to have a share.
    asked_for: bool,
    error: f64,
    error_sum: f64,
}

impl Class {
    pub(super) fn new(delta: f64) -> Class {
        Class { delta, predicted: None, asked_for: false, error: 0.0, error_sum: 0.0 }
    }

    /// Predicts the next period's load, by exponential averaging.
    pub(super) fn learn(&mut self, seen: &Seen, capacity: f64) {
        let measured = (f64::from(seen.arrivals) / capacity, seen.work / capacity);
        let before = self.predicted.unwrap_or(measured);
        let average = |before: f64, measured: f64| before + FRESH * (measured - before);
        let requests = average(before.0, measured.0);
        self.predicted = Some((requests, average(before.1, measured.1)));
        self.asked_for = requests * capacity >= ASKED_FOR;
    }

    pub(super) fn is_asked_for(&self) -> bool {
        self.asked_for
    }

    fn load(&self) -> f64 {
        self.predicted.map_or(0.0, |(_, work)| work)
    }

    /// The weight of the class in the spare capacity, S_i / delta_i.
    fn weight(&self) -> f64 {
        let service = self.predicted.map_or(1.0, |(requests, work)| work / requests.max(1e-12));
        service.max(1e-9) / self.delta
    }
}

/// Shares of the capacity by M/M/1: `rho_i + (1 - sum rho) (S_i / delta_i) / sum_l (S_l / delta_l)`. A class with the share p_i
/// is an M/M/1 queue with the response time `T_i = S_i / (p_i - rho_i)`.
///
/// The printed eq. 4, `lambda_i + (1 - sum lambda) / (delta_i / sum_l delta_l)`, does not sum to 1, as eq. 2 demands: from `T_i
/// = 1 / (mu_i - lambda_i) = delta_i K` follows `mu_i = lambda_i + 1 / (delta_i K)`, and the sum over i gives `1 / K = (1 - sum
/// lambda) / sum_l (1 / delta_l)`. So `sum_l (1 / delta_l)` belongs where `1 / sum_l delta_l` stands. The printed equation also
/// assumes equal service times.
pub(super) fn shares(classes: &[Class]) -> Vec<f64> {
    let all: f64 = classes.iter().map(Class::load).sum();
    let spare = (1.0 - all).max(0.0) / classes.iter().map(Class::weight).sum::<f64>();
    classes.iter().map(|class| class.load() / all.max(1.0) + spare * class.weight()).collect()
}

/// The normalized allocation mu*: the smallest whole numbers, each at least 1 and together at most `most`, that come close to
/// these classes' shares; if none do, the nearest ones that sum to `active`.
///
/// "If mu_1 / mu_2 is about 3 / 1, mu* is 3 and 1" (PR 4.1). By eq. 3 a response time depends on the spare part of a share: at
/// 90 % and arrivals of 3:1 the shares are 0.725 to 0.765 of the whole for every ratio from 1:1 to 1:9. So the spare part is
/// what must be close. A multiple of the numbers must use all `active` processes but `tolerated`, or some would be idle.
pub(super) fn normalized(classes: &[Class], active: u32, tolerated: u32, most: u32) -> Vec<u32> {
    let (shares, least) = (shares(classes), classes.len() as u32);
    let all_load: f64 = classes.iter().map(Class::load).sum();
    let is_close = |whole: &[u32], all: u32| {
        let off = |((class, share), whole): ((&Class, &f64), &u32)| {
            ((f64::from(*whole) / f64::from(all) - class.load()) / (share - class.load()) - 1.0).abs()
        };
        classes.iter().zip(&shares).zip(whole).all(|found| off(found) <= CLOSE)
    };
    (least..=most)
        .filter(|all| all_load < 1.0 && (active < *all || active % *all <= tolerated))
        .map(|all| (all, largest_remainders(&shares, all)))
        .find(|(all, whole)| is_close(whole, *all))
        .map_or_else(|| largest_remainders(&shares, active.max(least)), |(_, whole)| whole)
}

/// The limit of each pool: `m mu* + T` and PID's correction, in whole processes, at least one, and together at most `most`.
///
/// The paper divides the server among the pools (eq. 2). If the limits exceeded the processes together, the pool of the next
/// process to become free would decide whose request is next, and not the allocation. So T is the rest, the same for each pool.
pub(super) fn limits(normal: &[u32], multiplier: u32, idle: u32, corrections: &[f64], most: u32) -> Vec<u32> {
    let (pools, base) = (normal.len() as u32, multiplier * normal.iter().sum::<u32>());
    let idle = (idle * pools).min(most.saturating_sub(base));
    let of_each = f64::from(idle) / f64::from(pools);
    let wanted =
        |(normal, correction): (&u32, &f64)| (f64::from(multiplier * normal) + of_each + correction).max(1.0);
    let wanted: Vec<f64> = normal.iter().zip(corrections).map(wanted).collect();
    largest_remainders(&wanted, base + idle)
}

/// Whole numbers that sum to `all`, each at least 1, as near as possible to these shares of it.
fn largest_remainders(shares: &[f64], all: u32) -> Vec<u32> {
    // Each class gets one first; the rest is shared in proportion to what each still lacks.
    let sum: f64 = shares.iter().sum();
    let wanted: Vec<f64> = shares.iter().map(|share| (share / sum * f64::from(all) - 1.0).max(0.0)).collect();
    let scale = (f64::from(all) - shares.len() as f64) / wanted.iter().sum::<f64>().max(1e-12);
    let exact: Vec<f64> = wanted.iter().map(|wanted| wanted * scale).collect();
    let mut whole: Vec<u32> = exact.iter().map(|exact| exact.floor() as u32 + 1).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    // If two classes are equally near, the larger share wins, so that the order of declaration decides nothing.
    let nearness = |class: usize| ((exact[class].fract() * 1e9).round(), exact[class]);
    order.sort_by(|a, b| nearness(*b).partial_cmp(&nearness(*a)).unwrap_or(std::cmp::Ordering::Equal));
    let missing = all.saturating_sub(whole.iter().sum()) as usize;
    order.iter().cycle().take(missing).for_each(|class| whole[*class] += 1);
    whole
}

/// PID corrections in processes. A class has one gain for all three terms; the last gain holds for all further classes too.
///
/// `e_i = ln(T_i / delta_i)` less its mean over the classes, so that no class is the base. If all gains are equal the
/// corrections sum to zero; if they do not, [`limits`] shares the processes in proportion to what is wanted. The printed error,
/// `(delta_i / delta_1) T_1 - T_i` (eq. 8 and 9), is positive for a class that is too fast, and eq. 7 would give it more
/// processes for that: positive feedback.
pub(super) fn corrections(classes: &mut [Class], seen: &[Seen], gains: &[f64]) -> Vec<f64> {
    let normalized = |(class, seen): (&Class, &Seen)| {
        (seen.departures > 0)
            .then(|| (seen.responses / f64::from(seen.departures) / class.delta).max(1e-9).ln())
    };
    let logs: Vec<Option<f64>> = classes.iter().zip(seen).map(normalized).collect();
    let known: Vec<f64> = logs.iter().flatten().copied().collect();
    let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
    let all_gains = gains.iter().chain(std::iter::repeat(gains.last().unwrap_or(&0.0)));
    let correct = |((class, log), gain): ((&mut Class, &Option<f64>), &f64)| {
        // A period without departures says nothing: the last error holds, and D sees no change.
        let Some(log) = log else { return gain * (class.error + class.error_sum) };
        let error = log - mean;
        let change = error - class.error;
        // Eq. 7 sums up to the period before, so this period's error counts once in P and once in D.
        let correction = gain * (error + class.error_sum + change);
        class.error = error;
        class.error_sum = (class.error_sum + error).clamp(-MOST_SUM, MOST_SUM);
        correction
    };
    classes.iter_mut().zip(&logs).zip(all_gains).map(correct).collect()
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

    /// Arrivals of 3:1 at this load, 1:`delta`.
    fn two(load: f64, delta: f64) -> [Class; 2] {
        [class(1.0, 75.0 * load, 0.01), class(delta, 25.0 * load, 0.01)]
    }

    #[test]
    fn the_normalized_allocation_is_the_smallest_that_is_close() {
        // Shares of 0.7 and 0.3, 0.75 and 0.25.
        assert_eq!(normalized(&two(0.4, 2.0), 32, 32, 32), [5, 2]);
        assert_eq!(normalized(&two(0.4, 3.0), 32, 32, 32), [3, 1]);
        assert_eq!(normalized(&two(0.9, 3.0), 16, 16, 16), [3, 1]);
        // 0.725, 0.742 and 0.765: few processes cannot distinguish these ratios, many do.
        assert_eq!([1.0, 2.0, 9.0].map(|delta| normalized(&two(0.9, delta), 4, 4, 4)), [[3, 1]; 3]);
        assert_eq!(
            [1.0, 2.0, 9.0].map(|delta| normalized(&two(0.9, delta), 64, 64, 64)),
            [[8, 3], [17, 6], [13, 4]]
        );
        // A multiple of 11 would leave nine of 64 idle.
        assert_eq!(normalized(&two(0.9, 1.0), 64, 4, 64), [44, 17]);
        // Nothing is spare, and no class is left without one.
        assert_eq!(normalized(&two(1.2, 2.0), 16, 16, 16), [12, 4]);
        assert_eq!(normalized(&two(0.9, 2.0), 1, 1, 1), [1, 1]);
    }

    #[test]
    fn limits_together_are_no_more_than_there_are() {
        // T where there is room for it, a part of it where there is not.
        assert_eq!(limits(&[3, 1], 2, 2, &[0.0; 2], 16), [8, 4]);
        assert_eq!(limits(&[3, 1], 2, 2, &[0.0; 2], 10), [7, 3]);
        assert_eq!(limits(&[3, 1], 2, 2, &[0.0; 2], 11), [8, 3]);
        assert_eq!(limits(&[1, 3], 2, 2, &[0.0; 2], 11), [3, 8]);
        assert_eq!(limits(&[3, 1], 1, 2, &[0.0; 2], 4), [3, 1]);
        assert_eq!(limits(&[3, 1], 4, 2, &[-2.4, 2.4], 16), [10, 6]);
        // A correction takes at most all but one, and gives the others no more than there are.
        assert_eq!(limits(&[3, 1], 4, 2, &[30.0, -30.0], 16), [15, 1]);
        for most in 3..20 {
            let all: u32 = limits(&[2, 1, 1], most / 4, 2, &[3.3, -4.1, 0.8], most).iter().sum();
            assert!((3..=most).contains(&all), "{all} of {most}");
        }
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
        let found = corrections(&mut classes, &[seen(0.1), seen(0.3)], &[1.0]);
        assert!(found[1] > 0.0 && (found[0] + found[1]).abs() < 1e-12, "{found:?}");
        // Half of ln 1.5 for P and for D; in the next period, where nothing has changed, for P and for I, and then I grows.
        assert!((found[1] - 1.5_f64.ln()).abs() < 1e-9, "{found:?}");
        for errors in [2.0, 3.0] {
            let found = corrections(&mut classes, &[seen(0.1), seen(0.3)], &[1.0]);
            assert!((found[1] - 0.5 * errors * 1.5_f64.ln()).abs() < 1e-9, "{found:?}");
        }
    }

    #[test]
    fn a_class_may_have_a_gain_of_its_own_and_the_last_one_is_for_the_rest() {
        let of = |gains: &[f64]| {
            let mut classes = [1.0, 1.0, 1.0].map(|delta| class(delta, 10.0, 0.01));
            let seen = [0.1, 0.2, 0.4].map(|response| Seen {
                departures: 10,
                responses: 10.0 * response,
                ..Seen::default()
            });
            corrections(&mut classes, &seen, gains)
        };
        // Errors of -ln 2, 0 and ln 2, for P and for D.
        let of_one = 2.0 * 2.0_f64.ln();
        for (gains, wanted) in [
            (&[0.5][..], [-0.5, 0.0, 0.5]),
            (&[0.5, 0.5, 1.0], [-0.5, 0.0, 1.0]),
            (&[0.0, 2.0], [0.0, 0.0, 2.0]),
        ] {
            for (found, wanted) in of(gains).into_iter().zip(wanted) {
                assert!((found - wanted * of_one).abs() < 1e-9, "{found} with {gains:?}");
            }
        }
    }

    /// A rare class that has no departure in a period is corrected as before, and not by a jump there and back.
    #[test]
    fn a_period_without_departures_moves_nothing() {
        let mut classes = [Class::new(1.0), Class::new(3.0)];
        let of = |departures| Seen { departures, responses: 0.1 * f64::from(departures), ..Seen::default() };
        let mut corrected = |rare| corrections(&mut classes, &[of(100), of(rare)], &[0.5]);
        (0..2).for_each(|_| _ = corrected(5));
        let without = corrected(0);
        let error = -0.5 * 3.0_f64.ln();
        // P and I of what was known, without D.
        assert!((without[1] - 0.5 * (error + 2.0 * error)).abs() < 1e-9, "{without:?}");
    }
}
