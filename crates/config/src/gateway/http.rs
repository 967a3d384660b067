//! Values that are pieces of HTTP: patterns, hosts, header and cookie names, methods, path prefixes.

use crate::diagnostic::{Code, Complaint, quoted};
use crate::syntax::{bad, texts};

texts! {
    /// Text with at most one `*`.
    Pattern(String, "a pattern", "/buy/*", Some("^[^*]*[*]?[^*]*$")) = |text| {
        if text.matches('*').count() > 1 {
            let message = format!("the pattern `{}` has more than one `*`", quoted(text));
            return bad(
                message,
                "keep one `*`, which stands for any run of characters; list several patterns",
            );
        }
        Ok(text.to_owned())
    };
    /// A pattern of paths.
    PathPattern(String, "a pattern of paths", "/buy/*", Some("^[/*][^*]*[*]?[^*]*$")) = |text| {
        if !text.starts_with(['/', '*']) {
            let message = format!("the pattern `{}` matches no path: paths begin with `/`", quoted(text));
            return bad(message, format!("write `\"/{}\"`", quoted(text)));
        }
        if text.contains(['?', '#']) {
            let message =
                format!("the pattern `{}` matches no path: paths are compared without query", quoted(text));
            return bad(message, "leave out what follows the `?`");
        }
        if text.contains(['%', ';']) || text.contains("//") {
            let message = format!("the pattern `{}` matches no path", quoted(text));
            return bad(message, "paths are compared decoded, without `;` parameters and with single slashes: write it so");
        }
        Pattern::parse(text).map(|pattern| pattern.0)
    };
    /// A pattern of hosts, in lower case, without port.
    HostPattern(String, "a pattern of hosts", "*.shop.example", None) = |text| {
        let message = format!("`{}` is no host", quoted(text));
        if let Some((_, rest)) = text.split_once("://") {
            let host = rest.split(['/', ':']).next().unwrap_or(rest);
            return bad(message, format!("write the host alone: `\"{}\"`", quoted(host)));
        }
        let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if bracketed.is_some_and(|address| address.parse::<std::net::Ipv6Addr>().is_ok()) {
            return Ok(text.to_ascii_lowercase());
        }
        if let Some((host, _)) = text.split_once(':') {
            return bad(message, format!("write it without port: `\"{}\"`", quoted(host)));
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._*".contains(c);
        if text.is_empty() || !text.chars().all(fits) {
            let help = "use letters, digits, `-` and `.`; write international names in their `xn--` form";
            return bad(message, help);
        }
        Pattern::parse(text).map(|pattern| pattern.0.to_ascii_lowercase())
    };
    /// A host, with its port if it has one.
    HostName(String, "a host", "shop.example", None) = |text| {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
        if !text.is_empty() && text.chars().all(fits) {
            return Ok(text.to_ascii_lowercase());
        }
        bad(format!("`{}` is no host", quoted(text)), "write the host alone, such as `\"shop.example\"`")
    };
    /// A header's name, in lower case.
    HeaderName(String, "a header name", "x-plan", None) = |text| {
        if is_token(text) {
            return Ok(text.to_ascii_lowercase());
        }
        bad(format!("`{}` is no header name", quoted(text)), "use letters, digits and `-`, such as `x-plan`")
    };
    /// The name of a header that a level or a rule may change.
    SetHeaderName(String, "a header name", "x-quality", None) = |text| {
        let name = HeaderName::parse(text)?.0;
        if FRAMING.contains(&name.as_str()) {
            let message = format!("`{name}` cannot be changed: the gateway itself writes it");
            let help = match name.as_str() {
                "host" => "the server is told the host that the client asked for; for another one write `host` under \
                           `[upstream.NAME]`",
                _ => "use a header of your own, such as `x-quality`",
            };
            return Err((Code::Conflict, Complaint::new(message, help)));
        }
        Ok(name)
    };
    /// A header's value.
    HeaderValue(String, "a header value", "low", Some("^[ -~]*$")) = |text| {
        if is_variable(text) {
            let message = format!("`{}` would be sent as it stands: values have no variables", quoted(text));
            let help = "leave it out: `X-Forwarded-For`, `-Proto` and `-Host` tell the server its client without any rule; or write \
                        a text that is always the same";
            return bad(message, help);
        }
        if text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) && text.trim() == text {
            return Ok(text.to_owned());
        }
        let message = format!("`{}` cannot be a header's value", quoted(text));
        bad(message, "use printable ASCII, without line breaks and without spaces at its ends")
    };
    /// A media type.
    ContentType(String, "a content type", "text/html; charset=utf-8", None) = |text| {
        let (kind, subtype) = text.split(';').next().unwrap_or("").split_once('/').unwrap_or(("", ""));
        if is_token(kind) && is_token(subtype.trim_end()) {
            return HeaderValue::parse(text).map(|value| value.0);
        }
        let message = format!("`{}` is no content type", quoted(text));
        bad(message, "write type and subtype, such as `\"text/html; charset=utf-8\"`")
    };
    /// A cookie's name.
    CookieName(String, "a cookie name", "session", None) = |text| {
        if is_token(text) {
            return Ok(text.to_owned());
        }
        let message = format!("`{}` is no cookie name", quoted(text));
        bad(message, "use letters, digits, `-` and `_`, such as `session`")
    };
    /// A method, as sent.
    Method(String, "a method", "POST", Some("^[A-Z][A-Z-]*$")) = |text| {
        let fits = |c: char| c.is_ascii_uppercase() || c == '-';
        if !text.is_empty() && text.chars().all(fits) {
            return Ok(text.to_owned());
        }
        let upper = text.to_ascii_uppercase();
        let help = match upper.chars().all(fits) && !upper.is_empty() {
            true => format!("methods tell upper case from lower: write `\"{}\"`", quoted(&upper)),
            false => "write a method, such as `\"GET\"` or `\"POST\"`".to_owned(),
        };
        bad(format!("`{}` is no method", quoted(text)), help)
    };
    /// The name of a key in a query, as sent.
    QueryKey(String, "a key of a query", "page", Some("^[!-~]+$")) = |text| {
        let fits = |c: char| c.is_ascii_graphic() && !"&=?#".contains(c);
        if !text.is_empty() && text.chars().all(fits) {
            return Ok(text.to_owned());
        }
        bad(format!("`{}` is no key of a query", quoted(text)), "write its name alone, such as `page` for `?page=2`")
    };
    /// A path put before the request's own: a content tree. It has at most [`LONGEST_PREFIX`] bytes, for which Apache's module
    /// and Python's middleware have room.
    Prefix(String, "a path prefix", "/light", Some("^(/[^/?#\\s]+)+$")) = |text| {
        let message = format!("`{}` cannot be a prefix", quoted(text));
        let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
        if parts.is_empty() {
            return bad(message, "leave the key out: without prefix the path stays as it is");
        }
        if text.len() > LONGEST_PREFIX {
            let message = format!("a prefix of {} bytes is too long", text.len());
            return bad(message, format!("write one of at most {LONGEST_PREFIX} bytes: link a shorter path to the folder"));
        }
        let fits = |c: char| c.is_ascii_graphic() && !"?#\\".contains(c);
        if !parts.iter().all(|part| part.chars().all(fits) && *part != "." && *part != "..") {
            return bad(message, "write a plain path, such as `\"/light\"`, percent-encoded where needed");
        }
        let plain = format!("/{}", parts.join("/"));
        if plain != text {
            return bad(
                message,
                format!("write `\"{}\"`: it begins with `/` and does not end with it", quoted(&plain)),
            );
        }
        Ok(plain)
    };
}

/// The most bytes of a prefix.
const LONGEST_PREFIX: usize = 255;

/// What HTTP calls a token (RFC 9110, 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

/// Whether a text is a variable of nginx (`$remote_addr`, `${host}`), HAProxy (`%[src]`) or Apache (`%{REMOTE_ADDR}e`), which
/// Plimsoll does not have.
fn is_variable(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let name = text
        .strip_prefix('$')
        .map(|name| name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name));
    let is_format =
        text.starts_with("%[") && text.ends_with(']') || text.starts_with("%{") && text.contains('}');
    name.is_some_and(is_name) || is_format
}

/// Headers that frame the message, belong to one connection or are written by the gateway: rules that change them could split
/// requests.
const FRAMING: [&str; 17] = [
    "cdn-loop",
    "connection",
    "content-length",
    "date",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::TextField as _;

    #[test]
    fn what_the_gateway_does_not_write_may_be_changed() {
        for name in ["X-Forwarded-Prefix", "x-real-ip", "x-quality"] {
            assert!(SetHeaderName::parse(name).is_ok(), "{name}");
        }
        for name in ["X-Forwarded-For", "x-forwarded-proto", "forwarded", "host"] {
            assert!(SetHeaderName::parse(name).is_err(), "{name}");
        }
    }
}
