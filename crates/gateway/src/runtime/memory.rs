//! Memory that is given back to the system after a burst.
//!
//! The C library's allocator keeps what was freed for later use. After an attack, or a burst of connections, that can be
//! hundreds of megabytes for the rest of the process's life: freed memory between memory in use never goes back by itself.

use plimsoll_core::time::{Duration, Instant};

/// What a thread must have given up for a search of freed memory to be worth its time.
const WORTH: usize = 4 << 20;
/// Freed memory is searched for no more often than this: a search takes milliseconds.
const LEAST_TIME_BETWEEN: Duration = Duration::from_secs(5);

/// The most that a thread held since memory was last given back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HighWater {
    most: usize,
    given_back: Instant,
}

impl HighWater {
    /// Whether a thread that holds `bytes` now, roughly, has given up so much that memory should go back.
    pub(crate) fn has_fallen(&mut self, now: Instant, bytes: usize) -> bool {
        self.most = self.most.max(bytes);
        let fallen = self.most - bytes >= WORTH.max(self.most / 4);
        if !fallen || now.since(self.given_back) < LEAST_TIME_BETWEEN {
            return false;
        }
        *self = HighWater { most: bytes, given_back: now };
        true
    }
}

/// Gives freed memory back to the system.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        #[expect(
            unsafe_code,
            reason = "no library wraps it; it takes no pointer and may be called at any time"
        )]
        unsafe {
            libc::malloc_trim(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_goes_back_after_a_burst_and_not_more_often_than_is_worth_it() {
        let mut water = HighWater::default();
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        assert!(!water.has_fallen(at(10), 100 << 20));
        assert!(!water.has_fallen(at(11), 76 << 20), "less than a quarter");
        assert!(water.has_fallen(at(12), 75 << 20));
        assert!(!water.has_fallen(at(13), 0), "too soon");
        assert!(water.has_fallen(at(17), 0));
        assert!(!water.has_fallen(at(30), 3 << 20));
        assert!(!water.has_fallen(at(31), 0), "too little");
    }
}
