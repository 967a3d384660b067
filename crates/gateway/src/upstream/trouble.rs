//! Why a server was taken out of use, as the operator reads it, and errors that are not the server's.

use crate::settings::Address;
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// Why a server was taken out of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server refuses connections.
    Refused,
    /// There is no socket at the server's path.
    Missing,
    /// This process may not connect to the server.
    Forbidden,
    /// No connection was made in time.
    ConnectTimeout,
    /// The server speaks no TLS, or its certificate is not trusted.
    Untrusted,
    /// The server answers with errors, or does not answer.
    Errors,
    /// The server's health checks fail, the last one for this reason.
    Checks(CheckFault),
}

/// Why a health check failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CheckFault {
    /// The answer has this status, which the check does not accept.
    Status(u16),
    /// No answer came within the check's time limit.
    Late,
    /// No connection could be made, for this reason.
    Unreachable(&'static str),
    /// The connection ended before an answer.
    Ended,
    /// The bytes that came are no HTTP answer.
    Malformed,
}

/// What this process or its machine lacks for a connection, if that is the error, which is then no failure of the server.
pub(super) fn own_lack(error: &io::Error, to: &Address) -> Option<&'static str> {
    match Errno::from_io_error(error)? {
        Errno::MFILE | Errno::NFILE => Some("the gateway has no file descriptor left for a connection"),
        Errno::NOBUFS | Errno::NOMEM => Some("the gateway's machine has no memory left for a connection"),
        Errno::ADDRNOTAVAIL if is_routed(to) => {
            Some("the gateway's machine has no port left for a connection to the upstream")
        }
        _ => None,
    }
}

/// Whether this machine has an address of its own to connect from. Without one, as for IPv6 if that is off, the system reports
/// the same error as for a lack of ports. The test uses a datagram socket, whose ports are separate.
fn is_routed(to: &Address) -> bool {
    let Address::Tcp(to) = to else { return false };
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    UdpSocket::bind((any, 0)).and_then(|socket| socket.connect(to)).is_ok()
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
    /// The fault of a check that got no connection.
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn what_this_machine_lacks_is_no_failure_of_a_server() {
        let here = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], 80)));
        // No socket connects to this address unless it asks for broadcasts.
        let nowhere = Address::Tcp(SocketAddr::from(([255, 255, 255, 255], 80)));
        for errno in [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM] {
            assert!(own_lack(&errno.into(), &here).is_some(), "{errno}");
        }
        let no_port = Errno::ADDRNOTAVAIL.into();
        assert!(own_lack(&no_port, &here).is_some_and(|why| why.contains("port")));
        assert_eq!(own_lack(&no_port, &nowhere), None, "this machine has no address to connect from");
        for errno in [Errno::CONNREFUSED, Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::NOENT, Errno::AGAIN] {
            assert_eq!(own_lack(&errno.into(), &here), None, "{errno}");
        }
        assert_eq!(own_lack(&io::ErrorKind::TimedOut.into(), &here), None);
    }
}
