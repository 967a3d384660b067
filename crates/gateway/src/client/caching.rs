//! What a lighter level's response says to the caches between the gateway and a reader.
//!
//! All levels of a page have one URL. A cache that keeps a lighter copy gives it to everybody who asks for the page, for as
//! long as the server lets the page be kept. So a response of a level below the highest says
//! `Cache-Control: private, no-cache`, or `no-store` where the server says that, in place of all fields by which caches
//! decide for themselves.
//!
//! `Last-Modified` is one of them. Besides, a lighter copy is often younger than its page: a client that asked by the date of
//! its copy would later get the answer that the page has not changed. `ETag` stays. It distinguishes copies, and a client that
//! has the lighter one need not be sent it again while the overload lasts.
//!
//! `Accept-Ranges` becomes `none`: a client that resumed its download would join the beginning of one copy to the end of the
//! other.

use crate::http1::field::list;
use crate::http1::rules::HeaderRules;
use crate::http1::write::write_field;

/// The field that says whether a download may be resumed.
const RANGES: &[u8] = b"accept-ranges";

/// The fields besides `Cache-Control` and its relatives (RFC 9213) by which caches keep a response.
const FOR_CACHES: [&[u8]; 4] = [b"expires", b"last-modified", b"surrogate-control", b"x-accel-expires"];

/// Which fields of a response caches may see. The default leaves them as they are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caching {
    is_lighter: bool,
    /// Whether the response has offered ranges.
    had_ranges: bool,
    /// Whether the response itself forbids every cache to keep it.
    no_store: bool,
}

impl Caching {
    /// The rule for a response; `is_lighter`: a level below the highest answers.
    pub(crate) fn of(is_lighter: bool) -> Self {
        Caching { is_lighter, ..Caching::default() }
    }

    /// Whether a field goes on to the client.
    pub(crate) fn passes(&mut self, name: &[u8], value: &[u8]) -> bool {
        const CONTROL: &[u8] = b"cache-control";
        if !self.is_lighter {
            return true;
        }
        let ending = &name[name.len().saturating_sub(CONTROL.len())..];
        if ending.eq_ignore_ascii_case(CONTROL) {
            self.no_store |= list(value).any(|member| member.eq_ignore_ascii_case(b"no-store"));
            return false;
        }
        if name.eq_ignore_ascii_case(RANGES) {
            self.had_ranges = true;
            return false;
        }
        !FOR_CACHES.iter().any(|own| own.eq_ignore_ascii_case(name))
    }

    /// Appends those of `lines`, each with its line's end, that the rules keep and that go on to the client.
    pub(crate) fn write_kept(&mut self, rules: &HeaderRules, lines: &str, out: &mut Vec<u8>) {
        if !self.is_lighter {
            return rules.write_kept(lines, out);
        }
        for line in lines.split_inclusive("\r\n") {
            let (name, value) = line.split_once(':').unwrap_or_default();
            if !rules.drops(name.as_bytes()) && self.passes(name.as_bytes(), value.as_bytes()) {
                out.extend_from_slice(line.as_bytes());
            }
        }
    }

    /// Appends the lines that the rules add, and what is said to caches in place of what did not pass.
    pub(crate) fn finish(mut self, rules: &HeaderRules, out: &mut Vec<u8>) {
        if !self.is_lighter {
            return out.extend_from_slice(rules.lines());
        }
        let added = std::str::from_utf8(rules.lines()).unwrap_or_default();
        self.write_kept(&HeaderRules::default(), added, out);
        let caching: &[u8] = if self.no_store { b"no-store" } else { b"private, no-cache" };
        write_field(out, b"cache-control", caching);
        if self.had_ranges {
            write_field(out, RANGES, b"none");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(is_lighter: bool, lines: &str, rules: &HeaderRules) -> String {
        let (mut caching, mut out) = (Caching::of(is_lighter), Vec::new());
        caching.write_kept(rules, lines, &mut out);
        caching.finish(rules, &mut out);
        String::from_utf8(out).expect("text")
    }

    const PUBLIC: &str = "ETag: \"a\"\r\nCache-Control: public, max-age=9\r\nCDN-Cache-Control: max-age=9\r\n\
                          Expires: Fri, 27 Nov 2026 09:00:00 GMT\r\nLast-Modified: Fri, 27 Nov 2026 08:00:00 GMT\r\n\
                          Surrogate-Control: max-age=9\r\nX-Accel-Expires: 9\r\nVary: accept\r\n";

    #[test]
    fn a_lighter_copy_is_nothing_for_shared_caches() {
        let rules = HeaderRules::default();
        let expected = "ETag: \"a\"\r\nVary: accept\r\ncache-control: private, no-cache\r\n";
        assert_eq!(written(true, PUBLIC, &rules), expected);
        assert_eq!(written(false, PUBLIC, &rules), PUBLIC, "the highest level's stays as it is");
        let secret = "Cache-Control: private, No-Store\r\n";
        assert_eq!(written(true, secret, &rules), "cache-control: no-store\r\n");
    }

    #[test]
    fn no_rule_makes_it_one() {
        let added = [("cache-control", "max-age=60"), ("x-a", "b")];
        let added = added.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let rules = HeaderRules::new(vec!["cache-control".to_owned(), "etag".to_owned()], added);
        let lines = "etag: \"a\"\r\ncache-control: no-store\r\n";
        assert_eq!(written(true, lines, &rules), "x-a: b\r\ncache-control: private, no-cache\r\n");
        assert_eq!(written(false, lines, &rules), "cache-control: max-age=60\r\nx-a: b\r\n");
    }
}
