//! A connection on its way from the thread that has accepted it to the thread that will serve it.

use super::clients::ClientPlace;
use crate::transport::plain::DetachedSocket;
use std::net::IpAddr;

/// An accepted connection that no thread serves yet.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub io: DetachedSocket,
    /// The address of the other end.
    pub peer: IpAddr,
    /// Whether the listener speaks TLS.
    pub tls: bool,
    /// The connection's place in its client's count; `None` if connections are not counted by client, or the client is not
    /// known yet.
    pub place: Option<ClientPlace>,
}
