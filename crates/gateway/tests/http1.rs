//! The corpora through the parser, and the parser beside hyper: whatever both accept is read alike.

use crate::corpus::requests::{READ, REFUSED};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use plimsoll_gateway::http1::body::Decoder;
use plimsoll_gateway::http1::field::FieldKind;
use plimsoll_gateway::http1::request::RequestHead;
use plimsoll_gateway::http1::scan::HeadScan;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::io::AsyncWriteExt;

/// A request as it was read: method, target, host, fields that are passed on by name, and body.
#[derive(Clone, Debug, PartialEq)]
struct Reading {
    method: String,
    target: String,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// Reads one request. `None` if it is not whole; the status if it is refused.
fn read(bytes: &[u8]) -> Result<Option<Reading>, u16> {
    let bytes = bytes.strip_prefix(b"\r\n").unwrap_or(bytes);
    let Some(length) = HeadScan::default().advance(bytes, 4096).map_err(|refusal| refusal.status)? else {
        return Ok(None);
    };
    let mut head = RequestHead::default();
    head.parse(&bytes[..length]).map_err(|refusal| refusal.status)?;
    let mut decoder = Decoder::new(head.framing).of_request(&[]);
    let (mut body, mut at) = (Vec::new(), length);
    while at < bytes.len() && !decoder.is_done() {
        let step = decoder.step(&bytes[at..]).map_err(|refusal| refusal.status)?;
        body.extend_from_slice(&bytes[at..][step.payload]);
        at += step.taken;
    }
    if !decoder.is_done() {
        return Ok(None);
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let fields = head.fields.iter().filter(|field| field.kind == FieldKind::Other);
    Ok(Some(Reading {
        method: text(head.method.of(bytes)),
        target: text(if head.target.is_empty() { b"/" } else { head.target.of(bytes) }),
        fields: fields
            .map(|field| (text(field.name.of(bytes)).to_lowercase(), field.value.of(bytes).to_vec()))
            .collect(),
        body,
    }))
}

#[test]
fn malformed_requests_are_refused() {
    // A body that is longer than the limit is refused by the connection, which knows the limit.
    let known = REFUSED.iter().filter(|(status, ..)| *status != 413);
    let wrong = known.filter(|(status, _, bytes)| read(bytes) != Err(*status));
    let wrong: Vec<_> = wrong.map(|(_, what, bytes)| (what, read(bytes))).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn unusual_requests_are_read_as_they_are_meant() {
    for (what, bytes, method, target, body) in READ {
        let reading = read(bytes).expect(what).expect(what);
        assert_eq!((reading.method.as_str(), reading.target.as_str()), (*method, *target), "{what}");
        assert_eq!(reading.body, *body, "{what}");
    }
}

/// A request that is cut anywhere is not whole, or refused: it is never another request.
#[test]
fn a_request_that_is_cut_is_no_other_request() {
    for (what, bytes, ..) in READ {
        for end in 0..bytes.len() {
            assert!(!matches!(read(&bytes[..end]), Ok(Some(_))), "{what}: {}", bytes[..end].escape_ascii());
        }
    }
}

/// What hyper makes of the same bytes; `None` if it refuses them or waits for more.
async fn read_by_hyper(bytes: &[u8]) -> Option<Reading> {
    let (mut client, server) = tokio::io::duplex(1 << 16);
    client.write_all(bytes).await.expect("room for a request");
    client.shutdown().await.expect("an end");
    let found = Arc::<Mutex<Option<Reading>>>::default();
    let seen = found.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let seen = seen.clone();
        async move {
            let (head, body) = request.into_parts();
            let Ok(body) = body.collect().await else { return Ok(Response::new(String::new())) };
            let fields = head.headers.iter();
            seen.lock().expect("a lock").get_or_insert(Reading {
                method: head.method.to_string(),
                target: head.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
                fields: fields.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect(),
                body: body.to_bytes().to_vec(),
            });
            Ok::<_, Infallible>(Response::new(String::new()))
        }
    });
    let mut one_request = hyper::server::conn::http1::Builder::new();
    drop(
        one_request.keep_alive(false).half_close(true).serve_connection(TokioIo::new(server), service).await,
    );
    found.lock().expect("a lock").take()
}

/// Damages cases of the corpora, by a fixed seed.
struct Damage(u64);

impl Damage {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn case(&mut self) -> Vec<u8> {
        const PIECES: [&[u8]; 12] = [
            b"\r\n",
            b"\n",
            b" ",
            b":",
            b"\t",
            b"\0",
            b";",
            b"0",
            b"1",
            b",",
            b"Content-Length: 1\r\n",
            b"Transfer-Encoding: chunked\r\n",
        ];
        let base = match self.below(3) {
            0 => REFUSED[self.below(REFUSED.len())].2,
            _ => READ[self.below(READ.len())].1,
        };
        let mut text = base.to_vec();
        for _ in 0..self.below(3) {
            let at = self.below(text.len());
            match self.below(3) {
                0 => text[at] = self.below(256) as u8,
                1 => drop(text.remove(at)),
                _ => drop(text.splice(at..at, PIECES[self.below(PIECES.len())].iter().copied())),
            }
        }
        text
    }
}

#[test]
fn fuzz_smoke_whatever_hyper_accepts_too_is_read_alike() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let (mut damage, mut both, mut alone) = (Damage(3), 0, 0);
    for _ in 0..6_000 {
        let text = damage.case();
        let Ok(Some(ours)) = read(&text) else { continue };
        let Some(theirs) = runtime.block_on(read_by_hyper(&text)) else {
            alone += 1;
            continue;
        };
        both += 1;
        let shown = text.escape_ascii();
        assert_eq!((&ours.method, &ours.target), (&theirs.method, &theirs.target), "{shown}");
        assert_eq!(ours.body, theirs.body, "{shown}");
        for field in &ours.fields {
            assert!(theirs.fields.contains(field), "{field:?} of {shown}");
        }
    }
    assert!(both > 500 && alone < both, "both {both}, alone {alone}: the test tests nothing");
}
