//! HTTP/1.1 on the wire: heads, bodies and their framing, as pure functions over bytes.
//!
//! In: bytes as they came. Out: heads as ranges of those bytes, the framing of bodies, or a [`Refusal`]. Nothing here reads a
//! socket or a clock. Requests and responses are read with the same strictness: requests are smuggled where two parsers differ,
//! so any form that could be read in two ways is refused and never repaired. Each check states how the refused form can be
//! exploited.
//!
//! Not here: what is done with a message, and which fields a proxy adds (`request/`).

pub mod body;
pub mod field;
pub mod request;
pub mod response;
pub mod rules;
pub mod scan;
pub(crate) mod write;

/// Why a message is refused: the status to answer with, and a short text for the body and the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The status code for the client. If an upstream's message is refused, the client always gets 502.
    pub status: u16,
    /// What was wrong, for the response's body.
    pub why: &'static str,
}

impl Refusal {
    pub(crate) const fn bad(why: &'static str) -> Self {
        Refusal { status: 400, why }
    }
    pub(crate) const fn with(status: u16, why: &'static str) -> Self {
        Refusal { status, why }
    }
}

/// A range of the buffer that holds a head. It is a range and not a slice, so that the buffer may move while a request waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// The range `start..end`. Heads are far below 4 GiB.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start: start as u32, end: end as u32 }
    }

    /// Where `part` lies in `whole`. `part` must be a slice of `whole`.
    pub(crate) fn within(whole: &[u8], part: &[u8]) -> Self {
        if part.is_empty() {
            return Span::default();
        }
        let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        debug_assert!(start + part.len() <= whole.len());
        Span::new(start, start + part.len())
    }

    pub fn of(self, buffer: &[u8]) -> &[u8] {
        buffer.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }
    pub(crate) fn end(self) -> usize {
        self.end as usize
    }
}

/// The protocol's version. Other versions are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    Http10,
    #[default]
    Http11,
    /// A stream of an HTTP/2 connection.
    Http2,
}

impl Version {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2.0",
        }
    }
}

/// The most field lines in a head; a head with more is refused with 431.
pub const MAX_FIELDS: usize = 256;
