//! Every order in which the steps of a thread and of two posters can follow each other. Each step holds the mailbox's lock
//! from beginning to end, so that these are all orders there are.

use super::*;
use std::sync::Arc;
use std::task::Wake;

/// A thread's runtime, as far as sleeping goes.
#[derive(Default)]
struct Thread {
    woken: AtomicBool,
    wakes: AtomicUsize,
}

impl Wake for Thread {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Relaxed);
        self.wakes.fetch_add(1, Relaxed);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum OrderStep {
    Thread,
    Post,
}

struct World {
    mailbox: Mailbox,
    thread: Arc<Thread>,
    sleeps: bool,
    taken: usize,
}

impl World {
    fn new() -> Self {
        let thread = Arc::new(Thread::default());
        // The thread reads its mailbox once when it starts.
        thread.woken.store(true, Relaxed);
        let mailbox = Mailbox::default();
        mailbox.wake_up();
        World { mailbox, thread, sleeps: false, taken: 0 }
    }

    /// Runs the runtime's next step. False if the thread sleeps on.
    fn run(&mut self) -> bool {
        if self.sleeps {
            if !self.thread.woken.load(Relaxed) {
                return false;
            }
            self.mailbox.wake_up();
            self.sleeps = false;
        } else if self.thread.woken.swap(false, Relaxed) {
            let waker = Waker::from(self.thread.clone());
            let mut messages = Vec::new();
            let mut context = Context::from_waker(&waker);
            while self.mailbox.poll_take(&mut context, &mut messages).is_ready() {
                self.taken += messages.drain(..).count();
            }
        } else {
            self.mailbox.fall_asleep();
            self.sleeps = true;
        }
        true
    }

    fn step(&mut self, step: OrderStep) {
        match step {
            OrderStep::Thread => {
                self.run();
            }
            OrderStep::Post => self.mailbox.post(Message::EndIdle { lacks_descriptor: false }),
        }
    }
}

/// Calls `check` with every order of `left` and `thread` steps of the thread.
fn orders(
    so_far: &mut Vec<OrderStep>,
    left: &[OrderStep],
    thread: usize,
    check: &mut impl FnMut(&[OrderStep]),
) {
    if left.is_empty() && thread == 0 {
        return check(so_far);
    }
    for (place, step) in left.iter().enumerate() {
        let mut rest = left.to_vec();
        rest.remove(place);
        so_far.push(*step);
        orders(so_far, &rest, thread, check);
        so_far.pop();
    }
    if thread > 0 {
        so_far.push(OrderStep::Thread);
        orders(so_far, left, thread - 1, check);
        so_far.pop();
    }
}

#[test]
fn nothing_is_left_behind_in_any_order() {
    let mut tried = 0;
    orders(&mut Vec::new(), &[OrderStep::Post; 2], 7, &mut |order| {
        let mut world = World::new();
        order.iter().for_each(|step| world.step(*step));
        while world.run() {}
        assert_eq!(world.taken, 2, "{order:?}");
        tried += 1;
    });
    assert_eq!(tried, 72);
}

#[test]
fn a_thread_is_woken_once_and_only_while_it_sleeps() {
    let mut world = World::new();
    world.run();
    (0..3).for_each(|_| world.step(OrderStep::Post));
    assert_eq!(world.thread.wakes.load(Relaxed), 0);
    world.mailbox.remind();
    assert_eq!(world.thread.wakes.load(Relaxed), 1);
    while world.run() {}
    (0..3).for_each(|_| world.step(OrderStep::Post));
    assert_eq!((world.taken, world.thread.wakes.load(Relaxed)), (3, 2));
    while world.run() {}
    assert_eq!(world.taken, 6);
}

/// A runtime that does not report when it sleeps.
#[test]
fn a_thread_that_never_says_that_it_is_awake_is_woken() {
    let thread = Arc::new(Thread::default());
    let waker = Waker::from(thread.clone());
    let mailbox = Mailbox::default();
    assert!(mailbox.poll_take(&mut Context::from_waker(&waker), &mut Vec::new()).is_pending());
    mailbox.post(Message::Stop);
    assert_eq!(thread.wakes.load(Relaxed), 1);
}
