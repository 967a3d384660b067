//! References from a page to files of its site, resolved as a browser does (RFC 3986, 5), without a host.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;

/// The characters that are escaped in a path; all others may stand in an attribute as they are.
const PATH: AsciiSet = NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'.')
    .remove(b'-')
    .remove(b'_')
    .remove(b'~')
    .remove(b':')
    .remove(b'@')
    .remove(b'(')
    .remove(b')')
    .remove(b',')
    .remove(b'+')
    .remove(b'=');

/// Where a reference leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A decoded path in the site, without its first slash. The file may not exist.
    Local(String),
    /// A place in the same page, or data in the reference itself.
    Here,
    /// Another host or another scheme.
    Elsewhere,
}

/// Resolves `reference` on a page whose folder (its path, or its `<base>`, up to the last slash) is `folder`.
pub(crate) fn resolve(folder: &str, reference: &str) -> Target {
    // Browsers drop line ends and tabs anywhere in a reference, and blanks around it.
    let trimmed: String = reference.trim().chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
    let path = &trimmed[..trimmed.find(['?', '#']).unwrap_or(trimmed.len())];
    if path.is_empty() {
        return Target::Here;
    }
    if let Some((scheme, _)) = path.split_once(':')
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    {
        return if scheme.eq_ignore_ascii_case("data") { Target::Here } else { Target::Elsewhere };
    }
    let path = path.replace('\\', "/");
    if path.starts_with("//") {
        return Target::Elsewhere;
    }
    let whole = if path.starts_with('/') { path } else { format!("{folder}{path}") };
    let plain = without_dots(&whole);
    // If the decoded path is not UTF-8, it names no file of the tree and stays as it was.
    let decoded = percent_decode_str(&plain).decode_utf8().map(Cow::into_owned);
    Target::Local(decoded.unwrap_or(plain))
}

/// The folder to which references on the page at `path` are relative.
pub(crate) fn folder(path: &str) -> &str {
    &path[..path.rfind('/').map_or(0, |slash| slash + 1)]
}

fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        match segment {
            "." | "%2e" | "%2E" => {}
            ".." => drop(kept.pop()),
            "" if !last => continue,
            segment => {
                kept.push(segment);
                continue;
            }
        }
        if last {
            kept.push("");
        }
    }
    // A folder keeps its slash, because the server answers it with the index of the folder.
    kept.join("/")
}

/// A reference from a page in `folder` to the file at `path`, in a form fit for an attribute.
pub(crate) fn relative(folder: &str, path: &str) -> String {
    let shared = folder
        .split_inclusive('/')
        .zip(path.split_inclusive('/'))
        .take_while(|(one, other)| one == other && one.ends_with('/'))
        .map(|(one, _)| one.len())
        .sum();
    let up = folder[shared..].matches('/').count();
    let rest = &path[shared..];
    // A colon in the first segment would be read as the end of a scheme.
    let here =
        if up == 0 && rest.split('/').next().is_some_and(|first| first.contains(':')) { "./" } else { "" };
    format!("{}{here}{}", "../".repeat(up), utf8_percent_encode(rest, &PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_resolve_as_in_a_browser() {
        let local = |path: &str| Target::Local(path.to_owned());
        for (folder, reference, expected) in [
            ("a/b/", "c.png", local("a/b/c.png")),
            ("a/b/", "../c.png?x=1#y", local("a/c.png")),
            ("a/b/", "/c.png", local("c.png")),
            ("a/", "../../../c.png", local("c.png")),
            ("a/", "./", local("a/")),
            ("a/", "..", local("")),
            ("", "Foto%20%C3%BC.JPG", local("Foto ü.JPG")),
            ("", " a b.png\n", local("a b.png")),
            ("", "b%zz%", local("b%zz%")),
            ("x/", "a//b", local("x/a/b")),
            ("", "#top", Target::Here),
            ("", "?page=2", Target::Here),
            ("", "data:,", Target::Here),
            ("", "http://example.org/a", Target::Elsewhere),
            ("", "//example.org/a", Target::Elsewhere),
            ("", "mailto:a@b", Target::Elsewhere),
            ("", "javascript:void(0)", Target::Elsewhere),
            ("", "a/b:c", local("a/b:c")),
        ] {
            assert_eq!(resolve(folder, reference), expected, "{reference} in {folder}");
        }
    }

    #[test]
    fn what_is_made_relative_resolves_to_the_same() {
        for (folder, path) in [
            ("", "a.png"),
            ("a/b/", "a/c/d e.png"),
            ("a/b/", "a/b/c.png"),
            ("a/b/", "ü%.png"),
            ("", "x:y.png"),
            ("ab/", "a/b.png"),
        ] {
            let reference = relative(folder, path);
            assert!(reference.is_ascii());
            assert_eq!(resolve(folder, &reference), Target::Local(path.to_owned()), "{reference}");
        }
    }
}
