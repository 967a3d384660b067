//! AC's parameters, as read from a comparator's text:
//! `aces:1ms,period=1s,queue=1000,drop=all,budget=corrected,shares=0-1/0-1,processes=60,hour=3600s,rate_forecast=FILE`. Each
//! may be left out.

use super::queues::DropPolicy;
use crate::front::form::{AT_LEAST_ONE, POSITIVE, Read, Words};
use plimsoll_core::promises::Share;
use plimsoll_core::time::Duration;
use std::path::PathBuf;

/// What a period's account is charged with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::front) enum BudgetReading {
    /// The engine's reading (`crates/core/src/admission/aces/formula.rs`): work carried over counts, finished requests count
    /// with their true service time, and a higher priority that used more than was predicted counts with what it used. This is
    /// the default, because the paper's own figures come out only by it: as printed, more than 1 % of the requests miss the
    /// bound at loads from the capacity to 1.2 times of it.
    #[default]
    Corrected,
    /// Eq. 5: estimates of what the period admitted, and the predictions of higher priorities; every period begins with C.
    Printed,
}

/// How AC is set. Table 1's values are the defaults.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::front) struct AcesSettings {
    /// The time of one quantum. `None`: the fixed part of the server's service.
    pub(in crate::front) unit: Option<Duration>,
    /// The length of a period, T, which is also the bound of the response time.
    pub(in crate::front) period: Duration,
    /// The most requests that wait in both queues together ("total queue length").
    pub(in crate::front) queue: u32,
    /// How what a period may still admit is counted.
    pub(in crate::front) budget: BudgetReading,
    /// Which requests are dropped when the backup queue is full.
    pub(in crate::front) drop: DropPolicy,
    /// WFA: shares by priority, the highest first. A priority that is not named has [`Share::ANY`]; without any share the
    /// scheme is PRA.
    pub(in crate::front) shares: Vec<Share>,
    /// n of `T(s, n)`. `None`: estimates are by type alone.
    pub(in crate::front) processes: Option<u32>,
    /// The length of an hour of the day. Each hour has a rate forecast of its own; hours count from the beginning of the run.
    pub(in crate::front) hour: Duration,
    /// The file of rate forecasts: read at the beginning if it exists; the caller writes it at the end.
    pub(in crate::front) rate_forecast: Option<PathBuf>,
}

impl Default for AcesSettings {
    fn default() -> Self {
        AcesSettings {
            unit: None,
            period: Duration::from_secs(1),
            queue: 1000,
            budget: BudgetReading::Corrected,
            drop: DropPolicy::All,
            shares: Vec::new(),
            processes: None,
            hour: Duration::from_secs(3600),
            rate_forecast: None,
        }
    }
}

impl AcesSettings {
    pub(in crate::front) fn read(words: &mut Words<'_>) -> Result<AcesSettings, String> {
        let usual = AcesSettings::default();
        Ok(AcesSettings {
            unit: words.value(POSITIVE)?,
            period: words.option("period", POSITIVE, usual.period)?,
            queue: words.option("queue", AT_LEAST_ONE, usual.queue)?,
            drop: words.option("drop", DROP, usual.drop)?,
            budget: words.option("budget", BUDGET, usual.budget)?,
            shares: words.option("shares", SHARES, usual.shares)?,
            processes: words.given("processes", AT_LEAST_ONE)?,
            hour: words.option("hour", POSITIVE, usual.hour)?,
            rate_forecast: words.given("rate_forecast", PATH)?,
        })
    }
}

const DROP: Read<DropPolicy> = Read {
    of: |text| match text {
        "all" => Some(DropPolicy::All),
        "oldest" => Some(DropPolicy::Oldest),
        "costliest" => Some(DropPolicy::Costliest),
        _ => None,
    },
    expected: "all, oldest or costliest",
};

const BUDGET: Read<BudgetReading> = Read {
    of: |text| match text {
        "printed" => Some(BudgetReading::Printed),
        "corrected" => Some(BudgetReading::Corrected),
        _ => None,
    },
    expected: "printed or corrected",
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
    fn every_option_is_read_and_the_rest_is_usual() {
        assert_eq!(read("aces"), Ok(AcesSettings::default()));
        let long = "aces:1500us,period=250ms,queue=50,drop=oldest,budget=printed,shares=0.2-1/0-0.5,processes=60,\
                    hour=5s,rate_forecast=week.txt";
        let expected = AcesSettings {
            unit: Some(Duration::from_micros(1500)),
            period: Duration::from_millis(250),
            queue: 50,
            budget: BudgetReading::Printed,
            drop: DropPolicy::Oldest,
            shares: vec![Share { least: 0.2, most: 1.0 }, Share { least: 0.0, most: 0.5 }],
            processes: Some(60),
            hour: Duration::from_secs(5),
            rate_forecast: Some("week.txt".into()),
        };
        assert_eq!(read(long), Ok(expected));
        let costliest = AcesSettings { drop: DropPolicy::Costliest, ..AcesSettings::default() };
        assert_eq!(read("aces,drop=costliest"), Ok(costliest));
        assert_eq!(read("aces,period=1s,queue=1000,drop=all,budget=corrected,hour=60min"), read("aces"));
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
