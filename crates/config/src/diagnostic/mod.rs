//! Diagnostics: what is wrong with a file, where, and what to write instead.
//!
//! Input: the findings that reading and resolving collect ([`Findings`]). Output: [`Diagnostics`], all errors of a file in its
//! order; each has a stable [`Code`], a span of the source, a sentence about what is wrong, and one about what to write
//! instead. `Display` draws them without colour, so that terminals, logs and golden files hold the same text.

mod findings;

pub(crate) use findings::{Complaint, Findings, exclusive, places, refuse};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// Makes the enum of codes; each has a stable word, and its documentation is also the meaning that users read.
macro_rules! codes {
    ($(#[doc = $meaning:literal] $name:ident = $word:literal;)+) => {
        /// The kinds of error. The words are stable: scripts and documents may name them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $meaning] $name,)+
        }

        impl Code {
            /// All codes, in the order of the reference.
            pub const ALL: [Code; [$(Code::$name),+].len()] = [$(Code::$name),+];

            /// The stable word.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $word),+ }
            }

            /// The meaning of the code, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$name => $meaning),+ }.trim_ascii()
            }
        }
    };
}

codes! {
    /// The file is not TOML.
    Syntax = "syntax";
    /// The section has no such key.
    UnknownKey = "unknown-key";
    /// A required key is absent.
    MissingKey = "missing-key";
    /// A value of another type, such as text where a number belongs.
    WrongType = "wrong-type";
    /// The right type, but it cannot be read, such as a duration without unit.
    BadValue = "bad-value";
    /// A number, duration or size outside its range.
    OutOfRange = "out-of-range";
    /// None of the words that the key takes.
    UnknownWord = "unknown-word";
    /// Nothing of that name is defined.
    UnknownName = "unknown-name";
    /// The same thing said twice.
    Duplicate = "duplicate";
    /// Keys that exclude each other, or one that needs another.
    Conflict = "conflict";
    /// It could never happen: no request reaches it, no load gets there.
    Unreachable = "unreachable";
    /// More than there may be.
    TooMany = "too-many";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One error of a file, with its place and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The kind of error.
    pub code: Code,
    /// The bytes of the source that are wrong; empty if something is missing there.
    pub span: Range<usize>,
    /// The line of the span's start, from 1.
    pub line: usize,
    /// The column of the span's start in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: String,
    /// Another place that takes part in the error: its line, and a phrase about it.
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
    /// Whether there may be more errors that were not kept.
    is_cut: bool,
}

/// The most errors that are drawn, and the most errors of syntax among them, because in a file of another kind each line is
/// one. The alternate form draws all.
const MOST_DRAWN: usize = 20;
const MOST_OF_SYNTAX: usize = 3;

impl std::error::Error for Diagnostics {}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (most, of_syntax) =
            if f.alternate() { (usize::MAX, usize::MAX) } else { (MOST_DRAWN, MOST_OF_SYNTAX) };
        let (mut syntax, mut drawn) = (0, 0);
        for diagnostic in &self.all {
            let is_syntax = diagnostic.code == Code::Syntax;
            syntax += usize::from(is_syntax);
            if drawn < most && !(is_syntax && syntax > of_syntax) {
                writeln!(f, "{}\n", self.render(diagnostic))?;
                drawn += 1;
            }
        }
        let (count, name) = (self.all.len(), &self.name);
        let errors = if count == 1 { "error" } else { "errors" };
        let more = if self.is_cut { " or more" } else { "" };
        write!(f, "{count}{more} {errors} in {name}")?;
        match count - drawn {
            0 => Ok(()),
            others if syntax > of_syntax => write!(f, ", {others}{more} of them not shown"),
            _ => write!(f, ", of which these are the first {drawn}"),
        }
    }
}

impl Diagnostics {
    /// The file as it was read.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Draws an error as text: its line of the file with carets below, then notes.
    fn render(&self, diagnostic: &Diagnostic) -> String {
        let Diagnostic { code, span, line, message, help, other, .. } = diagnostic;
        // The renderer gets only the line that is shown, because with a long file it would count all lines for each error.
        let start = self.source[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let text = self.source[start..].lines().next().unwrap_or("");
        let from = (span.start - start).min(text.len());
        let until = (span.end - start).clamp(from, text.len());
        let snippet = Snippet::source(text)
            .path(&self.name)
            .line_start(*line)
            .annotation(AnnotationKind::Primary.span(from..until));
        let note = other.iter().map(|(line, what)| Level::NOTE.message(format!("{what} in line {line}")));
        let report = Level::ERROR
            .primary_title(message)
            .id(code.as_str())
            .element(snippet)
            .elements(note)
            .element(Level::HELP.message(help));
        Renderer::plain().render(&[report])
    }
}

/// The user's text in a form fit for a message: short, on one line, without control characters.
pub(crate) fn quoted(text: &str) -> String {
    let steers = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    let harmless = |c| match c {
        '\t' => ' ',
        c if steers(c) => '\u{fffd}',
        c => c,
    };
    let mut shown: String = text.chars().take(60).map(harmless).collect();
    if text.chars().nth(60).is_some() {
        shown.push('…');
    }
    shown
}

/// The names, each in backticks: `` `a`, `b` ``.
pub(crate) fn in_backticks(names: impl IntoIterator<Item = impl fmt::Display>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
