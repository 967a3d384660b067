//! Images written again in fewer bytes under the same name: in the same format or, if a photograph came as PNG or GIF, as JPEG
//! or WebP. A WebP may be written beside the image, which a server sends to clients that accept it.
//!
//! Input: the bytes of an image, and how far it is to be reduced. Output: fewer bytes with their measured similarity, or
//! nothing if nothing smaller is similar enough.
//!
//! At the light level an image gets as few bytes as the bound on similarity allows. The lean level follows the paper's policy:
//! an image above a limit is reduced by a factor in bytes (CA 3.3: 32 KB, 8). The best quality that fits is found by search and
//! measured ([`similarity`]). If it is less similar than the bound allows, the image gets more bytes than the factor allows.

mod avif;
mod gif;
mod jpeg;
mod metadata;
mod palette;
mod png;
mod qualities;
mod raster;
mod search;
mod similarity;
mod webp;

pub(crate) use avif::check as check_avif;
use imagesize::{Compression, ImageType};
use metadata::Metadata;
use qualities::Picture;
pub(crate) use search::Found;
use search::{Ladder, Wanted, best};
use std::sync::{Mutex, PoisonError};

/// The most pixels of an image, all frames together, that are taken into memory: as many as a camera's picture has. Each pixel
/// takes up to 26 bytes, because the original, the written file and the compared pictures are in memory at once.
const MOST_PIXELS: usize = 25_000_000;
/// Images with more pixels than this are reduced one at a time, so that memory does not grow with the number of processors.
const LARGE: usize = 4_000_000;
static ONE_LARGE: Mutex<()> = Mutex::new(());
/// A written file is kept only if it has less than this part of the original bytes.
const WORTH: f64 = 0.95;
const UNKNOWN: &str = "not a JPEG, PNG, GIF, WebP or AVIF";

/// The format of an image by its first bytes, because the file's name may be wrong.
fn format(bytes: &[u8]) -> Option<ImageType> {
    let format = imagesize::image_type(bytes).ok()?;
    (!matches!(format, ImageType::Heif(compression) if compression != Compression::Av1)).then_some(format)
}

/// Width and height from an image's head, without decoding it.
pub(crate) fn dimensions(bytes: &[u8]) -> Option<(usize, usize)> {
    let size = format(bytes).and_then(|_| imagesize::blob_size(bytes).ok())?;
    Some((size.width, size.height))
}

/// Whether viewers turn the JPEG or PNG on its side, according to its head.
pub(crate) fn is_turned(head: &[u8]) -> bool {
    let orientation = match format(head) {
        Some(ImageType::Jpeg) => jpeg::orientation(head),
        Some(ImageType::Png) => png::orientation(head),
        _ => None,
    };
    orientation.is_some_and(|orientation| orientation >= 5)
}

/// How an image is to be reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reduction {
    /// The factor by which bytes are reduced; `None`: as few bytes as are similar enough. With a factor, a moving GIF may lose
    /// frames.
    pub(crate) factor: Option<f64>,
    /// The least similarity to the original, at the written size.
    pub(crate) similarity: f64,
    /// Once this similarity is reached no further byte is spent, although the factor would allow it.
    pub(crate) enough: f64,
    /// The width and height to write, if not the original's.
    pub(crate) size: Option<(usize, usize)>,
    /// Whether a PNG or GIF may be written as a JPEG or WebP under its name.
    pub(crate) any_format: bool,
    /// Whether a WebP is written beside the image.
    pub(crate) variant: bool,
}

/// The files written for an image; `None` if nothing smaller is similar enough.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Copies {
    /// The file under the image's name.
    pub(crate) named: Option<Found>,
    /// The WebP beside the image.
    pub(crate) variant: Option<Found>,
}

/// An image that was read in order to be written again.
enum Read {
    Still(ImageType, Picture),
    /// A moving GIF or an AVIF, which have ladders and a size of their own.
    Other(Ladder),
}

/// Writes the image in fewer bytes.
///
/// # Errors
/// What is wrong with the image: it is broken, or of a kind that is not reduced.
pub(crate) fn reduced(bytes: &[u8], reduction: Reduction) -> Result<Copies, String> {
    let Reduction { factor, similarity, enough, size, any_format, variant } = reduction;
    let most = factor.map_or(0, |factor| (bytes.len() as f64 / factor) as usize);
    let wanted = Wanted { bytes: most, similarity, enough };
    let (format, (width, height)) = format(bytes).zip(dimensions(bytes)).ok_or(UNKNOWN)?;
    within_bounds(width, height)?;
    let is_large = width.saturating_mul(height) > LARGE;
    let _alone = is_large.then(|| ONE_LARGE.lock().unwrap_or_else(PoisonError::into_inner));
    let worth = |than: usize| move |found: &Found| (found.written.len() as f64) < WORTH * than as f64;
    let (format, mut picture) = match read(bytes, format, factor.is_some())? {
        Read::Other(ladder) => {
            return Ok(Copies { named: best(ladder, wanted).filter(worth(bytes.len())), variant: None });
        }
        Read::Still(format, picture) => (format, picture),
    };
    if let Some((width, height)) = size {
        picture.raster = picture.raster.scaled(width, height);
    }
    let named = ladders(format, &picture, any_format).into_iter().filter_map(|ladder| best(ladder, wanted));
    let named = named.reduce(|one, other| wanted.better(one, other)).filter(worth(bytes.len()));
    let than = named.as_ref().map_or(bytes.len(), |found| found.written.len());
    let variant = (variant && format != ImageType::Webp).then(|| as_webp(format, &picture, wanted)).flatten();
    Ok(Copies { named, variant: variant.filter(worth(than)) })
}

/// Reads an image. `frames_may_go` says whether a moving GIF may lose frames.
fn read(bytes: &[u8], format: ImageType, frames_may_go: bool) -> Result<Read, String> {
    let plain = |raster| Picture { raster, metadata: Metadata::default() };
    Ok(match format {
        ImageType::Jpeg => Read::Still(format, jpeg::read(bytes)?),
        ImageType::Png => Read::Still(format, png::read_picture(bytes)?),
        ImageType::Gif => match gif::still(bytes)? {
            Some(raster) => Read::Still(format, plain(raster)),
            None => Read::Other(gif::ladder(bytes, frames_may_go)?),
        },
        ImageType::Webp => Read::Still(format, webp::read(bytes)?),
        ImageType::Heif(_) => Read::Other(avif::ladder(bytes)?),
        _ => return Err(UNKNOWN.to_owned()),
    })
}

/// The ways to write a picture under its name: in its own format; and for a PNG or GIF, as a JPEG or, if it has transparent
/// pixels, as a WebP. Palettes keep drawings better and photographs worse; the search finds out which the picture is.
fn ladders(format: ImageType, picture: &Picture, any_format: bool) -> Vec<Ladder> {
    let own = match format {
        ImageType::Jpeg => jpeg::CODEC.ladder(picture),
        ImageType::Png => png::ladder(picture),
        ImageType::Gif => gif::still_ladder(&picture.raster),
        _ => webp::CODEC.ladder(picture),
    };
    let has_palette = matches!(format, ImageType::Png | ImageType::Gif);
    let photograph = (has_palette && any_format).then(|| match picture.raster.is_transparent() {
        true => webp::CODEC.ladder(picture),
        false => {
            let opaque = Picture { raster: picture.raster.opaque(), metadata: picture.metadata.clone() };
            jpeg::CODEC.ladder(&opaque)
        }
    });
    std::iter::once(own).chain(photograph).collect()
}

/// The picture as a WebP; if the original is lossless, the smaller of the lossy and the lossless WebP.
fn as_webp(format: ImageType, picture: &Picture, wanted: Wanted) -> Option<Found> {
    let lossy = best(webp::CODEC.ladder(picture), wanted);
    let without = matches!(format, ImageType::Png | ImageType::Gif);
    let lossless = without.then(|| webp::lossless(&picture.raster, &picture.metadata)).flatten();
    let lossless = lossless.map(|written| Found { written, similarity: 1.0 });
    lossy.into_iter().chain(lossless).min_by_key(|found| found.written.len())
}

/// Refuses sizes that would take too much memory, whatever a file claims.
fn within_bounds(width: usize, height: usize) -> Result<(), String> {
    match width.saturating_mul(height) {
        0 => Err("it has no pixels".to_owned()),
        pixels if pixels > MOST_PIXELS => {
            Err(format!("{width} x {height} pixels, of which {MOST_PIXELS} are the most that is reduced"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::raster::Raster;
    use super::*;

    const WIDTH: usize = 480;
    const HEIGHT: usize = 320;

    /// A picture of light and shade with grain in all colours; with `hole`, one corner is transparent.
    fn landscape(hole: bool) -> Raster {
        let pixel = |at: usize| {
            let (x, y) = ((at % WIDTH) as f64, (at / WIDTH) as f64);
            let shade = (x / 61.0).sin() * (y / 47.0).cos() + 0.5 * (x / 17.0 + y / 23.0).sin();
            let grain = (at * 7919 % 104_729 % 31) as f64 - 15.0;
            let gray = 128.0 + 60.0 * shade + grain;
            let opacity = if hole && x + y < 100.0 { 0 } else { 255 };
            [gray as u8, (0.6 * gray + 60.0) as u8, (220.0 - 0.7 * gray) as u8, opacity]
        };
        Raster {
            width: WIDTH,
            height: HEIGHT,
            channels: 4,
            samples: (0..WIDTH * HEIGHT).flat_map(pixel).collect(),
        }
    }

    /// A PNG of all colours, as a camera's or a screen's.
    fn png_of(raster: &Raster) -> Vec<u8> {
        let mut written = Vec::new();
        let mut encoder = ::png::Encoder::new(&mut written, raster.width as u32, raster.height as u32);
        encoder.set_color(::png::ColorType::Rgba);
        encoder.write_header().unwrap().write_image_data(&raster.samples).unwrap();
        written
    }

    #[test]
    fn photographs_leave_a_format_of_drawings() {
        let wanted = |any_format| Reduction {
            factor: Some(8.0),
            similarity: 0.7,
            enough: 1.0,
            size: None,
            any_format,
            variant: false,
        };
        for (what, bytes, format_then) in [
            ("PNG", png_of(&landscape(false)), ImageType::Jpeg),
            ("PNG with a hole", png_of(&landscape(true)), ImageType::Webp),
            ("GIF", gif::of(&landscape(false)), ImageType::Jpeg),
        ] {
            let [same, any] = [false, true].map(|any| reduced(&bytes, wanted(any)).unwrap().named);
            let (length, any) = (bytes.len(), any.unwrap());
            assert_eq!(format(&any.written), Some(format_then), "{what}");
            assert!(any.similarity >= 0.7 && any.written.len() * 3 < length, "{what}: {}", any.written.len());
            assert!(same.is_none_or(|same| same.written.len() > any.written.len()), "{what}");
        }
    }

    #[test]
    fn a_png_that_leaves_its_format_takes_its_profile_along() {
        let profile = metadata::tests::profile_of("Display P3", *b"RGB ", 4);
        let factor = Some(8.0);
        let wanted =
            Reduction { factor, similarity: 0.7, enough: 1.0, size: None, any_format: true, variant: false };
        // A photograph becomes a JPEG, and with a transparent corner a WebP.
        for (hole, read) in [(false, jpeg::CODEC.read), (true, webp::CODEC.read)] {
            let mut info = ::png::Info::with_size(WIDTH as u32, HEIGHT as u32);
            (info.color_type, info.bit_depth) = (::png::ColorType::Rgba, ::png::BitDepth::Eight);
            info.icc_profile = Some(profile.clone().into());
            let mut written = Vec::new();
            let encoder = ::png::Encoder::with_info(&mut written, info).unwrap();
            encoder.write_header().unwrap().write_image_data(&landscape(hole).samples).unwrap();
            let found = reduced(&written, wanted).unwrap().named.unwrap().written;
            assert_eq!(read(&found).unwrap().metadata.profile.as_ref(), Some(&profile));
        }
    }

    #[test]
    fn drawings_and_what_moves_keep_their_format() {
        // Stripes of a few colours, with hard edges.
        let pixel = |at: usize| {
            if (at % WIDTH / 3 + at / WIDTH / 5).is_multiple_of(3) { [200, 30, 30, 255] } else { [255; 4] }
        };
        let samples = (0..WIDTH * HEIGHT).flat_map(pixel).collect();
        let drawing = png_of(&Raster { width: WIDTH, height: HEIGHT, channels: 4, samples });
        let wanted = Reduction {
            factor: Some(8.0),
            similarity: 0.9,
            enough: 1.0,
            size: None,
            any_format: true,
            variant: true,
        };
        let found = reduced(&drawing, wanted).unwrap();
        assert!(found.named.is_none_or(|found| format(&found.written) == Some(ImageType::Png)));
    }
}
