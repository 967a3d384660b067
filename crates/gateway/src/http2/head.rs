//! Heads of streams: a request's into the form in which all requests are read, a response's out of its text.
//!
//! `h2` has refused what makes a head malformed by itself: a name in capitals, pseudo fields that are unknown, missing, double
//! or behind others, and fields of the connection. What two servers could read differently is refused here and in
//! [`RequestHead::take`], with the rules that HTTP/1.1 has.

use crate::http1::body::is_token;
use crate::http1::field::{Field, FieldKind, kind_as_named};
use crate::http1::request::{HeadParts, RequestHead};
use crate::http1::response::ResponseHead;
use crate::http1::write::write_field;
use crate::http1::{MAX_FIELDS, Refusal, Span};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, request};

/// Reads a request's head into `head`, and its parts into `buffer`, which they replace.
pub fn request(
    parts: &request::Parts,
    has_body: bool,
    buffer: &mut Vec<u8>,
    head: &mut RequestHead,
) -> Result<(), Refusal> {
    buffer.clear();
    let mut put = |bytes: &[u8]| {
        let start = buffer.len();
        buffer.extend_from_slice(bytes);
        Span::new(start, start + bytes.len())
    };
    let method = put(parts.method.as_str().as_bytes());
    let target = put(parts.uri.path_and_query().map_or("", |target| target.as_str()).as_bytes());
    let authority = put(parts.uri.authority().map_or("", |authority| authority.as_str()).as_bytes());
    head.fields.clear();
    if parts.headers.len() > MAX_FIELDS {
        return Err(Refusal::with(431, "too many fields"));
    }
    let mut cookies = Vec::new();
    for (name, value) in &parts.headers {
        let value = value.as_bytes();
        if value.trim_ascii().len() < value.len() {
            return Err(Refusal::bad("a field's value begins or ends with a blank"));
        }
        // A client may send one field for each cookie; upstreams of HTTP/1.1 are sent one (RFC 9113 8.2.3).
        if name == http::header::COOKIE {
            cookies.push(value);
            continue;
        }
        let (kind, name, value) = (kind_as_named(name.as_ref()), put(name.as_ref()), put(value));
        head.fields.push(Field { name, value, kind });
    }
    if !cookies.is_empty() {
        let (name, value) = (put(b"cookie"), put(&cookies.join(&b"; "[..])));
        head.fields.push(Field { name, value, kind: FieldKind::Other });
    }
    let length = buffer.len();
    head.take(buffer, HeadParts { length, method, target, authority, has_body })
}

/// A response's head, out of its text, which was read into `head`. Fields of the connection are left out. `None` if a field
/// cannot be sent.
pub(crate) fn response(text: &[u8], head: &ResponseHead) -> Option<Response<()>> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(head.status).ok()?;
    let fields = response.headers_mut();
    fields.reserve(head.fields.len());
    for field in &head.fields {
        let passes = !matches!(
            field.kind,
            FieldKind::Connection | FieldKind::TransferEncoding | FieldKind::Upgrade | FieldKind::HopByHop
        );
        if passes {
            let name = HeaderName::from_bytes(field.name.of(text)).ok()?;
            fields.append(name, HeaderValue::from_bytes(field.value.of(text)).ok()?);
        }
    }
    Some(response)
}

/// Appends the lines of a request's trailers.
pub(crate) fn write_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in trailers {
        write_field(out, name.as_ref(), value.as_bytes());
    }
}

/// The trailers of a response, out of their lines, which a decoder has checked.
pub(crate) fn read_trailers(lines: &[u8]) -> Option<HeaderMap> {
    let mut trailers = HeaderMap::new();
    for line in lines.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()) {
        let colon = line.iter().position(|&byte| !is_token(byte))?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        let value = line.get(colon + 1..)?.trim_ascii();
        trailers.append(name, HeaderValue::from_bytes(value).ok()?);
    }
    Some(trailers)
}

#[cfg(test)]
mod tests;
