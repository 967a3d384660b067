//! The protocol of a connection, as its two ends agreed before the first request.

/// A version of HTTP, as far as it decides how bytes become requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.0 and 1.1, which are also spoken if nothing was agreed.
    #[default]
    Http1,
    Http2,
}
