//! TLS, by rustls.
//!
//! In: sockets, and files of certificates and keys. Out: sockets whose bytes are in clear.
//!
//! [`settings`] is what the operator says, [`certificate`] a certificate and its key as their files have them, [`names`] finds
//! the one for the name that a client asks for. [`server`] makes of all of them what handshakes with clients need, and
//! [`handshake`] is such a handshake; [`client`] is the other end, with upstreams. A [`session`] is what it leads to,
//! and a [`reason`] why it does not.

pub(crate) mod certificate;
pub(crate) mod client;
pub(crate) mod handshake;
pub(crate) mod names;
pub(crate) mod reason;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod settings;
