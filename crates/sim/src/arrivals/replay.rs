//! Replays an access log: its requests at their times, if wished faster, and each if wished several times.
//!
//! If a stamp is to the second, the request comes at a random moment of that second; if it has a fraction, the request comes at
//! that time. Copies of a request come from clients of their own at random moments within the next second. So a burst stays a
//! burst, but copies do not arrive at the same instant. The order of requests within a second is not kept.
//!
//! All that comes of a line comes within a second of its time, and lines are in order of time: what lies before the next
//! line's time can go out. So a heap holds about a second's requests, in 32 bytes each. [`MOST`] bounds it: of a second
//! with more, the first go out before the last are read, and those come in what is left of the second.

use super::access_log::AccessLog;
use super::clock::Clock;
use super::entry::{Record, copied_client};
use super::own_log::OwnLine;
use super::{LogNotes, Source, TimeOrigin};
use crate::request::Request;
use crate::workload::Replay;
use plimsoll_core::random::Random;
use plimsoll_core::time::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

/// The most requests that wait for their moment.
const MOST: usize = 4_000_000;
const SECOND_NS: u64 = 1_000_000_000;

/// A log that is replayed.
pub(super) struct ReplayedLog {
    log: AccessLog,
    replay: Replay,
    random: Random,
    /// Holds indices of `records`.
    clock: Clock<usize>,
    records: Records,
    /// The line whose copies are made now.
    line: Option<CurrentLine>,
    /// Requests that wait for their time.
    due: BinaryHeap<Reverse<PendingRequest>>,
    /// Requests made so far; requests of equal times come in this order.
    made: u64,
    /// The time of the last request that went out (the log's time).
    floor_ns: u64,
    ended: bool,
    /// What the last request's line says of it. It is counted when the next one is asked for: the run may end before it.
    last: Option<(Option<Duration>, Option<OwnLine>)>,
}

/// A request that is to come. Times are the log's, not sped up.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct PendingRequest {
    time_ns: u64,
    order: u64,
    record: usize,
    copy: u32,
}

struct CurrentLine {
    time_ns: u64,
    record: usize,
    /// Copies made, and how many there will be.
    made: u32,
    copies: u32,
}

impl ReplayedLog {
    /// Starts at the log's first line, whose requests come within the first second of the run.
    pub(super) fn new(log: AccessLog, replay: Replay, random: Random) -> Self {
        ReplayedLog {
            log,
            replay,
            random,
            clock: Clock::new(),
            records: Records::default(),
            line: None,
            due: BinaryHeap::new(),
            made: 0,
            floor_ns: 0,
            ended: false,
            last: None,
        }
    }

    fn count_last(&mut self) {
        let Some((time, own)) = self.last.take() else { return };
        let notes = &mut self.log.notes;
        notes.requests += 1;
        notes.own.0 += u64::from(own.is_some_and(|own| own != OwnLine::Unanswered));
        notes.own.1 += u64::from(matches!(own, Some(OwnLine::Unserved | OwnLine::Unanswered)));
        notes.untimed += u64::from(own == Some(OwnLine::Untimed));
        notes.timed.0 += u64::from(time.is_some());
        notes.timed.1 += u64::from(time.is_some_and(|time| time.is_zero()));
    }

    /// The next request; `None` after the last.
    fn pop(&mut self) -> io::Result<Option<PendingRequest>> {
        loop {
            let before = self.line.as_ref().map(|line| line.time_ns);
            let first = self.due.peek().map(|Reverse(first)| first.time_ns);
            let full = self.due.len() >= MOST;
            match (first, before) {
                (Some(first), Some(before)) if full || first <= before => return Ok(self.take()),
                (_, Some(_)) => self.copy(),
                (_, None) => {
                    self.line = self.next_line()?;
                    if self.line.is_none() {
                        return Ok(self.take());
                    }
                }
            }
        }
    }

    fn take(&mut self) -> Option<PendingRequest> {
        let Reverse(due) = self.due.pop()?;
        self.floor_ns = due.time_ns;
        Some(due)
    }

    /// Makes one more copy of the present line; after its last copy, the line is done.
    fn copy(&mut self) {
        let Some(line) = &mut self.line else { return };
        if line.made >= line.copies {
            self.records.release(line.record);
            self.line = None;
            return;
        }
        let whole = self.records.slots[line.record].record.stamp.whole;
        let least = line.time_ns.max(self.floor_ns);
        let span = if whole || line.made > 0 {
            line.time_ns.saturating_add(SECOND_NS).saturating_sub(least)
        } else {
            0
        };
        let time_ns = if span > 0 { least + self.random.below(span) } else { least };
        self.due.push(Reverse(PendingRequest {
            time_ns,
            order: self.made,
            record: line.record,
            copy: line.made,
        }));
        self.records.slots[line.record].users += 1;
        line.made += 1;
        self.made += 1;
    }

    fn next_line(&mut self) -> io::Result<Option<CurrentLine>> {
        loop {
            if let Some((micros, record)) = self.clock.pop(&mut self.log.notes) {
                let scale = self.replay.scale;
                let copies = scale as u32 + u32::from(self.random.uniform() < scale.fract());
                let time_ns = (micros as u64).saturating_mul(1_000);
                return Ok(Some(CurrentLine { time_ns, record, made: 0, copies }));
            }
            if self.ended {
                return Ok(None);
            }
            let index = self.records.acquire();
            let slot = &mut self.records.slots[index];
            if self.log.read(&mut slot.record)? {
                self.clock.push(slot.record.stamp.micros, index, &mut self.log.notes);
            } else {
                self.records.release(index);
                self.clock.end(&mut self.log.notes);
                self.ended = true;
            }
        }
    }
}

impl Source for ReplayedLog {
    fn next(&mut self, request: &mut Request) -> io::Result<Option<Instant>> {
        self.count_last();
        let Some(due) = self.pop()? else { return Ok(None) };
        let record = &self.records.slots[due.record].record;
        let (time, own) = (record.time, record.own);
        request.copy_from(&record.request);
        if due.copy > 0 {
            request.client = copied_client(request.client, due.copy);
        }
        self.records.release(due.record);
        self.last = Some((time, own));
        Ok(Some(Instant::from_nanos((due.time_ns as f64 / self.replay.speed) as u64)))
    }

    fn progress(&self) -> Option<f64> {
        self.log.progress()
    }

    fn origin(&self) -> Option<TimeOrigin> {
        // Time that was cut out of gaps counts as passed.
        let LogNotes { began, gaps, .. } = self.log.notes;
        let began = began? as f64 * 1e-6 + gaps.1;
        (began > 0.0).then(|| TimeOrigin { began: Duration::from_secs_f64(began), speed: self.replay.speed })
    }

    fn notes(&self) -> Vec<LogNotes> {
        vec![self.log.notes.clone()]
    }
}

/// Records in use, and freed ones whose memory is used again.
#[derive(Default)]
struct Records {
    slots: Vec<Slot>,
    free: Vec<usize>,
}

#[derive(Default)]
struct Slot {
    record: Record,
    /// References: the line itself and its copies that still need the record.
    users: u32,
}

impl Records {
    fn acquire(&mut self) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            self.slots.len() - 1
        });
        self.slots[index].users = 1;
        index
    }

    fn release(&mut self, index: usize) {
        self.slots[index].users -= 1;
        if self.slots[index].users == 0 {
            self.free.push(index);
        }
    }
}
