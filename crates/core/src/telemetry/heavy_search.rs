//! The search for heavy clients in all classes: a look at each class in which enough came, in turn, so that a control step
//! stays short.

use crate::telemetry::counters::LaneCounters;
use crate::telemetry::heavy_hitters::{HeavyHitters, Scratch};
use alloc::{sync::Arc, vec::Vec};

/// Classes that are looked at in one period. With five hundred busy classes each has its turn every fourth period, and
/// then shows at its first look which clients are heavy: its notes hold as many arrivals as are evidence.
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

    /// Reads the notes of some classes; passes each class of which more is known now.
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

    #[test]
    fn busy_classes_beyond_what_a_period_looks_at_have_their_turn_in_the_next() {
        let busy = MOST_LOOKS + 2;
        let lanes = [Arc::new(LaneCounters::default().grown(busy + 1, 1))];
        let mut search = HeavySearch::default();
        (0..=busy).for_each(|_| search.push(1));
        for (number, class) in lanes[0].classes[..busy].iter().enumerate() {
            class.arrivals.add(40);
            class.recent.iter().for_each(|client| client.store(number as u64, Ordering::Relaxed));
        }
        let mut look = || {
            let mut found = Vec::new();
            search.observe(&lanes, |class, known| found.push((class, known.heavy().to_vec())));
            (found, search.is_behind)
        };
        let only = |classes: core::ops::Range<usize>| -> Vec<_> {
            classes.map(|class| (class, alloc::vec![class as u64])).collect()
        };
        assert_eq!(look(), (only(0..MOST_LOOKS), true), "each class has one client");
        assert_eq!(look(), (only(MOST_LOOKS..busy), false), "the class without requests shows nothing");
        assert_eq!(look(), (Vec::new(), false), "nothing came since");
        assert_eq!(search.class(busy).heavy(), []);
    }
}
