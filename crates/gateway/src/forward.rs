//! What a proxy changes in a head on its way: request line, hop-by-hop fields, forwarding fields, framing.
//!
//! Framing, host and connection fields are never copied but written anew from what was parsed, so that the next server
//! cannot read them otherwise. `Via` is not added: it tells clients about the inside and upstreams nothing new.

use crate::http1::Version;
use crate::http1::body::Framing;
use crate::http1::field::{Kind, is_alike, list};
use crate::http1::request::RequestHead;
use crate::http1::response::ResponseHead;
use crate::settings::{Rewrite, Settings};
use plimsoll_core::promises::Network;
use plimsoll_core::request::Reason;
use std::io::Write;
use std::net::IpAddr;

/// Who is at the other end of a connection.
#[derive(Debug)]
pub(crate) struct Peer {
    pub address: IpAddr,
    /// The address as text, made once.
    pub text: String,
    /// Its forwarding fields are believed.
    pub trusted: bool,
}

impl Peer {
    pub(crate) fn new(address: IpAddr, trusted_proxies: &[Network]) -> Self {
        let address = address.to_canonical();
        Peer { address, text: address.to_string(), trusted: is_in(trusted_proxies, address) }
    }

    /// The client's address: the last one in the chain that is no trusted proxy.
    pub(crate) fn client(&self, bytes: &[u8], head: &RequestHead, trusted_proxies: &[Network]) -> IpAddr {
        if !self.trusted {
            return self.address;
        }
        let mut client = self.address;
        let kind = match head.fields.iter().any(|field| field.kind == Kind::XForwardedFor) {
            true => Kind::XForwardedFor,
            false => Kind::Forwarded,
        };
        for field in head.fields.iter().rev().filter(|field| field.kind == kind) {
            let members: Vec<&[u8]> = list(field.value.of(bytes)).collect();
            for member in members.into_iter().rev() {
                let node = if kind == Kind::Forwarded { forwarded_for(member) } else { Some(member) };
                let Some(address) = node.and_then(parse_node) else { return client };
                client = address;
                if !is_in(trusted_proxies, address) {
                    return client;
                }
            }
        }
        client
    }
}

/// The `for` parameter of a member of `Forwarded`.
fn forwarded_for(member: &[u8]) -> Option<&[u8]> {
    member.split(|&b| b == b';').find_map(|pair| {
        let pair = pair.trim_ascii();
        let (name, value) = pair.split_at_checked(4)?;
        name.eq_ignore_ascii_case(b"for=").then_some(value)
    })
}

/// An address with or without port, quotes and brackets.
fn parse_node(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?.trim_matches('"');
    if let Some(rest) = text.strip_prefix('[') {
        return rest.split_once(']')?.0.parse().ok();
    }
    let address: IpAddr = match text.parse() {
        Ok(address) => address,
        Err(_) => text.rsplit_once(':')?.0.parse().ok()?,
    };
    Some(address.to_canonical())
}

/// Whether `address` lies in one of `networks`.
pub(crate) fn is_in(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| match (network.address.to_canonical(), address) {
        (IpAddr::V4(base), IpAddr::V4(address)) => {
            let shift = 32 - u32::from(network.prefix_bits.min(32));
            u32::from(base).checked_shr(shift) == u32::from(address).checked_shr(shift)
        }
        (IpAddr::V6(base), IpAddr::V6(address)) => {
            let shift = 128 - u32::from(network.prefix_bits.min(128));
            u128::from(base).checked_shr(shift) == u128::from(address).checked_shr(shift)
        }
        _ => false,
    })
}

/// A request on its way to an upstream.
pub(crate) struct Outgoing<'a> {
    pub bytes: &'a [u8],
    pub head: &'a RequestHead,
    pub rewrite: Option<&'a Rewrite>,
    pub peer: &'a Peer,
    pub settings: &'a Settings,
    /// The host to name where the client named none: HTTP/1.1 must name one, and servers refuse an empty one.
    pub fallback_host: &'a str,
}

impl Outgoing<'_> {
    /// Appends the head that the upstream gets.
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
                Kind::Other | Kind::LoadReport => !self.is_replaced(name),
                Kind::Upgrade => head.upgrade,
                Kind::Expect => head.expects_continue,
                _ => false,
            };
            if passes {
                write_field(out, name, field.value.of(self.bytes));
            }
        }
        match head.framing {
            Framing::Length(length) => write_number(out, b"content-length: ", length),
            Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            // A request that may have a body says so that it has none; for a GET silence says it.
            Framing::None if head.fields.iter().any(|field| field.kind == Kind::ContentLength) => {
                out.extend_from_slice(b"content-length: 0\r\n");
            }
            Framing::None | Framing::UntilClose => {}
        }
        if head.upgrade {
            out.extend_from_slice(b"connection: upgrade\r\n");
        }
        self.write_forwarding(out);
        for (name, value) in self.rewrite.iter().flat_map(|rewrite| &rewrite.headers) {
            write_field(out, name.as_bytes(), value.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }

    fn is_replaced(&self, name: &[u8]) -> bool {
        let mut replaced = self.rewrite.iter().flat_map(|rewrite| &rewrite.headers);
        replaced.any(|(own, _)| is_alike(own.as_bytes(), name))
    }

    fn values(&self, kind: Kind) -> impl Iterator<Item = &[u8]> {
        let trusted = self.peer.trusted;
        let fields = self.head.fields.iter().filter(move |field| trusted && field.kind == kind);
        fields.map(|field| field.value.of(self.bytes))
    }

    /// From an untrusted peer the fields are dropped and begun anew; a trusted proxy's are continued.
    fn write_forwarding(&self, out: &mut Vec<u8>) {
        let host = self.head.authority.of(self.bytes);
        if self.settings.forwarded.x_forwarded() {
            out.extend_from_slice(b"x-forwarded-for: ");
            for value in self.values(Kind::XForwardedFor) {
                out.extend_from_slice(value);
                out.extend_from_slice(b", ");
            }
            out.extend_from_slice(self.peer.text.as_bytes());
            let proto = self.values(Kind::XForwardedProto).next().unwrap_or(b"http");
            write_field(out, b"\r\nx-forwarded-proto", proto);
            let host = self.values(Kind::XForwardedHost).next().unwrap_or(host);
            if !host.is_empty() {
                write_field(out, b"x-forwarded-host", host);
            }
        }
        if self.settings.forwarded.forwarded() {
            out.extend_from_slice(b"forwarded: ");
            for value in self.values(Kind::Forwarded) {
                out.extend_from_slice(value);
                out.extend_from_slice(b", ");
            }
            let quote = if self.peer.address.is_ipv6() { ("\"[", "]\"") } else { ("", "") };
            // Writing to a vector does not fail.
            let _ = write!(out, "for={}{}{}", quote.0, self.peer.text, quote.1);
            if !host.is_empty() {
                out.extend_from_slice(b";host=\"");
                out.extend_from_slice(host);
                out.push(b'"');
            }
            out.extend_from_slice(b";proto=http\r\n");
        }
    }
}

/// Level and reason, as a response header.
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

/// What of a request matters for its response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    pub version: Version,
    pub keep_alive: bool,
    pub is_head: bool,
    pub upgrade: bool,
}

impl Asked {
    pub(crate) fn of(head: &RequestHead) -> Self {
        Asked {
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
    pub asked: Asked,
    /// The framing that the client gets.
    pub framing: Framing,
    pub report: Option<LevelReport<'a>>,
    /// A field of this name is dropped: who reads the report must not be told another.
    pub report_name: &'a str,
    /// The load report was for the gateway; others do not see it.
    pub hide_load: bool,
}

impl Incoming<'_> {
    /// Appends the head that the client gets.
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
                Kind::Connection | Kind::ContentLength | Kind::TransferEncoding | Kind::HopByHop => false,
                Kind::Upgrade => switching,
                Kind::LoadReport => !self.hide_load,
                _ => true,
            };
            let name = field.name.of(self.bytes);
            if passes && !name.eq_ignore_ascii_case(self.report_name.as_bytes()) {
                write_field(out, name, field.value.of(self.bytes));
            }
        }
        match self.framing {
            Framing::Length(length) => write_number(out, b"content-length: ", length),
            Framing::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
            // The length that GET would have had, or that the client's copy has.
            Framing::None if self.asked.is_head || head.status == 304 => {
                if let Some(length) = head.content_length {
                    write_number(out, b"content-length: ", length);
                }
            }
            Framing::None | Framing::UntilClose => {}
        }
        if switching {
            out.extend_from_slice(b"connection: upgrade\r\n");
        } else if head.status >= 200 {
            self.asked.write_connection(out);
            if let Some(report) = &self.report {
                report.write(out);
            }
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
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
#[path = "forward_tests.rs"]
mod tests;
