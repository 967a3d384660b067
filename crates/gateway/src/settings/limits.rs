//! Bounds of memory and files, and time limits.

use std::time::Duration;

/// The number of allowed connections for each connection that may have a file.
pub const CONNECTIONS_A_FILE: usize = 4;

/// The bounds of messages and connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The longest head of a request, up to 64 KiB; a longer head is refused with 431.
    pub head_bytes: usize,
    /// How many bytes the unfinished heads of all connections together may hold; beyond this the oldest is refused with 408.
    pub head_memory: usize,
    /// The longest body of a request; a longer body is refused with 413.
    pub body_bytes: u64,
    /// The most client connections. A further connection ends the one that has been idle the longest, or waits in the kernel's
    /// queue.
    pub connections: usize,
    /// The most connections of one client, which is an IPv4 address or 64 bits of an IPv6 address, if they are bounded. A
    /// further connection is closed.
    pub connections_per_client: Option<u32>,
    /// The most requests under way on one connection of HTTP/2.
    pub streams: u32,
    /// How much of a request's body is read before the request arrives; the rest of a longer body streams while the request
    /// holds a place.
    pub request_buffer: u64,
    /// How much of a response may wait in a file for a client that is slower than the upstream.
    pub response_buffer: u64,
    /// How many bytes of buffers all connections together may use before bodies go to files early.
    pub buffer_memory: u64,
    /// The most bytes in temporary files, all connections together; one connection in four may have a file.
    pub buffer_files: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            head_bytes: 32 * 1024,
            head_memory: 64 << 20,
            body_bytes: 1 << 30,
            connections: 50_000,
            connections_per_client: None,
            streams: 128,
            request_buffer: 1 << 30,
            response_buffer: 1 << 30,
            buffer_memory: 128 << 20,
            buffer_files: 4 << 30,
        }
    }
}

impl Limits {
    /// The longest head that is read.
    pub(crate) fn head(&self) -> usize {
        self.head_bytes.clamp(1024, 64 * 1024)
    }
}

/// Time limits. All times are coarse: deadlines are checked ten times a second.
///
/// `body_idle` and `send` are accounts of time: 1 KiB moved gives a second back, up to the whole limit. A client that sends or
/// takes less than 1 KiB a second on average is therefore given up about one limit after it became that slow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeouts {
    /// For a whole request head, from its first byte (408).
    pub head: Duration,
    /// For the next bytes of a request body, at 1 KiB a second at least (408).
    pub body_idle: Duration,
    /// For the next request on a connection.
    pub keep_alive: Duration,
    /// For a client to take the next bytes of a response, at 1 KiB a second at least.
    pub send: Duration,
    /// For a connection to an upstream (502, or the next address).
    pub connect: Duration,
    /// For the first byte of an upstream's response (504), and for an exempt request's place at the upstream.
    pub first_byte: Duration,
    /// For the next bytes of an upstream's response, or for the upstream to take the next bytes of a request.
    pub upstream_idle: Duration,
    /// How long a connection to an upstream may wait for its next request. Keep it below the upstream's own limit.
    pub upstream_keep_alive: Duration,
    /// For any byte, either way, on an upgraded connection.
    pub tunnel_idle: Duration,
    /// How long requests under way may take after the order to stop, for [`Gateway::drain`](crate::Gateway::drain).
    pub drain: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Timeouts {
            head: Duration::from_secs(10),
            body_idle: Duration::from_secs(30),
            keep_alive: Duration::from_secs(60),
            send: Duration::from_secs(60),
            connect: Duration::from_secs(2),
            first_byte: Duration::from_secs(60),
            upstream_idle: Duration::from_secs(60),
            // Apache closes an idle connection after 5 s: closing it earlier spares the race with Apache's close.
            upstream_keep_alive: Duration::from_secs(4),
            tunnel_idle: Duration::from_secs(3600),
            drain: Duration::from_secs(30),
        }
    }
}
