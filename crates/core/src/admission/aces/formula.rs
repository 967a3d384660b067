//! The work that a period may still admit of a priority: PRA and WFA (AC, section 4, eq. 5).
//!
//! `C_p = C - carried - sum over higher q of max(predicted_q, used_q) - used_p`, clamped at 0, all in service-seconds, C = s T.
//! Eq. 5 as printed differs in four ways: it subtracts numbers of requests (rates times T) from a capacity; it counts only the
//! prediction of a higher priority, even after that priority used more; it multiplies the own rate by the time since the
//! beginning of the experiment; and it leaves carried work out, which admits up to 2 C of work in one T.
//!
//! Two terms are read as follows. *Carried* is the unfinished work of equal and higher priorities. That of lower priorities
//! is served later; if it counted, the highest priority would not have the whole capacity, which the paper promises it.
//! *Used* is the work admitted in this period: its estimate until it is done, and from then on the time that it took.
//!
//! WFA gives each priority a least and a most share of C. The least share of a lower priority is kept free for it as
//! far as it is predicted to request work. PRA is a least share of 0 and a most share of 1 for every priority.

use crate::promises::Share;
use core::cmp::Ordering;

/// One priority's account of a period, in service-seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Account {
    /// The work that it is predicted to request.
    pub predicted: f64,
    /// The work that was admitted.
    pub used: f64,
    /// The work that earlier periods left unfinished.
    pub carried: f64,
}

impl Account {
    /// Adds another account of the same share.
    pub(super) fn add(&mut self, other: Account) {
        self.predicted += other.predicted;
        self.used += other.used;
        self.carried += other.carried;
    }

    fn demand(&self) -> f64 {
        self.predicted.max(self.used)
    }
}

/// C_p of the priority at `index`; 0 is the highest. A priority without a share has [`Share::ANY`].
pub fn left(
    capacity: f64,
    accounts: impl IntoIterator<Item = Account>,
    shares: &[Share],
    index: usize,
) -> f64 {
    let (mut own, mut own_share) = (Account::default(), Share::ANY);
    let mut remaining = capacity;
    for (q, account) in accounts.into_iter().enumerate() {
        let share = shares.get(q).copied().unwrap_or(Share::ANY);
        remaining -= match q.cmp(&index) {
            Ordering::Less => account.carried + account.demand().min(share.most * capacity),
            Ordering::Equal => {
                (own, own_share) = (account, share);
                account.carried + account.used
            }
            Ordering::Greater => account.demand().min(share.least * capacity),
        };
    }
    let taken = own.used + own.carried;
    remaining.max(own_share.least * capacity - taken).min(own_share.most * capacity - taken).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(predicted: f64, used: f64, carried: f64) -> Account {
        Account { predicted, used, carried }
    }

    #[test]
    fn the_highest_has_the_whole_and_the_others_what_is_predicted_to_remain() {
        let accounts = [account(0.6, 0.1, 0.0), account(0.3, 0.0, 0.0), account(0.5, 0.0, 0.0)];
        let of = |index| left(1.0, accounts, &[], index);
        assert!((of(0) - 0.9).abs() < 1e-12 && (of(1) - 0.4).abs() < 1e-12 && (of(2) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn what_was_used_beyond_the_prediction_counts() {
        let accounts = [account(0.2, 0.7, 0.0), account(0.0, 0.2, 0.0)];
        assert!((left(1.0, accounts, &[], 1) - 0.1).abs() < 1e-12);
        assert_eq!(left(1.0, [account(0.2, 0.9, 0.0), account(0.0, 0.2, 0.0)], &[], 1), 0.0);
    }

    #[test]
    fn what_is_carried_of_lower_ones_takes_nothing_from_a_higher() {
        let accounts = [account(0.0, 0.0, 0.1), account(0.0, 0.0, 0.5)];
        assert!((left(1.0, accounts, &[], 0) - 0.9).abs() < 1e-12);
        assert!((left(1.0, accounts, &[], 1) - 0.4).abs() < 1e-12);
    }

    #[test]
    fn shares_bound_from_both_sides() {
        let shares = [Share { least: 0.3, most: 0.7 }, Share { least: 0.2, most: 0.5 }];
        let asks_for_all = [account(2.0, 0.0, 0.0), account(2.0, 0.0, 0.0)];
        assert!((left(1.0, asks_for_all, &shares, 0) - 0.7).abs() < 1e-12);
        assert!((left(1.0, asks_for_all, &shares, 1) - 0.3).abs() < 1e-12);
        // The lower priority's least share is kept free as far as it requests work.
        let shares = [Share { least: 0.0, most: 1.0 }, Share { least: 0.2, most: 1.0 }];
        assert!((left(1.0, asks_for_all, &shares, 0) - 0.8).abs() < 1e-12);
        let asks_for_little = [account(2.0, 0.0, 0.0), account(0.05, 0.0, 0.0)];
        assert!((left(1.0, asks_for_little, &shares, 0) - 0.95).abs() < 1e-12);
        // The lower priority has its least share however much the higher one took.
        let taken = [account(2.0, 1.5, 0.0), account(2.0, 0.05, 0.0)];
        assert!((left(1.0, taken, &shares, 1) - 0.15).abs() < 1e-12);
    }
}
