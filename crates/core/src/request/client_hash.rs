//! The keyed hash of a client, by which its level is chosen.
//!
//! The hash is a SipHash-1-3 of the client's identity and of nothing else, so it is the same on every thread and, with the same
//! seed, on every instance and after a restart. The key keeps clients from choosing their hash.

use crate::actuator::service_level::FRACTION_ONE;
use crate::promises::Identity;
use crate::request::RequestView;
use core::hash::Hasher;
use core::net::{IpAddr, Ipv6Addr};
use siphasher::sip::SipHasher13;

/// The hash of the client that sent a request, 56 bits.
pub(super) fn client_hash(identity: &Identity, request: &impl RequestView, key: (u64, u64)) -> u64 {
    let named = match identity {
        Identity::Address => None,
        Identity::Header(name) => request.header(name),
        Identity::Cookie(name) => request.cookie(name),
    };
    let Some(text) = named else { return address_hash(request.client(), key) };
    hash(key, |hasher| hasher.write(text.as_bytes()))
}

/// A client as it is known by its address. An IPv6 client is the first 64 bits of its address, since a household has that many
/// addresses; the other bits are zero.
#[inline]
pub fn client_address(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// The hash of a client that is known by its address.
pub(super) fn address_hash(client: IpAddr, key: (u64, u64)) -> u64 {
    hash(key, |hasher| match client_address(client) {
        IpAddr::V4(address) => hasher.write_u32(address.to_bits()),
        IpAddr::V6(address) => hasher.write_u64((address.to_bits() >> 64) as u64),
    })
}

#[inline]
fn hash(key: (u64, u64), write: impl FnOnce(&mut SipHasher13)) -> u64 {
    let mut hasher = SipHasher13::new_with_keys(key.0, key.1);
    write(&mut hasher);
    hasher.finish() & (FRACTION_ONE - 1)
}
