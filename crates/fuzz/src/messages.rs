//! Heads and bodies of HTTP/1.1 as the gateway reads and writes them.

use plimsoll_core::promises::Network;
use plimsoll_gateway::fuzzing::{answered, forwarded};
use plimsoll_gateway::http1::body::{Decoder, Framing};
use plimsoll_gateway::http1::field::FieldKind;
use plimsoll_gateway::http1::request::RequestHead;
use plimsoll_gateway::http1::response::ResponseHead;
use plimsoll_gateway::http1::scan::HeadScan;
use plimsoll_gateway::settings::{ForwardedFields, RealIpHeader, Settings};
use std::net::{IpAddr, Ipv4Addr};

/// The field of a request's place in a trace.
const TRACEPARENT: &[u8] = b"traceparent";
/// The longest head.
const LIMIT: usize = 64 * 1024;

/// The length of the head that bytes begin with.
fn head_length(bytes: &[u8]) -> Option<usize> {
    HeadScan::default().advance(bytes, LIMIT).ok().flatten()
}

/// A head is found in one read as byte by byte; rules see a path without dot segments.
pub fn request(bytes: &[u8]) {
    let at_once = HeadScan::default().advance(bytes, LIMIT);
    let mut scan = HeadScan::default();
    let mut steps = (0..=bytes.len()).map(|end| scan.advance(&bytes[..end], LIMIT));
    let stepwise = steps.find(|result| !matches!(result, Ok(None))).unwrap_or(Ok(None));
    assert_eq!(stepwise.map_err(|refusal| refusal.status), at_once.map_err(|refusal| refusal.status));
    let Ok(Some(length)) = at_once else { return };
    let mut head = RequestHead::default();
    if head.parse(&bytes[..length]).is_ok() {
        let path = head.rule_path(bytes);
        assert!(!path.split('/').any(|segment| segment == "." || segment == ".."), "{path}");
        assert!(path == "*" || path.starts_with('/') && !path.contains("//"), "{path}");
    }
}

/// The payload of a body that comes in these pieces, and whether it is whole; or the status of its refusal.
fn payload(decoder: Decoder<'_>, pieces: &[&[u8]]) -> Result<(Vec<u8>, usize, bool), u16> {
    let (mut decoder, mut payload, mut taken) = (decoder, Vec::new(), 0);
    for piece in pieces {
        let mut at = 0;
        while at < piece.len() && !decoder.is_done() {
            let step = decoder.step(&piece[at..]).map_err(|refusal| refusal.status)?;
            payload.extend_from_slice(&piece[at..][step.payload]);
            at += step.taken;
        }
        taken += at;
    }
    Ok((payload, taken, decoder.is_done()))
}

/// A chunked body has the same end and payload in one piece and in two, or is refused both times; and a request's is never read
/// more loosely than a response's. The first two bytes say where it is cut.
pub fn body(bytes: &[u8]) {
    let Some((cut, bytes)) = bytes.split_first_chunk::<2>() else { return };
    let (first, second) = bytes.split_at(usize::from(u16::from_le_bytes(*cut)).min(bytes.len()));
    let chunked = || Decoder::new(Framing::Chunked);
    let whole = payload(chunked(), &[bytes]);
    assert_eq!(whole, payload(chunked(), &[first, second]));
    let fields = [("X-Level".to_owned(), String::new())];
    let request = payload(chunked().of_request(&fields), &[bytes]);
    assert_eq!(request, payload(chunked().of_request(&fields), &[first, second]));
    if request.is_ok() {
        assert_eq!(request, whole);
    }
}

/// From any peer, with any fields, the request goes on with one reading: the same method, target and body, one host,
/// no field that `Connection` names, one place in a trace, and the peer as the last in the chain. A peer that is not trusted is
/// the client itself.
pub fn forwarding(bytes: &[u8]) {
    let Some(length) = head_length(bytes) else { return };
    let mut before = RequestHead::default();
    if before.parse(&bytes[..length]).is_err() {
        return;
    }
    let peer = IpAddr::from([10, 0, 0, 1]);
    for (prefix_bits, real_ip_header) in
        [(0, RealIpHeader::XForwardedFor), (0, RealIpHeader::Forwarded), (32, RealIpHeader::Forwarded)]
    {
        let trusted = Network { address: IpAddr::from(Ipv4Addr::LOCALHOST), prefix_bits };
        let (trusted_proxies, is_trusted) = (vec![trusted], prefix_bits == 0);
        let forwarded_fields = ForwardedFields::Both;
        let settings =
            Settings { trusted_proxies, real_ip_header, forwarded: forwarded_fields, ..Settings::default() };
        let (written, client) = forwarded(bytes, peer, &settings).expect("what is accepted is sent on");
        assert!(is_trusted || client == peer, "{client} is made up");
        reads_alike(bytes, &before, &written);
        let mut after = RequestHead::default();
        after.parse(&written).expect("it was parsed before");
        let is_place = |name: &[u8]| name.eq_ignore_ascii_case(TRACEPARENT);
        let mut places = after.fields.iter().filter(|field| is_place(field.name.of(&written)));
        let place = places.next().map(|field| field.value.of(&written)).unwrap_or_default();
        assert!(place.starts_with(b"00-") && place.len() == 55 && places.next().is_none());
        let last =
            |name| after.field(&written, name).and_then(|value| value.rsplit(|byte| *byte == b',').next());
        assert_eq!(last("x-forwarded-for").map(<[u8]>::trim_ascii), Some(&b"10.0.0.1"[..]));
        let member = last("forwarded").map(<[u8]>::trim_ascii).unwrap_or_default();
        assert!(member.starts_with(b"for=10.0.0.1"), "{}", member.escape_ascii());
        if !is_trusted {
            assert_eq!(after.field(&written, "x-forwarded-for"), Some(&b"10.0.0.1"[..]));
        }
    }
}

/// What was written says what was read.
fn reads_alike(bytes: &[u8], before: &RequestHead, written: &[u8]) {
    let shown = written.escape_ascii();
    assert_eq!(head_length(written), Some(written.len()), "{shown}");
    let mut after = RequestHead::default();
    assert_eq!(after.parse(written), Ok(()), "{shown}");
    assert_eq!(after.method.of(written), before.method.of(bytes), "{shown}");
    let target = |head: &RequestHead, bytes: &[u8]| match head.target.of(bytes) {
        b"" => b"/".to_vec(),
        target => target.to_vec(),
    };
    assert_eq!(target(&after, written), target(before, bytes), "{shown}");
    assert_eq!(after.rule_path(written), before.rule_path(bytes), "{shown}");
    assert_eq!(after.framing, before.framing, "{shown}");
    assert_eq!(after.upgrade, before.upgrade, "{shown}");
    if !before.authority.is_empty() {
        assert_eq!(after.authority.of(written), before.authority.of(bytes), "{shown}");
    }
    let named = before.fields.iter().filter(|field| field.kind == FieldKind::Connection);
    let named = named.flat_map(|field| field.value.of(bytes).split(|byte| *byte == b','));
    // The gateway's own place in a trace is no field of the client's.
    for name in named.filter(|name| !name.trim_ascii().eq_ignore_ascii_case(TRACEPARENT)) {
        let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
        let passed = after.fields.iter().find(|field| {
            field.kind == FieldKind::Other && field.name.of(written).eq_ignore_ascii_case(name.as_bytes())
        });
        assert!(passed.is_none(), "{name} goes on: {shown}");
    }
}

/// A response that is read is written with the same status and one framing, whichever method asked for it; its body has the
/// same end in one piece and in two.
pub fn response(bytes: &[u8]) {
    let Some(length) = head_length(bytes) else { return };
    let rest = &bytes[length..];
    for is_head in [false, true] {
        let mut before = ResponseHead::default();
        if before.parse(&bytes[..length], is_head).is_err() {
            assert!(answered(bytes, is_head).is_none());
            continue;
        }
        let written = answered(bytes, is_head).expect("what is accepted is sent on");
        let shown = written.escape_ascii();
        assert_eq!(head_length(&written), Some(written.len()), "{shown}");
        let mut after = ResponseHead::default();
        assert_eq!(after.parse(&written, is_head), Ok(()), "{shown}");
        assert_eq!(after.status, before.status, "{shown}");
        let expected = match before.framing {
            Framing::UntilClose => Framing::Chunked,
            framing => framing,
        };
        assert_eq!(after.framing, expected, "{shown}");
        assert!(after.load_report(&written).is_none(), "{shown}");
        let middle = rest.len() / 2;
        let decoder = || Decoder::new(before.framing);
        let (first, second) = rest.split_at(middle);
        assert_eq!(payload(decoder(), &[rest]), payload(decoder(), &[first, second]));
    }
}

/// A header of the PROXY protocol ends within the bytes, and no more of them change what it says.
pub fn proxy_header(bytes: &[u8]) {
    let Some((length, source)) = plimsoll_gateway::fuzzing::proxy_header(bytes) else { return };
    assert!(length <= bytes.len(), "{length}");
    assert_eq!(plimsoll_gateway::fuzzing::proxy_header(&bytes[..length]), Some((length, source)));
    for end in 0..length {
        assert_eq!(plimsoll_gateway::fuzzing::proxy_header(&bytes[..end]), None, "{end}");
    }
}

/// The name in a certificate can be a field's value, and is the same to a class and to the server.
pub fn client_certificate(bytes: &[u8]) {
    let Some(name) = plimsoll_gateway::fuzzing::client_name(bytes) else { return };
    assert!(!name.is_empty() && name.trim() == name, "{name:?}");
    assert!(name.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()), "{name:?}");
}
