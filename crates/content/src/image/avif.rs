//! AVIF: read and written by libavif's own programs, `avifdec` and `avifenc`, if the user asks for it.
//!
//! No library is used: there is no safe one in Rust that reads AV1, and the encoder is larger than all of this crate (decision
//! 2). A program costs a process for each try, which is little compared with AV1. Between the two programs the picture is a
//! PNG, which carries the colour profile; a colour space without a profile is passed as an option. Pictures for which a PNG
//! would lose something are not reduced: those that move, that their container turns or crops, and those of high dynamic range.

use super::raster::Raster;
use super::search::Ladder;
use super::similarity::Original;
use super::{MOST_PIXELS, png};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use tempfile::TempDir;

const DECODER: &str = "avifdec";
const ENCODER: &str = "avifenc";
/// The quantizers that are tried, from coarse to fine; 63 is the coarsest, 0 is lossless.
const QUANTIZER: std::ops::RangeInclusive<usize> = 8..=58;
/// A faster setting gives worse files, and a slower one hardly better files.
const SPEED: &str = "8";
/// Transfer characteristics of high dynamic range (ITU-T H.273, table 3).
const HIGH_RANGE: [u16; 2] = [16, 18];

/// The bytes after each box of this name, before the pixels begin (ISO/IEC 23008-12, 6.5: item properties).
fn boxes<'a>(bytes: &'a [u8], name: &'static [u8]) -> impl Iterator<Item = &'a [u8]> {
    let end = bytes.windows(4).position(|four| four == b"mdat").unwrap_or(bytes.len());
    let head = &bytes[..end];
    head.windows(name.len())
        .enumerate()
        .filter(move |(_, here)| *here == name)
        .map(move |(at, _)| &head[at + name.len()..])
}

/// Colour primaries, transfer characteristics, matrix (ITU-T H.273), if the file has them.
fn colour(bytes: &[u8]) -> Option<[u16; 3]> {
    let from = boxes(bytes, b"colrnclx").next()?.first_chunk::<6>()?;
    Some([0, 2, 4].map(|at| u16::from_be_bytes([from[at], from[at + 1]])))
}

/// Checks that the programs are installed.
///
/// # Errors
/// How to install them.
pub(crate) fn check() -> Result<(), String> {
    for program in [DECODER, ENCODER] {
        run(Command::new(program).arg("--version"))
            .map_err(|error| format!("AVIF is written by `{program}`, which cannot be run: {error}; install it (Debian: apt install libavif-bin), or leave `--avif` out"))?;
    }
    Ok(())
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(said.lines().last().unwrap_or("it failed").trim().to_owned())
}

/// A folder for the files between the programs, removed with the value.
struct Bench(TempDir);

impl Bench {
    fn new() -> io::Result<Bench> {
        tempfile::Builder::new().prefix("plimsoll-avif-").tempdir().map(Bench)
    }

    /// The picture of a file as a PNG.
    fn decoded(&self, bytes: &[u8], name: &str) -> Result<PathBuf, String> {
        let (from, to) = (self.0.path().join("in.avif"), self.0.path().join(name));
        fs::write(&from, bytes).map_err(|error| error.to_string())?;
        let mut command = Command::new(DECODER);
        command.args(["--jobs", "1", "--depth", "8", "--size-limit"]).arg(MOST_PIXELS.to_string());
        run(command.arg("--").arg(&from).arg(&to))?;
        Ok(to)
    }

    /// The file that `picture` makes with a quantizer, in a colour space.
    fn encoded(&self, picture: &Path, quantizer: usize, colour: Option<[u16; 3]>) -> Option<Vec<u8>> {
        let (quantizer, to) = (quantizer.to_string(), self.0.path().join("out.avif"));
        let mut command = Command::new(ENCODER);
        command.args(["--jobs", "1", "--speed", SPEED, "--yuv", "420", "--ignore-exif", "--ignore-xmp"]);
        for bound in ["--min", "--max", "--minalpha", "--maxalpha"] {
            command.args([bound, &quantizer]);
        }
        if let Some([primaries, transfer, matrix]) = colour {
            // Colours without a matrix (0) cannot be subsampled, so they get the matrix of JPEG.
            let matrix = if matrix == 0 { 6 } else { matrix };
            command.arg("--cicp").arg(format!("{primaries}/{transfer}/{matrix}"));
        }
        run(command.arg("--").arg(picture).arg(&to)).ok()?;
        fs::read(to).ok()
    }
}

fn read(path: &Path) -> Result<Raster, String> {
    png::read(&fs::read(path).map_err(|error| error.to_string())?)
}

/// The ladder of qualities of an AVIF image.
///
/// # Errors
/// The image cannot be read, or is of a kind that is not reduced.
pub(super) fn ladder(bytes: &[u8]) -> Result<Ladder, String> {
    if bytes.get(8..12) == Some(b"avis") {
        return Err("an animated AVIF is not reduced".to_owned());
    }
    if [&b"irot"[..], b"imir", b"clap"].into_iter().any(|name| boxes(bytes, name).next().is_some()) {
        return Err("an AVIF that is turned or cropped is not reduced".to_owned());
    }
    let colour = colour(bytes);
    if colour.is_some_and(|[_, transfer, _]| HIGH_RANGE.contains(&transfer)) {
        return Err("an AVIF of high dynamic range is not reduced".to_owned());
    }
    let bench = Rc::new(Bench::new().map_err(|error| error.to_string())?);
    let picture = bench.decoded(bytes, "picture.png")?;
    let original = Original::of(&read(&picture)?);
    let seen = Rc::clone(&bench);
    Ok(Ladder {
        steps: QUANTIZER.count(),
        write: Box::new(move |step| bench.encoded(&picture, QUANTIZER.end() - step, colour)),
        similarity: original.judge(move |written| read(&seen.decoded(written, "seen.png")?)),
    })
}

#[cfg(test)]
mod tests {
    use super::super::dimensions;
    use super::*;

    /// The head of a picture with a preview, as encoders write it.
    fn head(brand: &[u8], properties: &[u8]) -> Vec<u8> {
        let sizes = b"\0\0\0\x14ispe\0\0\0\0\0\0\0\x40\0\0\0\x30\0\0\0\x14ispe\0\0\0\0\0\0\x05\0\0\0\x03\0";
        let boxed =
            |name: &[u8], inside: &[u8]| [&(8 + inside.len() as u32).to_be_bytes(), name, inside].concat();
        let properties = boxed(b"iprp", &boxed(b"ipco", &[sizes, properties].concat()));
        let kind = boxed(b"ftyp", &[brand, b"\0\0\0\0mif1miaf"].concat());
        [kind, boxed(b"meta", &[&[0; 4], properties.as_slice()].concat()), boxed(b"mdat", b"ispe")].concat()
    }

    #[test]
    fn the_head_says_the_size_of_the_picture_itself() {
        let bytes = head(b"avif", b"");
        assert_eq!(dimensions(&head(b"avis", b"")), Some((1280, 768)));
        assert_eq!(dimensions(&head(b"heic", b"")), None, "not an AVIF");
        assert_eq!(dimensions(&bytes), Some((1280, 768)));
        for end in 0..bytes.len() {
            dimensions(&bytes[..end]);
            colour(&bytes[..end]);
        }
    }

    #[test]
    fn what_a_png_would_lose_is_left_alone() {
        let wrong = |brand: &[u8], properties: &[u8]| ladder(&head(brand, properties)).err().unwrap();
        assert!(wrong(b"avis", b"").contains("animated"));
        for name in [b"irot", b"imir", b"clap"] {
            assert!(wrong(b"avif", &[b"\0\0\0\x09", &name[..], b"\x01"].concat()).contains("turned"));
        }
        let transfer = |of: u8| [b"\0\0\0\x13colrnclx\0\x09\0", &[of][..], b"\0\x09\x80"].concat();
        assert_eq!(colour(&head(b"avif", &transfer(13))), Some([9, 13, 9]));
        assert!(wrong(b"avif", &transfer(16)).contains("dynamic range"));
    }
}
