//! Heads of streams: a request's head is brought into the form that all requests have, and a response's head is made from its
//! text.
//!
//! `h2` has already refused malformed heads: names in capitals, pseudo fields that are unknown, missing, double or behind other
//! fields, and fields of the connection. Heads that two servers could read differently are refused here and in
//! [`RequestHead::take`], by the rules of HTTP/1.1.

use crate::http1::body::is_token;
use crate::http1::field::{Field, FieldKind, is_alike, kind_as_named};
use crate::http1::request::{HeadParts, RequestHead};
use crate::http1::response::ResponseHead;
use crate::http1::write::write_field;
use crate::http1::{MAX_FIELDS, Refusal, Span};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use h2::ext::Protocol;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, request, response,
};
use percent_encoding::{AsciiSet, percent_encode};

/// The one protocol that a stream may become (RFC 8441).
const WEBSOCKET: &str = "websocket";
/// The field by which a server of HTTP/1.1 shows that it has read the request for a switch (RFC 6455 4.1), and its answer.
const KEY: &str = "sec-websocket-key";
const ACCEPTED: &str = "sec-websocket-accept";

/// Facts about a stream that its head's parts do not have.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamStart {
    /// Whether the stream goes on behind its head.
    pub goes_on: bool,
    /// A number drawn anew for each stream: the key of a WebSocket.
    pub nonce: u128,
}

/// Reads a request's head into `head`, and its parts into `buffer`, which they replace.
///
/// A stream that is to become a WebSocket (extended CONNECT, RFC 8441 5) is read in its HTTP/1.1 form: a GET that asks for an
/// upgrade. The bytes behind its head are no body.
pub fn request(
    parts: &request::Parts,
    start: StreamStart,
    buffer: &mut Vec<u8>,
    head: &mut RequestHead,
) -> Result<(), Refusal> {
    buffer.clear();
    let mut put = |bytes: &[u8]| {
        let start = buffer.len();
        buffer.extend_from_slice(bytes);
        Span::new(start, start + bytes.len())
    };
    let switches = match parts.extensions.get::<Protocol>() {
        Some(protocol) if parts.method != Method::CONNECT || protocol.as_str() != WEBSOCKET => {
            return Err(Refusal::with(501, "a stream becomes a WebSocket, and no other protocol"));
        }
        protocol => protocol.is_some(),
    };
    let method = put(if switches { b"GET" } else { parts.method.as_str().as_bytes() });
    let target = put(parts.uri.path_and_query().map_or("", |target| target.as_str()).as_bytes());
    let authority = put(parts.uri.authority().map_or("", |authority| authority.as_str()).as_bytes());
    head.fields.clear();
    if parts.headers.len() > MAX_FIELDS {
        return Err(Refusal::with(431, "too many fields"));
    }
    let mut cookies = Vec::new();
    for (name, value) in &parts.headers {
        let value = value.as_bytes();
        if switches && is_alike(name.as_ref(), KEY.as_bytes()) {
            continue;
        }
        if value.trim_ascii().len() < value.len() {
            return Err(Refusal::bad("a field's value begins or ends with a blank"));
        }
        // A client may send one field for each cookie; upstreams of HTTP/1.1 get one field (RFC 9113 8.2.3).
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
    if switches {
        let key = BASE64_STANDARD.encode(start.nonce.to_be_bytes());
        for (kind, name, value) in [(FieldKind::Upgrade, "upgrade", WEBSOCKET), (FieldKind::Other, KEY, &key)]
        {
            head.fields.push(Field { name: put(name.as_bytes()), value: put(value.as_bytes()), kind });
        }
    }
    let (length, has_body) = (buffer.len(), start.goes_on && !switches);
    head.take(buffer, HeadParts { length, method, target, authority, has_body, switches })
}

/// The response's head for a stream, made from its text, which was read into `head`. Fields of the connection are left out, and
/// a switch of protocols is a 200 (RFC 8441 5). `None` if a field cannot be sent.
pub(crate) fn to_client(text: &[u8], head: &ResponseHead) -> Option<Response<()>> {
    let mut response = Response::new(());
    let is_switch = head.status == 101;
    *response.status_mut() = StatusCode::from_u16(if is_switch { 200 } else { head.status }).ok()?;
    let fields = response.headers_mut();
    fields.reserve(head.fields.len());
    for field in &head.fields {
        let passes = !matches!(
            field.kind,
            FieldKind::Connection | FieldKind::TransferEncoding | FieldKind::Upgrade | FieldKind::HopByHop
        );
        let is_handshake = is_switch && is_alike(field.name.of(text), ACCEPTED.as_bytes());
        if passes && !is_handshake {
            let name = HeaderName::from_bytes(field.name.of(text)).ok()?;
            fields.append(name, HeaderValue::from_bytes(field.value.of(text)).ok()?);
        }
    }
    Some(response)
}

/// The request for a server of HTTP/2, made from its text, which the gateway has written and read into `head`. HTTP/2 has no
/// upgrades, so a requested upgrade is left out. `None` if HTTP/2 cannot express the request.
pub(crate) fn outgoing(text: &[u8], head: &RequestHead, scheme: &str) -> Option<Request<()>> {
    let uri = Uri::builder().scheme(scheme).authority(head.authority.of(text));
    let uri = uri.path_and_query(percent_encode(head.target.of(text), IN_NO_URI).to_string()).build().ok()?;
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(head.method.of(text)).ok()?;
    *request.uri_mut() = uri;
    let fields = request.headers_mut();
    fields.reserve(head.fields.len());
    for field in &head.fields {
        let name = field.name.of(text);
        let passes = match field.kind {
            FieldKind::Host | FieldKind::Connection | FieldKind::TransferEncoding | FieldKind::Upgrade => {
                false
            }
            FieldKind::HopByHop => name == b"te",
            _ => true,
        };
        if passes {
            fields.append(
                HeaderName::from_bytes(name).ok()?,
                HeaderValue::from_bytes(field.value.of(text)).ok()?,
            );
        }
    }
    Some(request)
}

/// ASCII characters that no URI may have, but that clients send all the same.
const IN_NO_URI: &AsciiSet = &AsciiSet::EMPTY.add(b'<').add(b'>').add(b'`').add(b'"');

/// A response's head as text, and whether its body is put in chunks. `ends`: the stream ends with the head; `to_head`: the
/// request was `HEAD`.
pub(crate) fn incoming(parts: &response::Parts, ends: bool, to_head: bool) -> (Vec<u8>, bool) {
    let status = parts.status.as_u16();
    // HTTP/2 has no switch of protocols, so 101 is replaced by a number that is no status, which the reader of the text
    // refuses.
    let shown = if status == 101 { 999 } else { status };
    let phrase = parts.status.canonical_reason().unwrap_or_default();
    let mut text = format!("HTTP/1.1 {shown} {phrase}\r\n").into_bytes();
    for (name, value) in &parts.headers {
        let is_framing = matches!(
            kind_as_named(name.as_ref()),
            FieldKind::Connection | FieldKind::TransferEncoding | FieldKind::Upgrade | FieldKind::HopByHop
        );
        if !is_framing {
            write_field(&mut text, name.as_ref(), value.as_bytes());
        }
    }
    let has_body = !to_head && status >= 200 && !matches!(status, 204 | 304);
    let is_open = has_body && !parts.headers.contains_key(http::header::CONTENT_LENGTH);
    let in_chunks = is_open && !ends;
    match is_open {
        true if in_chunks => text.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        true => text.extend_from_slice(b"content-length: 0\r\n"),
        false => {}
    }
    text.extend_from_slice(b"\r\n");
    (text, in_chunks)
}

/// Appends the lines of trailers.
pub(crate) fn write_trailers(trailers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in trailers {
        write_field(out, name.as_ref(), value.as_bytes());
    }
}

/// Makes trailers from their lines, which a decoder has checked.
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
