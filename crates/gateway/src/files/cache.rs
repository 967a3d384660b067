//! What a thread knows of files: small contents, header lines, and when each file was last compared with the disk.
//!
//! Entries live in two generations. Each use moves an entry into the young one. When the young generation reaches half of the
//! budget it becomes the old one, and the entries of the former old generation are dropped. So an entry is dropped if it was
//! not used for a generation. This bounds the memory and keeps the entries in use, without the linked list that exact
//! least-recently-used order updates at each hit. A scan over many files displaces one generation at most.

use super::resource::Resource;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

/// What an entry costs besides its content: places in the maps, key, allocations. This also bounds the number of entries
/// without content.
const ENTRY_OVERHEAD_BYTES: usize = 512;

type Generation = HashMap<Box<[u8]>, (Instant, Rc<Resource>)>;

#[derive(Debug)]
pub(super) struct Cache {
    young: Generation,
    old: Generation,
    young_bytes: usize,
    generation_bytes: usize,
}

impl Cache {
    pub(super) fn new(budget_bytes: usize) -> Self {
        let (young, old) = Default::default();
        Cache { young, old, young_bytes: 0, generation_bytes: budget_bytes / 2 }
    }

    /// The resource under this name and when it was last compared with the disk.
    pub(super) fn get(&mut self, name: &[u8]) -> Option<(Instant, Rc<Resource>)> {
        if let Some(entry) = self.young.get(name) {
            return Some(entry.clone());
        }
        let (checked, resource) = self.old.remove(name)?;
        self.put(name, checked, resource.clone());
        Some((checked, resource))
    }

    pub(super) fn put(&mut self, name: &[u8], checked: Instant, resource: Rc<Resource>) {
        self.remove(name);
        let bytes = cost(name, &resource);
        if bytes > self.generation_bytes {
            return;
        }
        if self.young_bytes + bytes > self.generation_bytes {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        self.young.insert(name.into(), (checked, resource));
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some((_, resource)) = self.young.remove(name) {
            self.young_bytes -= cost(name, &resource);
        }
        self.old.remove(name);
    }

    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
        self.young_bytes = 0;
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let sum =
            |map: &Generation| map.iter().map(|(name, (_, resource))| cost(name, resource)).sum::<usize>();
        assert_eq!(sum(&self.young), self.young_bytes);
        self.young_bytes + sum(&self.old)
    }
}

fn cost(name: &[u8], resource: &Resource) -> usize {
    ENTRY_OVERHEAD_BYTES + name.len() + resource.memory_bytes()
}
