//! The operator's log: the form of its lines, and which of them are left out.

use crate::syntax::section;

section! { "[log]"
    /// What the gateway says of itself on stderr: what begins or ceases, and what needs you. Single requests are in the access
    /// log. See [the log](log.md).
    LogKeys {
        /// The form of the lines.
        format: LineFormat, default(LineFormat::default());
        /// The least grave lines that are written.
        level: LeastLevel, default(LeastLevel::default());
    }
}

/// What is said of the operator's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The form of its lines.
    pub format: LineFormat,
    /// The least grave lines that are written.
    pub level: LeastLevel,
}

/// The form of a line of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LineFormat {
    /// For a person.
    #[default]
    Text,
    /// For a program.
    Json,
}

/// How grave a line of the log is at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeastLevel {
    /// A person is needed.
    Error,
    /// A person should look.
    Warn,
    /// The state has changed.
    #[default]
    Info,
    /// For whoever looks for a fault.
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

impl LogKeys {
    pub(super) fn log(&self) -> Log {
        Log { format: self.format.value, level: self.level.value }
    }
}
