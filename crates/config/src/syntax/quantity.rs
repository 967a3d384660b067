//! Numbers with units, as text: durations, sizes and rates.
//!
//! A quantity is a decimal number, an optional space, and a unit. A bare number is refused: `10` does not say whether it is
//! seconds or milliseconds, and a wrong guess is a factor of a thousand.

use super::shape::TextShape;
use super::text::{Refusal, TextField, bad, out_of_range, texts};
use crate::diagnostic::quoted;
use plimsoll_core::time::Duration;

/// The units of a quantity, each with its factor.
struct Units {
    what: &'static str,
    help: &'static str,
    factors: &'static [(&'static str, f64)],
}

/// Units of time, in seconds.
const TIME: Units = Units {
    what: "duration",
    help: "write a number and a unit, such as `\"10s\"`: ns, us, ms, s, min, h, d",
    factors: &[
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("min", 60.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ],
};

/// Units of size, in bytes.
const SIZE: Units = Units {
    what: "size",
    help: "write a number and a unit, such as `\"64 KiB\"`: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB",
    factors: &[
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
    ],
};

/// Units of a rate of bytes, in bytes per second.
const BYTE_RATE: Units = Units {
    what: "rate",
    help: "write a number and a unit, such as `\"100 Mbit/s\"`: bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, \
           MB/s, GB/s, KiB/s, MiB/s, GiB/s",
    factors: &[
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
    ],
};

/// Units of a rate of requests, in requests per second.
const REQUEST_RATE: Units = Units {
    what: "rate of requests",
    help: "write a number and per what, such as `\"500/s\"`: /s, /min, /h, /d",
    factors: &[("/s", 1.0), ("/min", 1.0 / 60.0), ("/h", 1.0 / 3600.0), ("/d", 1.0 / 86_400.0)],
};

impl Units {
    /// The number in a text, in the base unit.
    fn read(&self, text: &str) -> Result<f64, Refusal> {
        let (what, help) = (self.what, self.help);
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let Ok(number) = number.replace('_', "").parse::<f64>() else {
            return bad(format!("this is no {what}: it does not begin with a number"), help);
        };
        let unit = unit.trim_start();
        if unit.is_empty() {
            return bad(format!("a {what} needs a unit"), help);
        }
        match self.factors.iter().find(|(name, _)| *name == unit) {
            Some((_, factor)) => Ok(number * factor),
            None => bad(format!("`{}` is no unit of a {what}", quoted(unit)), help),
        }
    }
}

/// The regular expression of a duration.
pub(crate) const DURATION: &str = "^[0-9][0-9_.]* ?(ns|us|µs|ms|s|m|min|h|d)$";

/// A number of seconds, which may be zero.
pub(crate) fn parse_seconds(text: &str) -> Result<f64, Refusal> {
    TIME.read(text)
}

/// A span of time above zero, up to a year.
impl TextField for Duration {
    const SHAPE: TextShape =
        TextShape { what: "a duration", example: "10s", pattern: Some(DURATION), unit: Some("s") };

    fn parse(text: &str) -> Result<Self, Refusal> {
        let seconds = parse_seconds(text)?;
        // The number is rounded, so that what is printed as 0.1 s is 100,000,000 ns.
        match Duration::from_nanos((seconds * 1e9).round().min(1e18) as u64) {
            Duration::ZERO => out_of_range("a duration of nothing", "write at least `\"1ns\"`"),
            duration if duration > Duration::from_secs(366 * 86_400) => {
                out_of_range("longer than a year", "write at most `\"366d\"`")
            }
            duration => Ok(duration),
        }
    }

    /// Shows a duration in the largest unit that leaves a whole number; in minutes and hours only from two on.
    fn show(&self) -> String {
        const SECOND: u128 = 1_000_000_000;
        let nanoseconds = self.as_nanos();
        let units = [("h", 7200, 3600), ("min", 120, 60), ("s", 1, 1)];
        for (unit, least, size) in units.map(|(unit, least, size)| (unit, least * SECOND, size * SECOND)) {
            if nanoseconds >= least && nanoseconds.is_multiple_of(size) {
                return format!("{}{unit}", nanoseconds / size);
            }
        }
        match nanoseconds % 1_000_000 {
            0 => format!("{}ms", nanoseconds / 1_000_000),
            _ => format!("{nanoseconds}ns"),
        }
    }
}

texts! {
    /// A cost in time, which may be a fraction of a nanosecond, or nothing.
    #[derive(Copy)]
    Seconds(f64, "a duration", "1.6ms", Some(DURATION)) = |text| match parse_seconds(text)? {
        seconds if seconds <= 3600.0 => Ok(seconds),
        _ => out_of_range("a cost of more than an hour", "write what one request takes of the server"),
    }, show |seconds| if *seconds == 0.0 { "0s".to_owned() } else { format!("{}ns", seconds * 1e9) };
    /// A number of bytes.
    #[derive(Copy)]
    Size(u64, "a size", "64 KiB", Some("^[0-9][0-9_.]* ?([kKMGT]|[KMGT]i)?B$"), unit " B") =
        |text| match SIZE.read(text)? {
            bytes if bytes < 1.0 => out_of_range("a size of nothing", "write at least `\"1 B\"`"),
            bytes if bytes > 1e18 => out_of_range("too large a size", "write at most `\"1000000 TB\"`"),
            bytes => Ok(bytes.round() as u64),
        }, show |bytes| {
            let fits = |shift: u32| *bytes >= 1 << shift && bytes.is_multiple_of(1 << shift);
            match [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)].iter().find(|(_, shift)| fits(*shift)) {
                Some((unit, shift)) => format!("{} {unit}", bytes >> shift),
                None => format!("{bytes} B"),
            }
        };
    /// Bytes per second.
    #[derive(Copy)]
    Rate(f64, "a rate", "100 Mbit/s", Some("^[0-9][0-9_.]* ?([kMG]?bit|([kMG]|[KMG]i)?B)/s$"), unit " Mbit/s") =
        |text| match BYTE_RATE.read(text)? {
            rate if (1.0..=1e15).contains(&rate) => Ok(rate),
            _ => out_of_range("not a rate of a link", "write what the link carries, such as `\"1 Gbit/s\"`"),
        }, show |rate| format!("{rate} B/s");
    /// Requests per second.
    #[derive(Copy)]
    RequestRate(f64, "a rate of requests", "500/s", Some("^[0-9][0-9_.]* ?/(s|min|h|d)$"), unit "/s") =
        |text| match REQUEST_RATE.read(text)? {
            rate if rate <= 1e9 => Ok(rate),
            _ => out_of_range("more than a billion requests a second", "write at most `\"1000000000/s\"`"),
        }, show |rate| format!("{rate}/s");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_units() {
        assert_eq!(parse_seconds("10s"), Ok(10.0));
        assert_eq!(parse_seconds("1.5 h"), Ok(5400.0));
        assert_eq!(SIZE.read("32 KiB"), Ok(32768.0));
        assert_eq!(BYTE_RATE.read("100 Mbit/s"), Ok(12.5e6));
        assert!((parse_seconds("63ns").unwrap() - 63e-9).abs() < 1e-18);
    }

    #[test]
    fn a_rate_is_per_something() {
        assert_eq!(RequestRate::parse("500/s").unwrap().0, 500.0);
        assert_eq!(RequestRate::parse("3000 /min").unwrap().0, 50.0);
        assert_eq!(RequestRate::parse("0/s").unwrap().0, 0.0);
        assert!(RequestRate::parse("500").is_err());
        assert!(RequestRate::parse("500/fortnight").is_err());
        assert!(RequestRate::parse("2000000000/s").is_err());
    }

    #[test]
    fn refuses_other_text_with_the_reason() {
        let message = |read: Result<f64, Refusal>| read.expect_err("no quantity").1.message;
        let (no_unit, no_number) =
            ("a duration needs a unit", "this is no duration: it does not begin with a number");
        assert_eq!(message(parse_seconds("10")), no_unit);
        assert_eq!(message(parse_seconds("s")), no_number);
        assert_eq!(message(parse_seconds("-1s")), no_number);
        assert_eq!(message(parse_seconds("1.2.3s")), no_number);
        assert_eq!(message(parse_seconds("1 fortnight")), "`fortnight` is no unit of a duration");
        assert_eq!(message(SIZE.read("1 Mb")), "`Mb` is no unit of a size");
    }

    #[test]
    fn shows_what_it_reads() {
        for text in ["10s", "250ms", "90s", "60s", "2h", "1s"] {
            let duration = Duration::from_secs_f64(parse_seconds(text).unwrap());
            let shown = TextField::show(&duration);
            assert_eq!(parse_seconds(&shown), parse_seconds(text), "{shown}");
        }
        assert_eq!(TextField::show(&Duration::from_secs(1)), "1s");
        assert_eq!(TextField::show(&Duration::from_secs(60)), "60s");
        assert_eq!(TextField::show(&Duration::from_nanos(1500)), "1500ns");
        assert_eq!(TextField::show(&Size(32 * 1024)), "32 KiB");
        assert_eq!(TextField::show(&Size(1 << 30)), "1 GiB");
        assert_eq!(TextField::show(&Size(1000)), "1000 B");
    }
}
