//! JPEG: read, and written again in a lower quality.

use super::metadata::Metadata;
use super::qualities::{Codec, Picture};
use super::raster::Raster;
use jpeg_decoder::{Decoder, PixelFormat};
use jpeg_encoder::{Encoder, ImageBuffer, JpegColorType, SamplingFactor, rgb_to_ycbcr};

pub(super) const CODEC: Codec = Codec { qualities: 10..=92, read, write };

pub(super) fn read(bytes: &[u8]) -> Result<Picture, String> {
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
    let metadata = Metadata::of(decoder.exif_data(), decoder.icc_profile());
    let (width, height) = (usize::from(info.width), usize::from(info.height));
    Ok(Picture { raster: Raster { width, height, channels, samples }, metadata })
}

/// The orientation in the head of an image, if it is not the usual one.
pub(super) fn orientation(head: &[u8]) -> Option<u8> {
    let mut decoder = Decoder::new(head);
    decoder.read_info().ok()?;
    Metadata::of(decoder.exif_data(), None).orientation
}

/// Whether the image ends properly, because a decoder may fill missing parts with gray. After the start of the scan, the marker
/// that is searched for occurs only at the end.
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

fn write(raster: &Raster, quality: usize, metadata: &Metadata) -> Option<Vec<u8>> {
    let mut written = Vec::new();
    let mut encoder = Encoder::new(&mut written, u8::try_from(quality).ok()?);
    encoder.set_optimized_huffman_tables(true);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    if let Some(exif) = metadata.exif() {
        encoder.add_exif_metadata(&exif).ok()?;
    }
    if let Some(profile) = &metadata.profile {
        encoder.add_icc_profile(profile).ok()?;
    }
    let [width, height] = [raster.width, raster.height].map(|side| u16::try_from(side).ok());
    encoder.encode_image(Rows { raster, width: width?, height: height? }).ok()?;
    Some(written)
}

/// A gray or coloured raster in the form that the encoder reads. `Encoder::encode` would compile the whole encoder once for
/// each of its own nine types of images.
struct Rows<'a> {
    raster: &'a Raster,
    width: u16,
    height: u16,
}

impl ImageBuffer for Rows<'_> {
    fn get_jpeg_color_type(&self) -> JpegColorType {
        if self.raster.channels == 1 { JpegColorType::Luma } else { JpegColorType::Ycbcr }
    }

    fn width(&self) -> u16 {
        self.width
    }

    fn height(&self) -> u16 {
        self.height
    }

    fn fill_buffers(&self, y: u16, buffers: &mut [Vec<u8>; 4]) {
        let length = self.raster.width * self.raster.channels;
        let row = &self.raster.samples[usize::from(y) * length..][..length];
        if self.raster.channels == 1 {
            return buffers[0].extend_from_slice(row);
        }
        for [red, green, blue] in row.as_chunks().0 {
            let (light, toward_blue, toward_red) = rgb_to_ycbcr(*red, *green, *blue);
            buffers[0].push(light);
            buffers[1].push(toward_blue);
            buffers[2].push(toward_red);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::metadata::tests::profile_of;
    use super::*;

    #[test]
    fn orientation_survives() {
        let raster = Raster { width: 16, height: 8, channels: 3, samples: vec![120; 16 * 8 * 3] };
        for orientation in [None, Some(6)] {
            let written = write(&raster, 80, &Metadata { orientation, profile: None }).unwrap();
            assert_eq!(read(&written).unwrap().metadata.orientation, orientation);
        }
    }

    #[test]
    fn only_a_profile_that_differs_is_kept() {
        let raster = Raster { width: 8, height: 8, channels: 3, samples: vec![120; 192] };
        for (name, kept) in [
            ("sRGB IEC61966-2.1", false),
            ("Display P3", true),
            ("DCI-P3 D65 Gamut with sRGB Transfer", true),
        ] {
            let profile = profile_of(name, *b"RGB ", 2);
            let metadata = Metadata { orientation: None, profile: Some(profile) };
            let read = read(&write(&raster, 80, &metadata).unwrap()).unwrap();
            assert_eq!(read.metadata.profile.is_some(), kept);
        }
    }

    #[test]
    fn what_is_cut_short_is_an_error() {
        let samples: Vec<u8> = (0..64 * 64 * 3).map(|n: usize| (n * n % 251) as u8).collect();
        let raster = Raster { width: 64, height: 64, channels: 3, samples };
        let written = write(&raster, 80, &Metadata::default()).unwrap();
        assert!(read(&written).is_ok());
        assert!(read(&written[..written.len() / 2]).is_err());
    }
}
