//! A request as the engine sees it.

use plimsoll_core::request::{RequestView, host_length, normal_path};
use std::borrow::Cow;
use std::net::IpAddr;

/// What a server passes of a request.
pub struct Fields<'a> {
    /// The method, as sent.
    pub method: &'a str,
    /// The `Host`, with its port or without.
    pub host: &'a str,
    /// The path, without query. Rules see U+FFFD for what is not UTF-8.
    pub path: &'a [u8],
    /// The query, without its question mark.
    pub query: &'a str,
    /// The address of the client.
    pub client: IpAddr,
    /// The first header of a name, in any case.
    pub header: &'a dyn Fn(&str) -> Option<&'a str>,
}

/// A text of these bytes. Nearly all texts are ASCII, which is checked word by word, while the check of UTF-8 takes a short
/// text byte by byte.
#[expect(unsafe_code, reason = "the check of UTF-8 is a tenth of the three calls")]
pub(crate) fn utf8(bytes: &[u8]) -> Option<&str> {
    if bytes.is_ascii() {
        // SAFETY: ASCII is UTF-8.
        return Some(unsafe { str::from_utf8_unchecked(bytes) });
    }
    str::from_utf8(bytes).ok()
}

/// The same fields in normal form.
pub(crate) struct View<'a> {
    fields: &'a Fields<'a>,
    /// The host without its port.
    host: &'a str,
    path: Cow<'a, str>,
}

impl<'a> View<'a> {
    pub(crate) fn new(fields: &'a Fields<'a>) -> Self {
        // Decoding lossily takes half as long again, and nearly every path is text.
        let path = match utf8(fields.path) {
            Some(path) => normal_path(path),
            None => Cow::Owned(normal_path(&String::from_utf8_lossy(fields.path)).into_owned()),
        };
        View { fields, host: &fields.host[..host_length(fields.host.as_bytes())], path }
    }
}

impl RequestView for View<'_> {
    fn method(&self) -> &str {
        self.fields.method
    }
    fn host(&self) -> &str {
        self.host
    }
    fn path(&self) -> &str {
        &self.path
    }
    fn query(&self) -> &str {
        self.fields.query
    }
    fn header(&self, name: &str) -> Option<&str> {
        (self.fields.header)(name)
    }
    fn client(&self) -> IpAddr {
        self.fields.client
    }
}
