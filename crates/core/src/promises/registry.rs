//! The numbers of plants, sites and classes. Each name has one number for the life of the process.
//!
//! Requests under way, queues and counters refer to their class and plant by number, so a number is never given to another
//! name. A new name gets a new number. A name that is no longer promised keeps its number, and has it again if it is promised
//! again. A class is named by its site's name and its own.

use crate::promises::{Promises, Site};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::{format, vec::Vec};

/// The numbers of a site and its classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SiteNumbers {
    pub(crate) site: u16,
    /// The numbers of the site's own classes in their order, then of `default` and `exempt`.
    pub(crate) classes: Vec<u16>,
}

/// The present promises, and all numbers ever given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    /// The promises, with two differences: the index of a plant is its number, so those no longer promised are among them,
    /// and sites refer to plants by number.
    pub(crate) promises: Promises,
    /// The numbers of the plants that are promised, in their order.
    pub(crate) plants: Vec<usize>,
    /// Parallel to the promises' sites.
    pub(crate) sites: Vec<SiteNumbers>,
    pub(crate) plant_names: Vec<String>,
    pub(crate) site_names: Vec<String>,
    pub(crate) class_names: Vec<(usize, String)>,
}

/// A class that is promised.
pub(crate) struct RegisteredClass<'a> {
    /// The class's number.
    pub(crate) class: usize,
    pub(crate) name: &'a str,
    pub(crate) site: &'a Site,
    /// The index of its site in the promises.
    pub(crate) site_number: usize,
    /// The index of the class in its site; `default` and `exempt` come after the site's own.
    pub(crate) index: usize,
    pub(crate) exempt: bool,
}

impl Registry {
    /// The registry after these promises, which must be valid.
    ///
    /// # Errors
    /// There are no numbers left.
    pub(crate) fn next(&self, promises: &Promises) -> Result<Registry, Vec<String>> {
        let mut next = self.clone();
        let plants = assign(&mut next.plant_names, promises.plants.iter().map(|plant| plant.name.clone()));
        let sites = assign(&mut next.site_names, promises.sites.iter().map(|site| site.name.clone()));
        let names = |(site, number): (&Site, &usize)| {
            site.class_names().map(|name| (*number, String::from(name))).collect::<Vec<_>>()
        };
        let mut classes =
            assign(&mut next.class_names, promises.sites.iter().zip(&sites).flat_map(names)).into_iter();
        let most = next.plant_names.len().max(next.class_names.len());
        if most > usize::from(u16::MAX) {
            return Err(alloc::vec![format!(
                "{most} names of plants or classes were in use since the start; at most 65535 can be: start anew"
            )]);
        }
        let numbers = |(site, number): (&Site, &usize)| SiteNumbers {
            site: *number as u16,
            classes: classes.by_ref().take(site.class_names().count()).map(|class| class as u16).collect(),
        };
        next.sites = promises.sites.iter().zip(&sites).map(numbers).collect();

        next.promises.control = promises.control.clone();
        next.promises.sites = promises.sites.clone();
        for site in &mut next.promises.sites {
            let named = core::iter::once(&mut site.plant);
            let named = named.chain(site.levels.iter_mut().filter_map(|level| level.plant.as_mut()));
            named.for_each(|plant| *plant = plants[*plant]);
        }
        for (plant, number) in promises.plants.iter().zip(&plants) {
            match next.promises.plants.get_mut(*number) {
                Some(known) => *known = plant.clone(),
                // New numbers follow one another in the order of the promises.
                None => next.promises.plants.push(plant.clone()),
            }
        }
        next.plants = plants;
        Ok(next)
    }

    /// How many class numbers were ever given.
    pub(crate) fn class_count(&self) -> usize {
        self.class_names.len()
    }

    /// The classes that are promised now.
    pub(crate) fn classes(&self) -> impl Iterator<Item = RegisteredClass<'_>> {
        self.promises.sites.iter().zip(&self.sites).enumerate().flat_map(|(site_number, (site, numbers))| {
            let exempt = numbers.classes.len() - 1;
            site.class_names().zip(&numbers.classes).enumerate().map(move |(index, (name, class))| {
                RegisteredClass {
                    class: usize::from(*class),
                    name,
                    site,
                    site_number,
                    index,
                    exempt: index == exempt,
                }
            })
        })
    }

    /// By class number: the lowest level that the load may give to a promised class. It is [`Site::least_level`], but 0 for a
    /// class below others of a higher priority that the load may refuse, at a load line below 1. Deadlines alone fill the
    /// server beyond that line, and all requests of the others would be refused for what a lower class takes. Priorities count
    /// within a site, and among sites without a contract.
    pub(crate) fn least_levels(&self) -> Vec<u8> {
        let key = |member: &RegisteredClass<'_>| {
            let site = member.site;
            let plant = site.plants().next().unwrap_or(site.plant);
            let group = site.guarantee.as_ref().map(|_| member.site_number);
            ((plant, group), site.load_order(member.index))
        };
        let mut highest = BTreeMap::new();
        for member in self.classes().filter(|one| !one.exempt && one.site.least_level(one.index) == 0) {
            let (group, order) = key(&member);
            highest
                .entry(group)
                .and_modify(|most: &mut (u8, bool)| *most = order.min(*most))
                .or_insert(order);
        }
        let mut least = alloc::vec![0; self.class_count()];
        for member in self.classes() {
            let ((plant, group), order) = key(&member);
            let is_below = highest.get(&(plant, group)).is_some_and(|most| *most < order);
            if !is_below || self.promises.plants[plant].set_point >= 1.0 {
                least[member.class] = member.site.least_level(member.index);
            }
        }
        least
    }
}

/// The numbers of `wanted`, in its order; new names are appended to `known`. A name that occurs twice has two numbers.
fn assign<K: Ord + Clone>(known: &mut Vec<K>, wanted: impl Iterator<Item = K>) -> Vec<usize> {
    let mut free: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for (number, name) in known.iter().enumerate().rev() {
        free.entry(name.clone()).or_default().push(number);
    }
    let number = |name: K| {
        free.get_mut(&name).and_then(Vec::pop).unwrap_or_else(|| {
            known.push(name);
            known.len() - 1
        })
    };
    wanted.map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promises::{Class, Plant};
    use alloc::vec;

    fn promises(plants: &[&str], sites: &[(&str, usize, &[&str])]) -> Promises {
        let class = |name: &&str| Class::new(name, Default::default());
        let site = |(name, plant, classes): &(&str, usize, &[&str])| Site {
            plant: *plant,
            classes: classes.iter().map(class).collect(),
            ..Site::new(name, &["full"])
        };
        Promises {
            plants: plants.iter().map(|name| Plant::new(name, 1)).collect(),
            sites: sites.iter().map(site).collect(),
            ..Promises::default()
        }
    }

    #[test]
    fn a_number_is_for_life() {
        let first = promises(&["app", "static"], &[("shop", 0, &["buy"]), ("blog", 1, &[])]);
        let first = Registry::default().next(&first).expect("room");
        let numbers = |registry: &Registry| -> Vec<(u16, Vec<u16>)> {
            registry.sites.iter().map(|site| (site.site, site.classes.clone())).collect()
        };
        assert_eq!(numbers(&first), [(0, vec![0, 1, 2]), (1, vec![3, 4])]);

        // The order is reversed, one class and one plant are new, and one plant is gone.
        let second = promises(&["other", "static"], &[("blog", 1, &[]), ("shop", 0, &["gold", "buy"])]);
        let second = first.next(&second).expect("room");
        assert_eq!(numbers(&second), [(1, vec![3, 4]), (0, vec![5, 0, 1, 2])]);
        assert_eq!(second.plants, [2, 1]);
        assert_eq!(second.promises.plants[2].name, "other");
        assert_eq!((second.promises.sites[0].plant, second.promises.sites[1].plant), (1, 2));

        let third = first.next(&promises(&["app"], &[("shop", 0, &["buy"])])).expect("room");
        let back = third.next(&first.promises).expect("room");
        assert_eq!(numbers(&back), numbers(&first), "a name that comes back finds its number");
    }

    /// A class of the last priority has a deadline, beside one of the first.
    #[test]
    fn a_deadline_yields_to_the_load_beside_a_higher_priority_at_a_load_line_below_one() {
        let levels = |change: fn(&mut Promises)| {
            let mut promised = promises(&["app"], &[("shop", 0, &["gold", "buy"])]);
            let site = &mut promised.sites[0];
            (site.classes[0].priority, site.classes[1].priority) = (1, 7);
            site.classes[1].deadline = Some(core::time::Duration::from_millis(200));
            promised.plants[0].set_point = 0.85;
            change(&mut promised);
            Registry::default().next(&promised).expect("room").least_levels()
        };
        let gold_deadline = |promised: &mut Promises| {
            promised.sites[0].classes[0].deadline = Some(core::time::Duration::from_millis(500));
        };
        assert_eq!(levels(|_| ()), [0; 4]);
        assert_eq!(
            levels(|promised| promised.plants[0].set_point = 1.0),
            [0, 1, 0, 0],
            "there is no line below"
        );
        assert_eq!(levels(|promised| promised.sites[0].classes[0].priority = 7)[1], 1, "nothing is above it");
        assert_eq!(levels(gold_deadline), [1, 1, 0, 0], "what is above is not refused for the load either");
        let two_sites = |contract: fn() -> Option<crate::promises::Guarantee>| {
            let mut promised = promises(&["app"], &[("shop", 0, &["gold"]), ("blog", 0, &["buy"])]);
            promised.plants[0].set_point = 0.85;
            promised.sites[0].classes[0].priority = 1;
            promised.sites[0].guarantee = contract();
            promised.sites[1].classes[0].priority = 7;
            promised.sites[1].classes[0].deadline = Some(core::time::Duration::from_millis(200));
            promised.sites[1].default_priority = 7;
            Registry::default().next(&promised).expect("room").least_levels()[3]
        };
        assert_eq!(two_sites(|| None), 0, "among sites without a contract");
        assert_eq!(
            two_sites(|| Some(crate::promises::Guarantee::new(10.0, 1e6))),
            1,
            "not beside a site with one"
        );
    }

    #[test]
    fn names_that_stand_twice_are_distinguished() {
        let twice = promises(&["a", "a"], &[("s", 0, &["default"]), ("s", 1, &[])]);
        let registry = Registry::default().next(&twice).expect("room");
        assert_eq!(registry.next(&twice).expect("room").sites, registry.sites);
        assert_eq!(registry.class_count(), 5);
    }
}
