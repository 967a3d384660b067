//! Writing JSON (RFC 8259).
//!
//! Only writing is needed, of values that this program made: a small tree and its printer, keys in the order given, so
//! that the same state prints the same text. A number that JSON cannot hold (not finite) becomes `null`.

use plimsoll_core::promises::plan::DelayRow;
use std::fmt;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Count(u64),
    /// Any other number.
    Number(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Json>),
    /// An object, in this order.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// An object of these fields.
    pub fn object<K: Into<String>>(fields: impl IntoIterator<Item = (K, Json)>) -> Json {
        Json::Object(fields.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        match self {
            Json::Bool(value) => write!(f, "{value}"),
            Json::Count(value) => write!(f, "{value}"),
            Json::Number(value) if value.is_finite() => write!(f, "{value}"),
            Json::Null | Json::Number(_) => f.write_str("null"),
            Json::Text(text) => string(f, text),
            Json::List(items) => {
                block(f, depth, ['[', ']'], items.iter(), |f, item| item.write(f, depth + 1))
            }
            Json::Object(fields) => block(f, depth, ['{', '}'], fields.iter(), |f, (key, value)| {
                string(f, key)?;
                f.write_str(if f.alternate() { ": " } else { ":" })?;
                value.write(f, depth + 1)
            }),
        }
    }
}

/// `{}` writes one line, `{:#}` indents.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}

fn block<T>(
    f: &mut fmt::Formatter<'_>,
    depth: usize,
    [open, close]: [char; 2],
    items: impl ExactSizeIterator<Item = T>,
    write: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    let indented = f.alternate() && items.len() > 0;
    let new_line = |f: &mut fmt::Formatter<'_>, depth: usize| match indented {
        true => write!(f, "\n{:1$}", "", depth * 2),
        false => Ok(()),
    };
    write!(f, "{open}")?;
    for (number, item) in items.enumerate() {
        if number > 0 {
            f.write_str(",")?;
        }
        new_line(f, depth + 1)?;
        write(f, item)?;
    }
    new_line(f, depth)?;
    write!(f, "{close}")
}

fn string(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_str("\"")?;
    for character in text.chars() {
        match character {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            control if control < ' ' => write!(f, "\\u{:04x}", u32::from(control))?,
            other => write!(f, "{other}")?,
        }
    }
    f.write_str("\"")
}

/// A delay that was promised, and what the plan says of it.
pub fn delay_json(row: &DelayRow) -> Json {
    let optional = |value: Option<f64>| value.map_or(Json::Null, Json::Number);
    Json::object([
        ("site", Json::Text(row.site.clone())),
        ("class", Json::Text(row.class.clone())),
        ("delay_seconds", Json::Number(row.delay.target.as_secs_f64())),
        ("percentile", optional(row.delay.percentile)),
        ("requests_per_second", optional(row.rate)),
        ("service_seconds", optional(row.service_seconds)),
        ("least_seconds", optional(row.least_seconds)),
        ("fitting_requests_per_second", optional(row.fitting_rate)),
        ("verdict", Json::Text(row.verdict().as_str().to_owned())),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        let value = Json::object([
            ("a\"\\\n\u{1}\u{e9}", Json::List(vec![Json::Null, Json::Bool(true), Json::Count(u64::MAX)])),
            ("numbers", Json::List([0.5, -1e-9, 1e21, f64::NAN, f64::INFINITY].map(Json::Number).into())),
            ("empty", Json::List(vec![Json::List(vec![]), Json::Object(vec![])])),
        ]);
        assert_eq!(
            value.to_string(),
            "{\"a\\\"\\\\\\n\\u0001\u{e9}\":[null,true,18446744073709551615],\
             \"numbers\":[0.5,-0.000000001,1000000000000000000000,null,null],\"empty\":[[],{}]}"
        );
        let nested = Json::object([("a", Json::List(vec![Json::Count(1), Json::Object(vec![])]))]);
        assert_eq!(format!("{nested:#}"), "{\n  \"a\": [\n    1,\n    {}\n  ]\n}");
    }
}
