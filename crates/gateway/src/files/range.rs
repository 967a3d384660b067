//! Byte ranges (RFC 9110, 14).
//!
//! One range is answered with 206. Several are answered with the whole (14.2): no browser needs them, and many overlapping
//! ranges are an old attack. A field that cannot be read is answered with the whole, too.

use std::ops::Range;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selection {
    Whole,
    /// A range that is not empty and lies within the size.
    Part(Range<u64>),
    Unsatisfiable,
}

/// The bytes that a `range` field selects, out of `size` bytes.
pub(super) fn select(field: &str, size: u64) -> Selection {
    parse(field, size).unwrap_or(Selection::Whole)
}

fn parse(field: &str, size: u64) -> Option<Selection> {
    let (unit, ranges) = field.split_once('=')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = ranges.trim().split_once('-')?;
    let range = match (first, last) {
        ("", suffix) => size.saturating_sub(number(suffix)?)..size,
        (first, "") => number(first)?..size,
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return None;
            }
            first..last.saturating_add(1).min(size)
        }
    };
    Some(if range.start < range.end { Selection::Part(range) } else { Selection::Unsatisfiable })
}

/// A number of digits only; if it does not fit the type, it counts as larger than any file.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selections() {
        use Selection::{Part, Unsatisfiable, Whole};
        for (field, selection) in [
            ("bytes=0-0", Part(0..1)),
            ("bytes=2-4", Part(2..5)),
            ("Bytes = 2-4", Part(2..5)),
            ("bytes=0-", Part(0..10)),
            ("bytes=9-", Part(9..10)),
            ("bytes=5-99", Part(5..10)),
            ("bytes=-3", Part(7..10)),
            ("bytes=-99", Part(0..10)),
            ("bytes=0-18446744073709551615", Part(0..10)),
            ("bytes=0-99999999999999999999999", Part(0..10)),
            ("bytes=10-", Unsatisfiable),
            ("bytes=10-12", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=99999999999999999999999-", Unsatisfiable),
            ("bytes=4-2", Whole),
            ("bytes=0-1,3-4", Whole),
            ("bytes=-1,-2", Whole),
            ("bytes=-", Whole),
            ("bytes=", Whole),
            ("bytes=a-b", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=1-+2", Whole),
            ("lines=0-1", Whole),
            ("0-1", Whole),
        ] {
            assert_eq!(select(field, 10), selection, "{field}");
        }
        assert_eq!(select("bytes=0-", 0), Unsatisfiable);
        assert_eq!(select("bytes=-1", 0), Unsatisfiable);
    }
}
