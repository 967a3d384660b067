//! Fields of a response that name a path of the site: the prefix of a level is removed from them again, since only the server
//! knows it. A client that followed a redirect to a path with the prefix would get it twice, and stay light for ever. Pure.
//!
//! | field | what is cut |
//! |---|---|
//! | `Location`, `Content-Location`, `Refresh`'s URL | the prefix; scheme and authority too, if they are the server's own |
//! | `Set-Cookie` | the prefix of `Path` |

use super::host_name::host_of;
use core::ops::Range;

/// The host that the authority of a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The host that the client asked.
    Site,
    /// The server itself by a name that is not the client's affair.
    Server,
    /// Another host, whose paths have nothing to do with the prefix.
    Other,
}

impl Authority {
    /// The authority's kind for a server whose only name is the host that the client asked, at whatever port.
    pub fn of(authority: &[u8], host: &[u8]) -> Authority {
        let is_own = host_of(authority).eq_ignore_ascii_case(host_of(host));
        if is_own { Authority::Site } else { Authority::Other }
    }
}

/// The path that the server was asked for, as far as the client did not ask for it.
#[derive(Clone, Copy, Debug)]
pub struct Prefixed<'a> {
    /// The part of the path before the prefix, at which an application is mounted.
    pub root: &'a [u8],
    /// The prefix that the level has put there; empty if the path went as it came.
    pub prefix: &'a [u8],
}

/// The part of a field's value that the client must not see, and what is there instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The bytes of the text that are replaced.
    pub part: Range<usize>,
    /// The text in place of the part, which is shorter: a slash or nothing.
    pub instead: &'static [u8],
}

impl Cut {
    /// The value as the client must see it, in pieces.
    pub fn pieces<'a>(&self, value: &'a [u8]) -> [&'a [u8]; 3] {
        [&value[..self.part.start], self.instead, &value[self.part.end..]]
    }

    /// The cut after which a path begins with one slash. With two it would name another host. Browsers take a backslash for a
    /// slash, and leave out tabs.
    fn on_the_site(self, value: &[u8]) -> Cut {
        let rest = value[self.part.end..].iter();
        let slashes = rest.take_while(|byte| b"/\\\t".contains(byte)).count();
        if slashes + self.instead.len() < 2 {
            return self;
        }
        Cut { part: self.part.start..self.part.end + slashes, instead: b"/" }
    }
}

impl Prefixed<'_> {
    /// The part of a response's field that the client must not see; `None` if the field stays as it is. `whom` tells whose a
    /// scheme, with its slashes, and an authority are.
    pub fn cut(self, name: &[u8], value: &[u8], whom: impl FnOnce(&[u8], &[u8]) -> Authority) -> Option<Cut> {
        // Most fields are distinguished by their length alone.
        match name.len() {
            8 if name.eq_ignore_ascii_case(b"location") => self.reference(0, value, whom),
            16 if name.eq_ignore_ascii_case(b"content-location") => self.reference(0, value, whom),
            7 if name.eq_ignore_ascii_case(b"refresh") => {
                let at = value.windows(4).position(|part| part.eq_ignore_ascii_case(b"url="))? + 4;
                let is_quoted = value.get(at).is_some_and(|byte| b"'\"".contains(byte));
                self.reference(at + usize::from(is_quoted), value, whom)
            }
            10 if name.eq_ignore_ascii_case(b"set-cookie") => self.cookie(value),
            _ => None,
        }
    }

    /// A URL, or a reference that begins with a path, from this place on.
    fn reference(self, at: usize, value: &[u8], whom: impl FnOnce(&[u8], &[u8]) -> Authority) -> Option<Cut> {
        let url = &value[at..];
        if url.starts_with(b"/") && !url.starts_with(b"//") {
            let cut = self.path(at, value)?;
            return Some(if self.root.is_empty() { cut.on_the_site(value) } else { cut });
        }
        let authority_at = at + url.windows(3).position(|part| part == b"://")? + 3;
        let length = value[authority_at..].iter().position(|byte| b"/?#".contains(byte));
        let path_at = length.map_or(value.len(), |length| authority_at + length);
        match whom(&value[at..authority_at], &value[authority_at..path_at]) {
            Authority::Site => self.path(path_at, value),
            Authority::Server => {
                let instead: &[u8] = if value[path_at..].starts_with(b"/") { b"" } else { b"/" };
                // A server with a name of its own is asked for all paths: there is no root.
                let cut = self.path(path_at, value).filter(|_| self.root.is_empty());
                let cut = cut.unwrap_or(Cut { part: path_at..path_at, instead });
                Some(Cut { part: at..cut.part.end, ..cut }.on_the_site(value))
            }
            Authority::Other => None,
        }
    }

    fn cookie(self, value: &[u8]) -> Option<Cut> {
        let mut at = value.iter().position(|&byte| byte == b';')? + 1;
        for attribute in value[at..].split(|&byte| byte == b';') {
            let path = attribute.trim_ascii_start();
            if path.get(..5).is_some_and(|name| name.eq_ignore_ascii_case(b"path=")) {
                let end = at + attribute.trim_ascii_end().len();
                return self.path(at + attribute.len() - path.len() + 5, &value[..end]);
            }
            at += attribute.len() + 1;
        }
        None
    }

    /// The cut of the prefix from a path that begins at this place, if the path has it.
    fn path(self, at: usize, value: &[u8]) -> Option<Cut> {
        let rest = value[at..].strip_prefix(self.root)?.strip_prefix(self.prefix)?;
        let instead: &[u8] = match rest.first() {
            _ if self.prefix.is_empty() => return None,
            None | Some(b'?' | b'#') => b"/",
            Some(b'/') => b"",
            Some(_) => return None,
        };
        let from = at + self.root.len();
        Some(Cut { part: from..from + self.prefix.len(), instead })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;

    /// What a client that asked `shop.example:8080` sees of an application that is mounted at `root`.
    fn seen(root: &str, name: &str, value: &str) -> String {
        let prefixed = Prefixed { root: root.as_bytes(), prefix: b"/light" };
        let cut = prefixed.cut(name.as_bytes(), value.as_bytes(), |scheme, authority| {
            assert!(scheme.ends_with(b"://"));
            if authority == b"inner:81" {
                Authority::Server
            } else {
                Authority::of(authority, b"shop.example:8080")
            }
        });
        let seen = cut.map_or(value.as_bytes().to_vec(), |cut| cut.pieces(value.as_bytes()).concat());
        assert!(seen.len() <= value.len(), "{value}");
        String::from_utf8(seen).expect("text")
    }

    #[test]
    fn references_lead_to_where_the_client_asks() {
        for (value, expected) in [
            ("/light/page", "/page"),
            ("/light", "/"),
            ("/light?a=/light/b", "/?a=/light/b"),
            ("/lighter/page", "/lighter/page"),
            ("//light/page", "//light/page"),
            ("page", "page"),
            ("http://shop.example/light/a#b", "http://shop.example/a#b"),
            ("HTTPS://Shop.Example:443/light", "HTTPS://Shop.Example:443/"),
            ("http://other.example/light/a", "http://other.example/light/a"),
            ("http://inner:81/light/a", "/a"),
            ("http://inner:81/a", "/a"),
            ("http://inner:81?a", "/?a"),
            ("mailto:someone", "mailto:someone"),
            ("/light//evil.example/", "/evil.example/"),
            ("/light/\\evil.example/", "/evil.example/"),
            ("/light/\t/\\/evil.example/", "/evil.example/"),
            ("http://inner:81//evil.example/", "/evil.example/"),
            ("http://inner:81/\\evil.example/", "/evil.example/"),
            ("http://inner:81/light//evil.example/", "/evil.example/"),
            ("http://shop.example/light//a", "http://shop.example//a"),
        ] {
            assert_eq!(seen("", "Location", value), expected);
            assert_eq!(seen("", "content-location", value), expected);
            assert_eq!(seen("", "refresh", &format!("5; URL='{value}")), format!("5; URL='{expected}"));
            assert_eq!(seen("", "x-location", value), value);
        }
    }

    #[test]
    fn paths_of_cookies_too() {
        for (value, expected) in [
            ("a=/light/; Path=/light/b; Secure", "a=/light/; Path=/b; Secure"),
            ("a=b;path=/light", "a=b;path=/"),
            ("a=b; path=/light ; Secure", "a=b; path=/ ; Secure"),
            ("path=/light/b", "path=/light/b"),
            ("a=b; Path=/", "a=b; Path=/"),
        ] {
            assert_eq!(seen("", "set-cookie", value), expected);
        }
    }

    #[test]
    fn what_is_before_the_prefix_stays() {
        assert_eq!(seen("/shop", "location", "/shop/light/a"), "/shop/a");
        assert_eq!(
            seen("/shop", "location", "http://shop.example:8080/shop/light"),
            "http://shop.example:8080/shop/"
        );
        assert_eq!(seen("/shop", "set-cookie", "a=b; Path=/shop/light"), "a=b; Path=/shop/");
        assert_eq!(seen("/shop", "location", "/light/a"), "/light/a");
        assert_eq!(seen("/shop", "location", "/shop/light//a"), "/shop//a");
    }
}
