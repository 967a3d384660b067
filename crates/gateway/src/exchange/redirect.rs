//! Fields of a response that name a place on the site, mapped back from the upstream's path and host to the client's.
//!
//! A level's prefix and the upstream's own address are the gateway's affair. A redirect of the upstream names both: an nginx at
//! port 8080 that is asked for `/full/images` answers `Location: http://shop.example:8080/full/images/`. A client that followed
//! it would leave the gateway, or ask for a path that gets the prefix once more.

use plimsoll_core::request::{Authority, Prefixed, host_of};
use std::net::SocketAddr;

/// The place that the upstream was asked for, as far as its answer may name it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedPlace<'a> {
    /// The prefix of the level; empty if the path was not changed.
    pub prefix: &'a str,
    /// The head of the request as it was sent to the upstream; it has the client's host.
    pub sent: &'a [u8],
    /// The upstream's addresses.
    pub addresses: &'a [SocketAddr],
    /// The host of the request in place of the client's, if the upstream has a host of its own.
    pub own_host: Option<&'a str>,
}

impl AskedPlace<'_> {
    /// The value of a response's field as the client must see it; `None` if it stays as it is.
    pub(crate) fn mapped(&self, name: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        let asked = Prefixed { root: b"", prefix: self.prefix.as_bytes() };
        let cut = asked.cut(name, value, |scheme, authority| {
            if self.is_upstream(scheme, authority) {
                Authority::Server
            } else {
                Authority::of(authority, self.host())
            }
        })?;
        Some(cut.pieces(value).concat())
    }

    /// Whether the authority is the upstream's own host, one of its addresses, or the client's host at the port of such an
    /// address, if the client asked another port. A server on the default port of its scheme does not name the port.
    fn is_upstream(&self, scheme: &[u8], authority: &[u8]) -> bool {
        let (host, named) = (self.host(), host_of(authority));
        if self.own_host.is_some_and(|own| named.eq_ignore_ascii_case(host_of(own.as_bytes()))) {
            return true;
        }
        let is_other_port = !authority.eq_ignore_ascii_case(host);
        self.addresses.iter().any(|address| {
            let at_its_port = match authority.get(named.len() + 1..) {
                Some(port) => port == address.port().to_string().as_bytes(),
                None => {
                    (address.port() == 80 && scheme.eq_ignore_ascii_case(b"http://"))
                        || (address.port() == 443 && scheme.eq_ignore_ascii_case(b"https://"))
                }
            };
            let is_own = is_other_port && named.eq_ignore_ascii_case(host_of(host));
            at_its_port && (is_own || host_of(address.to_string().as_bytes()) == named)
        })
    }

    /// The host that the upstream was asked for.
    fn host(&self) -> &[u8] {
        let mut lines = self.sent.split(|&byte| byte == b'\n');
        let host = lines.find_map(|line| line.strip_prefix(b"host: "));
        host.map_or(&[], <[u8]>::trim_ascii_end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(prefix: &str, name: &str, value: &str) -> String {
        mapped_from("shop.example", 8080, prefix, name, value)
    }

    /// What the client that asked `host` sees of the value that an upstream at this port gave.
    fn mapped_from(host: &str, port: u16, prefix: &str, name: &str, value: &str) -> String {
        let addresses = [SocketAddr::from(([127, 0, 0, 1], port))];
        let sent = format!("GET /full/a HTTP/1.1\r\nhost: {host}\r\nx-host: no\r\n\r\n");
        let place = AskedPlace { prefix, sent: sent.as_bytes(), addresses: &addresses, own_host: None };
        let new = place.mapped(name.as_bytes(), value.as_bytes());
        new.map_or(value.to_owned(), |new| String::from_utf8(new).expect("text"))
    }

    #[test]
    fn a_server_on_port_80_does_not_name_its_port() {
        for (host, value, expected) in [
            ("shop.example:8080", "http://shop.example/full/images/", "/images/"),
            ("Shop.example:8080", "http://shop.example/images/", "/images/"),
            ("shop.example:8080", "http://127.0.0.1/full/images/", "/images/"),
            ("shop.example:8080", "http://shop.example", "/"),
            ("shop.example", "http://127.0.0.1/full/images/", "/images/"),
            ("shop.example", "http://shop.example:80/full/images/", "/images/"),
            ("shop.example", "http://shop.example/full/images/", "http://shop.example/images/"),
            ("shop.example:8080", "https://shop.example/images/", "https://shop.example/images/"),
            ("shop.example:8080", "http://shop.example:8081/images/", "http://shop.example:8081/images/"),
            ("shop.example:8080", "http://other.example/full/", "http://other.example/full/"),
        ] {
            assert_eq!(mapped_from(host, 80, "/full", "location", value), expected, "{host}");
        }
        let kept = "http://shop.example/images/";
        assert_eq!(mapped_from("shop.example:9000", 8080, "/full", "location", kept), kept);
    }

    #[test]
    fn redirects_lead_back_to_where_the_client_asked() {
        for (value, expected) in [
            ("/full/images/", "/images/"),
            ("/full", "/"),
            ("/full?a=/full/b", "/?a=/full/b"),
            ("/fuller/x", "/fuller/x"),
            ("//full/x", "//full/x"),
            ("images/", "images/"),
            ("http://shop.example:8080/full/images/", "/images/"),
            ("http://127.0.0.1:8080/full/images/?q#f", "/images/?q#f"),
            ("http://127.0.0.1:8080", "/"),
            ("http://shop.example:8080/other", "/other"),
            ("http://shop.example/full/images/", "http://shop.example/images/"),
            ("https://Shop.example/full/images/", "https://Shop.example/images/"),
            ("https://shop.example/images/", "https://shop.example/images/"),
            ("http://other.example:8080/full/x", "http://other.example:8080/full/x"),
            (
                "https://login.example/?back=http://shop.example/full/",
                "https://login.example/?back=http://shop.example/full/",
            ),
            ("mailto:someone", "mailto:someone"),
        ] {
            assert_eq!(mapped("/full", "Location", value), expected);
        }
        assert_eq!(mapped("/full", "content-location", "/full/a.html"), "/a.html");
        assert_eq!(mapped("/full", "x-location", "/full/a.html"), "/full/a.html");
        assert_eq!(mapped("", "location", "http://shop.example:8080/images/"), "/images/");
        assert_eq!(mapped("", "location", "/full/a"), "/full/a");
    }

    #[test]
    fn an_upstream_with_a_host_of_its_own_names_a_place_of_the_client() {
        let sent = b"GET /full/a HTTP/1.1\r\nhost: app.internal\r\n\r\n";
        let place = AskedPlace { prefix: "/full", sent, addresses: &[], own_host: Some("app.internal") };
        let mapped = |value: &str| {
            place.mapped(b"location", value.as_bytes()).map(|new| String::from_utf8(new).expect("text"))
        };
        assert_eq!(mapped("https://App.internal/full/b").as_deref(), Some("/b"));
        assert_eq!(mapped("http://app.internal:8080/c").as_deref(), Some("/c"));
        assert_eq!(mapped("https://other.example/full/b"), None);
    }
}
