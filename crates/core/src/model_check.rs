//! What threads share, under every interleaving that loom can make. The gate: no wake-up is lost, no slot is leaked or
//! given twice. The exchange: who meets a request of a new generation knows that generation.
//!
//! `make model-check` runs it (RUSTFLAGS="--cfg loom").

use crate::exchange::{Exchange, Held};
use crate::gate::{Entry, Gate};
use crate::queue::{Rank, Standing, Waiting};
use crate::time::Instant;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

const LIMIT: u32 = 1;
const NOW: Instant = Instant::ZERO;

fn waiting() -> Waiting {
    let standing = Standing::Ordinary;
    Waiting {
        token: Default::default(),
        class: 0,
        client: 0,
        standing,
        rank: Rank::ordinary(1, None),
        arrived: NOW,
        work: None,
        latest: Instant::FAR,
    }
}

/// Arrives as `Lane::arrive` does; returns whether it was started at once.
fn arrive(gate: &Gate, started: &AtomicU32) -> bool {
    if gate.enter(NOW, LIMIT).is_some() {
        return true;
    }
    match gate.enter_or_wait(NOW, LIMIT, 10, waiting()) {
        Entry::Entered(_) => true,
        Entry::Overflow => panic!("there is room to wait"),
        Entry::Waits { .. } => {
            dispatch(gate, started);
            false
        }
    }
}

fn dispatch(gate: &Gate, started: &AtomicU32) {
    gate.dispatch(NOW, LIMIT, |_, _| {
        started.fetch_add(1, Ordering::Relaxed);
    });
}

/// Leaves as `Lane::release` does.
fn leave(gate: &Gate, started: &AtomicU32) {
    if gate.leave(NOW).waits {
        dispatch(gate, started);
    }
}

#[test]
fn a_departure_beside_an_arrival_loses_no_wake_up() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(1));
        let started = Arc::new(AtomicU32::new(0));
        assert!(arrive(&gate, &started));
        let other = {
            let (gate, started) = (gate.clone(), started.clone());
            thread::spawn(move || arrive(&gate, &started))
        };
        leave(&gate, &started);
        let at_once = other.join().unwrap();
        // Started at once or by a dispatch: never left behind with the gate empty.
        assert_eq!(u32::from(at_once) + started.load(Ordering::Relaxed), 1);
        assert_eq!(gate.in_service(), 1);
        leave(&gate, &started);
        assert_eq!(gate.in_service(), 0);
    });
}

#[test]
fn two_arrivals_share_one_slot() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(1));
        let started = Arc::new(AtomicU32::new(0));
        let threads = [0, 1].map(|_| {
            let (gate, started) = (gate.clone(), started.clone());
            thread::spawn(move || arrive(&gate, &started))
        });
        let at_once: u32 = threads.into_iter().map(|t| u32::from(t.join().unwrap())).sum();
        assert_eq!(at_once, 1, "one slot");
        assert_eq!(gate.in_service(), 1);
        leave(&gate, &started);
        assert_eq!(started.load(Ordering::Relaxed), 1, "the slot is handed on");
        leave(&gate, &started);
        assert_eq!(gate.in_service(), 0);
    });
}

#[test]
fn a_client_that_leaves_while_it_is_started_is_one_or_the_other() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(1));
        let started = Arc::new(AtomicU32::new(0));
        assert!(arrive(&gate, &started));
        let Entry::Waits { ticket, .. } = gate.enter_or_wait(NOW, LIMIT, 10, waiting()) else {
            panic!("full")
        };
        let leaver = {
            let gate = gate.clone();
            thread::spawn(move || gate.cancel(ticket))
        };
        leave(&gate, &started);
        let cancelled = leaver.join().unwrap();
        let started_it = started.load(Ordering::Relaxed) == 1;
        assert!(cancelled != started_it);
        assert_eq!(gate.in_service(), u32::from(started_it));
    });
}

/// Three actors: one leaves, one arrives, one gives up waiting. The queue may be emptied under the *waits* bit.
#[test]
fn an_arrival_beside_a_departure_and_a_cancel() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(1));
        let started = Arc::new(AtomicU32::new(0));
        assert!(arrive(&gate, &started));
        let Entry::Waits { ticket, .. } = gate.enter_or_wait(NOW, LIMIT, 10, waiting()) else {
            panic!("full")
        };
        let canceller = {
            let gate = gate.clone();
            thread::spawn(move || u32::from(gate.cancel(ticket)))
        };
        let arriver = {
            let (gate, started) = (gate.clone(), started.clone());
            thread::spawn(move || u32::from(arrive(&gate, &started)))
        };
        leave(&gate, &started);
        let (cancelled, at_once) = (canceller.join().unwrap(), arriver.join().unwrap());
        // The slot is held by whoever got it; the other, if it did not give up, is started when that one leaves.
        let mut ended = cancelled;
        while gate.in_service() > 0 {
            assert_eq!(gate.in_service(), 1);
            leave(&gate, &started);
            ended += 1;
        }
        assert_eq!(ended, 2, "both came to an end");
        assert_eq!(started.load(Ordering::Relaxed) + at_once + cancelled, 2);
    });
}

/// A reload beside two threads: one takes up the new class at once and waits with it, the other starts who waits.
#[test]
fn who_starts_a_request_of_a_new_class_knows_the_class() {
    loom::model(|| {
        // The value is the number of classes.
        let exchange = alloc::sync::Arc::new(Exchange::new(alloc::sync::Arc::new(1_u16)));
        let gate = Arc::new(Gate::new(2));
        assert!(gate.enter(NOW, LIMIT).is_some());
        let [arriving, starting] = [0, 1].map(|_| Held::new(exchange.clone()));
        let arriver = {
            let gate = gate.clone();
            thread::spawn(move || {
                let held = if arriving.is_current() { arriving } else { arriving.renewed() };
                let class = *held - 1;
                let _ = gate.enter_or_wait(NOW, LIMIT, 10, Waiting { class, ..waiting() });
            })
        };
        let starter = {
            let gate = gate.clone();
            thread::spawn(move || {
                gate.leave(NOW);
                gate.dispatch(NOW, LIMIT, |waiting, _| {
                    let known = if starting.is_current() { *starting } else { *starting.renewed() };
                    assert!(waiting.class < known, "a class that nobody told of");
                });
            })
        };
        exchange.publish(alloc::sync::Arc::new(2));
        arriver.join().unwrap();
        starter.join().unwrap();
    });
}
