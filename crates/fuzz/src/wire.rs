//! What passes by on a wire, in packets and in the calls of a server.

use plimsoll_wire::{Answers, Link, Segment, Traffic};
use std::time::Duration;

/// Frames, each behind two bytes with its length and one with the milliseconds since the one before. There are no more requests
/// than bytes for them, and no more busy time than time.
pub fn packets(bytes: &[u8]) {
    let Some((first, mut rest)) = bytes.split_first() else { return };
    let link = [Link::Ethernet, Link::Raw, Link::Cooked][usize::from(first % 3)];
    let (mut traffic, mut now, workers) = (Traffic::new(80, 3), Duration::ZERO, 3);
    let (mut requests, mut given_up, mut busy) = (0, 0, Duration::ZERO);
    while let [high, low, passed, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        let (frame, behind) = more.split_at(length);
        now += Duration::from_millis((*passed).into());
        if let Some(segment) = Segment::of(link, frame) {
            assert!(segment.bytes.len() <= segment.length && segment.bytes.len() <= frame.len());
            traffic.take(now, &segment);
        }
        let seen = traffic.look(now);
        (requests, given_up) = (requests + seen.requests, given_up + seen.given_up);
        (busy, rest) = (busy + seen.busy, behind);
    }
    assert!(
        (requests + given_up + u64::from(traffic.in_service())) * 14 <= bytes.len() as u64,
        "{requests} requests"
    );
    assert!(busy <= now * workers, "{busy:?} in {now:?}");
}

/// The answers in a stream are the same however it is cut; the first byte says into pieces of how many bytes.
pub fn answers(bytes: &[u8]) {
    let Some((piece, stream)) = bytes.split_first() else { return };
    let read = |piece: usize| {
        let (mut answers, mut found, mut sum) = (Answers::default(), Vec::new(), 0_u64);
        for mut part in stream.chunks(piece) {
            while !part.is_empty() {
                let progress = answers.pass(part, false);
                (part, sum) = (&part[progress.used..], sum + progress.body);
                found.extend(progress.ended);
            }
        }
        found.extend(answers.close());
        assert!(sum <= stream.len() as u64);
        found
    };
    assert_eq!(read(stream.len().max(1)), read(usize::from(*piece).max(1)), "their statuses");
}
