//! The parts of HTTP/2 that the library `h2` leaves to the gateway: the conversion of heads, and floods.
//!
//! In: the parts of a stream that `h2` has read, and the bytes that it reads. Out: heads as ranges of a buffer, as in
//! [`http1`](crate::http1), so that one set of rules reads the heads of both protocols; responses as `h2` sends them; and the
//! [`floods`] for which a connection is ended.
//!
//! [`head`] has the heads, [`frames`] sees what comes in, [`metered`] is the socket below, which
//! sends what was [`coalesced_writes`] in a turn, and [`windows`] bounds what comes before it is taken.

pub(crate) mod coalesced_writes;
pub mod floods;
pub mod frames;
pub mod head;
pub(crate) mod metered;
pub(crate) mod windows;
