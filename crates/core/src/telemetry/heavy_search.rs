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
