//! One request's way on a client's connection.
//!
//! In: a connection that `listen` has placed on this thread. Out: responses.
//!
//! A connection is in one state at a time, and each state has its file: waiting for a head ([`connection`]), reading the
//! body ([`body`]), waiting for its place ([`decision`]), forwarded to an upstream ([`forward`], then `upstream`) or served from a folder
//! ([`mod@file`]), answered by the gateway itself ([`answer`]), switched to another protocol ([`tunnel`]), or closing
//! ([`client`]). [`head`] writes heads, in which [`redirect`] maps places back; [`storage`] keeps bytes in temporary files; [`permit_guard`] departs a request however its way ends.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod buffers;
pub(crate) mod client;
pub(crate) mod connection;
mod decision;
mod file;
pub(crate) mod forward;
mod forwarding;
pub(crate) mod head;
pub(crate) mod inbox;
pub(crate) mod outbox;
pub(crate) mod peer;
pub(crate) mod permit_guard;
pub(crate) mod redirect;
pub(crate) mod signed;
pub(crate) mod storage;
mod tunnel;
pub(crate) mod unfinished;
