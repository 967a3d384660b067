//! What the numbers on the command line may be.

use std::ops::RangeInclusive;

/// An option's number.
pub(crate) struct Bounds<T> {
    /// Its name.
    pub(crate) option: &'static str,
    /// What it may be, in words.
    pub(crate) what: &'static str,
    /// One that is right.
    pub(crate) example: &'static str,
    /// What it may be.
    pub(crate) range: RangeInclusive<T>,
}

pub(crate) const SECONDS: Bounds<u64> =
    Bounds { option: "seconds", what: "whole seconds from 5 to 3600", example: "30", range: 5..=3600 };
pub(crate) const LOAD: Bounds<f64> = Bounds {
    option: "load",
    what: "a multiple of the capacity from 0.1 to 5",
    example: "3",
    range: 0.1..=5.0,
};
pub(crate) const CAPACITY: Bounds<u32> = Bounds {
    option: "capacity",
    what: "whole pages per second from 100 to 10000",
    example: "500",
    range: 100..=10_000,
};
pub(crate) const SEED: Bounds<u64> =
    Bounds { option: "seed", what: "a whole number from 0", example: "1", range: 0..=u64::MAX };
pub(crate) const SPEED: Bounds<f64> = Bounds {
    option: "speed",
    what: "how many times as fast time passes, from 0.001 to 1000000",
    example: "3",
    range: 0.001..=1e6,
};
pub(crate) const SCALE: Bounds<f64> = Bounds {
    option: "scale",
    what: "how many times each request comes, from 0.001 to 10000",
    example: "3",
    range: 0.001..=1e4,
};
pub(crate) const SECONDS_PER_SIZE: Bounds<f64> =
    Bounds { option: "seconds-per-size", what: "seconds from 1 to 300", example: "8", range: 1.0..=300.0 };
pub(crate) const CLIENTS: Bounds<u32> = Bounds {
    option: "clients",
    what: "whole clients at once from 1 to 4096",
    example: "256",
    range: 1..=4096,
};
pub(crate) const REQUESTS: Bounds<u64> = Bounds {
    option: "requests",
    what: "whole requests from 1 to 1000000000",
    example: "100000",
    range: 1..=1_000_000_000,
};
pub(crate) const IMAGE_LIMIT: Bounds<u64> = Bounds {
    option: "image-limit",
    what: "bytes above which an image is reduced, from 1000",
    example: "32768",
    range: 1000..=u64::MAX,
};
pub(crate) const MEDIUM_LIMIT: Bounds<u64> = Bounds {
    option: "medium-limit",
    what: "bytes above which an image is of medium size, from 1000",
    example: "4096",
    range: 1000..=u64::MAX,
};
pub(crate) const COSMETIC_LIMIT: Bounds<u64> = Bounds {
    option: "cosmetic-limit",
    what: "bytes below which an image is cosmetic, from 0 (none is) to 100000",
    example: "1024",
    range: 0..=100_000,
};
pub(crate) const FACTOR: Bounds<f64> = Bounds {
    option: "factor",
    what: "how many times fewer bytes, from 1 to 100",
    example: "8",
    range: 1.0..=100.0,
};
pub(crate) const SIMILARITY: Bounds<f64> = Bounds {
    option: "similarity",
    what: "the least structural similarity, from 0 to 1",
    example: "0.9",
    range: 0.0..=1.0,
};
pub(crate) const DEPTH: Bounds<u32> =
    Bounds { option: "depth", what: "links from the first page, from 0", example: "3", range: 0..=u32::MAX };
pub(crate) const PER_REQUEST: Bounds<f64> = Bounds {
    option: "per-request",
    what: "milliseconds that a request costs, from 0.000001 to 100000",
    example: "1.6",
    range: 1e-6..=1e5,
};
pub(crate) const PER_KB: Bounds<f64> = Bounds {
    option: "per-kb",
    what: "milliseconds that 1024 bytes cost, from 0 to 100000",
    example: "0.065",
    range: 0.0..=1e5,
};
