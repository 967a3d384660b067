//! From a request's path to a name beneath the root.
//!
//! The path is split at its slashes first, and each segment is decoded after that, so that an encoded slash cannot make a
//! segment. `.` and `..`, plain or encoded, are refused and not resolved: clients resolve them before they send a path
//! (RFC 3986, 5.2.4), and `/../full/x` behind the prefix `/light` would let the client choose its level. Backslashes and
//! control characters are refused because other layers read them as separators or ends. Names that begin with a dot
//! (`.git`, `.htpasswd`) are not served, but for `.well-known` (RFC 8615). Empty segments are skipped.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use std::borrow::Cow;

/// The name beneath the root; the name of a folder is empty or ends with a slash. The error is the status of the response.
pub(super) fn normalize(raw: &str) -> Result<Cow<'_, [u8]>, u16> {
    let path = raw.strip_prefix('/').ok_or(400_u16)?.as_bytes();
    if is_plain(path) {
        return Ok(Cow::Borrowed(path));
    }
    let mut name = Vec::with_capacity(path.len());
    let mut segments = path.split(|&byte| byte == b'/').peekable();
    while let Some(segment) = segments.next() {
        if segment.is_empty() {
            continue;
        }
        let start = name.len();
        decode(segment, &mut name)?;
        check(&name[start..])?;
        if segments.peek().is_some() {
            name.push(b'/');
        }
    }
    Ok(Cow::Owned(name))
}

/// Whether the path already is the name: it has no encoding, no empty segment, and no segment that begins with a dot.
fn is_plain(path: &[u8]) -> bool {
    let mut previous = b'/';
    path.iter().all(|&byte| {
        let odd = matches!(byte, 0..=0x1f | 0x7f | b'%' | b'\\');
        let begins_oddly = previous == b'/' && matches!(byte, b'/' | b'.');
        previous = byte;
        !odd && !begins_oddly
    })
}

/// Decodes a segment by hand, since the percent-encoding library leaves a malformed `%` unchanged, which here is a bad request.
fn decode(segment: &[u8], name: &mut Vec<u8>) -> Result<(), u16> {
    let mut rest = segment.iter();
    while let Some(&byte) = rest.next() {
        if byte != b'%' {
            name.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|&digit| char::from(digit).to_digit(16)).ok_or(400_u16);
        let (high, low) = (digit()?, digit()?);
        name.push((high * 16 + low) as u8);
    }
    Ok(())
}

fn check(segment: &[u8]) -> Result<(), u16> {
    if matches!(segment, b"." | b"..")
        || segment.iter().any(|byte| matches!(byte, 0..=0x1f | 0x7f | b'\\' | b'/'))
    {
        return Err(400);
    }
    if segment.starts_with(b".") && segment != b".well-known" {
        return Err(404);
    }
    Ok(())
}

/// RFC 3986's unreserved characters.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Percent-encodes one segment: every character but the unreserved ones.
pub(super) fn encode(segment: &[u8]) -> String {
    percent_encode(segment, UNRESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (raw, name) in [
            ("/", ""),
            ("//", ""),
            ("/a.html", "a.html"),
            ("/a/b/", "a/b/"),
            ("/a//b", "a/b"),
            ("//a///", "a/"),
            ("/%61%2Ecss", "a.css"),
            ("/a..b/c.", "a..b/c."),
            ("/.well-known/x", ".well-known/x"),
            ("/a+b%20c", "a+b c"),
            ("/%C3%A9", "\u{e9}"),
        ] {
            assert_eq!(normalize(raw).as_deref(), Ok(name.as_bytes()), "{raw}");
        }
        assert!(matches!(normalize("/plain/name.html"), Ok(Cow::Borrowed(_))));
    }

    #[test]
    fn refusals() {
        for raw in [
            "",
            "a",
            "*",
            "/..",
            "/../a",
            "/a/../b",
            "/a/..",
            "/.",
            "/./a",
            "/%2e%2e/a",
            "/.%2E/a",
            "/%2e",
            "/a%2fb",
            "/..%2f..%2fetc",
            "/a\\b",
            "/..\\a",
            "/%5c..%5ca",
            "/a%00",
            "/a%0d%0ab",
            "/a\u{7f}",
            "/%",
            "/%4",
            "/%4g",
            "/%+1",
        ] {
            assert_eq!(normalize(raw), Err(400), "{raw}");
        }
        for raw in ["/.git/config", "/a/.htpasswd", "/%2egit", "/...", "/.well-known/.x"] {
            assert_eq!(normalize(raw), Err(404), "{raw}");
        }
    }

    #[test]
    fn an_encoded_segment_decodes_to_itself() {
        let bytes: Vec<u8> =
            (0x20..=0xff).filter(|&byte| !matches!(byte, b'/' | b'\\' | 0x7f | b'.')).collect();
        assert_eq!(normalize(&format!("/{}", encode(&bytes))).as_deref(), Ok(&bytes[..]));
    }
}
