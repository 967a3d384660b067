//! The answers of a connection, one after the other.

use crate::body::Body;
use crate::head::{Parsed, answer_head};

/// The longest head of an answer (bytes). A longer one is taken for a body that ends with the connection.
const LONGEST_HEAD: usize = 64 << 10;

/// The server's direction of a connection.
#[derive(Debug, Default)]
pub struct Answers {
    /// The beginning of a head whose end has not come yet.
    part: Vec<u8>,
    /// The body of the current answer; `None` between answers and while a head comes.
    body: Option<Body>,
    status: u16,
    /// The content type of the current answer.
    content_type: Vec<u8>,
}

/// How far the given bytes have led.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// How many of the bytes belong to this answer.
    pub used: usize,
    /// How many of the used bytes belong to its body.
    pub body: u64,
    /// The final status of the answer, if it ends here. After 101 no HTTP follows.
    pub ended: Option<u16>,
}

impl Answers {
    /// Passes bytes of the stream up to the end of an answer; `is_to_head` says that the request was HEAD.
    pub fn pass(&mut self, bytes: &[u8], is_to_head: bool) -> Progress {
        let mut used = 0;
        while self.body.is_none() && used < bytes.len() {
            used += self.head(&bytes[used..], is_to_head);
        }
        let Some(body) = &mut self.body else { return Progress { used, ..Progress::default() } };
        let passed = body.pass(&bytes[used..]);
        self.progress(used + passed, passed as u64)
    }

    /// Passes bytes that were not captured.
    pub fn skip(&mut self, count: u64) -> Progress {
        // Outside a body, the bytes that were not captured include a head.
        if self.body.is_none() || self.has_unseen_framing(count) {
            (self.part, self.status, self.body) = (Vec::new(), 0, Some(Body::UntilClose));
        }
        let passed = self.body.get_or_insert(Body::UntilClose).skip(count);
        self.progress(usize::try_from(passed).unwrap_or(usize::MAX), passed)
    }

    /// The server has closed the connection. Returns the status of an answer that ends with it.
    pub fn close(&mut self) -> Option<u16> {
        let is_whole = self.body == Some(Body::UntilClose) && self.status != 0;
        self.body = None;
        is_whole.then_some(self.status)
    }

    /// Whether an answer has begun and not ended.
    pub fn is_within(&self) -> bool {
        self.body.is_some() || !self.part.is_empty()
    }

    /// Whether an answer's head has come, and its body has not ended.
    pub fn is_within_body(&self) -> bool {
        self.body.is_some()
    }

    /// Whether the answer ends only with the connection.
    pub(crate) fn is_until_close(&self) -> bool {
        self.body == Some(Body::UntilClose)
    }

    /// How much memory the beginning of a head takes.
    pub(crate) fn held(&self) -> usize {
        self.part.capacity()
    }

    /// How many bytes of an unfinished head have come.
    pub(crate) fn part_length(&self) -> usize {
        self.part.len()
    }

    /// The type of the answer whose head came last (`Content-Type`); empty where it has none.
    pub fn content_type(&self) -> &[u8] {
        &self.content_type
    }

    /// Whether the stream can no longer be understood.
    pub fn is_lost(&self) -> bool {
        self.body == Some(Body::UntilClose) && self.status == 0
    }

    /// Whether the next `count` bytes contain framing.
    fn has_unseen_framing(&self, count: u64) -> bool {
        match &self.body {
            Some(body @ Body::Chunked(_)) => !body.is_within_data(count),
            _ => false,
        }
    }

    fn progress(&mut self, used: usize, body: u64) -> Progress {
        let is_over = self.body.take_if(|body| body.has_ended()).is_some();
        Progress { used, body, ended: is_over.then_some(self.status) }
    }

    /// Passes bytes of a head; returns how many belong to it.
    fn head(&mut self, bytes: &[u8], is_to_head: bool) -> usize {
        let before = self.part.len();
        let head = if before == 0 {
            answer_head(bytes, is_to_head)
        } else {
            self.part.extend_from_slice(bytes);
            answer_head(&self.part, is_to_head)
        };
        match head {
            Parsed::Whole(head) => {
                self.part.clear();
                // An interim answer is followed by the final one.
                if !matches!(head.status, 100 | 102..200) {
                    (self.status, self.body) = (head.status, Some(head.body));
                    self.content_type = head.content_type;
                }
                head.length - before
            }
            Parsed::Partial if before + bytes.len() <= LONGEST_HEAD => {
                if before == 0 {
                    self.part.extend_from_slice(bytes);
                }
                bytes.len()
            }
            Parsed::Partial | Parsed::Foreign => {
                self.part = Vec::new();
                (self.status, self.body) = (0, Some(Body::UntilClose));
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts these bytes into pieces; returns the statuses of the answers and the number of body bytes.
    fn read(bytes: &[u8], piece: usize) -> (Vec<u16>, u64) {
        let (mut answers, mut statuses, mut sum) = (Answers::default(), Vec::new(), 0);
        for mut part in bytes.chunks(piece) {
            while !part.is_empty() {
                let progress = answers.pass(part, false);
                part = &part[progress.used..];
                sum += progress.body;
                statuses.extend(progress.ended);
            }
        }
        statuses.extend(answers.close());
        (statuses, sum)
    }

    #[test]
    fn answers_end_where_their_framing_says_however_they_are_cut() {
        let all = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 204 None\r\n\r\n\
            HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the end";
        for piece in 1..all.len() {
            assert_eq!(read(all, piece), (vec![200, 204, 503, 200], 5 + 13 + 10), "{piece}");
        }
    }

    #[test]
    fn what_is_no_answer_has_no_end_and_no_status() {
        let mut answers = Answers::default();
        assert_eq!(answers.pass(b"220 mail ready\r\n", false).ended, None);
        assert!(answers.is_within());
        assert_eq!(answers.close(), None);
    }

    #[test]
    fn an_answer_to_head_has_no_body_and_a_file_sent_by_the_kernel_passes() {
        let mut answers = Answers::default();
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
        assert_eq!(answers.pass(head, true).ended, Some(200));
        assert_eq!(answers.pass(head, false).ended, None);
        assert_eq!(answers.skip(499), Progress { used: 499, body: 499, ended: None });
        assert_eq!(answers.skip(1).ended, Some(200));
        assert!(!answers.is_within());
    }

    #[test]
    fn a_head_without_end_is_given_up() {
        let mut answers = Answers::default();
        let line = b"X-Header: abcdefghijklmnopqrstuvwxyz\r\n";
        answers.pass(b"HTTP/1.1 200 OK\r\n", false);
        for _ in 0..4000 {
            answers.pass(line, false);
        }
        assert!(answers.is_within() && answers.part.is_empty());
    }
}
