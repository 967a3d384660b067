//! TLS, by rustls.
//!
//! In: sockets, and files of certificates and keys. Out: sockets whose bytes are in clear.
//!
//! [`settings`] are the operator's, [`certificate`] is a certificate with its key as read from their files, and [`names`] finds
//! the certificate for the name that a client asks for. [`server`] prepares handshakes with clients from all of these, and
//! [`handshake`] carries them out; [`client`] is the other end, with upstreams. A [`session`] is the result of a handshake, and
//! a [`reason`] explains a failed one.

pub(crate) mod certificate;
pub(crate) mod client;
pub(crate) mod handshake;
pub(crate) mod names;
pub(crate) mod reason;
pub(crate) mod server;
pub(crate) mod session;
pub(crate) mod settings;
