//! How much may come on a connection before it is taken, from a client and from a server alike.

/// What may come on a stream, and on all of a connection's streams together.
pub(crate) const STREAM_WINDOW: u32 = 256 * 1024;
pub(crate) const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// What frames of less than 256 bytes that nobody has taken may lack of that together, since `h2` keeps about so much for each:
/// enough for a stream's window in frames of 32 bytes. A call of gRPC that waits for its place sends such frames by the
/// thousand, and with one more the connection ends for all of its streams.
pub(crate) const SMALL_FRAMES: usize = 8 * STREAM_WINDOW as usize;
/// How many streams that were reset within a second `h2` still knows, so that what comes for them is thrown away: a client that
/// is rejected has often sent more of its body by then. What comes for others is answered with one more reset, for so many
/// frames on a connection: each may hold half a kilobyte until it is sent.
pub(crate) const RESET_STREAMS: usize = 1024;
pub(crate) const LATE_FRAMES: usize = 4 * RESET_STREAMS;
