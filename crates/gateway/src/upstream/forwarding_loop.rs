//! Loops: a gateway whose upstream leads back to it, directly or by way of others.
//!
//! ```text
//! client -> a (mark of a) -> b (marks of a and b) -> a: 508
//! ```
//!
//! Each forwarded request carries the gateway's mark, drawn at its start, beside the marks that it came with. A request that
//! comes with the gateway's own mark has been here before, and would go round until memory or connections ran out. The mark
//! names neither machine nor version, and clients never see it, since responses do not have it.
//!
//! The field is `CDN-Loop` (RFC 8586), which is made for this, and which proxies on the way must leave in place. `Via` would
//! do too, but nginx compresses nothing for a request that has one (`gzip_proxied off`, its default).

use crate::http1::Refusal;
use crate::http1::field::{Field, FieldKind, list};
use std::hash::{BuildHasher, RandomState};

/// The answer to a request that has come back.
pub(crate) const COME_BACK: Refusal =
    Refusal::with(508, "this request has passed this gateway before: one of its upstreams leads back to it");

/// The mark of a gateway, as the line of a head.
#[derive(Debug, Default)]
pub(crate) struct LoopMark(Box<[u8]>);

const NAME: &str = "cdn-loop: ";

impl LoopMark {
    /// A mark that no other gateway has, by 64 random bits.
    pub(crate) fn draw() -> Self {
        let number = RandomState::new().hash_one(0_u8);
        LoopMark(format!("{NAME}plimsoll-{number:016x}\r\n").into_bytes().into())
    }

    /// The line, with its end.
    pub(crate) fn line(&self) -> &[u8] {
        &self.0
    }

    /// Whether a request with these fields has passed this gateway.
    pub(crate) fn is_on(&self, head: &[u8], fields: &[Field]) -> bool {
        let own = self.0.get(NAME.len()..).unwrap_or_default().trim_ascii_end();
        let mut marks = fields.iter().filter(|field| field.kind == FieldKind::CdnLoop);
        marks.any(|field| list(field.value.of(head)).any(|mark| mark == own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::request::RequestHead;

    #[test]
    fn a_gateway_knows_its_own_mark_among_others() {
        let (own, other) = (LoopMark::draw(), LoopMark::draw());
        let value = |mark: &LoopMark| String::from_utf8_lossy(&mark.line()[NAME.len()..]).trim().to_owned();
        let is_on = |fields: &str| {
            let text = format!("GET / HTTP/1.1\r\nHost: h\r\nConnection: cdn-loop\r\n{fields}\r\n");
            let mut head = RequestHead::default();
            head.parse(text.as_bytes()).expect("a good request");
            own.is_on(text.as_bytes(), &head.fields)
        };
        let (mine, others) = (value(&own), value(&other));
        assert!(is_on(&format!("CDN-Loop: {mine}\r\n")));
        assert!(is_on(&format!("cdn-loop: {others}, {mine}\r\n")), "a proxy on the way may join lines");
        assert!(is_on(&format!("cdn-loop: {others}\r\nA: b\r\ncdn-loop: {mine}\r\n")));
        assert!(!is_on("") && !is_on(&format!("cdn-loop: {others}\r\n")));
        assert!(!is_on(&format!("cdn-loop: {}\r\n", &mine[..12])), "a part is not it");
    }
}
