//! The estimated service time of a request, by its type (AC, section 3.2 and table 2) and, if wished, its size (eq. 1).
//!
//! Each type costs a number of computation quanta: static 1, dynamic 10, audio 20, video 100. The type is read from the request
//! by the engine's own classifier ([`DefaultType`]): "classification of object types introduces less overhead than retrieving
//! file size information". If the number of server processes n is given, what is read from a file takes `T(s, n) = a + floor(s
//! / 64 KB) (b + c n)`, a : b : c = 1 : 0.06 : 0.18, flat below 64 KB. The paper prints s over 64 without saying how it is
//! rounded; its figure 2 is flat below the step, so it is rounded down.
//!
//! The table is what the paper uses before anything is learned. This comparator never learns, so that the paper's scheme is
//! compared as it stands.

use crate::request::Request;
use plimsoll_core::request::DefaultType;

/// One block of a file: what the kernel's send buffer and read-ahead hold.
const BLOCK_BYTES: u64 = 64 << 10;
/// b and c over a.
const TRANSFER: f64 = 0.06;
const SWITCHING: f64 = 0.18;

/// How service times are estimated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quanta {
    /// The time of one quantum: a.
    pub(super) unit_seconds: f64,
    /// The number of server processes, n; `None`: estimates are by type alone.
    pub(super) processes: Option<u32>,
}

impl Quanta {
    /// The estimated service time (s) on one worker.
    pub(super) fn estimate(&self, request: &Request) -> f64 {
        let own = DefaultType::of(request);
        let quanta = match self.processes {
            Some(processes) if own != DefaultType::Dynamic => of_size(request.bytes, processes),
            _ => own.quanta(),
        };
        quanta * self.unit_seconds
    }
}

/// T(s, n) over a (eq. 1).
pub(super) fn of_size(bytes: u64, processes: u32) -> f64 {
    1.0 + (bytes / BLOCK_BYTES) as f64 * (TRANSFER + SWITCHING * f64::from(processes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_type_or_by_size() {
        let video = Request { path: "/launch.mpg".into(), bytes: 10 * BLOCK_BYTES, ..Request::default() };
        let by_type = Quanta { unit_seconds: 0.002, processes: None };
        assert!((by_type.estimate(&video) - 0.2).abs() < 1e-12);
        // 1 + 10 (0.06 + 0.18 * 8) quanta.
        let by_size = Quanta { processes: Some(8), ..by_type };
        assert!((by_size.estimate(&video) - 0.032).abs() < 1e-12);
        let dynamic = Request { path: "/x.cgi".into(), ..video };
        assert!((by_size.estimate(&dynamic) - 0.02).abs() < 1e-12);
    }

    #[test]
    fn the_size_law_leaps_at_64_kilobytes() {
        assert_eq!([of_size(0, 60), of_size(65_535, 60)], [1.0, 1.0]);
        assert!((of_size(65_536, 5) - 1.96).abs() < 1e-12);
        assert!(of_size(65_536, 60) > 11.0);
    }
}
