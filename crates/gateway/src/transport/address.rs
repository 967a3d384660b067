//! The address at which a socket listens, or to which it connects.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A network address, or that of a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// IP address and port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Address::Tcp(address)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A listener: the address at which clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The address. Port 0 picks a free port.
    pub address: Address,
    /// Whether its connections speak TLS, as [`Settings::tls`](crate::Settings::tls) says.
    pub tls: bool,
}

impl From<SocketAddr> for Listener {
    fn from(address: SocketAddr) -> Self {
        Listener { address: address.into(), tls: false }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.address, if self.tls { " (TLS)" } else { "" })
    }
}
