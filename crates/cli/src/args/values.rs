//! Parsers of option values: numbers within bounds, pairs. If a parser refuses a value, its message says how to write it.

use plimsoll_sim::workload::{FieldPlace, LogTimes, TimeField, TimeUnit};
use std::fmt;
use std::str::FromStr;

/// The name of a number, and its least and greatest value.
#[derive(Clone, Copy)]
pub(super) struct Bounds<T> {
    pub(super) what: &'static str,
    pub(super) least: T,
    pub(super) most: Option<T>,
}

impl<T: fmt::Display> fmt::Display for Bounds<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} from {}", self.what, self.least)?;
        self.most.as_ref().map_or(Ok(()), |most| write!(to, " to {most}"))
    }
}

/// Parses a number within `bounds`.
pub(super) fn within<T: FromStr + PartialOrd + fmt::Display + Copy>(
    bounds: Bounds<T>,
) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let fits = |number: &T| *number >= bounds.least && bounds.most.is_none_or(|most| *number <= most);
        text.parse().ok().filter(fits).ok_or_else(|| format!("write {bounds}"))
    }
}

/// Parses a rate such as `200/s`.
pub(super) fn per_second(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix("/s").unwrap_or(text).trim().parse();
    number
        .ok()
        .filter(|rate| (1e-3..=1e9).contains(rate))
        .ok_or_else(|| "write requests a second, such as 200/s".to_owned())
}

/// Parses a field of a log that is a time.
pub(super) fn time_field(text: &str) -> Result<LogTimes, String> {
    const HOW: &str =
        "write a number from 1 or a name, and a unit if it is known (s, ms, us, ns), such as 2:ms; or none";
    let (place, unit) =
        text.trim().split_once(':').map_or((text.trim(), None), |(place, unit)| (place, Some(unit)));
    let unit = match unit {
        None => None,
        Some("s") => Some(TimeUnit::Seconds),
        Some("ms") => Some(TimeUnit::Milliseconds),
        Some("us") => Some(TimeUnit::Microseconds),
        Some("ns") => Some(TimeUnit::Nanoseconds),
        Some(_) => return Err(HOW.to_owned()),
    };
    Ok(match place.parse() {
        _ if place == "none" && unit.is_none() => LogTimes::Ignored,
        Ok(0) => return Err(HOW.to_owned()),
        Ok(number) => LogTimes::Field(TimeField { place: FieldPlace::Number(number), unit }),
        Err(_) if place.is_empty() => return Err(HOW.to_owned()),
        Err(_) => LogTimes::Field(TimeField { place: FieldPlace::Name(place.to_owned()), unit }),
    })
}

/// Parses name and value of a header.
pub(super) fn header(text: &str) -> Result<(String, String), String> {
    pair(text, ':').ok_or_else(|| "write a name and a value, such as 'x-plan: gold'".to_owned())
}

/// Parses name and value of a cookie, and returns the two as a `Cookie` header has them.
pub(super) fn cookie(text: &str) -> Result<String, String> {
    let (name, value) = pair(text, '=').ok_or("write a name and a value, such as session=42")?;
    Ok(format!("{name}={value}"))
}

fn pair(text: &str, between: char) -> Option<(String, String)> {
    let (name, value) = text.split_once(between)?;
    (!name.trim().is_empty()).then(|| (name.trim().to_owned(), value.trim().to_owned()))
}
