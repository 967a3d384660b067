//! The text of a comparator: `name`, `name:value`, then `key=value` behind commas.

use super::comparator::Comparator;
use super::limit::Limits;
use plimsoll_core::time::Duration;

/// The parts of a comparator's text. Each part is taken once; a part that is left at the end is an error.
pub(super) struct Words<'a> {
    pub(super) name: &'a str,
    value: Option<&'a str>,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, String> {
        let mut parts = text.trim().split(',').map(str::trim);
        let first = parts.next().unwrap_or_default();
        let (name, mut value) = match first.split_once(':') {
            Some((name, value)) => (name.trim(), Some(value.trim())),
            None => (first, None),
        };
        let mut options = Vec::new();
        // `cac:period=1s` means the same as `cac,period=1s`.
        if let Some(option) = value.and_then(|value| value.split_once('=')) {
            options.push(option);
            value = None;
        }
        for part in parts {
            match part.split_once('=') {
                Some((key, value)) => options.push((key.trim(), value.trim())),
                None => return Err(format!("{text}: \"{part}\" is not key=value{}", written(name))),
            }
        }
        Ok(Words { name, value, options })
    }

    /// The value behind the colon, if there is one.
    pub(super) fn value<T>(&mut self, read: Read<T>) -> Result<Option<T>, String> {
        let name = self.name;
        self.value.take().map(|text| (read.of)(text).ok_or_else(|| read.error(name, name, text))).transpose()
    }

    /// The value behind the colon, which is required.
    pub(super) fn needed<T>(&mut self, read: Read<T>) -> Result<T, String> {
        let expected = read.expected;
        let name = self.name;
        self.value(read)?.ok_or_else(|| format!("{name} needs {expected}{}", written(name)))
    }

    /// The value of an option, or its default.
    pub(super) fn option<T>(&mut self, key: &str, read: Read<T>, default: T) -> Result<T, String> {
        Ok(self.given(key, read)?.unwrap_or(default))
    }

    /// The value of an option, if it is given.
    pub(super) fn given<T>(&mut self, key: &str, read: Read<T>) -> Result<Option<T>, String> {
        let Some(place) = self.options.iter().position(|(known, _)| *known == key) else { return Ok(None) };
        let (_, text) = self.options.remove(place);
        (read.of)(text).map(Some).ok_or_else(|| read.error(self.name, key, text))
    }

    /// The bounds of an adaptive limit; the defaults are Netflix's.
    pub(super) fn limits(&mut self) -> Result<Limits, String> {
        let initial = self.option("initial", AT_LEAST_ONE, 20)?;
        let least = self.option("least", AT_LEAST_ONE, 20)?;
        let most = self.option("most", AT_LEAST_ONE, 200)?;
        if least <= initial && initial <= most {
            return Ok(Limits { initial, least, most });
        }
        let name = self.name;
        Err(format!(
            "{name}: least={least}, initial={initial}, most={most} are not in this order{}",
            written(name)
        ))
    }

    /// Fails if a part was not taken.
    pub(super) fn done(self) -> Result<(), String> {
        let name = self.name;
        if let Some(value) = self.value {
            return Err(format!("{name} takes no value, and has \"{value}\"{}", written(name)));
        }
        match self.options.first() {
            Some((key, _)) => {
                Err(format!("{name} has no option \"{key}\", or has it twice{}", written(name)))
            }
            None => Ok(()),
        }
    }
}

/// The text `; it is written ...` for the comparator with this name.
fn written(name: &str) -> String {
    let form = Comparator::FORMS.iter().map(|(form, _)| *form).find(|form| name_of(form) == name);
    form.map_or_else(String::new, |form| format!("; it is written {form}"))
}

/// The first word of a form.
pub(super) fn name_of(form: &str) -> &str {
    form.split([':', ',']).next().unwrap_or(form)
}

/// How a value is read, and what is expected of it.
#[derive(Clone, Copy)]
pub(super) struct Read<T> {
    pub(super) of: fn(&str) -> Option<T>,
    pub(super) expected: &'static str,
}

impl<T> Read<T> {
    fn error(&self, name: &str, key: &str, text: &str) -> String {
        format!("{key}: \"{text}\" is not {}{}", self.expected, written(name))
    }
}

/// 0, 1, 2, ...
pub(super) const NUMBER: Read<u32> = Read { of: |text| text.parse().ok(), expected: "a whole number" };

/// 1, 2, ...
pub(super) const AT_LEAST_ONE: Read<u32> =
    Read { of: |text| text.parse().ok().filter(|n| *n > 0), expected: "a whole number above 0" };

/// A rate per second.
pub(super) const RATE: Read<f64> = Read {
    of: |text| text.parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0),
    expected: "a rate above 0",
};

/// A length of time.
pub(super) const DURATION: Read<Duration> = Read { of: duration, expected: "a time such as 500ms or 2s" };

/// A length of time that is not zero.
pub(super) const POSITIVE: Read<Duration> = Read {
    of: |text| duration(text).filter(|d| !d.is_zero()),
    expected: "a time above 0 such as 500ms or 2s",
};

const UNITS: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];

pub(super) fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = text.split_at(digits);
    let (_, nanoseconds) = UNITS.iter().find(|(name, _)| *name == unit.trim())?;
    let exact = number.parse::<u64>().ok().and_then(|n| n.checked_mul(*nanoseconds));
    let rounded = || number.parse::<f64>().ok().map(|n| (n * *nanoseconds as f64).round() as u64);
    exact.or_else(rounded).map(Duration::from_nanos)
}
