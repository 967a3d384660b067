//! The gateway's reading of a connection beside hyper's: whatever both accept is read the same, message by message.
//!
//! A message that only one of them accepts proves nothing: the gateway refuses on purpose what two servers could read
//! differently.

use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::TokioIo;
use plimsoll_gateway::http1::MAX_FIELDS;
use plimsoll_gateway::http1::body::{Decoder, Framing};
use plimsoll_gateway::http1::field::{Field, FieldKind};
use plimsoll_gateway::http1::request::RequestHead;
use plimsoll_gateway::http1::response::ResponseHead;
use plimsoll_gateway::http1::scan::HeadScan;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::{Builder, Runtime};

/// The longest input: it fits into a pipe, so that nobody waits for room.
const MOST: usize = 1 << 15;

/// A message as it was read: what its first line says, the fields that are passed on, and the body.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reading {
    line: String,
    fields: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// Runs this to its end. What it left behind ends with it.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let runtime: Runtime = Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(future)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn passed_on(bytes: &[u8], fields: &[Field]) -> Vec<(String, Vec<u8>)> {
    let fields = fields.iter().filter(|field| field.kind == FieldKind::Other);
    fields.map(|field| (text(field.name.of(bytes)).to_lowercase(), field.value.of(bytes).to_vec())).collect()
}

fn fields_of(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    headers.iter().map(|(name, value)| (name.to_string(), value.as_bytes().to_vec())).collect()
}

/// The payload of a whole body, and how many bytes it takes; `None` if it is refused or not whole.
fn body(mut decoder: Decoder<'_>, bytes: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (mut payload, mut at) = (Vec::new(), 0);
    while at < bytes.len() && !decoder.is_done() {
        let step = decoder.step(&bytes[at..]).ok()?;
        payload.extend_from_slice(&bytes[at..][step.payload]);
        at += step.taken;
    }
    decoder.may_end().then_some((payload, at))
}

/// The requests of a connection, up to the first that is refused, not whole, or the last.
fn our_requests(mut bytes: &[u8]) -> Vec<Reading> {
    let mut readings = Vec::new();
    loop {
        // One empty line before a request is skipped (RFC 9112 2.2).
        bytes = bytes.strip_prefix(b"\r\n").unwrap_or(bytes);
        let Ok(Some(length)) = HeadScan::default().advance(bytes, MOST + 1) else { return readings };
        let mut head = RequestHead::default();
        if head.parse(&bytes[..length]).is_err() {
            return readings;
        }
        alike_in_httparse(bytes, &head);
        let decoder = Decoder::new(head.framing).of_request(&[]);
        let Some((body, taken)) = body(decoder, &bytes[length..]) else { return readings };
        let target = if head.target.is_empty() { b"/" } else { head.target.of(bytes) };
        let line = format!("{} {}", text(head.method.of(bytes)), text(target));
        readings.push(Reading { line, fields: passed_on(bytes, &head.fields), body });
        if !head.keep_alive || head.upgrade {
            return readings;
        }
        bytes = &bytes[length + taken..];
    }
}

/// httparse reads the same head, and its fields say the same about the body.
fn alike_in_httparse(bytes: &[u8], ours: &RequestHead) {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut theirs = httparse::Request::new(&mut fields);
    assert_eq!(theirs.parse(bytes), Ok(httparse::Status::Complete(ours.length)));
    assert_eq!(ours.method.of(bytes), theirs.method.unwrap_or_default().as_bytes());
    assert!(theirs.path.unwrap_or_default().as_bytes().ends_with(ours.target.of(bytes)));
    assert_eq!(ours.fields.len(), theirs.headers.len());
    let values = |name: &str| -> Vec<&[u8]> {
        let named = theirs.headers.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
        named.map(|field| field.value).collect()
    };
    let (lengths, codings) = (values("content-length"), values("transfer-encoding"));
    match ours.framing {
        Framing::Chunked => assert!(lengths.is_empty() && codings.len() == 1),
        Framing::Length(length) => {
            assert!(codings.is_empty() && lengths.len() == 1);
            assert_eq!(text(lengths[0]).trim().parse(), Ok(length));
        }
        Framing::None => {
            assert!(codings.is_empty() && lengths.iter().all(|digits| digits.iter().all(|&b| b == b'0')));
        }
        Framing::UntilClose => panic!("a request ends before its connection does"),
    }
}

/// What hyper makes of the same bytes: the requests up to the first that it refuses.
async fn their_requests(bytes: &[u8]) -> Vec<Reading> {
    let (client, server) = tokio::io::duplex(2 * MOST);
    let (mut answers, mut sending) = tokio::io::split(client);
    sending.write_all(bytes).await.expect("room for all");
    sending.shutdown().await.expect("an end");
    // Answers are thrown away, so that no number of requests fills the pipe.
    let thrown_away =
        tokio::spawn(async move { tokio::io::copy(&mut answers, &mut tokio::io::sink()).await });
    let found = Arc::<Mutex<Vec<Reading>>>::default();
    let seen = found.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let seen = seen.clone();
        async move {
            let (head, body) = request.into_parts();
            let Ok(body) = body.collect().await else { return Ok(Response::new(String::new())) };
            let target = head.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
            let line = format!("{} {target}", head.method);
            let (fields, body) = (fields_of(&head.headers), body.to_bytes().to_vec());
            seen.lock().unwrap_or_else(PoisonError::into_inner).push(Reading { line, fields, body });
            Ok::<_, Infallible>(Response::new(String::new()))
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    drop(builder.half_close(true).serve_connection(TokioIo::new(server), service).await);
    thrown_away.abort();
    std::mem::take(&mut *found.lock().unwrap_or_else(PoisonError::into_inner))
}

fn assert_alike(ours: &Reading, theirs: &Reading, bytes: &[u8]) {
    let shown = bytes.escape_ascii();
    assert_eq!((&ours.line, &ours.body), (&theirs.line, &theirs.body), "{shown}");
    for field in &ours.fields {
        assert!(theirs.fields.contains(field), "{field:?} of {shown}");
    }
}

/// Requests one behind the other.
pub fn requests(bytes: &[u8]) {
    if bytes.len() > MOST {
        return;
    }
    let ours = our_requests(bytes);
    if ours.is_empty() {
        return;
    }
    let theirs = wait(their_requests(bytes));
    ours.iter().zip(&theirs).for_each(|(ours, theirs)| assert_alike(ours, theirs, bytes));
}

/// The final response on a connection that ends behind these bytes.
fn our_response(mut bytes: &[u8], is_head: bool) -> Option<Reading> {
    loop {
        let length = HeadScan::default().advance(bytes, MOST + 1).ok()??;
        let mut head = ResponseHead::default();
        head.parse(&bytes[..length], is_head).ok()?;
        if head.is_interim() {
            bytes = &bytes[length..];
            continue;
        }
        let (body, _) = body(Decoder::new(head.framing), &bytes[length..])?;
        // A connection that is switched is a tunnel from here on.
        let is_final = head.status >= 200;
        return is_final.then(|| Reading {
            line: head.status.to_string(),
            fields: passed_on(bytes, &head.fields),
            body,
        });
    }
}

async fn their_response(bytes: &[u8], is_head: bool) -> Option<Reading> {
    let (client, mut server) = tokio::io::duplex(2 * MOST);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(client)).await.ok()?;
    let connection = tokio::spawn(connection);
    let method = if is_head { Method::HEAD } else { Method::GET };
    let request = Request::builder().method(method).uri("/").header("host", "h").body(Empty::<Bytes>::new());
    let response = sender.send_request(request.ok()?);
    // hyper has to have sent its request, or an answer is none.
    let bytes = bytes.to_vec();
    let answering = tokio::spawn(async move {
        let mut request = [0; 256];
        if server.read(&mut request).await.is_ok() {
            drop(server.write_all(&bytes).await);
        }
    });
    let response = response.await;
    drop(answering.await);
    let (head, body) = response.ok()?.into_parts();
    let body = body.collect().await;
    connection.abort();
    let (line, fields) = (head.status.as_str().to_owned(), fields_of(&head.headers));
    Some(Reading { line, fields, body: body.ok()?.to_bytes().to_vec() })
}

/// A response. An odd number of bytes answers `HEAD`.
pub fn response(bytes: &[u8]) {
    let is_head = bytes.len() % 2 == 1;
    if bytes.len() > MOST {
        return;
    }
    let Some(ours) = our_response(bytes, is_head) else { return };
    if let Some(theirs) = wait(their_response(bytes, is_head)) {
        assert_alike(&ours, &theirs, bytes);
    }
}
