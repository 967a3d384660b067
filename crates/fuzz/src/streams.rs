//! What comes on a connection of HTTP/2: its frames as they are counted, and the heads of its streams.

use http::{HeaderName, HeaderValue, Method, Request};
use plimsoll_gateway::fuzzing::forwarded_stream;
use plimsoll_gateway::http1::body::Framing;
use plimsoll_gateway::http1::request::RequestHead;
use plimsoll_gateway::http1::scan::HeadScan;
use plimsoll_gateway::http2::frames::FrameMeter;
use plimsoll_gateway::settings::Settings;
use std::net::{IpAddr, Ipv4Addr};

/// Frames are seen alike in one piece and in two, and no more is unfinished than came. The first two bytes say where the others
/// are cut.
pub fn frames(bytes: &[u8]) {
    let Some((cut, bytes)) = bytes.split_first_chunk::<2>() else { return };
    let (first, second) = bytes.split_at(usize::from(u16::from_le_bytes(*cut)).min(bytes.len()));
    let seen = |pieces: &[&[u8]]| {
        let (mut meter, mut frames) = (FrameMeter::default(), Vec::new());
        pieces.iter().for_each(|piece| meter.read(piece, |frame| frames.push(frame)));
        (frames, meter.unfinished(), meter.number())
    };
    let whole = seen(&[bytes]);
    assert_eq!(whole, seen(&[first, second]));
    assert!(whole.1 <= bytes.len());
}

/// A stream's head that is taken is written as one head of HTTP/1.1, which says the same: the method, the host, the path and
/// whether a body follows; a WebSocket's is a GET that asks for an upgrade. The bytes are the method, the target, the
/// authority and the fields, a line each.
pub fn stream(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let (has_body, websocket) = (first & 1 == 1, first & 2 == 2);
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let Ok(method) = Method::from_bytes(line()) else { return };
    let (target, authority) = (line(), line());
    let mut uri = http::uri::Parts::default();
    uri.path_and_query = target.try_into().ok();
    if let (Ok(authority), true) = (authority.try_into(), uri.path_and_query.is_some()) {
        (uri.authority, uri.scheme) = (Some(authority), Some(http::uri::Scheme::HTTP));
    }
    let Ok(uri) = http::Uri::from_parts(uri) else { return };
    let mut request = Request::builder().method(&method).uri(uri);
    for field in lines {
        let Some(colon) = field.iter().position(|&byte| byte == b':') else { continue };
        let name = HeaderName::from_bytes(&field[..colon]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&field[colon + 1..])) {
            request = request.header(name, value);
        }
    }
    let Ok(request) = request.body(()) else { return };
    let (parts, ()) = request.into_parts();
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let Some(stream) = forwarded_stream(parts, (has_body, websocket), peer, &Settings::default()) else {
        return;
    };
    let length = HeadScan::default().advance(&stream.written, usize::MAX).ok().flatten();
    assert_eq!(length, Some(stream.written.len()), "it is one head");
    let mut head = RequestHead::default();
    if let Err(refusal) = head.parse(&stream.written) {
        panic!("{}: {}", refusal.why, stream.written.escape_ascii());
    }
    let sent = if websocket { "GET" } else { method.as_str() };
    assert_eq!((head.method.of(&stream.written), head.upgrade), (sent.as_bytes(), websocket));
    assert_eq!(head.rule_path(&stream.written), stream.path);
    assert_eq!(head.host(&stream.written), stream.host.as_bytes());
    assert_eq!(head.framing, stream.framing);
    assert!((has_body && !websocket) || head.framing == Framing::None);
}
