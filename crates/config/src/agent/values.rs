//! Values that only an agent's file has: pages over HTTP, and names that nginx and Apache read.
//!
//! Such a name is written into another program's configuration, so its form is checked to make sure that it stays one word
//! there.

use super::{HttpUrl, OnExit, Scheme};
use crate::diagnostic::quoted;
use crate::gateway::addresses::HostPort;
use crate::syntax::{Refusal, TextField, TextShape, bad, texts, words};

words!(OnExit {
    "restore" => Restore, "full quality for everybody";
    "keep" => Keep, "what was chosen last";
});

impl TextField for HttpUrl {
    const SHAPE: TextShape = TextShape {
        what: "a page over HTTP or HTTPS",
        example: "http://127.0.0.1/robots.txt",
        pattern: Some("^https?://[^ /]+(/[^ #]*)?$"),
        unit: None,
    };

    fn parse(text: &str) -> Result<Self, Refusal> {
        let plain = text.strip_prefix("http://").map(|rest| (Scheme::Http, rest, 80));
        let tls = || text.strip_prefix("https://").map(|rest| (Scheme::Https, rest, 443));
        let Some((scheme, rest, port)) = plain.or_else(tls) else {
            let rest = text.split_once("://").map_or(text, |(_, rest)| rest).trim_start_matches('/');
            let help = format!("write `\"http://{}\"`", quoted(rest));
            return bad(format!("`{}` does not begin with http:// or https://", quoted(text)), help);
        };
        let (authority, target) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.ends_with(']'));
        let address = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
        let address = HostPort::parse(&address)?.0;
        if target.chars().any(|c| c.is_whitespace() || c.is_control() || c == '#') {
            let message = format!("no request could carry `{}`", quoted(target));
            return bad(message, "percent-encode what is not printable");
        }
        Ok(HttpUrl { scheme, address, host: authority.to_owned(), target: target.to_owned() })
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// Characters that would end a word, or begin something else, in a configuration of nginx or a map of Apache.
const SPECIAL: &[char] = &['"', '\'', '\\', ';', '{', '}', '$', '#'];

texts! {
    /// A content tree's name.
    TreeName(String, "a tree's name", "/srv/trees/full", Some("^[^\\s\"'\\\\;{}$#]+$")) = |text| {
        let special = |c: char| c.is_whitespace() || c.is_control() || SPECIAL.contains(&c);
        if text.is_empty() || text.contains(special) {
            let message = format!("`{}` cannot be a tree's name", quoted(text));
            let help = "use no blanks, quotes, `\\`, `;`, `{`, `}`, `$` or `#`: servers read it in their configuration";
            return bad(message, help);
        }
        Ok(text.to_owned())
    };
    /// A variable of nginx, without `$`.
    Variable(String, "a variable's name", "plimsoll_tree", Some("^\\$?[A-Za-z0-9_]+$")) =
        |text| match text.strip_prefix('$').unwrap_or(text) {
            name if is_word(name) => Ok(name.to_owned()),
            _ => bad(
                format!("`{}` is no variable of nginx", quoted(text)),
                "use letters, digits and `_`, such as `\"plimsoll_tree\"`",
            ),
        };
    /// What a client is, in variables of nginx.
    ClientVariable(String, "variables of nginx", "$remote_addr", Some("^(\\$[A-Za-z0-9_]+)+$")) = |text| {
        let mut names = text.split('$');
        if names.next() == Some("") && text.len() > 1 && names.all(is_word) {
            return Ok(text.to_owned());
        }
        bad(
            format!("`{}` does not say what a client is", quoted(text)),
            "write a variable of nginx, such as `\"$remote_addr\"` or `\"$cookie_session\"`",
        )
    };
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_over_http() {
        let page = |text: &str| HttpUrl::parse(text).map(|url| (url.address, url.host, url.target));
        let parts = |a: &str, h: &str, t: &str| Ok((a.to_owned(), h.to_owned(), t.to_owned()));
        assert_eq!(page("http://a.example"), parts("a.example:80", "a.example", "/"));
        assert_eq!(page("http://127.0.0.1:81/x?auto"), parts("127.0.0.1:81", "127.0.0.1:81", "/x?auto"));
        assert_eq!(page("https://a.example/x"), parts("a.example:443", "a.example", "/x"));
        assert_eq!(HttpUrl::parse("https://a.example/x").unwrap().show(), "https://a.example/x");
        assert_eq!(page("http://[::1]/x"), parts("[::1]:80", "[::1]", "/x"));
        for wrong in ["a.example/x", "http://", "http://a b/", "http://a/\r\nx: y", "http://a:0/"] {
            assert!(page(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn nothing_can_leave_its_place_in_another_configuration() {
        for wrong in ["", "a b", "a;", "a\"", "a\n", "a}", "$x", "a#"] {
            assert!(TreeName::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(TreeName::parse("/srv/bäume/full").is_ok());
        for wrong in ["", "$", "remote_addr", "$a;", "$a b", "$a$"] {
            assert!(ClientVariable::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(ClientVariable::parse("$remote_addr$http_x").is_ok());
        assert_eq!(Variable::parse("$tree").map(|name| name.0).ok(), Some("tree".to_owned()));
    }
}
