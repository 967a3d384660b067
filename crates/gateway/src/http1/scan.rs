//! Where a head ends.
//!
//! Every line must end in CR LF. A bare LF that one parser takes for a line's end and another parser for a part of a value
//! splits one request into two, and so does a bare CR. Both are refused here, before anything is tokenized. The scan is
//! incremental: each byte is looked at once, however slowly the bytes arrive.

use super::Refusal;

/// How far a head has been scanned.
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadScan {
    scanned: usize,
    line_start: usize,
}

impl HeadScan {
    /// Scans the bytes that are new since the last call. Returns `Some(length)` once the empty line has come.
    ///
    /// A head longer than `limit` is refused with 431, or with 414 if its first line alone is longer.
    pub fn advance(&mut self, bytes: &[u8], limit: usize) -> Result<Option<usize>, Refusal> {
        let seen = &bytes[..bytes.len().min(limit)];
        while let Some(offset) = memchr::memchr2(b'\r', b'\n', &seen[self.scanned..]) {
            let at = self.scanned + offset;
            if seen[at] == b'\n' {
                return Err(Refusal::bad("a line ends in LF without CR"));
            }
            match seen.get(at + 1) {
                None => {
                    self.scanned = at;
                    break;
                }
                Some(b'\n') => {
                    self.scanned = at + 2;
                    if at == self.line_start {
                        return Ok(Some(at + 2));
                    }
                    self.line_start = at + 2;
                }
                Some(_) => return Err(Refusal::bad("CR without LF in the head")),
            }
        }
        if self.scanned < seen.len() && seen[self.scanned] != b'\r' {
            self.scanned = seen.len();
        }
        if bytes.len() >= limit {
            return Err(match self.line_start {
                0 => Refusal::with(414, "the request target is too long"),
                _ => Refusal::with(431, "the request head is too large"),
            });
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Result<Option<usize>, Refusal> {
        HeadScan::default().advance(bytes, 1000)
    }

    #[test]
    fn finds_the_empty_line() {
        assert_eq!(whole(b"a\r\nb\r\n\r\nrest"), Ok(Some(8)));
        assert_eq!(whole(b"a\r\nb\r\n\r"), Ok(None));
        assert_eq!(whole(b""), Ok(None));
    }

    #[test]
    fn refuses_bare_line_ends() {
        assert!(whole(b"a\nb\r\n\r\n").is_err());
        assert!(whole(b"a\rb\r\n\r\n").is_err());
        assert!(whole(b"a\r\n\n").is_err());
        assert!(whole(b"a\r\r\n").is_err());
    }

    #[test]
    fn byte_by_byte_gives_the_same() {
        for text in [&b"GET / HTTP/1.1\r\nHost: a\r\n\r\nx"[..], b"a\r\n\n", b"a\rb", b"\r\n"] {
            let mut scan = HeadScan::default();
            let mut result = Ok(None);
            for end in 0..=text.len() {
                result = scan.advance(&text[..end], 1000);
                if !matches!(result, Ok(None)) {
                    break;
                }
            }
            assert_eq!(result, whole(text), "{text:?}");
        }
    }

    #[test]
    fn too_long_is_431() {
        let mut scan = HeadScan::default();
        assert_eq!(scan.advance(&[b'a'; 10], 20), Ok(None));
        assert_eq!(scan.advance(&[b'a'; 20], 20).map_err(|r| r.status), Err(414));
        assert_eq!(HeadScan::default().advance(b"a\r\nbbbbbb", 8).map_err(|r| r.status), Err(431));
    }
}
