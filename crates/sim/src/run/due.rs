//! The events that are due, and which of them is next.
//!
//! At equal instants the order is: plants, clients that leave or retry, the loops' tick, the end of a period, arrivals. The
//! tick is kept apart, because it recurs while all others stay where they are.

use plimsoll_core::time::Instant;

/// What is due next.
#[derive(Clone, Copy)]
pub(super) enum Next {
    Plant(usize),
    Client,
    Tick,
    Period,
    Stream(usize),
}

/// When each kind of event is due, except the tick; [`Instant::FAR`] for one that never is.
pub(super) struct Due {
    /// The first plant that is due.
    pub(super) plant: (Instant, usize),
    pub(super) client: Instant,
    /// The end of a period.
    pub(super) period: Instant,
    /// The first new request (not a retry), and its stream.
    pub(super) arrival: (Instant, usize),
}

impl Due {
    /// The next event; at equal instants the first in the order above.
    pub(super) fn next(&self, tick: Instant) -> (Instant, Next) {
        let (before, after) = (self.before_tick(), self.after_tick());
        if tick < before && tick <= after {
            (tick, Next::Tick)
        } else if after < before {
            let is_period = self.period <= self.arrival.0;
            (after, if is_period { Next::Period } else { Next::Stream(self.arrival.1) })
        } else {
            let is_plant = self.plant.0 <= self.client;
            (before, if is_plant { Next::Plant(self.plant.1) } else { Next::Client })
        }
    }

    /// When the first event is due that precedes a tick of the same instant.
    pub(super) fn before_tick(&self) -> Instant {
        self.plant.0.min(self.client)
    }

    /// When the first event is due that follows a tick of the same instant.
    pub(super) fn after_tick(&self) -> Instant {
        self.period.min(self.arrival.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equal_instants_plants_clients_tick_period_arrivals() {
        let (now, later) = (Instant::from_nanos(5), Instant::from_nanos(6));
        let mut tick = now;
        let mut due = Due { plant: (now, 1), client: now, period: now, arrival: (now, 2) };
        let mut order = Vec::new();
        loop {
            let (at, next) = due.next(tick);
            if at == later {
                break;
            }
            order.push(match next {
                Next::Plant(number) => {
                    due.plant.0 = later;
                    format!("plant {number}")
                }
                Next::Client => {
                    due.client = later;
                    "client".to_owned()
                }
                Next::Tick => {
                    tick = later;
                    "tick".to_owned()
                }
                Next::Period => {
                    due.period = later;
                    "period".to_owned()
                }
                Next::Stream(number) => {
                    due.arrival.0 = later;
                    format!("stream {number}")
                }
            });
        }
        assert_eq!(order, ["plant 1", "client", "tick", "period", "stream 2"]);
    }
}
