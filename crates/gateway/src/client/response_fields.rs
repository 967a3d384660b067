//! What each response says to its client besides what it answers: whether the connection stays, and the level that was served.

use crate::http1::Version;
use crate::http1::request::RequestHead;
use crate::http1::write::write_number;
use plimsoll_core::request::Reason;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LevelReport<'a> {
    pub name: &'a str,
    pub level: u8,
    pub reason: Reason,
}

impl LevelReport<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.name.as_bytes());
        out.extend_from_slice(b": level=");
        out.push(b'0' + self.level.min(9));
        out.extend_from_slice(b"; reason=");
        out.extend_from_slice(self.reason.as_str().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

/// What a request asks of its response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requested {
    pub version: Version,
    pub keep_alive: bool,
    pub is_head: bool,
    pub upgrade: bool,
    /// For how many seconds the client is to use TLS alone (RFC 6797); 0 for no word of it.
    pub secure_seconds: u64,
}

impl Requested {
    pub(crate) fn of(head: &RequestHead) -> Self {
        Requested {
            version: head.version,
            keep_alive: head.keep_alive,
            is_head: head.is_head,
            upgrade: head.upgrade,
            secure_seconds: 0,
        }
    }

    /// Whether a 2xx would say that the client's stream carries another protocol from now on (RFC 8441 4).
    pub(crate) fn is_extended_connect(&self) -> bool {
        self.upgrade && self.version == Version::Http2
    }

    /// The `Connection` field that the client needs, if any, and how long it is to use TLS alone.
    pub(crate) fn write_connection(&self, out: &mut Vec<u8>) {
        if self.secure_seconds > 0 {
            write_number(out, b"strict-transport-security: max-age=", self.secure_seconds);
        }
        match (self.version, self.keep_alive) {
            (Version::Http11 | Version::Http2, true) => {}
            (Version::Http10, true) => out.extend_from_slice(b"connection: keep-alive\r\n"),
            (_, false) => out.extend_from_slice(b"connection: close\r\n"),
        }
    }
}
