//! The head of an answer as the client must see it: a level's prefix is taken out of each field that names a place on the site.
//!
//! The length of the head does not change: spaces before a field's value, which mean nothing there (RFC 9110 5.5), stand for
//! the bytes taken out. So the server, which learns how many bytes of its answer were sent, goes on at the right byte.

use crate::connection::LONGEST_HEAD;
use crate::io_buffers::IoBuffers;
use plimsoll_core::request::{Authority, Prefixed};

/// The host of a request whose path got a level's prefix, and that prefix.
#[derive(Debug)]
pub(crate) struct AskedSite {
    pub(crate) host: String,
    pub(crate) prefix: &'static str,
}

impl AskedSite {
    /// The head at the beginning of these bytes as the client must see it; `None` if it does not change.
    pub(crate) fn head(&self, places: &IoBuffers<'_>) -> Option<Vec<u8>> {
        const END: &[u8] = b"\r\n\r\n";
        let mut head: Vec<u8> = places.first(LONGEST_HEAD).flatten().copied().collect();
        let end = head.windows(END.len()).position(|bytes| bytes == END)?;
        head.truncate(end + END.len());
        self.map(&mut head).then_some(head)
    }

    /// Changes the head; returns whether anything changed.
    fn map(&self, head: &mut [u8]) -> bool {
        let asked = Prefixed { root: b"", prefix: self.prefix.as_bytes() };
        let mut has_changed = false;
        for line in head.split_mut(|byte| *byte == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = line.split_at_mut(colon);
            let end = value.trim_ascii_end().len();
            let start = 1 + value[1..end].len() - value[1..end].trim_ascii_start().len();
            let value = &mut value[start..end];
            let whom = |_: &[u8], authority: &[u8]| Authority::of(authority, self.host.as_bytes());
            if let Some(cut) = asked.cut(name, value, whom) {
                let gone = cut.part.len() - cut.instead.len();
                value.copy_within(..cut.part.start, gone);
                value[cut.part.start + gone..cut.part.end].copy_from_slice(cut.instead);
                value[..gone].fill(b' ');
                has_changed = true;
            }
        }
        has_changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(head: &str) -> Option<String> {
        let site = AskedSite { host: "here:8080".to_owned(), prefix: "/light" };
        let pieces = [head.as_bytes(), b"/light/ of the body"]
            .map(|bytes| IoBuffers::piece(bytes.as_ptr().cast(), bytes.len()));
        // SAFETY: the texts outlive `places`, and are not written to.
        #[expect(unsafe_code, reason = "memory of the server")]
        let places = unsafe { IoBuffers::new(pieces.as_flattened()) };
        let seen = site.head(&places)?;
        assert_eq!(seen.len(), head.len());
        Some(String::from_utf8(seen).expect("text"))
    }

    #[test]
    fn a_prefix_becomes_spaces_before_the_value() {
        let head = "HTTP/1.1 301 /light/\r\nLocation: http://here:80/light/a\r\nSet-Cookie:a=b; Path=/light\r\nX: /light/\r\n\r\n";
        let expected = "HTTP/1.1 301 /light/\r\nLocation:       http://here:80/a\r\nSet-Cookie:     a=b; Path=/\r\nX: /light/\r\n\r\n";
        assert_eq!(seen(head).as_deref(), Some(expected));
        for head in [
            "HTTP/1.1 200 OK\r\n:\r\nLocation:\r\nLocation: /a\r\n\r\n",
            "HTTP/1.1 302 Found\r\nLocation: /light/\r\n",
        ] {
            assert_eq!(seen(head), None);
        }
    }
}
