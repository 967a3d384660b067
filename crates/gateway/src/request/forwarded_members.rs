//! The members of a `Forwarded` field and their parameters (RFC 7239 4).
//!
//! A comma or a semicolon in a quoted string separates nothing, so that a host name that a client chose, and a proxy quotes,
//! cannot add a parameter. Values are read from the end, where proxies add their members, so that a quote that a client leaves
//! open hides no member of a proxy.

/// The members of a field's value, the last one first, trimmed and without empty ones.
pub(super) fn members(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    parts(value, b',').filter(|member| !member.is_empty())
}

/// The first parameter of this name in a member, without quotes. The name ends with its equals sign.
pub(super) fn parameter<'a>(member: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let own = |pair: &'a [u8]| {
        let (found, value) = pair.split_at_checked(name.len())?;
        found.eq_ignore_ascii_case(name).then_some(value)
    };
    let value = parts(member, b';').filter_map(own).last()?;
    Some(value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value))
}

/// The parts between separators outside of quoted strings, the last one first, trimmed.
fn parts(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (before, part) = match last_separator(text, separator) {
            Some(at) => (Some(&text[..at]), &text[at + 1..]),
            None => (None, text),
        };
        rest = before;
        Some(part.trim_ascii())
    })
}

fn last_separator(text: &[u8], separator: u8) -> Option<usize> {
    let mut is_quoted = false;
    (0..text.len()).rev().find(|&at| match text[at] {
        b'"' => {
            // A backslash before a quote makes the quote a character of the string, unless the backslash is escaped itself.
            let backslashes = text[..at].iter().rev().take_while(|&&byte| byte == b'\\').count();
            is_quoted = !is_quoted || backslashes % 2 == 1;
            false
        }
        byte => byte == separator && !is_quoted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(value: &str) -> Vec<&str> {
        let members = members(value.as_bytes()).map(|member| std::str::from_utf8(member).expect("text"));
        members.collect()
    }

    #[test]
    fn a_separator_in_quotes_separates_nothing() {
        assert_eq!(all(" for=a ,, for=b\t,"), ["for=b", "for=a"]);
        assert_eq!(all(r#"for="a,b";host="c, d", for=e"#), ["for=e", r#"for="a,b";host="c, d""#]);
        assert_eq!(all(r#"host="a\",\\",for=b"#), ["for=b", r#"host="a\",\\""#]);
        let member = br#"host="x;proto=https;for=1.1.1.1"; Proto=http;for="[::1]:80""#;
        let parameters = [&b"host="[..], b"proto=", b"for=", b"by="].map(|name| parameter(member, name));
        let expected = [&b"x;proto=https;for=1.1.1.1"[..], b"http", b"[::1]:80"].map(Some);
        assert_eq!(parameters, [expected[0], expected[1], expected[2], None]);
        assert_eq!(parameter(b"for=a;for=b", b"for="), Some(&b"a"[..]), "the first counts");
    }

    /// The text of a client stands before the text that its proxy adds.
    #[test]
    fn an_open_quote_hides_no_member_after_it() {
        for own in ["for=203.0.113.9", r#"for="[2001:db8::1]""#, r#"for=9.9.9.9;host="a\"b,c""#] {
            for opened in ["for=\"1.1.1.1", "\"", "for=\"a\\", "for=\"a\", \"b, c", "\\\""] {
                let value = format!("{opened}, {own}");
                assert_eq!(all(&value).first(), Some(&own), "{value}");
            }
        }
    }
}
