//! The frames that come in on a connection, seen by their heads alone: 9 bytes each, the rest is skipped.
//!
//! `h2` reads the same bytes and judges them. This meter only counts, and so knows what `h2` does not report: how much of a
//! frame or of a head is unfinished, and how many frames came that ask for nothing.

/// The first bytes of a connection, before its first frame.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const HEAD: usize = 9;

/// The fields of a frame's head that are needed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
}

/// The kinds of frames.
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PING: u8 = 6;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// The last frame of a stream (`DATA`, `HEADERS`), or an answer to one (`SETTINGS`, `PING`).
pub const END_OR_ACK: u8 = 1;
/// The last frame of a head.
pub const END_HEADERS: u8 = 4;

/// Follows the bytes of a connection from the first one, the preface included.
#[derive(Clone, Debug)]
pub struct FrameMeter {
    head: [u8; HEAD],
    filled: usize,
    /// Bytes to skip: of the preface, then of each frame's payload.
    skip: usize,
    /// How many bytes of an unfinished head have come so far.
    unfinished: usize,
    in_head: bool,
    /// Whether the bytes to skip are of a head.
    skips_head: bool,
    /// How many frames and heads have ended.
    ended: u64,
}

impl Default for FrameMeter {
    fn default() -> Self {
        FrameMeter {
            head: [0; HEAD],
            filled: 0,
            skip: PREFACE.len(),
            unfinished: 0,
            in_head: false,
            skips_head: false,
            ended: 0,
        }
    }
}

impl FrameMeter {
    /// Takes the next bytes, and calls `see` for each frame that begins in them.
    pub fn read(&mut self, mut bytes: &[u8], mut see: impl FnMut(FrameHead)) {
        while !bytes.is_empty() {
            let skipped = self.skip.min(bytes.len());
            if skipped > 0 {
                self.skip -= skipped;
                self.unfinished += skipped;
                bytes = &bytes[skipped..];
                self.end();
                continue;
            }
            let count = (HEAD - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + count].copy_from_slice(&bytes[..count]);
            self.filled += count;
            self.unfinished += count;
            bytes = &bytes[count..];
            if self.filled == HEAD {
                self.filled = 0;
                let [high, middle, low, kind, flags, ..] = self.head;
                self.skip = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                self.skips_head = matches!(kind, kind::HEADERS | kind::CONTINUATION);
                if self.skips_head {
                    self.in_head = flags & END_HEADERS == 0;
                }
                see(FrameHead { length: self.skip, kind, flags });
                self.end();
            }
        }
    }

    /// Ends a frame: nothing is then unfinished, unless its head goes on in the next frame.
    fn end(&mut self) {
        if self.skip == 0 && self.filled == 0 && !self.in_head {
            self.unfinished = 0;
            self.ended += 1;
        }
    }

    /// How many bytes of an unfinished frame or head have come.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }

    /// Whether the unfinished bytes are of a head.
    pub fn is_in_head(&self) -> bool {
        self.in_head || (self.skip > 0 && self.skips_head)
    }

    /// The number of complete frames and heads.
    pub fn number(&self) -> u64 {
        self.ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![0, (length >> 8) as u8, length as u8, kind, flags, 0, 0, 0, 1];
        bytes.resize(HEAD + length, 0xff);
        bytes
    }

    #[test]
    fn frames_are_seen_however_they_are_cut() {
        let frames = [
            (kind::SETTINGS, 0, 6),
            (kind::HEADERS, END_HEADERS, 300),
            (kind::DATA, 1, 0),
            (kind::PING, 0, 8),
        ];
        let mut bytes = PREFACE.to_vec();
        frames.iter().for_each(|&(kind, flags, length)| bytes.extend(frame(kind, flags, length)));
        for size in [1, 2, 9, 10, 100, bytes.len()] {
            let (mut meter, mut seen) = (FrameMeter::default(), Vec::new());
            for part in bytes.chunks(size) {
                meter.read(part, |head| seen.push((head.kind, head.flags, head.length)));
            }
            assert_eq!((&seen[..], meter.unfinished()), (&frames[..], 0), "in pieces of {size}");
        }
    }

    #[test]
    fn what_has_no_end_is_unfinished() {
        let mut meter = FrameMeter::default();
        let mut read = |bytes: &[u8]| {
            meter.read(bytes, |_| {});
            meter.unfinished()
        };
        assert_eq!(read(&PREFACE[..10]), 10);
        assert_eq!(read(&PREFACE[10..]), 0);
        assert_eq!(read(&frame(kind::SETTINGS, 0, 0)[..4]), 4);
        assert_eq!(read(&frame(kind::SETTINGS, 0, 0)[4..]), 0);
        assert_eq!(read(&frame(kind::HEADERS, 0, 11)), 20, "a head goes on");
        assert_eq!(read(&frame(kind::CONTINUATION, 0, 1)), 30);
        assert_eq!(read(&frame(kind::CONTINUATION, END_HEADERS, 1)), 0);
        assert_eq!(read(&frame(kind::DATA, 0, 11)[..12]), 12);
    }

    #[test]
    fn a_head_is_distinguished_from_other_frames_that_are_unfinished() {
        let mut meter = FrameMeter::default();
        let mut read = |bytes: &[u8]| {
            meter.read(bytes, |_| {});
            meter.is_in_head()
        };
        assert!(!read(PREFACE));
        let head = frame(kind::HEADERS, END_HEADERS, 11);
        assert!(!read(&head[..4]), "any frame may begin so");
        assert!(read(&head[4..12]) && !read(&head[12..]));
        let data = frame(kind::DATA, 0, 11);
        assert!(!read(&data[..12]) && !read(&data[12..]));
        assert!(read(&frame(kind::HEADERS, 0, 0)));
        assert!(!read(&frame(kind::CONTINUATION, END_HEADERS, 0)));
    }
}
