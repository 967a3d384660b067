//! Heads on their way, written anew: request line, hop-by-hop fields, forwarding fields, framing.
//!
//! Framing, host and connection fields are never copied but written from what was parsed, so that the next server
//! cannot read them in another way. `Via` is not added: it tells clients about the inside and upstreams nothing new.

use super::forwarding::Forwarding;
use super::peer::Peer;
use super::redirect::AskedPlace;
use crate::http1::Version;
use crate::http1::body::Framing;
use crate::http1::field::{FieldKind, is_alike};
use crate::http1::request::RequestHead;
use crate::http1::response::ResponseHead;
use crate::settings::{Rewrite, Settings};
use plimsoll_core::request::Reason;

/// A request on its way to an upstream.
pub(crate) struct Outgoing<'a> {
    pub bytes: &'a [u8],
    pub head: &'a RequestHead,
    pub rewrite: Option<&'a Rewrite>,
    pub peer: &'a Peer,
    pub settings: &'a Settings,
    /// Named where the client named no host: HTTP/1.1 must name one, and servers refuse an empty one.
    pub fallback_host: &'a str,
}

impl Outgoing<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let head = self.head;
        let target = head.target.of(self.bytes);
        out.extend_from_slice(head.method.of(self.bytes));
        out.push(b' ');
        if let Some(rewrite) = self.rewrite.filter(|_| target != b"*") {
            out.extend_from_slice(rewrite.prefix.as_bytes());
        }
        out.extend_from_slice(if target.is_empty() { b"/" } else { target });
        out.extend_from_slice(b" HTTP/1.1\r\nhost: ");
        out.extend_from_slice(match head.authority.of(self.bytes) {
            b"" => self.fallback_host.as_bytes(),
            authority => authority,
        });
        out.extend_from_slice(b"\r\n");
        for field in &head.fields {
            let name = field.name.of(self.bytes);
            let passes = match field.kind {
                FieldKind::Other | FieldKind::LoadReport => !self.is_replaced(name),
                FieldKind::Upgrade => head.upgrade,
                FieldKind::Expect => head.expects_continue,
                _ => false,
            };
            if passes {
                write_field(out, name, field.value.of(self.bytes));
            }
        }
        match head.framing {
            Framing::Length(length) => write_number(out, b"content-length: ", length),
            Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            // A request whose method allows a body states that it has none; a GET needs no such statement.
            Framing::None if head.fields.iter().any(|field| field.kind == FieldKind::ContentLength) => {
                out.extend_from_slice(b"content-length: 0\r\n");
            }
            Framing::None | Framing::UntilClose => {}
        }
        if head.upgrade {
            out.extend_from_slice(b"connection: upgrade\r\n");
        }
        Forwarding { bytes: self.bytes, head, peer: self.peer, settings: self.settings }.write(out);
        for (name, value) in self.rewrite.iter().flat_map(|rewrite| &rewrite.headers) {
            write_field(out, name.as_bytes(), value.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }

    fn is_replaced(&self, name: &[u8]) -> bool {
        let mut replaced = self.rewrite.iter().flat_map(|rewrite| &rewrite.headers);
        replaced.any(|(own, _)| is_alike(own.as_bytes(), name))
    }
}

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
}

impl Requested {
    pub(crate) fn of(head: &RequestHead) -> Self {
        Requested {
            version: head.version,
            keep_alive: head.keep_alive,
            is_head: head.is_head,
            upgrade: head.upgrade,
        }
    }

    /// The `Connection` field that the client needs, if any.
    pub(crate) fn write_connection(&self, out: &mut Vec<u8>) {
        match (self.version, self.keep_alive) {
            (Version::Http11, true) => {}
            (Version::Http10, true) => out.extend_from_slice(b"connection: keep-alive\r\n"),
            (_, false) => out.extend_from_slice(b"connection: close\r\n"),
        }
    }
}

/// A response on its way to a client.
pub(crate) struct Incoming<'a> {
    pub bytes: &'a [u8],
    pub head: &'a ResponseHead,
    pub requested: Requested,
    pub framing: Framing,
    pub report: Option<LevelReport<'a>>,
    /// A field of this name is dropped, so that the report has one author.
    pub report_name: &'a str,
    /// The load report is for the gateway: the client does not see it.
    pub hide_load: bool,
    /// What the upstream was asked for, which its answer must not name.
    pub asked: AskedPlace<'a>,
}

impl Incoming<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let head = self.head;
        let switching = head.status == 101;
        out.extend_from_slice(b"HTTP/1.1 ");
        write_status(out, head.status);
        out.push(b' ');
        out.extend_from_slice(head.phrase.of(self.bytes));
        out.extend_from_slice(b"\r\n");
        for field in &head.fields {
            let passes = match field.kind {
                FieldKind::Connection
                | FieldKind::ContentLength
                | FieldKind::TransferEncoding
                | FieldKind::HopByHop => false,
                FieldKind::Upgrade => switching,
                FieldKind::LoadReport => !self.hide_load,
                _ => true,
            };
            let name = field.name.of(self.bytes);
            if passes && !name.eq_ignore_ascii_case(self.report_name.as_bytes()) {
                let value = field.value.of(self.bytes);
                match self.asked.mapped(name, value) {
                    Some(mapped) => write_field(out, name, &mapped),
                    None => write_field(out, name, value),
                }
            }
        }
        match self.framing {
            Framing::Length(length) => write_number(out, b"content-length: ", length),
            Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            // The length that a GET would have had, or that the client's copy has.
            Framing::None if self.requested.is_head || head.status == 304 => {
                if let Some(length) = head.content_length {
                    write_number(out, b"content-length: ", length);
                }
            }
            Framing::None | Framing::UntilClose => {}
        }
        if switching {
            out.extend_from_slice(b"connection: upgrade\r\n");
        } else if head.status >= 200 {
            self.requested.write_connection(out);
            if let Some(report) = &self.report {
                report.write(out);
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

pub(crate) fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

pub(crate) fn write_status(out: &mut Vec<u8>, status: u16) {
    out.extend([status / 100, status / 10 % 10, status % 10].map(|digit| b'0' + digit as u8));
}

/// Appends `label`, the number and the line's end.
pub(crate) fn write_number(out: &mut Vec<u8>, label: &[u8], mut number: u64) {
    let mut digits = [0; 20];
    let mut start = digits.len();
    loop {
        start -= 1;
        digits[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(label);
    out.extend_from_slice(&digits[start..]);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests;
