//! Text that is read piece by piece: a file, standard input, or a string; plain or compressed by gzip.
//!
//! Memory is constant whatever is read: one buffer, and one piece (a line, or a word) of at most [`LONGEST`] bytes. If a piece
//! is longer, its rest is skipped.

use crate::workload::Input;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest piece that is kept.
pub(super) const LONGEST: usize = 64 * 1024;
const BUFFER: usize = 64 * 1024;
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The name of piped input in messages.
const STANDARD_INPUT: &str = "standard input";
/// For each compression that is not supported: the first bytes of its files, its name, and the command that unpacks them.
const PACKED: [(&[u8], &str, &str); 4] = [
    (b"\xfd7zXZ\0", "xz", "xzcat"),
    (b"\x28\xb5\x2f\xfd", "zstd", "zstdcat"),
    (b"BZh91A", "bzip2", "bzcat"),
    (b"\x04\x22\x4d\x18", "lz4", "lz4cat"),
];

impl Input {
    /// Whether the input certainly ends; a pipe may go on as long as something is written into it.
    pub(crate) fn has_an_end(&self) -> bool {
        match self {
            Input::File(path) => path != Path::new("-") && path.metadata().is_ok_and(|of| of.is_file()),
            Input::Text(_) => true,
        }
    }
}

/// The text that is read.
pub(super) struct Text {
    /// The input's name for messages.
    pub(super) name: String,
    reader: Box<dyn BufRead + Send>,
    /// Bytes read, before decompression.
    taken: Arc<AtomicU64>,
    size: Option<u64>,
}

/// What reading a piece came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The piece was read whole.
    Whole,
    /// The piece is too long; only its beginning was read.
    TooLong,
    /// There are no more pieces.
    End,
}

impl Text {
    /// Opens the input.
    ///
    /// # Errors
    /// The file cannot be opened or read.
    pub(super) fn open(input: &Input) -> io::Result<Self> {
        match input {
            Input::File(path) if path == Path::new("-") => {
                Text::over(STANDARD_INPUT.to_owned(), Box::new(io::stdin()), None)
            }
            Input::File(path) => {
                let name = path.display().to_string();
                let file = File::open(path).map_err(|error| named(&name, &error))?;
                let metadata = file.metadata().map_err(|error| named(&name, &error))?;
                // A pipe has no length to compare with.
                let size = metadata.is_file().then_some(metadata.len());
                Text::over(name, Box::new(file), size)
            }
            Input::Text(text) => {
                let size = Some(text.len() as u64);
                let bytes: Arc<[u8]> = Arc::clone(text).into();
                Text::over("the text given".to_owned(), Box::new(Cursor::new(bytes)), size)
            }
        }
    }

    fn over(name: String, source: Box<dyn Read + Send>, size: Option<u64>) -> io::Result<Self> {
        let taken = Arc::new(AtomicU64::new(0));
        let metered = Metered { source, taken: Arc::clone(&taken) };
        let reader: Box<dyn BufRead + Send> = Box::new(BufReader::with_capacity(BUFFER, metered));
        let mut text = Text { name, reader, taken, size };
        let head = text.peek(PACKED[0].0.len())?;
        if let Some((_, by, unpack)) = PACKED.iter().find(|(magic, ..)| head.starts_with(magic)) {
            let name = &text.name;
            let from = if name == STANDARD_INPUT { String::new() } else { format!(" {name}") };
            let what = format!(
                "{name}: it is compressed by {by}, and only gzip is unpacked here\nUnpack it first: `{unpack}{from} | plimsoll \
                 simulate --log -`."
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        if head.starts_with(&GZIP) {
            // Several gzip files in a row are read as one, as gunzip does.
            let placeholder: Box<dyn BufRead + Send> = Box::new(io::empty());
            let packed = std::mem::replace(&mut text.reader, placeholder);
            text.reader = Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(packed)));
        }
        Ok(text)
    }

    /// The first `most` bytes, or as many as there are, without consuming them.
    pub(super) fn peek(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut head = Vec::new();
        let first = (&mut self.reader).take(most as u64).read_to_end(&mut head);
        first.map_err(|error| named(&self.name, &error))?;
        let placeholder: Box<dyn BufRead + Send> = Box::new(io::empty());
        let rest = std::mem::replace(&mut self.reader, placeholder);
        self.reader = Box::new(Cursor::new(head.clone()).chain(rest));
        Ok(head)
    }

    /// Reads up to the next line feed, without it.
    pub(super) fn line(&mut self, into: &mut Vec<u8>) -> io::Result<Piece> {
        let piece = self.until(into, |bytes| memchr::memchr(b'\n', bytes))?;
        if into.last() == Some(&b'\r') {
            into.pop();
        }
        Ok(piece)
    }

    /// Reads up to the next white space, without it. Two white spaces in a row give an empty word.
    pub(super) fn word(&mut self, into: &mut Vec<u8>) -> io::Result<Piece> {
        self.until(into, |bytes| bytes.iter().position(u8::is_ascii_whitespace))
    }

    fn until(&mut self, into: &mut Vec<u8>, find: impl Fn(&[u8]) -> Option<usize>) -> io::Result<Piece> {
        into.clear();
        let (mut any, mut cut) = (false, false);
        loop {
            let bytes = match self.reader.fill_buf() {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(named(&self.name, &error)),
            };
            any |= !bytes.is_empty();
            let end = find(bytes);
            let length = end.unwrap_or(bytes.len());
            let kept = length.min(LONGEST - into.len());
            into.extend_from_slice(&bytes[..kept]);
            cut |= kept < length;
            let last = end.is_some() || bytes.is_empty();
            self.reader.consume(length + usize::from(end.is_some()));
            if last {
                return Ok(match (any, cut) {
                    (false, _) => Piece::End,
                    (true, true) => Piece::TooLong,
                    (true, false) => Piece::Whole,
                });
            }
        }
    }

    /// How much of the input was read, in [0, 1]; `None` if its length is not known.
    pub(super) fn progress(&self) -> Option<f64> {
        let size = self.size.filter(|size| *size > 0)?;
        Some((self.taken.load(Ordering::Relaxed) as f64 / size as f64).min(1.0))
    }
}

/// The same error with the input's name in its message.
fn named(name: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{name}: {error}"))
}

/// Counts the bytes that are read through it.
struct Metered {
    source: Box<dyn Read + Send>,
    taken: Arc<AtomicU64>,
}

impl Read for Metered {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(into)?;
        self.taken.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn over(bytes: &[u8]) -> Text {
        Text::over("test".to_owned(), Box::new(Cursor::new(bytes.to_vec())), Some(bytes.len() as u64))
            .unwrap()
    }

    fn lines(mut text: Text) -> Vec<(String, Piece)> {
        let mut line = Vec::new();
        std::iter::from_fn(|| {
            let piece = text.line(&mut line).unwrap();
            (piece != Piece::End).then(|| (String::from_utf8_lossy(&line).into_owned(), piece))
        })
        .collect()
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn lines_end_in_any_way() {
        let whole = |text: &str| (text.to_owned(), Piece::Whole);
        assert_eq!(lines(over(b"a\r\n\nb\nc")), [whole("a"), whole(""), whole("b"), whole("c")]);
        assert_eq!(lines(over(b"a\n")), [whole("a")]);
        assert_eq!(lines(over(b"")), []);
        assert_eq!(lines(over(b"\x1f")), [whole("\x1f")]);
    }

    #[test]
    fn gzip_is_known_by_its_first_bytes_and_may_come_in_parts() {
        let mut bytes = packed("one\ntw");
        bytes.extend(packed("o\nthree\n"));
        let names: Vec<String> = lines(over(&bytes)).into_iter().map(|(line, _)| line).collect();
        assert_eq!(names, ["one", "two", "three"]);
    }

    #[test]
    fn what_is_packed_otherwise_names_the_command_that_unpacks_it() {
        for (bytes, command) in
            [(&b"\xfd7zXZ\0\0\x04"[..], "`xzcat test |"), (b"(\xb5/\xfd\x04X", "`zstdcat test |")]
        {
            let bytes = Box::new(Cursor::new(bytes.to_vec()));
            let error = Text::over("test".to_owned(), bytes, None).err().expect("it is refused");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            assert!(error.to_string().contains(command), "{error}");
        }
    }

    #[test]
    fn a_torn_gzip_is_an_error_with_its_name() {
        let mut bytes = packed(&"some text ".repeat(1000));
        bytes.truncate(bytes.len() / 2);
        let mut text = over(&bytes);
        let error = text.line(&mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("test: "), "{error}");
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_is_whole() {
        let long = "x".repeat(LONGEST);
        let found = lines(over(format!("{long}\n{long}yz\nshort").as_bytes()));
        assert_eq!(found[0], (long.clone(), Piece::Whole));
        assert_eq!(found[1], (long, Piece::TooLong));
        assert_eq!(found[2], ("short".to_owned(), Piece::Whole));
    }

    #[test]
    fn progress_is_of_what_was_read() {
        let bytes = packed(&(0..200_000_u64).map(|n| format!("{}\n", n * n)).collect::<String>());
        let mut text = over(&bytes);
        let mut line = Vec::new();
        for _ in 0..100_000 {
            text.line(&mut line).unwrap();
        }
        let half = text.progress().unwrap();
        assert!((0.3..0.7).contains(&half), "{half}");
        while text.line(&mut line).unwrap() != Piece::End {}
        assert_eq!(text.progress(), Some(1.0));
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = Text::open(&Input::File("/nowhere/access.log".into())).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("/nowhere/access.log"), "{error}");
    }
}
