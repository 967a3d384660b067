//! Floods: frames that cost the gateway work and ask for nothing, or take back what they asked for.
//!
//! Each connection has an account of at most [`ALLOWANCE`] units, which gains [`A_SECOND`] units each second. A frame of the
//! kinds below takes units out. An answered request brings [`AN_ANSWER`] units. Each [`BYTES_A_UNIT`] bytes written bring one
//! unit, since a client that takes many bytes must send many window updates. A message, which is all that a server has sent at
//! a moment, brings [`A_MESSAGE`] units: a gRPC client answers each message with a `PING` and up to two window updates, by
//! which it measures the bandwidth. A `DATA` frame alone brings nothing, since a client with windows of a byte can cause any
//! number of them. If the account cannot pay for a frame, the connection ends with `ENHANCE_YOUR_CALM`, and is counted by the
//! kind of that frame.
//!
//! | frame | takes | the flood |
//! |---|---|---|
//! | `RST_STREAM` | 5 | rapid resets: requests that are begun and thrown away |
//! | what has `h2` reset an open stream, such as a window that is too wide | 5 more | the same, made by the gateway |
//! | `PING`, `SETTINGS` | 1 | each is answered |
//! | `WINDOW_UPDATE` | 1 | windows of a byte, each of which makes a frame of a byte |
//! | `DATA` of no byte, `CONTINUATION`, `PRIORITY`, others | 1 | they say nothing |
//!
//! `h2` itself ends a connection whose head does not end, or which resets streams before they were looked at.

use super::frames::{END_OR_ACK, FrameHead, kind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The most units in the account.
pub const ALLOWANCE: u32 = 1000;
/// The units that come back each second.
pub const A_SECOND: u32 = 100;
/// The units that an answered request brings.
pub const AN_ANSWER: u32 = 4;
/// The units that a message brings: a part of a response, handed over up to the last byte that the server had sent.
pub const A_MESSAGE: u32 = 3;
/// The units for a stream that is reset by its client, or because of what its client sends.
const A_RESET: u32 = 5;
/// How many written bytes bring one unit.
pub const BYTES_A_UNIT: u64 = 512;

/// The flood for which a connection was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    Resets,
    Pings,
    Settings,
    Windows,
    /// Frames without content.
    Empty,
    /// A flood that `h2` itself detected.
    Codec,
}

impl Flood {
    pub(crate) const ALL: [Flood; 6] =
        [Flood::Resets, Flood::Pings, Flood::Settings, Flood::Windows, Flood::Empty, Flood::Codec];

    /// The word for metrics and status.
    pub const fn as_str(self) -> &'static str {
        match self {
            Flood::Resets => "resets",
            Flood::Pings => "pings",
            Flood::Settings => "settings",
            Flood::Windows => "windows",
            Flood::Empty => "empty_frames",
            Flood::Codec => "codec",
        }
    }
}

/// How many connections were ended for each flood.
#[derive(Debug, Default)]
pub(crate) struct EndedConnections([AtomicU64; Flood::ALL.len()]);

/// The limits of HTTP/2 that are in force, and how many connections were ended for each flood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Http2Status {
    /// The most streams at once on a connection.
    pub streams: u32,
    /// The number of connections by flood, in the order of [`Flood::ALL`].
    pub ended: [(Flood, u64); Flood::ALL.len()],
}

impl EndedConnections {
    pub(crate) fn count(&self, flood: Flood) {
        self.0[flood as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn status(&self, streams: u32) -> Http2Status {
        Http2Status { streams, ended: Flood::ALL.map(|flood| (flood, self.0[flood as usize].load(Relaxed))) }
    }
}

/// A connection's account.
#[derive(Clone, Debug)]
pub struct FrameAccount {
    /// The balance in millionths of a unit.
    balance: u64,
    /// Written bytes that do not yet make a unit.
    written: u64,
    /// `RST_STREAM` frames whose streams have not yet ended.
    resets: u64,
}

const UNIT: u64 = 1_000_000;
const FULL: u64 = ALLOWANCE as u64 * UNIT;

impl Default for FrameAccount {
    fn default() -> Self {
        FrameAccount { balance: FULL, written: 0, resets: 0 }
    }
}

impl FrameAccount {
    fn add(&mut self, millionths: u64) {
        self.balance = self.balance.saturating_add(millionths).min(FULL);
    }

    /// Adds the units for this time.
    pub fn wait(&mut self, time: Duration) {
        self.add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX).saturating_mul(A_SECOND.into()));
    }

    /// Adds the units for an answered request.
    pub fn answered(&mut self) {
        self.add(u64::from(AN_ANSWER) * UNIT);
    }

    /// Adds the units for a message that was handed over.
    pub fn passed_message(&mut self) {
        self.add(u64::from(A_MESSAGE) * UNIT);
    }

    /// Adds the units for written bytes.
    pub fn wrote(&mut self, bytes: u64) {
        self.written += bytes;
        self.add(self.written / BYTES_A_UNIT * UNIT);
        self.written %= BYTES_A_UNIT;
    }

    /// Takes the units for a frame. If the account cannot pay, returns the flood that the frame belongs to.
    pub fn take(&mut self, frame: FrameHead) -> Option<Flood> {
        let is_end_or_ack = frame.flags & END_OR_ACK != 0;
        let (flood, cost) = match frame.kind {
            kind::RST_STREAM => {
                self.resets += 1;
                (Flood::Resets, A_RESET)
            }
            kind::PING if !is_end_or_ack => (Flood::Pings, 1),
            kind::SETTINGS if !is_end_or_ack => (Flood::Settings, 1),
            kind::WINDOW_UPDATE => (Flood::Windows, 1),
            kind::DATA if frame.length == 0 && !is_end_or_ack => (Flood::Empty, 1),
            kind::DATA | kind::HEADERS => return None,
            // An acknowledgement that was not asked for also has no content.
            _ => (Flood::Empty, 1),
        };
        self.pay(flood, cost)
    }

    /// A stream ended with a reset. If its client did not send the reset, the client has made `h2` send it, and pays as much
    /// again. If the account cannot pay, returns the flood.
    pub fn was_reset(&mut self) -> Option<Flood> {
        if self.resets > 0 {
            self.resets -= 1;
            return None;
        }
        self.pay(Flood::Resets, A_RESET)
    }

    fn pay(&mut self, flood: Flood, cost: u32) -> Option<Flood> {
        let left = self.balance.checked_sub(u64::from(cost) * UNIT);
        self.balance = left.unwrap_or(0);
        left.is_none().then_some(flood)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: usize) -> FrameHead {
        FrameHead { length, kind, flags }
    }

    /// How many such frames in a row are allowed.
    fn allowed(account: &mut FrameAccount, frame: FrameHead) -> (u32, Flood) {
        let mut count = 0;
        loop {
            if let Some(flood) = account.take(frame) {
                return (count, flood);
            }
            count += 1;
            assert!(count <= ALLOWANCE, "no end");
        }
    }

    #[test]
    fn each_flood_has_its_end_and_its_name() {
        for (frame, count, flood) in [
            (frame(kind::RST_STREAM, 0, 4), 200, Flood::Resets),
            (frame(kind::PING, 0, 8), 1000, Flood::Pings),
            (frame(kind::SETTINGS, 0, 6), 1000, Flood::Settings),
            (frame(kind::WINDOW_UPDATE, 0, 4), 1000, Flood::Windows),
            (frame(kind::DATA, 0, 0), 1000, Flood::Empty),
            (frame(kind::CONTINUATION, 0, 1), 1000, Flood::Empty),
            (frame(kind::PRIORITY, 0, 5), 1000, Flood::Empty),
            (frame(kind::PING, END_OR_ACK, 8), 1000, Flood::Empty),
            (frame(200, 0, 0), 1000, Flood::Empty),
        ] {
            assert_eq!(allowed(&mut FrameAccount::default(), frame), (count, flood));
        }
    }

    #[test]
    fn a_reset_costs_the_same_whoever_sends_it_and_only_once() {
        let mut account = FrameAccount::default();
        let reset = frame(kind::RST_STREAM, 0, 4);
        for _ in 0..100 {
            assert_eq!((account.take(reset), account.was_reset()), (None, None));
        }
        assert!((0..100).all(|_| account.was_reset().is_none()));
        assert_eq!(account.was_reset(), Some(Flood::Resets));
    }

    #[test]
    fn requests_and_their_bodies_cost_nothing() {
        let mut account = FrameAccount::default();
        for frame in [frame(kind::HEADERS, 5, 40), frame(kind::DATA, 0, 1), frame(kind::DATA, 1, 0)] {
            assert!((0..10_000).all(|_| account.take(frame).is_none()));
        }
    }

    #[test]
    fn time_answers_messages_and_bytes_bring_units_up_to_the_allowance() {
        let mut account = FrameAccount::default();
        account.wait(Duration::from_secs(1000));
        let ping = frame(kind::PING, 0, 8);
        assert_eq!(allowed(&mut account, ping).0, ALLOWANCE, "no more than it holds");
        account.wait(Duration::from_millis(500));
        assert_eq!(allowed(&mut account, ping).0, A_SECOND / 2);
        (0..10).for_each(|_| account.answered());
        assert_eq!(allowed(&mut account, ping).0, 10 * AN_ANSWER);
        (0..10).for_each(|_| account.passed_message());
        assert_eq!(allowed(&mut account, ping).0, 10 * A_MESSAGE);
        (0..10).for_each(|_| account.wrote(BYTES_A_UNIT / 2));
        assert_eq!(allowed(&mut account, ping).0, 5);
    }

    #[test]
    fn windows_of_a_byte_are_a_flood_and_those_of_a_download_are_none() {
        let window = frame(kind::WINDOW_UPDATE, 0, 4);
        let rounds = |bytes: u64| {
            let mut account = FrameAccount::default();
            (0..100_000)
                .take_while(|_| {
                    account.wrote(bytes);
                    account.take(window).is_none()
                })
                .count()
        };
        assert!(rounds(10) < 1100);
        assert_eq!(rounds(16 * 1024), 100_000);
    }
}
