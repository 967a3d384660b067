//! Which server of an upstream a request goes to.
//!
//! 1. A server that is out of use and whose time is over: one request tries it, and no other until that is known.
//! 2. The one of two servers in use that has fewer requests under way. The first of the two goes round, the other is drawn. Two
//!    choices keep servers nearly as even as all would, and do not send everybody to the one that has just become free.
//!    A server that starts is passed over by all but a growing part of the turns, so that a cold one is not flooded: with
//!    few requests under way it would be everybody's choice.
//! 3. If all are out of use, all are used, as in 2. Requests are spread and not refused: what took the servers out may be over,
//!    or be the requests' own fault.
//!
//! Nothing here takes a lock or allocates.

use super::server::Server;
use plimsoll_core::random::Random;
use plimsoll_core::time::{Duration, Instant};
use std::sync::Arc;

/// The servers that one request has tried, by their numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tried {
    numbers: [usize; Tried::MOST],
    count: usize,
}

impl Tried {
    /// The most servers to which one request may try to connect.
    pub(super) const MOST: usize = 3;

    pub(super) fn add(&mut self, number: usize) {
        if let Some(place) = self.numbers.get_mut(self.count) {
            *place = number;
            self.count += 1;
        }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn is_full(&self) -> bool {
        self.count == Tried::MOST
    }

    fn has(&self, number: usize) -> bool {
        self.numbers[..self.count].contains(&number)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ServerChoice {
    pub number: usize,
    /// Whether the request tries a server that is out of use.
    pub is_trial: bool,
}

/// The server to try next, not in `tried`; `None` if there is no other. `turn` counts choices; a trial is known after
/// `patience`.
pub(super) fn choose(
    servers: &[Arc<Server>],
    now: Instant,
    tried: &Tried,
    turn: usize,
    patience: Duration,
) -> Option<ServerChoice> {
    let count = servers.len();
    let untried = || (0..count).filter(|number| !tried.has(*number));
    let mut out = untried().filter(|number| servers[*number].is_out());
    if let Some(number) = out.find(|number| servers[*number].claim_trial(now, patience)) {
        return Some(ServerChoice { number, is_trial: true });
    }
    let in_use = |number: &usize| !servers[*number].is_out();
    let wants = |number: &usize| {
        let weight = servers[*number].weight(now);
        weight >= 1.0 || drawn(turn, *number) < weight
    };
    let chosen = two_choices(servers, turn, || untried().filter(in_use).filter(wants))
        // All servers in use are starting, and all pass this turn.
        .or_else(|| two_choices(servers, turn, || untried().filter(in_use)))
        .or_else(|| two_choices(servers, turn, untried))?;
    Some(ServerChoice { number: chosen, is_trial: false })
}

/// The candidate with fewer requests under way out of two: the first is taken in turn, the other is drawn.
fn two_choices<I: Iterator<Item = usize>>(
    servers: &[Arc<Server>],
    turn: usize,
    candidates: impl Fn() -> I,
) -> Option<usize> {
    // Turns count candidates only: if they counted all servers, the one after a server out of use would get that one's turns
    // too.
    let first = candidates().nth(turn.checked_rem(candidates().count())?)?;
    let others = || candidates().filter(|number| *number != first);
    let drawn = Random::new(turn as u64).below(others().count().max(1) as u64) as usize;
    let second = others().nth(drawn).unwrap_or(first);
    Some(if servers[second].busy() < servers[first].busy() { second } else { first })
}

/// A pseudo-random number in [0, 1) for a turn and a server.
fn drawn(turn: usize, number: usize) -> f64 {
    // The number differs from the one by which the second choice is drawn.
    Random::new(turn as u64 ^ (number as u64 + 1) << 32).uniform()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    const PATIENCE: Duration = Duration::from_secs(2);

    fn at(milliseconds: u64) -> Instant {
        Instant::from_nanos(milliseconds * 1_000_000)
    }

    fn servers(count: u16) -> Vec<Arc<Server>> {
        let new = |port| Arc::new(Server::new(SocketAddr::from(([127, 0, 0, 1], port)).into(), None));
        (1..=count).map(new).collect()
    }

    fn chosen(servers: &[Arc<Server>], now: Instant, turn: usize) -> usize {
        choose(servers, now, &Tried::default(), turn, PATIENCE).expect("there are some").number
    }

    #[test]
    fn the_one_in_use_with_fewer_requests_is_chosen_and_each_is_tried_once() {
        let servers = servers(2);
        servers[0].begin_request();
        assert_eq!([0, 1].map(|turn| chosen(&servers, at(0), turn)), [1; 2]);
        servers[1].eject(at(500));
        assert_eq!([0, 1].map(|turn| chosen(&servers, at(0), turn)), [0; 2]);
        let mut tried = Tried::default();
        tried.add(0);
        let next = choose(&servers, at(0), &tried, 0, PATIENCE);
        assert_eq!(
            next,
            Some(ServerChoice { number: 1, is_trial: false }),
            "it is out, and there is no other"
        );
        tried.add(1);
        assert_eq!(choose(&servers, at(0), &tried, 0, PATIENCE), None);
    }

    #[test]
    fn one_request_tries_a_server_whose_time_is_over() {
        let servers = servers(2);
        servers[0].eject(at(500));
        let trial = Some(ServerChoice { number: 0, is_trial: true });
        assert_eq!(choose(&servers, at(500), &Tried::default(), 1, PATIENCE), trial);
        assert!(
            (0..100).all(|turn| chosen(&servers, at(2499), turn) == 1),
            "what comes of that is not yet known"
        );
        assert_eq!(choose(&servers, at(2500), &Tried::default(), 1, PATIENCE), trial, "it never came back");
    }

    #[test]
    fn the_turns_of_a_server_that_is_out_are_shared_by_all_others() {
        let servers = servers(4);
        servers[1].eject(at(500));
        let mut counts = [0; 4];
        (0..300).for_each(|turn| counts[chosen(&servers, at(0), turn)] += 1);
        assert_eq!(counts, [100, 0, 100, 100]);
    }

    /// A server that has just started has no request under way, and every comparison would choose it.
    #[test]
    fn the_share_of_a_server_that_starts_grows() {
        let share = |now| {
            let servers = servers(4);
            servers[0].start(at(0), Duration::from_secs(10));
            servers[1..].iter().for_each(|server| server.begin_request());
            (0..40_000).filter(|turn| chosen(&servers, now, *turn) == 0).count() as f64 / 40_000.0
        };
        let shares = [100, 2500, 5000, 10_000].map(|now| share(at(now)));
        // One of four servers is among two choices with probability one half, and is then taken with the probability of its
        // weight.
        for (share, weight) in shares.into_iter().zip([0.1, 0.25, 0.5, 1.0]) {
            let most = weight / 2.0;
            assert!(share > 0.7 * most && share < 1.2 * most, "{shares:?}");
        }
        let lone = servers(1);
        lone[0].start(at(0), Duration::from_secs(10));
        assert!((0..100).all(|turn| chosen(&lone, at(1), turn) == 0), "there is no other to spare it");
    }

    /// One of eight servers takes ten times as long. Two choices keep its requests few, while serving in turn would give it as
    /// many requests as the others, each under way ten times as long.
    #[test]
    fn two_choices_keep_a_slow_server_from_filling_up() {
        let most_at_slow = |choose: &dyn Fn(&[Arc<Server>], usize) -> usize| {
            let servers = servers(8);
            let mut ends: Vec<(u64, usize)> = Vec::new();
            let mut most = 0;
            for turn in 0..20_000_u64 {
                // A request arrives each millisecond; a service takes 4 ms at seven of the servers and 40 ms at the first one.
                let now = turn;
                ends.retain(|(end, server)| {
                    let over = *end <= now;
                    if over {
                        servers[*server].end_request();
                    }
                    !over
                });
                let server = choose(&servers, turn as usize);
                servers[server].begin_request();
                ends.push((now + if server == 0 { 40 } else { 4 }, server));
                most = most.max(servers[0].busy());
            }
            most
        };
        let two = most_at_slow(&|servers, turn| chosen(servers, at(0), turn));
        let in_turn = most_at_slow(&|servers, turn| turn % servers.len());
        assert!(two <= 3, "{two} at the slow server");
        assert!(in_turn >= 5, "in turn only {in_turn}: nothing is shown");
    }
}
