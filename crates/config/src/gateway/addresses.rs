//! Addresses of the network: their types of values, and those that the gateway listens on.

use super::file::{ConfigurationKeys, GatewayKeys};
use crate::diagnostic::{Findings, quoted, refuse};
use crate::syntax::{Located, Refusal, TextField, TextShape, bad, texts};
use plimsoll_core::promises::Network;
use std::net::{IpAddr, SocketAddr};

/// An address to listen on.
impl TextField for SocketAddr {
    const SHAPE: TextShape =
        TextShape { what: "an address with port", example: "127.0.0.1:8080", pattern: None, unit: None };

    fn parse(text: &str) -> Result<Self, Refusal> {
        if let Ok(address) = text.parse() {
            return Ok(address);
        }
        let message = format!("`{}` is no address to listen on", quoted(text));
        let help = if let Ok(ip) = text.parse::<IpAddr>() {
            format!("add a port: `\"{}\"`", SocketAddr::new(ip, 8080))
        } else if let Some(port) =
            text.trim_start_matches('*').strip_prefix(':').and_then(|p| p.parse::<u16>().ok())
        {
            format!("write `\"0.0.0.0:{port}\"` for every IPv4 address, `\"[::]:{port}\"` for IPv6 too")
        } else if let Some(port) = text.strip_prefix("localhost:").and_then(|p| p.parse::<u16>().ok()) {
            format!("write `\"127.0.0.1:{port}\"`: names are not looked up here")
        } else {
            "write an address and a port, such as `\"127.0.0.1:8080\"` or `\"[::]:8080\"`".to_owned()
        };
        bad(message, help)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

texts! {
    /// The address of the admin listener, or none.
    #[derive(Copy)]
    Admin(Option<SocketAddr>, "an address with port, or `off`", "127.0.0.1:9090", None) = |text| match text {
        "off" => Ok(None),
        _ => <SocketAddr as TextField>::parse(text).map(Some),
    }, show |address| address.map_or("off".to_owned(), |address| address.to_string());
    /// Host and port to connect to; the host is looked up later.
    HostPort(String, "a host with port", "127.0.0.1:8000", None) = host_with_port;
}

fn host_with_port(text: &str) -> Result<String, Refusal> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let rest = rest.split('/').next().unwrap_or(rest);
        let message = format!("`{}` is a URL; this takes host and port", quoted(text));
        let help = match scheme {
            "https" => "TLS to upstreams is not spoken: name the server's plain HTTP port".to_owned(),
            _ if rest.contains(':') => format!("write `\"{}\"`", quoted(rest)),
            _ => format!("write `\"{}:80\"`", quoted(rest)),
        };
        return bad(message, help);
    }
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host_fits = match bracketed {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)),
    };
    if host_fits && port.parse::<u16>().is_ok_and(|port| port > 0) {
        return Ok(text.to_owned());
    }
    let help = match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => format!("write `\"[{address}]:8000\"`, with the port it listens on"),
        _ if port.is_empty() && !text.contains(['/', ' ']) => {
            format!("add the port it listens on: `\"{}:8000\"`", quoted(host))
        }
        _ => "write host and port, such as `\"127.0.0.1:8000\"` or `\"app.internal:8000\"`".to_owned(),
    };
    bad(format!("`{}` is no host with port", quoted(text)), help)
}

/// A network in CIDR form; an address alone is a network of one.
impl TextField for Network {
    const SHAPE: TextShape =
        TextShape { what: "a network", example: "10.0.0.0/8", pattern: None, unit: None };

    fn parse(text: &str) -> Result<Self, Refusal> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let help =
            "write an address or a network, such as `\"192.0.2.7\"`, `\"10.0.0.0/8\"` or `\"2001:db8::/32\"`";
        let Ok(address) = address.parse::<IpAddr>() else {
            return bad(format!("`{}` is no network", quoted(text)), help);
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits.map(|bits| (bits, bits.parse())) {
            None => most,
            Some((_, Ok(number))) if number <= most => number,
            Some((bits, _)) => {
                let message = format!("`/{}` is no prefix length of {address}", quoted(bits));
                return bad(message, format!("use /0 to /{most}"));
            }
        };
        Ok(Network { address, prefix_bits })
    }

    fn show(&self) -> String {
        format!("{}/{}", self.address, self.prefix_bits)
    }
}

/// Every address that the gateway listens on.
fn listeners(keys: &GatewayKeys) -> impl Iterator<Item = Located<SocketAddr>> {
    let listen = keys.listen.iter().flat_map(|listen| listen.value.0.iter().cloned());
    listen.chain(keys.admin.value.0.map(|value| Located::sound(value, keys.admin.span.clone())))
}

/// Refuses two listeners on one address: the kernel would spread connections over both (`SO_REUSEPORT`), so that
/// every other request of a client would go to the wrong one.
pub(super) fn check_listeners(keys: &GatewayKeys, findings: &mut Findings) {
    let mut known: Vec<Located<SocketAddr>> = Vec::new();
    for address in listeners(keys) {
        if let Some(first) = known.iter().find(|known| overlap(known.value, address.value)) {
            let message = match first.value == address.value {
                true => format!("{} is listened on twice", address.value),
                false => format!("{} and {} overlap", first.value, address.value),
            };
            refuse!(findings, Duplicate at &address.span,
                message, help: "use another port, or keep one of them",
                beside &first.span => format!("{} is given", first.value));
        }
        known.push(address);
    }
}

/// Refuses an upstream that is one of the gateway's own listeners: each request would come back to it until none has room.
pub(super) fn check_upstreams(file: &ConfigurationKeys, findings: &mut Findings) {
    let listeners: Vec<Located<SocketAddr>> = listeners(&file.gateway.value).collect();
    let upstreams = file.upstream.value.0.iter().flat_map(|(_, upstream)| upstream.value.address.iter());
    for address in upstreams.flat_map(|addresses| &addresses.value.0) {
        let Some(own) = listeners.iter().find(|listener| reaches(&address.value.0, listener.value)) else {
            continue;
        };
        refuse!(findings, Conflict at &address.span,
            format!("{} is where the gateway itself listens: requests would come back to it", address.value.0),
            help: "write the server's own address and port",
            beside &own.span => format!("{} is given", own.value));
    }
}

/// Whether a connection to `address`, as far as it tells without asking for names, comes to `listener`.
fn reaches(address: &str, listener: SocketAddr) -> bool {
    let lower = address.to_ascii_lowercase();
    let comes = |address: &str| address.parse().is_ok_and(|to| comes_to(to, listener, &[]));
    match lower.strip_prefix("localhost:") {
        // The name has an address of either family.
        Some(port) => comes(&format!("127.0.0.1:{port}")) || comes(&format!("[::1]:{port}")),
        None => comes(&lower),
    }
}

/// Whether a connection to `to` comes to `listener`, on a machine that has these addresses of its own.
pub fn comes_to(to: SocketAddr, listener: SocketAddr, own: &[IpAddr]) -> bool {
    let ip = to.ip().to_canonical();
    let is_local = ip.is_loopback() || ip.is_unspecified() || own.contains(&ip);
    let takes = ip == listener.ip() || is_local && listener.ip().is_unspecified();
    listener.port() != 0 && to.port() == listener.port() && takes
}

fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    // Port 0 is a fresh port each time.
    let same_family = a.is_ipv4() == b.is_ipv4();
    let covers = a.ip() == b.ip() || same_family && (a.ip().is_unspecified() || b.ip().is_unspecified());
    a.port() != 0 && a.port() == b.port() && covers
}
