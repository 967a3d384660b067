//! The other end of a connection, and the client that a trusted proxy forwards for.

use crate::http1::field::{FieldKind, list};
use crate::http1::request::RequestHead;
use plimsoll_core::promises::Network;
use std::net::IpAddr;

#[derive(Debug)]
pub(crate) struct Peer {
    pub address: IpAddr,
    pub text: String,
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
        let kind = match head.fields.iter().any(|field| field.kind == FieldKind::XForwardedFor) {
            true => FieldKind::XForwardedFor,
            false => FieldKind::Forwarded,
        };
        for field in head.fields.iter().rev().filter(|field| field.kind == kind) {
            let members: Vec<&[u8]> = list(field.value.of(bytes)).collect();
            for member in members.into_iter().rev() {
                let node = if kind == FieldKind::Forwarded { forwarded_for(member) } else { Some(member) };
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
