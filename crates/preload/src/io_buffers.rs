//! Memory of the server, into which it reads or out of which it writes.

#![expect(unsafe_code, reason = "the server passes pointers")]

use libc::{c_void, iovec};
use std::slice;

/// Pieces of memory, in order.
#[derive(Debug)]
pub struct IoBuffers<'a>(&'a [iovec]);

impl<'a> IoBuffers<'a> {
    /// # Safety
    /// As long as this value lives, each piece may be read and, for a read of the server, written; or its bytes are never
    /// accessed.
    pub unsafe fn new(pieces: &'a [iovec]) -> Self {
        IoBuffers(pieces)
    }

    /// One piece; see [`IoBuffers::new`].
    pub fn piece(start: *const c_void, length: usize) -> [iovec; 1] {
        [iovec { iov_base: start.cast_mut(), iov_len: length }]
    }

    /// `instead`, followed by these pieces without their first `instead.len()` bytes.
    pub fn behind(&self, instead: &'a [u8]) -> Vec<iovec> {
        let mut skipped = instead.len();
        let rest = self.0.iter().map(|piece| {
            let from = skipped.min(piece.iov_len);
            skipped -= from;
            iovec { iov_base: piece.iov_base.wrapping_byte_add(from), iov_len: piece.iov_len - from }
        });
        IoBuffers::piece(instead.as_ptr().cast(), instead.len()).into_iter().chain(rest).collect()
    }

    /// The number of bytes in all pieces.
    pub fn room(&self) -> usize {
        self.0.iter().fold(0, |sum, piece| sum.saturating_add(piece.iov_len))
    }

    /// Writes these parts one after the other, as far as there is room; returns the number of bytes written.
    pub fn put(&self, parts: &[&[u8]]) -> usize {
        let mut bytes = parts.iter().copied().flatten();
        let mut count = 0;
        for piece in self.0 {
            for at in 0..piece.iov_len {
                let Some(byte) = bytes.next() else { return count };
                // SAFETY: the byte lies inside a piece that may be written to.
                unsafe { piece.iov_base.cast::<u8>().add(at).write(*byte) };
                count += 1;
            }
        }
        count
    }

    /// The first `count` bytes, which must have been written.
    pub fn first(&self, count: usize) -> impl Iterator<Item = &'a [u8]> {
        let mut left = count;
        self.0.iter().filter(|piece| piece.iov_len > 0).map_while(move |piece| {
            let length = piece.iov_len.min(left);
            left -= length;
            // SAFETY: the bytes lie inside a piece that may be read, and the kernel has written or read all of them.
            (length > 0).then(|| unsafe { slice::from_raw_parts(piece.iov_base.cast::<u8>(), length) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_go_into_pieces_and_come_out_again() {
        let (mut one, mut two) = ([0_u8; 3], [0_u8; 4]);
        let pieces = [
            IoBuffers::piece(one.as_mut_ptr().cast(), one.len()),
            IoBuffers::piece(two.as_mut_ptr().cast(), two.len()),
        ]
        .concat();
        // SAFETY: both arrays outlive `places`, and are not used otherwise meanwhile.
        let places = unsafe { IoBuffers::new(&pieces) };
        assert_eq!((places.room(), places.put(&[b"ab", b"", b"cdef"])), (7, 6));
        assert_eq!(places.first(5).collect::<Vec<_>>(), [&b"abc"[..], b"de"]);
        assert_eq!(places.put(&[b"longer than that"]), 7);
        assert_eq!((one, two), (*b"lon", *b"ger "));
    }
}
