//! Connected sockets, whatever carries their bytes: TCP, a Unix socket, or TLS over either.
//!
//! In: accepted and connected sockets. Out: one type, [`Socket`](socket::Socket), which the rooms above read and write. It is
//! an enum and not a trait object, so that bytes without TLS go straight to the system's socket.
//!
//! [`plain`] is the system's socket, which can be handed from one thread to another. [`address`] is where it listens or
//! connects. [`unregistered`] is a socket that was just accepted. [`tls`] encrypts the bytes, and [`mod@http2`] makes frames of
//! them. [`protocol`] is the protocol on the socket, and [`proxy_header`] a proxy's header before it.

pub(crate) mod address;
pub(crate) mod http2;
pub(crate) mod plain;
pub(crate) mod protocol;
pub(crate) mod proxy_header;
pub(crate) mod socket;
pub(crate) mod tls;
mod unregistered;
