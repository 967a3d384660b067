//! Field lines: the names that a proxy must know, and lists in values.

use super::{Refusal, Span};
use plimsoll_core::processes::PlaceLoad;

/// A field line of a head, as ranges of its buffer.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: Span,
    /// The value without surrounding blanks.
    pub value: Span,
    /// What the proxy knows about it.
    pub kind: FieldKind,
}

/// The names that mean something to the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// Passed on without a look at the value.
    Other,
    /// `Host`: written anew.
    Host,
    /// `Connection`: about this connection only.
    Connection,
    /// `Content-Length`: written anew from the framing.
    ContentLength,
    /// `Transfer-Encoding`: written anew from the framing.
    TransferEncoding,
    /// `Upgrade`: passed on only with an upgrade.
    Upgrade,
    Expect,
    /// `CDN-Loop`: which proxies a request has passed.
    CdnLoop,
    Forwarded,
    XForwardedFor,
    XForwardedProto,
    XForwardedHost,
    /// `X-Real-IP`, and whatever else begins with `X-Forwarded-`: a proxy's word about its client, passed on from trusted ones.
    SetByProxy,
    /// `endpoint-load-metrics`: ORCA's report of load.
    LoadReport,
    /// `X-Plimsoll-Places`: a gateway's word to a server that decides itself, never passed on.
    PlaceLoad,
    /// Hop by hop, by RFC 9110 7.6.1 or because `Connection` names it: never passed on.
    HopByHop,
}

/// What `name` means. An underscore counts as a dash: CGI does not distinguish them, so that a client's `X_Forwarded_For`
/// would otherwise pass for the gateway's field. [`kind_as_named`] marks such a field as hop by hop.
pub(crate) fn kind_of(name: &[u8]) -> FieldKind {
    let is = |known: &[u8]| {
        name.iter().zip(known).all(|(&a, &b)| a.to_ascii_lowercase() == b || (a == b'_' && b == b'-'))
    };
    match name.len() {
        2 if is(b"te") => FieldKind::HopByHop,
        4 if is(b"host") => FieldKind::Host,
        6 if is(b"expect") => FieldKind::Expect,
        7 if is(b"upgrade") => FieldKind::Upgrade,
        8 if is(b"cdn-loop") => FieldKind::CdnLoop,
        9 if is(b"forwarded") => FieldKind::Forwarded,
        9 if is(b"x-real-ip") => FieldKind::SetByProxy,
        10 if is(b"connection") => FieldKind::Connection,
        10 if is(b"keep-alive") => FieldKind::HopByHop,
        14 if is(b"content-length") => FieldKind::ContentLength,
        14 if is(b"http2-settings") => FieldKind::HopByHop,
        15 if is(b"x-forwarded-for") => FieldKind::XForwardedFor,
        16 if is(b"x-forwarded-host") => FieldKind::XForwardedHost,
        16 if is(b"proxy-connection") => FieldKind::HopByHop,
        17 if is(PlaceLoad::HEADER.as_bytes()) => FieldKind::PlaceLoad,
        17 if is(b"x-forwarded-proto") => FieldKind::XForwardedProto,
        17 if is(b"transfer-encoding") => FieldKind::TransferEncoding,
        21 if is(b"endpoint-load-metrics") => FieldKind::LoadReport,
        13.. if is(b"x-forwarded-") => FieldKind::SetByProxy,
        _ => FieldKind::Other,
    }
}

/// Whether a field of this name is a proxy's word about where a request is from, which counts from trusted proxies alone.
pub fn is_set_by_proxies(name: &str) -> bool {
    matches!(
        kind_of(name.as_bytes()),
        FieldKind::Forwarded
            | FieldKind::XForwardedFor
            | FieldKind::XForwardedProto
            | FieldKind::XForwardedHost
            | FieldKind::SetByProxy
    )
}

/// The kind of a field by its name in a message: a known name with an underscore makes the field hop by hop.
pub(crate) fn kind_as_named(name: &[u8]) -> FieldKind {
    match kind_of(name) {
        FieldKind::Other => FieldKind::Other,
        _ if name.contains(&b'_') => FieldKind::HopByHop,
        kind => kind,
    }
}

/// Whether a server behind CGI takes these two names for the same name: in any case, and with an underscore for a dash.
pub(crate) fn is_alike(a: &[u8], b: &[u8]) -> bool {
    let plain = |&byte: &u8| if byte == b'_' { b'-' } else { byte.to_ascii_lowercase() };
    a.len() == b.len() && a.iter().map(plain).eq(b.iter().map(plain))
}

/// The members of a comma-separated list, trimmed, without empty ones.
pub(crate) fn list(value: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// What a message's `Connection` fields say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConnectionOptions {
    pub close: bool,
    pub keep_alive: bool,
    pub upgrade: bool,
}

/// The most fields that `Connection` may name.
const MAX_NAMED: u32 = 32;

/// Reads the `Connection` fields and marks the fields that they name as hop by hop. Framing, host and forwarding fields
/// cannot be named away: they have kinds of their own and are written anew.
///
/// `None` if the fields name too many others, since each name is compared with every field.
pub(crate) fn read_connection(head: &[u8], fields: &mut [Field]) -> Option<ConnectionOptions> {
    let mut options = ConnectionOptions::default();
    let mut named = 0;
    for index in 0..fields.len() {
        if fields[index].kind != FieldKind::Connection {
            continue;
        }
        for option in list(fields[index].value.of(head)) {
            if option.eq_ignore_ascii_case(b"close") {
                options.close = true;
            } else if option.eq_ignore_ascii_case(b"keep-alive") {
                options.keep_alive = true;
            } else if option.eq_ignore_ascii_case(b"upgrade") {
                options.upgrade = true;
            } else {
                named += 1;
                if named > MAX_NAMED {
                    return None;
                }
                for field in fields.iter_mut() {
                    if field.kind == FieldKind::Other && field.name.of(head).eq_ignore_ascii_case(option) {
                        field.kind = FieldKind::HopByHop;
                    }
                }
            }
        }
    }
    Some(options)
}

/// The framing fields of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub content_length: Option<u64>,
    pub chunked: bool,
}

/// Reads `Content-Length` and `Transfer-Encoding`. Anything that two parsers could read differently is an error: both fields, a
/// field that occurs twice (even with the same value), signs, lists, blanks, any coding but `chunked`.
pub(crate) fn read_lengths(head: &[u8], fields: &[Field]) -> Result<Lengths, Refusal> {
    let mut lengths = Lengths::default();
    for field in fields {
        match field.kind {
            FieldKind::ContentLength => {
                if lengths.content_length.is_some() {
                    return Err(Refusal::bad("more than one Content-Length field"));
                }
                let value = field.value.of(head);
                lengths.content_length =
                    Some(parse_decimal(value).ok_or(Refusal::bad("Content-Length is not a number"))?);
            }
            FieldKind::TransferEncoding => {
                if lengths.chunked {
                    return Err(Refusal::bad("more than one Transfer-Encoding field"));
                }
                if !field.value.of(head).eq_ignore_ascii_case(b"chunked") {
                    return Err(Refusal::with(501, "only the transfer coding chunked is supported"));
                }
                lengths.chunked = true;
            }
            _ => {}
        }
    }
    if lengths.chunked && lengths.content_length.is_some() {
        return Err(Refusal::bad("both Content-Length and Transfer-Encoding"));
    }
    Ok(lengths)
}

/// A number of at most 18 digits: no sign, no blank, no overflow.
pub(crate) fn parse_decimal(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(value.iter().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')))
}

/// The value of the first passed-on field of this name, in any case.
pub(crate) fn find<'a>(head: &'a [u8], fields: &[Field], name: &str) -> Option<&'a [u8]> {
    let is_named = |field: &&Field| {
        field.kind != FieldKind::HopByHop && field.name.of(head).eq_ignore_ascii_case(name.as_bytes())
    };
    fields.iter().find(is_named).map(|field| field.value.of(head))
}

/// Turns httparse's slices into ranges.
pub(crate) fn collect(head: &[u8], parsed: &[httparse::Header<'_>], fields: &mut Vec<Field>) {
    fields.clear();
    fields.extend(parsed.iter().map(|header| {
        let name = header.name.as_bytes();
        let value = Span::within(head, header.value.trim_ascii());
        Field { name: Span::within(head, name), value, kind: kind_as_named(name) }
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_ignore_case_and_see_through_underscores() {
        assert_eq!(kind_of(b"HOST"), FieldKind::Host);
        assert_eq!(kind_of(b"X_Forwarded_For"), FieldKind::XForwardedFor);
        assert_eq!(kind_of(b"hosts"), FieldKind::Other);
        assert_eq!(kind_of(b"my_header"), FieldKind::Other);
        for name in [&b"X-Real-IP"[..], b"x-forwarded-prefix", b"X-Forwarded-Port", b"x_forwarded_user"] {
            assert_eq!(kind_of(name), FieldKind::SetByProxy);
        }
        assert_eq!(kind_of(b"x-forwarded-"), FieldKind::Other);
    }

    #[test]
    fn decimals_are_digits_only() {
        assert_eq!(parse_decimal(b"0"), Some(0));
        assert_eq!(parse_decimal(b"123456789012345678"), Some(123_456_789_012_345_678));
        for bad in [&b""[..], b"+1", b"-1", b"1 ", b"0x1", b"1,1", b"1234567890123456789"] {
            assert_eq!(parse_decimal(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn lists_skip_empty_members() {
        assert_eq!(list(b" a ,, b\t,").collect::<Vec<_>>(), [b"a", b"b"]);
    }
}
