//! HTTP/2 as far as it is no matter of the kept library's: heads between its types and the gateway's own form, and floods.
//!
//! In: what the crate `h2` has read of a stream, and the bytes that it reads. Out: ranges of a buffer, as
//! [`http1`](crate::http1) has them, so that one set of rules reads the heads of both protocols; for a response that was
//! written as text, what `h2` sends; and the [`floods`] that a connection is ended for.
//!
//! [`head`] has the heads, [`frames`] sees what comes in, [`metered`] is the socket below, which
//! sends what was [`gathered`] in a turn, and [`windows`] bounds what comes before it is taken.

pub mod floods;
pub mod frames;
pub(crate) mod gathered;
pub mod head;
pub(crate) mod metered;
pub(crate) mod windows;
