//! A response's head on its way to the client, written anew: status line, hop-by-hop fields, mapped places, framing.
//!
//! `Via` is not added: it would show clients the inside.

use super::response::ResponseTerms;
use crate::client::caching::Caching;
use crate::http1::Version;
use crate::http1::body::Framing;
use crate::http1::field::FieldKind;
use crate::http1::response::ResponseHead;
use crate::http1::write::{write_field, write_number, write_status};

/// A response on its way to a client.
pub(crate) struct Incoming<'a> {
    pub bytes: &'a [u8],
    pub head: &'a ResponseHead,
    pub framing: Framing,
    pub terms: &'a ResponseTerms<'a>,
}

impl ResponseTerms<'_> {
    /// Whether the client is not to see such a field, in whatever part of the response. If the gateway itself states how long
    /// clients use TLS alone, the upstream's statement is dropped.
    pub(super) fn drops(&self, name: &[u8], kind: FieldKind) -> bool {
        self.rules.drops(name)
            || (kind == FieldKind::LoadReport && self.reports.is_some())
            || name.eq_ignore_ascii_case(self.report_name.as_bytes())
            || (self.requested.secure_seconds != 0 && name.eq_ignore_ascii_case(b"strict-transport-security"))
    }
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
        let mut caching = Caching::of(self.terms.is_lighter() && head.status >= 200);
        let is_dated = self.write_fields(&mut caching, out);
        match self.framing {
            Framing::Length(length) => write_number(out, b"content-length: ", length),
            Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            // A HEAD states the length that a GET would have, and a 304 that of the client's copy. A 204 has none (RFC 9110
            // 8.6).
            Framing::None
                if head.status == 304
                    || (self.terms.requested.is_head && !matches!(head.status, 100..=199 | 204)) =>
            {
                if let Some(length) = head.content_length {
                    write_number(out, b"content-length: ", length);
                }
            }
            Framing::None | Framing::UntilClose => {}
        }
        if !head.is_interim() {
            if !is_dated && !switching && !self.terms.rules.drops(b"date") {
                write_field(out, b"date", self.terms.date.borrow().as_bytes());
            }
            caching.finish(self.terms.rules, out);
        }
        if switching {
            out.extend_from_slice(b"connection: upgrade\r\n");
        } else if head.status >= 200 {
            if self.asks_to_upgrade() {
                out.extend_from_slice(b"connection: upgrade\r\n");
            }
            self.terms.requested.write_connection(out);
            if let Some(report) = &self.terms.report {
                report.write(out);
            }
        }
        out.extend_from_slice(b"\r\n");
    }

    /// Whether the client is to repeat the request with another protocol, which the response must name (RFC 9110 15.5.22). Only
    /// HTTP/1.1 can switch.
    fn asks_to_upgrade(&self) -> bool {
        self.head.status == 426
            && self.terms.requested.version == Version::Http11
            && self.head.fields.iter().any(|field| field.kind == FieldKind::Upgrade)
    }

    /// Writes the fields that pass, with places as the client knows them. Returns whether the upstream sent `Date`.
    fn write_fields(&self, caching: &mut Caching, out: &mut Vec<u8>) -> bool {
        let passes_upgrade = self.head.status == 101 || self.asks_to_upgrade();
        let (asked, mut is_dated) = (self.terms.asked(), false);
        for field in &self.head.fields {
            let passes = match field.kind {
                FieldKind::Connection
                | FieldKind::ContentLength
                | FieldKind::TransferEncoding
                | FieldKind::CdnLoop
                | FieldKind::HopByHop => false,
                FieldKind::Upgrade => passes_upgrade,
                _ => true,
            };
            let name = field.name.of(self.bytes);
            is_dated |= name.eq_ignore_ascii_case(b"date");
            let value = field.value.of(self.bytes);
            if passes && !self.terms.drops(name, field.kind) && caching.passes(name, value) {
                match asked.mapped(name, value) {
                    Some(mapped) => write_field(out, name, &mapped),
                    None => write_field(out, name, value),
                }
            }
        }
        is_dated
    }
}
