//! The kind of a file by its name, and what a step of adaptation may do with such a file.

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page of HTML.
    Page,
    /// A style sheet (CSS).
    Style,
    /// A JPEG, PNG, GIF, WebP or AVIF.
    Image,
    /// An image that is not written again, such as SVG and icons.
    OtherImage,
    /// A program in JavaScript.
    Script,
    /// A font, of any format.
    Font,
    /// A copy of another file that was compressed beforehand, such as `page.html.gz`.
    Compressed,
    /// A file of any other kind.
    Other,
}

impl Kind {
    /// The kind by the ending of a path, in any case.
    pub(crate) fn of(path: &str) -> Kind {
        let name = path.rsplit('/').next().unwrap_or(path);
        let Some((stem, ending)) = name.rsplit_once('.') else { return Kind::Other };
        match ending.to_ascii_lowercase().as_str() {
            "html" | "htm" | "xhtml" | "shtml" => Kind::Page,
            "css" => Kind::Style,
            "jpg" | "jpeg" | "jpe" | "jfif" | "png" | "gif" | "webp" | "avif" => Kind::Image,
            "svg" | "ico" | "bmp" | "jxl" => Kind::OtherImage,
            "js" | "mjs" => Kind::Script,
            "woff" | "woff2" | "ttf" | "otf" | "eot" => Kind::Font,
            // An archive such as `site.tar.gz` is not a compressed copy of a page.
            "gz" | "br" | "zst" if stem.contains('.') && !stem.ends_with(".tar") => Kind::Compressed,
            _ => Kind::Other,
        }
    }

    /// Whether the file's name is an AVIF's.
    pub(crate) fn is_avif(path: &str) -> bool {
        ends_with(path, &["avif"])
    }

    /// Whether the file's name is an SVG image's.
    pub(crate) fn is_svg(path: &str) -> bool {
        ends_with(path, &["svg"])
    }

    pub(crate) fn is_image(self) -> bool {
        matches!(self, Kind::Image | Kind::OtherImage)
    }

    /// Whether such a file is worth compressing.
    pub(crate) fn is_text(self, path: &str) -> bool {
        matches!(self, Kind::Page | Kind::Style | Kind::Script)
            || ends_with(path, &["svg", "json", "xml", "txt"])
    }
}

/// Whether the name of a file ends in one of these, in any case.
pub(crate) fn ends_with(path: &str, endings: &[&str]) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, ending)| endings.iter().any(|one| ending.eq_ignore_ascii_case(one)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings() {
        for (path, kind) in [
            ("a/Index.HTM", Kind::Page),
            ("a.b/photo.JPG", Kind::Image),
            ("x.svg", Kind::OtherImage),
            ("x.html.gz", Kind::Compressed),
            ("x.tar.gz", Kind::Other),
            ("log.gz", Kind::Other),
            ("README", Kind::Other),
            ("a.html/b", Kind::Other),
        ] {
            assert_eq!(Kind::of(path), kind, "{path}");
        }
    }
}
