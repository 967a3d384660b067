//! A request's head on its way to the upstream, written anew: request line, hop-by-hop fields, forwarding fields, framing.
//!
//! Framing, host and connection fields are never copied but written from what was parsed, so that the next server
//! cannot read them in another way. Requests carry the gateway's mark, which finds loops ([`LoopMark`]).
//! `Via` is not added: nginx compresses nothing for requests that have one.

use super::peer::Peer;
use crate::http1::body::Framing;
use crate::http1::field::{Field, FieldKind, is_alike};
use crate::http1::request::RequestHead;
use crate::http1::rules::HeaderRules;
use crate::http1::write::{write_field, write_number};
use crate::settings::{Rewrite, Settings};
use crate::traces::context::{TRACEPARENT, TraceContext};
use crate::upstream::forwarding_loop::LoopMark;
use plimsoll_core::processes::PlaceLoad;
use std::io::Write;

/// A request on its way to an upstream.
pub(crate) struct Outgoing<'a> {
    pub bytes: &'a [u8],
    pub head: &'a RequestHead,
    pub rewrite: Option<&'a Rewrite>,
    /// Whether the request's level is below the highest.
    pub is_lighter: bool,
    pub peer: &'a Peer,
    pub settings: &'a Settings,
    /// The host that is named if the client named none: HTTP/1.1 must name a host, and servers refuse an empty one.
    pub fallback_host: &'a str,
    /// The host that is named in place of the client's, if the upstream has a host of its own.
    pub own_host: Option<&'a str>,
    /// The site's rules.
    pub rules: &'a HeaderRules,
    /// The gateway's mark.
    pub mark: &'a LoopMark,
    /// The request's place in a trace, if the gateway takes part in traces.
    pub trace: Option<&'a TraceContext>,
    /// What is reported to a server that decides itself of the gateway's places there.
    pub places: Option<PlaceLoad>,
}

impl Outgoing<'_> {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let head = self.head;
        let target = self.target();
        out.extend_from_slice(head.method.of(self.bytes));
        out.push(b' ');
        if let Some(rewrite) = self.rewrite.filter(|_| target != b"*") {
            out.extend_from_slice(rewrite.prefix.as_bytes());
        }
        out.extend_from_slice(target);
        out.extend_from_slice(b" HTTP/1.1\r\nhost: ");
        out.extend_from_slice(match (self.own_host, head.authority.of(self.bytes)) {
            (Some(host), _) => host.as_bytes(),
            (None, b"") => self.fallback_host.as_bytes(),
            (None, authority) => authority,
        });
        out.extend_from_slice(b"\r\n");
        for field in &head.fields {
            let name = field.name.of(self.bytes);
            let passes = match field.kind {
                FieldKind::Other | FieldKind::LoadReport | FieldKind::CdnLoop => !self.is_replaced(name),
                FieldKind::SetByProxy => self.peer.trusted && !self.is_replaced(name),
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
        } else if head.takes_trailers {
            out.extend_from_slice(b"te: trailers\r\nconnection: te\r\n");
        }
        out.extend_from_slice(self.mark.line());
        if let Some(trace) = self.trace.filter(|_| !self.rules.drops(TRACEPARENT.as_bytes())) {
            trace.write(out);
        }
        if let Some(places) = self.places {
            // Writing to a vector does not fail.
            let _ = write!(out, "{}: {places}\r\n", PlaceLoad::HEADER);
        }
        self.write_forwarding(out);
        if let (Some(name), Some(certificate)) = (self.settings.client_header(), &self.peer.certificate) {
            write_field(out, name.as_bytes(), certificate.as_bytes());
        }
        out.extend_from_slice(self.rules.lines());
        for (name, value) in self.rewrite.iter().flat_map(|rewrite| &rewrite.headers) {
            write_field(out, name.as_bytes(), value.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The target. An empty path stands for the whole server with OPTIONS (RFC 9112 3.2.4).
    fn target(&self) -> &[u8] {
        match self.head.target.of(self.bytes) {
            b"" if self.head.method.of(self.bytes) == b"OPTIONS" => b"*",
            b"" => b"/",
            target => target,
        }
    }

    /// Whether a field is to go no further. A range of a lighter copy is none of the page whose beginning its client may have.
    /// It counts only beside `If-Range`, which distinguishes the two.
    fn is_replaced(&self, name: &[u8]) -> bool {
        let is_condition = |field: &Field| is_alike(field.name.of(self.bytes), b"if-range");
        if self.is_lighter && is_alike(name, b"range") && !self.head.fields.iter().any(is_condition) {
            return true;
        }
        if self.rules.drops(name) || self.trace.is_some_and(|trace| trace.replaces(name)) {
            return true;
        }
        let replaced = self.rewrite.iter().flat_map(|rewrite| &rewrite.headers).map(|(own, _)| own.as_str());
        let mut replaced = replaced.chain(self.settings.client_header());
        replaced.any(|own| is_alike(own.as_bytes(), name))
    }
}

#[cfg(test)]
mod tests;
