//! Content types by file name.
//!
//! The table has the types of files that web sites hold, after the IANA registry and nginx's `mime.types`. Text is announced as
//! UTF-8, as every tool writes it today. A page that states its encoding itself is served without a charset, since the header
//! would override the page. A JPEG or WebP that has the name of another image format is announced by its content: `plimsoll
//! adapt` stores photographs so under their PNG or GIF names.

use imagesize::ImageType;

/// What the ending of a file name says about the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContentType {
    pub(super) text: &'static str,
    /// Whether a compressed copy is looked for; false for types that are compressed already.
    pub(super) compressible: bool,
}

impl ContentType {
    /// The type of a page that states its encoding itself.
    pub(super) fn without_charset(self) -> ContentType {
        ContentType { text: if self.is_page() { "text/html" } else { self.text }, ..self }
    }

    /// The type by the first bytes of an image, if they are of another format than its name.
    pub(super) fn of_content(self, head: &[u8]) -> ContentType {
        let text = match imagesize::image_type(head) {
            Ok(ImageType::Jpeg) => "image/jpeg",
            Ok(ImageType::Webp) => "image/webp",
            _ => self.text,
        };
        ContentType { text, ..self }
    }

    /// Whether this is the type of an image, whose content may have another format than its name.
    pub(super) fn is_picture(self) -> bool {
        matches!(self.text, "image/png" | "image/gif")
    }

    /// Whether copies of it in newer formats are looked for.
    pub(super) fn has_formats(self) -> bool {
        matches!(self.text, "image/png" | "image/gif" | "image/jpeg")
    }

    pub(super) fn is_page(self) -> bool {
        self.text.starts_with("text/html")
    }
}

const UNKNOWN: ContentType = ContentType { text: "application/octet-stream", compressible: true };

/// The type by the ending after the last dot of the name, in any case.
pub(super) fn of(name: &[u8]) -> ContentType {
    let name = name.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let mut parts = name.rsplitn(2, |&byte| byte == b'.');
    let (Some(ending), Some(_)) = (parts.next(), parts.next()) else { return UNKNOWN };
    let is =
        |(known, _): &&(&str, &str)| known.split(' ').any(|one| one.as_bytes().eq_ignore_ascii_case(ending));
    if let Some(&(_, text)) = COMPRESSIBLE.iter().find(is) {
        return ContentType { text, compressible: true };
    }
    match PACKED.iter().find(is) {
        Some(&(_, text)) => ContentType { text, compressible: false },
        None => UNKNOWN,
    }
}

/// The endings of each type. The commonest types come first: the table is searched in order, once per change of a file.
const COMPRESSIBLE: &[(&str, &str)] = &[
    // If a program makes a page at full quality, a content tree has a page under the program's name.
    ("html htm php phtml cgi asp aspx jsp", "text/html; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("js mjs", "text/javascript; charset=utf-8"),
    ("json map", "application/json"),
    ("svg", "image/svg+xml"),
    ("ico", "image/x-icon"),
    ("txt", "text/plain; charset=utf-8"),
    ("xml", "text/xml; charset=utf-8"),
    ("xhtml", "application/xhtml+xml"),
    ("webmanifest", "application/manifest+json"),
    ("jsonld", "application/ld+json"),
    ("geojson", "application/geo+json"),
    ("rss", "application/rss+xml"),
    ("atom", "application/atom+xml"),
    ("wasm", "application/wasm"),
    ("md", "text/markdown; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    ("ics", "text/calendar; charset=utf-8"),
    ("vcf", "text/vcard; charset=utf-8"),
    ("vtt", "text/vtt; charset=utf-8"),
    ("yaml yml", "application/yaml"),
    ("toml", "application/toml"),
    ("pdf", "application/pdf"),
    ("rtf", "application/rtf"),
    ("ps", "application/postscript"),
    ("bmp", "image/bmp"),
    ("tif tiff", "image/tiff"),
    ("ttf", "font/ttf"),
    ("otf", "font/otf"),
    ("eot", "application/vnd.ms-fontobject"),
    ("wav", "audio/wav"),
    ("tar", "application/x-tar"),
    ("doc", "application/msword"),
    ("xls", "application/vnd.ms-excel"),
    ("ppt", "application/vnd.ms-powerpoint"),
    ("m3u8", "application/vnd.apple.mpegurl"),
    ("mpd", "application/dash+xml"),
    ("kml", "application/vnd.google-earth.kml+xml"),
];

const PACKED: &[(&str, &str)] = &[
    ("png", "image/png"),
    ("jpg jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("jxl", "image/jxl"),
    ("heic", "image/heic"),
    ("apng", "image/apng"),
    ("woff2", "font/woff2"),
    ("woff", "font/woff"),
    ("mp4 m4v", "video/mp4"),
    ("webm", "video/webm"),
    ("mov", "video/quicktime"),
    ("avi", "video/x-msvideo"),
    ("mpg mpeg", "video/mpeg"),
    ("ogv", "video/ogg"),
    ("ts", "video/mp2t"),
    ("m4s", "video/iso.segment"),
    ("mp3", "audio/mpeg"),
    ("m4a", "audio/mp4"),
    ("aac", "audio/aac"),
    ("ogg oga opus", "audio/ogg"),
    ("flac", "audio/flac"),
    ("weba", "audio/webm"),
    ("zip", "application/zip"),
    ("gz tgz", "application/gzip"),
    ("bz2", "application/x-bzip2"),
    ("xz", "application/x-xz"),
    ("zst", "application/zstd"),
    ("br", "application/octet-stream"),
    ("7z", "application/x-7z-compressed"),
    ("rar", "application/vnd.rar"),
    ("jar", "application/java-archive"),
    ("epub", "application/epub+zip"),
    ("docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ("xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
    ("pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
    ("odt", "application/vnd.oasis.opendocument.text"),
    ("kmz", "application/vnd.google-earth.kmz"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_ending() {
        for (name, text) in [
            ("index.html", "text/html; charset=utf-8"),
            ("A.HTML", "text/html; charset=utf-8"),
            ("a.min.js", "text/javascript; charset=utf-8"),
            ("a/b.d/photo.JPG", "image/jpeg"),
            ("a/b.js/readme", "application/octet-stream"),
            ("html", "application/octet-stream"),
            ("a.", "application/octet-stream"),
            ("a.unheard-of", "application/octet-stream"),
            ("site.tar.gz", "application/gzip"),
        ] {
            assert_eq!(of(name.as_bytes()).text, text, "{name}");
        }
        assert!(!of(b"a.png").compressible && of(b"a.svg").compressible && of(b"a.unheard-of").compressible);
    }

    #[test]
    fn each_ending_stands_once() {
        let mut endings: Vec<_> =
            COMPRESSIBLE.iter().chain(PACKED).flat_map(|(endings, _)| endings.split(' ')).collect();
        let count = endings.len();
        endings.sort_unstable();
        endings.dedup();
        assert_eq!(endings.len(), count);
    }
}
