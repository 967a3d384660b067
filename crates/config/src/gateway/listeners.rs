//! Addresses to listen on.

use super::file::GatewayKeys;
use crate::diagnostic::{Findings, refuse};
use crate::syntax::Located;
use std::net::SocketAddr;

/// Refuses two listeners on one address: the kernel would spread connections over both (`SO_REUSEPORT`), so that
/// every other request of a client would go to the wrong one.
pub(super) fn check(keys: &GatewayKeys, findings: &mut Findings) {
    let mut known: Vec<Located<SocketAddr>> = Vec::new();
    let listen = keys.listen.iter().flat_map(|listen| listen.value.0.iter().cloned());
    let admin = keys.admin.value.0.map(|value| Located::sound(value, keys.admin.span.clone()));
    for address in listen.chain(admin) {
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

fn overlap(a: SocketAddr, b: SocketAddr) -> bool {
    // Port 0 is a fresh port each time.
    let same_family = a.is_ipv4() == b.is_ipv4();
    let covers = a.ip() == b.ip() || same_family && (a.ip().is_unspecified() || b.ip().is_unspecified());
    a.port() != 0 && a.port() == b.port() && covers
}
