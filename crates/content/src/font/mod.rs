//! Reduces web fonts to the glyphs that the site shows.
//!
//! ```text
//! pages, scripts, sheets -> characters that can be shown (used) -> each font: unpacked, subset, packed, compared
//! ```
//!
//! skera, the subsetter of Google's Fontations, keeps whatever a text of these characters can use: components, ligatures,
//! kerning and every layout feature. wuff reads WOFF2 and ttf2woff2 writes it. The reduced font is used only if it has every
//! wanted character that the original had, with the same widths, and is smaller.
//!
//! These stay as they are: PostScript outlines (`CFF`) and pictures as glyphs, which skera does not reduce; and WOFF 1, which
//! cannot be written here, and which today's browsers load only if there is no WOFF2.

pub(crate) mod used;

use crate::site::kind::ends_with;
use read_fonts::collections::IntSet;
use read_fonts::types::{GlyphId, NameId, Tag};
use read_fonts::{FontRef, TableProvider};
use skera::{Plan, SubsetFlags, subset_font};
use std::collections::BTreeSet;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use ttf2woff2::BrotliQuality;

/// Characters that a font keeps if it has them.
pub(crate) type Characters = BTreeSet<char>;

/// A reduced font is used only if it has less than this part of the original's bytes.
const WORTH: f64 = 0.95;
/// A font that is larger when unpacked (bytes) is refused, because a few bytes of WOFF2 could claim any amount of memory.
const LARGEST: usize = 64 << 20;
/// The tables that skera reduces or copies, and those that no browser reads. If a font has any other table it stays as it is.
const KNOWN: [&[u8; 4]; 41] = [
    b"BASE", b"COLR", b"CPAL", b"GDEF", b"GPOS", b"GSUB", b"HVAR", b"MVAR", b"OS/2", b"STAT", b"VDMX",
    b"VVAR", b"avar", b"cmap", b"cvar", b"cvt ", b"fpgm", b"fvar", b"gasp", b"glyf", b"gvar", b"hdmx",
    b"head", b"hhea", b"hmtx", b"loca", b"maxp", b"name", b"post", b"prep", b"vhea", b"vmtx", b"DSIG",
    b"FFTM", b"GRID", b"JSTF", b"LTSH", b"PCLT", b"kern", b"meta", b"ttfa",
];
/// The known tables that are dropped.
const DROPPED: [&[u8; 4]; 8] = [b"DSIG", b"FFTM", b"GRID", b"JSTF", b"LTSH", b"PCLT", b"meta", b"ttfa"];

/// Whether a file of this name may be a font that can be reduced.
pub(crate) fn is_reducible(path: &str) -> bool {
    ends_with(path, &["woff2", "ttf", "otf"])
}

/// The container of a font.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    /// The tables without compression: `.ttf` or `.otf`.
    Bare,
    /// A font file in the format WOFF2.
    Woff2,
}

/// The font with only the glyphs of `characters`, in the same container; `None` if it stays as it is.
///
/// # Errors
/// The font cannot be read.
pub(crate) fn reduced(bytes: &[u8], characters: &Characters) -> Result<Option<Vec<u8>>, String> {
    // The libraries may meet any file, so if one panics the font stays as it is.
    let done = catch_unwind(AssertUnwindSafe(|| reduced_or_failed(bytes, characters)));
    done.unwrap_or_else(|_| Err("a font that cannot be reduced".to_owned()))
}

fn reduced_or_failed(bytes: &[u8], characters: &Characters) -> Result<Option<Vec<u8>>, String> {
    let container = match bytes.get(..4) {
        Some(b"wOF2") => Container::Woff2,
        Some(b"\0\x01\0\0" | b"true") => Container::Bare,
        _ => return Ok(None),
    };
    let broken = |_| "a font that cannot be read".to_owned();
    let unpacked = if container == Container::Woff2 { unpacked(bytes)? } else { bytes.to_vec() };
    let font = FontRef::new(&unpacked).map_err(broken)?;
    let known = |tag: Tag| KNOWN.iter().any(|known| Tag::new(known) == tag);
    if !font.table_directory().table_records().iter().all(|record| known(record.tag())) {
        return Ok(None);
    }
    let cmap = font.cmap().map_err(broken)?;
    // The first glyph is shown for characters that a font lacks.
    let is_there = |one: &u32| cmap.map_codepoint(*one).is_some_and(|glyph| glyph != GlyphId::NOTDEF);
    let wanted: Vec<u32> = characters.iter().map(|one| u32::from(*one)).filter(is_there).collect();
    // If no page shows a character of the font, no browser loads it.
    if wanted.is_empty() {
        return Ok(None);
    }
    let Ok(subset) = subset_font(&font, &plan(&font, &wanted)) else { return Ok(None) };
    if !is_like(&font, &subset, &wanted) {
        return Ok(None);
    }
    let written = match container {
        Container::Bare => subset,
        Container::Woff2 => packed(&subset)?,
    };
    Ok(((written.len() as f64) < WORTH * bytes.len() as f64).then_some(written))
}

/// The subset to keep: the characters, and everything that layout makes of them.
fn plan(font: &FontRef<'_>, wanted: &[u32]) -> Plan {
    let every = || {
        let mut all = IntSet::<Tag>::empty();
        all.invert();
        all
    };
    let mut names = IntSet::<NameId>::empty();
    names.insert_range(NameId::from(0)..=NameId::from(6));
    Plan::new(
        &IntSet::<GlyphId>::empty(),
        &wanted.iter().copied().collect(),
        font,
        // The glyph for missing characters stays, and the `unicode-range` of sheets stays true.
        SubsetFlags::SUBSET_FLAGS_NOTDEF_OUTLINE | SubsetFlags::SUBSET_FLAGS_NO_PRUNE_UNICODE_RANGES,
        &DROPPED.iter().map(|tag| Tag::new(tag)).collect(),
        &every(),
        &every(),
        &names,
        // Only English names are kept, because readers never see them.
        &[0x409_u16].into_iter().collect(),
    )
}

/// Whether the subset has all `wanted` characters, as wide as they were, on lines of the same height.
fn is_like(font: &FontRef<'_>, subset: &[u8], wanted: &[u32]) -> bool {
    let alike = || {
        let other = FontRef::new(subset).ok()?;
        let (cmaps, widths) =
            ([font.cmap().ok()?, other.cmap().ok()?], [font.hmtx().ok()?, other.hmtx().ok()?]);
        let (lines, others) = (font.hhea().ok()?, other.hhea().ok()?);
        let same_lines = (lines.ascender(), lines.descender(), lines.line_gap())
            == (others.ascender(), others.descender(), others.line_gap())
            && font.head().ok()?.units_per_em() == other.head().ok()?.units_per_em();
        let width = |side: usize, one: u32| widths[side].advance(cmaps[side].map_codepoint(one)?);
        let same_width = |one: &u32| width(1, *one).is_some() && width(0, *one) == width(1, *one);
        Some(same_lines && wanted.iter().all(same_width))
    };
    alike().unwrap_or(false)
}

/// Unpacks the tables of a WOFF2.
fn unpacked(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut decompress = |bytes: &[u8], size: usize| -> Result<Vec<u8>, Box<dyn std::error::Error>> {
        if size > LARGEST {
            return Err("too large".into());
        }
        let mut out = Vec::with_capacity(size);
        brotli_decompressor::Decompressor::new(bytes, 4096).take(size as u64).read_to_end(&mut out)?;
        if out.len() == size { Ok(out) } else { Err("cut off".into()) }
    };
    wuff::decompress_woff2_with_custom_brotli(bytes, &mut decompress)
        .map_err(|_| "a font that cannot be unpacked".to_owned())
}

/// Packs tables as WOFF2. They are not transformed, because that saves little more and is where decoders differ.
fn packed(tables: &[u8]) -> Result<Vec<u8>, String> {
    ttf2woff2::encode(tables, BrotliQuality::default())
        .map_err(|error| format!("a font that cannot be packed: {error}"))
}
