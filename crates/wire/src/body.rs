//! How much of a body is left, by its framing (RFC 9112, 6).

/// What is left of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// A body of this length: the bytes that are still to come.
    Length(u64),
    /// Chunks, up to the empty one and the trailer after it.
    Chunked(Chunks),
    /// Everything until the connection ends.
    UntilClose,
}

/// The position of a stream within a sequence of chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// In the digits of a chunk's size, which is this number so far.
    Size(u64),
    /// Behind the digits, before the end of the line.
    Extension(u64),
    /// In the data of a chunk, of which this number of bytes is left.
    Data(u64),
    /// In the line's end after the data.
    DataEnd,
    /// In a line of the trailer, of which this number of characters has come.
    Trailer(u64),
    /// The body has ended, with its trailer.
    End,
}

impl Body {
    /// A chunked body, of which nothing has come.
    pub fn chunked() -> Body {
        Body::Chunked(Chunks::Size(0))
    }

    /// Whether the body is complete.
    pub fn has_ended(&self) -> bool {
        matches!(self, Body::Length(0) | Body::Chunked(Chunks::End))
    }

    /// Whether the next `count` bytes are all data of a chunk.
    pub(crate) fn is_within_data(&self, count: u64) -> bool {
        matches!(self, Body::Chunked(Chunks::Data(left)) if count <= *left)
    }

    /// Passes bytes of the stream; returns how many of them belong to the body.
    pub fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut used = 0;
        while used < bytes.len() && !self.has_ended() {
            let left = (bytes.len() - used) as u64;
            used += match self {
                Body::Chunked(chunks) if !matches!(chunks, Chunks::Data(_)) => {
                    match chunks.clone().after(bytes[used]) {
                        Some(next) => *chunks = next,
                        // These bytes are not chunks.
                        None => *self = Body::UntilClose,
                    }
                    1
                }
                _ => self.skip(left) as usize,
            };
        }
        used
    }

    /// Passes bytes that were not captured; returns how many of them belong to the body. Chunk framing among them cannot be
    /// followed.
    pub fn skip(&mut self, count: u64) -> u64 {
        match self {
            Body::Length(left) => {
                let used = count.min(*left);
                *left -= used;
                used
            }
            Body::Chunked(Chunks::Data(left)) if count <= *left => {
                *left -= count;
                if *left == 0 {
                    *self = Body::Chunked(Chunks::DataEnd);
                }
                count
            }
            Body::Chunked(Chunks::Data(left)) => {
                let used = *left;
                *self = Body::Chunked(Chunks::DataEnd);
                used
            }
            Body::Chunked(Chunks::End) => 0,
            Body::Chunked(_) => {
                *self = Body::UntilClose;
                count
            }
            Body::UntilClose => count,
        }
    }
}

impl Chunks {
    /// Where the stream stands after this byte of framing; `None` if the byte is not valid here.
    fn after(self, byte: u8) -> Option<Chunks> {
        Some(match (self, byte) {
            (Chunks::Size(size) | Chunks::Extension(size), b'\n') if size > 0 => Chunks::Data(size),
            (Chunks::Size(_) | Chunks::Extension(_), b'\n') => Chunks::Trailer(0),
            (Chunks::Size(size), _) if byte.is_ascii_hexdigit() => {
                let digit = char::from(byte).to_digit(16)?;
                Chunks::Size(size.checked_mul(16)?.checked_add(digit.into())?)
            }
            (Chunks::Size(size), b'\r' | b';' | b' ' | b'\t') | (Chunks::Extension(size), _) => {
                Chunks::Extension(size)
            }
            (Chunks::DataEnd, b'\r') => Chunks::DataEnd,
            (Chunks::DataEnd, b'\n') => Chunks::Size(0),
            (Chunks::Trailer(0), b'\n') => Chunks::End,
            (Chunks::Trailer(_), b'\n') => Chunks::Trailer(0),
            (Chunks::Trailer(length), b'\r') => Chunks::Trailer(length),
            (Chunks::Trailer(length), _) => Chunks::Trailer(length.saturating_add(1)),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_each_framing_is_found_however_the_bytes_are_cut() {
        let chunked = b"5\r\nhello\r\n1a;name=value\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nX: y\r\n\r\n";
        for (body, bytes) in
            [(Body::Length(5), &b"hello"[..]), (Body::Length(0), b""), (Body::chunked(), chunked)]
        {
            for piece in 1..=bytes.len().max(1) {
                let mut left = body.clone();
                for part in bytes.chunks(piece) {
                    assert!(!left.has_ended());
                    assert_eq!(left.pass(part), part.len());
                }
                assert!(left.has_ended(), "{left:?}");
                assert_eq!(left.pass(b"GET / HTTP/1.1\r\n"), 0, "the next message does not belong to it");
            }
        }
    }

    #[test]
    fn bytes_that_nobody_sees_pass_where_they_are_data() {
        let mut body = Body::chunked();
        body.pass(b"100\r\n");
        assert_eq!(body.skip(256), 256);
        assert_eq!(body.pass(b"\r\n0\r\n\r\nmore"), 7);
        assert!(body.has_ended());
        let mut length = Body::Length(10);
        assert_eq!((length.skip(20), length.has_ended()), (10, true));
        let mut blind = Body::chunked();
        blind.skip(100);
        assert_eq!(blind, Body::UntilClose);
    }

    #[test]
    fn what_is_no_chunk_goes_on_until_the_connection_ends() {
        for bytes in ["x\r\n", "fffffffffffffffff\r\n", "2\r\nabX"] {
            let mut body = Body::chunked();
            assert_eq!(body.pass(bytes.as_bytes()), bytes.len());
            assert_eq!((body.pass(b"anything"), body.has_ended()), (8, false));
        }
    }
}
