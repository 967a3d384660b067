//! The other end of a connection, and the client that a trusted proxy forwards for.

use crate::http1::field::{FieldKind, list};
use crate::http1::request::RequestHead;
use crate::settings::{RealIpHeader, Settings};
use plimsoll_core::promises::Network;
use std::net::IpAddr;
use std::rc::Rc;

/// Where a connection comes from, as it began.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionSource {
    pub address: IpAddr,
    /// Whether it speaks TLS.
    pub is_secure: bool,
    /// The name in the client's certificate, which was checked.
    pub certificate: Option<Rc<str>>,
}

impl ConnectionSource {
    /// A connection without TLS.
    pub(crate) fn plain(address: IpAddr) -> Self {
        ConnectionSource { address, is_secure: false, certificate: None }
    }
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub address: IpAddr,
    pub text: String,
    pub trusted: bool,
    pub is_secure: bool,
    pub certificate: Option<Rc<str>>,
}

impl Peer {
    pub(crate) fn new(source: &ConnectionSource, trusted_proxies: &[Network]) -> Self {
        let address = source.address.to_canonical();
        Peer {
            address,
            text: address.to_string(),
            trusted: is_in(trusted_proxies, address),
            is_secure: source.is_secure,
            certificate: source.certificate.clone(),
        }
    }

    /// The scheme of the URLs that the client asks for, as far as its connection tells.
    pub(crate) fn scheme(&self) -> &'static [u8] {
        if self.is_secure { b"https" } else { b"http" }
    }

    /// The client's address: the last one in the chain that is no trusted proxy.
    ///
    /// The chain stands in the field that the trusted proxies write. The other field is not read: a proxy that does not write
    /// it passes on what its client made up.
    pub(crate) fn client(&self, bytes: &[u8], head: &RequestHead, settings: &Settings) -> IpAddr {
        if !self.trusted {
            return self.address;
        }
        let mut client = self.address;
        let kind = match settings.real_ip_header {
            RealIpHeader::XForwardedFor => FieldKind::XForwardedFor,
            RealIpHeader::Forwarded => FieldKind::Forwarded,
        };
        for field in head.fields.iter().rev().filter(|field| field.kind == kind) {
            let members: Vec<&[u8]> = list(field.value.of(bytes)).collect();
            for member in members.into_iter().rev() {
                let node =
                    if kind == FieldKind::Forwarded { parameter(member, b"for=") } else { Some(member) };
                let Some(address) = node.and_then(parse_node) else { return client };
                client = address;
                if !is_in(&settings.trusted_proxies, address) {
                    return client;
                }
            }
        }
        client
    }
}

/// A parameter of a member of `Forwarded`, without quotes. The name ends with its equals sign.
pub(super) fn parameter<'a>(member: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let value = member.split(|&b| b == b';').find_map(|pair| {
        let (found, value) = pair.trim_ascii().split_at_checked(name.len())?;
        found.eq_ignore_ascii_case(name).then_some(value)
    })?;
    Some(value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value))
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

pub(crate) fn is_in(networks: &[Network], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(address))
}
