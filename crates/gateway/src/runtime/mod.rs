//! What runs in the process: the threads, and the replacement of what they serve while they run.
//!
//! In: listening sockets and the context of each [`worker`](crate::worker) at the start, new settings at a reload. Out:
//! connections served, verdicts delivered to the requests that they are about, and control periods on time.
//!
//! Each worker [`thread`] accepts connections ([`acceptor`]), gives each to the thread that is to serve it, and acts on its
//! messages. The [`ticker`] thread runs the control loops, and gives them how busy the [`processors`] are. Settings in force
//! are replaced by [`reload`], and by [`readdress`] where a name has other addresses than before.

mod acceptor;
mod processors;
mod readdress;
pub(crate) mod reload;
mod thread;
pub(crate) mod ticker;
