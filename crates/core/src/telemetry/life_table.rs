//! Response times where some clients hang up before they are answered.
//!
//! A client that hung up says only that its answer would have taken longer than it waited. Such observations are *censored*.
//! To leave them out flatters a promise, because the requests that wait long are those that lose their clients. To count
//! all of them as late blames the promise for clients that leave at once.
//!
//! As clients cannot see how long they would still have to wait, those that left after a time would have fared like those
//! that waited as long and stayed. So the survival S of the response time is that of a life table (Kaplan and Meier 1958,
//! by parts of D_ref). In each part requests are answered and clients leave. With constant hazards within the part, and `p`
//! the share of the requests at risk that outlasts it, S falls by `p^(answered / (answered + left))`. Beyond D_ref the
//! remainder is taken for exponential, so that its mean is the sum of all times beyond D_ref over the number of answers.
//! Where nobody leaves, the mean and the share that is late are those that were counted.

use libm::pow;

/// Into how many parts D_ref is divided.
pub(crate) const PARTS: usize = 4;

/// Requests by the part of D_ref in which they were answered, or in which their clients hung up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LifeTable {
    pub(crate) answered: [f64; PARTS],
    /// The sum of their response times (s).
    pub(crate) seconds: [f64; PARTS],
    pub(crate) left: [f64; PARTS],
    /// D_ref (s).
    pub(crate) target: f64,
    /// Requests that were answered, or hung up, later than D_ref, and the sum of their times (s).
    pub(crate) late: Beyond,
    /// Requests that were dropped after waiting. They were late.
    pub(crate) dropped: f64,
}

/// Requests that took longer than D_ref.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Beyond {
    pub(crate) answered: f64,
    pub(crate) left: f64,
    pub(crate) seconds: f64,
}

impl LifeTable {
    /// Requests that were answered, or hung up.
    pub(crate) fn all(&self) -> f64 {
        self.late.answered + self.late.left + self.answered.iter().chain(&self.left).sum::<f64>()
    }

    /// S at the end of each part, with `besides` more requests that are late.
    fn survival(&self, besides: f64) -> [f64; PARTS] {
        let (mut at_risk, mut survival) = (self.all() + besides, 1.0);
        core::array::from_fn(|part| {
            let (answered, ended) = (self.answered[part], self.answered[part] + self.left[part]);
            if answered > 0.0 {
                let outlast = (1.0 - ended / at_risk).max(0.0);
                survival *= if answered < ended { pow(outlast, answered / ended) } else { outlast };
            }
            at_risk -= ended;
            survival
        })
    }

    /// The share of requests that take longer than D_ref; 0 of none.
    pub(crate) fn late_share(&self) -> f64 {
        let is_empty = self.all() + self.dropped == 0.0;
        if is_empty { 0.0 } else { self.survival(self.dropped)[PARTS - 1] }
    }

    /// How many of the requests of another table were late, or would have been.
    pub(crate) fn late_of(&self, other: &LifeTable) -> f64 {
        let certain = other.late.answered + other.late.left + other.dropped;
        let (ends, mut begin, mut late) = (self.survival(self.dropped), 1.0, certain);
        for (left, end) in other.left.iter().zip(ends) {
            late += left * (2.0 * ends[PARTS - 1] / (begin + end).max(f64::MIN_POSITIVE)).min(1.0);
            begin = end;
        }
        late
    }

    /// The mean time beyond D_ref of a request that is late (s).
    fn excess(&self) -> f64 {
        let Beyond { answered, left, seconds } = self.late;
        (seconds - (answered + left) * self.target).max(0.0) / answered.max(1.0)
    }

    /// `E[T; T > t]` (s) at the beginning of each part, and at D_ref.
    fn tails(&self, ends: &[f64; PARTS]) -> [f64; PARTS + 1] {
        let mut tails = [0.0; PARTS + 1];
        let last = ends[PARTS - 1];
        tails[PARTS] = if last > 0.0 { last * (self.target + self.excess()) } else { 0.0 };
        for part in (0..PARTS).rev() {
            let begin = if part > 0 { ends[part - 1] } else { 1.0 };
            let mean = self.seconds[part] / self.answered[part].max(1.0);
            tails[part] = tails[part + 1] + (begin - ends[part]) * mean;
        }
        tails
    }

    /// The mean response time (s).
    pub(crate) fn mean(&self) -> f64 {
        if self.all() == 0.0 { 0.0 } else { self.tails(&self.survival(0.0))[0] }
    }

    /// The sum of the response times of another table's requests, as they were or would have been (s).
    pub(crate) fn seconds_of(&self, other: &LifeTable) -> f64 {
        let ends = self.survival(0.0);
        let tails = self.tails(&ends);
        let (mut begin, mut sum) = (1.0, other.late.seconds + other.late.left * self.excess());
        for part in 0..PARTS {
            let expected = (tails[part] + tails[part + 1]) / (begin + ends[part]).max(f64::MIN_POSITIVE);
            sum += other.seconds[part] + other.left[part] * expected;
            begin = ends[part];
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Times of a queue: most requests wait, and the service takes half of the time. D_ref is 2, twice the mean.
    fn time(random: &mut Random) -> f64 {
        let waits = random.uniform() < 0.8;
        random.exponential(0.5) + if waits { random.exponential(0.625) } else { 0.0 }
    }

    /// A table of 200,000 requests whose clients hang up after exponential times with this mean. Beside it stand the mean
    /// and the late share of the requests that were answered, and of all.
    fn table(patience: f64, seed: u64) -> (LifeTable, [f64; 2], [f64; 2]) {
        let (mut table, mut random) = (LifeTable { target: 2.0, ..LifeTable::default() }, Random::new(seed));
        let (mut stayed, mut all, count) = ([0.0; 3], [0.0; 2], 200_000.0);
        for _ in 0..count as u32 {
            let (takes, leaves) = (time(&mut random), random.exponential(patience));
            let (part, is_answered) = ((2.0 * takes.min(leaves)) as usize, takes <= leaves);
            all = [all[0] + takes / count, all[1] + f64::from(u8::from(takes > 2.0)) / count];
            if is_answered {
                stayed = [stayed[0] + takes, stayed[1] + f64::from(u8::from(takes > 2.0)), stayed[2] + 1.0];
            }
            match (part < PARTS, is_answered) {
                (true, true) => {
                    table.answered[part] += 1.0;
                    table.seconds[part] += takes;
                }
                (true, false) => table.left[part] += 1.0,
                (false, true) => {
                    (table.late.answered, table.late.seconds) =
                        (table.late.answered + 1.0, table.late.seconds + takes);
                }
                (false, false) => {
                    (table.late.left, table.late.seconds) =
                        (table.late.left + 1.0, table.late.seconds + leaves);
                }
            }
        }
        (table, [stayed[0] / stayed[2], stayed[1] / stayed[2]], all)
    }

    #[test]
    fn those_that_hung_up_would_have_fared_like_those_that_stayed() {
        for (patience, seed) in [(1.0, 3), (2.0, 4), (10.0, 5), (1e9, 6)] {
            let (table, [mean, late], [true_mean, true_late]) = table(patience, seed);
            let near = |found: f64, truth: f64| (found / truth - 1.0).abs() < 0.04;
            assert!(near(table.mean(), true_mean), "{patience}: {} of {true_mean}", table.mean());
            assert!(near(table.late_share(), true_late), "{patience}: {} of {true_late}", table.late_share());
            let is_flattered = mean < 0.85 * true_mean && late < 0.6 * true_late;
            assert!(patience > 5.0 || is_flattered, "{patience}: those that stayed {mean} {late}");
            // The same figures, summed request by request.
            let (seconds, late) = (table.seconds_of(&table), table.late_of(&table));
            let (mean, share) = (seconds / table.all(), late / table.all());
            assert!(near(mean, true_mean) && near(share, true_late), "{patience}: {mean} {share}");
        }
    }

    #[test]
    fn where_nobody_leaves_it_is_what_was_counted() {
        let (mut table, [mean, late], _) = table(1e9, 7);
        assert!((table.mean() - mean).abs() < 1e-9 && (table.late_share() - late).abs() < 1e-9);
        table.dropped = table.all();
        assert!((table.mean() - mean).abs() < 1e-9, "what was dropped has no response time");
        assert!((table.late_share() - 0.5 - 0.5 * late).abs() < 1e-9, "but was late");
        assert_eq!((LifeTable::default().mean(), LifeTable::default().late_share()), (0.0, 0.0));
    }
}
