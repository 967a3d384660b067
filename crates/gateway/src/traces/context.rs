//! A request's place in a trace, after W3C Trace Context:
//!
//! ```text
//! traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//!              version     trace                   caller's span    flags
//! ```
//!
//! The gateway is a participant: the server behind it gets the same trace, with a span of the gateway as its parent. A request
//! without a `traceparent` begins a trace, and so does one whose `traceparent` is malformed or double; `tracestate` belongs to
//! the trace that it came with and is dropped then. Whether a trace is recorded was decided where it began: its flag is kept.
//! Where it begins here, the last 56 bits of its random identifier decide, as OpenTelemetry samples by a ratio, so that all
//! participants that sample by the same ratio record the same traces.

use crate::http1::field::{Field, FieldKind};
use plimsoll_core::random::Random;
use std::io::Write;

/// The field with the sender's place in the trace.
pub(crate) const TRACEPARENT: &str = "traceparent";
const PARENT: &[u8] = TRACEPARENT.as_bytes();
const STATE: &[u8] = b"tracestate";

/// The flags that are passed on: whether the caller records, and whether the trace's identifier is random (level 2).
const SAMPLED: u8 = 1;
const RANDOM: u8 = 2;

/// A request's place in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub trace: u128,
    /// The caller's span, if the caller named one.
    pub parent: Option<u64>,
    /// The request's own span.
    pub span: u64,
    flags: u8,
}

impl TraceContext {
    /// The place of a request with these fields; `fields` is `None` if the client's own fields are not believed.
    pub(crate) fn of(fields: Option<(&[u8], &[Field])>, ratio: f64, random: &mut Random) -> Self {
        let span = random.bits().max(1);
        match fields.and_then(|(bytes, fields)| sent(bytes, fields)) {
            Some((trace, parent, flags)) => TraceContext { trace, parent: Some(parent), span, flags },
            None => {
                let low = random.bits();
                let trace = (u128::from(random.bits()) << 64 | u128::from(low)).max(1);
                let flags = RANDOM | if is_sampled(low, ratio) { SAMPLED } else { 0 };
                TraceContext { trace, parent: None, span, flags }
            }
        }
    }

    /// Whether its spans are recorded.
    pub(crate) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The identifiers of the spans below the request's own: the wait in the queue, the service, the delivery. They are derived
    /// from its own, so that they need not be stored.
    pub(crate) fn children(&self) -> [u64; 3] {
        let mut random = Random::new(self.span);
        [(); 3].map(|()| random.bits().max(1))
    }

    /// Whether a field of the client is replaced by the gateway's, or dropped.
    pub(crate) fn replaces(&self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(PARENT) || (self.parent.is_none() && name.eq_ignore_ascii_case(STATE))
    }

    /// Appends the line that the server gets: its work is a part of the request's service.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let [_, service, _] = self.children();
        // Writing to a vector does not fail.
        let _ = write!(out, "traceparent: 00-{:032x}-{service:016x}-{:02x}\r\n", self.trace, self.flags);
    }
}

/// Trace, span and flags of the one `traceparent` among these fields.
fn sent(bytes: &[u8], fields: &[Field]) -> Option<(u128, u64, u8)> {
    let is_parent =
        |field: &&Field| field.kind == FieldKind::Other && field.name.of(bytes).eq_ignore_ascii_case(PARENT);
    let mut parents = fields.iter().filter(is_parent);
    let only = parents.next().filter(|_| parents.next().is_none())?;
    parse(only.value.of(bytes))
}

/// Parses a value. A later version may have more fields behind the known ones, and is passed on as version 00.
fn parse(value: &[u8]) -> Option<(u128, u64, u8)> {
    const LENGTH: usize = 55;
    let (known, rest) = value.split_at_checked(LENGTH)?;
    let [version, trace, span, flags] = [0..2, 3..35, 36..52, 53..55].map(|range| hexadecimal(&known[range]));
    let (version, trace, span, flags) = (version?, trace?, span? as u64, flags? as u8);
    let is_divided = [2, 35, 52].iter().all(|&at| known[at] == b'-');
    let ends = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => matches!(rest, [] | [b'-', ..]),
    };
    (is_divided && ends && trace != 0 && span != 0).then_some((trace, span, flags & (SAMPLED | RANDOM)))
}

/// A number of at most 32 lower-case hexadecimal digits.
fn hexadecimal(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

fn is_sampled(random: u64, ratio: f64) -> bool {
    const RANGE: u64 = 1 << 56;
    ((random % RANGE) as f64) < ratio * RANGE as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::request::RequestHead;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn context(lines: &[&str], ratio: f64) -> TraceContext {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
        let mut head = RequestHead::default();
        head.parse(text.as_bytes()).expect("a good request");
        TraceContext::of(Some((text.as_bytes(), &head.fields)), ratio, &mut Random::new(7))
    }

    fn of(value: &str) -> TraceContext {
        context(&[&format!("traceparent: {value}")], 0.0)
    }

    #[test]
    fn a_trace_goes_on_with_its_flag() {
        let context = of(GOOD);
        assert_eq!(context.trace, 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736);
        assert_eq!((context.parent, context.is_sampled()), (Some(0x00f0_67aa_0ba9_02b7), true));
        assert!(!of(&GOOD.replace("-01", "-00")).is_sampled());
        assert!(!context.replaces(b"TraceState") && context.replaces(b"Traceparent"));
        let mut line = Vec::new();
        context.write(&mut line);
        let line = String::from_utf8_lossy(&line).into_owned();
        let [_, service, _] = context.children();
        assert_eq!(line, format!("traceparent: 00-{}-{service:016x}-01\r\n", &GOOD[3..35]));
        assert_ne!(service, context.span);
    }

    #[test]
    fn what_is_malformed_begins_a_trace_anew() {
        let longer = format!("{GOOD}-00");
        let wrong = [
            "",
            &GOOD[..54],
            &longer,
            &GOOD.replacen("00", "ff", 1),
            &GOOD.replacen("00", "0g", 1),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            &GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &GOOD.replace("-01", "-0x"),
        ];
        for value in wrong {
            let context = of(value);
            assert_eq!(context.parent, None, "{value}");
            assert!(context.replaces(b"tracestate"), "{value}");
        }
        let parent = format!("traceparent: {GOOD}");
        assert_eq!(context(&[&parent, &parent], 0.0).parent, None, "two are none");
        assert_eq!(
            context(&[&parent, "Connection: traceparent"], 0.0).parent,
            None,
            "for the next hop alone"
        );
    }

    #[test]
    fn a_later_version_is_read_as_far_as_it_is_known() {
        let later = GOOD.replacen("00", "01", 1);
        assert!(of(&later).is_sampled() && of(&format!("{later}-what-comes")).is_sampled());
        assert_eq!(of(&format!("{later}.what-comes")).parent, None);
        assert!(of(&GOOD.replace("-01", "-ff")).is_sampled());
    }

    #[test]
    fn traces_that_begin_here_are_sampled_by_the_ratio() {
        let mut random = Random::new(1);
        let mut sampled =
            |ratio| (0..10_000).filter(|_| TraceContext::of(None, ratio, &mut random).is_sampled()).count();
        assert_eq!((sampled(0.0), sampled(1.0)), (0, 10_000));
        // The bounds are six standard deviations, 180, from the mean.
        assert!((820..1180).contains(&sampled(0.1)));
    }
}
