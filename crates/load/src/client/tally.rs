//! Adds up records: by status, by level, by error, by time, by client.

use super::record::{Answer, ErrorKind, Outcome, Record};
use crate::Histogram;
use std::collections::BTreeMap;
use std::time::Duration;

/// Answers of one status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answers {
    /// The number of answers.
    pub count: u64,
    /// The sum of their body bytes.
    pub bytes: u64,
}

/// The counts of one slot of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// Requests that were due in the slot.
    pub arrivals: u64,
    /// Answers below 500 that were completed in the slot.
    pub answers: u64,
    /// Answers of 500 and above that were completed in the slot.
    pub refusals: u64,
    /// Errors in the slot.
    pub errors: u64,
}

/// How many clients changed their level in a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelChanges {
    /// Clients answered with a level in the period.
    pub seen: u32,
    /// Clients among them whose last level differs from their last level before the period.
    pub changed: u32,
}

/// All records of a load, added up.
#[derive(Clone, Debug)]
pub struct Tally {
    /// Requests ended, answered or not.
    pub requests: u64,
    /// Answers by status.
    pub by_status: BTreeMap<u16, Answers>,
    /// Errors, in the order of [`ErrorKind::ALL`].
    pub errors: [u64; ErrorKind::ALL.len()],
    /// Latency of answers below 500.
    pub latency: Histogram,
    /// How late requests were dispatched.
    pub lateness: Histogram,
    /// The load's slots of length `slot` from its start.
    pub slots: Vec<Slot>,
    /// The length of a slot.
    pub slot: Duration,
    /// Answers below 500, by client.
    pub by_client: Vec<u32>,
    levels: Vec<ClientLevel>,
}

/// The memory of one client's levels.
#[derive(Clone, Copy, Debug, Default)]
struct ClientLevel {
    last: Option<u8>,
    /// The last level before the period.
    marked: Option<u8>,
    /// Whether an answer of the period had a level.
    seen: bool,
}

impl Tally {
    /// An empty tally of `clients` clients, in slots of `slot`.
    pub fn new(clients: u32, slot: Duration) -> Self {
        let clients = clients as usize;
        Self {
            requests: 0,
            by_status: BTreeMap::new(),
            errors: [0; ErrorKind::ALL.len()],
            latency: Histogram::default(),
            lateness: Histogram::default(),
            slots: Vec::new(),
            slot: slot.max(Duration::from_millis(1)),
            by_client: vec![0; clients],
            levels: vec![ClientLevel::default(); clients],
        }
    }

    /// Adds one record.
    pub fn add(&mut self, record: &Record) {
        self.requests += 1;
        self.lateness.record_ns(nanoseconds(record.lateness));
        self.slot_at(record.arrival).arrivals += 1;
        let end = record.arrival + record.latency;
        match record.outcome {
            Outcome::Error(kind) => {
                self.errors[kind as usize] += 1;
                self.slot_at(end).errors += 1;
            }
            Outcome::Answer(answer) => self.add_answer(record, answer, end),
        }
    }

    fn add_answer(&mut self, record: &Record, answer: Answer, end: Duration) {
        let by_status = self.by_status.entry(answer.status).or_default();
        by_status.count += 1;
        by_status.bytes += answer.bytes;
        if answer.level.is_some() {
            let client = &mut self.levels[record.client as usize];
            (client.last, client.seen) = (answer.level, true);
        }
        let slot = self.slot_at(end);
        if answer.status >= 500 {
            slot.refusals += 1;
            return;
        }
        slot.answers += 1;
        self.latency.record_ns(nanoseconds(record.latency));
        self.by_client[record.client as usize] += 1;
    }

    /// Ends a period of the level memory, and returns how many clients changed their level in it. A client's first level is no
    /// change.
    pub fn mark_period(&mut self) -> LevelChanges {
        let mut changes = LevelChanges::default();
        for client in self.levels.iter_mut().filter(|client| client.seen) {
            changes.seen += 1;
            changes.changed += u32::from(client.marked.is_some() && client.marked != client.last);
            (client.marked, client.seen) = (client.last, false);
        }
        changes
    }

    /// Answers of every status.
    pub fn answers(&self) -> u64 {
        self.by_status.values().map(|answers| answers.count).sum()
    }

    /// Answers with `status`.
    pub fn status(&self, status: u16) -> u64 {
        self.by_status.get(&status).map_or(0, |answers| answers.count)
    }

    /// Errors of one kind.
    pub fn errors_of(&self, kind: ErrorKind) -> u64 {
        self.errors[kind as usize]
    }

    /// Errors that say something about the server: all but [`ErrorKind::LocalLimit`].
    pub fn server_errors(&self) -> u64 {
        self.errors.iter().sum::<u64>() - self.errors_of(ErrorKind::LocalLimit)
    }

    fn slot_at(&mut self, at: Duration) -> &mut Slot {
        let index = (at.as_nanos() / self.slot.as_nanos()) as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, Slot::default());
        }
        &mut self.slots[index]
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(client: u32, arrival_ms: u64, outcome: Outcome) -> Record {
        Record {
            client,
            arrival: Duration::from_millis(arrival_ms),
            lateness: Duration::from_micros(10),
            latency: Duration::from_millis(600),
            outcome,
        }
    }

    fn answer(status: u16, level: Option<u8>) -> Outcome {
        Outcome::Answer(Answer { status, level, bytes: 100 })
    }

    #[test]
    fn arrivals_count_when_due_and_answers_when_complete() {
        let mut tally = Tally::new(2, Duration::from_secs(1));
        tally.add(&record(0, 500, answer(200, Some(2))));
        tally.add(&record(1, 700, answer(503, Some(0))));
        tally.add(&record(1, 100, Outcome::Error(ErrorKind::Timeout)));
        tally.add(&record(1, 100, Outcome::Error(ErrorKind::LocalLimit)));
        assert_eq!((tally.slots[0].arrivals, tally.slots[0].errors, tally.slots[0].answers), (4, 2, 0));
        assert_eq!((tally.slots[1].answers, tally.slots[1].refusals), (1, 1));
        assert_eq!(tally.by_status[&200], Answers { count: 1, bytes: 100 });
        assert_eq!((tally.status(200), tally.status(503), tally.answers()), (1, 1, 2));
        assert_eq!((tally.server_errors(), tally.errors_of(ErrorKind::LocalLimit)), (1, 1));
        assert_eq!(tally.by_client, [1, 0]);
        assert_eq!((tally.latency.count(), tally.requests), (1, 4));
    }

    #[test]
    fn level_changes_are_counted_once_a_period_and_a_first_level_is_none() {
        let mut tally = Tally::new(3, Duration::from_secs(1));
        let add = |tally: &mut Tally, client, level| tally.add(&record(client, 0, answer(200, Some(level))));
        add(&mut tally, 0, 2);
        add(&mut tally, 1, 2);
        assert_eq!(tally.mark_period(), LevelChanges { seen: 2, changed: 0 });
        add(&mut tally, 0, 1);
        add(&mut tally, 0, 2); // there and back: no change at the mark
        add(&mut tally, 1, 1);
        add(&mut tally, 2, 1);
        assert_eq!(tally.mark_period(), LevelChanges { seen: 3, changed: 1 });
        assert_eq!(tally.mark_period(), LevelChanges::default());
    }
}
