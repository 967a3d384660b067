//! Where clients' connections come in: the sockets, and what all threads keep of connections and clients.
//!
//! In: the configured addresses. Out: sockets that are bound to them ([`binding`]) or taken over from another process
//! ([`inherited`]), from which threads accept ([`bound`]). For each [`accepted`] connection: whether its client may have one
//! more ([`clients`]), and which thread serves it, by the threads' numbers of connections and spare time ([`placement`]).
//! [`kernel_shed`] has the system turn clients away.
//!
//! Not here: the accept loop of each thread (`runtime`), and the decision on a connection (`request`).

pub(crate) mod accepted;
pub(crate) mod binding;
pub(crate) mod bound;
pub(crate) mod clients;
pub(crate) mod inherited;
pub(crate) mod kernel_shed;
pub(crate) mod placement;
