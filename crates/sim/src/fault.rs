//! What goes wrong at a plant, and when.

use std::time::Duration;

/// A fault of a plant, and when it lasts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// First moment.
    pub from: Duration,
    /// Last moment.
    pub until: Duration,
    /// What goes wrong.
    pub kind: FaultKind,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// All work takes this many times as long, also work in progress. Infinity is a pause.
    Slower(f64),
    /// A request whose service starts during the fault takes this long, whatever it asks for.
    Takes(Duration),
    /// A request whose service starts during the fault fails after this time.
    Fails(Duration),
    /// This part of the workers is missing, as when one of several servers is down. Requests in service are finished.
    Gone {
        /// The part, in [0, 1).
        part: f64,
        /// Whether it is reported to the gateway.
        reported: bool,
    },
}

/// The part of the workers that is missing at a time, and whether the gateway is informed; the first such fault counts.
pub(crate) fn gone(faults: &[Fault], at: Duration) -> Option<(f64, bool)> {
    faults.iter().filter(|fault| (fault.from..fault.until).contains(&at)).find_map(|fault| match fault.kind {
        FaultKind::Gone { part, reported } => Some((part, reported)),
        _ => None,
    })
}

/// Whether it is reported to the gateway when a part of the plant with these faults is gone.
pub(crate) fn reports_what_is_there(faults: &[Fault]) -> bool {
    faults.iter().any(|fault| matches!(fault.kind, FaultKind::Gone { reported: true, .. }))
}
