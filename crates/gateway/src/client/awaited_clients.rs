//! Clients that the gateway waits for, and the memory of their connections meanwhile.
//!
//! A client that does not send the rest of its head or body, or does not take its response, holds memory for as long as it may
//! take. All such clients of a thread together have a bound in bytes: those with unfinished heads one, all others another.
//! Beyond the bound the client that is waited for the longest is given up: an honest client goes on within moments, so the
//! longest wait is the least likely to be an honest client's. The same holds for clients with bytes in files, once room in
//! files is scarce. What a connection of HTTP/2 counts for is in `request/http2_connection.rs`.
//!
//! A client that moves [`RENEWING`] bytes goes to the end of the order; a byte now and then buys no time.

use super::slots::Slot;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// How many bytes a client must move to go to the end of the order.
const RENEWING: u64 = 16 * 1024;

/// The clients of a thread that are waited for.
#[derive(Debug, Default)]
pub(crate) struct AwaitedClients {
    /// The clients in the order in which the wait for them began.
    clients: BTreeMap<u64, Waited>,
    begun: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Waited {
    slot: Rc<Slot>,
    bytes: usize,
}

impl AwaitedClients {
    /// How many bytes they hold.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn begin(&mut self, slot: &Rc<Slot>) -> u64 {
        self.begun += 1;
        self.clients.insert(self.begun, Waited { slot: slot.clone(), bytes: 0 });
        self.begun
    }

    fn remove(&mut self, number: u64) {
        self.bytes -= self.clients.remove(&number).map_or(0, |client| client.bytes);
    }

    /// Gives up the client whose wait began first.
    fn give_up_first(&mut self) {
        if let Some((_, first)) = self.clients.pop_first() {
            self.bytes -= first.bytes;
            first.slot.expire();
        }
    }

    /// Gives up the clients whose waits began first until the others hold at most `most` bytes. The last client stays.
    fn make_room(&mut self, most: usize) {
        while self.bytes > most && self.clients.len() > 1 {
            self.give_up_first();
        }
    }
}

/// Gives up the client whose bytes have been in a file the longest while it stood, so that others find room in files. The last
/// client stays.
pub(crate) fn make_room_in_files(clients: &RefCell<AwaitedClients>) {
    let mut clients = clients.borrow_mut();
    if clients.clients.len() > 1 {
        clients.give_up_first();
    }
}

/// A client's places among the clients that are waited for, if it has any.
#[derive(Debug, Default)]
pub(crate) struct AwaitedClient {
    place: Option<AwaitedPlace>,
    /// The client's place among those whose bytes are in files.
    filed: Option<AwaitedPlace>,
    moved: u64,
}

#[derive(Debug)]
struct AwaitedPlace {
    clients: Rc<RefCell<AwaitedClients>>,
    number: u64,
}

impl AwaitedClient {
    /// Notes that the client which waits in `slot` holds `bytes` now. All of `clients` together may hold `most`.
    pub(crate) fn hold(
        &mut self,
        clients: &Rc<RefCell<AwaitedClients>>,
        slot: &Rc<Slot>,
        bytes: usize,
        most: usize,
    ) {
        let mut all = clients.borrow_mut();
        let moved = &mut self.moved;
        let place = self.place.get_or_insert_with(|| {
            *moved = 0;
            AwaitedPlace { clients: clients.clone(), number: all.begin(slot) }
        });
        let Some(client) = all.clients.get_mut(&place.number) else { return };
        let before = std::mem::replace(&mut client.bytes, bytes);
        all.bytes = all.bytes - before + bytes;
        all.make_room(most);
    }

    /// Notes that bytes of the client which waits in `slot` are in a file. `clients` are all clients with bytes in files.
    pub(crate) fn hold_file(&mut self, clients: &Rc<RefCell<AwaitedClients>>, slot: &Rc<Slot>) {
        self.filed.get_or_insert_with(|| {
            let number = clients.borrow_mut().begin(slot);
            AwaitedPlace { clients: clients.clone(), number }
        });
    }

    /// Notes that the client moved `count` bytes.
    pub(crate) fn moved(&mut self, count: u64) {
        self.moved += count;
        if self.moved >= RENEWING {
            self.end();
        }
    }

    /// Ends the wait for the client.
    pub(crate) fn end(&mut self) {
        (self.place, self.filed) = (None, None);
    }

    /// Whether the client was given up to make room for others.
    pub(crate) fn is_given_up(&self) -> bool {
        let is_there = |place: &AwaitedPlace| place.clients.borrow().clients.contains_key(&place.number);
        self.place.iter().chain(&self.filed).any(|place| !is_there(place))
    }
}

impl Drop for AwaitedPlace {
    fn drop(&mut self) {
        self.clients.borrow_mut().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::slots::Slots;

    fn expired(slots: &[Rc<Slot>]) -> Vec<bool> {
        slots.iter().map(|slot| slot.expired()).collect()
    }

    #[test]
    fn the_first_is_given_up_for_the_last() {
        let (mut slots, all) = (Slots::default(), Rc::default());
        let slots: Vec<Rc<Slot>> = (0..4).map(|_| slots.add()).collect();
        let mut awaited: Vec<AwaitedClient> = (0..3).map(|_| AwaitedClient::default()).collect();
        let mut hold = |at: usize, bytes| AwaitedClient::hold(&mut awaited[at], &all, &slots[at], bytes, 30);
        (0..3).for_each(|at| hold(at, 10));
        assert_eq!(expired(&slots), [false; 4], "thirty bytes fit");
        hold(1, 20);
        assert_eq!(expired(&slots), [true, false, false, false]);
        assert_eq!(all.borrow().bytes(), 30);
        // A client that was given up no longer counts, whatever its connection still does.
        hold(0, 50);
        assert_eq!(all.borrow().bytes(), 30);
        assert!(awaited[0].is_given_up() && !awaited[1].is_given_up());
        let mut large = AwaitedClient::default();
        large.hold(&all, &slots[3], 40, 30);
        assert_eq!(expired(&slots), [true, true, true, false]);
        drop(awaited);
        assert_eq!(all.borrow().bytes(), 40, "the last one stays, however much it holds");
        large.end();
        assert_eq!(all.borrow().bytes(), 0);
        assert!(!large.is_given_up());
    }

    #[test]
    fn who_moves_enough_is_the_last_again() {
        let (mut slots, all) = (Slots::default(), Rc::default());
        let slots: Vec<Rc<Slot>> = (0..3).map(|_| slots.add()).collect();
        let mut awaited: Vec<AwaitedClient> = (0..3).map(|_| AwaitedClient::default()).collect();
        for at in [0, 1] {
            awaited[at].hold(&all, &slots[at], 10, 20);
        }
        awaited[0].moved(RENEWING);
        awaited[0].hold(&all, &slots[0], 10, 20);
        awaited[1].moved(RENEWING - 1);
        awaited[1].hold(&all, &slots[1], 10, 20);
        awaited[2].hold(&all, &slots[2], 10, 20);
        assert_eq!(expired(&slots), [false, true, false]);
    }
}
