//! Which field of a log's lines holds the time that a request took.
//!
//! The Common and Combined formats have no such field; servers are configured to append it: Apache's `%D` and `%T`, nginx's
//! `$request_time` and `$upstream_response_time`, alone or as `rt=0.005 urt="0.004"`. So the first [`PROBE`] lines are
//! examined, and the fields behind the formats' own are judged by the first of these rules that applies:
//!
//! 1. A named number: `urt`, `upstream_response_time` and the like are the server's own time; `rt`, `request_time` and the
//!    like are a bound.
//! 2. Numbers with a decimal point are seconds. If there are two, the smaller one is the server's own time. If there is one, it
//!    is the server's own time if some lines have `-`, for requests that no server was asked for; otherwise it is a bound.
//! 3. One whole number that is large, with a median of [`LARGE`] or more, is `%D`: a bound in microseconds. So is one that is
//!    hardly ever small ([`is_never_small`]), as a server with service times below a millisecond writes it. Two whole numbers
//!    may be byte counts (Apache's `combinedio`), a small one may be `%T` or anything, and one that only rises is a counter:
//!    none of these is taken.
//!
//! A bound is the time until the last byte was sent, so it includes waiting and the client's own slowness. A user who knows
//! better names the field and its unit ([`LogTimes::Field`]).

use super::FoundTimes;
use crate::workload::{FieldPlace, LogTimes, TimeField, TimeUnit};
use plimsoll_core::time::Duration;
use std::collections::BTreeSet;

/// Lines that are examined.
pub(super) const PROBE: usize = 200;
/// No request takes this many whole seconds, so the unit is a smaller one.
const LARGE: f64 = 1_000.0;
/// Hardly any answer takes fewer microseconds than this; in seconds or milliseconds, a missing page, a redirect or a small file
/// does.
const QUICKEST: f64 = 20.0;
/// In logs of real servers, half of the requests take longer than this many microseconds.
const USUAL: f64 = 50.0;
/// Fewer lines than this do not show that a number is never small.
const FEWEST: usize = 20;
/// Fewer numbers than this may rise by chance.
const FEWEST_RISING: usize = 5;
/// A time longer than a day is not a service time, so the unit is a smaller one.
const LONGEST: f64 = 86_400.0;
/// The part of the lines that must have a field; less than 1, so that an odd line decides nothing.
const NEARLY_ALL: f64 = 0.95;

const OWN: [&str; 7] =
    ["urt", "upstream_response_time", "upstream_time", "ut", "service_time", "us", "backend_time"];
/// Names in common use for the time until a request's last byte was sent.
const BOUNDS: [&str; 9] =
    ["rt", "request_time", "duration", "response_time", "time_taken", "d", "t", "rtime", "took"];

/// A field behind those of the Common or Combined format.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TailField<'a> {
    name: Option<&'a str>,
    value: &'a str,
}

/// The fields behind the bytes and, in the Combined format, behind referer and agent: words, and quoted texts. A list that
/// nginx separates by `,` and `:` is one field.
pub(super) fn fields(mut rest: &str) -> impl Iterator<Item = TailField<'_>> {
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        if rest.is_empty() {
            return None;
        }
        let begins_value = rest.find(|letter: char| letter == '=' || letter == '"' || letter.is_whitespace());
        let name = match begins_value {
            Some(at) if at > 0 && rest[at..].starts_with('=') => Some(&rest[..at]),
            _ => None,
        };
        rest = &rest[name.map_or(0, |name| name.len() + 1)..];
        let (value, after) = match rest.strip_prefix('"') {
            Some(quoted) => skip_quoted(quoted),
            None => rest.split_at(end_of_word(rest)),
        };
        rest = after;
        Some(TailField { name, value })
    })
}

/// The text up to the quote that ends it, and what follows.
pub(super) fn skip_quoted(text: &str) -> (&str, &str) {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return (&text[..at], &text[at + 1..]),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    (text, "")
}

/// The end of a word that may be a list such as `0.020, 0.005 : 0.100`.
fn end_of_word(text: &str) -> usize {
    let mut end = 0;
    loop {
        end += text[end..].find(char::is_whitespace).unwrap_or(text.len() - end);
        let next = text[end..].trim_start();
        let goes_on = text[..end].ends_with([',', ':']) || next.starts_with(": ");
        if !goes_on || next.is_empty() {
            return end;
        }
        end = text.len() - next.len();
    }
}

/// A number of seconds, or nginx's list with one for each server that was tried, which are summed. A `-` stands for a server
/// that did no work.
pub(super) fn seconds(text: &str) -> Option<f64> {
    let part = |part: &str| match part.trim() {
        "-" => Some(0.0),
        number => number.parse().ok().filter(|number: &f64| *number >= 0.0),
    };
    text.split([',', ':']).map(part).sum()
}

/// A number of this unit as a time.
pub(super) fn duration(number: f64, unit: TimeUnit) -> Option<Duration> {
    let seconds = number * unit.seconds();
    (0.0..=LONGEST).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

/// The unit of a single number if nothing states it: microseconds if the number is whole and large, else seconds.
pub(super) fn unit_of(number: f64) -> TimeUnit {
    if number >= LARGE && number.fract() == 0.0 { TimeUnit::Microseconds } else { TimeUnit::Seconds }
}

/// The time in a line's tail.
pub(super) fn time_in(tail: &str, found: &FoundTimes) -> Option<Duration> {
    let mut all = fields(tail);
    let field = match &found.place {
        FieldPlace::Number(number) => all.nth(number - 1),
        FieldPlace::Name(name) => all.find(|field| field.name == Some(name)),
    }?;
    duration(seconds(field.value)?, found.unit)
}

/// The field that holds the time in lines with these tails.
pub(super) fn find(tails: &[&str], wanted: &LogTimes) -> Option<FoundTimes> {
    let lines: Vec<Vec<TailField<'_>>> = tails.iter().map(|tail| fields(tail).collect()).collect();
    let columns = Columns { lines: &lines };
    let found = match wanted {
        LogTimes::Ignored => return None,
        LogTimes::Field(field) => return columns.named(field),
        LogTimes::Own | LogTimes::Bounds => {
            columns.by_name().or_else(|| columns.by_point()).or_else(|| columns.by_size())
        }
    }?;
    (found.own || *wanted == LogTimes::Bounds).then_some(found)
}

/// The fields behind the formats' own in which these lines have a number: their names, or their places if they have none.
pub(super) fn numbered(tails: &[&str]) -> BTreeSet<String> {
    let place = |(place, field): (usize, TailField<'_>)| {
        let name = field.name.map_or_else(|| (place + 1).to_string(), str::to_owned);
        seconds(field.value).map(|_| name)
    };
    tails.iter().flat_map(|tail| fields(tail).enumerate().filter_map(place)).collect()
}

/// The fields of the lines, to be read column by column.
struct Columns<'a> {
    lines: &'a [Vec<TailField<'a>>],
}

impl Columns<'_> {
    fn width(&self) -> usize {
        self.lines.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The numbers of a column, with `None` for `-`; nothing unless nearly all lines have one.
    fn numbers(&self, place: usize) -> Option<Vec<(&str, Option<f64>)>> {
        let values =
            self.lines.iter().filter_map(|line| line.get(place)).filter(|field| field.name.is_none());
        let numbers: Vec<(&str, Option<f64>)> = values
            .filter_map(|field| match field.value {
                "-" => Some(("-", None)),
                value => Some((value, Some(seconds(value)?))),
            })
            .collect();
        let has_numbers = numbers.iter().any(|(_, number)| number.is_some());
        (has_numbers && numbers.len() as f64 >= NEARLY_ALL * self.lines.len() as f64).then_some(numbers)
    }

    /// The field that the user names.
    fn named(&self, field: &TimeField) -> Option<FoundTimes> {
        let value = |line: &Vec<TailField<'_>>| {
            let field = match &field.place {
                FieldPlace::Number(number) => line.get(number.checked_sub(1)?),
                FieldPlace::Name(name) => line.iter().find(|field| field.name == Some(name)),
            }?;
            seconds(field.value)
        };
        let values: Vec<f64> = self.lines.iter().filter_map(value).collect();
        let unit = field.unit.unwrap_or_else(|| unit_of_all(&values));
        (!values.is_empty()).then(|| FoundTimes { place: field.place.clone(), unit, own: true })
    }

    fn by_name(&self) -> Option<FoundTimes> {
        let known = |names: &[&str], own| {
            let is_time = |name: &str| names.contains(&name.to_ascii_lowercase().as_str());
            let fields = || self.lines.iter().flatten();
            let name = fields().filter_map(|field| field.name).find(|name| is_time(name))?;
            let values = fields().filter(|field| field.name == Some(name));
            let values: Vec<f64> = values.filter_map(|field| seconds(field.value)).collect();
            let unit = unit_of_all(&values);
            (!values.is_empty()).then(|| FoundTimes { place: FieldPlace::Name(name.to_owned()), unit, own })
        };
        known(&OWN, true).or_else(|| known(&BOUNDS, false))
    }

    fn by_point(&self) -> Option<FoundTimes> {
        let with_point = |place: usize| {
            let numbers = self.numbers(place)?;
            let has_point = |(text, number): &(&str, Option<f64>)| number.is_none() || text.contains('.');
            numbers.iter().all(has_point).then_some((place, numbers))
        };
        let mut columns = (0..self.width()).filter_map(with_point);
        let found = |place: usize, own| FoundTimes {
            place: FieldPlace::Number(place + 1),
            unit: TimeUnit::Seconds,
            own,
        };
        let (first, one) = columns.next()?;
        let Some((second, other)) = columns.next() else {
            let asked_none = one.iter().any(|(_, number)| number.is_none());
            return Some(found(first, asked_none));
        };
        let least = |one: &[(&str, Option<f64>)], other: &[(&str, Option<f64>)]| {
            // Both times are rounded to a millisecond.
            let is_less = |a: Option<f64>, b: Option<f64>| a.unwrap_or(0.0) <= b.unwrap_or(0.0) + 0.001;
            let less = one.iter().zip(other).filter(|(a, b)| is_less(a.1, b.1)).count();
            less as f64 >= NEARLY_ALL * one.len() as f64
        };
        // If both orders fit, nginx's own order counts: the request's time, then the server's.
        match (least(&other, &one), least(&one, &other)) {
            (true, _) => Some(found(second, true)),
            (_, true) => Some(found(first, true)),
            _ => None,
        }
    }

    fn by_size(&self) -> Option<FoundTimes> {
        let mut columns = (0..self.width()).filter_map(|place| Some((place, self.numbers(place)?)));
        let ((place, numbers), None) = (columns.next()?, columns.next()) else { return None };
        let values: Vec<f64> = numbers.iter().filter_map(|(_, number)| *number).collect();
        let whole = numbers.iter().all(|(text, _)| text.bytes().all(|byte| byte.is_ascii_digit()));
        let place = FieldPlace::Number(place + 1);
        let unit = unit_of_all(&values);
        let is_time = whole && unit == TimeUnit::Microseconds && !is_counter(&values);
        is_time.then_some(FoundTimes { place, unit, own: false })
    }
}

/// Whether the numbers rise from line to line, as Traefik's request counter does. Requests may overtake others by less than a
/// quarter of the lines.
fn is_counter(values: &[f64]) -> bool {
    let apart = (values.len() / 4).max(1);
    values.len() >= FEWEST_RISING && values.iter().zip(&values[apart..]).all(|(before, after)| before < after)
}

/// The unit of a column if nothing states it.
pub(super) fn unit_of_all(values: &[f64]) -> TimeUnit {
    let whole = values.iter().all(|value| value.fract() == 0.0);
    if whole && is_never_small(values) { TimeUnit::Microseconds } else { unit_of(median(values)) }
}

/// Whether whole numbers look like `%D` of a server that answers in less than a millisecond: nearly all are above [`QUICKEST`],
/// and they vary as times do, unlike a port or a status.
fn is_never_small(values: &[f64]) -> bool {
    let quick = values.iter().filter(|value| **value < QUICKEST).count();
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.dedup();
    values.len() >= FEWEST
        && quick as f64 <= (1.0 - NEARLY_ALL) * values.len() as f64
        && median(values) >= USUAL
        && 4 * sorted.len() >= values.len()
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(tails: &[&str]) -> Option<(FieldPlace, TimeUnit, bool)> {
        find(tails, &LogTimes::Bounds).map(|found| (found.place, found.unit, found.own))
    }

    fn number(number: usize) -> FieldPlace {
        FieldPlace::Number(number)
    }

    #[test]
    fn fields_are_words_texts_and_lists() {
        let of = |text| -> Vec<(Option<&str>, &str)> {
            fields(text).map(|field| (field.name, field.value)).collect()
        };
        assert_eq!(
            of(r#" "a \" b" 0.005 - rt=0.1 urt="0.020, 0.005" x="#),
            [
                (None, r#"a \" b"#),
                (None, "0.005"),
                (None, "-"),
                (Some("rt"), "0.1"),
                (Some("urt"), "0.020, 0.005"),
                (Some("x"), "")
            ]
        );
        assert_eq!(of("0.020, 0.005 : 0.100 7"), [(None, "0.020, 0.005 : 0.100"), (None, "7")]);
        assert_eq!(of("0.020,"), [(None, "0.020,")]);
        assert_eq!(of(""), []);
    }

    #[test]
    fn the_rules_in_their_order() {
        use TimeUnit::{Microseconds, Seconds};
        // Apache's %D, and nginx's $request_time behind $http_x_forwarded_for.
        assert_eq!(found(&["12345", "900", "40000"]), Some((number(1), Microseconds, false)));
        assert_eq!(found(&["\"-\" 0.005", "\"10.0.0.1\" 0.250"]), Some((number(2), Seconds, false)));
        // nginx's two times in either order, and the server's time alone.
        assert_eq!(found(&["0.105 0.100", "0.004 -", "0.2 0.2"]), Some((number(2), Seconds, true)));
        assert_eq!(found(&["0.100 0.105", "0.003 0.004"]), Some((number(1), Seconds, true)));
        assert_eq!(found(&["0.100", "-"]), Some((number(1), Seconds, true)));
        // Names.
        let named = |name: &str| FieldPlace::Name(name.to_owned());
        let usual = r#"rt=0.105 uct="0.000" uht="0.100" urt="0.100""#;
        assert_eq!(found(&[usual]), Some((named("urt"), Seconds, true)));
        assert_eq!(found(&["rt=0.105"]), Some((named("rt"), Seconds, false)));
        assert_eq!(found(&["D=12345"]), Some((named("D"), Microseconds, false)));
    }

    /// A column of 200 lines.
    fn column(value: impl Fn(usize) -> usize) -> Vec<String> {
        (0..200).map(|line| value(line).to_string()).collect()
    }

    fn found_in(column: &[String]) -> Option<(FieldPlace, TimeUnit, bool)> {
        found(&column.iter().map(String::as_str).collect::<Vec<_>>())
    }

    #[test]
    fn times_of_a_server_below_a_millisecond_are_microseconds() {
        // Apache's %D of small files: 80 us and more, a few requests longer than a millisecond.
        let quick = |line: usize| 80 + line * 37 % 400 + if line.is_multiple_of(50) { 5000 } else { 0 };
        let expected = Some((number(1), TimeUnit::Microseconds, false));
        assert_eq!(found_in(&column(quick)), expected);
        let named: Vec<String> = column(quick).iter().map(|text| format!("D={text}")).collect();
        let named_place = FieldPlace::Name("D".to_owned());
        assert_eq!(found_in(&named), Some((named_place, TimeUnit::Microseconds, false)));
        let odd = |line: usize| if line.is_multiple_of(40) { 5 } else { quick(line) };
        assert_eq!(found_in(&column(odd)), expected, "a few odd lines decide nothing");
        // The twins: milliseconds, of which small files and missing pages take hardly any; seconds; a port; a status.
        assert_eq!(
            found_in(&column(|line| if line.is_multiple_of(10) { line % 3 } else { quick(line) })),
            None
        );
        assert_eq!(found_in(&column(|line| line % 60)), None);
        assert_eq!(found_in(&column(|_| 443)), None);
        assert_eq!(found_in(&column(|line| [200, 304, 404][line % 3])), None);
        assert_eq!(found_in(&column(quick)[..10]), None, "too few lines");
        // A counter of requests, some of which end before earlier ones.
        assert_eq!(found_in(&column(|line| 51_234 + line)), None);
        assert_eq!(found_in(&column(|line| 51_234 + line + 9 * (line % 3))), None);
        assert_eq!(found_in(&column(|line| 51_234 + line * 37 % 400)), expected);
    }

    #[test]
    fn what_may_be_anything_is_not_taken() {
        // combinedio's bytes, %T, a text, times that cross, and nothing at all.
        for tails in [
            &["512 20480", "480 5000"][..],
            &["0", "1", "0"],
            &["\"10.0.0.1\"", "\"-\""],
            &["0.1 0.2", "0.2 0.1"],
            &["", ""],
            &["-", "-"],
            &[],
        ] {
            assert_eq!(found(tails), None, "{tails:?}");
        }
        assert_eq!(find(&["12345"], &LogTimes::Own), None, "a bound is taken only where one is wanted");
        assert_eq!(find(&["0.1 0.1"], &LogTimes::Ignored), None);
    }

    #[test]
    fn a_user_knows_better() {
        let field = |place, unit| LogTimes::Field(TimeField { place, unit });
        let of = |tails: &[&str], field| find(tails, &field).and_then(|found| time_in(tails[0], &found));
        let second = field(number(2), Some(TimeUnit::Milliseconds));
        assert_eq!(of(&["7 250", "8 9"], second), Some(Duration::from_millis(250)));
        assert_eq!(of(&["3 250", "8 9"], field(number(1), None)), Some(Duration::from_secs(3)));
        assert_eq!(of(&["8000"], field(number(1), None)), Some(Duration::from_millis(8)));
        assert_eq!(
            of(&["x=0.5"], field(FieldPlace::Name("x".into()), None)),
            Some(Duration::from_millis(500))
        );
        assert_eq!(of(&["x=0.5"], field(number(3), None)), None);
        assert_eq!(of(&["x=0.5"], field(number(0), None)), None);
        assert_eq!(of(&["1e9"], field(number(1), Some(TimeUnit::Seconds))), None, "longer than a day");
    }
}
