//! The fields that say to an upstream where a request came from: `X-Forwarded-For`, `-Proto` and `-Host`, and `Forwarded`
//! (RFC 7239).
//!
//! What a trusted proxy says in the believed family of fields ([`RealIpHeader`]) is continued, and repeated in the other family
//! too if upstreams get that one. The other family's own fields are dropped: a proxy that does not write them passes on what
//! its client made up. From any other peer both are dropped and begun anew.

use super::forwarded_members::{members, parameter};
use super::head::Outgoing;
use crate::http1::body::is_token;
use crate::http1::field::{FieldKind, list};
use crate::http1::write::write_field;
use crate::settings::RealIpHeader;
use std::io::Write;

impl<'a> Outgoing<'a> {
    pub(super) fn write_forwarding(&self, out: &mut Vec<u8>) {
        if self.settings.forwarded.x_forwarded() {
            self.write_x_forwarded(out);
        }
        if self.settings.forwarded.forwarded() {
            self.write_forwarded(out);
        }
    }

    fn write_x_forwarded(&self, out: &mut Vec<u8>) {
        let host = self.head.authority.of(self.bytes);
        out.extend_from_slice(b"x-forwarded-for: ");
        let (proto, outer) = if self.settings.real_ip_header == RealIpHeader::XForwardedFor {
            for value in self.believed(FieldKind::XForwardedFor) {
                out.extend_from_slice(value);
                out.extend_from_slice(b", ");
            }
            (
                self.believed(FieldKind::XForwardedProto).next(),
                self.believed(FieldKind::XForwardedHost).next(),
            )
        } else {
            let in_order = |value| members(value).collect::<Vec<_>>().into_iter().rev();
            let all = self.believed(FieldKind::Forwarded).flat_map(in_order);
            for node in all.filter_map(|member| parameter(member, b"for=")) {
                out.extend_from_slice(node);
                out.extend_from_slice(b", ");
            }
            // The client may have written everything before its own member itself.
            let member = self.peer.member(self.bytes, self.head, self.settings);
            let stated = |name| member.and_then(|member| parameter(member, name));
            (stated(b"proto="), stated(b"host="))
        };
        out.extend_from_slice(self.peer.text.as_bytes());
        out.extend_from_slice(b"\r\n");
        write_field(out, b"x-forwarded-proto", proto.unwrap_or(self.peer.scheme()));
        let host = outer.unwrap_or(host);
        if !host.is_empty() {
            write_field(out, b"x-forwarded-host", host);
        }
    }

    fn write_forwarded(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"forwarded: ");
        if self.settings.real_ip_header == RealIpHeader::Forwarded {
            for value in self.believed(FieldKind::Forwarded) {
                out.extend_from_slice(value);
                out.extend_from_slice(b", ");
            }
        } else {
            let mut proto = self.believed(FieldKind::XForwardedProto).next();
            let mut host = self.believed(FieldKind::XForwardedHost).next();
            for node in self.believed(FieldKind::XForwardedFor).flat_map(list) {
                // Both are of the client's own connection, which is the first in the chain.
                write_member(out, node, host.take().unwrap_or_default(), proto.take());
                out.extend_from_slice(b", ");
            }
        }
        write_member(
            out,
            self.peer.text.as_bytes(),
            self.head.authority.of(self.bytes),
            Some(self.peer.scheme()),
        );
        out.extend_from_slice(b"\r\n");
    }

    /// The values of a field, if the peer is trusted.
    fn believed(&self, kind: FieldKind) -> impl Iterator<Item = &'a [u8]> {
        let (bytes, trusted) = (self.bytes, self.peer.trusted);
        let fields = self.head.fields.iter().filter(move |field| trusted && field.kind == kind);
        fields.map(move |field| field.value.of(bytes))
    }
}

/// A member of `Forwarded`. An IPv6 address stands in brackets and quotes (RFC 7239 6).
fn write_member(out: &mut Vec<u8>, node: &[u8], host: &[u8], proto: Option<&[u8]>) {
    let is_bare_address = node.iter().filter(|&&byte| byte == b':').count() > 1 && node[0] != b'[';
    let is_token = node.iter().copied().all(is_token);
    let quotes = match (is_bare_address, is_token) {
        (true, _) => ["\"[", "]\""],
        (false, false) => ["\"", "\""],
        (false, true) => ["", ""],
    };
    // Writing to a vector does not fail.
    let _ = write!(out, "for={}{}{}", quotes[0], node.escape_ascii(), quotes[1]);
    if !host.is_empty() {
        let _ = write!(out, ";host=\"{}\"", host.escape_ascii());
    }
    if let Some(proto) = proto {
        let _ = write!(out, ";proto={}", proto.escape_ascii());
    }
}
