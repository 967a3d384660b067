//! Where clients' connections come in.
//!
//! In: sockets bound to the configured addresses, or taken over from another process. Out: each accepted connection, given to
//! the thread that is to serve it, by count and by how much of its time that thread can spare.
//! A connection stays on the thread that it was given to until it ends.

pub(crate) mod acceptor;
pub(crate) mod at_accept;
pub(crate) mod binding;
pub(crate) mod bound;
pub(crate) mod clients;
pub(crate) mod inherited;
pub(crate) mod kernel_shed;
pub(crate) mod placement;
