//! Formats that lose by quality: each quality in three sizes or one.

use super::metadata::Metadata;
use super::raster::Raster;
use super::search::Ladder;
use super::similarity::Original;
use super::sizes::Sizes;
use std::ops::RangeInclusive;

/// At this quality a smaller size is not better.
const GOOD: usize = 45;

/// An image that was read.
pub(super) struct Picture {
    pub(super) raster: Raster,
    pub(super) metadata: Metadata,
}

/// How such a format is read and written.
#[derive(Clone)]
pub(super) struct Codec {
    /// Qualities that are tried: below, blocks show; above, nothing is gained.
    pub(super) qualities: RangeInclusive<usize>,
    pub(super) read: fn(&[u8]) -> Result<Picture, String>,
    /// The image in a quality; `None` if it cannot be written so.
    pub(super) write: fn(&Raster, usize, &Metadata) -> Option<Vec<u8>>,
}

/// One image in such a format.
pub(super) struct Qualities {
    codec: Codec,
    sizes: Sizes,
    metadata: Metadata,
    original: Original,
}

impl Qualities {
    /// # Errors
    /// If it cannot be read.
    pub(super) fn new(codec: Codec, bytes: &[u8], resizable: bool) -> Result<Self, String> {
        let Picture { raster, metadata } = (codec.read)(bytes)?;
        let original = Original::of(&raster);
        Ok(Qualities { codec, sizes: Sizes::new(raster, resizable), metadata, original })
    }
}

impl Ladder for Qualities {
    fn sizes(&self) -> usize {
        self.sizes.count()
    }

    fn steps(&self) -> usize {
        self.codec.qualities.clone().count()
    }

    fn contented(&self) -> usize {
        GOOD - self.codec.qualities.start()
    }

    fn write(&mut self, size: usize, step: usize) -> Option<Vec<u8>> {
        (self.codec.write)(self.sizes.get(size), self.codec.qualities.start() + step, &self.metadata)
    }

    fn similarity(&mut self, written: &[u8]) -> f64 {
        (self.codec.read)(written).map_or(0.0, |picture| self.original.similarity(&picture.raster))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{dimensions, jpeg, webp};
    use super::*;

    #[test]
    fn what_is_written_is_compared_with_what_was_read() {
        let samples =
            (0..96 * 64).flat_map(|at: usize| [(at % 96 * 2 + at / 96 * 7 % 60) as u8, 100, 150]).collect();
        let raster = Raster { width: 96, height: 64, channels: 3, samples };
        for codec in [jpeg::CODEC, webp::CODEC] {
            let read = (codec.write)(&raster, 92, &Metadata::default()).unwrap();
            let mut qualities = Qualities::new(codec, &read, true).unwrap();
            let best = qualities.steps() - 1;
            let similar = [0, best / 2, best].map(|step| {
                let written = qualities.write(0, step).unwrap();
                qualities.similarity(&written)
            });
            assert!(0.2 < similar[0] && similar[0] < similar[1] && similar[1] < similar[2], "{similar:?}");
            assert!(similar[2] > 0.97, "{similar:?}");
            let half = qualities.write(2, best).unwrap();
            assert_eq!(dimensions(&half), Some((48, 32)));
        }
    }
}
