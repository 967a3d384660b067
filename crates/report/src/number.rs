//! Numbers as text: short in paths, exact enough in data, grouped in tables.

use std::fmt::Write;

/// A scaled value beyond this is not an exact integer.
const EXACT: f64 = 9e15;

/// The most decimals that are printed.
const MOST_DECIMALS: i32 = 12;

/// Appends `value` rounded to `decimals` (at most 12), without trailing zeros. A value that is not finite is printed as `-`.
pub(crate) fn push_fixed(out: &mut String, value: f64, decimals: i32) {
    let _ = match rounded(value, decimals) {
        Some(rounded) => write!(out, "{rounded}"),
        None if value.is_finite() => write!(out, "{value:e}"),
        None => out.write_char('-'),
    };
}

/// Appends `value` with exactly `decimals` decimals (at most 12).
pub(crate) fn push_exact(out: &mut String, value: f64, decimals: i32) {
    match rounded(value, decimals) {
        Some(rounded) => {
            let _ = write!(out, "{rounded:.*}", decimals.clamp(0, MOST_DECIMALS) as usize);
        }
        None => push_fixed(out, value, decimals),
    }
}

/// The number nearest to `value` with this many decimals, halves away from zero; `None` if it would not be exact, or if `value`
/// is not finite.
fn rounded(value: f64, decimals: i32) -> Option<f64> {
    let ten = 10f64.powi(decimals.clamp(0, MOST_DECIMALS));
    // Zero is added because -0 would print its sign.
    let scaled = (value * ten).round() + 0.0;
    (scaled.abs() <= EXACT).then(|| scaled / ten)
}

/// Appends `value` rounded to `digits` significant digits; whole numbers keep all their digits.
pub(crate) fn push_significant(out: &mut String, value: f64, digits: i32) {
    let decimals = digits - 1 - if value == 0.0 { 0 } else { order(value) };
    if decimals > MOST_DECIMALS && value.is_finite() {
        let _ = write!(out, "{value:.*e}", usize::try_from(digits - 1).unwrap_or(0));
    } else {
        push_fixed(out, value, decimals.max(0));
    }
}

/// `value` with exactly `decimals` decimals, its thousands separated by narrow spaces that do not break.
pub(crate) fn grouped(value: f64, decimals: i32) -> String {
    let mut plain = String::new();
    push_exact(&mut plain, value, decimals);
    let digits = plain.find('.').unwrap_or(plain.len());
    let start = usize::from(plain.starts_with('-'));
    let all_digits = plain[start..digits].bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits || digits - start < 4 {
        return plain;
    }
    let mut out = String::new();
    for (place, character) in plain.chars().enumerate() {
        if place > start && place < digits && (digits - place).is_multiple_of(3) {
            out.push('\u{202F}');
        }
        out.push(character);
    }
    out
}

/// The power of ten of `value`'s first digit.
pub(crate) fn order(value: f64) -> i32 {
    // The exponent of a float fits the type, so the cast saturates only for zero and for values that are not finite.
    value.abs().log10().floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixed(value: f64, decimals: i32) -> String {
        let mut out = String::new();
        push_fixed(&mut out, value, decimals);
        out
    }

    fn significant(value: f64) -> String {
        let mut out = String::new();
        push_significant(&mut out, value, 4);
        out
    }

    #[test]
    fn fixed_rounds_and_trims() {
        assert_eq!(fixed(0.0, 1), "0");
        assert_eq!(fixed(-0.04, 1), "0");
        assert_eq!(fixed(-0.06, 1), "-0.1");
        assert_eq!(fixed(12.34, 1), "12.3");
        assert_eq!(fixed(100.0, 1), "100");
        assert_eq!(fixed(0.05, 3), "0.05");
        assert_eq!(fixed(1e18, 1), "1e18");
        assert_eq!(fixed(f64::NAN, 1), "-");
        assert_eq!(fixed(9e15, 0), "9000000000000000");
        assert_eq!(fixed(123_456_789.0, 0), "123456789");
    }

    #[test]
    fn fixed_agrees_with_the_standard_library() {
        let mut random = 1u64;
        for _ in 0..2000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let value = f64::from((random >> 40) as u32) / 1000.0 - 5000.0;
            let mut out = String::new();
            push_exact(&mut out, value, 3);
            assert_eq!(out, format!("{value:.3}"));
        }
    }

    #[test]
    fn significant_digits() {
        assert_eq!(significant(0.123_456), "0.1235");
        assert_eq!(significant(123_456.0), "123456");
        assert_eq!(significant(12.3456), "12.35");
        assert_eq!(significant(0.000_012_342), "0.00001234");
        assert_eq!(significant(1.5e-20), "1.500e-20");
        assert_eq!(significant(0.0), "0");
        assert_eq!(significant(f64::INFINITY), "-");
    }

    #[test]
    fn thousands() {
        assert_eq!(grouped(1234.5, 1), "1\u{202F}234.5");
        assert_eq!(grouped(-123.0, 0), "-123");
        assert_eq!(grouped(12345.0, 0), "12\u{202F}345");
        assert_eq!(grouped(-1_234_567.891, 2), "-1\u{202F}234\u{202F}567.89");
        assert_eq!(grouped(0.5, 2), "0.50");
        assert_eq!(grouped(f64::NAN, 2), "-");
        assert_eq!(grouped(1e300, 2), "1e300");
    }
}
