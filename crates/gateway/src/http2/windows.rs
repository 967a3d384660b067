//! How many bytes may come on a connection before they are read, from a client and from a server alike.

/// The window of a stream, and that of a connection for all of its streams together.
pub(crate) const STREAM_WINDOW: u32 = 256 * 1024;
pub(crate) const CONNECTION_WINDOW: u32 = 1024 * 1024;
/// The bytes by which unread frames of less than 256 bytes may fall short of that size together, since `h2` keeps about 256
/// bytes for each: enough for a stream's window in frames of 32 bytes. A gRPC call that waits for its place sends thousands of
/// such frames, and beyond this the connection ends for all of its streams.
pub(crate) const SMALL_FRAMES: usize = 8 * STREAM_WINDOW as usize;
/// How many streams that were reset within a second `h2` remembers, so that it drops late frames for them: a rejected client
/// has often sent more of its body by then. A late frame for a forgotten stream is answered with one more reset, for at most
/// [`LATE_FRAMES`] frames on a connection, each of which may hold half a kilobyte until it is sent.
pub(crate) const RESET_STREAMS: usize = 1024;
pub(crate) const LATE_FRAMES: usize = 4 * RESET_STREAMS;
