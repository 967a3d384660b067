//! The record that is kept of one request.

use std::time::Duration;

/// One request, from its intended arrival to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The simulated client.
    pub client: u32,
    /// When the request was due, from the start of the load.
    pub arrival: Duration,
    /// How much later than due the request was dispatched.
    pub lateness: Duration,
    /// The time from when the request was due to its end. Lateness is included, so that a slow client does not flatter the
    /// server.
    pub latency: Duration,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A complete answer.
    Answer(Answer),
    /// There was no answer, or an incomplete one.
    Error(ErrorKind),
}

/// A complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// The level that the level header begins with, if there is one.
    pub level: Option<u8>,
    /// Body bytes received.
    pub bytes: u64,
}

/// Why there is no complete answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// The connection was refused or could not be made.
    Connect,
    /// The connection was closed without an answer.
    Closed,
    /// The connection was reset.
    Reset,
    /// The answer's body ended early.
    Truncated,
    /// The answer is not HTTP.
    Malformed,
    /// No complete answer in time.
    Timeout,
    /// This machine had no socket, port or file left, which says nothing about the server.
    LocalLimit,
}

impl ErrorKind {
    /// All kinds, in their order.
    pub const ALL: [ErrorKind; 7] = [
        ErrorKind::Connect,
        ErrorKind::Closed,
        ErrorKind::Reset,
        ErrorKind::Truncated,
        ErrorKind::Malformed,
        ErrorKind::Timeout,
        ErrorKind::LocalLimit,
    ];

    /// The name for reports.
    pub const fn name(self) -> &'static str {
        match self {
            ErrorKind::Connect => "connect",
            ErrorKind::Closed => "closed",
            ErrorKind::Reset => "reset",
            ErrorKind::Truncated => "truncated",
            ErrorKind::Malformed => "malformed",
            ErrorKind::Timeout => "timeout",
            ErrorKind::LocalLimit => "local-limit",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_the_kinds_in_their_order() {
        for (place, kind) in ErrorKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place, "{kind:?}");
        }
    }
}
