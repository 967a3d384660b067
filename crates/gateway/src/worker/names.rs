//! The names of sites, levels, classes and plants by the engine's numbers, for the access log. Names of what is no longer
//! promised stay, since numbers are for life.

use plimsoll_core::Reload;
use plimsoll_core::promises::Promises;

#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    plants: Vec<String>,
    sites: Vec<SiteNames>,
    classes: Vec<String>,
}

#[derive(Clone, Debug, Default)]
struct SiteNames {
    site: String,
    /// Lowest quality first.
    levels: Vec<String>,
}

impl Names {
    /// The names after these, with those of new promises.
    pub(super) fn next(&self, promises: &Promises, reload: &Reload) -> Self {
        let mut next = self.clone();
        for (plant, number) in promises.plants.iter().zip(reload.plant_numbers()) {
            set(&mut next.plants, number, plant.name.clone());
        }
        for (site, number) in promises.sites.iter().zip(reload.site_numbers()) {
            let levels = site.levels.iter().map(|level| level.name.clone()).collect();
            set(&mut next.sites, number.into(), SiteNames { site: site.name.clone(), levels });
        }
        for (number, name) in reload.class_names() {
            set(&mut next.classes, number.into(), name.to_owned());
        }
        next
    }

    pub(crate) fn plant(&self, plant: usize) -> Option<&str> {
        self.plants.get(plant).map(String::as_str)
    }

    pub(crate) fn site(&self, site: u16) -> Option<&str> {
        self.sites.get(usize::from(site)).map(|names| names.site.as_str())
    }

    pub(crate) fn class(&self, class: u16) -> Option<&str> {
        self.classes.get(usize::from(class)).map(String::as_str)
    }

    /// The name of a site's level, 1 for the lowest.
    pub(crate) fn level(&self, site: u16, level: u8) -> Option<&str> {
        let levels = &self.sites.get(usize::from(site))?.levels;
        levels.get(usize::from(level.checked_sub(1)?)).map(String::as_str)
    }
}

fn set<T: Clone + Default>(list: &mut Vec<T>, at: usize, value: T) {
    list.resize(list.len().max(at + 1), T::default());
    list[at] = value;
}
