//! Where clients' connections come in: the sockets, and what is kept of connections and clients over all threads.
//!
//! In: the configured addresses. Out: sockets bound to them ([`binding`]) or taken over from another process ([`inherited`]),
//! from which threads accept ([`bound`]); and for each connection that was [`accepted`] whether its client may have one more
//! ([`clients`]), and which thread is to serve it, by count and by how much of its time that thread can spare ([`placement`]).
//! [`kernel_shed`] has the system turn clients away.
//!
//! Not here: the loop that accepts, which is of each thread (`runtime`), and what is decided of a connection (`request`).

pub(crate) mod accepted;
pub(crate) mod binding;
pub(crate) mod bound;
pub(crate) mod clients;
pub(crate) mod inherited;
pub(crate) mod kernel_shed;
pub(crate) mod placement;
