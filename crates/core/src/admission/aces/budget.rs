//! The paper AC's budget of a period: the words that threads share.
//!
//! ```text
//! C_p = C - carried - sum over higher q of max(predicted_q, used_q) - used_p  >=  own estimate
//! ```
//!
//! in service-seconds, C = s T. The formula, with the shares of WFA, is [`left`]. `tick` writes the carried and the
//! predicted work once a period (`periods.rs`). T is the shortest deadline that the plant has to keep, as AC's T is its
//! bound of the response time.
//!
//! Used work belongs to a period: its word has the period's number ([`Tagged`]), so if a request is done, refused or gone in a
//! later period, nothing is corrected. An account belongs to a band of ranks, which is one priority. Work in service is ahead
//! of every priority, since nothing is preempted. The simulator's comparator, which is the paper's own request path, charges it
//! to the priority of its request instead.
//!
//! Waiting requests are ordered by rank and deadline, as under admission by unfinished work, and a request that can no
//! longer be in time is dropped as late. There is no second queue (docs/decisions/0009-deadlines.md).

use crate::admission::aces::forecast::RequestedWork;
use crate::admission::aces::formula::{Account, left};
use crate::admission::unfinished_work::Workers;
use crate::promises::Share;
use crate::scheduling::rank::Rank;
use crate::sync::tagged::Tagged;
use crate::time::{Duration, Instant};
use alloc::{sync::Arc, vec::Vec};
use core::sync::atomic::{AtomicU64, Ordering};

/// The budget of a plant.
#[derive(Clone, Default)]
pub(crate) struct Budget {
    /// By slot of the unfinished work: the index of its account.
    account_of_slot: Vec<usize>,
    /// By band, the highest first.
    accounts: Vec<(u16, Arc<AccountWords>)>,
    /// By account: the index of its party, the accounts that have one share together. Without WFA each account is a party.
    party_of_account: Vec<usize>,
    /// By party.
    shares: Vec<Share>,
    /// T.
    pub(crate) period: Duration,
    /// When the next period begins (ns).
    next_ns: Arc<AtomicU64>,
}

/// The account of one band (us).
#[derive(Default)]
pub(crate) struct AccountWords {
    used: Tagged,
    predicted: AtomicU64,
    carried: AtomicU64,
    /// The work that was requested in the period, admitted or not, but for requests that take too long even alone: no period
    /// serves them, so none keeps room for them.
    requests: AtomicU64,
    requested_us: AtomicU64,
}

impl AccountWords {
    fn account(&self) -> Account {
        let seconds = |word: &AtomicU64| word.load(Ordering::Relaxed) as f64 * 1e-6;
        let used = self.used.get().1 as f64 * 1e-6;
        Account { predicted: seconds(&self.predicted), used, carried: seconds(&self.carried) }
    }

    /// Takes the work that was requested since the last call.
    pub(crate) fn take_requested(&self) -> RequestedWork {
        let take = |word: &AtomicU64| word.swap(0, Ordering::Relaxed);
        RequestedWork { requests: take(&self.requests), seconds: take(&self.requested_us) as f64 * 1e-6 }
    }

    /// Begins a period.
    pub(crate) fn begin(&self, tag: u16, predicted: f64, carried_us: u64) {
        self.predicted.store((predicted * 1e6) as u64, Ordering::Relaxed);
        self.carried.store(carried_us, Ordering::Relaxed);
        self.used.begin(tag);
    }
}

impl Budget {
    /// Follows the slots of unfinished work; `shares` are those of the priorities of the `promised`
    /// ranks, the highest first.
    pub(crate) fn follow(
        &mut self,
        slots: impl Iterator<Item = Rank> + Clone,
        promised: &[Rank],
        shares: &[Share],
        period: Duration,
    ) {
        self.accounts.retain(|(band, _)| slots.clone().any(|rank| rank.band == *band));
        for rank in slots.clone() {
            if let Err(index) = self.accounts.binary_search_by_key(&rank.band, |(band, _)| *band) {
                self.accounts.insert(index, (rank.band, Arc::default()));
            }
        }
        let account = |rank: Rank| self.accounts.iter().take_while(|(band, _)| *band < rank.band).count();
        self.account_of_slot = slots.map(account).collect();
        self.share_out(promised, shares);
        self.period = period;
    }

    /// Gives each priority that classes have now its share, which sites with and without a contract have together.
    fn share_out(&mut self, promised: &[Rank], shares: &[Share]) {
        let mut priorities: Vec<u8> = promised.iter().filter_map(|rank| Rank::priority(rank.band)).collect();
        priorities.sort_unstable();
        priorities.dedup();
        // Exempt requests and those inside a contract have accounts of their own, and no share.
        let party = |band: u16| match Rank::priority(band) {
            Some(priority) if !shares.is_empty() => Rank::contracted(priority, None).band,
            _ => band,
        };
        let mut parties: Vec<u16> = self.accounts.iter().map(|(band, _)| party(*band)).collect();
        parties.sort_unstable();
        parties.dedup();
        let party_index = |band: u16| parties.iter().take_while(|own| **own < party(band)).count();
        self.party_of_account = self.accounts.iter().map(|(band, _)| party_index(*band)).collect();
        let share = |party: &u16| {
            let index = priorities.binary_search(&Rank::priority(*party)?).ok()?;
            shares.get(index).copied()
        };
        self.shares = parties.iter().map(|party| share(party).unwrap_or(Share::ANY)).collect();
    }

    /// Band and words of each account, the highest first.
    pub(crate) fn accounts(&self) -> &[(u16, Arc<AccountWords>)] {
        &self.accounts
    }

    pub(crate) fn set_next(&self, next: Instant) {
        self.next_ns.store(next.as_nanos(), Ordering::Relaxed);
    }

    /// Charges an arriving request to the period; returns the period's number.
    pub(crate) fn reserve(&self, slot: usize, work_us: u64) -> u16 {
        let words = &self.accounts[self.account_of_slot[slot]].1;
        words.requests.fetch_add(1, Ordering::Relaxed);
        words.requested_us.fetch_add(work_us, Ordering::Relaxed);
        words.used.join(work_us)
    }

    /// Takes a request whose work is reserved out of the requested work, because it takes too long even alone.
    pub(crate) fn not_requested(&self, slot: usize, work_us: u64) {
        let words = &self.accounts[self.account_of_slot[slot]].1;
        for (word, counted) in [(&words.requests, 1), (&words.requested_us, work_us)] {
            // A period may have begun since the request was counted.
            let less = |own: u64| Some(own.saturating_sub(counted));
            let _ = word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        }
    }

    /// Corrects the charge of a request that took more, less, or nothing.
    pub(crate) fn correct(&self, slot: usize, tag: u16, (work_us, took_us): (u64, u64)) {
        self.accounts[self.account_of_slot[slot]].1.used.correct(tag, (work_us, took_us));
    }

    /// Whether the work that was left before this request was charged is enough for it; if not, after which time it might be
    /// enough, if ever.
    pub(crate) fn admits(
        &self,
        slot: usize,
        work_us: u64,
        workers: &Workers,
    ) -> Result<(), Option<Duration>> {
        let (index, work) = (self.account_of_slot[slot], work_us as f64 * 1e-6);
        let party = self.party_of_account[index];
        let capacity = f64::from(workers.all.max(1)) * self.period.as_secs_f64();
        let accounts = (0..self.shares.len()).map(|q| {
            let own = self.accounts.iter().zip(&self.party_of_account).filter(|(_, party)| **party == q);
            let mut account = Account::default();
            own.for_each(|((_, words), _)| account.add(words.account()));
            let charged = if q == party { work } else { 0.0 };
            Account { used: (account.used - charged).max(0.0), ..account }
        });
        // Half of the counting unit is added against rounding.
        if work <= left(capacity, accounts, &self.shares, party) + 0.5e-6 {
            return Ok(());
        }
        let most = self.shares[party].most * capacity;
        // A request that no period has room for takes a worker that idles; what it takes is carried over.
        if work > most && workers.idle {
            return Ok(());
        }
        let next = Instant::from_nanos(self.next_ns.load(Ordering::Relaxed));
        Err((work <= most).then(|| next.since(workers.at.unwrap_or(next)).max(Duration::from_micros(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: usize = 0;
    const SECOND: usize = 1;
    const EXEMPT: usize = 2;

    /// Two priorities and exempt requests, in the order of slots, with a period of a second.
    fn budget(shares: &[Share]) -> Budget {
        let second = Some(Duration::from_secs(1));
        let slots = [Rank::ordinary(1, second), Rank::ordinary(2, second), Rank::EXEMPT];
        let mut budget = Budget::default();
        budget.follow(slots.into_iter(), &slots, shares, Duration::from_secs(1));
        budget.set_next(Instant::ZERO + Duration::from_secs(1));
        budget
    }

    fn workers(all: u32) -> Workers {
        let at = Some(Instant::ZERO + Duration::from_millis(400));
        Workers { all, idle: true, left: (0.0, 0.0), queued: (0.0, 0.0), at, empty: true, known: true }
    }

    /// How many requests of 10 ms are admitted now.
    fn admitted(budget: &Budget, slot: usize) -> u32 {
        let mut count = 0;
        loop {
            let tag = budget.reserve(slot, 10_000);
            if budget.admits(slot, 10_000, &workers(1)).is_err() {
                budget.correct(slot, tag, (10_000, 0));
                return count;
            }
            count += 1;
        }
    }

    fn words(budget: &Budget, slot: usize) -> &AccountWords {
        &budget.accounts()[budget.account_of_slot[slot]].1
    }

    #[test]
    fn a_period_admits_its_work_and_counts_what_it_took() {
        let budget = budget(&[]);
        let tag = budget.reserve(FIRST, 10_000);
        assert_eq!(admitted(&budget, FIRST), 99);
        budget.correct(FIRST, tag, (10_000, 4_000));
        assert_eq!(admitted(&budget, FIRST), 0);
        budget.correct(FIRST, tag, (10_000, 0));
        assert_eq!(admitted(&budget, FIRST), 1);
        let RequestedWork { requests, seconds } = words(&budget, FIRST).take_requested();
        assert!(requests == 104 && (seconds - 1.04).abs() < 1e-9, "admitted or not: {requests}, {seconds}");
        // Half a period's work is carried over, and a request that is done now belongs to the last period.
        words(&budget, FIRST).begin(1, 0.0, 500_000);
        budget.correct(FIRST, tag, (10_000, 900_000));
        assert_eq!(admitted(&budget, FIRST), 50);
    }

    #[test]
    fn lower_priorities_have_what_is_predicted_to_remain() {
        let budget = budget(&[]);
        words(&budget, FIRST).begin(1, 0.6, 0);
        words(&budget, EXEMPT).begin(1, 0.1, 0);
        assert_eq!(admitted(&budget, SECOND), 30);
        assert_eq!(admitted(&budget, FIRST), 90);
    }

    #[test]
    fn shares_are_of_the_priorities_that_classes_have() {
        let budget = budget(&[Share { least: 0.0, most: 0.7 }, Share { least: 0.2, most: 1.0 }]);
        words(&budget, EXEMPT).begin(1, 0.1, 0);
        assert_eq!(admitted(&budget, FIRST), 70);
        assert_eq!(admitted(&budget, SECOND), 20);
    }

    /// A budget of these slots, of which those with a `true` belong to classes that are promised now.
    fn followed(budget: &mut Budget, slots: &[(Rank, bool)], shares: &[Share]) {
        let promised: Vec<Rank> = slots.iter().filter(|(_, now)| *now).map(|(rank, _)| *rank).collect();
        let slots = slots.iter().map(|(rank, _)| *rank);
        budget.follow(slots, &promised, shares, Duration::from_secs(1));
        budget.set_next(Instant::ZERO + Duration::from_secs(1));
    }

    #[test]
    fn a_share_belongs_to_a_priority_with_and_without_a_contract() {
        let shares = [Share { least: 0.0, most: 0.7 }, Share { least: 0.1, most: 0.2 }];
        let ranks = [Rank::contracted(1, None), Rank::contracted(2, None), Rank::ordinary(1, None)];
        let mut budget = Budget::default();
        followed(&mut budget, &ranks.map(|rank| (rank, true)), &shares);
        assert_eq!([0, 1, 2].map(|slot| admitted(&budget, slot)), [70, 20, 0], "priority 1 has 0.7 in all");
        let mut budget = Budget::default();
        followed(&mut budget, &ranks.map(|rank| (rank, true)), &shares);
        assert_eq!([2, 1, 0].map(|slot| admitted(&budget, slot)), [70, 20, 0]);
    }

    #[test]
    fn a_priority_that_a_reload_took_away_keeps_no_share() {
        let shares = [Share { least: 0.0, most: 0.7 }, Share { least: 0.0, most: 0.2 }];
        let [first, second, third] = [1, 2, 3].map(|priority| Rank::ordinary(priority, None));
        let mut budget = Budget::default();
        followed(&mut budget, &[(first, true), (second, true)], &shares);
        assert_eq!(admitted(&budget, 1), 20);
        budget.accounts().iter().for_each(|(_, words)| words.begin(1, 0.0, 0));
        followed(&mut budget, &[(first, false), (second, true), (third, true)], &shares);
        assert_eq!((admitted(&budget, 1), admitted(&budget, 2)), (70, 20));
    }

    #[test]
    fn a_refusal_says_when_the_next_period_begins() {
        let budget = budget(&[]);
        assert_eq!(admitted(&budget, FIRST), 100);
        budget.reserve(FIRST, 10_000);
        assert_eq!(budget.admits(FIRST, 10_000, &workers(1)), Err(Some(Duration::from_millis(600))));
        assert_eq!(budget.admits(FIRST, 10_000, &workers(2)), Ok(()));
        budget.reserve(FIRST, 2_100_000);
        assert_eq!(budget.admits(FIRST, 2_100_000, &workers(2)), Ok(()), "a worker idles");
        let busy = Workers { idle: false, ..workers(2) };
        assert_eq!(budget.admits(FIRST, 2_100_000, &busy), Err(None));
    }
}
