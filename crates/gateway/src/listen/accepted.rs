//! A connection between the thread that has accepted it and the one that is to serve it.

use super::clients::ClientPlace;
use crate::transport::plain::DetachedSocket;
use std::net::IpAddr;

/// A connection as it was accepted, on its way to the thread that is to serve it.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub io: DetachedSocket,
    /// The address of the other end.
    pub peer: IpAddr,
    /// Whether the listener speaks TLS.
    pub tls: bool,
    /// The connection's part in its client's count, where connections of a client are counted and its client is known.
    pub place: Option<ClientPlace>,
}
