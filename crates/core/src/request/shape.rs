//! The shape of a request: what it shows before it is served that may be evidence of its cost. Pure.
//!
//! | feature | of `POST /item/123/report.pdf?depth=2` |
//! |---|---|
//! | method | `POST` |
//! | prefixes of the path, up to [`DEPTH`] segments | `/item`, `/item/*`, `/item/*/report.pdf` |
//! | extension | `pdf` |
//! | first key of the query | `depth` |
//!
//! Identifiers are no features: a run of digits is a `*`, and so is a whole segment that looks like the number of a thing
//! ([`is_identifier`]), or that is one of very many below one prefix ([`CrowdedPrefixes`]). Each feature is a token, a hash of
//! 32 bits; a prefix's token is made from the token of the prefix before it. The size of a body is no feature, because its
//! cost is learned as a function of it ([`SizeLaw`](crate::model::SizeLaw)).

use crate::request::RequestView;

/// The segments of a path that count.
pub(crate) const DEPTH: usize = 6;
/// The kinds of features: prefixes by their depth, then these.
pub(crate) const EXTENSION: usize = DEPTH;
pub(crate) const QUERY_KEY: usize = DEPTH + 1;
pub(crate) const METHOD: usize = DEPTH + 2;
pub(crate) const FEATURES: usize = DEPTH + 3;
/// The bytes of a path or of a key that are read; the rest is ignored.
pub(crate) const LONGEST: usize = 96;
/// A longer segment is an identifier, and a longer extension is no extension.
pub(crate) const LONGEST_NAME: usize = 32;
const LONGEST_EXTENSION: usize = 8;

/// One token for each kind of feature; zero where the request has none of it.
pub(crate) type Tokens = [u32; FEATURES];

/// The prefixes that are followed by too many different segments, of which only some are distinguished.
pub(crate) trait CrowdedPrefixes {
    /// Whether the segment with the token `child` is distinguished from others below `parent`.
    fn is_apart(&self, parent: u32, child: u32) -> bool;
}

/// The parts of a request that make its shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShapeParts<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query_key: &'a str,
}

/// FNV-1a (Fowler, Noll, Vo).
const BASIS: u32 = 0x811c_9dc5;
const PRIME: u32 = 0x0100_0193;

#[inline]
fn step(hash: u32, byte: u8) -> u32 {
    (hash ^ u32::from(byte)).wrapping_mul(PRIME)
}

fn token(text: &str) -> u32 {
    if text.is_empty() { 0 } else { text.bytes().fold(BASIS, step).max(1) }
}

/// The text after the last byte of this value; `None` if there is none.
fn after_last(text: &str, byte: u8) -> Option<&str> {
    text.get(text.bytes().rposition(|own| own == byte)? + 1..)
}

/// The longest beginning of a text that has at most `most` bytes and whole characters.
fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most { text } else { &text[..text.floor_char_boundary(most)] }
}

impl<'a> ShapeParts<'a> {
    pub(crate) fn of(request: &'a impl RequestView) -> Self {
        let query = request.query();
        let key = query.bytes().position(|byte| byte == b'&' || byte == b'=').unwrap_or(query.len());
        ShapeParts {
            method: cut(request.method(), LONGEST_NAME),
            path: cut(request.path(), LONGEST),
            query_key: cut(&query[..key], LONGEST_NAME),
        }
    }

    /// The segments as bytes, because to split a text costs several times as much.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &'a [u8]> {
        self.path.as_bytes().split(|byte| *byte == b'/').filter(|segment| !segment.is_empty()).take(DEPTH)
    }

    /// The extension of the last segment.
    pub(crate) fn extension(&self) -> &'a str {
        let name = after_last(self.path, b'/').unwrap_or(self.path);
        let extension = after_last(name, b'.').unwrap_or_default();
        let is_one = extension.len() <= LONGEST_EXTENSION
            && extension.bytes().all(|byte| byte.is_ascii_alphanumeric())
            && extension.bytes().any(|byte| byte.is_ascii_alphabetic());
        if is_one { extension } else { "" }
    }

    pub(crate) fn tokens(&self, prefixes: &impl CrowdedPrefixes) -> Tokens {
        let mut tokens = [0; FEATURES];
        let mut parent = BASIS;
        for (index, segment) in self.segments().enumerate() {
            let mut own = step(parent, b'/');
            normalize(segment, |byte| own = step(own, byte));
            let own = own.max(1);
            parent = if prefixes.is_apart(parent, own) { own } else { any_below(parent) };
            tokens[index] = parent;
        }
        tokens[EXTENSION] = token(self.extension());
        tokens[QUERY_KEY] = token(self.query_key);
        tokens[METHOD] = token(self.method);
        tokens
    }
}

/// The token of the path without a segment, the parent of all first segments.
pub(crate) const ROOT: u32 = BASIS;

/// The token of an identifier below a prefix.
pub(crate) fn any_below(parent: u32) -> u32 {
    step(step(parent, b'/'), b'*').max(1)
}

/// All tokens in one: the name of the shape.
pub(crate) fn key(tokens: &Tokens) -> u64 {
    let fold = |hash: u64, token: &u32| {
        (hash.rotate_left(27) ^ u64::from(*token)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    tokens.iter().fold(1, fold).max(1)
}

/// Gives out the bytes of a segment with `*` for what only identifies a thing. What is normalized already stays so.
#[inline]
pub(crate) fn normalize(segment: &[u8], mut give: impl FnMut(u8)) {
    if segment.len() >= SHORTEST_IDENTIFIER && is_identifier(segment) {
        return give(b'*');
    }
    let mut in_number = false;
    for byte in segment {
        let is_digit = byte.is_ascii_digit();
        match is_digit {
            true if in_number => {}
            true => give(b'*'),
            false => give(*byte),
        }
        in_number = is_digit;
    }
}

/// A shorter segment is an identifier only where it is a number.
const SHORTEST_IDENTIFIER: usize = 8;

/// Whether a segment names one thing among many: it is long, or it has digits and is hexadecimal (a UUID, a hash), or
/// mixes letters and digits as no word does.
fn is_identifier(bytes: &[u8]) -> bool {
    if bytes.len() > LONGEST_NAME {
        return true;
    }
    if !bytes.iter().any(u8::is_ascii_digit) {
        return false;
    }
    let numbers = bytes.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit());
    bytes.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-')
        || (bytes.iter().all(u8::is_ascii_alphanumeric) && numbers.count() > 3)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use alloc::string::String;

    /// No prefix is crowded.
    pub(crate) struct Uncrowded;

    impl CrowdedPrefixes for Uncrowded {
        fn is_apart(&self, _: u32, _: u32) -> bool {
            true
        }
    }

    fn normal(segment: &str) -> String {
        let mut text = String::new();
        normalize(segment.as_bytes(), |byte| text.push(char::from(byte)));
        text
    }

    fn tokens(path: &str) -> Tokens {
        ShapeParts { method: "GET", path, query_key: "" }.tokens(&Uncrowded)
    }

    #[test]
    fn identifiers_are_stars() {
        for (segment, expected) in [
            ("report", "report"),
            ("123", "*"),
            ("sts-69", "sts-*"),
            ("page-17.html", "page-*.html"),
            ("v1", "v*"),
            ("deadbeef", "deadbeef"),
            ("3f2a9c01", "*"),
            ("123e4567-e89b-12d3-a456-426614174000", "*"),
            ("dQw4w9WgXcQ", "*"),
            ("a-name-that-is-as-long-as-no-word-ever-is", "*"),
            ("*", "*"),
        ] {
            assert_eq!(normal(segment), expected);
            assert_eq!(normal(&normal(segment)), expected, "once more");
        }
    }

    #[test]
    fn a_prefix_is_a_feature_at_every_depth() {
        let (one, other) = (tokens("/item/123/report"), tokens("/item/77/report"));
        assert_eq!(one, other);
        let page = tokens("/item/5");
        assert_eq!((one[0], one[1], page[2]), (page[0], page[1], 0));
        assert_ne!(one[2], 0);
        assert_eq!(one[1], any_below(one[0]));
        assert_ne!(tokens("/a/b")[1], tokens("/c/b")[1], "below another prefix it is another");
        assert_eq!(tokens("//a//b/"), tokens("/a/b"));
        assert_eq!(tokens("/")[..DEPTH], [0; DEPTH]);
        assert_eq!(tokens("/1/2/3/4/5/6/7"), tokens("/1/2/3/4/5/6/7/8"));
    }

    #[test]
    fn features_besides_the_path_are_distinguished_too() {
        let parts = ShapeParts { method: "POST", path: "/a/x.PDF", query_key: "depth" };
        let tokens = parts.tokens(&Uncrowded);
        assert_eq!(parts.extension(), "PDF");
        assert!([EXTENSION, QUERY_KEY, METHOD].iter().all(|kind| tokens[*kind] != 0));
        let other = ShapeParts { query_key: "", ..parts }.tokens(&Uncrowded);
        assert_eq!(other[QUERY_KEY], 0);
        assert_ne!(key(&tokens), key(&other));
        for path in ["/a.tar.gz/", "/v1.2", "/a", "/x.notanextension"] {
            assert_eq!(ShapeParts { path, ..parts }.extension(), "", "{path}");
        }
    }
}
