//! Tests against the clock, on a machine that may stand still.
//!
//! A virtual machine is taken off its cores for a second now and then, or for a part of every millisecond for a while.
//! What fails meanwhile has failed for that, and says nothing about what is tested. What fails on a steady machine has
//! failed.

use crate::machine_time::MachineTime;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often a test is tried.
const RUNS: usize = 3;
/// A thread that sleeps for so long
const SLEEP: Duration = Duration::from_millis(10);
/// and wakes so much later was kept from its core by the host: beside four busy threads for each core it is a tenth of that.
const STILL: Duration = Duration::from_millis(100);
/// What the host may take of all cores' time.
const STOLEN: f64 = 1.0 / 20.0;

/// Runs a test, which panics if it fails; up to three times, as long as it fails and this machine stood still meanwhile.
///
/// # Panics
/// If the test does, on a machine that did not stand still, or for the third time.
pub fn on_a_steady_machine(test: impl Fn()) {
    run(test, || {
        let watch = Watch::start();
        move || watch.end()
    });
}

/// `watch` starts to look, and what it returns says what it saw.
fn run<End: FnOnce() -> Option<String>>(test: impl Fn(), watch: impl Fn() -> End) {
    for run in 1..=RUNS {
        let end = watch();
        let Err(failure) = catch_unwind(AssertUnwindSafe(&test)) else { return };
        match end() {
            Some(why) if run < RUNS => eprintln!("failed while {why}: it is tried again"),
            _ => resume_unwind(failure),
        }
    }
}

struct Watch {
    before: Option<MachineTime>,
    over: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Watch {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = over.clone();
        let thread = thread::spawn(move || {
            let mut latest = Duration::ZERO;
            while !told.load(Relaxed) {
                let due = Instant::now() + SLEEP;
                thread::sleep(SLEEP);
                latest = latest.max(due.elapsed());
            }
            latest
        });
        Watch { before: MachineTime::now(), over, thread }
    }

    /// What this machine did, if it stood still.
    fn end(self) -> Option<String> {
        self.over.store(true, Relaxed);
        let latest = self.thread.join().unwrap_or_default();
        let stolen = MachineTime::stolen_since(self.before).unwrap_or(0.0);
        (latest > STILL || stolen > STOLEN).then(|| {
            format!("this machine stood still for {latest:.0?} and {:.1} % of its time", 100.0 * stolen)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// How often a test runs that fails in its first `fails` runs, and whether it fails in the end.
    fn runs(fails: usize, stands_still: bool) -> (usize, bool) {
        let runs = Cell::new(0);
        let test = || {
            runs.set(runs.get() + 1);
            assert!(runs.get() > fails, "run {} fails, as it should", runs.get());
        };
        let watch = || move || stands_still.then(|| "it stood still".to_owned());
        let ended = catch_unwind(AssertUnwindSafe(|| run(test, watch)));
        (runs.get(), ended.is_err())
    }

    #[test]
    fn only_what_fails_while_the_machine_stands_still_is_tried_again() {
        assert_eq!(runs(0, true), (1, false));
        assert_eq!(runs(1, true), (2, false));
        assert_eq!(runs(1, false), (1, true), "a failure is a failure");
        assert_eq!(runs(9, true), (RUNS, true), "and one that stays is one, too");
    }
}
