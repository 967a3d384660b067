//! The fast path allocates nothing: a counting allocator shows it.

#[path = "engine/request.rs"]
mod request;

use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_core::request::{Arrival, Outcome, Service, Token, Verdicts};
use plimsoll_core::time::Instant;
use plimsoll_core::{Engine, Lane};
use request::get;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[expect(unsafe_code, reason = "an allocator cannot be counted otherwise; it only forwards")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_decision_allocates_nothing_nor_does_taking_up_a_reload() {
    let promises = Promises::of(Plant::new("app", 8), Site::new("site", &["full"]));
    let (mut engine, mut lanes) = Engine::new(&promises, 1, 1).expect("valid promises");
    decide(&mut lanes[0]);
    let mut more = promises.clone();
    more.sites.insert(0, Site { hosts: vec!["other".to_owned()], ..Site::new("other", &["full"]) });
    more.plants.push(Plant::new("second", 1));
    engine.reload(&more).expect("valid promises");
    decide(&mut lanes[0]);
    assert_eq!(engine.status().classes[0].counts.outcomes[0], 2000, "and it counts where it did");

    more.sites[1].deadline = Some(core::time::Duration::from_secs(1));
    engine.reload(&more).expect("valid promises");
    decide(&mut lanes[0]);

    let before = ALLOCATIONS.with(Cell::get);
    drop(Box::new(1));
    assert_eq!(ALLOCATIONS.with(Cell::get), before + 1, "the counter counts");
}

fn decide(lane: &mut Lane) {
    let mut verdicts = Verdicts::new();
    let before = ALLOCATIONS.with(Cell::get);
    for i in 0..1000 {
        let now = Instant::from_nanos(i);
        let target = lane.classify(&get("/", i as u32)).expect("any host");
        if let Arrival::Serve(mut permit) = lane.arrive(now, target, Token(i), &mut verdicts) {
            let service = Service { response_bytes: 1024, representative: true, cost: None };
            lane.release(now, &mut permit, service, &mut verdicts);
            lane.depart(now, permit, Outcome::Completed, &mut verdicts);
        }
    }
    assert_eq!(ALLOCATIONS.with(Cell::get), before);
}
