//! What is wrong with a file, where, and what to write instead.
//!
//! Every diagnostic has a stable [`Code`], a span of the source, one sentence of what is wrong and one of what helps.
//! All of a file's errors come at once, in the order of the file. [`Diagnostics`]' `Display` prints them for a
//! terminal, without colour, so that logs and golden files hold the same text.

use crate::shape::{SectionShape, sections};
use std::fmt;
use std::ops::Range;

/// The kinds of error. The words are stable: scripts and documents may name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The file is not TOML.
    Syntax,
    /// A key that does not exist.
    UnknownKey,
    /// A key that must be there is not.
    MissingKey,
    /// A value of another type: text where a number belongs.
    WrongType,
    /// A value of the right type that cannot be read: a duration without unit, an address without port.
    BadValue,
    /// A number outside its range.
    OutOfRange,
    /// A word that is none of those possible.
    UnknownWord,
    /// A name that nothing has: an upstream that is not defined.
    UnknownName,
    /// The same thing said twice.
    Duplicate,
    /// Keys that exclude each other, or that need another.
    Conflict,
    /// Something that could never happen: a site that no request reaches, a load line that cannot be reached.
    Unreachable,
    /// More than there may be.
    TooMany,
}

impl Code {
    /// All codes, in the order of the reference.
    pub const ALL: [Code; 12] = [
        Code::Syntax,
        Code::UnknownKey,
        Code::MissingKey,
        Code::WrongType,
        Code::BadValue,
        Code::OutOfRange,
        Code::UnknownWord,
        Code::UnknownName,
        Code::Duplicate,
        Code::Conflict,
        Code::Unreachable,
        Code::TooMany,
    ];

    /// The stable word, and its meaning in a sentence.
    const fn entry(self) -> (&'static str, &'static str) {
        match self {
            Code::Syntax => ("syntax", "The file is not TOML."),
            Code::UnknownKey => ("unknown-key", "The section has no such key."),
            Code::MissingKey => ("missing-key", "A required key is absent."),
            Code::WrongType => {
                ("wrong-type", "A value of another type, such as text where a number belongs.")
            }
            Code::BadValue => {
                ("bad-value", "The right type, but it cannot be read, such as a duration without unit.")
            }
            Code::OutOfRange => ("out-of-range", "A number, duration or size outside its range."),
            Code::UnknownWord => ("unknown-word", "None of the words that the key takes."),
            Code::UnknownName => ("unknown-name", "Nothing of that name is defined."),
            Code::Duplicate => ("duplicate", "The same thing said twice."),
            Code::Conflict => ("conflict", "Keys that exclude each other, or one that needs another."),
            Code::Unreachable => {
                ("unreachable", "It could never happen: no request reaches it, no load gets there.")
            }
            Code::TooMany => ("too-many", "More than there may be."),
        }
    }

    /// The stable word.
    pub const fn as_str(self) -> &'static str {
        self.entry().0
    }

    /// What it means, in a sentence.
    pub const fn meaning(self) -> &'static str {
        self.entry().1
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Its kind.
    pub code: Code,
    /// The bytes of the source that are meant; empty where something is missing.
    pub span: Range<usize>,
    /// The line of its start, from 1.
    pub line: usize,
    /// The column of its start in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
    /// The other place that takes part: its line, and what stands there.
    pub other: Option<(usize, String)>,
}

/// All errors of a file: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// The file's name, as given to `parse`.
    pub name: String,
    /// The errors, in the order of the file.
    pub all: Vec<Diagnostic>,
    source: String,
}

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<&str> = self.source.lines().collect();
        for diagnostic in &self.all {
            let line = lines.get(diagnostic.line - 1).copied().unwrap_or("");
            self.print(diagnostic, line, f)?;
            writeln!(f)?;
        }
        match self.all.len() {
            1 => write!(f, "1 error in {}", self.name),
            count => write!(f, "{count} errors in {}", self.name),
        }
    }
}

/// The longest piece of a line that is shown.
const SHOWN: usize = 120;

impl Diagnostics {
    /// The file as it was read.
    pub fn source(&self) -> &str {
        &self.source
    }

    fn print(&self, diagnostic: &Diagnostic, text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Diagnostic { code, line, column, message, help, .. } = diagnostic;
        let width =
            self.source.get(diagnostic.span.clone()).map_or(0, |span| first_line(span).chars().count());
        let skipped = if *column > SHOWN { column - SHOWN / 2 } else { 0 };
        let shown: String = text.chars().skip(skipped).take(SHOWN).map(printable).collect();
        let offset = column - 1 - skipped;
        let carets = width.clamp(1, (SHOWN - offset.min(SHOWN - 1)).max(1));
        let gutter = " ".repeat(line.to_string().len());
        writeln!(f, "error[{code}]: {message}")?;
        writeln!(f, "{gutter}--> {}:{line}:{column}", self.name)?;
        writeln!(f, "{gutter} |")?;
        writeln!(f, "{line} | {}", shown.trim_end())?;
        writeln!(f, "{gutter} | {}{}", " ".repeat(offset), "^".repeat(carets))?;
        if let Some((line, what)) = &diagnostic.other {
            writeln!(f, "{gutter} = note: {what} in line {line}")?;
        }
        writeln!(f, "{gutter} = help: {help}")
    }
}

fn first_line(span: &str) -> &str {
    span.lines().next().unwrap_or("")
}

/// Tabs count as one column, and nothing in a file may steer the reader's terminal.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        // Control characters, and those that turn the direction of text.
        c if c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
        {
            '\u{fffd}'
        }
        c => c,
    }
}

/// The user's text as it may stand in a message: short, on one line, without control characters.
pub(crate) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(60).map(printable).collect();
    if shown.len() < text.len() && text.chars().nth(60).is_some() {
        shown.push('…');
    }
    shown
}

/// The collector that reading and resolving write into.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Finding>,
    /// What stands for each NAME in the titles of the sections under reading, outermost first.
    names: Vec<String>,
    /// The file's own shape, to find the section that a misplaced key belongs to.
    file: Option<fn() -> SectionShape>,
}

/// One error before its place is turned into line and column.
#[derive(Debug)]
struct Finding {
    code: Code,
    span: Range<usize>,
    complaint: Complaint,
    other: Option<(Range<usize>, String)>,
}

/// What is wrong, and what helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    pub(crate) help: String,
}

impl Complaint {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Complaint { message: message.into(), help: help.into() }
    }
}

impl Findings {
    /// Nothing found yet in a file of this shape.
    pub(crate) fn of(file: fn() -> SectionShape) -> Self {
        Findings { file: Some(file), ..Findings::default() }
    }

    /// The section that has a key, for one that stands in the wrong place.
    pub(crate) fn section_with(&self, key: &str) -> Option<&'static str> {
        let sections = sections((self.file?)());
        let has_it = |section: &&SectionShape| section.keys.iter().any(|known| known.name == key);
        sections.iter().find(has_it).map(|section| section.title)
    }

    /// One more error.
    pub(crate) fn add(&mut self, code: Code, span: &Range<usize>, complaint: Complaint) {
        self.found.push(Finding { code, span: span.clone(), complaint, other: None });
    }

    /// One more error, in which another place takes part.
    pub(crate) fn add_with(
        &mut self,
        code: Code,
        span: &Range<usize>,
        complaint: Complaint,
        other: Other<'_>,
    ) {
        let other = Some((other.span.clone(), other.what.to_owned()));
        self.found.push(Finding { code, span: span.clone(), complaint, other });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// How many values were refused: if more after reading than before, what was read is not sound.
    pub(crate) fn refused(&self) -> usize {
        self.found.iter().filter(|finding| finding.code != Code::MissingKey).count()
    }

    /// Reads a section that has a name of the user's choice.
    pub(crate) fn under_name<T>(&mut self, name: &str, read: impl FnOnce(&mut Findings) -> T) -> T {
        self.names.push(quoted(name));
        let read = read(self);
        self.names.pop();
        read
    }

    /// A section's title with the names it really has.
    pub(crate) fn title(&self, title: &str) -> String {
        let mut pieces = title.split("NAME");
        let mut shown = pieces.next().unwrap_or_default().to_owned();
        let mut names = self.names.iter();
        for piece in pieces {
            shown.push_str(names.next().map_or("NAME", String::as_str));
            shown.push_str(piece);
        }
        shown
    }

    /// After errors of syntax what was read is partly a guess: keep only what does not follow from the guess. That is
    /// what is wrong in other lines, under headers that could be read, and not merely absent.
    pub(crate) fn keep_beside_syntax(&mut self, source: &str) {
        let lines = Lines::new(source);
        let line = |finding: &Finding| lines.of(finding.span.start).0;
        let broken: Vec<usize> = self.found.iter().filter(|f| f.code == Code::Syntax).map(line).collect();
        let header_lines: Vec<usize> = (1..)
            .zip(source.lines())
            .filter(|(_, text)| text.trim_start().starts_with('['))
            .map(|(at, _)| at)
            .collect();
        self.found.retain(|finding| {
            let at = line(finding);
            let header = header_lines.iter().rev().find(|header| **header <= at);
            let guessed = broken.contains(&at) || header.is_some_and(|header| broken.contains(header));
            finding.code == Code::Syntax || (finding.code != Code::MissingKey && !guessed)
        });
    }

    /// The errors, placed in their source.
    pub(crate) fn into_diagnostics(self, source: &str, name: &str) -> Diagnostics {
        let place = Lines::new(source);
        let mut all: Vec<Diagnostic> = self
            .found
            .into_iter()
            .map(|Finding { code, span, complaint, other }| {
                let (line, column) = place.of(span.start);
                let other = other.map(|(span, what)| (place.of(span.start).0, what));
                Diagnostic {
                    code,
                    span,
                    line,
                    column,
                    message: complaint.message,
                    help: complaint.help,
                    other,
                }
            })
            .collect();
        all.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
        all.dedup();
        Diagnostics { name: name.to_owned(), all, source: source.to_owned() }
    }
}

/// The second place of an error.
pub(crate) struct Other<'a> {
    pub(crate) span: &'a Range<usize>,
    /// What stands there, before "in line N": `first given`.
    pub(crate) what: &'a str,
}

/// Byte offsets to lines and columns.
struct Lines<'a> {
    source: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(source: &'a str) -> Self {
        let ends = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines { source, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Line and column, both from 1. An offset within a character belongs to it.
    fn of(&self, offset: usize) -> (usize, usize) {
        let offset = self.source.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset);
        (line, self.source[self.starts[line - 1]..offset].chars().count() + 1)
    }
}
