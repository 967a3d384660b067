//! The other end of a connection, and the client that a trusted proxy forwards for.

use super::forwarded_members::{members, parameter};
use crate::http1::field::{FieldKind, list};
use crate::http1::request::RequestHead;
use crate::settings::{RealIpHeader, Settings};
use plimsoll_core::promises::Network;
use std::net::IpAddr;
use std::rc::Rc;

/// The origin of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionSource {
    pub address: IpAddr,
    /// Whether it speaks TLS.
    pub is_secure: bool,
    /// The name in the client's certificate, which was verified.
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

    /// Whether a field of this kind is believed: whether it is written by a trusted proxy, if it says where a request is from.
    pub(super) fn believes(&self, kind: FieldKind, settings: &Settings) -> bool {
        match kind {
            FieldKind::XForwardedFor | FieldKind::XForwardedProto | FieldKind::XForwardedHost => {
                self.trusted && settings.real_ip_header == RealIpHeader::XForwardedFor
            }
            FieldKind::Forwarded => self.trusted && settings.real_ip_header == RealIpHeader::Forwarded,
            FieldKind::SetByProxy => self.trusted,
            _ => true,
        }
    }

    /// Decides again whether the peer is a trusted proxy, since a reload may have changed the list.
    pub(super) fn judge(&mut self, trusted_proxies: &[Network]) {
        self.trusted = is_in(trusted_proxies, self.address);
    }

    /// The scheme of the URLs that the client asks for, as far as its connection shows.
    pub(crate) fn scheme(&self) -> &'static [u8] {
        if self.is_secure { b"https" } else { b"http" }
    }

    /// The client's address: the last one in the chain that is no trusted proxy.
    ///
    /// The chain stands in the field that the trusted proxies write. The other field is not read: a proxy that does not write
    /// it passes on what its client made up.
    pub(crate) fn client(&self, bytes: &[u8], head: &RequestHead, settings: &Settings) -> IpAddr {
        self.client_and_member(bytes, head, settings).0
    }

    /// The chain's member for the client's own connection, if a trusted proxy wrote one. The client itself may have written the
    /// members before it.
    pub(super) fn member<'a>(
        &self,
        bytes: &'a [u8],
        head: &RequestHead,
        settings: &Settings,
    ) -> Option<&'a [u8]> {
        self.client_and_member(bytes, head, settings).1
    }

    fn client_and_member<'a>(
        &self,
        bytes: &'a [u8],
        head: &RequestHead,
        settings: &Settings,
    ) -> (IpAddr, Option<&'a [u8]>) {
        let (mut client, mut last) = (self.address, None);
        if !self.trusted {
            return (client, last);
        }
        let of_kind = |kind| head.fields.iter().rev().filter(move |field| field.kind == kind);
        let mut follow = |member: &'a [u8], node: Option<&[u8]>| {
            last = Some(member);
            let address = node.and_then(parse_node)?;
            client = address;
            is_in(&settings.trusted_proxies, address).then_some(())
        };
        // The chain ends at the first address that is no trusted proxy, or at a member without an address.
        let _ = match settings.real_ip_header {
            RealIpHeader::XForwardedFor => of_kind(FieldKind::XForwardedFor)
                .flat_map(|field| list(field.value.of(bytes)).rev())
                .try_for_each(|member| follow(member, Some(member))),
            RealIpHeader::Forwarded => of_kind(FieldKind::Forwarded)
                .flat_map(|field| members(field.value.of(bytes)))
                .try_for_each(|member| follow(member, parameter(member, b"for="))),
        };
        (client, last)
    }

    /// Whether the client's own connection speaks TLS, as far as this gateway sees or a trusted proxy says.
    pub(super) fn is_client_secure(&self, bytes: &[u8], head: &RequestHead, settings: &Settings) -> bool {
        let proto = match settings.real_ip_header {
            _ if self.is_secure => return true,
            RealIpHeader::XForwardedFor => {
                let mut fields = head.fields.iter();
                let proto = fields.find(|field| self.trusted && field.kind == FieldKind::XForwardedProto);
                // Each proxy may have added what it saw; the first is how the client came.
                proto.and_then(|field| field.value.of(bytes).split(|&byte| byte == b',').next())
            }
            RealIpHeader::Forwarded => {
                self.member(bytes, head, settings).and_then(|member| parameter(member, b"proto="))
            }
        };
        proto.is_some_and(|proto| proto.trim_ascii().eq_ignore_ascii_case(b"https"))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the client of a peer behind two trusted proxies came over TLS.
    fn is_secure(real_ip_header: RealIpHeader, fields: &str) -> bool {
        let trusted = Network { address: IpAddr::from([10, 0, 0, 0]), prefix_bits: 8 };
        let settings = Settings { trusted_proxies: vec![trusted], real_ip_header, ..Settings::default() };
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n");
        let mut head = RequestHead::default();
        head.parse(text.as_bytes()).expect("a good request");
        let source = ConnectionSource::plain([10, 0, 0, 1].into());
        Peer::new(&source, &settings.trusted_proxies).is_client_secure(text.as_bytes(), &head, &settings)
    }

    #[test]
    fn a_client_does_not_say_itself_that_it_came_over_tls() {
        for (members, expected) in [
            ("for=1.1.1.1;proto=https, for=203.0.113.9;proto=http", false),
            ("for=1.1.1.1;proto=http, for=203.0.113.9;proto=https", true),
            ("for=203.0.113.9;proto=https, for=10.0.0.2;proto=http", true),
            ("for=1.1.1.1;proto=https, for=unknown;proto=http, for=10.0.0.2", false),
            ("for=1.1.1.1;proto=https, for=203.0.113.9", false),
            ("proto=HTTPS", true),
        ] {
            let two_fields = members.replacen(", ", "\r\nForwarded: ", 1);
            for members in [members, &two_fields] {
                let fields = format!("Forwarded: {members}");
                assert_eq!(is_secure(RealIpHeader::Forwarded, &fields), expected, "{members}");
            }
        }
        assert!(is_secure(RealIpHeader::XForwardedFor, "X-Forwarded-Proto: https, http"));
        assert!(!is_secure(RealIpHeader::XForwardedFor, "Forwarded: for=203.0.113.9;proto=https"));
    }
}
