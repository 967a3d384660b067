//! A client's connection as bytes: what it has sent and what it has yet to take, for clients of any speed.
//!
//! In: a socket's bytes, and responses in pieces. Out: heads and bodies that wait, in memory and in temporary files, in bounds.
//! `request` and `exchange` both work on it, and it knows neither.
//!
//! [`socket`] is the client, on a [`wire`]: its [`inbox`] has what it sent, its [`outbox`] what it is to take. [`slots`] are
//! where its thread finds it, for deadlines and verdicts. [`buffers`] lends the memory of both, [`spill_files`] the files of
//! those that are slow. [`pace`] says how slow a client may be, [`awaited_clients`] bounds what all clients that are waited for
//! hold, [`early_body`] is what was read of a body before the engine decides, [`response_fields`] what a request asks of its
//! response, and [`caching`] what a lighter level says to caches.

pub(crate) mod awaited_clients;
pub(crate) mod buffers;
pub(crate) mod caching;
pub(crate) mod early_body;
pub(crate) mod inbox;
pub(crate) mod outbox;
pub(crate) mod pace;
pub(crate) mod response_fields;
pub(crate) mod slots;
pub(crate) mod socket;
pub(crate) mod spill_files;
pub(crate) mod stream;
pub(crate) mod wire;
