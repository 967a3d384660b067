//! Numbers as people read them: few digits and a unit.

/// The unit of a number, and how many digits are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    /// A plain number with this many decimals.
    Plain(usize),
    /// A part of one, in percent with this many decimals.
    Percent(usize),
    Seconds,
    Milliseconds,
    PerSecond,
    /// A size in units of 1024 bytes.
    Size,
    /// An amount of bytes in units of 1000.
    Bytes,
}

impl Unit {
    /// `number` in this unit; a dash if it is not finite.
    pub(crate) fn show(self, number: f64) -> String {
        if !number.is_finite() {
            return "-".to_owned();
        }
        match self {
            Unit::Plain(decimals) => {
                let text = format!("{number:.decimals$}");
                let whole = text.find('.').unwrap_or(text.len());
                threes(&text[..whole]) + &text[whole..]
            }
            // A small negative number must not be shown as `-0.0`.
            Unit::Percent(decimals) => {
                format!("{:.decimals$} %", number * 100.0 + 0.0).replace("-0.0 %", "0.0 %")
            }
            Unit::Seconds => time(number),
            Unit::Milliseconds => time(number / 1e3),
            Unit::PerSecond => format!("{number:.1}/s"),
            Unit::Size => size(number),
            Unit::Bytes => bytes(number),
        }
    }
}

fn digits(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let before = value.abs().log10().floor() as i32 + 1;
    format!("{value:.*}", usize::try_from(digits - before).unwrap_or(0))
}

fn threes(digits: &str) -> String {
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A count with its digits in groups of three.
pub(crate) fn grouped(count: u64) -> String {
    threes(&count.to_string())
}

/// A time, with three digits.
pub(crate) fn time(seconds: f64) -> String {
    in_its_unit(seconds, 3, " ")
}

/// A time in the form that the configuration takes.
pub(crate) fn quantity(seconds: f64) -> String {
    in_its_unit(seconds, 4, "")
}

fn in_its_unit(seconds: f64, count: i32, blank: &str) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "us"),
        s => (s * 1e9, "ns"),
    };
    format!("{}{blank}{unit}", digits(value, count))
}

/// A long time, in at most two units.
pub(crate) fn span(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 120.0 => format!("{} s", (seconds * 10.0).round() / 10.0),
        _ if whole < 7200 => format!("{} min {} s", whole / 60, whole % 60),
        _ if whole < 172_800 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// A time in a promise, rounded up so that it can be kept.
pub(crate) fn promised_time(seconds: f64) -> String {
    let up = |number: f64| (number - 1e-6).ceil();
    match seconds {
        s if s.is_infinite() => "never".to_owned(),
        s if s < 1.0 => format!("{} ms", up(s * 1e4) / 10.0),
        s => format!("{} s", up(s * 1e3) / 1e3),
    }
}

/// Bytes per second, in the form that the configuration takes.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    let bits = bytes_per_second * 8.0;
    match bits {
        b if b >= 1e9 => format!("{} Gbit/s", digits(b / 1e9, 4)),
        b if b >= 1e6 => format!("{} Mbit/s", digits(b / 1e6, 4)),
        b => format!("{} kbit/s", digits(b / 1e3, 4)),
    }
}

pub(crate) fn size(bytes: f64) -> String {
    let short = |value: f64| {
        let text = digits(value, 3);
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
    };
    match bytes {
        b if b >= 1_048_576.0 => format!("{} MiB", short(b / 1_048_576.0)),
        b if b >= 1024.0 => format!("{} KiB", short(b / 1024.0)),
        b => format!("{} B", b.round()),
    }
}

fn bytes(count: f64) -> String {
    match count {
        _ if count < 1e6 => format!("{:.0} kB", count / 1e3),
        _ if count < 1e9 => format!("{:.1} MB", count / 1e6),
        _ => format!("{:.2} GB", count / 1e9),
    }
}

/// The last part of a path. A comparator in its product's words (`nginx: limit_req rate=200r/s`) is no path and stays as it is.
pub(crate) fn short(name: &str) -> String {
    if name.contains(": ") {
        return name.to_owned();
    }
    let file = std::path::Path::new(name).file_name();
    file.map_or(name.to_owned(), |file| file.to_string_lossy().into_owned())
}

/// Text from a log with its control characters removed, because a terminal would obey them.
pub(crate) fn printable(text: &str) -> String {
    const LONGEST: usize = 100;
    let mut shown: String =
        text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(LONGEST).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_front_is_no_path() {
        let fronts = ["sites/shop.toml", "concurrency:64", "nginx: limit_req rate=200r/s burst=50"];
        assert_eq!(
            fronts.map(short),
            ["shop.toml", "concurrency:64", "nginx: limit_req rate=200r/s burst=50"]
        );
    }

    #[test]
    fn numbers_and_times_read_well() {
        assert_eq!(
            (grouped(0), grouped(999), grouped(1000), grouped(3_461_610)),
            ("0".into(), "999".into(), "1,000".into(), "3,461,610".into())
        );
        let spans = [30.0, 119.94, 3_725.0, 46_320.0, 5_059_950.0].map(span);
        assert_eq!(spans, ["30 s", "119.9 s", "62 min 5 s", "12 h 52 min", "58 d 13 h"]);
        assert_eq!([-123.0, -1234.5].map(|number| Unit::Plain(1).show(number)), ["-123.0", "-1,234.5"]);
    }

    #[test]
    fn numbers_have_few_digits_and_a_unit() {
        assert_eq!([2.0, 0.0123, 7.5e-4, 1.22e-8].map(time), ["2.00 s", "12.3 ms", "750 us", "12.2 ns"]);
        assert_eq!([7.5e-4, 1.2207e-8, 0.0].map(quantity), ["750.0us", "12.21ns", "0ns"]);
        assert_eq!([10.75e6, 3e8, 12.0].map(rate), ["86.00 Mbit/s", "2.400 Gbit/s", "0.09600 kbit/s"]);
        assert_eq!(
            [100.0, 1024.0, 1536.0, 262_144.0, 3e6].map(size),
            ["100 B", "1 KiB", "1.5 KiB", "256 KiB", "2.86 MiB"]
        );
        let percent = [-0.0172, -1e-9, f64::INFINITY].map(|share| Unit::Percent(1).show(share));
        assert_eq!(percent, ["-1.7 %", "0.0 %", "-"]);
    }

    #[test]
    fn the_content_of_a_log_does_not_reach_the_terminal() {
        assert_eq!(printable("/a\u{1b}[31m\n"), "/a\u{fffd}[31m\u{fffd}");
        assert_eq!(printable(&"x".repeat(101)), format!("{}...", "x".repeat(100)));
    }
}
