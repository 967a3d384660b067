//! A picture in its own size and, where it may have fewer pixels, in smaller ones.

use super::raster::Raster;

/// The sizes of an image; the smaller ones are made when they are asked for.
pub(super) struct Sizes {
    full: Raster,
    /// The image with each side reduced to so many quarters.
    smaller: Vec<(usize, Option<Raster>)>,
}

impl Sizes {
    pub(super) fn new(full: Raster, resizable: bool) -> Self {
        let smaller = if resizable { vec![(3, None), (2, None)] } else { Vec::new() };
        Sizes { full, smaller }
    }

    pub(super) fn count(&self) -> usize {
        1 + self.smaller.len()
    }

    /// 0 is the picture's own.
    pub(super) fn get(&mut self, size: usize) -> &Raster {
        let Some(which) = size.checked_sub(1) else { return &self.full };
        let (quarters, reduced) = &mut self.smaller[which];
        let full = &self.full;
        reduced.get_or_insert_with(|| {
            let [width, height] = [full.width, full.height].map(|side| (side * *quarters / 4).max(1));
            full.reduced(width, height)
        })
    }
}
