//! Overload protection of four products, written as in their configurations: directives behind the product's name, separated by
//! `;`. Each product has a file that says what it does and names the source, and implements it as [`Rules`].

mod directives;
mod envoy;
mod haproxy;
mod mod_qos;
mod nginx;

pub(super) use directives::Directives;

use super::rules::{Asked, Gone, MakeRules, Rules, Ruling};

/// The rules of the product that a text names, with its directives; `None` if the text names none.
///
/// # Errors
/// A directive that is not understood; the message says how it is written.
pub(super) fn parse(text: &str) -> Option<Result<MakeRules, String>> {
    let (name, rest) = text.trim().split_once(':')?;
    let directives = Directives::new(rest);
    Some(match name.trim() {
        "haproxy" => haproxy::read(directives),
        "nginx" => nginx::read(directives),
        "envoy" => envoy::read(directives),
        "mod_qos" => mod_qos::read(directives),
        _ => return None,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::front::tests::truth;
    use crate::request::Request;
    use plimsoll_core::time::Duration;
    use std::net::{IpAddr, Ipv4Addr};

    pub(super) fn request(path: &str, client: u8) -> Request {
        let client = IpAddr::V4(Ipv4Addr::new(192, 0, 2, client));
        Request { path: path.to_owned(), client, ..Request::default() }
    }

    pub(super) fn asked(request: &Request, priority: u8) -> Asked<'_> {
        Asked { request, priority, service: Duration::ZERO, waiting: 0 }
    }

    pub(super) fn rules(text: &str) -> Box<dyn Rules> {
        let made = parse(text).unwrap_or_else(|| panic!("{text}: no product"));
        made.unwrap_or_else(|wrong| panic!("{text}: {wrong}"))(&truth(), 7)
    }

    pub(super) fn wrong(text: &str) -> String {
        parse(text).unwrap_or_else(|| panic!("{text}: no product")).err().unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn other_names_are_no_products() {
        assert!(parse("concurrency:64").is_none() && parse("nginx").is_none());
    }
}
