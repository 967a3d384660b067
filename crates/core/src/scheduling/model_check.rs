//! The gate, its queue and its quotas, under every interleaving of threads that loom can make.
//!
//! The gate loses no wake-up, leaks no slot, gives no slot twice, and lets no request pass a waiting one, also while quotas
//! move and classes are held. A thread that meets a request of a new generation knows that generation.
//!
//! `make model-check` runs it (RUSTFLAGS="--cfg loom").

use crate::scheduling::gate::{Entry, Gate};
use crate::scheduling::queue::Waiting;
use crate::scheduling::quota::{Quota, TurnRule};
use crate::sync::published::{Published, Reader};
use crate::sync::shared::Shared;
use crate::time::{Duration, Instant};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

const LIMIT: u32 = 1;
const NOW: Instant = Instant::ZERO;

fn waiting() -> Waiting {
    Waiting::ordinary(0, NOW)
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
    gate.dispatch(NOW, (LIMIT, LIMIT), |_, _| {
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
        let gate = Arc::new(Gate::new(Shared::default(), 1));
        let started = Arc::new(AtomicU32::new(0));
        assert!(arrive(&gate, &started));
        let other = {
            let (gate, started) = (gate.clone(), started.clone());
            thread::spawn(move || arrive(&gate, &started))
        };
        leave(&gate, &started);
        let at_once = other.join().unwrap();
        // Each request was started at once or by a dispatch; none is left behind with the gate empty.
        assert_eq!(u32::from(at_once) + started.load(Ordering::Relaxed), 1);
        assert_eq!(gate.in_service(), 1);
        leave(&gate, &started);
        assert_eq!(gate.in_service(), 0);
    });
}

#[test]
fn two_arrivals_share_one_slot() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(Shared::default(), 1));
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
        let gate = Arc::new(Gate::new(Shared::default(), 1));
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

/// Three threads: one leaves, one arrives, one cancels. The queue may be emptied while the *waits* bit is set.
#[test]
fn an_arrival_beside_a_departure_and_a_cancel() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(Shared::default(), 1));
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
        // One request holds the slot; the other one, unless it was cancelled, starts when the first leaves.
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

/// A waiting request starts first, and one that arrives then is never started at once.
#[test]
fn no_request_passes_one_that_waits() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(Shared::default(), 1));
        let started = Arc::new(AtomicU32::new(0));
        assert!(arrive(&gate, &started));
        assert!(matches!(gate.enter_or_wait(NOW, LIMIT, 10, waiting()), Entry::Waits { .. }));
        // The newcomer arrives later, so that the test sees which of the two was started.
        let newcomer = {
            let gate = gate.clone();
            thread::spawn(move || {
                let at_once = gate.enter(NOW, LIMIT).is_some();
                let late = Waiting { arrived: LATER, ..waiting() };
                let waits =
                    !at_once && matches!(gate.enter_or_wait(NOW, LIMIT, 10, late), Entry::Waits { .. });
                gate.dispatch(NOW, (LIMIT, LIMIT), |waiting, _| {
                    assert_eq!(waiting.arrived, NOW, "the later request was first")
                });
                assert!(waits, "it passed a waiting request");
            })
        };
        if gate.leave(NOW).waits {
            gate.dispatch(NOW, (LIMIT, LIMIT), |waiting, _| {
                assert_eq!(waiting.arrived, NOW, "the later request was first")
            });
        }
        assert!(gate.in_service() <= LIMIT);
        newcomer.join().unwrap();
        assert_eq!(gate.in_service(), LIMIT, "the slot was handed on");
    });
}

/// A request that has waited too long is dropped or started, once.
#[test]
fn an_expiry_beside_a_departure_ends_a_wait_once() {
    loom::model(|| {
        let gate = Arc::new(Gate::new(Shared::default(), 1));
        let started = Arc::new(AtomicU32::new(0));
        assert!(arrive(&gate, &started));
        assert!(matches!(gate.enter_or_wait(NOW, LIMIT, 10, waiting()), Entry::Waits { .. }));
        let ticker = {
            let gate = gate.clone();
            thread::spawn(move || {
                let mut dropped = 0;
                gate.expire(LATER, Duration::from_nanos(1), |_| dropped += 1);
                dropped
            })
        };
        leave(&gate, &started);
        assert!(gate.in_service() <= LIMIT);
        let dropped = ticker.join().unwrap();
        assert_eq!(started.load(Ordering::Relaxed) + dropped, 1);
        assert_eq!(gate.in_service(), started.load(Ordering::Relaxed));
    });
}

const LATER: Instant = Instant::from_nanos(10);

/// A gate with a quota for class 1.
fn promised(turn: TurnRule) -> (Arc<Gate>, alloc::sync::Arc<Quota>) {
    let (gate, quota) = (Gate::new(Shared::default(), 1), alloc::sync::Arc::new(Quota::new(turn, None)));
    gate.promise(&[None, Some(quota.clone())]);
    (Arc::new(gate), quota)
}

fn wait(gate: &Gate, class: u16) {
    let entry = gate.enter_or_wait(NOW, LIMIT, 10, Waiting { class, ..waiting() });
    assert!(matches!(entry, Entry::Waits { .. }), "it is full");
}

/// Starts requests as `Lane::dispatch` does; returns their classes.
fn dispatch_promised(gate: &Gate, quota: &Quota, now: Instant) -> [u32; 2] {
    let mut started = [0; 2];
    gate.dispatch(now, (LIMIT, LIMIT), |waiting, change| {
        assert!(change.is_some_and(|change| change.after <= LIMIT), "more than there may be");
        if waiting.class == 1 {
            quota.enter();
        }
        started[usize::from(waiting.class)] += 1;
    });
    started
}

/// Releases a request of this class as `Lane::release` does.
fn leave_promised(gate: &Gate, quota: &Quota, class: usize) -> [u32; 2] {
    if class == 1 {
        quota.leave();
    }
    if gate.leave(NOW).waits { dispatch_promised(gate, quota, NOW) } else { [0; 2] }
}

/// `tick` moves the quota while one request leaves and another comes. Either request may have the turn, but each starts once,
/// one at a time, and the count of requests in service ends where it began.
#[test]
fn a_quota_that_moves_loses_no_request() {
    loom::model(|| {
        let (gate, quota) = promised(TurnRule::Quota);
        quota.set_workers(0.0);
        assert!(gate.enter(NOW, LIMIT).is_some());
        wait(&gate, 1);
        let ticker = {
            let quota = quota.clone();
            thread::spawn(move || quota.set_workers(1.0))
        };
        let arriver = {
            let (gate, quota) = (gate.clone(), quota.clone());
            thread::spawn(move || {
                assert!(gate.enter(NOW, LIMIT).is_none(), "it passed a waiting request");
                match gate.enter_or_wait(NOW, LIMIT, 10, waiting()) {
                    Entry::Waits { .. } => dispatch_promised(&gate, &quota, NOW),
                    _ => panic!("it does not wait"),
                }
            })
        };
        let here = leave_promised(&gate, &quota, 0);
        let there = arriver.join().unwrap();
        ticker.join().unwrap();
        let mut started = [here[0] + there[0], here[1] + there[1]];
        assert_eq!(started[0] + started[1], 1, "one slot");
        assert_eq!((gate.in_service(), quota.in_service()), (1, started[1]));
        // Requests leave one after another.
        while gate.in_service() > 0 {
            let class = usize::from(quota.in_service() == 1);
            let next = leave_promised(&gate, &quota, class);
            started = [started[0] + next[0], started[1] + next[1]];
        }
        assert_eq!((started, quota.in_service()), ([1, 1], 0));
    });
}

/// Two requests of a class leave at the same time while its promise is renewed: the count neither leaks nor falls below
/// zero.
#[test]
fn a_quota_counts_exactly_beside_others() {
    loom::model(|| {
        let quota = alloc::sync::Arc::new(Quota::new(TurnRule::Quota, None));
        quota.enter();
        let others = [true, false].map(|enters| {
            let quota = quota.clone();
            thread::spawn(move || {
                if enters {
                    quota.enter();
                }
                quota.leave();
            })
        });
        assert!(quota.in_service() <= 2);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(quota.in_service(), 0);
        quota.leave();
        assert_eq!(quota.in_service(), 0, "of a promise that was taken back and given again");
    });
}

/// A strict ratio holds a request beside an idle worker: no thread that leaves or arrives starts it before its time,
/// other requests pass it, and the waits bit stays set, so that `tick` comes for it.
#[test]
fn a_held_request_is_found_again_and_holds_up_no_other() {
    loom::model(|| {
        let (gate, quota) = promised(TurnRule::Weight { site: 0 });
        quota.set_hold(LATER.since(NOW));
        assert!(gate.enter(NOW, LIMIT).is_some());
        let held = {
            let (gate, quota) = (gate.clone(), quota.clone());
            // Arrives as `Lane::arrive` does in a class that is held: without a look at the room.
            thread::spawn(move || {
                let entry = gate.enter_or_wait(NOW, 0, 10, Waiting { class: 1, ..waiting() });
                assert!(matches!(entry, Entry::Waits { .. }));
                dispatch_promised(&gate, &quota, NOW)
            })
        };
        let mut here = leave_promised(&gate, &quota, 0);
        assert_eq!(here, [0, 0], "only the held request waits");
        let entered = gate.enter(NOW, LIMIT).is_some()
            || matches!(gate.enter_or_wait(NOW, LIMIT, 10, waiting()), Entry::Entered(_));
        if entered {
            here[0] += 1;
        } else {
            here = dispatch_promised(&gate, &quota, NOW);
        }
        let there = held.join().unwrap();
        let started = [here[0] + there[0], here[1] + there[1]];
        assert_eq!(started, [1, 0], "the other one alone");
        assert_eq!(gate.in_service(), 1);
        assert_eq!(leave_promised(&gate, &quota, 0), [0, 0], "it is held still");
        assert!(gate.is_waited_at());
        let due = gate.expire(NOW, Duration::MAX, |_| panic!("it may wait"));
        assert_eq!(due, LATER, "when tick must come");
        assert_eq!(dispatch_promised(&gate, &quota, LATER), [0, 1]);
        assert_eq!((gate.in_service(), gate.is_waited_at()), (1, false));
    });
}

/// A reload beside two threads: one takes up the new class at once and waits with it, the other starts the waiting
/// request.
#[test]
fn a_lane_that_starts_a_request_of_a_new_class_knows_the_class() {
    loom::model(|| {
        // The value is the number of classes.
        let exchange = alloc::sync::Arc::new(Published::new(alloc::sync::Arc::new(1_u16)));
        let gate = Arc::new(Gate::new(Shared::default(), 2));
        assert!(gate.enter(NOW, LIMIT).is_some());
        let [arriving, starting] = [0, 1].map(|_| Reader::new(exchange.clone()));
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
                gate.dispatch(NOW, (LIMIT, LIMIT), |waiting, _| {
                    let known = if starting.is_current() { *starting } else { *starting.renewed() };
                    assert!(waiting.class < known, "a class that the lane does not know");
                });
            })
        };
        exchange.publish(alloc::sync::Arc::new(2));
        arriver.join().unwrap();
        starter.join().unwrap();
    });
}
