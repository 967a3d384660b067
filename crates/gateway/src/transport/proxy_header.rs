//! The header of the PROXY protocol, versions 1 and 2, with which a proxy begins a connection to name its client.
//!
//! Source: <https://www.haproxy.org/download/1.8/doc/proxy-protocol.txt>. Only the client's address is read; extensions of
//! version 2 are skipped. A connection of the proxy's own (`LOCAL`, `UNKNOWN`), or of another address family, names no client.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
const NAME: &[u8] = b"PROXY ";
/// The longest header of version 1, with its line end.
const LONGEST_LINE: usize = 107;
/// The longest header of version 2. Its extensions have no bound of their own; in practice they are far shorter.
pub(crate) const LONGEST: usize = 4096;

/// The error for such a header from a peer that is not configured to send one.
pub(crate) const UNEXPECTED: &str =
    "the connection begins with a header of the PROXY protocol, and its address is not in `proxy_protocol`";

/// What the first bytes of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Header {
    /// The beginning of a header: at least this number of bytes belongs to it, and more must follow.
    Begun(usize),
    /// A complete header: its length, and the client's address, if it has one.
    Whole(usize, Option<IpAddr>),
    /// No such header.
    None,
}

/// Whether bytes that are no request begin with such a header, or with the rest of one behind an empty line.
pub(crate) fn is_begun(bytes: &[u8]) -> bool {
    bytes.starts_with(NAME) || bytes.starts_with(SIGNATURE) || bytes.starts_with(&SIGNATURE[2..])
}

impl Header {
    /// Reads the first bytes of a connection.
    pub(crate) fn read(bytes: &[u8]) -> Header {
        let common = |known: &[u8]| known.iter().zip(bytes).all(|(known, byte)| known == byte);
        if common(SIGNATURE) {
            if bytes.len() < SIGNATURE.len() { Header::Begun(bytes.len()) } else { version_2(bytes) }
        } else if common(NAME) {
            if bytes.len() < NAME.len() { Header::Begun(bytes.len()) } else { version_1(bytes) }
        } else {
            Header::None
        }
    }
}

fn version_1(bytes: &[u8]) -> Header {
    let most = &bytes[..bytes.len().min(LONGEST_LINE)];
    let Some(end) = most.windows(2).position(|two| two == b"\r\n") else {
        return if bytes.len() < LONGEST_LINE { Header::Begun(bytes.len()) } else { Header::None };
    };
    let Ok(line) = std::str::from_utf8(&bytes[NAME.len()..end]) else { return Header::None };
    let mut words = line.split(' ');
    let family = words.next();
    let (source, destination) = (words.next(), words.next());
    let ports = [words.next(), words.next()].map(|port| port.and_then(|port| port.parse::<u16>().ok()));
    let is_whole = ports.iter().all(Option::is_some) && words.next().is_none();
    let address = |word: Option<&str>| word.and_then(|word| word.parse::<IpAddr>().ok());
    match (family, address(source), address(destination)) {
        (Some("UNKNOWN"), _, _) => Header::Whole(end + 2, None),
        (Some("TCP4"), Some(own @ IpAddr::V4(_)), Some(IpAddr::V4(_))) if is_whole => {
            Header::Whole(end + 2, Some(own))
        }
        (Some("TCP6"), Some(own @ IpAddr::V6(_)), Some(IpAddr::V6(_))) if is_whole => {
            Header::Whole(end + 2, Some(own))
        }
        _ => Header::None,
    }
}

fn version_2(bytes: &[u8]) -> Header {
    let &[command, family, high, low, ref rest @ ..] = &bytes[SIGNATURE.len()..] else {
        return Header::Begun(bytes.len());
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let whole = SIGNATURE.len() + 4 + length;
    if whole > LONGEST || !matches!(command, 0x20 | 0x21) {
        return Header::None;
    }
    let Some(addresses) = rest.get(..length) else { return Header::Begun(bytes.len()) };
    let source = match (command, family >> 4) {
        (0x20, _) => Some(None),
        (_, 1) => addresses
            .first_chunk::<12>()
            .and_then(|all| all.first_chunk::<4>())
            .map(|own| Some(Ipv4Addr::from(*own).into())),
        (_, 2) => addresses
            .first_chunk::<36>()
            .and_then(|all| all.first_chunk::<16>())
            .map(|own| Some(Ipv6Addr::from(*own).into())),
        _ => Some(None),
    };
    source.map_or(Header::None, |source| Header::Whole(whole, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_version_2(command: u8, family: u8, addresses: &[u8]) -> Vec<u8> {
        let length = (addresses.len() as u16).to_be_bytes();
        [SIGNATURE, &[command, family], &length, addresses].concat()
    }

    /// The client's address in a header, after a check that each beginning of the header waits for more, whatever follows.
    fn source(header: &[u8]) -> Option<Option<IpAddr>> {
        let whole = [header, b"GET / HTTP/1.1\r\n"].concat();
        let Header::Whole(length, source) = Header::read(&whole) else { return None };
        assert_eq!(length, header.len());
        for end in 0..header.len() {
            assert_eq!(Header::read(&header[..end]), Header::Begun(end));
        }
        Some(source)
    }

    #[test]
    fn the_source_is_read_in_both_versions() {
        let four: IpAddr = "192.0.2.7".parse().expect("an address");
        let six: IpAddr = "2001:db8::7".parse().expect("an address");
        assert_eq!(source(b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 443\r\n"), Some(Some(four)));
        assert_eq!(source(b"PROXY TCP6 2001:db8::7 2001:db8::1 56324 443\r\n"), Some(Some(six)));
        assert_eq!(source(b"PROXY UNKNOWN\r\n"), Some(None));
        assert_eq!(source(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n"), Some(None));
        let mut own = [192, 0, 2, 7, 192, 0, 2, 1, 0xdc, 4, 1, 0xbb].to_vec();
        assert_eq!(source(&of_version_2(0x21, 0x11, &own)), Some(Some(four)));
        own.extend_from_slice(&[3, 0, 4, 1, 2, 3, 4]);
        assert_eq!(source(&of_version_2(0x21, 0x11, &own)), Some(Some(four)), "with an extension");
        assert_eq!(source(&of_version_2(0x20, 0, &[])), Some(None), "a check of the proxy's own");
        let IpAddr::V6(address) = six else { return };
        let own = [&address.octets()[..], &[0; 20]].concat();
        assert_eq!(source(&of_version_2(0x21, 0x21, &own)), Some(Some(six)));
        assert_eq!(source(&of_version_2(0x21, 0x31, &[0; 216])), Some(None), "a Unix socket");
    }

    #[test]
    fn what_is_no_header_is_none() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PROXY TCP4 192.0.2.7 192.0.2.1 56324\r\n",
            b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 443 1\r\n",
            b"PROXY TCP4 2001:db8::7 192.0.2.1 56324 443\r\n",
            b"PROXY TCP4 192.0.2.7 192.0.2.1 56324 65536\r\n",
            b"PROXY TCP9 192.0.2.7 192.0.2.1 56324 443\r\n",
            b"PROXY TCP4 192.0.2.7\n192.0.2.1 56324 443\r\n",
            b"\x16\x03\x01",
            &[b"PROXY UNKNOWN ", &[b'a'; 100][..]].concat(),
            &of_version_2(0x31, 0x11, &[0; 12]),
            &of_version_2(0x21, 0x11, &[0; 11]),
            &of_version_2(0x21, 0x21, &[0; 35]),
            &of_version_2(0x21, 0x11, &[0; 5000]),
        ] {
            assert_eq!(Header::read(bytes), Header::None, "{}", bytes.escape_ascii());
        }
    }
}
