//! How many connections each client has open, over all threads, if the configuration bounds them.
//!
//! A client is an IPv4 address or the first 64 bits of an IPv6 address ([`client_address`]). A client without a connection has
//! no entry, so that the table never has more entries than there are connections. The table is used when a connection comes and
//! when it ends, never for a request.

use crate::sync::lock;
use plimsoll_core::request::client_address;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

const SHARDS: usize = 16;

/// The connections of all clients, and the number of connections that were turned away.
#[derive(Debug, Default)]
pub(crate) struct ClientConnections {
    /// A client's shard is chosen by a hash of its own, with a key that no client knows.
    hasher: RandomState,
    shards: [Mutex<HashMap<IpAddr, u32>>; SHARDS],
    turned_away: [AtomicU64; TurnedAway::ALL.len()],
}

/// Why a connection was closed when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TurnedAway {
    /// The client had as many connections as one client may have.
    ConnectionsPerClient,
    /// The client would be rejected for the load.
    Overload,
    /// The client was told so a moment ago, and the system has reset the connection (`listen/kernel_shed`).
    Kernel,
}

/// How many connections were turned away, by reason, in the order of [`TurnedAway::ALL`].
pub(crate) type TurnedAwayCounts = [(TurnedAway, u64); TurnedAway::ALL.len()];

impl TurnedAway {
    pub(crate) const ALL: [TurnedAway; 3] =
        [TurnedAway::ConnectionsPerClient, TurnedAway::Overload, TurnedAway::Kernel];

    /// The word for metrics and status.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            TurnedAway::ConnectionsPerClient => "connections_per_client",
            TurnedAway::Overload => "overload",
            TurnedAway::Kernel => "kernel",
        }
    }
}

/// The client has as many connections as one client may have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// A connection's place in its client's count, given back on drop.
#[derive(Debug)]
pub(crate) struct ClientPlace {
    clients: Arc<ClientConnections>,
    client: IpAddr,
}

impl ClientConnections {
    /// Counts one more connection of a client that may have `most`; counts nothing if there is no bound.
    pub(crate) fn enter(
        self: &Arc<Self>,
        client: IpAddr,
        most: Option<u32>,
    ) -> Result<Option<ClientPlace>, TooMany> {
        let Some(most) = most else { return Ok(None) };
        let client = client_address(client);
        let mut shard = lock(self.shard(client));
        let count = shard.entry(client).or_insert(0);
        if *count >= most {
            // The bound is at least one, so the client has other connections, and no empty entry is left behind.
            drop(shard);
            self.count(TurnedAway::ConnectionsPerClient);
            return Err(TooMany);
        }
        *count += 1;
        Ok(Some(ClientPlace { clients: self.clone(), client }))
    }

    fn shard(&self, client: IpAddr) -> &Mutex<HashMap<IpAddr, u32>> {
        &self.shards[self.hasher.hash_one(client) as usize % SHARDS]
    }

    pub(crate) fn count(&self, why: TurnedAway) {
        self.count_many(why, 1);
    }

    pub(crate) fn count_many(&self, why: TurnedAway, connections: u64) {
        self.turned_away[why as usize].fetch_add(connections, Relaxed);
    }

    pub(crate) fn turned_away(&self) -> TurnedAwayCounts {
        TurnedAway::ALL.map(|why| (why, self.turned_away[why as usize].load(Relaxed)))
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut shard = lock(self.clients.shard(self.client));
        if let Some(count) = shard.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                shard.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(clients: &Arc<ClientConnections>, client: &str) -> Result<Option<ClientPlace>, TooMany> {
        clients.enter(client.parse().expect("an address"), Some(2))
    }

    fn entries(clients: &ClientConnections) -> usize {
        clients.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    #[test]
    fn a_client_has_no_more_than_it_may_and_gives_each_back() {
        let clients = Arc::new(ClientConnections::default());
        for round in 0..1000 {
            let held = [enter(&clients, "10.0.0.1"), enter(&clients, "::ffff:10.0.0.1")];
            assert!(held.iter().all(|place| matches!(place, Ok(Some(_)))), "{round}");
            assert_eq!(enter(&clients, "10.0.0.1").err(), Some(TooMany));
            assert!(enter(&clients, "10.0.0.2").is_ok(), "another client is not bounded by it");
        }
        assert_eq!(entries(&clients), 0, "nothing is kept of clients that have left");
        let too_many = TurnedAway::ConnectionsPerClient;
        assert_eq!(
            clients.turned_away(),
            [(too_many, 1000), (TurnedAway::Overload, 0), (TurnedAway::Kernel, 0)]
        );
    }

    #[test]
    fn addresses_of_one_household_are_one_client() {
        let clients = Arc::new(ClientConnections::default());
        let _held = [enter(&clients, "2001:db8::1"), enter(&clients, "2001:db8::2")];
        assert!(enter(&clients, "2001:db8::3").is_err());
        assert!(enter(&clients, "2001:db8:0:1::1").is_ok());
    }

    #[test]
    fn without_a_bound_nothing_is_counted() {
        let clients = Arc::new(ClientConnections::default());
        let place = clients.enter("10.0.0.1".parse().expect("an address"), None);
        assert!(matches!(place, Ok(None)));
        assert_eq!(entries(&clients), 0);
    }

    /// Threads that enter and leave at the same time never admit more than the bound, and leave nothing behind.
    #[test]
    fn threads_share_the_bound() {
        let clients = Arc::new(ClientConnections::default());
        let open = Arc::new(AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if let Ok(place) = enter(&clients, "10.0.0.1") {
                            assert!(open.fetch_add(1, Relaxed) < 2);
                            open.fetch_sub(1, Relaxed);
                            drop(place);
                        }
                    }
                });
            }
        });
        assert_eq!(entries(&clients), 0);
    }
}
