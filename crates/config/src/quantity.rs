//! Numbers with units: durations, sizes and rates, as text.
//!
//! A quantity is a decimal number, an optional space, and a unit. Never a bare number: `10` says nothing about
//! seconds or milliseconds, and the wrong guess is a factor of a thousand.

use plimsoll_core::time::Duration;

/// Units of time, in seconds.
const TIME: &[(&str, f64)] = &[
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("min", 60.0),
    ("m", 60.0),
    ("h", 3600.0),
    ("d", 86_400.0),
];

/// Units of size, in bytes.
const SIZE: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

/// Units of rate, in bytes per second.
const RATE: &[(&str, f64)] = &[
    ("bit/s", 0.125),
    ("kbit/s", 125.0),
    ("Mbit/s", 125e3),
    ("Gbit/s", 125e6),
    ("B/s", 1.0),
    ("kB/s", 1e3),
    ("MB/s", 1e6),
    ("GB/s", 1e9),
    ("KiB/s", 1024.0),
    ("MiB/s", 1_048_576.0),
    ("GiB/s", 1_073_741_824.0),
];

/// Units of a rate of requests, per second.
const REQUESTS: &[(&str, f64)] =
    &[("/s", 1.0), ("/min", 1.0 / 60.0), ("/h", 1.0 / 3600.0), ("/d", 1.0 / 86_400.0)];

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    NoNumber,
    NoUnit,
    UnknownUnit(String),
}

impl Fault {
    /// In words, with the units of `kind` that would do.
    pub(crate) fn words(&self, what: &str, units: &str) -> (String, String) {
        match self {
            Fault::NoNumber => {
                (format!("this is no {what}: it does not begin with a number"), units.to_owned())
            }
            Fault::NoUnit => (format!("a {what} needs a unit"), units.to_owned()),
            Fault::UnknownUnit(unit) => {
                (format!("`{}` is no unit of a {what}", crate::diagnostic::quoted(unit)), units.to_owned())
            }
        }
    }
}

/// Seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, Fault> {
    quantity(text, TIME)
}

/// Bytes.
pub(crate) fn bytes(text: &str) -> Result<f64, Fault> {
    quantity(text, SIZE)
}

/// Bytes per second.
pub(crate) fn bytes_per_second(text: &str) -> Result<f64, Fault> {
    quantity(text, RATE)
}

/// Requests per second.
pub(crate) fn per_second(text: &str) -> Result<f64, Fault> {
    quantity(text, REQUESTS)
}

fn quantity(text: &str, units: &[(&str, f64)]) -> Result<f64, Fault> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.replace('_', "").parse().map_err(|_| Fault::NoNumber)?;
    let unit = unit.trim_start();
    if unit.is_empty() {
        return Err(Fault::NoUnit);
    }
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => Ok(number * factor),
        None => Err(Fault::UnknownUnit(unit.to_owned())),
    }
}

/// A duration as one would write it: the largest unit that leaves a whole number, minutes and hours from two on.
pub(crate) fn show_duration(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    let units = [("h", 7200, 3600), ("min", 120, 60), ("s", 1, 1)];
    for (unit, least, seconds) in units.map(|(unit, least, size)| (unit, least * SECOND, size * SECOND)) {
        if nanoseconds >= least && nanoseconds.is_multiple_of(seconds) {
            return format!("{}{unit}", nanoseconds / seconds);
        }
    }
    match nanoseconds % 1_000_000 {
        0 => format!("{}ms", nanoseconds / 1_000_000),
        _ => format!("{nanoseconds}ns"),
    }
}

const SECOND: u128 = 1_000_000_000;

/// A size as one would write it.
pub(crate) fn show_bytes(bytes: u64) -> String {
    for (unit, shift) in [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)] {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{} {unit}", bytes >> shift);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units() {
        assert_eq!(seconds("10s"), Ok(10.0));
        assert_eq!(seconds("1.5 h"), Ok(5400.0));
        assert_eq!(bytes("32 KiB"), Ok(32768.0));
        assert_eq!(bytes_per_second("100 Mbit/s"), Ok(12.5e6));
        assert!((seconds("63ns").unwrap() - 63e-9).abs() < 1e-18);
    }

    #[test]
    fn refuses_what_is_not_one() {
        assert_eq!(seconds("10"), Err(Fault::NoUnit));
        assert_eq!(seconds("s"), Err(Fault::NoNumber));
        assert_eq!(seconds("-1s"), Err(Fault::NoNumber));
        assert_eq!(seconds("1.2.3s"), Err(Fault::NoNumber));
        assert_eq!(seconds("1 fortnight"), Err(Fault::UnknownUnit("fortnight".into())));
        assert_eq!(bytes("1 Mb"), Err(Fault::UnknownUnit("Mb".into())));
    }

    #[test]
    fn shows_what_it_reads() {
        for text in ["10s", "250ms", "90s", "60s", "2h", "1s"] {
            let duration = Duration::from_secs_f64(seconds(text).unwrap());
            let shown = show_duration(duration);
            assert_eq!(seconds(&shown), seconds(text), "{shown}");
        }
        assert_eq!(show_duration(Duration::from_secs(1)), "1s");
        assert_eq!(show_duration(Duration::from_secs(60)), "60s");
        assert_eq!(show_duration(Duration::from_nanos(1500)), "1500ns");
        assert_eq!(show_bytes(32 * 1024), "32 KiB");
        assert_eq!(show_bytes(1 << 30), "1 GiB");
        assert_eq!(show_bytes(1000), "1000 B");
    }
}
