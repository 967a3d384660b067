//! The shares by which sites with a contract take turns, inside their contracts and beyond them.
//!
//! In order of arrival, a site whose pages have become dear, or that has just been flooded, would make all others wait behind
//! it; and by priority, which is an order inside one site (UC 5.2), one site would come before another's contract. So the
//! sites take turns by start-time fair queueing: a start takes `1 / R_max` of its site's time, and the site whose time is
//! least is next. A site whose requests did not wait has lost nothing and saved nothing, since its time is at least that of
//! the last start. When no request waits any more, all sites are at the same time again: a start that made nobody wait is no
//! debt. Else a site of 0.1/s, whose start takes ten seconds of its time, would stand behind every burst of a site of 100/s.
//! So while sites wait for the server, each has at least `R_max_i / (sum of R_max)` of the starts, which for contracts that
//! fit is more than its rate; and a site that asks for less does not wait behind the others' backlogs.
//!
//! A full queue is shared in the same way: it gives up a request of the site that would still have the longest backlog, in the
//! time of its contract.

use crate::scheduling::rank::{KINDS, Rank};
use alloc::vec::Vec;

/// The sites of a queue, each once for its requests inside its contract and once for those beyond.
#[derive(Default)]
pub(super) struct SiteShares {
    sites: Vec<SiteShare>,
    /// The time of the last start, by kind.
    last: [u64; KINDS],
}

struct SiteShare {
    kind: u16,
    site: u16,
    /// The end of its last start in the site's own time (ns).
    ends: u64,
    /// The time (ns) that its waiting requests will take of that, and that the latest of them will.
    waiting_ns: u64,
    pace_ns: u64,
}

impl SiteShare {
    /// The backlog (ns) that is left without one of its waiting requests.
    fn without_one(&self) -> u64 {
        self.waiting_ns.saturating_sub(self.pace_ns)
    }
}

impl SiteShares {
    /// The number of a site's share at this rank; `None` if the site has no contract.
    pub(super) fn share(&mut self, site: u16, rank: Rank) -> Option<usize> {
        rank.takes_turns().then(|| {
            let kind = rank.kind();
            let known = self.sites.iter().position(|own| (own.kind, own.site) == (kind, site));
            known.unwrap_or_else(|| {
                self.sites.push(SiteShare { kind, site, ends: 0, waiting_ns: 0, pace_ns: 0 });
                self.sites.len() - 1
            })
        })
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn len(&self) -> usize {
        self.sites.len()
    }

    /// Forgets the sites without waiting requests whose time is not ahead of the last start: they would begin there again. The
    /// other sites have other numbers then.
    pub(super) fn forget_settled(&mut self) {
        let last = self.last;
        self.sites.retain(|own| own.waiting_ns > 0 || own.ends > last[usize::from(own.kind)]);
    }

    /// The time at which the site's next request starts.
    pub(super) fn starts(&self, share: usize) -> u64 {
        let own = &self.sites[share];
        own.ends.max(self.last[usize::from(own.kind)])
    }

    /// A request of the site waits, of which its contract promises one in `pace_ns`.
    pub(super) fn wait(&mut self, share: usize, pace_ns: u64) {
        let own = &mut self.sites[share];
        (own.waiting_ns, own.pace_ns) = (own.waiting_ns + pace_ns, pace_ns);
    }

    /// A request of the site waits no longer.
    pub(super) fn leave(&mut self, share: usize, pace_ns: u64) {
        let own = &mut self.sites[share];
        (own.waiting_ns, own.pace_ns) = (own.waiting_ns.saturating_sub(pace_ns), pace_ns);
        let kind = own.kind;
        let mut of_kind = self.sites.iter_mut().filter(|site| site.kind == kind);
        if of_kind.all(|site| site.waiting_ns == 0) {
            // The same time for all is as good as any other, and this one keeps the sums small however long the gateway runs.
            self.sites.iter_mut().filter(|site| site.kind == kind).for_each(|site| site.ends = 0);
            self.last[usize::from(kind)] = 0;
        }
    }

    /// A request of the site starts.
    pub(super) fn start(&mut self, share: usize, pace_ns: u64) {
        let starts = self.starts(share);
        let own = &mut self.sites[share];
        own.ends = starts.saturating_add(pace_ns);
        self.last[usize::from(own.kind)] = starts;
    }

    /// The site of the kind that gives up a request for one more request of this site: without that request, its backlog would
    /// still be longer than that of this site.
    pub(super) fn longest(&self, share: usize) -> Option<u16> {
        let own = &self.sites[share];
        let others = self.sites.iter().filter(|other| other.kind == own.kind);
        let longest = others.max_by_key(|other| other.without_one())?;
        (longest.without_one() > own.waiting_ns).then_some(longest.site)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn starts_are_shared_by_rate_and_idle_time_is_not_saved() {
        let mut shares = SiteShares::default();
        assert_eq!(shares.share(0, Rank::ordinary(1, None)), None);
        let [slow, fast] =
            [1, 2].map(|site| shares.share(site, Rank::contracted(9, None)).expect("a contract"));
        assert_ne!(shares.share(1, Rank::guaranteed(9, None)), Some(slow), "inside its contract");
        assert_eq!(shares.share(1, Rank::contracted(1, None)), Some(slow), "for all priorities");
        // The first site is alone for a while; then the second comes, which is promised three times as much.
        (0..100).for_each(|_| shares.start(slow, 30));
        let mut starts = [0, 0];
        for _ in 0..400 {
            let next = if shares.starts(fast) < shares.starts(slow) { fast } else { slow };
            shares.start(next, if next == fast { 10 } else { 30 });
            starts[usize::from(next == fast)] += 1;
        }
        assert!((98..=102).contains(&starts[0]), "{starts:?}");
    }

    #[test]
    fn a_full_queue_gives_up_the_longest_backlog() {
        let mut shares = SiteShares::default();
        let [slow, fast] =
            [1, 2].map(|site| shares.share(site, Rank::contracted(9, None)).expect("a contract"));
        (0..3).for_each(|_| shares.wait(slow, 30));
        (0..5).for_each(|_| shares.wait(fast, 10));
        assert_eq!((shares.longest(fast), shares.longest(slow)), (Some(1), None));
        shares.leave(slow, 30);
        assert_eq!(shares.longest(fast), None, "its own backlog would be the longer one");
    }

    #[test]
    fn one_request_of_a_slow_contract_is_no_backlog_and_its_start_no_debt() {
        let mut shares = SiteShares::default();
        let [slow, fast] =
            [1, 2].map(|site| shares.share(site, Rank::contracted(9, None)).expect("a contract"));
        let start = |shares: &mut SiteShares, share, pace| {
            shares.start(share, pace);
            shares.leave(share, pace);
        };
        shares.wait(slow, 10_000);
        (0..900).for_each(|_| shares.wait(fast, 10));
        assert_eq!(shares.longest(fast), None, "it gives up none for the 901st of the other");
        // Both sites have waited and started. At the next burst of the other site the slow one has its turn.
        start(&mut shares, slow, 10_000);
        (0..900).for_each(|_| start(&mut shares, fast, 10));
        shares.wait(slow, 10_000);
        (0..900).for_each(|_| shares.wait(fast, 10));
        assert_eq!(shares.starts(slow), shares.starts(fast));
        // While requests wait, the next start of the slow one is ten seconds later.
        start(&mut shares, slow, 10_000);
        start(&mut shares, fast, 10);
        assert!(shares.starts(slow) > shares.starts(fast) + 9_000);
    }

    #[test]
    fn years_of_starts_of_a_slow_contract_leave_the_shares_as_they_are() {
        let mut shares = SiteShares::default();
        let [slow, fast] =
            [1, 2].map(|site| shares.share(site, Rank::contracted(9, None)).expect("a contract"));
        for _ in 0..1000 {
            shares.wait(slow, u64::MAX / 100);
            shares.start(slow, u64::MAX / 100);
            shares.leave(slow, u64::MAX / 100);
        }
        [slow, fast].iter().for_each(|share| shares.wait(*share, 10));
        shares.start(slow, 10);
        assert!(shares.starts(slow) > shares.starts(fast), "the other one is next");
    }
}
