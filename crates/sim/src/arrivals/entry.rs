//! A line of an access log, whatever its format was.

use super::own_log::{OwnFields, OwnLine};
use super::timestamp::Stamp;
use crate::request::Request;
use plimsoll_core::request::{host_length, normal_path};
use plimsoll_core::time::Duration;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// What a line says, unchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry<'a> {
    /// When the request came, or ended, as the log has it.
    pub(super) stamp: Stamp,
    /// The client's address or name.
    pub(super) client: &'a str,
    /// Method of the request line.
    pub(super) method: &'a str,
    /// Host; empty if the line does not say.
    pub(super) host: &'a str,
    /// Path or URL.
    pub(super) target: &'a str,
    /// Body bytes of the response.
    pub(super) bytes: u64,
    /// The service time, if the line has one.
    pub(super) service: Option<Duration>,
    /// The fields that only the gateway's own log has.
    pub(super) own: Option<OwnFields<'a>>,
}

/// A line's time and its request, in buffers that are used again.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) stamp: Stamp,
    pub(super) request: Request,
    /// The service time that the line states.
    pub(super) time: Option<Duration>,
    /// What a gateway's log says became of the request; `None` for any other line.
    pub(super) own: Option<OwnLine>,
}

/// The longest path or query that is kept, which bounds the memory of waiting requests. Servers refuse longer ones.
const LONGEST_PATH: usize = 4096;

impl Record {
    /// Copies a line's request. If `weigh_by` is the mean of all times (s), the line's time only weighs the request against
    /// others; otherwise the time is its service time.
    pub(super) fn fill(&mut self, entry: &Entry<'_>, weigh_by: Option<f64>) {
        let (host, path, query) = split_target(entry.target);
        let host = if host.is_empty() { entry.host } else { host };
        self.stamp = entry.stamp;
        let request = &mut self.request;
        request.client = client_address(entry.client);
        replace(&mut request.method, entry.method);
        replace(&mut request.host, &host[..host_length(host.as_bytes())]);
        request.host.make_ascii_lowercase();
        replace(&mut request.path, &normal_path(path));
        replace(&mut request.query, query);
        request.bytes = entry.bytes;
        self.time = entry.service;
        // The log states the time that the request took, not a mean, so no law multiplies it.
        (request.service, request.work) = match weigh_by {
            None => (entry.service, entry.service.map(|_| 1.0)),
            Some(mean) => (None, Some(entry.service.map_or(1.0, |time| time.as_secs_f64() / mean))),
        };
    }
}

fn replace(to: &mut String, from: &str) {
    to.clear();
    to.push_str(&from[..from.floor_char_boundary(LONGEST_PATH)]);
}

/// Splits a request line into method and target. The version may be missing (HTTP/0.9), and in old logs the method too.
pub(super) fn split_request(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    let Some((method, rest)) = line.split_once(' ') else {
        return line.starts_with('/').then_some(("GET", line));
    };
    let target = match rest.rsplit_once(' ') {
        Some((target, version)) if version.starts_with("HTTP/") => target.trim(),
        _ => rest.trim(),
    };
    let named =
        method.len() <= 32 && method.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-_".contains(&byte));
    (named && !method.starts_with('-') && !target.is_empty() && !target.starts_with("HTTP/"))
        .then_some((method, target))
}

/// Host (with port), path and query of a request's target. The host is empty unless the target is an absolute URL.
fn split_target(target: &str) -> (&str, &str, &str) {
    let (host, path) = match target.split_once("://") {
        Some((scheme, rest))
            if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") =>
        {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            // The user's name before the `@` is not part of the host.
            (authority.rsplit('@').next().unwrap_or(authority), path)
        }
        _ => ("", target),
    };
    let target = path.split('#').next().unwrap_or(path);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    (host, if path.is_empty() { "/" } else { path }, query)
}

/// A client's address. If the text is no address, one is made from it.
pub(super) fn client_address(text: &str) -> IpAddr {
    if let Ok(address) = text.parse() {
        return address;
    }
    // The first entry of a list, as in `X-Forwarded-For`; an address may have brackets or a port.
    let first = text.split(',').next().unwrap_or(text).trim();
    let bare = first.trim_start_matches('[').trim_end_matches(']');
    bare.parse()
        .or_else(|_| first.parse::<SocketAddr>().map(|socket| socket.ip()))
        .unwrap_or_else(|_| made_address(first.bytes().map(|byte| byte.to_ascii_lowercase())))
}

/// The address of the copy of a client with this number, from 1 on: always the same, and different from the client's own.
pub(super) fn copied_client(client: IpAddr, copy: u32) -> IpAddr {
    let copy = copy.to_le_bytes();
    match client {
        IpAddr::V4(address) => made_address(address.octets().into_iter().chain(copy)),
        // The first 64 bits identify an IPv6 client.
        IpAddr::V6(address) => made_address(address.octets().into_iter().take(8).chain(copy)),
    }
}

/// A local IPv6 address (fd00::/8). Clients are told apart by its first 64 bits, which are a hash: FNV-1a, mixed once more
/// because its upper bits depend little on a name's last letters. With 56 bits, two of a million clients meet with a
/// probability below 10^-5.
fn made_address(bytes: impl Iterator<Item = u8>) -> IpAddr {
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let place = 0xfd << 56 | (mixed ^ (mixed >> 32)) >> 8;
    IpAddr::V6(Ipv6Addr::from(u128::from(place) << 64 | 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn request_lines() {
        for (line, expected) in [
            ("GET /a HTTP/1.0", Some(("GET", "/a"))),
            ("GET /a?b=c HTTP/1.1", Some(("GET", "/a?b=c"))),
            ("GET /a", Some(("GET", "/a"))),
            ("/a", Some(("GET", "/a"))),
            ("GET /a b c HTTP/1.0", Some(("GET", "/a b c"))),
            ("GET  /a  HTTP/1.0", Some(("GET", "/a"))),
            ("M-SEARCH * HTTP/1.1", Some(("M-SEARCH", "*"))),
            ("GET HTTP/1.0", None),
            ("GET", None),
            ("-", None),
            ("", None),
            ("- -", None),
            (r"\x16\x03\x01 x", None),
        ] {
            assert_eq!(split_request(line), expected, "{line}");
        }
    }

    #[test]
    fn targets() {
        for (target, expected) in [
            ("/a?b", ("", "/a", "b")),
            ("/a#b?c", ("", "/a", "")),
            ("http://Example.org:8080/a?b", ("Example.org:8080", "/a", "b")),
            ("HTTPS://example.org", ("example.org", "/", "")),
            ("http://example.org?x#y", ("example.org", "/", "x")),
            ("http://me:secret@example.org/", ("example.org", "/", "")),
            ("/go?to=http://example.org/", ("", "/go", "to=http://example.org/")),
            ("*", ("", "*", "")),
            ("example.org:443", ("", "example.org:443", "")),
        ] {
            assert_eq!(split_target(target), expected, "{target}");
        }
    }

    #[test]
    fn clients() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        for (text, expected) in [
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7:4711", "192.0.2.7"),
            ("192.0.2.7, 198.51.100.1", "192.0.2.7"),
            ("2001:db8::7", "2001:db8::7"),
            ("[2001:db8::7]", "2001:db8::7"),
            ("[2001:db8::7]:4711", "2001:db8::7"),
        ] {
            assert_eq!(client_address(text), address(expected), "{text}");
        }
        let named = client_address("pppa006.compuserve.com");
        assert_eq!(named, client_address("PPPA006.compuserve.com"));
        assert!(matches!(named, IpAddr::V6(address) if address.octets()[0] == 0xfd));
    }

    #[test]
    fn made_clients_differ_in_their_first_64_bits() {
        let first_half = |address: IpAddr| match address {
            IpAddr::V6(address) => u128::from(address) >> 64,
            IpAddr::V4(_) => unreachable!("made addresses are IPv6"),
        };
        let names = (0..50_000).map(|n| first_half(client_address(&format!("host{n}.example.org"))));
        let copies =
            (0..50_000_u32).map(|n| first_half(copied_client(IpAddr::from(n.to_be_bytes()), 1 + n % 3)));
        let all: BTreeSet<u128> = names.chain(copies).collect();
        assert_eq!(all.len(), 100_000);
        // The hashes are spread: no quarter of their range has many more clients than another.
        let upper = all.iter().filter(|half| *half >> 54 & 3 == 3).count();
        assert!((24_000..26_000).contains(&upper), "{upper}");
    }

    #[test]
    fn long_paths_are_cut_between_characters() {
        let mut record = Record::default();
        let target = "/".to_owned() + &"ä".repeat(10_000);
        let entry = Entry {
            stamp: Stamp::default(),
            client: "192.0.2.1",
            method: "GET",
            host: "WWW.Example.org:80",
            target: &target,
            bytes: 1,
            service: None,
            own: None,
        };
        record.fill(&entry, None);
        assert_eq!(record.request.path.len(), LONGEST_PATH - 1);
        assert_eq!(record.request.host, "www.example.org");
        assert_eq!((record.request.service, record.request.work), (None, None));
        let timed = Entry { service: Some(Duration::from_millis(30)), ..entry };
        record.fill(&timed, None);
        assert_eq!((record.request.service, record.request.work), (timed.service, Some(1.0)));
        record.fill(&timed, Some(0.02));
        assert_eq!((record.request.service, record.request.work), (None, Some(1.5)));
    }
}
