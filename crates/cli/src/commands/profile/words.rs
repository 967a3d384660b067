//! Numbers in words: three or four digits and a unit.

/// `digits` significant ones.
fn digits(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let before = value.abs().log10().floor() as i32 + 1;
    format!("{value:.*}", usize::try_from(digits - before).unwrap_or(0))
}

/// A time.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{} s", digits(s, 3)),
        s if s >= 1e-3 => format!("{} ms", digits(s * 1e3, 3)),
        s if s >= 1e-6 => format!("{} us", digits(s * 1e6, 3)),
        s => format!("{} ns", digits(s * 1e9, 3)),
    }
}

/// A time as the configuration takes it.
pub(crate) fn quantity(seconds: f64) -> String {
    match seconds {
        s if s >= 1.0 => format!("{}s", digits(s, 4)),
        s if s >= 1e-3 => format!("{}ms", digits(s * 1e3, 4)),
        s if s >= 1e-6 => format!("{}us", digits(s * 1e6, 4)),
        s => format!("{}ns", digits(s * 1e9, 4)),
    }
}

/// Bytes per second, as the configuration takes them.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    let bits = bytes_per_second * 8.0;
    match bits {
        b if b >= 1e9 => format!("{} Gbit/s", digits(b / 1e9, 4)),
        b if b >= 1e6 => format!("{} Mbit/s", digits(b / 1e6, 4)),
        b => format!("{} kbit/s", digits(b / 1e3, 4)),
    }
}

/// A size.
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

/// A share, in percent; a dash where it is not known.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        return "-".to_owned();
    }
    let text = format!("{:.1} %", share * 100.0);
    if text == "-0.0 %" { "0.0 %".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_few_digits_and_a_unit() {
        assert_eq!([2.0, 0.0123, 7.5e-4, 1.22e-8].map(time), ["2.00 s", "12.3 ms", "750 us", "12.2 ns"]);
        assert_eq!([7.5e-4, 1.2207e-8, 0.0].map(quantity), ["750.0us", "12.21ns", "0ns"]);
        assert_eq!([10.75e6, 3e8, 12.0].map(rate), ["86.00 Mbit/s", "2.400 Gbit/s", "0.09600 kbit/s"]);
        assert_eq!(
            [100.0, 1024.0, 1536.0, 262_144.0, 3e6].map(size),
            ["100 B", "1 KiB", "1.5 KiB", "256 KiB", "2.86 MiB"]
        );
        assert_eq!([-0.0172, -1e-9, f64::INFINITY].map(percent), ["-1.7 %", "0.0 %", "-"]);
    }
}
