//! Lossy formats with a quality setting.

use super::metadata::Metadata;
use super::raster::Raster;
use super::search::Ladder;
use super::similarity::Original;
use std::ops::RangeInclusive;

/// An image that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Picture {
    pub(super) raster: Raster,
    pub(super) metadata: Metadata,
}

/// How a lossy format is read and written.
#[derive(Clone)]
pub(super) struct Codec {
    /// The qualities that are tried. Below the lowest, blocks are visible; above the highest, nothing is gained.
    pub(super) qualities: RangeInclusive<usize>,
    pub(super) read: fn(&[u8]) -> Result<Picture, String>,
    /// Writes the image in a quality; `None` if it cannot be written.
    pub(super) write: fn(&Raster, usize, &Metadata) -> Option<Vec<u8>>,
}

impl Codec {
    /// A picture in each of the format's qualities.
    pub(super) fn ladder(self, picture: &Picture) -> Ladder {
        let Codec { qualities, read, write } = self;
        let Picture { raster, metadata } = picture.clone();
        let original = Original::of(&raster);
        let lowest = *qualities.start();
        Ladder {
            steps: qualities.count(),
            write: Box::new(move |step| write(&raster, lowest + step, &metadata)),
            similarity: original.judge(move |written| Ok(read(written)?.raster)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{jpeg, webp};
    use super::*;

    #[test]
    fn what_is_written_is_compared_with_what_was_read() {
        let samples =
            (0..96 * 64).flat_map(|at: usize| [(at % 96 * 2 + at / 96 * 7 % 60) as u8, 100, 150]).collect();
        let raster = Raster { width: 96, height: 64, channels: 3, samples };
        for codec in [jpeg::CODEC, webp::CODEC] {
            let read = (codec.write)(&raster, 92, &Metadata::default()).unwrap();
            let mut ladder = codec.clone().ladder(&(codec.read)(&read).unwrap());
            let best = ladder.steps - 1;
            let similar = [0, best / 2, best].map(|step| {
                let written = (ladder.write)(step).unwrap();
                (ladder.similarity)(&written)
            });
            assert!(similar[0] < similar[1] && similar[1] < similar[2], "{similar:?}");
            assert!(similar[2] > 0.95, "{similar:?}");
        }
    }
}
