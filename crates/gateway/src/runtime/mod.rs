//! What runs: threads, what they share, and how that is replaced while they run.
//!
//! In: sockets and lanes at the start, messages to a thread, new settings at a reload. Out: verdicts delivered to the
//! requests that they are about, and control periods on time.
//!
//! A [`worker`] thread gets messages through its [`mailbox`]. The [`ticker`] thread runs
//! the control loops. [`tables`] are the settings in force, published by [`reload`], and by [`readdress`] where a name has
//! other addresses than before. [`memory`] is given back after a burst.

mod acceptor;
pub(crate) mod mailbox;
pub(crate) mod memory;
pub(crate) mod names;
mod processors;
mod readdress;
pub(crate) mod reload;
pub(crate) mod tables;
pub(crate) mod ticker;
pub(crate) mod worker;
