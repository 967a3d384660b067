//! The fast path allocates nothing: counted, not believed.

use plimsoll_core::Engine;
use plimsoll_core::door::{Arrival, Outcome, RequestView, Service, Token, Verdicts};
use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_core::time::Instant;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};

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

struct Request(u32);

impl RequestView for Request {
    fn method(&self) -> &str {
        "GET"
    }
    fn host(&self) -> &str {
        "h"
    }
    fn path(&self) -> &str {
        "/"
    }
    fn header(&self, _: &str) -> Option<&str> {
        None
    }
    fn client(&self) -> IpAddr {
        IpAddr::V4(Ipv4Addr::from_bits(self.0))
    }
}

#[test]
fn a_decision_allocates_nothing() {
    let promises = Promises::of(Plant::new("app", 8), Site::new("site", &["full"]));
    let (_engine, mut lanes) = Engine::new(&promises, 1, 1).expect("valid promises");
    let mut verdicts = Verdicts::new();

    let before = ALLOCATIONS.with(Cell::get);
    for i in 0..1000 {
        let now = Instant::from_nanos(i);
        let target = lanes[0].classify(&Request(i as u32)).expect("any host");
        if let Arrival::Serve(mut permit) = lanes[0].arrive(now, target, Token(i), &mut verdicts) {
            let service = Service { response_bytes: 1024, representative: true };
            lanes[0].release(now, &mut permit, service, &mut verdicts);
            lanes[0].depart(now, permit, Outcome::Completed, &mut verdicts);
        }
    }
    assert_eq!(ALLOCATIONS.with(Cell::get), before);
    drop(Box::new(1));
    assert_eq!(ALLOCATIONS.with(Cell::get), before + 1, "the counter counts");
}
