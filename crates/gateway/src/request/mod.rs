//! One request's way on a client's connection.
//!
//! In: a connection that was placed on this thread. Out: responses.
//!
//! The [`lifecycle`] of a request is the same on all wires, and generic over them. A connection may be turned away by its
//! address alone ([`at_accept`]). It begins at the [`entrance`], where a proxy may name its client ([`proxy_protocol`]) and TLS
//! begins with a [`handshake`]. On an HTTP/1 connection, [`http1_connection`] waits for one head after another; on an HTTP/2
//! connection, [`http2_connection`] serves each [`http2_stream`].
//!
//! Each state of a request has its file: redirected to TLS ([`tls_redirect`]), reading its body into memory and then a file
//! ([`body`]), waiting for its place ([`decision`]), forwarded to an upstream ([`forward`], then `exchange`) or served from a
//! folder ([`mod@file`]), answered by the gateway itself ([`answer`]), or switched to another protocol ([`tunnel`]). [`head`]
//! writes heads for upstreams; [`peer`], [`forwarded_fields`] and [`forwarded_members`] find and write where a request came
//! from. [`mod@client`] moves a client's bytes outside of an exchange.
//!
//! The connection's bytes are in `client`, and `exchange` moves them to and from the upstream; neither depends on this room.

mod answer;
pub(crate) mod at_accept;
mod body;
mod client;
mod decision;
pub(crate) mod entrance;
mod file;
mod forward;
mod forwarded_fields;
mod forwarded_members;
mod handshake;
pub(crate) mod head;
pub(crate) mod http1_connection;
mod http2_connection;
mod http2_stream;
pub(crate) mod lifecycle;
mod logged;
pub(crate) mod peer;
mod proxy_protocol;
mod tls_redirect;
mod tunnel;
