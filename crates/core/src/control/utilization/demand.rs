//! Offered load as a function of the service level m.
//!
//! For each whole level l it has three parts: the work that the present request rates would bring if every client were served
//! at l, `sum_j R_j C_j(min(l, M_j))`, where C_0 is the cost of a rejection; the work of the waiting requests if they are
//! started at l; and, for a plant with a second resource (UC 7.2), the part of the link's bandwidth. Between whole levels all
//! three parts are linear in F, the fraction of clients at the higher level, so U(m) is piecewise linear and is solved for m by
//! a walk over M segments. Each of two resources is linear by itself: U(m), the larger one, has a kink where they cross.

use crate::promises::MAX_LEVELS;

/// One of the resources that requests take of a plant (UC eq. 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resource {
    /// The time of its workers.
    Work,
    /// The bandwidth of its link.
    Link,
}

impl Resource {
    pub(crate) const BOTH: [Resource; 2] = [Resource::Work, Resource::Link];
}

/// The load of one class or of several at a level, in units of utilization (1 is the plant's whole capacity).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LoadParts {
    /// Utilization by arriving requests.
    pub arriving: f64,
    /// Utilization of the link, b' W; zero without a second resource.
    pub link: f64,
    /// The work of waiting requests, in periods of the plant's capacity.
    pub waiting: f64,
}

impl LoadParts {
    /// Adds `part` of another load.
    pub(crate) fn add(&mut self, part: f64, other: LoadParts) {
        self.arriving += part * other.arriving;
        self.link += part * other.link;
        self.waiting += part * other.waiting;
    }

    /// The load on one resource, as if the plant had no other.
    pub(crate) fn of(self, resource: Resource) -> LoadParts {
        match resource {
            Resource::Work => LoadParts { link: 0.0, ..self },
            Resource::Link => LoadParts { arriving: self.link, ..LoadParts::default() },
        }
    }

    /// The load with `drain` times the backlog; of two resources, that of the more loaded one.
    pub(crate) fn offered(self, drain: f64) -> f64 {
        let work = self.arriving + drain * self.waiting;
        larger(work, self.link)
    }
}

/// The larger of both. A comparison takes a third of the instructions of `f64::max`, which looks for NaN.
fn larger(work: f64, link: f64) -> f64 {
    if work > link { work } else { link }
}

/// U(m), by the load at each whole level.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Demand {
    /// M, the highest level that a class of the plant has.
    pub top: u8,
    /// The load if all requests are served at a level, by level.
    pub levels: [LoadParts; MAX_LEVELS + 1],
    /// Whether the waiting requests are still to be decided on, as in the listen queue of a server: then they may be rejected
    /// too.
    pub is_undecided: bool,
}

impl Demand {
    /// A demand of arrivals alone: their utilization at the levels 0..=M.
    pub(crate) fn arriving(utilization: &[f64]) -> Self {
        let mut demand = Demand { top: utilization.len().saturating_sub(1) as u8, ..Demand::default() };
        for (load, utilization) in demand.levels.iter_mut().zip(utilization) {
            load.arriving = *utilization;
        }
        demand
    }

    /// U(m) of the arriving requests and of `drain` times the backlog; of two resources, that of the more loaded one.
    pub(crate) fn offered(&self, m: f64, drain: f64) -> f64 {
        if m <= 0.0 {
            return self.at(0, drain);
        }
        let m = m.min(f64::from(self.top));
        let low = m as usize;
        let fraction = m - low as f64;
        // Most callers ask for a whole level.
        if fraction > 0.0 {
            let between = |below: f64, above: f64| below + fraction * (above - below);
            let link = between(self.levels[low].link, self.levels[low + 1].link);
            larger(between(self.work(low, drain), self.work(low + 1, drain)), link)
        } else {
            self.at(low, drain)
        }
    }

    /// The demand for one resource, as if the plant had no other.
    pub(crate) fn of(&self, resource: Resource) -> Self {
        Demand { levels: self.levels.map(|load| load.of(resource)), ..*self }
    }

    /// The demand of clients that are served at m at most.
    pub(crate) fn at_most(&self, m: f64) -> Self {
        let (mut held, top) = (self.clone(), usize::from(self.top));
        if m < f64::from(self.top) {
            let m = m.max(0.0);
            let (low, mut most) = (m as usize, LoadParts::default());
            for (part, level) in [(1.0 - (m - low as f64), low), (m - low as f64, low + 1)] {
                most.add(part, LoadParts { waiting: self.waiting(level), ..self.levels[level] });
            }
            held.levels[low + 1..=top].fill(most);
        }
        held
    }

    /// The load of the arriving requests at m, by resource.
    pub(crate) fn parts(&self, m: f64) -> LoadParts {
        let m = m.clamp(0.0, f64::from(self.top));
        let low = (m as usize).min(usize::from(self.top).saturating_sub(1));
        let fraction = m - low as f64;
        let mut parts = LoadParts::default();
        parts.add(1.0 - fraction, self.levels[low]);
        parts.add(fraction, self.levels[(low + 1).min(usize::from(self.top))]);
        LoadParts { waiting: 0.0, ..parts }
    }

    /// The work of the waiting requests, in periods of the plant's capacity, if they are started at m, and at the lowest level
    /// at least.
    pub(crate) fn backlog(&self, m: f64) -> f64 {
        if self.levels[..=usize::from(self.top)].iter().all(|load| load.waiting == 0.0) {
            return 0.0;
        }
        let m = m.clamp(1.0_f64.min(f64::from(self.top)), f64::from(self.top));
        let low = (m as usize).min(usize::from(self.top).saturating_sub(1)).max(usize::from(self.top > 0));
        let high = (low + 1).min(usize::from(self.top));
        let (below, above) = (self.levels[low].waiting, self.levels[high].waiting);
        below + (m - low as f64) * (above - below)
    }

    /// The highest m in `[0, M]` whose offered load is at most `target`; 0 if even rejecting all exceeds it.
    pub(crate) fn solve(&self, target: f64, drain: f64) -> f64 {
        for high in (1..=usize::from(self.top)).rev() {
            let (above, below) = (self.at(high, drain), self.at(high - 1, drain));
            if above <= target {
                return high as f64;
            }
            if below < target {
                let fraction = if self.levels[high].link > 0.0 {
                    self.fraction_of_two(high, target, drain)
                } else {
                    (target - below) / (above - below)
                };
                return (high - 1) as f64 + fraction;
            }
        }
        0.0
    }

    /// The largest part of clients that can be served at the level `high`, and the others one level below, so that neither
    /// resource takes more than `target`.
    #[cold]
    #[inline(never)]
    fn fraction_of_two(&self, high: usize, target: f64, drain: f64) -> f64 {
        let fraction =
            |below: f64, above: f64| if above > target { (target - below) / (above - below) } else { 1.0 };
        let link = fraction(self.levels[high - 1].link, self.levels[high].link);
        fraction(self.work(high - 1, drain), self.work(high, drain)).min(link)
    }

    /// dU/dm at m: the gain p of the segment that m lies in (UC 4.4 is the segment from 0 to 1).
    pub(crate) fn gain(&self, m: f64) -> f64 {
        let low = (m as usize).min(usize::from(self.top).saturating_sub(1));
        self.at(low + 1, 0.0) - self.at(low, 0.0)
    }

    fn at(&self, level: usize, drain: f64) -> f64 {
        LoadParts { waiting: self.waiting(level), ..self.levels[level] }.offered(drain)
    }

    fn work(&self, level: usize, drain: f64) -> f64 {
        self.levels[level].arriving + drain * self.waiting(level)
    }

    fn waiting(&self, level: usize) -> f64 {
        // Waiting requests that were admitted count at level 0 as started at the lowest level.
        let lowest = usize::from(self.top > 0 && !self.is_undecided);
        self.levels[level.max(lowest)].waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A demand of three times the capacity, of which the light level takes 0.15.
    fn overload() -> Demand {
        Demand::arriving(&[0.0, 0.45, 3.0])
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn solves_each_segment() {
        let demand = overload();
        let f = (0.85 / 3.0 - 0.15) / 0.85;
        assert!(close(demand.solve(0.85, 0.0), 1.0 + f));
        assert!(close(demand.offered(1.0 + f, 0.0), 0.85));
        assert!(close(demand.solve(0.225, 0.0), 0.5));
        assert!(close(demand.solve(9.0, 0.0), 2.0));
        assert!(
            close(demand.gain(1.5), 2.55) && close(demand.gain(0.5), 0.45) && close(demand.gain(2.0), 2.55)
        );
    }

    #[test]
    fn backlog_is_priced_at_m_and_never_rejected() {
        let mut demand = overload();
        (demand.levels[1].waiting, demand.levels[2].waiting) = (0.3, 2.0);
        assert!(close(demand.offered(1.0, 1.0), 0.75));
        assert!(close(demand.offered(0.0, 1.0), 0.3));
        assert!(
            close(demand.backlog(0.5), 0.3)
                && close(demand.backlog(1.5), 1.15)
                && close(demand.backlog(2.0), 2.0)
        );
    }

    #[test]
    fn what_waits_and_is_to_be_decided_on_may_be_rejected() {
        let mut demand = Demand { is_undecided: true, ..overload() };
        (demand.levels[1].waiting, demand.levels[2].waiting) = (0.3, 2.0);
        assert!(close(demand.offered(0.0, 1.0), 0.0) && close(demand.offered(0.5, 1.0), 0.375));
        assert!(close(demand.offered(1.0, 1.0), 0.75) && close(demand.solve(0.375, 1.0), 0.5));
        assert!(close(demand.backlog(0.0), 0.3));
    }

    #[test]
    fn clients_that_are_held_want_no_more_than_what_they_are_held_to() {
        let mut demand = overload();
        (demand.levels[1].waiting, demand.levels[2].waiting) = (0.3, 2.0);
        for (m, wanted) in [(0.0, 0.0), (0.5, 0.225), (1.0, 0.45), (1.5, 1.725), (2.0, 3.0)] {
            let held = demand.at_most(m);
            assert!(close(held.offered(2.0, 0.0), wanted), "{m}: {held:?}");
            assert!(close(held.offered(2.0, 1.0), demand.offered(m, 1.0)), "{m}: {held:?}");
        }
        assert_eq!(demand.at_most(9.0), demand);
    }

    #[test]
    fn the_bottleneck_of_two_resources_rules() {
        let mut demand = overload();
        (demand.levels[1].link, demand.levels[2].link) = (0.1, 8.0);
        let m = demand.solve(0.85, 0.0);
        assert!(m < overload().solve(0.85, 0.0) && m > 1.0);
    }

    /// Light pages load the workers and full pages the link, which full pages for 13.9 % of the clients fill.
    #[test]
    fn between_two_levels_each_resource_is_interpolated_by_itself() {
        let mut demand = Demand::arriving(&[0.0, 0.6, 0.65]);
        (demand.levels[1].link, demand.levels[2].link) = (0.02, 6.0);
        let m = demand.solve(0.85, 0.0);
        assert!(close(m, 1.0 + (0.85 - 0.02) / 5.98), "{m}");
        assert!(close(demand.offered(m, 0.0), 0.85) && close(demand.offered(1.05, 0.0), 0.6025));
        // If both resources would be overloaded, the one that is full first limits m.
        demand.levels[2].arriving = 3.0;
        let m = demand.solve(0.85, 0.0);
        assert!(close(m, 1.0 + 0.25 / 2.4) && close(demand.offered(m, 0.0), 0.85), "{m}");
        demand.levels[1].waiting = 0.1;
        demand.levels[2].waiting = 0.1;
        assert!(close(demand.offered(demand.solve(0.85, 1.0), 1.0), 0.85));
    }
}
