//! Which of many sites a host belongs to: names are looked up, patterns are tried.
//!
//! A request belongs to the first site that has its host. Most sites have plain names, and to try hundreds of them in turn
//! would cost more than the rest of a decision. So plain names are in a sorted list, each with its first site. Sites with
//! a pattern, or for every host, are tried in their order, and only those before the site that the name gave. Hosts ignore
//! case: names and patterns are kept in lower case, which is how nearly all clients send them. A host with capitals is
//! copied first.

use crate::promises::Site;
use alloc::{string::String, vec::Vec};

/// The hosts of all sites.
#[derive(Default)]
pub(crate) struct Hosts {
    /// Plain names in lower case, in order, with the first site of each.
    names: Vec<(String, usize)>,
    /// The sites that have a pattern or every host.
    open: Vec<usize>,
}

/// The longest name that DNS has.
const LONGEST: usize = 255;

impl Hosts {
    pub(crate) fn new(sites: &[Site]) -> Self {
        let mut hosts = Hosts::default();
        for (number, site) in sites.iter().enumerate() {
            if site.hosts.is_empty() || site.hosts.iter().any(|host| host.contains('*')) {
                hosts.open.push(number);
            }
            let plain = site.hosts.iter().filter(|host| !host.contains('*'));
            hosts.names.extend(plain.map(|host| (host.to_ascii_lowercase(), number)));
        }
        // The sort is stable, so among sites with one name the first stays first.
        hosts.names.sort_by(|a, b| a.0.cmp(&b.0));
        hosts.names.dedup_by(|later, first| later.0 == first.0);
        hosts
    }

    /// The first site that has `host`. `has(site, host)` answers for sites with patterns, for a host in lower case.
    pub(crate) fn site(&self, host: &str, has: impl Fn(usize, &str) -> bool) -> Option<usize> {
        if has_capitals(host) {
            return self.site_of_capitals(host, has);
        }
        let named = self.names.binary_search_by(|(name, _)| name.as_str().cmp(host));
        let named = named.ok().map(|index| self.names[index].1);
        let before = named.unwrap_or(usize::MAX);
        let open = self.open.iter().take_while(|site| **site < before).find(|site| has(**site, host));
        open.copied().or(named)
    }

    #[cold]
    fn site_of_capitals(&self, host: &str, has: impl Fn(usize, &str) -> bool) -> Option<usize> {
        let mut copy = [0; LONGEST];
        let Some(copy) = copy.get_mut(..host.len()) else {
            // A longer host is no name, but sites for every host have it all the same.
            return self.open.iter().copied().find(|site| has(*site, host));
        };
        copy.copy_from_slice(host.as_bytes());
        copy.make_ascii_lowercase();
        self.site(core::str::from_utf8(copy).ok()?, has)
    }
}

/// Whether a host has capital letters. Eight bytes are tested at a time, because byte by byte this takes a tenth of a
/// decision. The last eight may overlap those before them.
fn has_capitals(host: &str) -> bool {
    let bytes = host.as_bytes();
    let Some(last) = bytes.last_chunk::<8>() else {
        return bytes.iter().any(u8::is_ascii_uppercase);
    };
    let words = bytes.as_chunks::<8>().0.iter().chain([last]);
    words.map(|word| u64::from_le_bytes(*word)).any(word_has_capitals)
}

/// The highest bit of each byte's sum says whether the byte is at least `A`, and whether it is beyond `Z`; bytes that
/// are not ASCII are no capitals.
fn word_has_capitals(word: u64) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let low = word & !HIGH;
    let from_a = low + (0x80 - b'A' as u64) * EACH;
    let beyond_z = low + (0x80 - b'Z' as u64 - 1) * EACH;
    (from_a & !beyond_z & !word & HIGH) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_are_seen_wherever_they_stand() {
        for byte in 0..=127_u8 {
            for index in 0..11 {
                let mut host = *b"a-z.[@`{09~";
                host[index] = byte;
                let host = core::str::from_utf8(&host).expect("ASCII");
                assert_eq!(has_capitals(host), byte.is_ascii_uppercase(), "{host}");
            }
        }
        assert!(has_capitals("exampLe") && !has_capitals("example") && !has_capitals(""));
        assert!(!has_capitals("\u{c1}\u{da}\u{c1}\u{da}\u{c1}\u{da}"), "not ASCII");
    }
}
