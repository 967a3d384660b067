//! AC's parameters, as data and as text.
//!
//! `aces:1ms,period=1s,queue=1000,drop=all,shares=0-1/0-1,processes=60,hour=3600s,trends=FILE`; all may be left out.

use super::{DropPolicy, Share};
use crate::front::form::{AT_LEAST_ONE, POSITIVE, Read, Span, Words};
use plimsoll_core::time::Duration;
use std::fmt;
use std::path::PathBuf;

/// How AC is set. Table 1's values are the defaults.
#[derive(Clone, Debug, PartialEq)]
pub struct AcesSettings {
    /// The time of one quantum. `None`: the fixed part of the server's service.
    pub unit: Option<Duration>,
    /// T, the bound of the response time too.
    pub period: Duration,
    /// The most that wait in each of the two queues.
    pub queue: u32,
    /// Which requests are dropped when the backup queue is full.
    pub drop: DropPolicy,
    /// WFA: by priority, the highest first. What is not named has [`Share::ANY`]; none at all is PRA.
    pub shares: Vec<Share>,
    /// n of `T(s, n)`. `None`: estimates are by type alone.
    pub processes: Option<u32>,
    /// An hour of the day, of which each has its own trends; hours count from the beginning of the run.
    pub hour: Duration,
    /// Rate forecasts learned before: read at the beginning if the file is there, for the caller to write at the end.
    pub trends: Option<PathBuf>,
}

impl Default for AcesSettings {
    fn default() -> Self {
        AcesSettings {
            unit: None,
            period: Duration::from_secs(1),
            queue: 1000,
            drop: DropPolicy::All,
            shares: Vec::new(),
            processes: None,
            hour: Duration::from_secs(3600),
            trends: None,
        }
    }
}

impl AcesSettings {
    pub(in crate::front) fn read(words: &mut Words<'_>) -> Result<AcesSettings, String> {
        let usual = AcesSettings::default();
        Ok(AcesSettings {
            unit: words.value(POSITIVE)?,
            period: words.option("period", POSITIVE)?.unwrap_or(usual.period),
            queue: words.option("queue", AT_LEAST_ONE)?.unwrap_or(usual.queue),
            drop: words.option("drop", DROP)?.unwrap_or(usual.drop),
            shares: words.option("shares", SHARES)?.unwrap_or(usual.shares),
            processes: words.option("processes", AT_LEAST_ONE)?,
            hour: words.option("hour", POSITIVE)?.unwrap_or(usual.hour),
            trends: words.option("trends", PATH)?,
        })
    }
}

impl fmt::Display for AcesSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = AcesSettings::default();
        f.write_str("aces")?;
        if let Some(unit) = self.unit {
            write!(f, ":{}", Span(unit))?;
        }
        if self.period != usual.period {
            write!(f, ",period={}", Span(self.period))?;
        }
        if self.queue != usual.queue {
            write!(f, ",queue={}", self.queue)?;
        }
        if let Some((word, _)) = POLICIES[1..].iter().find(|(_, policy)| *policy == self.drop) {
            write!(f, ",drop={word}")?;
        }
        for (place, share) in self.shares.iter().enumerate() {
            let before = if place == 0 { ",shares=" } else { "/" };
            write!(f, "{before}{}-{}", share.least, share.most)?;
        }
        if let Some(processes) = self.processes {
            write!(f, ",processes={processes}")?;
        }
        if self.hour != usual.hour {
            write!(f, ",hour={}", Span(self.hour))?;
        }
        match &self.trends {
            Some(path) => write!(f, ",trends={}", path.display()),
            None => Ok(()),
        }
    }
}

const POLICIES: [(&str, DropPolicy); 3] =
    [("all", DropPolicy::All), ("oldest", DropPolicy::Oldest), ("costliest", DropPolicy::Costliest)];

const DROP: Read<DropPolicy> = Read {
    of: |text| POLICIES.iter().find(|(word, _)| *word == text).map(|(_, policy)| *policy),
    expected: "all, oldest or costliest",
};

const PATH: Read<PathBuf> =
    Read { of: |text| (!text.is_empty()).then(|| PathBuf::from(text)), expected: "a file's name" };

const SHARES: Read<Vec<Share>> = Read {
    of: shares,
    expected: "a least and a most share of each priority, the highest first, such as 0.2-1/0-0.5; least shares add up to \
               1 at most",
};

fn shares(text: &str) -> Option<Vec<Share>> {
    let share = |part: &str| {
        let (least, most) = part.split_once('-')?;
        let share = Share { least: least.trim().parse().ok()?, most: most.trim().parse().ok()? };
        Share::fit(&[share]).then_some(share)
    };
    let shares: Vec<Share> = text.split('/').map(share).collect::<Option<_>>()?;
    Share::fit(&shares).then_some(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AcesSettings, String> {
        let mut words = Words::new(text)?;
        let settings = AcesSettings::read(&mut words)?;
        words.done()?;
        Ok(settings)
    }

    #[test]
    fn what_is_usual_is_left_out_and_the_rest_is_read_back() {
        assert_eq!(read("aces").as_ref(), Ok(&AcesSettings::default()));
        let long = "aces:1500us,period=250ms,queue=50,drop=oldest,shares=0.2-1/0-0.5,processes=60,hour=5s,\
                    trends=week.txt";
        let all = ["aces", "aces:1ms", "aces,drop=costliest", long];
        for text in all {
            assert_eq!(read(text).map(|settings| settings.to_string()).as_deref(), Ok(text));
        }
        assert_eq!(read("aces,period=1s,queue=1000,drop=all,hour=60min"), read("aces"));
    }

    #[test]
    fn errors_say_what_to_write() {
        let error = read("aces,drop=newest").unwrap_err();
        assert!(
            error.starts_with("drop: \"newest\" is not all, oldest or costliest; it is written"),
            "{error}"
        );
        for wrong in ["0.5", "0.5-0.2", "0-1.5", "0.6-1/0.6-1", "-1-1", "a-b"] {
            let error = read(&format!("aces,shares={wrong}")).unwrap_err();
            assert!(error.contains("such as 0.2-1/0-0.5"), "{error}");
        }
    }
}
