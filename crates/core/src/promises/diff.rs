//! What a reload changed, by name: what is new, gone, or different.

use crate::promises::registry::Registry;
use crate::promises::{Class, Site};
use alloc::{format, string::String, vec::Vec};

/// The changes of a reload, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Plants that are added, removed or changed.
    pub plants: Difference,
    /// Changes of sites: of anything but the conditions of their classes.
    pub sites: Difference,
    /// Changes of classes in sites that stay, as `site/class`; a class has changed if anything of it has.
    pub classes: Difference,
    /// Whether anything of [`Control`](super::Control) differs.
    pub control: bool,
}

/// Names that came, went, or stayed with another content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Names that only the new configuration has.
    pub added: Vec<String>,
    /// Names that only the old configuration has.
    pub removed: Vec<String>,
    /// Names that both configurations have, with other promises.
    pub changed: Vec<String>,
}

impl Changes {
    /// Whether both configurations promise the same.
    pub fn is_empty(&self) -> bool {
        *self == Changes::default()
    }
}

impl Difference {
    fn note(&mut self, name: impl Into<String>, before: bool, now: bool, same: bool) {
        match (before, now) {
            (false, true) => self.added.push(name.into()),
            (true, false) => self.removed.push(name.into()),
            (true, true) if !same => self.changed.push(name.into()),
            _ => {}
        }
    }
}

/// What changed from one registry to the next.
pub(crate) fn changes(old: &Registry, new: &Registry) -> Changes {
    let mut changes = Changes { control: old.promises.control != new.promises.control, ..Changes::default() };
    for (number, plant) in new.promises.plants.iter().enumerate() {
        let [before, now] = [old, new].map(|registry| registry.plants.contains(&number));
        let same = old.promises.plants.get(number) == Some(plant);
        changes.plants.note(plant.name.clone(), before, now, same);
    }
    for (site, numbers) in new.promises.sites.iter().zip(&new.sites) {
        let before = old.sites.iter().position(|before| before.site == numbers.site);
        let before = before.map(|index| &old.promises.sites[index]);
        changes.sites.note(site.name.clone(), before.is_some(), true, before.is_some_and(|b| alike(b, site)));
        if let Some(before) = before {
            compare_classes(before, site, &mut changes.classes);
        }
    }
    for (site, numbers) in old.promises.sites.iter().zip(&old.sites) {
        let stays = new.sites.iter().any(|now| now.site == numbers.site);
        changes.sites.note(site.name.clone(), true, stays, true);
    }
    changes
}

/// Whether two sites differ at most in their classes' conditions.
fn alike(a: &Site, b: &Site) -> bool {
    let bare = |site: &Site| {
        let classes = site.classes.iter().map(|c| Class { condition: Default::default(), ..c.clone() });
        Site { classes: classes.collect(), ..site.clone() }
    };
    bare(a) == bare(b)
}

fn compare_classes(old: &Site, new: &Site, classes: &mut Difference) {
    let full = |name: &str| format!("{}/{name}", new.name);
    for class in &new.classes {
        let before = old.classes.iter().find(|before| before.name == class.name);
        classes.note(full(&class.name), before.is_some(), true, before == Some(class));
    }
    for class in &old.classes {
        let stays = new.classes.iter().any(|now| now.name == class.name);
        classes.note(full(&class.name), true, stays, true);
    }
}
