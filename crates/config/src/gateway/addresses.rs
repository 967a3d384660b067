//! Network addresses: their types of values, and the addresses that the gateway listens on.

use super::file::ConfigurationKeys;
use super::tls;
use crate::diagnostic::{Findings, quoted, refuse};
use crate::syntax::{Located, Refusal, Text, TextField, TextShape, bad, beside, texts};
use plimsoll_core::promises::Network;
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::{Address, Listener};
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::PathBuf;

/// An address to listen on, or a Unix socket.
impl TextField for Address {
    const SHAPE: TextShape = TextShape {
        what: "an address with port, or `unix:` and a path",
        example: "127.0.0.1:8080",
        pattern: None,
        unit: None,
    };

    fn parse(text: &str) -> Result<Self, Refusal> {
        match text.strip_prefix("unix:") {
            Some("") => {
                bad("a Unix socket without a path", "write one, such as `\"unix:/run/plimsoll.sock\"`")
            }
            Some(path) => Ok(Address::Unix(path.into())),
            None => <SocketAddr as TextField>::parse(text).map(Address::Tcp),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// A network address to listen on.
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

/// A network address to listen on that comes from the command line instead of a file.
///
/// # Errors
/// The advice on what to write instead.
pub fn listening_address(text: &str) -> Result<SocketAddr, String> {
    <SocketAddr as TextField>::parse(text).map_err(|(_, complaint)| complaint.help)
}

texts! {
    /// The address of the admin listener, or none.
    #[derive(Copy)]
    Admin(Option<SocketAddr>, "an address with port, or `off`", "127.0.0.1:9090", None) = |text| match text {
        "off" => Ok(None),
        _ => <SocketAddr as TextField>::parse(text).map(Some),
    }, show |address| address.map_or("off".to_owned(), |address| address.to_string());
    /// The time between two lookups of a name, or none.
    #[derive(Copy)]
    LookUpEvery(Option<Duration>, "a duration, or `off`", "10s", None) = |text| match text {
        "off" => Ok(None),
        _ => <Duration as TextField>::parse(text).map(Some),
    }, show |every| every.map_or("off".to_owned(), |every| every.show());
    /// Host and port to connect to; the host is looked up later.
    HostPort(String, "a host with port", "127.0.0.1:8000", None) = host_with_port;
}

impl LookUpEvery {
    /// What HAProxy keeps an answer for (`hold valid`); Envoy asks every five seconds.
    pub(crate) const USUAL: Duration = Duration::from_secs(10);
}

/// The address of an upstream's server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ServerAddress {
    /// Host and port, or `unix:` and a path.
    pub(crate) at: String,
    /// Whether the address is a URL that asks for TLS.
    pub(crate) is_secure: bool,
}

impl TextField for ServerAddress {
    const SHAPE: TextShape = TextShape {
        what: "a host with port, `https://` and a host, or `unix:` and a path",
        example: "127.0.0.1:8000",
        pattern: None,
        unit: None,
    };

    fn parse(text: &str) -> Result<Self, Refusal> {
        if text.starts_with("unix:") {
            return <Address as TextField>::parse(text)
                .map(|_| ServerAddress { at: text.to_owned(), is_secure: false });
        }
        let Some(rest) = text.strip_prefix("https://") else {
            return HostPort::parse(text).map(|plain| ServerAddress { at: plain.0, is_secure: false });
        };
        let host = rest.strip_suffix('/').unwrap_or(rest);
        if let Some((host, _)) = host.split_once('/') {
            let message = format!("`{}` has a path; requests bring their own", quoted(text));
            return bad(
                message,
                format!("write `\"https://{}\"`; a level puts a `prefix` before paths", quoted(host)),
            );
        }
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let at = if has_port { host.to_owned() } else { format!("{host}:443") };
        HostPort::parse(&at).map(|plain| ServerAddress { at: plain.0, is_secure: true })
    }

    fn show(&self) -> String {
        if self.is_secure { format!("https://{}", self.at) } else { self.at.clone() }
    }
}

fn host_with_port(text: &str) -> Result<String, Refusal> {
    if let Some((scheme, rest)) = text.split_once("://") {
        let rest = rest.split('/').next().unwrap_or(rest);
        let message = format!("`{}` is a URL; this takes host and port", quoted(text));
        let help = match scheme {
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
        _ if port.is_empty() && !host.is_empty() && !text.contains(['/', ' ']) => {
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

/// The path of a file that a configuration names; a relative one is taken from the configuration's own folder. `help` is the
/// advice if the name is empty.
pub(super) fn in_folder_of(name: &str, text: &Located<Text>, help: &str, findings: &mut Findings) -> PathBuf {
    if text.value.0.is_empty() {
        refuse!(findings, BadValue at &text.span, "a file without a name", help: help);
    }
    beside(name, &text.value.0)
}

/// The listeners for clients, in the file with this name.
pub(super) fn listen(file: &ConfigurationKeys, name: &str) -> Vec<Listener> {
    let plain = file
        .gateway
        .value
        .listen
        .iter()
        .flat_map(|listen| &listen.value.0)
        .map(|address| (&address.value, false));
    let secure = tls::addresses(file.tls.as_ref());
    let all = plain.chain(secure.iter().map(|address| (&address.value, true)));
    all.map(|(address, tls)| {
        let address = match address {
            Address::Tcp(address) => Address::Tcp(*address),
            Address::Unix(path) => Address::Unix(beside(name, path)),
        };
        Listener { address, tls }
    })
    .collect()
}

/// Refuses a gateway without a listener for clients.
pub(crate) fn check_listens(file: &ConfigurationKeys, findings: &mut Findings) {
    if file.gateway.value.listen.is_none() && file.tls.is_none() && file.gateway.sound {
        refuse!(findings, MissingKey at &file.gateway.span,
            "`[gateway]` needs the key `listen`",
            help: "write where clients connect: `listen = \"127.0.0.1:8080\"`; only `plimsoll control` does without");
    }
}

/// Every address that the gateway listens on for clients.
fn listeners(file: &ConfigurationKeys) -> impl Iterator<Item = Located<Address>> {
    let keys = &file.gateway.value;
    let listen = keys.listen.iter().flat_map(|listen| listen.value.0.iter().cloned());
    let admin = keys.admin.value.0.map(|value| Located::sound(value.into(), keys.admin.span.clone()));
    listen.chain(tls::addresses(file.tls.as_ref())).chain(admin)
}

/// Refuses two listeners on one address: the kernel would spread connections over both (`SO_REUSEPORT`), so every other request
/// would go to the wrong one.
pub(super) fn check_listeners(file: &ConfigurationKeys, findings: &mut Findings) {
    let mut known: Vec<Located<Address>> = Vec::new();
    for address in listeners(file) {
        if let Some(first) = known.iter().find(|known| overlap(&known.value, &address.value)) {
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

/// Refuses an upstream that is one of the gateway's own listeners, because each request would come back until there is no room.
pub(super) fn check_upstreams(file: &ConfigurationKeys, findings: &mut Findings) {
    let listeners: Vec<(SocketAddr, Range<usize>)> = listeners(file)
        .filter_map(|listener| match listener.value {
            Address::Tcp(address) => Some((address, listener.span)),
            Address::Unix(_) => None,
        })
        .collect();
    let upstreams = file.upstream.value.0.iter().flat_map(|(_, upstream)| upstream.value.address.iter());
    for address in upstreams.flat_map(|addresses| &addresses.value.0) {
        let Some((own, span)) = listeners.iter().find(|(own, _)| reaches(&address.value.at, *own)) else {
            continue;
        };
        refuse!(findings, Conflict at &address.span,
            format!("{} is where the gateway itself listens: requests would come back to it", address.value.at),
            help: "write the server's own address and port",
            beside span => format!("{own} is given"));
    }
}

/// Whether a connection to `address` comes to `listener`, as far as that is known without a name lookup.
fn reaches(address: &str, listener: SocketAddr) -> bool {
    let lower = address.to_ascii_lowercase();
    let comes = |address: &str| address.parse().is_ok_and(|to| comes_to(to, listener, &[]));
    match lower.strip_prefix("localhost:") {
        // `localhost` may mean an address of either family.
        Some(port) => comes(&format!("127.0.0.1:{port}")) || comes(&format!("[::1]:{port}")),
        None => comes(&lower),
    }
}

/// Whether a connection to `to` comes to `listener`, on a machine with the addresses `own`.
pub fn comes_to(to: SocketAddr, listener: SocketAddr, own: &[IpAddr]) -> bool {
    let ip = to.ip().to_canonical();
    let is_local = ip.is_loopback() || ip.is_unspecified() || own.contains(&ip);
    let takes = ip == listener.ip() || is_local && listener.ip().is_unspecified();
    listener.port() != 0 && to.port() == listener.port() && takes
}

fn overlap(a: &Address, b: &Address) -> bool {
    let (Address::Tcp(a), Address::Tcp(b)) = (a, b) else { return a == b };
    // Port 0 gets a new port each time, so it never collides.
    let same_family = a.is_ipv4() == b.is_ipv4();
    let covers = a.ip() == b.ip() || same_family && (a.ip().is_unspecified() || b.ip().is_unspecified());
    a.port() != 0 && a.port() == b.port() && covers
}
