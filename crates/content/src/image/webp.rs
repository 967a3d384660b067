//! WebP: read, and written again in a lower quality; and written, lossy or lossless, for a picture of another format.
//!
//! A lossless picture may be written as a lossy one that the search finds similar enough; name and content type stay the same.
//! A moving picture is not changed. libwebp reads and writes the pixels, `img_parts` the container with the metadata.

use super::metadata::Metadata;
use super::qualities::{Codec, Picture};
use super::raster::Raster;
use super::within_bounds;
use img_parts::webp::WebP as Container;
use img_parts::{Bytes, ImageEXIF, ImageICC};
use webp::{BitstreamFeatures, Decoder, Encoder, PixelLayout};

pub(super) const CODEC: Codec = Codec { qualities: 5..=92, read, write };

pub(super) fn read(bytes: &[u8]) -> Result<Picture, String> {
    let features = BitstreamFeatures::new(bytes).ok_or("it is broken")?;
    if features.has_animation() {
        return Err("an animated WebP is not reduced".to_owned());
    }
    let (width, height) = (features.width() as usize, features.height() as usize);
    within_bounds(width, height)?;
    let image = Decoder::new(bytes).decode().ok_or("it is broken or cut short")?;
    let channels = if image.is_alpha() { 4 } else { 3 };
    let raster = Raster { width, height, channels, samples: image.to_vec() };
    let container =
        Container::from_bytes(Bytes::copy_from_slice(bytes)).map_err(|error| error.to_string())?;
    let metadata = Metadata::of(container.exif().as_deref(), container.icc_profile().map(Vec::from));
    Ok(Picture { raster, metadata })
}

fn write(raster: &Raster, quality: usize, metadata: &Metadata) -> Option<Vec<u8>> {
    encoded(raster, false, quality as f32, metadata)
}

/// The picture as a lossless WebP.
pub(super) fn lossless(raster: &Raster, metadata: &Metadata) -> Option<Vec<u8>> {
    encoded(raster, true, EFFORT, metadata)
}

/// The effort of the lossless encoder: more effort takes twice as long and saves hardly a byte.
const EFFORT: f32 = 75.0;

fn encoded(raster: &Raster, lossless: bool, quality: f32, metadata: &Metadata) -> Option<Vec<u8>> {
    let layout = if raster.channels == 4 { PixelLayout::Rgba } else { PixelLayout::Rgb };
    let [width, height] = [raster.width, raster.height].map(|side| u32::try_from(side).ok());
    // WebP has no gray format, so gray becomes colour.
    let gray = raster.channels == 1;
    let colors = gray.then(|| raster.samples.iter().flat_map(|&gray| [gray; 3]).collect::<Vec<u8>>());
    let samples = colors.as_ref().unwrap_or(&raster.samples);
    let encoded = Encoder::new(samples, layout, width?, height?).encode_simple(lossless, quality).ok()?;
    if *metadata == Metadata::default() {
        return Some(encoded.to_vec());
    }
    let mut container = Container::from_bytes(Bytes::copy_from_slice(&encoded)).ok()?;
    container.set_icc_profile(metadata.profile.clone().map(Bytes::from));
    container.set_exif(metadata.exif().map(Bytes::from));
    Some(container.encoder().bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::{Reduction, dimensions, format, reduced};
    use super::*;
    use imagesize::ImageType;

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

    fn wanted(factor: f64, similarity: f64) -> Reduction {
        Reduction {
            factor: Some(factor),
            similarity,
            enough: 1.0,
            size: None,
            any_format: false,
            variant: false,
        }
    }

    #[test]
    fn a_quarter_of_the_bytes_under_the_same_name() {
        for channels in [3, 4] {
            let original = write(&picture(channels), 90, &Metadata::default()).unwrap();
            let wanted = wanted(4.0, 0.5);
            let found = reduced(&original, wanted).unwrap().named.unwrap();
            assert!(
                format(&found.written) == Some(ImageType::Webp) && found.similarity >= 0.5,
                "{}",
                found.similarity
            );
            let factor = original.len() as f64 / found.written.len() as f64;
            assert!((4.0..6.0).contains(&factor), "{channels}: {factor}");
            let webp = read(&found.written).unwrap();
            assert_eq!(webp.raster.is_transparent(), channels == 4, "what is transparent stays so");
        }
    }

    #[test]
    fn what_is_not_similar_enough_keeps_the_factor_that_it_can() {
        let original = write(&picture(3), 90, &Metadata::default()).unwrap();
        let floor = wanted(50.0, 0.94);
        let found = reduced(&original, floor).unwrap().named.unwrap();
        let factor = original.len() as f64 / found.written.len() as f64;
        assert!(found.similarity >= 0.94 && (1.05..20.0).contains(&factor), "{factor}");
        // The same input makes the same bytes.
        assert_eq!(reduced(&original, floor).unwrap().named.unwrap(), found);
    }

    #[test]
    fn without_loss_becomes_with_loss() {
        let raster = picture(4);
        let lossless = Encoder::from_rgba(&raster.samples, 320, 200).encode_lossless().to_vec();
        assert_eq!((dimensions(&lossless), &lossless[12..16]), (Some((320, 200)), &b"VP8L"[..]));
        let found = reduced(&lossless, wanted(8.0, 0.5)).unwrap().named.unwrap();
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
        // Two equal frames would be stored as one.
        rasters[1].samples.reverse();
        for (raster, time) in rasters.iter().zip([0, 100]) {
            moving.add_frame(webp::AnimFrame::from_rgb(&raster.samples, 320, 200, time));
        }
        let moving = moving.encode().to_vec();
        assert_eq!(dimensions(&moving), Some((320, 200)));
        assert!(read(&moving).is_err_and(|what| what.contains("animated")));
    }
}
