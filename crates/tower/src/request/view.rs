//! A request's head as the classification sees it.

use http::header::{COOKIE, HOST, HeaderValue};
use http::request::Parts;
use plimsoll_core::request::{RequestView, host_length, normal_path};
use std::borrow::Cow;
use std::net::IpAddr;

/// A request's head with the address of its client: the [`RequestView`] of `http::request::Parts`.
///
/// Rules see the path in its [normal form](normal_path), so that they match the resource that will be served, however the path
/// is spelled. An announced cost is believed: promise a `cost_header` only where your own proxy writes it.
#[derive(Debug)]
pub struct HeadView<'h> {
    head: &'h Parts,
    path: Cow<'h, str>,
    client: IpAddr,
}

impl<'h> HeadView<'h> {
    /// The view of a head.
    pub fn new(head: &'h Parts, client: IpAddr) -> Self {
        let path = head.uri.path();
        HeadView { head, path: normal_path(if path.is_empty() { "/" } else { path }), client }
    }
}

impl RequestView for HeadView<'_> {
    fn method(&self) -> &str {
        self.head.method.as_str()
    }
    fn host(&self) -> &str {
        let in_target = self.head.uri.authority().map(|authority| authority.as_str());
        let in_field = || text(self.head.headers.get(HOST));
        host_of(in_target.or_else(in_field).unwrap_or_default())
    }
    fn path(&self) -> &str {
        &self.path
    }
    fn query(&self) -> &str {
        self.head.uri.query().unwrap_or_default()
    }
    fn header(&self, name: &str) -> Option<&str> {
        text(self.head.headers.get(name))
    }
    /// Clients of HTTP/2 may send each cookie in a separate field.
    fn cookie(&self, name: &str) -> Option<&str> {
        let texts = self.head.headers.get_all(COOKIE).iter().filter_map(|value| text(Some(value)));
        let mut pairs = texts.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
    }
    fn client(&self) -> IpAddr {
        self.client
    }
}

fn text(value: Option<&HeaderValue>) -> Option<&str> {
    value.and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
}

/// The host of an authority: the part between the user's name and the port.
fn host_of(authority: &str) -> &str {
    let host = authority.rsplit('@').next().unwrap_or(authority);
    &host[..host_length(host.as_bytes())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use std::net::Ipv4Addr;

    fn head(uri: &str, headers: &[(&str, &str)]) -> Parts {
        let request =
            headers.iter().fold(Request::get(uri), |request, (name, value)| request.header(*name, *value));
        request.body(()).expect("a request").into_parts().0
    }

    fn view(head: &Parts) -> HeadView<'_> {
        HeadView::new(head, Ipv4Addr::LOCALHOST.into())
    }

    #[test]
    fn the_host_is_that_of_the_target_or_of_the_field_without_port() {
        for (uri, host, expected) in [
            ("/", "Shop.example:8080", "Shop.example"),
            ("/", "[2001:db8::1]:80", "[2001:db8::1]"),
            ("/", "[2001:db8::1]", "[2001:db8::1]"),
            ("/", "shop.example.", "shop.example"),
            ("http://first.example:1/", "second.example", "first.example"),
            ("http://user:word@first.example:1/", "second.example", "first.example"),
            ("http://user@[::1]:1/", "second.example", "[::1]"),
        ] {
            assert_eq!(view(&head(uri, &[("host", host)])).host(), expected, "{uri} {host}");
        }
        assert_eq!(view(&head("/", &[])).host(), "");
    }

    #[test]
    fn rules_see_the_path_that_is_served_and_each_cookie() {
        let head =
            head("/%62uy//x?a=b", &[("cookie", "a=1; b=2"), ("cookie", "session=xyz"), ("X-Plan", "gold")]);
        let view = view(&head);
        assert_eq!((view.path(), view.query()), ("/buy/x", "a=b"));
        assert_eq!(["b", "session", "c"].map(|name| view.cookie(name)), [Some("2"), Some("xyz"), None]);
        assert_eq!((view.header("x-plan"), view.header("none")), (Some("gold"), None));
    }
}
