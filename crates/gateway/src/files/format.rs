//! Images in newer formats beside their original, and the choice among them (RFC 9110, 12.5.1).
//!
//! `plimsoll adapt` writes a WebP beside an image: `photo.jpg.webp`; an operator may put an AVIF there too. The smallest one
//! whose type the client *names* in `accept` is sent, under the image's own address. `image/*` and `*/*` do not count: old
//! browsers and programs send them and cannot read new formats.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Avif,
    Webp,
}

impl Format {
    pub(super) const ALL: [Format; 2] = [Format::Avif, Format::Webp];

    /// The format's content type, and the ending of the copy's file name.
    pub(super) const fn names(self) -> (&'static str, &'static str) {
        match self {
            Format::Avif => ("image/avif", ".avif"),
            Format::Webp => ("image/webp", ".webp"),
        }
    }

    /// Whether the client names the format and does not refuse it.
    fn is_in(self, accept: &str) -> bool {
        accept.split(',').any(|range| {
            let mut parts = range.split(';').map(str::trim);
            let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(self.names().0));
            named && !parts.any(is_refusal)
        })
    }
}

/// Whether the parameter is a weight of zero.
fn is_refusal(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    name.trim().eq_ignore_ascii_case("q") && value.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0)
}

/// The number of the variant to send. `variants` are format and size; the first is the original, which every client takes.
pub(super) fn choose(accept: Option<&str>, variants: impl Iterator<Item = (Option<Format>, u64)>) -> usize {
    let accept = accept.unwrap_or_default();
    variants
        .enumerate()
        .filter(|(_, (format, _))| format.is_none_or(|format| format.is_in(accept)))
        .min_by_key(|(_, (_, size))| *size)
        .map_or(0, |(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_that_the_client_names() {
        let all = [(None, 900), (Some(Format::Avif), 300), (Some(Format::Webp), 400)];
        for (accept, expected) in [
            (Some("image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"), Some(Format::Avif)),
            (Some("text/html, IMAGE/WebP ;q=0.5"), Some(Format::Webp)),
            (Some("image/avif;q=0, image/webp"), Some(Format::Webp)),
            (Some("image/avif; q=0.000"), None),
            (Some("image/*,*/*"), None),
            (Some(""), None),
            (None, None),
        ] {
            assert_eq!(all[choose(accept, all.into_iter())].0, expected, "{accept:?}");
        }
        let larger = [(None, 100), (Some(Format::Webp), 400)];
        assert_eq!(choose(Some("image/webp"), larger.into_iter()), 0);
    }
}
