//! Why a request was treated as it was: one enum for logs, response headers, metrics, dashboard and traces.

use core::fmt;

/// The reason of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Reason {
    /// Served at the highest level.
    Full,
    /// Served at the highest level, whatever the load: inside its site's contract.
    Guaranteed,
    /// Served at a lower level, to hold the utilization at its set point.
    Degraded,
    /// Not controlled: a health check, or a path that the operator exempts.
    Exempt,
    /// Rejected: even the lowest level for every request would exceed the set point.
    Overload,
    /// Rejected: the queue is full.
    QueueFull,
    /// Refused: it would stream, and its plant has as many streams as it may.
    TooManyStreams,
    /// Dropped: it waited as long as a request may wait.
    WaitTimeout,
    /// Refused: it could not be done within its deadline.
    Deadline,
    /// Dropped: it was admitted, but waited until it could no longer be done within its deadline.
    Late,
    /// Dropped: its client left while it waited.
    ClientLeft,
    /// Refused: no site has this host, or a path with dot segments.
    NoSite,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 12] = [
        Reason::Full,
        Reason::Guaranteed,
        Reason::Degraded,
        Reason::Exempt,
        Reason::Overload,
        Reason::QueueFull,
        Reason::TooManyStreams,
        Reason::WaitTimeout,
        Reason::Deadline,
        Reason::Late,
        Reason::ClientLeft,
        Reason::NoSite,
    ];

    /// The text for headers, logs and metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Reason::Full => "full",
            Reason::Guaranteed => "guaranteed",
            Reason::Degraded => "degraded",
            Reason::Exempt => "exempt",
            Reason::Overload => "overload",
            Reason::QueueFull => "queue-full",
            Reason::TooManyStreams => "too-many-streams",
            Reason::WaitTimeout => "wait-timeout",
            Reason::Deadline => "deadline",
            Reason::Late => "late",
            Reason::ClientLeft => "client-left",
            Reason::NoSite => "no-site",
        }
    }

    /// Whether the request was turned away. A client that leaves was not turned away.
    pub const fn is_rejection(self) -> bool {
        matches!(
            self,
            Reason::Overload
                | Reason::QueueFull
                | Reason::TooManyStreams
                | Reason::WaitTimeout
                | Reason::Deadline
                | Reason::Late
                | Reason::NoSite
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
