//! Images written again in fewer bytes: the same format, the same name.
//!
//! Comes in: the bytes of an image, and how far it is to be reduced. Goes out: fewer bytes with their measured similarity,
//! or nothing if nothing smaller is similar enough.
//!
//! The paper's policy: an image above a limit is reduced by a factor in bytes (CA 3.3: 32 KB, 8). Here it is the best
//! quality that fits, found by search and measured ([`similarity`]); where that is less similar than the floor allows,
//! the factor gives way, not the picture.

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
pub(crate) use search::Found;
use search::{Wanted, best};

/// The most pixels, all frames together, that are taken into memory.
const MOST_PIXELS: usize = 100_000_000;
/// A written file is kept only if it has less than this part of the original bytes.
const WORTH: f64 = 0.95;
const UNKNOWN: &str = "not a JPEG, PNG, GIF, WebP or AVIF";

/// The format of an image by its first bytes, since a name may lie.
fn format(bytes: &[u8]) -> Option<ImageType> {
    let format = imagesize::image_type(bytes).ok()?;
    (!matches!(format, ImageType::Heif(compression) if compression != Compression::Av1)).then_some(format)
}

/// Width and height from an image's head, without decoding it.
pub(crate) fn dimensions(bytes: &[u8]) -> Option<(usize, usize)> {
    let size = format(bytes).and_then(|_| imagesize::blob_size(bytes).ok())?;
    Some((size.width, size.height))
}

/// How an image is to be reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reduction {
    /// The factor by which bytes are reduced.
    pub(crate) factor: f64,
    /// The least similarity to the original.
    pub(crate) similarity: f64,
    /// Whether the image may have fewer pixels, which needs pages that say how large it is shown.
    pub(crate) resizable: bool,
}

/// The image in fewer bytes; `Ok(None)` if nothing smaller is similar enough.
///
/// # Errors
/// What is wrong with it: it is broken, or of a kind that is not reduced.
pub(crate) fn reduced(bytes: &[u8], reduction: Reduction) -> Result<Option<Found>, String> {
    let Reduction { factor, similarity, resizable } = reduction;
    let wanted = Wanted { bytes: (bytes.len() as f64 / factor) as usize, similarity };
    let (format, (width, height)) = format(bytes).zip(dimensions(bytes)).ok_or(UNKNOWN)?;
    within_bounds(width, height)?;
    let ladder = match format {
        ImageType::Jpeg => jpeg::CODEC.ladder(bytes, resizable),
        ImageType::Png => png::ladder(bytes, resizable),
        ImageType::Gif => gif::ladder(bytes, resizable),
        ImageType::Webp => webp::CODEC.ladder(bytes, resizable),
        ImageType::Heif(_) => avif::ladder(bytes),
        _ => Err(UNKNOWN.to_owned()),
    };
    let found = best(ladder?, wanted);
    Ok(found.filter(|found| (found.written.len() as f64) < WORTH * bytes.len() as f64))
}

/// Bounds memory, whatever a file claims.
fn within_bounds(width: usize, height: usize) -> Result<(), String> {
    match width.saturating_mul(height) {
        0 => Err("it has no pixels".to_owned()),
        pixels if pixels > MOST_PIXELS => Err(format!("{width} x {height} pixels are too many")),
        _ => Ok(()),
    }
}
