//! One file of promises for a gateway and for a server behind it whose own processes decide (UC 6 behind PR 4 and QM 3).
//!
//! Each promise is kept in one place, so that no two loops move the same actuator:
//!
//! | kept by | what |
//! |---|---|
//! | the gateway, which has the queue | delays, ratios, deadlines, the order of waiting requests, the places at the server |
//! | the server's processes, which know its content | levels, contracts, the load line, rejections for the load |
//!
//! Two loops are left that look at the same server. The gateway's load line is 1 there and the server's is below, so that the
//! server degrades first and the gateway turns requests away for the load only while more is asked for than all workers can do.
//! A request holds a place at the server on its way too, which the server does not see: with a service of S and a way of h, and
//! as many places as workers, the workers are used for S / (S + h) of the time at most. So the gateway reports to the server
//! what part of its places is taken, and the server holds its line for that part where it exceeds the use of its workers. There
//! may be more places than workers (`max_connections`); they are what the gateway takes for workers.

use super::{Level, Promises, Site};

impl Site {
    /// Whether a plant that decides itself serves the site.
    fn decided_inside(&self, promises: &Promises) -> bool {
        promises.plants.get(self.plant).is_some_and(|plant| plant.decides_itself)
    }
}

impl Promises {
    /// By site, whether the server that serves it decides itself.
    pub fn decided_inside(&self) -> impl Iterator<Item = bool> {
        self.sites.iter().map(|site| site.decided_inside(self))
    }

    /// The promises that a gateway keeps before servers that decide themselves: the sites of these have their highest level
    /// only. Other promises stay as they are.
    #[must_use]
    pub fn before_servers(&self) -> Promises {
        let mut kept = self.clone();
        for plant in kept.plants.iter_mut().filter(|plant| plant.decides_itself) {
            (plant.set_point, plant.workers) = (1.0, plant.workers.max(plant.max_connections));
        }
        for site in kept.sites.iter_mut().filter(|site| site.decided_inside(self)) {
            let highest = site.levels.pop().map(|level| Level { plant: None, cost_ratio: None, ..level });
            site.levels = highest.into_iter().collect();
            (site.guarantee, site.share_excess) = (None, true);
        }
        kept
    }

    /// The promises that the processes of servers that decide themselves keep. Other promises stay as they are.
    #[must_use]
    pub fn inside_servers(&self) -> Promises {
        let mut kept = self.clone();
        for site in kept.sites.iter_mut().filter(|site| site.decided_inside(self)) {
            (site.default_delay, site.default_ratio, site.strict_ratios) = (None, None, false);
            (site.deadline, site.types) = (None, Default::default());
            for class in &mut site.classes {
                (class.delay, class.ratio, class.deadline) = (None, None, None);
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processes::SharedShape;
    use crate::promises::{Class, Condition, Delay, Guarantee, Plant};
    use crate::time::Duration;

    #[test]
    fn each_promise_is_kept_in_one_place() {
        let mut site = Site::new("site", &["light", "full"]);
        let delay = Delay { target: Duration::from_millis(100), percentile: None };
        site.classes = [Class { delay: Some(delay), ..Class::new("first", Condition::default()) }].into();
        site.guarantee =
            Some(Guarantee { rate: 10.0, bandwidth_bytes_per_second: None, burst: Guarantee::BURST });
        let plant = Plant { decides_itself: true, ..Plant::new("server", 8) };
        let promises = Promises::of(plant, site);
        let (before, inside) = (promises.before_servers(), promises.inside_servers());
        assert_eq!((before.validate(), inside.validate()), (Ok(()), Ok(())));
        let [kept, left] = [&before, &inside].map(|half| &half.sites[0]);
        assert_eq!((kept.levels.len(), left.levels.len()), (1, 2));
        assert_eq!((kept.guarantee.is_some(), left.guarantee.is_some()), (false, true));
        assert_eq!([kept, left].map(|half| half.classes[0].delay.is_some()), [true, false]);
        assert!(before.plants[0].set_point > inside.plants[0].set_point, "the server degrades first");
        let mut wider = promises.clone();
        wider.plants[0].max_connections = 12;
        let workers = [wider.before_servers(), wider.inside_servers()].map(|half| half.plants[0].workers);
        assert_eq!(workers, [12, 8], "a request on its way holds a place and no worker");
        assert!(SharedShape::of(&inside).is_ok(), "nothing in it needs a queue");
        let mut others = promises.clone();
        others.plants[0].decides_itself = false;
        assert_eq!((others.before_servers(), others.inside_servers()), (others.clone(), others));
    }
}
