//! What took a server out of use, as the operator reads it.

use std::fmt;
use std::io;

/// What took a server out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It refuses connections.
    Refused,
    /// There is no socket at its path.
    Missing,
    /// This process may not connect there.
    Forbidden,
    /// No connection was made in time.
    ConnectTimeout,
    /// It speaks no TLS, or its certificate is not trusted.
    Untrusted,
    /// It answers with errors, or not.
    Errors,
    /// Its health checks fail, the last one so.
    Checks(CheckFault),
}

/// What a health check met instead of an answer that it is content with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckFault {
    /// Another status than it is to find.
    Status(u16),
    /// No answer within its time.
    Late,
    /// No connection, for what the trouble says.
    Unreachable(&'static str),
    /// The connection's end before an answer.
    Ended,
    /// Bytes that are no answer of HTTP.
    Malformed,
}

impl Trouble {
    /// Why no connection could be made.
    pub(super) fn of(error: &io::Error) -> Trouble {
        match error.kind() {
            io::ErrorKind::TimedOut => Trouble::ConnectTimeout,
            io::ErrorKind::InvalidData => Trouble::Untrusted,
            io::ErrorKind::NotFound => Trouble::Missing,
            io::ErrorKind::PermissionDenied => Trouble::Forbidden,
            _ => Trouble::Refused,
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Trouble::Refused => "connections refused",
            Trouble::Missing => "no socket there",
            Trouble::Forbidden => "no right to connect",
            Trouble::ConnectTimeout => "no connection in time",
            Trouble::Untrusted => "TLS not trusted",
            Trouble::Errors => "errors",
            Trouble::Checks(_) => "health checks",
        }
    }
}

impl CheckFault {
    /// A check that found no connection.
    pub(super) fn of(error: &io::Error) -> CheckFault {
        CheckFault::Unreachable(Trouble::of(error).as_str())
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Checks(fault) => write!(out, "health checks: {fault}"),
            other => out.write_str(other.as_str()),
        }
    }
}

impl fmt::Display for CheckFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckFault::Status(status) => write!(out, "status {status}"),
            CheckFault::Late => out.write_str("no answer in time"),
            CheckFault::Unreachable(why) => out.write_str(why),
            CheckFault::Ended => out.write_str("the connection ended without an answer"),
            CheckFault::Malformed => out.write_str("the answer is no HTTP"),
        }
    }
}
