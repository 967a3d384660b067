//! One direction of a connection, put in order: bytes that were sent twice count once, bytes that come early wait, and bytes
//! that do not come are reported as missing. The waiting bytes are counted, so that a caller with many directions can bound
//! them.

use std::collections::BTreeMap;

/// If more than this number of segments wait for an earlier one, the capture has lost that one.
const WAITING: usize = 64;
/// TCP never has more bytes under way than this (RFC 7323, 2.3).
const LARGEST_WINDOW: u32 = 1 << 30;

/// The approximate memory of a waiting segment besides its bytes.
const A_SEGMENT: usize = 64;

/// The bytes of one direction, in order.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The sequence number of the next byte; `None` before the first.
    next: Option<u32>,
    /// Segments that came early, by sequence number: the captured bytes, and the length of the segment.
    early: BTreeMap<u32, (Vec<u8>, usize)>,
    /// The number of bytes that came early and are kept.
    kept: usize,
}

/// A part of a direction.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    Bytes(&'a [u8]),
    /// This number of bytes was not captured.
    Unseen(usize),
}

impl Flow {
    /// Takes a segment of `length` bytes, of which `bytes` were captured; `first` is the sequence number of the first byte. If
    /// the beginning of a direction was not seen, it begins with the first segment that comes.
    pub(crate) fn take(&mut self, first: u32, bytes: &[u8], length: usize, mut part: impl FnMut(Part<'_>)) {
        if length == 0 {
            return;
        }
        let next = *self.next.get_or_insert(first);
        let ahead = first.wrapping_sub(next).cast_signed();
        if ahead > 0 {
            self.early.entry(first).or_insert_with(|| {
                self.kept += bytes.len();
                (bytes.to_vec(), length)
            });
            if self.early.len() <= WAITING {
                return;
            }
            // Too many segments wait, so the missing bytes were not captured.
            let nearest = self.early.keys().map(|early| early.wrapping_sub(next)).min().unwrap_or(0);
            part(Part::Unseen(nearest as usize));
            self.next = Some(next.wrapping_add(nearest));
        } else {
            self.pass(ahead.unsigned_abs() as usize, bytes, length, &mut part);
        }
        self.follow(&mut part);
    }

    /// The receiver has acknowledged everything before this number: the capture has lost the bytes before it that have not
    /// come. One missing number may be that of the direction's end (FIN), which is no loss.
    pub(crate) fn acknowledge(&mut self, number: u32, mut part: impl FnMut(Part<'_>)) {
        while let Some(next) = self.next {
            let missing = number.wrapping_sub(next);
            if !(2..=LARGEST_WINDOW).contains(&missing) {
                return;
            }
            let nearest = self.early.keys().map(|early| early.wrapping_sub(next)).min().unwrap_or(missing);
            let missing = missing.min(nearest);
            part(Part::Unseen(missing as usize));
            self.next = Some(next.wrapping_add(missing));
            self.follow(&mut part);
        }
    }

    /// The direction opens; this is the number of its first byte.
    pub(crate) fn open(&mut self, next: u32) {
        self.next.get_or_insert(next);
    }

    /// The memory for segments that came early.
    pub(crate) fn held(&self) -> usize {
        self.kept + self.early.len() * A_SEGMENT
    }

    /// The number of bytes that came early and are kept.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.kept
    }

    /// Drops the bytes that came early; returns how many there were. When their turn comes, they are reported as unseen.
    pub(crate) fn forget_early(&mut self) -> usize {
        self.early.values_mut().for_each(|(bytes, _)| *bytes = Vec::new());
        std::mem::take(&mut self.kept)
    }

    fn pass(&mut self, known: usize, bytes: &[u8], length: usize, part: &mut impl FnMut(Part<'_>)) {
        let Some(new) = length.checked_sub(known).filter(|new| *new > 0) else { return };
        let seen = bytes.get(known..).unwrap_or_default();
        if !seen.is_empty() {
            part(Part::Bytes(seen));
        }
        if new > seen.len() {
            part(Part::Unseen(new - seen.len()));
        }
        self.next = self.next.map(|next| next.wrapping_add(new as u32));
    }

    /// Passes the segments that came early and are next in order now.
    fn follow(&mut self, part: &mut impl FnMut(Part<'_>)) {
        while let Some(next) = self.next {
            let due = self.early.keys().copied().find(|early| early.wrapping_sub(next).cast_signed() <= 0);
            let Some((first, (bytes, length))) = due.and_then(|due| self.early.remove_entry(&due)) else {
                return;
            };
            self.kept -= bytes.len();
            self.pass(next.wrapping_sub(first) as usize, &bytes, length, part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads segments at these places of the alphabet; returns the letters in order, and the number of unseen bytes.
    fn read(base: u32, segments: &[(u32, usize)]) -> (String, usize) {
        let alphabet: Vec<u8> = (b'a'..=b'z').collect();
        let (mut flow, mut text, mut unseen) = (Flow::default(), Vec::new(), 0);
        flow.open(base);
        for (at, length) in segments {
            let bytes = &alphabet[*at as usize..][..*length];
            flow.take(base.wrapping_add(*at), bytes, *length, |part| match part {
                Part::Bytes(bytes) => text.extend_from_slice(bytes),
                Part::Unseen(count) => unseen += count,
            });
        }
        (String::from_utf8(text).unwrap(), unseen)
    }

    #[test]
    fn bytes_come_once_and_in_order() {
        for base in [0, u32::MAX - 3] {
            assert_eq!(read(base, &[(0, 3), (3, 3)]), ("abcdef".to_owned(), 0));
            assert_eq!(read(base, &[(0, 3), (0, 3), (3, 3), (1, 2)]).0, "abcdef", "sent again");
            assert_eq!(read(base, &[(0, 3), (1, 5)]).0, "abcdef", "a part was sent again");
            assert_eq!(read(base, &[(6, 2), (3, 3), (6, 2), (0, 3)]).0, "abcdefgh", "out of order");
        }
    }

    #[test]
    fn what_was_not_captured_is_passed_over_when_much_has_come_behind_it() {
        let (mut flow, mut seen, mut unseen) = (Flow::default(), 0, 0);
        flow.open(0);
        for number in 1..=100_u32 {
            flow.take(number * 10, &[0; 10], 10, |part| match part {
                Part::Bytes(bytes) => seen += bytes.len(),
                Part::Unseen(count) => unseen += count,
            });
        }
        assert_eq!((seen, unseen), (1000, 10));
    }

    #[test]
    fn what_the_receiver_has_and_the_capture_has_not_is_unseen() {
        let (mut flow, mut parts) = (Flow::default(), Vec::new());
        flow.acknowledge(7, |_| panic!("nothing is known before the first byte"));
        flow.open(u32::MAX);
        flow.take(4, b"ab", 2, |_| panic!("it is early"));
        for number in [0, u32::MAX, u32::MAX - 9, 1 << 31] {
            flow.acknowledge(number, |_| panic!("{number}: the end of a direction, or nothing new"));
        }
        flow.acknowledge(9, |part| parts.push(format!("{part:?}")));
        flow.take(9, b"c", 1, |part| parts.push(format!("{part:?}")));
        assert_eq!(parts, ["Unseen(5)", "Bytes([97, 98])", "Unseen(3)", "Bytes([99])"]);
    }

    #[test]
    fn what_waits_is_counted_and_unseen_once_it_is_forgotten() {
        let (mut flow, mut parts) = (Flow::default(), Vec::new());
        flow.open(0);
        for first in [2, 4, 4, 8] {
            flow.take(first, b"ab", 2, |_| panic!("it is early"));
        }
        assert_eq!(flow.held(), 6 + 3 * A_SEGMENT);
        assert_eq!((flow.forget_early(), flow.held()), (6, 3 * A_SEGMENT));
        flow.take(6, b"cd", 2, |_| panic!("it is early"));
        assert_eq!(flow.held(), 2 + 4 * A_SEGMENT);
        flow.take(0, b"xy", 2, |part| parts.push(format!("{part:?}")));
        assert_eq!(parts, ["Bytes([120, 121])", "Unseen(2)", "Unseen(2)", "Bytes([99, 100])", "Unseen(2)"]);
        assert_eq!(flow.held(), 0);
    }

    #[test]
    fn bytes_that_a_frame_was_cut_before_are_unseen() {
        let (mut flow, mut parts) = (Flow::default(), Vec::new());
        flow.take(5, b"ab", 10, |part| parts.push(format!("{part:?}")));
        assert_eq!(parts, ["Bytes([97, 98])", "Unseen(8)"]);
    }
}
