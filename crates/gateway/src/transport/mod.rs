//! Connected sockets, whatever carries their bytes: TCP, a Unix socket, or TLS over either.
//!
//! In: what was accepted, or connected to. Out: one type, [`Socket`](socket::Socket), that the rooms above read from and
//! write to. It is an enum and not a trait object, so that bytes without TLS go straight to the system's socket.
//!
//! [`plain`] is the system's socket, which can be handed from one thread to another, [`address`] where it listens or is
//! connected to, [`unregistered`] one that was accepted a moment ago. [`tls`] encrypts what goes through it, [`mod@http2`]
//! makes frames of it. [`protocol`] is what is spoken on it, [`proxy_header`] what a proxy says before that.

pub(crate) mod address;
pub(crate) mod http2;
pub(crate) mod plain;
pub(crate) mod protocol;
pub(crate) mod proxy_header;
pub(crate) mod socket;
pub(crate) mod tls;
mod unregistered;
