//! The collector that reading and resolving write errors into.

use super::{Code, Diagnostic, Diagnostics, quoted};
use crate::syntax::{SectionShape, sections};
use std::ops::Range;

/// The most errors of a file that are kept: nobody reads more, and a file of another kind may have one in every byte.
const MOST_KEPT: usize = 1000;

/// The errors found so far, and the section that is being read.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: Vec<Finding>,
    /// How many values were refused, including those whose errors are not kept.
    refused: usize,
    /// The user's names for each NAME in the titles of the sections that are being read, outermost first.
    names: Vec<String>,
    /// The file's own shape, to find the section that a misplaced key belongs to.
    file: Option<fn() -> SectionShape>,
}

/// An error whose place is still a byte range.
#[derive(Debug)]
struct Finding {
    code: Code,
    span: Range<usize>,
    complaint: Complaint,
    other: Option<(Range<usize>, String)>,
}

/// A sentence about what is wrong, and one about what to write instead.
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

/// Adds an error: `refuse!(findings, Conflict at &span, "what is wrong", help: "what to write instead")`. If another place
/// takes part in the error, `beside &span => "what stands there"` follows; the message goes on with "in line N".
macro_rules! refuse {
    ($findings:expr, $code:ident at $span:expr, $message:expr, help: $help:expr $(, beside $other:expr => $what:expr)?) => {{
        let complaint = $crate::diagnostic::Complaint::new($message, $help);
        let other: Option<(&std::ops::Range<usize>, String)> = None;
        $( let other = other.or(Some(($other, $what.into()))); )?
        $findings.add($crate::diagnostic::Code::$code, $span, complaint, other);
    }};
}
pub(crate) use refuse;

impl Findings {
    /// No findings yet, for a file of this shape.
    pub(crate) fn of(file: fn() -> SectionShape) -> Self {
        Findings { file: Some(file), ..Findings::default() }
    }

    /// The section that has a key, for a key that stands in the wrong place.
    pub(crate) fn section_with(&self, key: &str) -> Option<&'static str> {
        let sections = sections((self.file?)());
        let has_it = |section: &&SectionShape| section.keys.iter().any(|known| known.name == key);
        sections.iter().find(has_it).map(|section| section.title)
    }

    /// Adds an error; `refuse!` is its short form.
    pub(crate) fn add(
        &mut self,
        code: Code,
        span: &Range<usize>,
        complaint: Complaint,
        other: Option<(&Range<usize>, String)>,
    ) {
        self.refused += usize::from(code != Code::MissingKey);
        if self.found.len() == MOST_KEPT {
            return;
        }
        let other = other.map(|(span, what)| (span.clone(), what));
        self.found.push(Finding { code, span: span.clone(), complaint, other });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// How many values were refused. If the number rises while a value is read, the value is not sound.
    pub(crate) fn refused(&self) -> usize {
        self.refused
    }

    /// Reads a section whose name the user chose.
    pub(crate) fn under_name<T>(&mut self, name: &str, read: impl FnOnce(&mut Findings) -> T) -> T {
        self.names.push(quoted(name));
        let read = read(self);
        self.names.pop();
        read
    }

    /// A section's title with the user's names in it.
    pub(crate) fn title(&self, title: &str) -> String {
        let mut names = self.names.iter();
        let mut pieces = title.split("NAME");
        let first = pieces.next().unwrap_or_default().to_owned();
        pieces.fold(first, |shown, piece| shown + names.next().map_or("NAME", String::as_str) + piece)
    }

    /// Drops errors that may only follow from an error of syntax, because the values read after it are partly guesses. An error
    /// is kept if it is in another line, below a header that could be read, and is not about a missing key.
    pub(crate) fn drop_consequences_of_syntax_errors(&mut self, source: &str) {
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

    /// The errors with their lines and columns in the source.
    pub(crate) fn into_diagnostics(self, source: &str, name: &str) -> Diagnostics {
        let place = Lines::new(source);
        let mut all: Vec<Diagnostic> = self
            .found
            .into_iter()
            .map(|Finding { code, span, complaint: Complaint { message, help }, other }| {
                let (line, column) = place.of(span.start);
                let other = other.map(|(span, what)| (place.of(span.start).0, what));
                Diagnostic { code, span, line, column, message, help, other }
            })
            .collect();
        let is_cut = all.len() == MOST_KEPT;
        all.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
        all.dedup();
        Diagnostics { name: name.to_owned(), all, source: source.to_owned(), is_cut }
    }
}

/// The keys of a section by name, each with its place if it is given: `places!(keys => rate, load)`.
macro_rules! places {
    ($keys:expr => $($key:ident),+) => { [$((stringify!($key), $crate::syntax::OptionalKey::span(&$keys.$key))),+] };
}
pub(crate) use places;

/// If several keys are given that exclude each other, refuses all but the first; see `places!`.
pub(crate) fn exclusive(keys: &[(&str, Option<&Range<usize>>)], help: &str, findings: &mut Findings) {
    let mut given = keys.iter().filter_map(|(name, span)| span.map(|span| (name, span)));
    let Some((first, first_span)) = given.next() else { return };
    for (name, span) in given {
        refuse!(findings, Conflict at span,
            format!("`{first}` and `{name}` exclude each other"), help: help,
            beside first_span => format!("`{first}` is given"));
    }
}

/// Turns byte offsets into lines and columns.
struct Lines<'a> {
    source: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(source: &'a str) -> Self {
        let ends = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines { source, starts: std::iter::once(0).chain(ends).collect() }
    }

    /// Line and column, both from 1. An offset within a character belongs to that character.
    fn of(&self, offset: usize) -> (usize, usize) {
        let offset = self.source.floor_char_boundary(offset);
        let line = self.starts.partition_point(|start| *start <= offset);
        (line, self.source[self.starts[line - 1]..offset].chars().count() + 1)
    }
}
