//! The figures of a command: one list for JSON, for tables, and for the tiles of a page.
//!
//! A figure has a key for programs, a label for people, and a value with its unit. [`Facts`] serialise as an object of the
//! keys; [`compare`] and [`list`] make tables of the labels. A figure without a label appears only in JSON, one without a key
//! only in text. To add a figure, add one line where its list is made.

use super::units::Unit;
use plimsoll_core::telemetry::Histogram;
use plimsoll_report::{Cell, Column, Fact, Table, Verdict};
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// Figures in the order in which they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts(pub(crate) Vec<Figure>);

#[derive(Clone, Debug)]
pub(crate) struct Figure {
    key: Cow<'static, str>,
    label: Cow<'static, str>,
    value: Value,
    is_rare: bool,
    is_trouble: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// `null` in JSON; a dash in text.
    Absent,
    Flag(bool),
    Count(u64),
    /// A count that text shows as a percentage of the second number, with two decimals.
    Part(u64, u64),
    Number(f64, Unit),
    Text(String),
    /// A value for which text shows the given words.
    Said(Box<Value>, String),
    /// Values that only JSON shows.
    List(Vec<Value>),
    /// Figures below this one. Their labels are appended to the label of this one.
    Map(Facts),
}

/// A figure that is always shown.
pub(crate) fn figure(
    key: impl Into<Cow<'static, str>>,
    label: impl Into<Cow<'static, str>>,
    value: impl Into<Value>,
) -> Figure {
    Figure { key: key.into(), label: label.into(), value: value.into(), is_rare: false, is_trouble: false }
}

/// A figure that only JSON shows.
pub(crate) fn hidden(key: &'static str, value: impl Into<Value>) -> Figure {
    figure(key, "", value)
}

/// Mean, percentiles and maximum of response times. Text shows the median and the 99th percentile.
pub(crate) fn response_times(key: &'static str, label: &'static str, times: &Histogram) -> Figure {
    let ms = |time: std::time::Duration| match times.count() {
        0 => Value::Said(Box::new(Value::Number(0.0, Unit::Milliseconds)), "nobody".to_owned()),
        _ => Value::Number((time.as_secs_f64() * 1e6).round() / 1e3, Unit::Milliseconds),
    };
    let all = [
        hidden("mean", ms(times.mean())),
        figure("p50", " p50", ms(times.quantile(0.5))),
        hidden("p95", ms(times.quantile(0.95))),
        figure("p99", " p99", ms(times.quantile(0.99))),
        hidden("max", ms(times.max())),
    ];
    figure(key, label, Facts(all.into()))
}

impl Figure {
    /// Leaves the figure out of text while it is zero.
    pub(crate) fn rare(self) -> Figure {
        Figure { is_rare: true, ..self }
    }

    /// Marks the figure as bad if it is above zero.
    pub(crate) fn trouble(self) -> Figure {
        Figure { is_trouble: true, ..self }
    }

    /// Such as `busiest second 9.0/s`.
    pub(crate) fn per_second(&self) -> String {
        format!("{} {}/s", self.label, self.value.text())
    }

    fn verdict(&self) -> Verdict {
        match (self.is_trouble, self.value.is_zero()) {
            (false, _) => Verdict::Neutral,
            (true, true) => Verdict::Good,
            (true, false) => Verdict::Bad,
        }
    }
}

impl Value {
    fn is_zero(&self) -> bool {
        match self {
            Value::Absent | Value::Count(0) | Value::Part(0, _) => true,
            Value::Number(number, _) => *number == 0.0,
            Value::Said(value, _) => value.is_zero(),
            _ => false,
        }
    }

    fn text(&self) -> String {
        match self {
            Value::Absent | Value::List(_) | Value::Map(_) => "-".to_owned(),
            Value::Flag(flag) => flag.to_string(),
            Value::Count(count) => Unit::Plain(0).show(*count as f64),
            Value::Part(part, whole) => Unit::Percent(2).show(*part as f64 / (*whole).max(1) as f64),
            Value::Number(number, unit) => unit.show(*number),
            Value::Text(text) | Value::Said(_, text) => text.clone(),
        }
    }

    /// Whether the value is text, which is aligned to the left.
    fn is_word(&self) -> bool {
        match self {
            Value::Text(_) => true,
            Value::Said(value, _) => value.is_word(),
            _ => false,
        }
    }

    /// The same value, for which text shows these words.
    pub(crate) fn said(self, text: impl Into<String>) -> Value {
        Value::Said(Box::new(self), text.into())
    }
}

macro_rules! values {
    ($($from:ty: $own:ident => $value:expr;)+) => {
        $(impl From<$from> for Value {
            fn from($own: $from) -> Value {
                $value
            }
        })+
    };
}

values! {
    bool: flag => Value::Flag(flag);
    u64: count => Value::Count(count);
    u32: count => Value::Count(count.into());
    usize: count => Value::Count(count as u64);
    f64: number => Value::Number(number, Unit::Plain(3));
    &str: text => Value::Text(text.to_owned());
    String: text => Value::Text(text);
    Facts: facts => Value::Map(facts);
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        Value::List(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Absent, Into::into)
    }
}

/// A number rounded to four decimals, because further ones are noise.
pub(crate) fn rounded(number: f64, unit: Unit) -> Value {
    Value::Number((number * 1e4).round() / 1e4, unit)
}

impl Serialize for Facts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let keyed = self.0.iter().filter(|figure| !figure.key.is_empty());
        serializer.collect_map(keyed.map(|figure| (&figure.key, &figure.value)))
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Absent => serializer.serialize_none(),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Count(count) | Value::Part(count, _) => serializer.serialize_u64(*count),
            Value::Number(number, _) => serializer.serialize_f64(*number),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Said(value, _) => value.serialize(serializer),
            Value::List(values) => serializer.collect_seq(values),
            Value::Map(facts) => facts.serialize(serializer),
        }
    }
}

struct Shown<'a> {
    label: String,
    figure: &'a Figure,
}

impl Facts {
    /// The figures that have a label; those of a map have the map's label and then their own.
    fn shown(&self) -> Vec<Shown<'_>> {
        let mut all = Vec::new();
        for figure in &self.0 {
            match &figure.value {
                Value::Map(inner) => all.extend(inner.shown().into_iter().map(|shown| Shown {
                    label: format!("{}{}", figure.label, shown.label),
                    figure: shown.figure,
                })),
                _ if figure.label.is_empty() => {}
                _ => all.push(Shown { label: figure.label.to_string(), figure }),
            }
        }
        all
    }

    /// The figures as tiles of a page. If a label begins with a blank, the figure goes into the remark of the tile before.
    pub(crate) fn tiles(&self) -> Vec<Fact> {
        let mut all: Vec<Fact> = Vec::new();
        for Shown { label, figure } in self.shown() {
            let text = figure.value.text();
            match all.last_mut() {
                _ if figure.is_rare && figure.value.is_zero() => {}
                Some(last) if label.starts_with(' ') => {
                    let before = if last.note.is_empty() { "" } else { "; " };
                    last.note += &format!("{before}{}: {text}", label.trim());
                }
                _ => all.push(Fact::new(label, text).verdict(figure.verdict())),
            }
        }
        all
    }
}

/// A table with a row for each figure that any of these lists has, and a column for each list.
pub(crate) fn compare(title: &str, all: &[(String, &Facts)]) -> Table {
    let columns = all.iter().map(|(name, _)| Column::number(name.clone()));
    let mut table = Table::new(title, std::iter::once(Column::text("")).chain(columns));
    for (label, figures) in aligned(all.iter().map(|(_, facts)| facts.shown()).collect()) {
        if is_worth_showing(&figures) {
            let cells = figures.iter().map(|figure| figure.map(|figure| figure.value.text()).into());
            table = table.row(std::iter::once(Cell::from(label)).chain(cells));
        }
    }
    table
}

/// A table with a row for each of these lists, and a column for each figure that any list has. The first columns, `names`, hold
/// each row's own cells. Details, whose labels begin with a blank, are left out.
pub(crate) fn list(title: &str, names: &[&str], all: &[(Vec<Cell>, &Facts)]) -> Table {
    let columns = aligned(all.iter().map(|(_, facts)| facts.shown()).collect());
    let columns: Vec<_> = columns
        .into_iter()
        .filter(|(label, figures)| !label.starts_with(' ') && is_worth_showing(figures))
        .collect();
    let headings = columns.iter().map(|(label, figures)| {
        match figures.iter().flatten().any(|figure| figure.value.is_word()) {
            true => Column::text(label.clone()),
            false => Column::number(label.clone()),
        }
    });
    let mut table = Table::new(title, names.iter().map(|name| Column::text(*name)).chain(headings));
    for (row, (names, _)) in all.iter().enumerate() {
        let cells = columns.iter().map(|(_, figures)| figures[row].map(|figure| figure.value.text()).into());
        table = table.row(names.iter().cloned().chain(cells));
    }
    table
}

/// Whether any of these figures is neither missing nor a rare figure that is zero.
fn is_worth_showing(figures: &[Option<&Figure>]) -> bool {
    figures.iter().flatten().any(|figure| !(figure.is_rare && figure.value.is_zero()))
}

/// Merges lists label by label into one order that agrees with the order of each; if a list lacks a label, it has `None` there.
fn aligned<'a>(lists: Vec<Vec<Shown<'a>>>) -> Vec<(String, Vec<Option<&'a Figure>>)> {
    let mut rows: Vec<(String, Vec<Option<&Figure>>)> = Vec::new();
    let width = lists.len();
    for (place, list) in lists.into_iter().enumerate() {
        let mut next = 0;
        for Shown { label, figure } in list {
            let found = rows[next..].iter().position(|(known, _)| *known == label);
            let row = found.map_or(next, |ahead| next + ahead);
            if found.is_none() {
                rows.insert(row, (label, vec![None; width]));
            }
            rows[row].1[place] = Some(figure);
            next = row + 1;
        }
    }
    rows
}
