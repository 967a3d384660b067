//! What a server did, from the packets to and from its port (CA 4.2): requests, bytes of bodies, response times, and how long
//! its workers were busy.
//!
//! A request begins for the server with its last byte, and ends with the last byte of its answer, as the wire shows them. The
//! mean of `min(n, workers)`, with n such requests under way, is how many of its workers were busy: with one worker this is the
//! paper's gap estimation, U = (T - G) / T with the time G without any request.
//!
//! If the beginning of a direction was not seen, requests count from the first head on that can be read. A connection is
//! followed from its first packet, or from bytes that may begin a request, to its end, or until it has shown no byte for
//! [`SILENT`].

use crate::connection::{Connection, may_begin_request};
use crate::segment::Segment;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::Duration;

/// The number of connections that are followed at once. A further connection takes the place of the one that is due to be
/// forgotten first.
const CONNECTIONS: usize = 1 << 16;
/// A connection that has shown no byte for this long is forgotten with its requests: their end was not seen.
const SILENT: Duration = Duration::from_secs(30);
/// The memory of all connections for bytes that wait for earlier bytes, or for the rest of a head (bytes). Beyond it the
/// connection that took the last segment drops the bytes that came early; if that is not enough, the connections that are due
/// to be forgotten first are given up.
const HELD: usize = 64 << 20;
/// The number of connections that are checked for silence with each packet.
const LOOKED_AT: usize = 8;
/// This long after packets were lost, requests are given up whose connections have shown no byte since the loss.
const DOUBTFUL: Duration = Duration::from_secs(5);
/// If the clock is behind by more than this, it was set back; by less, packets waited to be read or came out of order.
const STEP: Duration = Duration::from_secs(10);

type Ends = (SocketAddr, SocketAddr);

/// What was seen since the last look.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seen {
    /// Requests whose answer has ended, or will stay open for as long as the client likes (an upgrade, a stream of events).
    pub requests: u64,
    /// Bytes of answers' bodies, with the framing of chunks.
    pub bytes: u64,
    /// The sum of the response times of these requests.
    pub response: Duration,
    /// The integral of `min(n, workers)` over time.
    pub busy: Duration,
    /// Bytes that the capture did not see.
    pub unseen: u64,
    /// Captured bytes that were dropped for want of memory before their turn in the order came. When it comes, they also count
    /// as unseen.
    pub dropped: u64,
    /// Requests whose end was not seen: bytes of the answer are missing, or none came for long.
    pub given_up: u64,
}

/// The requests of one server, as they are seen in the packets of its connections.
#[derive(Debug)]
pub struct Traffic {
    port: u16,
    workers: u32,
    connections: HashMap<Ends, Followed>,
    /// When each connection is next checked for silence; a number keeps equal times apart.
    looks: BTreeMap<(Duration, u64), Ends>,
    entered: u64,
    seen: Seen,
    in_service: u32,
    /// The memory that connections hold for bytes that wait, and its limit.
    held: usize,
    most_held: usize,
    /// The time up to which `busy` is summed.
    until: Duration,
    /// The total time by which the clock was set back.
    shift: Duration,
    /// When packets were first and last lost since requests were last given up for a loss.
    lost: Option<(Duration, Duration)>,
}

#[derive(Debug)]
struct Followed {
    connection: Connection,
    /// The connection's key in `looks`.
    look: (Duration, u64),
}

impl Traffic {
    /// The traffic of a server at this port, which works on `workers` requests at once.
    pub fn new(port: u16, workers: u32) -> Traffic {
        Traffic {
            port,
            workers: workers.max(1),
            connections: HashMap::new(),
            looks: BTreeMap::new(),
            entered: 0,
            seen: Seen::default(),
            in_service: 0,
            held: 0,
            most_held: HELD,
            until: Duration::ZERO,
            shift: Duration::ZERO,
            lost: None,
        }
    }

    /// The number of requests that the server works on.
    pub fn in_service(&self) -> u32 {
        self.in_service
    }

    /// What was seen until `now`, since the last look.
    pub fn look(&mut self, now: Duration) -> Seen {
        let now = self.advance(now);
        while self.look_at_first(now) {}
        if let Some((first, last)) = self.lost.take_if(|(first, _)| *first + DOUBTFUL <= now) {
            self.give_up_doubtful(first);
            self.lost = (first < last).then_some((last, last));
        }
        std::mem::take(&mut self.seen)
    }

    /// Notes that packets were lost at some time until `now`, of unknown connections.
    pub fn lose(&mut self, now: Duration) {
        let now = self.advance(now);
        let first = self.lost.map_or(now, |(first, _)| first);
        self.lost = Some((first, now));
    }

    /// Takes a segment that was captured at `now`.
    pub fn take(&mut self, now: Duration, segment: &Segment<'_>) {
        let now = self.advance(now);
        let is_to_server = segment.to.port() == self.port;
        let ends = if is_to_server { (segment.from, segment.to) } else { (segment.to, segment.from) };
        if ends.1.port() != self.port {
            return;
        }
        for _ in 0..LOOKED_AT {
            if !self.look_at_first(now) {
                break;
            }
        }
        let opens = is_to_server && segment.is_first;
        if segment.is_reset {
            return self.forget(ends);
        }
        if opens {
            // The client opens the connection anew: the end of the former one was not seen.
            self.give_up(ends);
        }
        if opens || (is_to_server && may_begin_request(segment.bytes)) {
            self.enter(now, ends);
        }
        let Some(Followed { connection, .. }) = self.connections.get_mut(&ends) else { return };
        let (before, held) = (connection.under_way(), connection.held());
        connection.take(now, segment, is_to_server, &mut self.seen);
        let has_ended = !is_to_server && segment.is_last;
        if has_ended {
            connection.end(now, segment.sequence.wrapping_add(segment.length as u32), &mut self.seen);
        }
        self.in_service = (self.in_service + connection.under_way()).saturating_sub(before);
        self.held = self.held - held + connection.held();
        if self.held > self.most_held {
            let early = connection.forget_early();
            (self.held, self.seen.dropped) = (self.held - early, self.seen.dropped + early as u64);
        }
        if has_ended {
            self.forget(ends);
        }
        self.make_room();
    }

    /// Gives up the connections that are due to be forgotten first, until the others hold no more than the limit.
    fn make_room(&mut self) {
        while self.held > self.most_held
            && let Some(first) = self.looks.values().next().copied()
        {
            let bytes = self.connections.get(&first).map_or(0, |one| one.connection.waiting_bytes());
            self.seen.dropped += bytes as u64;
            self.give_up(first);
        }
    }

    /// Sums `busy` up to `now`; returns the time by a clock that was never set back.
    fn advance(&mut self, now: Duration) -> Duration {
        let behind = self.until.saturating_sub(now + self.shift);
        if behind > STEP {
            self.shift += behind;
        }
        let now = now + self.shift;
        let passed = now.saturating_sub(self.until);
        self.until += passed;
        // Nothing is under way for longer than this without a byte, so a clock that was set forward adds at most this time.
        self.seen.busy += passed.min(SILENT) * self.in_service.min(self.workers);
        now
    }

    fn enter(&mut self, now: Duration, ends: Ends) {
        if self.connections.contains_key(&ends) {
            return;
        }
        if self.connections.len() >= CONNECTIONS
            && let Some(first) = self.looks.values().next().copied()
        {
            self.give_up(first);
        }
        self.entered += 1;
        let look = (now + SILENT, self.entered);
        self.looks.insert(look, ends);
        let mut connection = Connection::default();
        connection.last = now;
        self.connections.insert(ends, Followed { connection, look });
    }

    /// If the first connection is due, checks whether it was silent; returns whether it was due.
    fn look_at_first(&mut self, now: Duration) -> bool {
        let Some(entry) = self.looks.first_entry().filter(|entry| entry.key().0 <= now) else { return false };
        let (key, ends) = (*entry.key(), *entry.get());
        match self.connections.get_mut(&ends) {
            Some(followed) if followed.connection.last + SILENT > now => {
                entry.remove();
                followed.look = (followed.connection.last + SILENT, key.1);
                self.looks.insert(followed.look, ends);
            }
            _ => self.give_up(ends),
        }
        true
    }

    /// Gives up connections with requests under way that have shown no byte since this loss.
    fn give_up_doubtful(&mut self, since: Duration) {
        let is_doubtful = |one: &Connection| one.under_way() > 0 && one.last < since;
        let all = self.connections.iter().filter(|(_, followed)| is_doubtful(&followed.connection));
        let doubtful: Vec<Ends> = all.map(|(ends, _)| *ends).collect();
        doubtful.into_iter().for_each(|ends| self.give_up(ends));
    }

    /// Forgets a connection whose end was not seen.
    fn give_up(&mut self, ends: Ends) {
        if let Some(followed) = self.connections.get_mut(&ends) {
            let before = followed.connection.under_way();
            followed.connection.give_up(&mut self.seen);
            self.in_service = self.in_service.saturating_sub(before);
        }
        self.forget(ends);
    }

    fn forget(&mut self, ends: Ends) {
        if let Some(followed) = self.connections.remove(&ends) {
            self.looks.remove(&followed.look);
            self.held -= followed.connection.held();
            self.in_service = self.in_service.saturating_sub(followed.connection.under_way());
        }
    }
}

#[cfg(test)]
mod tests;
