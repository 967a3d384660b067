//! SAC, simple admission control (AC, section 5): "each admitted request is allocate (sic) one CQ irrespective of the
//! request type, thus there is no estimation of service time".
//!
//! Time is cut into periods of T; each has `floor(s T / quantum)` units, and unused units are lost. The quantum is the time of
//! the cheapest type: the paper's capacity is that of static objects, 1,000 a second, which cost one unit (tables 1 and 2). So
//! SAC admits too much as soon as other types come: 1.587 times the capacity with the paper's mix.
//!
//! Admitted requests wait in one queue ("total queue length", table 1), higher priorities first and equal ones in order of
//! arrival; each worker serves one. The paper's figures 10, 12 and 13 show both: the classes' throughput is in proportion to
//! their arrivals, since admission knows no priority, and the high class's delay is low "because prioritized processing is
//! used", while that of the low one is "extremely long".
//!
//! Where the paper is unclear: it calls SAC "analogous to the leaky bucket", and describes a grant of units. Units per period
//! are taken here, as in the paper's own algorithm (eq. 4). A request of any priority that finds the queue full is rejected,
//! and uses no unit. The paper lets CAC admit while the CPU is idle, but not SAC.

use super::books::{Asking, Books, Left, Policy, Ruled, Stage, Waiting};
use super::comparator::known_unit;
use super::full_quality::FullQuality;
use super::priorities::places;
use crate::workload::Workload;
use plimsoll_core::promises::Promises;
use plimsoll_core::request::{Reason, Token};
use plimsoll_core::time::{Duration, Instant};
use std::collections::BTreeMap;

/// How SAC is set. Table 1's values are the defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SacSettings {
    /// The time of one unit. `None`: the fixed part of the server's service.
    pub(super) unit: Option<Duration>,
    pub(super) period: Duration,
    /// The most requests that wait.
    pub(super) queue: u32,
}

/// SAC in front of the plants.
pub(super) struct Sac {
    /// By class: the rank of its priority among those of its plant; 0 is the highest.
    places: Vec<usize>,
    plants: Vec<SacPlant>,
    arrivals: u64,
}

/// A place in the queue: priority, then order of arrival.
type ArrivalRank = (usize, u64);

/// One plant's units and queue.
struct SacPlant {
    units: Units,
    servers: u32,
    in_service: u32,
    /// The waiting requests' tokens and levels.
    queue: BTreeMap<ArrivalRank, (Token, u8)>,
    most: usize,
}

/// Units for requests, granted anew each period.
#[derive(Debug)]
struct Units {
    period_ns: u64,
    units: u64,
    slot: u64,
    left: u64,
}

impl Units {
    /// Neither `period` nor `quantum` may be zero.
    fn new(servers: u32, period: Duration, quantum: Duration) -> Self {
        let units = f64::from(servers) * period.as_secs_f64() / quantum.as_secs_f64();
        // 200 units of 40 ms fit into 8 s of work, not 199.99...
        let units = (units + 1e-9) as u64;
        Units { period_ns: period.as_nanos() as u64, units, slot: 0, left: units }
    }

    /// Takes a unit of this period; false if none is left.
    fn take(&mut self, now: Instant) -> bool {
        let slot = now.as_nanos() / self.period_ns;
        if slot != self.slot {
            (self.slot, self.left) = (slot, self.units);
        }
        let taken = self.left > 0;
        self.left -= u64::from(taken);
        taken
    }
}

impl Sac {
    /// SAC in front of these plants.
    ///
    /// # Errors
    /// Promises that contradict each other; plants that the workload does not describe; a unit whose time is not known.
    pub(super) fn new(
        settings: SacSettings,
        promises: &Promises,
        workload: &Workload,
        seed: u64,
    ) -> Result<Books<Self>, Vec<String>> {
        let full = FullQuality::new(promises, workload, seed)?;
        let plants = workload.plants.iter().map(|plant| {
            let unit = known_unit("sac", "unit", settings.unit, plant)?;
            let servers = plant.discipline.servers();
            let units = Units::new(servers, settings.period, unit);
            let (queue, most) = (BTreeMap::new(), settings.queue as usize);
            Ok(SacPlant { units, servers, in_service: 0, queue, most })
        });
        let plants = plants.collect::<Result<_, String>>().map_err(|wrong| vec![wrong])?;
        Ok(Books::new(full, Sac { places: places(promises), plants, arrivals: 0 }))
    }
}

impl Policy for Sac {
    type Place = ArrivalRank;
    type Kept = ();

    fn arrive(&mut self, now: Instant, asking: Asking<'_>, _waiting: &mut Waiting<'_, Self>) -> Ruled<Self> {
        let own = &mut self.plants[asking.plant];
        let waits = own.in_service >= own.servers;
        if waits && own.queue.len() >= own.most {
            return Err(Reason::QueueFull);
        }
        if !own.units.take(now) {
            return Err(Reason::Overload);
        }
        if !waits {
            own.in_service += 1;
            return Ok(Stage::InService(()));
        }
        self.arrivals += 1;
        let place = (self.places[usize::from(asking.class)], self.arrivals);
        own.queue.insert(place, asking.waiter);
        Ok(Stage::Waiting(place))
    }

    fn forget(&mut self, plant: usize, _token: Token, place: ArrivalRank) {
        self.plants[plant].queue.remove(&place);
    }

    /// Frees a worker and starts waiting requests.
    fn leave(&mut self, _now: Instant, gone: Left<()>, waiting: &mut Waiting<'_, Self>) {
        let own = &mut self.plants[gone.plant];
        own.in_service -= 1;
        if let Some((_, waiter)) = own.queue.pop_first() {
            own.in_service += 1;
            waiting.resume(gone.plant, waiter, Ok(Stage::InService(())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{promises, workload};
    use super::super::{Arriving, Decision, Front, Order};
    use super::*;
    use crate::request::Request;
    use plimsoll_core::promises::{Class, Condition};
    use plimsoll_core::request::{Outcome, Service};

    fn at(seconds: f64) -> Instant {
        Instant::from_nanos((seconds * 1e9).round() as u64)
    }

    #[test]
    fn each_period_has_its_units_and_saves_none() {
        let mut units = Units::new(8, Duration::from_secs(1), Duration::from_millis(40));
        let mut taken = |from: f64, n: u32| {
            let times = (0..n).map(|k| at(from + f64::from(k) * 1e-4));
            times.filter(|now| units.take(*now)).count()
        };
        assert_eq!(taken(0.0, 500), 200);
        assert_eq!(taken(0.9, 500), 0);
        assert_eq!(taken(1.0, 50), 50);
        assert_eq!(taken(2.5, 500), 200);
    }

    /// SAC of one worker and a queue of three, with a class of the first priority below `/first`.
    struct Driven(Books<Sac>, Vec<Order>);

    impl Driven {
        fn new() -> Self {
            let mut promises = promises();
            let paths = vec!["/first".to_owned()];
            let first = Class::new("first", Condition { paths, ..Condition::default() });
            promises.sites[0].classes = vec![Class { priority: 1, ..first }];
            promises.sites[0].default_priority = 2;
            let mut workload = workload();
            workload.plants[0].discipline = crate::workload::Discipline::Workers(1);
            let settings = SacSettings {
                unit: Some(Duration::from_millis(100)),
                period: Duration::from_secs(1),
                queue: 3,
            };
            Driven(Sac::new(settings, &promises, &workload, 1).unwrap(), Vec::new())
        }

        fn arrive(&mut self, now: f64, path: &str, token: u64) -> Decision {
            let request = Request { path: path.into(), ..Request::default() };
            let target = self.0.classify(&request).unwrap();
            let arriving = Arriving { request: &request, target, token: Token(token) };
            self.0.arrive(at(now), arriving, &mut self.1)
        }

        /// The request that starts when this request is done.
        fn done(&mut self, token: u64) -> Option<u64> {
            let service = Service { response_bytes: 0, representative: true, cost: None };
            self.0.release(at(0.0), Token(token), service, &mut self.1);
            self.0.depart(at(0.0), Token(token), Outcome::Completed, &mut self.1);
            match self.1.pop() {
                Some(Order::Start(token, _)) => Some(token.0),
                _ => None,
            }
        }
    }

    #[test]
    fn the_first_priority_is_served_first_and_a_full_queue_turns_away_either() {
        let mut sac = Driven::new();
        assert!(matches!(sac.arrive(0.0, "/", 0), Decision::Start(_)));
        for token in 1..=2 {
            assert_eq!(sac.arrive(0.0, "/", token), Decision::Wait);
        }
        assert_eq!(sac.arrive(0.0, "/first", 3), Decision::Wait);
        assert_eq!(sac.arrive(0.0, "/first", 4), Decision::Reject(Reason::QueueFull));
        assert_eq!((sac.done(0), sac.done(3)), (Some(3), Some(1)));
        // A waiting request whose client leaves makes room.
        sac.0.depart(at(0.0), Token(2), Outcome::Abandoned, &mut sac.1);
        assert_eq!(sac.done(1), None);
        assert!(matches!(sac.arrive(0.0, "/", 5), Decision::Start(_)));
    }

    #[test]
    fn whoever_is_turned_away_for_the_queue_uses_no_unit() {
        let mut sac = Driven::new();
        for token in 0..20 {
            sac.arrive(0.0, "/", token);
        }
        // One is in service and three wait.
        assert_eq!(sac.0.policy.plants[0].units.left, 10 - 4);
    }
}
