//! Formats that lose by quality: each quality in three sizes or one.

use super::metadata::Metadata;
use super::raster::Raster;
use super::search::Ladder;
use super::similarity::Original;
use std::ops::RangeInclusive;

/// At this quality a smaller size is not better.
const GOOD: usize = 45;

pub(super) struct Picture {
    pub(super) raster: Raster,
    pub(super) metadata: Metadata,
}

/// How such a format is read and written.
#[derive(Clone)]
pub(super) struct Codec {
    /// The qualities that are tried. Below the lowest, blocks show; above the highest, nothing is gained.
    pub(super) qualities: RangeInclusive<usize>,
    pub(super) read: fn(&[u8]) -> Result<Picture, String>,
    /// Writes the image in a quality; `None` if it cannot be written so.
    pub(super) write: fn(&Raster, usize, &Metadata) -> Option<Vec<u8>>,
}

impl Codec {
    /// One image of such a format in each of its qualities; in smaller sizes, too, where it is `resizable`.
    ///
    /// # Errors
    /// The image cannot be read.
    pub(super) fn ladder(self, bytes: &[u8], resizable: bool) -> Result<Ladder, String> {
        let picture = (self.read)(bytes)?;
        Ok(self.ladder_of(picture, resizable))
    }

    /// The same for a picture that was read from another format.
    pub(super) fn ladder_of(self, picture: Picture, resizable: bool) -> Ladder {
        let Codec { qualities, read, write } = self;
        let Picture { raster, metadata } = picture;
        let original = Original::of(&raster);
        let quarters = |side: usize, quarters: usize| (side * quarters / 4).max(1);
        let smaller = |n| raster.reduced(quarters(raster.width, n), quarters(raster.height, n));
        let smaller: Vec<Raster> = if resizable { vec![smaller(3), smaller(2)] } else { Vec::new() };
        let sizes: Vec<Raster> = std::iter::once(raster).chain(smaller).collect();
        let lowest = *qualities.start();
        Ladder {
            sizes: sizes.len(),
            steps: qualities.count(),
            contented: GOOD - lowest,
            write: Box::new(move |size, step| write(&sizes[size], lowest + step, &metadata)),
            similarity: original.judge(move |written| Ok(read(written)?.raster)),
        }
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
            let mut ladder = codec.ladder(&read, true).unwrap();
            let best = ladder.steps - 1;
            let similar = [0, best / 2, best].map(|step| {
                let written = (ladder.write)(0, step).unwrap();
                (ladder.similarity)(&written)
            });
            assert!(0.2 < similar[0] && similar[0] < similar[1] && similar[1] < similar[2], "{similar:?}");
            assert!(similar[2] > 0.97, "{similar:?}");
            let half = (ladder.write)(2, best).unwrap();
            assert_eq!(dimensions(&half), Some((48, 32)));
        }
    }
}
