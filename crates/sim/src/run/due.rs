//! What is due, and which of it is next.
//!
//! At equal instants the order is: plants, clients that leave or come again, the loops' tick, the end of a period,
//! arrivals. The tick stands apart, since it comes again and again while all else stays where it is.

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

/// What is due, but for the tick. Nothing is at [`Instant::FAR`].
pub(super) struct Due {
    /// The first of the plants.
    pub(super) plant: (Instant, usize),
    pub(super) client: Instant,
    /// The end of a period.
    pub(super) period: Instant,
    /// The first request that comes for the first time, and its stream.
    pub(super) arrival: (Instant, usize),
}

impl Due {
    /// What is due next. The first of equals.
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

    /// When the first of what comes before a tick of the same instant is due.
    pub(super) fn before_tick(&self) -> Instant {
        self.plant.0.min(self.client)
    }

    /// When the first of what comes after a tick of the same instant is due.
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
