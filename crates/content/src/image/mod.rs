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
mod sizes;
mod webp;

pub(crate) use avif::check as check_avif;
use qualities::Qualities;
pub(crate) use search::Found;
use search::{Wanted, best};

/// More pixels than this (all frames together) are not taken into memory.
const MOST_PIXELS: usize = 100_000_000;
/// A file that is not at least so much smaller stays as it is.
const WORTH: f64 = 0.95;
const UNKNOWN: &str = "not a JPEG, PNG, GIF, WebP or AVIF";

/// What an image is, by its first bytes: a name may lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Jpeg,
    Png,
    Gif,
    Webp,
    Avif,
}

impl Format {
    pub(crate) fn of(bytes: &[u8]) -> Option<Format> {
        let begins: [(&[u8], Format); 4] = [
            (b"\xff\xd8\xff", Format::Jpeg),
            (b"\x89PNG\r\n\x1a\n", Format::Png),
            (b"GIF89a", Format::Gif),
            (b"GIF87a", Format::Gif),
        ];
        let begins = begins.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, format)| format);
        let begins = begins.or_else(|| webp::is_webp(bytes).then_some(Format::Webp));
        begins.or_else(|| avif::is_avif(bytes).then_some(Format::Avif))
    }
}

/// Width and height from an image's head, without decoding it.
pub(crate) fn dimensions(bytes: &[u8]) -> Option<(usize, usize)> {
    let pair = |at: usize, read: fn([u8; 2]) -> u16| -> Option<(usize, usize)> {
        let [one, other] = [at, at + 2].map(|at| bytes.get(at..at + 2)?.try_into().ok().map(read));
        Some((usize::from(one?), usize::from(other?)))
    };
    match Format::of(bytes)? {
        Format::Gif => pair(6, u16::from_le_bytes),
        Format::Webp => webp::dimensions(bytes),
        Format::Avif => avif::dimensions(bytes),
        Format::Png => {
            let [width, height] =
                [16, 20].map(|at| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize));
            Some((width?, height?))
        }
        Format::Jpeg => {
            let mut at = 2;
            loop {
                let (marker, length) = (*bytes.get(at + 1)?, pair(at + 2, u16::from_be_bytes)?.0);
                match marker {
                    0xff => at += 1,
                    // Start of frame, but for the tables that share its numbers.
                    0xc0..=0xcf if !matches!(marker, 0xc4 | 0xc8 | 0xcc) => {
                        return pair(at + 5, u16::from_be_bytes).map(|(height, width)| (width, height));
                    }
                    _ => at += 2 + length,
                }
            }
        }
    }
}

/// How an image is to be reduced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reduction {
    /// The factor by which bytes are reduced.
    pub(crate) factor: f64,
    /// The least similarity to the original.
    pub(crate) similarity: f64,
    /// Whether it may have fewer pixels: only where pages say how large it is shown.
    pub(crate) resizable: bool,
}

/// The image in fewer bytes; `Ok(None)` if there is no way to.
///
/// # Errors
/// What is wrong with it: it is broken, or of a kind that is not reduced.
pub(crate) fn reduced(bytes: &[u8], reduction: Reduction) -> Result<Option<Found>, String> {
    let Reduction { factor, similarity, resizable } = reduction;
    let wanted = Wanted { bytes: (bytes.len() as f64 / factor) as usize, similarity };
    let (format, (width, height)) = Format::of(bytes).zip(dimensions(bytes)).ok_or(UNKNOWN)?;
    within_bounds(width, height)?;
    let found = match format {
        Format::Jpeg => best(&mut Qualities::new(jpeg::CODEC, bytes, resizable)?, wanted),
        Format::Png => best(&mut png::Palettes::new(png::read(bytes)?, resizable), wanted),
        Format::Gif => best(&mut gif::Reductions::new(gif::read(bytes)?, resizable), wanted),
        Format::Webp => best(&mut Qualities::new(webp::CODEC, bytes, resizable)?, wanted),
        Format::Avif => best(&mut avif::AvifQualities::new(bytes)?, wanted),
    };
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
