//! Content codings of precompressed copies, and the choice among them (RFC 9110, 12.5.3).
//!
//! Copies stand beside their original: `app.js.br`, `app.js.zst`, `app.js.gz`. The smallest copy with the highest weight
//! is sent: the operator compressed the copies, so that their sizes say which is best. Weights are thousandths.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Brotli,
    Zstandard,
    Gzip,
}

impl Coding {
    pub(super) const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstandard, Coding::Gzip];

    /// The coding's name in `content-encoding`, and the ending of the copy's file name.
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Coding::Brotli => ("br", ".br"),
            Coding::Zstandard => ("zstd", ".zst"),
            Coding::Gzip => ("gzip", ".gz"),
        }
    }
}

/// The name of the original, if this is the name of a compressed copy; otherwise the name unchanged.
pub(super) fn without_codings(name: &[u8]) -> &[u8] {
    let without = |coding: Coding| {
        let (original, ending) = name.split_at_checked(name.len().checked_sub(coding.names().1.len())?)?;
        ending.eq_ignore_ascii_case(coding.names().1.as_bytes()).then_some(original)
    };
    Coding::ALL.into_iter().find_map(without).map_or(name, without_codings)
}

/// The place of the original, which has no coding, among the weights; the weights of [`Coding::ALL`] come before it.
const IDENTITY: usize = 3;

/// The number of the variant to send. `variants` are coding and size; the first is the original (no coding). If no variant
/// is acceptable, the original is sent all the same, which the RFC allows and clients prefer to a 406.
pub(super) fn choose(accept: Option<&str>, variants: impl Iterator<Item = (Option<Coding>, u64)>) -> usize {
    let weights = parse(accept.unwrap_or_default());
    let weight = |coding: Option<Coding>| weights[coding.map_or(IDENTITY, |coding| coding as usize)];
    variants
        .enumerate()
        .filter(|(_, (coding, _))| weight(*coding) > 0)
        .max_by_key(|(_, (coding, size))| (weight(*coding), std::cmp::Reverse(*size)))
        .map_or(0, |(number, _)| number)
}

/// The weights in `accept-encoding`, in thousandths; zero is "not acceptable".
fn parse(accept: &str) -> [u16; 4] {
    let mut named = [None; 4];
    let mut others = None;
    for element in accept.split(',') {
        let mut parts = element.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        // A weight that cannot be read counts as a refusal, to be careful.
        let weight = Some(parts.next().map_or(Some(1000), parse_weight).unwrap_or(0));
        let is = |known: &&str| name.eq_ignore_ascii_case(known);
        match ["br", "zstd", "gzip", "identity", "x-gzip"].iter().position(is) {
            Some(4) => named[Coding::Gzip as usize] = weight,
            Some(place) => named[place] = weight,
            None if name == "*" => others = weight,
            None => {}
        }
    }
    // An original that is not named is acceptable, after all codings that are named.
    let unnamed = [0, 0, 0, 1];
    std::array::from_fn(|place| named[place].or(others).unwrap_or(unnamed[place]))
}

/// A weight such as `q=0.8`, with at most three digits behind the point.
fn parse_weight(parameter: &str) -> Option<u16> {
    let (name, value) = parameter.split_once('=')?;
    if !name.trim().eq_ignore_ascii_case("q") {
        return None;
    }
    let (whole, decimals) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    if decimals.len() > 3 || !decimals.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let thousandths = decimals.bytes().chain(std::iter::repeat(b'0')).take(3);
    let fraction = thousandths.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    match whole {
        "0" => Some(fraction),
        "1" if fraction == 0 => Some(1000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(Option<Coding>, u64); 4] = [
        (None, 1000),
        (Some(Coding::Brotli), 200),
        (Some(Coding::Zstandard), 250),
        (Some(Coding::Gzip), 300),
    ];

    #[test]
    fn the_heaviest_then_the_smallest() {
        for (accept, coding) in [
            ("gzip, deflate, br, zstd", Some(Coding::Brotli)),
            ("gzip, deflate", Some(Coding::Gzip)),
            ("GZIP;q=1.0, br;q=0.5", Some(Coding::Gzip)),
            ("gzip;q=0.001", Some(Coding::Gzip)),
            ("br;q=0, *;q=0.5", Some(Coding::Zstandard)),
            ("*", Some(Coding::Brotli)),
            ("x-gzip", Some(Coding::Gzip)),
            ("identity, gzip;q=0.5", None),
            ("gzip, identity", Some(Coding::Gzip)),
            ("identity;q=0", None),
            ("br;q=2", None),
            ("br;q=0.1234", None),
            ("br;level=4", None),
            ("brotli", None),
            ("", None),
        ] {
            assert_eq!(ALL[choose(Some(accept), ALL.into_iter())].0, coding, "{accept}");
        }
        assert_eq!(choose(None, ALL.into_iter()), 0);
        assert_eq!(choose(Some("br"), ALL[..1].iter().copied()), 0);
    }

    #[test]
    fn weights() {
        for (text, weight) in
            [("q=1", 1000), ("q=1.000", 1000), ("q=0.5", 500), ("Q = 0.05", 50), ("q=0.", 0)]
        {
            assert_eq!(parse_weight(text), Some(weight), "{text}");
        }
        for text in ["q=1.001", "q=-1", "q=.5", "q", "q=a", "q=0.5a", "r=1"] {
            assert_eq!(parse_weight(text), None, "{text}");
        }
    }
}
