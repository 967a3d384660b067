//! One request's way on a client's connection.
//!
//! In: a connection that was placed on this thread. Out: responses.
//!
//! A request's [`lifecycle`] is one for all wires, and generic over them. A connection may be turned away by its address alone
//! ([`at_accept`]). It begins at the [`entrance`], where a proxy says whose it is ([`proxied`]) and TLS is spoken with a
//! [`handshake`]; where HTTP/1 is spoken, [`http1_connection`] waits for one head after another on its socket; where HTTP/2 is,
//! [`http2_connection`] has a way for each [`http2_stream`].
//!
//! Each state of a request has its file: sent to come again with TLS ([`secured`]), reading the body, into memory and then a
//! file ([`body`]), waiting for its place ([`decision`]), forwarded to an upstream ([`forward`], then `exchange`) or served
//! from a folder ([`mod@file`]), answered by the gateway itself ([`answer`]), or switched to another protocol ([`tunnel`]).
//! [`head`] writes what upstreams get; [`peer`], [`forwarded_fields`] and [`forwarded_members`] say where it came from.
//! [`mod@client`] has what is done with a client's bytes outside of an exchange.
//!
//! The connection's bytes are in `client`, and `exchange` takes them on from there: neither knows this room.

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
mod proxied;
mod secured;
mod tunnel;
