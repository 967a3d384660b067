//! Memory that goes back to the system after a burst.
//!
//! The C library's allocator keeps freed memory for later use. After an attack, or a burst of connections, that can be hundreds
//! of megabytes for the rest of the process's life: freed memory between memory in use never goes back by itself.

use plimsoll_core::time::{Duration, Instant};

/// How many bytes a thread must have freed for a search of freed memory to be worth its time. The bytes are known only roughly:
/// the real number may be several times as large.
const WORTH: usize = 1 << 20;
/// The least time between two searches of freed memory.
const LEAST_TIME_BETWEEN: Duration = Duration::from_millis(500);
/// The rest after a search for free memory, as a multiple of its time: a thread spends a fiftieth of its time on searches at
/// most. A search takes milliseconds, and longer if much was freed.
const REST: u32 = 50;

/// The most memory that a thread has held since memory was last given back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HighWater {
    most: usize,
    not_before: Instant,
}

impl HighWater {
    /// Whether a thread that holds about `bytes` now has freed so much that memory should go back.
    pub(crate) fn has_fallen(&mut self, now: Instant, bytes: usize) -> bool {
        self.most = self.most.max(bytes);
        let fallen = self.most - bytes >= WORTH.max(self.most / 4);
        if !fallen || now < self.not_before {
            return false;
        }
        self.most = bytes;
        true
    }

    /// Notes that memory went back, from `begun` to `now`.
    pub(crate) fn gave_back(&mut self, begun: Instant, now: Instant) {
        self.not_before = now + LEAST_TIME_BETWEEN.max(now.since(begun) * REST);
    }
}

/// Pieces of memory of at least this size go back to the system as soon as they are freed.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: i32 = 512 * 1024;

/// Has large pieces of memory go back to the system when they are freed, for the rest of the process's life. By default, when
/// such a piece is freed, the C library keeps later pieces of its size, and up to twice as much free memory: after a reload has
/// freed the queue of an access log, several megabytes more would stay.
pub(crate) fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "no library wraps it; it takes no pointer and may be called at any time")]
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LARGE);
    }
}

/// Gives freed memory back to the system.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "no library wraps it; it takes no pointer and may be called at any time")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece of memory that the system gave by itself begins 16 bytes behind the beginning of a page. Four pieces do not do
    /// so by chance, but one may be in room that other tests have freed.
    #[test]
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn a_large_piece_comes_from_the_system_and_goes_back_whatever_was_freed_before() {
        keep_little();
        drop(vec![1_u8; 8 << 20]);
        let pieces: Vec<Vec<u8>> = (0..8).map(|_| vec![1; 2 << 20]).collect();
        let of_the_system = pieces.iter().filter(|piece| piece.as_ptr().addr() % 4096 == 16).count();
        assert!(of_the_system >= 4, "{of_the_system} of eight");
    }

    #[test]
    fn memory_goes_back_after_a_burst_and_not_more_often_than_is_worth_it() {
        let mut water = HighWater::default();
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        assert!(!water.has_fallen(at(10_000), 100 << 20));
        assert!(!water.has_fallen(at(11_000), 76 << 20), "less than a quarter");
        assert!(water.has_fallen(at(12_000), 75 << 20));
        water.gave_back(at(12_000), at(12_001));
        assert!(!water.has_fallen(at(12_500), 0), "too soon");
        assert!(water.has_fallen(at(12_501), 0));
        water.gave_back(at(12_501), at(12_521));
        assert!(!water.has_fallen(at(13_000), 9 << 20));
        assert!(!water.has_fallen(at(13_500), 0), "the last search took 20 ms");
        assert!(water.has_fallen(at(13_521), 0));
        assert!(!water.has_fallen(at(30_000), 768 << 10));
        assert!(!water.has_fallen(at(31_000), 0), "too little");
    }
}
