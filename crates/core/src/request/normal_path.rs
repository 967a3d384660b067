//! A path as the server reads it, so that rules match what will be served and not how it was spelled. Pure.
//!
//! `/%73earch`, `//search` and `/;v=1/search` are all answered by a server's `/search`: percent-encoded bytes are decoded
//! once, the parameters of a segment (from its `;`) are left out, and several slashes count as one. Whatever came is
//! forwarded as it came; only rules, types and level choices see the normal form.

use alloc::borrow::Cow;
use alloc::string::String;
use alloc::vec::Vec;

/// The normal form of an absolute path. Borrows where the path is in normal form, as almost all are.
///
/// Bytes that are not UTF-8 once decoded become U+FFFD, which no rule can name.
pub fn normal_path(path: &str) -> Cow<'_, str> {
    let bytes = path.as_bytes();
    let is_odd = |(at, byte): (usize, &u8)| match byte {
        b'%' | b';' => true,
        b'/' => bytes.get(at + 1) == Some(&b'/'),
        _ => false,
    };
    if !bytes.iter().enumerate().any(is_odd) {
        return Cow::Borrowed(path);
    }
    let mut normal: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut in_parameters = false;
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        // Parameters are recognized before decoding: an encoded semicolon is part of a name.
        in_parameters = byte != b'/' && (in_parameters || byte == b';');
        let decoded = match (byte, decode(after)) {
            (b'%', Some(decoded)) => {
                rest = &after[2..];
                decoded
            }
            _ => byte,
        };
        if decoded == b'/' {
            // A segment ends, also for servers that decode first.
            in_parameters = false;
        }
        let repeats = decoded == b'/' && normal.last() == Some(&b'/');
        if !(in_parameters || repeats) {
            normal.push(decoded);
        }
    }
    Cow::Owned(
        String::from_utf8(normal)
            .unwrap_or_else(|wrong| String::from_utf8_lossy(wrong.as_bytes()).into_owned()),
    )
}

/// Whether a path has `.` or `..` as a segment, also percent-encoded, with backslashes or as `..;parameters`.
///
/// Clients resolve such segments before they send a path. A server that resolved `/light/../full` would leave the tree of
/// the request's level, and `/./buy` would be in another class than `/buy`. So such a request is refused.
pub fn has_dot_segment(path: &[u8]) -> bool {
    let (mut dots, mut other, mut parameters) = (0u32, false, false);
    let mut at = 0;
    while at < path.len() {
        let encoded = if path[at] == b'%' { decode(&path[at + 1..]) } else { None };
        let (byte, width) = encoded.map_or((path[at], 1), |decoded| (decoded, 3));
        at += width;
        match byte {
            b'/' | b'\\' => {
                if !other && (1..=2).contains(&dots) {
                    return true;
                }
                (dots, other, parameters) = (0, false, false);
            }
            b';' => parameters = true,
            b'.' if !parameters => dots += 1,
            _ if !parameters => other = true,
            _ => {}
        }
    }
    !other && (1..=2).contains(&dots)
}

/// The byte that two hexadecimal digits stand for.
fn decode(digits: &[u8]) -> Option<u8> {
    let digit = |at: usize| digits.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    Some((digit(0)? * 16 + digit(1)?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_path_have_one_normal_form() {
        for (spelled, normal) in [
            ("/search", "/search"),
            ("/%73earch", "/search"),
            ("//search", "/search"),
            ("/;a/search", "/search"),
            ("/search;jsessionid=1", "/search"),
            ("/a;b=c/d;e", "/a/d"),
            ("/a%2Fb", "/a/b"),
            ("/a%2f%2fb", "/a/b"),
            ("/a%3Bb/c", "/a;b/c"),
            ("/%2573earch", "/%73earch"),
            ("/100%", "/100%"),
            ("/%zz", "/%zz"),
            ("/%ff", "/\u{fffd}"),
            ("/%C3%A9t%c3%a9", "/été"),
            ("/été", "/été"),
            ("///", "/"),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(normal_path(spelled), normal, "{spelled}");
        }
        assert!(matches!(normal_path("/a/b.html"), Cow::Borrowed(_)));
    }

    #[test]
    fn dot_segments_are_known_however_they_are_spelled() {
        for path in
            ["/..", "/./a", "/a/../b", "/a/%2e%2E/b", "/a\\..\\b", "/a/..;v=1/b", "/a%2f..%2fb", "/a/."]
        {
            assert!(has_dot_segment(path.as_bytes()), "{path}");
        }
        for path in ["/", "", "/a.html", "/...", "/.well-known/a", "/a..b/..c", "/%2", "/a;..", "/%2e%2e%2e"]
        {
            assert!(!has_dot_segment(path.as_bytes()), "{path}");
        }
    }
}
