//! WebP: read, written again with less quality, or smaller.
//!
//! A picture without loss is written with loss, as a search finds it similar enough: name and content type stay. A moving
//! one is not touched. libwebp reads and writes the pixels; the container around them is made here, for the metadata
//! (WebP Container Specification, "Extended File Format"; RFC 9649, 2.7).

use super::metadata::Metadata;
use super::qualities::{Codec, Picture};
use super::raster::Raster;
use super::within_bounds;
use webp::{BitstreamFeatures, Decoder, Encoder, PixelLayout};

pub(super) const CODEC: Codec = Codec { qualities: 5..=92, read, write };

/// The flags of what is in a container.
const PROFILE: u8 = 0x20;
const ALPHA: u8 = 0x10;
const EXIF: u8 = 0x08;

/// Whether a file begins as one.
pub(super) fn is_webp(bytes: &[u8]) -> bool {
    bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP")
}

/// The parts of the container: their names and contents.
fn chunks(bytes: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    let mut at = 12;
    std::iter::from_fn(move || {
        let (name, rest) = bytes.get(at..)?.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = u32::from_le_bytes(*length) as usize;
        // A part of odd length is followed by a byte of nothing.
        at = at.checked_add(8 + length + length % 2)?;
        Some((name, rest.get(..length).unwrap_or(rest)))
    })
}

fn chunk(bytes: &[u8], name: [u8; 4]) -> Option<&[u8]> {
    chunks(bytes).find(|(other, _)| **other == name).map(|(_, contents)| contents)
}

/// Width and height, from the head.
pub(super) fn dimensions(bytes: &[u8]) -> Option<(usize, usize)> {
    let (name, head) = chunks(bytes).next()?;
    let at = |place: usize| head.get(place).map(|byte| usize::from(*byte));
    match name {
        // Each less one, in three bytes.
        b"VP8X" => {
            let side = |place| Some(1 + (at(place)? | at(place + 1)? << 8 | at(place + 2)? << 16));
            Some((side(4)?, side(7)?))
        }
        // Each less one, in 14 bits, after the signature.
        b"VP8L" => {
            let bits = at(1)? | at(2)? << 8 | at(3)? << 16 | at(4)? << 24;
            (at(0)? == 0x2f).then_some((1 + (bits & 0x3fff), 1 + (bits >> 14 & 0x3fff)))
        }
        // Width and height have 14 bits each, after the frame's tag and start code (RFC 6386, 9.1).
        b"VP8 " => {
            let side = |place| Some((at(place)? | at(place + 1)? << 8) & 0x3fff);
            (head.get(3..6) == Some(b"\x9d\x01\x2a")).then_some((side(6)?, side(8)?))
        }
        _ => None,
    }
}

/// Reads it.
fn read(bytes: &[u8]) -> Result<Picture, String> {
    let features = BitstreamFeatures::new(bytes).ok_or("it is broken")?;
    if features.has_animation() {
        return Err("an animated WebP is not reduced".to_owned());
    }
    let (width, height) = (features.width() as usize, features.height() as usize);
    within_bounds(width, height)?;
    let image = Decoder::new(bytes).decode().ok_or("it is broken or cut short")?;
    let channels = if image.is_alpha() { 4 } else { 3 };
    let raster = Raster { width, height, channels, samples: image.to_vec() };
    // Some writers begin it as JPEG does.
    let exif = chunk(bytes, *b"EXIF").map(|exif| exif.strip_prefix(b"Exif\0\0").unwrap_or(exif));
    let metadata = Metadata::of(exif, chunk(bytes, *b"ICCP").map(<[u8]>::to_vec));
    Ok(Picture { raster, metadata })
}

fn write(raster: &Raster, quality: usize, metadata: &Metadata) -> Option<Vec<u8>> {
    let layout = if raster.channels == 4 { PixelLayout::Rgba } else { PixelLayout::Rgb };
    let [width, height] = [raster.width, raster.height].map(|side| u32::try_from(side).ok());
    let encoder = Encoder::new(&raster.samples, layout, width?, height?);
    let encoded = encoder.encode_simple(false, quality as f32).ok()?;
    let exif = metadata.exif();
    if exif.is_none() && metadata.profile.is_none() {
        return Some(encoded.to_vec());
    }
    let alpha = chunk(&encoded, *b"ALPH");
    let flag = |there: bool, flag: u8| if there { flag } else { 0 };
    let flags =
        flag(metadata.profile.is_some(), PROFILE) | flag(alpha.is_some(), ALPHA) | flag(exif.is_some(), EXIF);
    let mut head = vec![flags, 0, 0, 0];
    for side in [width?, height?] {
        head.extend(&(side - 1).to_le_bytes()[..3]);
    }
    let parts = [
        (b"VP8X", Some(head.as_slice())),
        (b"ICCP", metadata.profile.as_deref()),
        (b"ALPH", alpha),
        (b"VP8 ", Some(chunk(&encoded, *b"VP8 ")?)),
        (b"EXIF", exif.as_deref()),
    ];
    container(parts.into_iter().filter_map(|(name, contents)| Some((name, contents?))))
}

fn container<'a>(parts: impl Iterator<Item = (&'a [u8; 4], &'a [u8])>) -> Option<Vec<u8>> {
    let mut body = b"WEBP".to_vec();
    for (name, contents) in parts {
        body.extend(name);
        body.extend(u32::try_from(contents.len()).ok()?.to_le_bytes());
        body.extend(contents);
        body.resize(body.len().next_multiple_of(2), 0);
    }
    let mut file = b"RIFF".to_vec();
    file.extend(u32::try_from(body.len()).ok()?.to_le_bytes());
    file.extend(body);
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::super::{Reduction, reduced};
    use super::*;

    /// Waves, and grain over them.
    fn picture(channels: usize) -> Raster {
        let (width, height) = (320, 200);
        let pixel = |at: usize| {
            let (x, y) = (at % width, at / width);
            let grain = (at * 7919 % 104_729 % 23) as f64;
            let wave = 110.0 + 80.0 * ((x as f64 / 19.0).sin() * (y as f64 / 13.0).cos());
            let gray = (wave + grain) as u8;
            [gray, gray / 2 + 60, 250 - gray, if x < 160 { 255 } else { (y + 20) as u8 }]
        };
        let samples = (0..width * height).flat_map(|at| pixel(at).into_iter().take(channels)).collect();
        Raster { width, height, channels, samples }
    }

    #[test]
    fn a_quarter_of_the_bytes_under_the_same_name() {
        for (channels, resizable) in [(3, false), (4, false), (3, true)] {
            let original = write(&picture(channels), 90, &Metadata::default()).unwrap();
            let wanted = Reduction { factor: 4.0, similarity: 0.8, resizable };
            let found = reduced(&original, wanted).unwrap().unwrap();
            assert!(is_webp(&found.written) && found.similarity >= 0.8, "{}", found.similarity);
            let factor = original.len() as f64 / found.written.len() as f64;
            assert!((4.0..6.0).contains(&factor), "{channels}: {factor}");
            let webp = read(&found.written).unwrap();
            assert_eq!(webp.raster.is_transparent(), channels == 4, "what is transparent stays so");
        }
    }

    #[test]
    fn what_is_not_similar_enough_keeps_the_factor_that_it_can() {
        let original = write(&picture(3), 90, &Metadata::default()).unwrap();
        let floor = Reduction { factor: 50.0, similarity: 0.97, resizable: false };
        let found = reduced(&original, floor).unwrap().unwrap();
        let factor = original.len() as f64 / found.written.len() as f64;
        assert!(found.similarity >= 0.97 && (1.05..20.0).contains(&factor), "{factor}");
        // The same bytes make the same bytes.
        assert_eq!(reduced(&original, floor).unwrap().unwrap(), found);
    }

    #[test]
    fn without_loss_becomes_with_loss() {
        let raster = picture(4);
        let lossless = Encoder::from_rgba(&raster.samples, 320, 200).encode_lossless().to_vec();
        assert_eq!((dimensions(&lossless), chunks(&lossless).next().unwrap().0), (Some((320, 200)), b"VP8L"));
        let found = reduced(&lossless, Reduction { factor: 8.0, similarity: 0.8, resizable: false });
        let found = found.unwrap().unwrap();
        assert!(found.written.len() * 8 <= lossless.len(), "{} {}", found.written.len(), lossless.len());
        assert_eq!(dimensions(&found.written), Some((320, 200)));
    }

    #[test]
    fn orientation_and_profile_survive() {
        for channels in [3, 4] {
            let profile = Some(b"Display P3 profile, odd".to_vec());
            for metadata in [
                Metadata { orientation: Some(6), profile: profile.clone() },
                Metadata { orientation: Some(3), profile: None },
                Metadata { orientation: None, profile },
            ] {
                let written = write(&picture(channels), 70, &metadata).unwrap();
                let webp = read(&written).unwrap();
                assert_eq!((webp.metadata, webp.raster.channels), (metadata, channels));
                assert_eq!(dimensions(&written), Some((320, 200)));
                let size = u32::from_le_bytes(written[4..8].try_into().unwrap()) as usize;
                assert_eq!(size + 8, written.len());
            }
        }
    }

    #[test]
    fn what_is_cut_short_or_moves_is_said() {
        let plain = write(&picture(3), 80, &Metadata::default()).unwrap();
        let tagged = Metadata { orientation: Some(6), profile: None };
        for written in [plain, write(&picture(4), 80, &tagged).unwrap()] {
            for end in (0..written.len()).step_by(97) {
                assert!(read(&written[..end]).is_err(), "{end} of {}", written.len());
                dimensions(&written[..end]);
            }
        }
        let config = webp::WebPConfig::new().unwrap();
        let mut moving = webp::AnimEncoder::new(320, 200, &config);
        let mut rasters = [picture(3), picture(3)];
        // Two frames of one picture would be one.
        rasters[1].samples.reverse();
        for (raster, time) in rasters.iter().zip([0, 100]) {
            moving.add_frame(webp::AnimFrame::from_rgb(&raster.samples, 320, 200, time));
        }
        let moving = moving.encode().to_vec();
        assert_eq!(dimensions(&moving), Some((320, 200)));
        assert!(read(&moving).is_err_and(|what| what.contains("animated")));
    }
}
