//! The time that the requests of one rank leave free before their deadline for the costliest of them.
//!
//! Otherwise cheap requests would fill the queue to the brim, and a costly one would never find the time that it needs
//! (trunk reservation). The room is kept within a rank: a request of a higher rank is never refused for the sake of one
//! that stands behind it. It is kept in proportion to the part of the rank's work that is refused, and in full from
//! [`REFUSED`] on, because a queue that seldom overflows loses more by the room than the costly requests gain.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use libm::sqrt;

/// Which part of the headroom a rank keeps, in words that threads share.
#[derive(Default)]
pub(crate) struct Headroom {
    /// The work that was refused (us).
    refused_us: AtomicU64,
    /// The part of the headroom that is kept, in millionths.
    part: AtomicU32,
}

/// What the costliest requests need, among those with one promise of a site and those of its priority at the plant.
#[derive(Default)]
pub(super) struct Costliest {
    /// What the costliest of its types needs (us): its mean, and by how much more. One type may have the longest mean and
    /// another the largest margin.
    mean_us: AtomicU32,
    margin_us: AtomicU32,
    /// What the costliest requests need whose size or cost was announced.
    announced: [Longest; 2],
}

/// The longest time of the last minute or two. If it faded, cheap requests would fill the room that it gives up.
#[derive(Default)]
struct Longest {
    now: AtomicU32,
    before: AtomicU32,
}

/// A time that a request needs (us): its mean, and by how much more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Needs {
    pub(crate) mean: f64,
    pub(crate) margin: f64,
}

/// The part of a deadline for which work may always wait before one worker, whatever headroom the costliest request would
/// need. With s workers it is divided by the square root of s, because the queue before many workers varies less. On the
/// trace of a language model one worker then serves 0.85 of its capacity, and the largest requests are admitted half as
/// often as all requests are; with a longer queue the figures are 0.90 and a third.
const LEAST_QUEUE: f64 = 0.5;
/// The part of a rank's work that is refused from which on the headroom is kept in full. Costly requests are refused first, so
/// the refused part of the work is several times that of the requests.
const REFUSED: f64 = 0.4;

impl Longest {
    fn note(&self, us: f64) {
        if us as u32 > self.now.load(Ordering::Relaxed) {
            self.now.fetch_max(us as u32, Ordering::Relaxed);
        }
    }

    fn get(&self) -> f64 {
        f64::from(self.now.load(Ordering::Relaxed).max(self.before.load(Ordering::Relaxed)))
    }

    fn turn(&self) {
        self.before.store(self.now.swap(0, Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Costliest {
    pub(super) fn get(&self) -> Needs {
        let us = |word: &AtomicU32| f64::from(word.load(Ordering::Relaxed));
        Needs { mean: us(&self.mean_us), margin: us(&self.margin_us) }.max(self.announced())
    }

    /// What the costliest requests need whose size or cost was announced.
    pub(super) fn announced(&self) -> Needs {
        let [mean, margin] = &self.announced;
        Needs { mean: mean.get(), margin: margin.get() }
    }

    /// Notes a request whose size or cost was announced.
    pub(super) fn note_announced(&self, needs: Needs) {
        let [mean, margin] = &self.announced;
        mean.note(needs.mean);
        margin.note(needs.margin);
    }

    /// Sets what the types that came recently need, at all sites of the priority.
    pub(super) fn set(&self, needs: Needs) {
        self.mean_us.store(needs.mean as u32, Ordering::Relaxed);
        self.margin_us.store(needs.margin as u32, Ordering::Relaxed);
    }

    /// Forgets the requests that were noted before the last call.
    pub(super) fn turn(&self) {
        self.announced.iter().for_each(Longest::turn);
    }
}

impl Needs {
    pub(crate) fn max(self, other: Needs) -> Needs {
        Needs { mean: self.mean.max(other.mean), margin: self.margin.max(other.margin) }
    }

    /// The need that is left once `us` of it is met (us).
    pub(crate) fn less(self, us: f64) -> Needs {
        let mean = (self.mean - us).max(0.0);
        Needs { mean, margin: (self.margin - (us - self.mean).max(0.0)).max(0.0) }
    }

    fn within(self, most_us: f64) -> Needs {
        let mean = self.mean.min(most_us);
        Needs { mean, margin: self.margin.min(most_us - mean) }
    }
}

impl Headroom {
    /// Counts work that is refused.
    pub(super) fn refuse(&self, work_us: u64) {
        self.refused_us.fetch_add(work_us, Ordering::Relaxed);
    }

    /// What is kept free for the costliest requests, if at most `most_us` may be.
    pub(super) fn kept(&self, costliest: &Costliest, most_us: f64) -> Needs {
        costliest.get().within(most_us * self.part())
    }

    /// The part of the headroom that is kept: 1 where many requests are refused.
    pub(super) fn part(&self) -> f64 {
        f64::from(self.part.load(Ordering::Relaxed)) * 1e-6
    }

    /// All work that was ever refused (us).
    pub(crate) fn refused_us(&self) -> u64 {
        self.refused_us.load(Ordering::Relaxed)
    }

    /// Sets the part of the recent work that was refused.
    pub(crate) fn follow(&self, refused: f64) {
        self.part.store(((refused / REFUSED).min(1.0) * 1e6) as u32, Ordering::Relaxed);
    }
}

/// The most time that is kept free of a deadline at a plant with this number of workers (us).
pub(super) fn most_us(deadline_us: f64, workers: u32) -> f64 {
    (1.0 - LEAST_QUEUE / sqrt(f64::from(workers.max(1)))) * deadline_us
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_kept_for_the_costliest_as_far_as_requests_are_refused() {
        let (room, costliest) = (Headroom::default(), Costliest::default());
        costliest.set(Needs { mean: 400.0, margin: 10.0 });
        costliest.note_announced(Needs { mean: 300.0, margin: 100.0 });
        assert_eq!(room.kept(&costliest, 1000.0), Needs::default());
        room.follow(0.5 * REFUSED);
        assert_eq!(room.kept(&costliest, 1000.0), Needs { mean: 400.0, margin: 100.0 });
        assert_eq!(room.kept(&costliest, 900.0), Needs { mean: 400.0, margin: 50.0 });
        costliest.turn();
        costliest.turn();
        room.follow(2.0 * REFUSED);
        assert_eq!(room.kept(&costliest, 1000.0), Needs { mean: 400.0, margin: 10.0 });
        assert_eq!(most_us(1000.0, 4), 750.0);
    }
}
