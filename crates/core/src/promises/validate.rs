//! Checks whether an engine can be built from promises.

use super::{Costs, Delay, Guarantee, MAX_LEVELS, Plant, Promises, Share, Site, UtilizationLaw};
use crate::time::Duration;
use alloc::{format, string::String, vec::Vec};

/// The fewest control periods in a turn of the choice of clients. In a turn as many clients get the better level as lose
/// it; over this number of periods that is 1 % of the clients in a period, the most that a level loop may move in the
/// steady state.
pub const LEAST_REKEY_PERIODS: u32 = 200;

/// The longest deadline: service times are distinguished up to 17 minutes.
const LONGEST_DEADLINE: Duration = Duration::from_secs(15 * 60);

impl Promises {
    /// Checks that an engine can be built from these promises.
    ///
    /// # Errors
    /// Everything that is impossible, one sentence each.
    pub fn validate(&self) -> Result<(), Vec<String>> {
        let mut wrong = Vec::new();
        if self.control.period.is_zero() {
            wrong.push("the control period is zero; 1 s is usual".into());
        }
        if let UtilizationLaw::Paper { gain_margin } = self.control.law
            && (gain_margin.is_nan() || gain_margin <= 1.0)
        {
            wrong.push(format!("the gain margin is {gain_margin}; it must be above 1, 4 is usual"));
        }
        if self.control.rekey.is_some_and(|rekey| rekey < LEAST_REKEY_PERIODS * self.control.period) {
            wrong.push(format!(
                "clients change level too fast: `rekey` takes at least {LEAST_REKEY_PERIODS} control periods"
            ));
        }
        if let UtilizationLaw::Paper { .. } = self.control.law {
            for (number, plant) in self.plants.iter().enumerate() {
                if let Some(why) = self.what_divides(number) {
                    wrong.push(format!(
                        "{}: the paper's law has one level for all, but {why} needs several",
                        plant.name
                    ));
                }
            }
        }
        if !Share::fit(&self.control.shares) {
            wrong.push(
                "shares lie from 0 to 1, least below most, and the least ones add up to 1 at most".into(),
            );
        }
        for plant in &self.plants {
            plant.validate(&mut wrong);
        }
        for site in &self.sites {
            site.validate(self.plants.len(), &mut wrong);
        }
        let classes: usize = self.sites.iter().map(|site| site.classes.len() + 2).sum();
        if self.plants.len().max(classes) > usize::from(u16::MAX) {
            wrong.push(format!("{} plants and {classes} classes; at most 65535 of each", self.plants.len()));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// The promise of a plant's clients that needs several service levels, if there is one. A law that moves one level for
    /// the whole plant would silently not keep it.
    pub fn what_divides(&self, plant: usize) -> Option<&'static str> {
        let mut sites = self.sites.iter().filter(|site| site.plants().any(|own| own == plant));
        let first = sites.next()?;
        if sites.next().is_some() {
            return Some("a second site");
        }
        let others = first.classes.iter().any(|class| class.priority != first.default_priority);
        match (first.guarantee.filter(|_| first.plant == plant), others) {
            (Some(_), _) => Some("a guarantee"),
            (None, true) => Some("a second priority"),
            (None, false) => None,
        }
    }
}

impl Plant {
    fn validate(&self, wrong: &mut Vec<String>) {
        let name = &self.name;
        if self.workers == 0 || self.max_connections == 0 {
            wrong.push(format!("{name}: workers and connections must be at least 1"));
        }
        if self.find_workers.is_some_and(|bounds| bounds.least == 0 || bounds.least > bounds.most) {
            wrong.push(format!("{name}: workers are looked for between at least 1 and no fewer"));
        }
        if self.max_connections > u32::from(u16::MAX) {
            wrong.push(format!("{name}: {} connections; at most 65535", self.max_connections));
        }
        if !self.costs.is_none_or(|costs| costs.are_possible()) {
            wrong.push(format!("{name}: costs are seconds, at least 0"));
        }
        if self.ceiling.is_some_and(|ceiling| !(ceiling > 0.0 && ceiling < 1.0)) {
            wrong.push(format!("{name}: the ceiling of contracts lies above 0 and below 1"));
        }
        if !(self.set_point > 0.0 && self.set_point <= 1.0) {
            wrong.push(format!(
                "{name}: the set point is {}; it lies above 0 and at most at 1",
                self.set_point
            ));
        }
        if self.bandwidth_bytes_per_second.is_some_and(|b| b.is_nan() || b <= 0.0) {
            wrong.push(format!("{name}: the bandwidth must be above 0"));
        }
    }
}

impl Costs {
    fn are_possible(self) -> bool {
        let all = [self.per_request_seconds, self.per_byte_seconds, self.per_rejection_seconds];
        all.iter().all(|cost| cost.is_finite() && *cost >= 0.0)
    }
}

impl Guarantee {
    fn validate(&self, site: &str, wrong: &mut Vec<String>) {
        let is_rate = |rate: f64| rate.is_finite() && rate > 0.0;
        if !is_rate(self.rate) || !self.bandwidth_bytes_per_second.is_none_or(is_rate) {
            wrong.push(format!("{site}: a guaranteed rate and bandwidth must be above 0"));
        }
        if self.burst.is_zero() || self.burst > Duration::from_secs(3600) {
            wrong.push(format!(
                "{site}: a guarantee's burst lies above 0 and at most at an hour; 2 s is usual"
            ));
        }
    }
}

impl Site {
    fn validate(&self, plants: usize, wrong: &mut Vec<String>) {
        let name = &self.name;
        if self.levels.is_empty() || self.levels.len() > MAX_LEVELS {
            wrong.push(format!("{name}: has {} levels; 1 to {MAX_LEVELS} are possible", self.levels.len()));
        }
        if self.plant >= plants || self.levels.iter().any(|level| level.plant.is_some_and(|p| p >= plants)) {
            wrong.push(format!("{name}: names a plant that is not there"));
        }
        if self.levels.last().is_some_and(|top| top.plant.is_some_and(|plant| plant != self.plant)) {
            wrong.push(format!(
                "{name}: the highest level is served by the site's own upstream; that one is held"
            ));
        }
        self.validate_plants(wrong);
        if self.levels.iter().any(|level| level.cost_ratio.is_some_and(|r| !(r > 0.0 && r <= 1.0))) {
            wrong.push(format!("{name}: a level's cost ratio lies above 0 and at most at 1"));
        }
        if let Some(guarantee) = &self.guarantee {
            guarantee.validate(name, wrong);
        } else if !self.share_excess {
            wrong.push(format!(
                "{name}: has no guarantee and no share of what is left: nothing would be served"
            ));
        }
        if !(self.weight.is_finite() && self.weight > 0.0) {
            wrong.push(format!("{name}: a weight must be above 0"));
        }
        if !self.costs.is_none_or(|costs| costs.are_possible()) {
            wrong.push(format!("{name}: costs are seconds, at least 0"));
        }
        let priorities = self.classes.iter().map(|class| class.priority);
        if priorities.chain([self.default_priority]).any(|priority| priority == 0) {
            wrong.push(format!("{name}: the highest priority is 1"));
        }
        let deadlines = self.classes.iter().map(|class| class.deadline).chain([self.deadline]);
        if deadlines.flatten().any(|deadline| deadline.is_zero() || deadline > LONGEST_DEADLINE) {
            wrong.push(format!("{name}: a deadline is above 0 and at most 15 minutes"));
        }
        let shares = self.classes.iter().filter_map(|class| class.in_time).chain([self.in_time]);
        if shares.into_iter().any(|share| !(50.0..=99.9).contains(&share)) {
            wrong.push(format!("{name}: between 50 and 99.9 of a hundred admitted requests are in time"));
        }
        if self.types.iter().any(|own| !(own.quantum.is_finite() && own.quantum > 0.0)) {
            wrong.push(format!("{name}: what a type's request costs must be above 0"));
        }
        self.validate_response_times(wrong);
    }

    /// Checks the plants of the site's levels, if there are several.
    fn validate_plants(&self, wrong: &mut Vec<String>) {
        let (name, plants) = (&self.name, self.plants().collect::<Vec<_>>());
        for (index, plant) in
            plants.iter().enumerate().skip(2).filter(|(index, plant)| plants[index - 1] != **plant)
        {
            if let Some(same) = plants[..index].iter().rposition(|other| other == plant) {
                let [upper, between, lower] = [index, index - 1, same].map(|level| &self.levels[level].name);
                wrong.push(format!(
                    "{name}: level {between} stands between {lower} and {upper}, but is served by another upstream; the levels \
                     of one upstream follow one another: move {between}, or give it the same upstream"
                ));
            }
        }
        let classes = self.classes.iter().map(|class| class.delay.is_some() || class.ratio.is_some());
        let promised = self.default_delay.is_some()
            || self.default_ratio.is_some()
            || classes.into_iter().any(|has| has);
        if promised && plants.iter().any(|plant| *plant != self.plant) {
            wrong.push(format!(
                "{name}: a delay or a ratio is held by shares of one upstream's workers, but a level is served by another; \
                 serve all levels by one upstream, or promise a deadline instead"
            ));
        }
    }

    fn validate_response_times(&self, wrong: &mut Vec<String>) {
        let name = &self.name;
        let classes = self.classes.iter().map(|class| (class.delay, class.ratio, class.priority));
        let own = (self.default_delay, self.default_ratio, self.default_priority);
        let all: Vec<_> = classes.chain([own]).collect();
        for delay in all.iter().filter_map(|(delay, ..)| *delay) {
            if delay.target.is_zero() {
                wrong.push(format!("{name}: a delay must be above 0"));
            }
            if delay.percentile.is_some_and(|p| !(50.0..=99.9).contains(&p)) {
                wrong.push(format!("{name}: a delay's percentile lies between 50 and 99.9"));
            }
        }
        let rate = self.guarantee.map_or(f64::INFINITY, |guarantee| guarantee.rate);
        for delay in all.iter().filter_map(|(delay, ..)| *delay).filter(|delay| delay.least_rate() > rate) {
            let (percentile, needed) = (delay.percentile.unwrap_or_default(), delay.least_rate());
            let most = 100.0 - 100.0 * Delay::LATE_EVIDENCE / (Delay::EXPIRY.as_secs_f64() * rate);
            let most = libm::floor(10.0 * most.max(0.0)) / 10.0;
            wrong.push(format!(
                "{name}: whether {percentile} % of the responses are in time cannot be measured at {rate} requests a second; \
                 it takes {needed:.1}, and at this rate up to {most} % can be measured"
            ));
        }
        if all.iter().any(|(delay, ratio, _)| delay.is_some() && ratio.is_some()) {
            wrong.push(format!("{name}: a class has a delay or a ratio, not both"));
        }
        if self.classes.iter().any(|class| class.deadline.is_some() && class.ratio.is_some()) {
            wrong.push(format!(
                "{name}: a class has a deadline or a ratio, not both: its turns with other classes may let it wait for too long"
            ));
        }
        let ratios: Vec<_> =
            all.iter().filter_map(|(_, ratio, at)| ratio.map(|ratio| (ratio, *at))).collect();
        if ratios.iter().any(|(ratio, _)| !(ratio.is_finite() && *ratio > 0.0)) {
            wrong.push(format!("{name}: a ratio must be above 0"));
        }
        if ratios.len() == 1 {
            wrong.push(format!("{name}: one class alone has a ratio; it needs another to be held against"));
        }
        if ratios.iter().any(|(_, priority)| *priority != ratios[0].1) {
            wrong.push(format!("{name}: classes with a ratio have one priority; the ratio sets them apart"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promises::{Class, Condition};
    use alloc::vec;

    #[test]
    fn the_papers_law_is_refused_where_several_levels_are_promised() {
        let site = || Site::new("shop", &["full"]);
        let premium = Class { priority: 1, ..Class::new("premium", Condition::default()) };
        let alike = Class::new("alike", Condition::default());
        let contract = Site { guarantee: Some(Guarantee::new(10.0, 1e5)), ..site() };
        for (sites, divides) in [
            (vec![site()], None),
            (vec![Site { classes: vec![alike], weight: 2.0, ..site() }], None),
            (vec![Site { plant: 1, ..site() }], None),
            (vec![contract], Some("a guarantee")),
            (vec![Site { classes: vec![premium], ..site() }], Some("a second priority")),
            (vec![site(), site()], Some("a second site")),
        ] {
            let plants = vec![Plant::new("origin", 1), Plant::new("other", 1)];
            let mut promises = Promises { plants, sites, ..Promises::default() };
            assert_eq!((promises.what_divides(0), promises.validate()), (divides, Ok(())));
            promises.control.law = UtilizationLaw::Paper { gain_margin: 4.0 };
            assert_eq!(promises.validate().is_err(), divides.is_some(), "{promises:?}");
        }
    }

    #[test]
    fn levels_of_one_plant_are_neighbours_and_of_several_have_no_delay() {
        let says = |plants: [usize; 3], delay: bool| {
            let mut site = Site::new("shop", &["text", "light", "full"]);
            site.levels.iter_mut().zip(plants).for_each(|(level, plant)| level.plant = Some(plant));
            let target = Duration::from_secs(1);
            site.default_delay = delay.then_some(Delay { target, percentile: None });
            let plants = vec![Plant::new("app", 1), Plant::new("static", 1)];
            let promises = Promises { plants, sites: vec![site], ..Promises::default() };
            promises.validate().err().map(|wrong| wrong.join("; "))
        };
        assert_eq!((says([1, 0, 0], false), says([0, 0, 0], true)), (None, None));
        let why = says([0, 1, 0], false).expect("light stands between");
        assert!(why.contains("shop: level light stands between text and full"), "{why}");
        let why = says([1, 0, 0], true).expect("a delay");
        assert!(why.contains("serve all levels by one upstream"), "{why}");
    }

    /// The queue gives the turns of one class to another by their ratio, of which admission by deadline knows nothing.
    #[test]
    fn a_class_has_a_ratio_or_a_deadline() {
        let (second, condition) = (Some(Duration::from_secs(1)), Condition::default);
        let of_class = |name, ratio, deadline| Class { ratio, deadline, ..Class::new(name, condition()) };
        let site = |silver, deadline| Site {
            classes: vec![
                of_class("gold", Some(1.0), None),
                of_class("silver", Some(2.0), silver),
                of_class("urgent", None, second),
            ],
            deadline,
            ..Site::new("shop", &["full"])
        };
        let says = |site: &Site| Promises::of(Plant::new("app", 8), site.clone()).validate();
        let why = says(&site(second, None)).expect_err("silver has both").join("; ");
        assert!(why.contains("shop: a class has a deadline or a ratio, not both"), "{why}");
        let beside = site(None, Some(Duration::from_secs(9)));
        assert_eq!(says(&beside), Ok(()), "a site's deadline is for the others");
        let all = |site: &Site| [0, 1, 2, 3].map(|place| site.deadline_of(place).map(|own| own.as_secs()));
        assert_eq!(all(&beside), [None, None, Some(1), Some(9)]);
        let default = Site { default_ratio: Some(3.0), ..beside };
        assert_eq!(all(&default), [None, None, Some(1), None]);
        // Classes with a ratio have no promised time, and a ratio needs room above the load line.
        assert_eq!(Plant::usual_load_line(0, &[default]), Plant::LOAD_LINE);
    }

    #[test]
    fn a_percentile_that_a_contract_is_too_slow_to_measure_is_refused_with_the_rate_that_it_takes() {
        let says = |rate, percentile| {
            let delay = Delay { target: Duration::from_secs(1), percentile };
            let site = Site {
                guarantee: Some(Guarantee::new(rate, 1e6)),
                default_delay: Some(delay),
                ..Site::new("shop", &["full"])
            };
            Promises::of(Plant::new("app", 8), site).validate().err().map(|wrong| wrong.join("; "))
        };
        // Ten late requests in ten minutes: 10 / (0.001 x 600 s).
        let why = says(16.0, Some(99.9)).expect("too slow");
        assert!(why.contains("it takes 16.7") && why.contains("up to 99.8 %"), "{why}");
        for (rate, percentile) in [(17.0, Some(99.9)), (2.0, Some(99.0)), (0.01, None)] {
            assert_eq!(says(rate, percentile), None, "{percentile:?} at {rate}/s");
        }
    }
}
