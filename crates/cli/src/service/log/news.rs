//! Lines whose level and subject are determined before they are written.

use plimsoll_core::telemetry::status::ClassStatus;
use tracing::Level;

/// What a line is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// An upstream or a folder.
    Plant(String),
    Site(String),
    /// A site's class: the site's name, then the class's.
    Class(String, String),
}

impl Subject {
    pub(crate) fn of(class: &ClassStatus) -> Subject {
        Subject::Class(class.site.clone(), class.class.clone())
    }
}

/// A line of the log.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct News {
    pub(crate) level: Level,
    pub(crate) subject: Subject,
    /// A sentence about the subject.
    pub(crate) message: String,
    pub(crate) figures: CountedRequests,
}

/// The counts of requests that the message mentions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CountedRequests {
    pub(crate) seconds: Option<f64>,
    pub(crate) full: Option<u64>,
    pub(crate) degraded: Option<u64>,
    pub(crate) rejected: Option<u64>,
    pub(crate) failed: Option<u64>,
}

impl News {
    /// A line about a change.
    pub(crate) fn info(subject: Subject, message: impl Into<String>) -> News {
        News { level: Level::INFO, subject, message: message.into(), figures: CountedRequests::default() }
    }

    /// A line that a person should look at.
    pub(crate) fn warn(subject: Subject, message: impl Into<String>) -> News {
        News { level: Level::WARN, ..News::info(subject, message) }
    }

    /// Writes the line.
    pub(crate) fn log(&self) {
        let (site, class, plant) = match &self.subject {
            Subject::Plant(plant) => (None, None, Some(plant.as_str())),
            Subject::Site(site) => (Some(site.as_str()), None, None),
            Subject::Class(site, class) => (Some(site.as_str()), Some(class.as_str()), None),
        };
        let CountedRequests { seconds, full, degraded, rejected, failed } = self.figures;
        // `tracing` fixes the level of an event at compile time, so each level needs a call of its own.
        macro_rules! event {
            ($level:ident) => {
                tracing::$level!(
                    site,
                    class,
                    plant,
                    seconds,
                    full,
                    degraded,
                    rejected,
                    failed,
                    "{}",
                    self.message
                )
            };
        }
        match self.level {
            Level::WARN => event!(warn),
            _ => event!(info),
        }
    }
}

/// The line as a text log has it.
#[cfg(test)]
impl std::fmt::Display for News {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.subject {
            Subject::Plant(name) | Subject::Site(name) => write!(to, "{name}: {}", self.message),
            Subject::Class(site, class) => write!(to, "{site}/{class}: {}", self.message),
        }
    }
}
