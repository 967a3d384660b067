//! The search for heavy clients in all classes: a look at each class in which enough came, in turn, so that a control step
//! stays short.

use crate::telemetry::counters::LaneCounters;
use crate::telemetry::heavy_hitters::{HeavyHitters, Scratch};
use alloc::{sync::Arc, vec::Vec};

/// Classes that are looked at in one period. With five hundred busy classes each has its turn every fourth period, and
/// then shows at its first look which clients are heavy: its notes hold as many arrivals as tell.
const MOST_LOOKS: usize = 128;

/// The search, with what is known of each class.
#[derive(Default)]
pub(crate) struct HeavySearch {
    classes: Vec<HeavyHitters>,
    scratch: Scratch,
    /// The class that is looked at first in the next period.
    next: usize,
    /// Some classes were left for the next period.
    pub(crate) is_behind: bool,
}

impl HeavySearch {
    /// Adds the next class.
    pub(crate) fn push(&mut self, lanes: usize) {
        self.classes.push(HeavyHitters::new(lanes));
    }

    /// What is known of a class.
    pub(crate) fn class(&self, class: usize) -> &HeavyHitters {
        &self.classes[class]
    }

    /// Looks at the notes; passes each class of which more is known now.
    pub(crate) fn observe(
        &mut self,
        lanes: &[Arc<LaneCounters>],
        mut publish: impl FnMut(usize, &HeavyHitters),
    ) {
        let (classes, mut looks) = (self.classes.len(), 0);
        self.is_behind = false;
        for _ in 0..classes {
            let class = self.next % classes;
            self.next = class + 1;
            let known = &mut self.classes[class];
            if known.observe(lanes, class, &mut self.scratch) {
                publish(class, known);
                looks += 1;
                if looks == MOST_LOOKS {
                    self.is_behind = true;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;

    /// A lane with so many classes, each with 64 arrivals of one client, whose hash is the number of the class.
    fn lane(classes: usize) -> [Arc<LaneCounters>; 1] {
        let lane = LaneCounters::default().grown(classes, 1);
        for (number, class) in lane.classes.iter().enumerate() {
            class.recent[..64].iter().for_each(|note| note.store(number as u64, Ordering::Relaxed));
            class.arrivals.add(64);
        }
        [Arc::new(lane)]
    }

    #[test]
    fn each_class_has_its_turn_and_no_period_looks_at_more_than_a_bound() {
        let classes = 2 * MOST_LOOKS + 10;
        let (lanes, mut search) = (lane(classes), HeavySearch::default());
        (0..classes).for_each(|_| search.push(1));
        let mut looked = Vec::new();
        for (looks, is_behind) in [(MOST_LOOKS, true), (MOST_LOOKS, true), (10, false), (0, false)] {
            let before = looked.len();
            search.observe(&lanes, |class, known| {
                assert_eq!(known.heavy(), [class as u64]);
                looked.push(class);
            });
            assert_eq!((looked.len() - before, search.is_behind), (looks, is_behind));
        }
        assert_eq!(looked, (0..classes).collect::<Vec<_>>());
        assert_eq!(search.class(7).heavy(), [7]);
    }
}
