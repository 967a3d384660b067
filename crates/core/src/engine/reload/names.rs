//! The names of plants, sites, levels and classes by number, for logs, for the servers' own programs and for reloads.

use super::Reload;
use alloc::{string::String, vec::Vec};

/// The names of a class and of its levels, and which plants serve these, whether it is promised still or not.
#[derive(Clone, Default)]
pub(crate) struct ClassNames {
    pub(crate) site: String,
    pub(crate) class: String,
    /// The site's own plant.
    pub(crate) plant: usize,
    /// Names of the levels 1..=M.
    pub(crate) levels: Vec<String>,
    /// The plant of each level.
    pub(crate) plants: Vec<usize>,
    pub(crate) removed: bool,
}

/// The names by the engine's numbers. Names of what is no longer promised stay, since numbers are for life.
#[derive(Clone, Debug, Default)]
pub struct Names {
    plants: Vec<String>,
    sites: Vec<String>,
    classes: Vec<String>,
    /// By site, lowest quality first.
    levels: Vec<Vec<String>>,
}

impl Names {
    /// The names after these, with those of new promises.
    pub fn next(&self, reload: &Reload) -> Self {
        let registry = &reload.registry;
        let mut levels = self.levels.clone();
        levels.resize(registry.site_names.len(), Vec::new());
        for (site, numbers) in registry.promises.sites.iter().zip(&registry.sites) {
            levels[usize::from(numbers.site)] = site.levels.iter().map(|level| level.name.clone()).collect();
        }
        let classes = registry.class_names.iter().map(|(_, name)| name.clone()).collect();
        Names { plants: registry.plant_names.clone(), sites: registry.site_names.clone(), classes, levels }
    }

    /// The name of the plant of this number.
    pub fn plant(&self, plant: usize) -> Option<&str> {
        self.plants.get(plant).map(String::as_str)
    }

    /// The name of the site of this number.
    pub fn site(&self, site: u16) -> Option<&str> {
        self.sites.get(usize::from(site)).map(String::as_str)
    }

    /// The name of the class of this number.
    pub fn class(&self, class: u16) -> Option<&str> {
        self.classes.get(usize::from(class)).map(String::as_str)
    }

    /// The name of a site's level, 1 for the lowest.
    pub fn level(&self, site: u16, level: u8) -> Option<&str> {
        let levels = self.levels.get(usize::from(site))?;
        levels.get(usize::from(level.checked_sub(1)?)).map(String::as_str)
    }
}
