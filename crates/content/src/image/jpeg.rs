//! JPEG: read, written again with less quality, or smaller.
//!
//! What a viewer needs of the metadata is
//! kept: the orientation and a colour profile other than sRGB; camera, place and preview are not.

use super::raster::{Plane, Raster};
use super::search::Ladder;
use super::similarity::similarity;
use jpeg_decoder::{Decoder, PixelFormat};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

/// Qualities that are tried: below, blocks show; above, nothing is gained.
const QUALITY: std::ops::RangeInclusive<usize> = 10..=92;
/// At this quality a smaller size is not better.
const GOOD: usize = 45;

/// An image that was read.
pub(super) struct Jpeg {
    pub(super) raster: Raster,
    orientation: Option<u8>,
    profile: Option<Vec<u8>>,
}

/// Reads it.
pub(super) fn read(bytes: &[u8]) -> Result<Jpeg, String> {
    if !is_complete(bytes) {
        return Err("it is cut short".to_owned());
    }
    let mut decoder = Decoder::new(bytes);
    let samples = decoder.decode().map_err(|error| error.to_string())?;
    let info = decoder.info().ok_or("no size")?;
    let channels = match info.pixel_format {
        PixelFormat::L8 => 1,
        PixelFormat::RGB24 => 3,
        other => return Err(format!("colours as {other:?} are not reduced")),
    };
    let orientation = decoder.exif_data().and_then(orientation);
    let profile = decoder.icc_profile().filter(|profile| !is_srgb(profile));
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    Ok(Jpeg { raster: Raster { width, height, channels, samples }, orientation, profile })
}

/// Whether its end is there: a decoder may fill what is missing with gray. In what follows the start of the scan, only
/// the end has this marker.
fn is_complete(bytes: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xff, marker, high, low]) = bytes.get(at..at + 4) {
        if marker == 0xda {
            return bytes[at..].windows(2).any(|pair| pair == [0xff, 0xd9]);
        }
        at += if marker == 0xff { 1 } else { 2 + usize::from(u16::from_be_bytes([high, low])) };
    }
    false
}

/// The orientation's value where it is not the usual one (Exif 2.32, 4.6.4, tag 0x0112).
fn orientation(exif: &[u8]) -> Option<u8> {
    let little = exif.starts_with(b"II");
    let short = |at: usize| {
        let bytes = exif.get(at..at + 2)?.try_into().ok()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let (high, low) = if little { (short(6)?, short(4)?) } else { (short(4)?, short(6)?) };
    let start = usize::from(high) << 16 | usize::from(low);
    let entries = usize::from(short(start)?);
    let entry = (0..entries).map(|n| start + 2 + 12 * n).find(|&at| short(at) == Some(0x0112))?;
    let value = u8::try_from(short(entry + 8)?).ok()?;
    (2..=8).contains(&value).then_some(value)
}

/// A profile that says what viewers assume without one.
fn is_srgb(profile: &[u8]) -> bool {
    let wide: Vec<u8> = b"sRGB".iter().flat_map(|&letter| [0, letter]).collect();
    [b"sRGB".as_slice(), &wide].iter().any(|name| profile.windows(name.len()).any(|part| part == *name))
}

/// An Exif segment that says the orientation and no more.
fn exif_of(orientation: u8) -> Vec<u8> {
    let mut exif = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
    exif.extend([orientation, 0, 0, 0, 0, 0, 0]);
    exif
}

/// Its qualities, in three sizes or one.
pub(super) struct Qualities {
    jpeg: Jpeg,
    original: Plane,
    /// Reduced sizes, made when they are asked for.
    smaller: Vec<(usize, Option<Raster>)>,
}

impl Qualities {
    pub(super) fn new(jpeg: Jpeg, resizable: bool) -> Self {
        let original = jpeg.raster.luma(0);
        let smaller = if resizable { vec![(3, None), (2, None)] } else { Vec::new() };
        Qualities { jpeg, original, smaller }
    }
}

impl Ladder for Qualities {
    fn sizes(&self) -> usize {
        1 + self.smaller.len()
    }

    fn steps(&self) -> usize {
        QUALITY.end() - QUALITY.start() + 1
    }

    fn contented(&self) -> usize {
        GOOD - QUALITY.start()
    }

    fn write(&mut self, size: usize, step: usize) -> Option<Vec<u8>> {
        let raster = match size.checked_sub(1) {
            None => &self.jpeg.raster,
            Some(which) => {
                let (quarters, reduced) = &mut self.smaller[which];
                let full = &self.jpeg.raster;
                reduced.get_or_insert_with(|| {
                    let [width, height] = [full.width, full.height].map(|side| (side * *quarters / 4).max(1));
                    full.reduced(width, height)
                })
            }
        };
        write(raster, QUALITY.start() + step, &self.jpeg)
    }

    fn similarity(&mut self, written: &[u8]) -> f64 {
        let Ok(jpeg) = read(written) else { return 0.0 };
        let plane = jpeg.raster.luma(0);
        similarity(&self.original, &plane.enlarged(self.original.width, self.original.height))
    }
}

fn write(raster: &Raster, quality: usize, of: &Jpeg) -> Option<Vec<u8>> {
    let mut written = Vec::new();
    let mut encoder = Encoder::new(&mut written, u8::try_from(quality).ok()?);
    encoder.set_optimized_huffman_tables(true);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    if let Some(orientation) = of.orientation {
        encoder.add_exif_metadata(&exif_of(orientation)).ok()?;
    }
    if let Some(profile) = &of.profile {
        encoder.add_icc_profile(profile).ok()?;
    }
    let [width, height] = [raster.width, raster.height].map(|side| u16::try_from(side).ok());
    let color = if raster.channels == 1 { ColorType::Luma } else { ColorType::Rgb };
    encoder.encode(&raster.samples, width?, height?, color).ok()?;
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_compared_with_what_was_read() {
        let samples =
            (0..96 * 64).flat_map(|at: usize| [(at % 96 * 2 + at / 96 * 7 % 60) as u8, 100, 150]).collect();
        let jpeg = Jpeg {
            raster: Raster { width: 96, height: 64, channels: 3, samples },
            orientation: None,
            profile: None,
        };
        let mut qualities = Qualities::new(jpeg, true);
        let similar = [0, 40, 82].map(|step| {
            let written = qualities.write(0, step).unwrap();
            qualities.similarity(&written)
        });
        assert!(0.2 < similar[0] && similar[0] < similar[1] && similar[1] < similar[2], "{similar:?}");
        assert!(similar[2] > 0.97, "{similar:?}");
        let half = qualities.write(2, 82).unwrap();
        assert_eq!(super::super::dimensions(&half), Some((48, 32)));
    }

    #[test]
    fn orientation_survives() {
        let raster = Raster { width: 16, height: 8, channels: 3, samples: vec![120; 16 * 8 * 3] };
        for orientation in [None, Some(6)] {
            let jpeg = Jpeg { raster: raster.clone(), orientation, profile: None };
            let written = write(&raster, 80, &jpeg).unwrap();
            assert_eq!(read(&written).unwrap().orientation, orientation);
        }
        let little = b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x03\0\0\0\0\0\0\0";
        assert_eq!(orientation(little), Some(3));
        for end in 0..little.len() {
            orientation(&little[..end]);
        }
    }

    #[test]
    fn only_a_profile_that_differs_is_kept() {
        let raster = Raster { width: 8, height: 8, channels: 3, samples: vec![120; 192] };
        for (profile, kept) in
            [(b"xx\0s\0R\0G\0B\0 ".to_vec(), false), (b"Display P3 profile".to_vec(), true)]
        {
            let jpeg = Jpeg { raster: raster.clone(), orientation: None, profile: Some(profile) };
            let read = read(&write(&raster, 80, &jpeg).unwrap()).unwrap();
            assert_eq!(read.profile.is_some(), kept);
        }
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let samples: Vec<u8> = (0..64 * 64 * 3).map(|n: usize| (n * n % 251) as u8).collect();
        let raster = Raster { width: 64, height: 64, channels: 3, samples };
        let jpeg = Jpeg { raster: raster.clone(), orientation: None, profile: None };
        let written = write(&raster, 80, &jpeg).unwrap();
        assert!(read(&written).is_ok());
        assert!(read(&written[..written.len() / 2]).is_err());
    }
}
