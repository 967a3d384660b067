//! PNG: read, and written again with a palette or otherwise smaller.

use super::metadata::{Metadata, is_gray};
use super::palette::{Histogram, Palette};
use super::qualities::Picture;
use super::raster::Raster;
use super::search::Ladder;
use super::similarity::Original;
use super::within_bounds;
use png::{BitDepth, ColorType, Decoder, Encoder, Filter, Info, Transformations};
use std::borrow::Cow;
use std::io::Cursor;

/// The number of colours in each step.
pub(super) const COLORS: [usize; 7] = [4, 8, 16, 32, 64, 128, 256];

/// Reads any PNG as red, green, blue and opacity, without its metadata.
pub(super) fn read(bytes: &[u8]) -> Result<Raster, String> {
    decode(bytes).map(|picture| picture.raster)
}

/// The orientation in the head of an image, if it is not the usual one.
pub(super) fn orientation(head: &[u8]) -> Option<u8> {
    let reader = Decoder::new(Cursor::new(head)).read_info().ok()?;
    Metadata::of(reader.info().exif_metadata.as_deref(), None).orientation
}

/// Reads a PNG to write it again.
pub(super) fn read_picture(bytes: &[u8]) -> Result<Picture, String> {
    let picture = decode(bytes)?;
    // The picture would be written in colours, for which a gray profile is wrong.
    match &picture.metadata.profile {
        Some(profile) if is_gray(profile) => {
            Err("a PNG with a colour profile of gray tones is not reduced".to_owned())
        }
        _ => Ok(picture),
    }
}

fn decode(bytes: &[u8]) -> Result<Picture, String> {
    let mut decoder = Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::normalize_to_color8() | Transformations::ALPHA);
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let info = reader.info();
    let (width, height) = (info.width as usize, info.height as usize);
    within_bounds(width, height)?;
    if info.is_animated() {
        return Err("an animated PNG is not reduced".to_owned());
    }
    let mut samples = vec![0; reader.output_buffer_size().ok_or("too large")?];
    let frame = reader.next_frame(&mut samples).map_err(|error| error.to_string())?;
    // If a file is cut short, that shows here and not in the frame before.
    reader.finish().map_err(|error| error.to_string())?;
    let info = reader.info();
    let metadata =
        Metadata::of(info.exif_metadata.as_deref(), info.icc_profile.as_deref().map(<[u8]>::to_vec));
    samples.truncate(frame.buffer_size());
    let samples = match frame.color_type {
        ColorType::Rgba => samples,
        ColorType::GrayscaleAlpha => {
            samples.chunks_exact(2).flat_map(|pair| [pair[0], pair[0], pair[0], pair[1]]).collect()
        }
        other => return Err(format!("colours as {other:?} are not reduced")),
    };
    Ok(Picture { raster: Raster { width, height, channels: 4, samples }, metadata })
}

/// The ladder of palettes of an image.
pub(super) fn ladder(picture: &Picture) -> Ladder {
    let original = Original::of(&picture.raster);
    let histogram = Histogram::of(std::iter::once(picture.raster.samples.as_slice()));
    let picture = picture.clone();
    Ladder {
        steps: COLORS.len(),
        write: Box::new(move |step| write(&picture, &histogram.palette(COLORS[step])).ok()),
        similarity: original.judge(read),
    }
}

fn write(picture: &Picture, palette: &Palette) -> Result<Vec<u8>, png::EncodingError> {
    let Picture { raster, metadata } = picture;
    let bits = match palette.colors.len() {
        0..=2 => 1,
        3..=4 => 2,
        5..=16 => 4,
        _ => 8,
    };
    let mut written = Vec::new();
    let mut info = Info::with_size(raster.width as u32, raster.height as u32);
    info.icc_profile = metadata.profile.as_deref().map(Cow::Borrowed);
    info.exif_metadata = metadata.exif().map(Cow::Owned);
    let mut encoder = Encoder::with_info(&mut written, info)?;
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::from_u8(bits).unwrap_or(BitDepth::Eight));
    encoder.set_palette(
        palette.colors.iter().flat_map(|color| [color[0], color[1], color[2]]).collect::<Vec<u8>>(),
    );
    if palette.colors.iter().any(|color| color[3] < 255) {
        encoder.set_trns(palette.colors.iter().map(|color| color[3]).collect::<Vec<u8>>());
    }
    encoder.set_deflate_compression(png::DeflateCompression::Level(9));
    encoder.set_filter(Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    let indices = palette.indices(&raster.samples);
    writer.write_image_data(&packed(&indices, raster.width, bits))?;
    writer.finish()?;
    Ok(written)
}

/// Packs indices of `bits` each into bytes; each row begins with a byte of its own.
fn packed(indices: &[u8], width: usize, bits: u8) -> Vec<u8> {
    let per_byte = usize::from(8 / bits);
    let byte = |places: &[u8]| {
        let shifted = places.iter().enumerate().map(|(n, place)| place << (8 - bits * (n as u8 + 1)));
        shifted.fold(0, |byte, place| byte | place)
    };
    indices.chunks(width).flat_map(|row| row.chunks(per_byte).map(byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::metadata::tests::profile_of;
    use super::*;

    #[test]
    fn every_depth_reads_back() {
        for colors in [2_usize, 4, 9, 200] {
            let samples: Vec<u8> = (0..23 * 7)
                .flat_map(|n| [(n % colors) as u8, 10, 20, if n % colors == 1 { 128 } else { 255 }])
                .collect();
            let raster = Raster { width: 23, height: 7, channels: 4, samples };
            let palette = Histogram::of([raster.samples.as_slice()].into_iter()).palette(256);
            let plain = Picture { raster, metadata: Metadata::default() };
            let read = read(&write(&plain, &palette).unwrap()).unwrap();
            assert_eq!(read, plain.raster, "{colors} colours");
        }
    }

    #[test]
    fn orientation_and_profile_survive() {
        let raster = Raster { width: 8, height: 4, channels: 4, samples: vec![120; 8 * 4 * 4] };
        let palette = Histogram::of([raster.samples.as_slice()].into_iter()).palette(4);
        let written = |orientation, profile| {
            let metadata = Metadata { orientation, profile: Some(profile) };
            write(&Picture { raster: raster.clone(), metadata }, &palette).unwrap()
        };
        let wide = profile_of("Display P3", *b"RGB ", 4);
        let bytes = written(Some(6), wide.clone());
        let metadata = Metadata { orientation: Some(6), profile: Some(wide) };
        assert_eq!(read_picture(&bytes).unwrap(), Picture { raster: raster.clone(), metadata });
        assert_eq!(orientation(&bytes), Some(6));
        let usual = read_picture(&written(None, profile_of("sRGB", *b"RGB ", 2))).unwrap();
        assert_eq!(usual.metadata, Metadata::default());
        let gray = read_picture(&written(None, profile_of("Gray Gamma 2.2", *b"GRAY", 2)));
        assert!(gray.is_err_and(|why| why.contains("gray tones")));
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let raster = Raster {
            width: 40,
            height: 40,
            channels: 4,
            samples: (0..6400).map(|n| (n * n % 251) as u8).collect(),
        };
        let palette = Histogram::of([raster.samples.as_slice()].into_iter()).palette(256);
        let written = write(&Picture { raster, metadata: Metadata::default() }, &palette).unwrap();
        assert!(read(&written[..written.len() / 2]).is_err());
        assert!(read(b"no picture").is_err());
    }
}
