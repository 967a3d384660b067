//! Service levels by name. The number of a level says nothing across sites: the highest level of one site may have the
//! number of another's lowest.

use plimsoll_core::promises::Promises;
use plimsoll_sim::ClassRow;

/// The name of a level, and where its requests are counted.
pub(crate) struct NamedLevel {
    pub(crate) name: String,
    /// The numbers of a class and of the level in it.
    counted: Vec<(usize, usize)>,
}

impl NamedLevel {
    /// Requests completed at this level.
    pub(crate) fn completed(&self, classes: &[ClassRow]) -> u64 {
        let count = |(class, level): &(usize, usize)| classes.get(*class).map(|row| row.completed[*level]);
        self.counted.iter().filter_map(count).sum()
    }
}

/// The levels of all sites, each site's highest first.
pub(crate) fn by_name(promises: &Promises) -> Vec<NamedLevel> {
    let mut all: Vec<NamedLevel> = Vec::new();
    let mut class = 0;
    for site in &promises.sites {
        // `default` and `exempt` come after a site's own classes.
        let own = class..class + site.classes.len() + 2;
        class = own.end;
        for (number, level) in site.levels.iter().enumerate().rev() {
            let counted = own.clone().map(|class| (class, number + 1));
            match all.iter_mut().find(|known| known.name == level.name) {
                Some(known) => known.counted.extend(counted),
                None => all.push(NamedLevel { name: level.name.clone(), counted: counted.collect() }),
            }
        }
    }
    all
}
