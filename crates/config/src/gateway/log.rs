//! The operator's log: the form of its lines, and which of them are left out.

use crate::syntax::section;

section! { "[log]"
    /// The operator's log, on stderr: conditions that begin or end, and what needs the operator. Single requests are in the
    /// access log. See [the log](log.md).
    LogKeys {
        /// The form of the lines.
        format: LineFormat, default(LineFormat::default());
        /// The lowest level of lines that are written.
        level: LeastLevel, default(LeastLevel::default());
    }
}

/// The settings of the operator's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The form of its lines.
    pub format: LineFormat,
    /// The lowest level of lines that are written.
    pub level: LeastLevel,
}

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineFormat {
    /// Lines to be read by a person.
    #[default]
    Text,
    /// Lines to be read by a program.
    Json,
}

/// The lowest level of lines that are written, the gravest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeastLevel {
    /// A person is needed.
    Error,
    /// A person should look.
    Warn,
    /// The state has changed.
    #[default]
    Info,
    /// Details for the search for a fault.
    Debug,
}

crate::syntax::word::words!(LineFormat {
    "text" => Text, "the time, the level, and a sentence that begins with what it is about";
    "json" => Json, "an object a line, whose fields are the same and the figures in the sentence";
});

crate::syntax::word::words!(LeastLevel {
    "error" => Error, "only what needs a person now";
    "warn" => Warn, "and what a person should look at";
    "info" => Info, "and what has changed";
    "debug" => Debug, "and what helps to find a fault";
});
