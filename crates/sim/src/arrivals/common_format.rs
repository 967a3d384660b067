//! The Common and Combined log formats, as Apache and nginx write them by default.
//!
//! ```text
//! [host:port] client ident user [01/Aug/1995:00:00:01 -0400] "GET /index.html HTTP/1.0" 200 1713 ["referer" "agent" ...]
//! ```
//!
//! Lines that bend the format are read too: a user's name with spaces, unescaped quotes in a request, `-` or nothing
//! for bytes, a request line without a version, a time in RFC 3339, lines that begin with the virtual host (Apache's
//! `vhost_combined`), and lines behind what a log server writes before them (RFC 3164, or with a time in RFC 3339).
//! What follows is the tail, in which a time may be (`times.rs`).

use super::entry::{Entry, split_request};
use super::times::skip_quoted;
use super::timestamp::Stamp;
use std::net::IpAddr;

/// A line of the Common format, for messages.
pub(super) const COMMON: &str =
    r#"203.0.113.7 - - [01/Aug/1995:00:00:01 -0400] "GET /index.html HTTP/1.0" 200 1713"#;
/// What a line of the Combined format has beyond one of the Common format.
pub(super) const COMBINED: &str = r#" "https://example.org/" "Mozilla/5.0""#;

/// A line that was read.
pub(super) struct CommonLine<'a> {
    pub(super) entry: Entry<'a>,
    /// Whether the line is of the Combined format.
    pub(super) combined: bool,
    /// What follows the format's own fields.
    pub(super) tail: &'a str,
}

/// Reads a line.
pub(super) fn parse(line: &str) -> Result<CommonLine<'_>, &'static str> {
    let (before, stamp, after) = split_time(line).ok_or("no time in brackets")?;
    let (host, client) = who(without_syslog(before)).ok_or("no client before the time")?;
    let quoted = after.trim_start().strip_prefix('"').ok_or("no request in quotes after the time")?;
    let (request, rest) = split_quoted(quoted).ok_or("no status after the request")?;
    let (method, target) = split_request(request).ok_or("no method and path in the request")?;
    let (_, rest) = split_word(rest);
    let (bytes, rest) = split_word(rest);
    let bytes = match bytes {
        "" | "-" => 0,
        bytes => bytes.parse().map_err(|_| "its bytes are neither a number nor -")?,
    };
    let rest = rest.trim_start();
    let combined = rest.starts_with('"');
    // The quoted texts behind the bytes are the referer and the agent.
    let tail = skip_text(skip_text(rest));
    let entry = Entry { stamp, client, method, host, target, bytes, service: None, own: None };
    Ok(CommonLine { entry, combined, tail })
}

/// The next word and what follows.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()))
}

/// What follows a quoted text if the line goes on with one; otherwise the text itself.
fn skip_text(text: &str) -> &str {
    text.trim_start().strip_prefix('"').map_or(text, |quoted| skip_quoted(quoted).1)
}

/// Splits at the first brackets that hold a time, because a user's name may have brackets too.
fn split_time(line: &str) -> Option<(&str, Stamp, &str)> {
    line.match_indices('[').find_map(|(open, _)| {
        let (time, after) = line[open + 1..].split_once(']')?;
        let stamp = Stamp::common(time).or_else(|| Stamp::rfc3339(time))?;
        Some((&line[..open], stamp, after))
    })
}

/// What follows a log server's own time, machine and program.
fn without_syslog(before: &str) -> &str {
    let mut words = before.split_ascii_whitespace();
    let (first, _, third) =
        (words.next().unwrap_or_default(), words.next(), words.next().unwrap_or_default());
    let is_month = first.len() == 3 && first.bytes().all(|letter| letter.is_ascii_alphabetic());
    let is_time = third.len() == 8 && third.split(':').filter(|part| part.parse::<u8>().is_ok()).count() == 3;
    match before.split_once(": ") {
        Some((_, line)) if (is_month && is_time) || Stamp::rfc3339(first).is_some() => line,
        _ => before,
    }
}

/// Virtual host and client, from the text before the time. They come before `ident user`, and a user's name may have spaces. If
/// the client is a list, as in `X-Forwarded-For`, its first entry counts.
fn who(before: &str) -> Option<(&str, &str)> {
    let (first, rest, is_list) = split_client(before);
    let (second, after, _) = split_client(rest);
    let address = |word: &str| word.parse::<IpAddr>().is_ok();
    if !is_list && after.split_ascii_whitespace().count() >= 2 && !address(first) {
        let port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        // An IPv6 address stands in brackets before its port.
        let name = |name: &str| !name.contains(':') || (name.starts_with('[') && name.ends_with(']'));
        let with_port = first.rsplit_once(':').is_some_and(|(host, number)| name(host) && port(number));
        if with_port || address(second) {
            return Some((first, second));
        }
    }
    (!first.is_empty()).then_some(("", first))
}

/// The next word, or the first entry of a comma-separated list; then what follows, and whether it is a list.
fn split_client(text: &str) -> (&str, &str, bool) {
    let (mut word, mut rest) = split_word(text);
    let first = word.trim_end_matches(',');
    let is_list = word.ends_with(',');
    while word.ends_with(',') {
        (word, rest) = split_word(rest);
    }
    (first, rest, is_list)
}

/// The quoted text and what follows. The text ends at the first unescaped quote that a status follows; if there is none, at an
/// escaped one.
fn split_quoted(text: &str) -> Option<(&str, &str)> {
    let ends = || text.match_indices('"').filter(|(at, _)| begins_with_status(&text[at + 1..]));
    let escaped = |at: usize| text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
    let (at, _) = ends().find(|(at, _)| !escaped(*at)).or_else(|| ends().next())?;
    Some((&text[..at], &text[at + 1..]))
}

fn begins_with_status(text: &str) -> bool {
    let word =
        text.strip_prefix(' ').and_then(|text| text.split_ascii_whitespace().next()).unwrap_or_default();
    word == "-" || (word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "[01/Aug/1995:00:00:01 -0400]";

    fn parsed(line: &str) -> Entry<'_> {
        parse(line).unwrap_or_else(|why| panic!("{why}: {line}")).entry
    }

    #[test]
    fn the_examples_in_messages() {
        let entry = parsed(COMMON);
        assert_eq!((entry.client, entry.method, entry.target), ("203.0.113.7", "GET", "/index.html"));
        assert_eq!((entry.host, entry.bytes, entry.stamp.micros), ("", 1713, 807_249_601_000_000));
        assert!(!parse(COMMON).unwrap().combined);
        let combined = COMMON.to_owned() + COMBINED;
        assert!(parse(&combined).unwrap().combined);
        for (line, tail) in [
            (COMMON.to_owned() + " 4711", "4711"),
            (combined.clone() + r#" "-" 0.005"#, r#" "-" 0.005"#),
            (combined, ""),
            (COMMON.to_owned() + r#" "only a referer"#, ""),
        ] {
            assert_eq!(parse(&line).unwrap().tail, tail, "{line}");
        }
    }

    #[test]
    fn who_asks_which_host() {
        for (before, host, client) in [
            ("192.0.2.1 - -", "", "192.0.2.1"),
            ("pc1.example.org - frank", "", "pc1.example.org"),
            ("2001:db8::1 - -", "", "2001:db8::1"),
            ("::1 - a long name", "", "::1"),
            ("192.0.2.1 - a b c", "", "192.0.2.1"),
            ("pc1.example.org - a b", "", "pc1.example.org"),
            ("www.example.org:80 192.0.2.1 - -", "www.example.org:80", "192.0.2.1"),
            ("[2001:db8::80]:443 2001:db8::1 - -", "[2001:db8::80]:443", "2001:db8::1"),
            ("www.example.org:443 pc1.example.org - -", "www.example.org:443", "pc1.example.org"),
            ("www.example.org 192.0.2.1 - -", "www.example.org", "192.0.2.1"),
            ("192.0.2.1 - [admin] x", "", "192.0.2.1"),
            ("192.0.2.1", "", "192.0.2.1"),
            ("192.0.2.1, 198.51.100.7 - -", "", "192.0.2.1"),
            ("192.0.2.1, 198.51.100.7, 2001:db8::1 - a b", "", "192.0.2.1"),
            ("unknown, 198.51.100.7 - -", "", "unknown"),
            ("192.0.2.1,198.51.100.7 - -", "", "192.0.2.1,198.51.100.7"),
            ("www.example.org:80 192.0.2.1, 198.51.100.7 - -", "www.example.org:80", "192.0.2.1"),
            ("www.example.org 192.0.2.1, 198.51.100.7 - -", "www.example.org", "192.0.2.1"),
            ("2024-05-01T12:00:00+00:00 web1 nginx: 192.0.2.1 - -", "", "192.0.2.1"),
            ("May  1 12:00:00 web1 nginx[7]: shop:80 192.0.2.1 - -", "shop:80", "192.0.2.1"),
            ("2001:db8:::80 pc1 - a b", "", "2001:db8:::80"),
        ] {
            let line = format!(r#"{before} {TIME} "GET / HTTP/1.0" 200 5"#);
            let entry = parsed(&line);
            assert_eq!((entry.host, entry.client), (host, client), "{before}");
        }
    }

    #[test]
    fn a_time_may_be_as_in_rfc_3339() {
        for time in ["1995-08-01T00:00:01-04:00", "1995-08-01T04:00:01Z"] {
            let line = format!(r#"203.0.113.7 - - [{time}] "GET /index.html HTTP/1.0" 200 1713"#);
            assert_eq!(parsed(&line).stamp.micros, 807_249_601_000_000, "{time}");
        }
    }

    #[test]
    fn requests_in_the_wild() {
        for (after, method, target, bytes) in [
            (r#""GET /a HTTP/1.0" 200 -"#, "GET", "/a", 0),
            (r#""GET /a HTTP/1.0" 200"#, "GET", "/a", 0),
            (r#""GET /a" 404 12"#, "GET", "/a", 12),
            (r#""GET /a" - 12"#, "GET", "/a", 12),
            (r#""GET /a"b" HTTP/1.0" 200 7"#, "GET", r#"/a"b""#, 7),
            (r#""GET /a\"b HTTP/1.1" 200 7 "-" "x \" y""#, "GET", r#"/a\"b"#, 7),
            (r#""GET /a\" 200 5 HTTP/1.1" 400 7"#, "GET", r#"/a\" 200 5"#, 7),
            (r#""GET /a\" 200 5"#, "GET", r"/a\", 5),
            (r#""GET /a\\" 200 5"#, "GET", r"/a\\", 5),
            (r#""GET /a b HTTP/1.0" 200 1"#, "GET", "/a b", 1),
            (r#""POST http://example.org/x HTTP/1.1" 200 1"#, "POST", "http://example.org/x", 1),
            (r#""GET /a HTTP/1.1" 200 1 "-" "agent" 0.005 more"#, "GET", "/a", 1),
        ] {
            let line = format!("192.0.2.1 - - {TIME} {after}");
            let entry = parsed(&line);
            assert_eq!((entry.method, entry.target, entry.bytes), (method, target, bytes), "{after}");
        }
    }

    #[test]
    fn what_is_wrong() {
        for (line, why) in [
            ("", "no time"),
            ("hello", "no time"),
            (r#"192.0.2.1 - - [01/Foo/1995:00:00:01 -0400] "GET / HTTP/1.0" 200 1"#, "no time"),
            (&format!(r#"{TIME} "GET / HTTP/1.0" 200 1"#), "no client"),
            (&format!("192.0.2.1 - - {TIME} GET / 200 1"), "no request"),
            (&format!(r#"192.0.2.1 - - {TIME} "GET / HTTP/1.0"#), "no status"),
            (&format!(r#"192.0.2.1 - - {TIME} "GET / HTTP/1.0" ok 1"#), "no status"),
            (&format!(r#"192.0.2.1 - - {TIME} "-" 408 -"#), "no method"),
            (&format!(r#"192.0.2.1 - - {TIME} "GET / HTTP/1.0" 200 many"#), "its bytes"),
        ] {
            let found = parse(line).err().unwrap();
            assert!(found.starts_with(why), "{line}: {found}");
        }
    }
}
