//! A request's text as a server of HTTP/2 is sent it: head, data, trailers.
//!
//! The text was written by the gateway itself, and its body was checked. Data goes out only as far as the server's window
//! allows; the rest stays with the caller.

use crate::http1::body::{Decoder, Framing};
use crate::http1::request::RequestHead;
use crate::http1::scan::HeadScan;
use crate::http2::head;
use bytes::Bytes;
use h2::SendStream;
use http::Request;
use std::io::{self, ErrorKind};
use std::task::{Context, Poll, ready};

const HEAD_LIMIT: usize = 128 * 1024;

/// The result of taking bytes of a head.
pub(super) enum Begun {
    /// The head is not complete yet.
    Part,
    Request(Box<Request<()>>, HeadFacts),
    /// HTTP/2 cannot express the request.
    Impossible,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct HeadFacts {
    pub is_head: bool,
    pub has_body: bool,
}

/// A request on its way.
pub(super) struct RequestText {
    scheme: &'static str,
    /// The bytes of the head that have come.
    text: Vec<u8>,
    scan: HeadScan,
    head: RequestHead,
    body: Decoder<'static>,
    /// The lines of the trailers that have come.
    trailers: Vec<u8>,
    stream: Option<SendStream<Bytes>>,
}

impl RequestText {
    pub(super) fn new(scheme: &'static str) -> Self {
        RequestText {
            scheme,
            text: Vec::new(),
            scan: HeadScan::default(),
            head: RequestHead::default(),
            body: Decoder::new(Framing::None),
            trailers: Vec::new(),
            stream: None,
        }
    }

    /// Whether the next bytes belong to the body. A request that HTTP/2 cannot express keeps its body, which nothing takes:
    /// read as a head, the body would be a request that nobody has decided on.
    pub(super) fn is_in_body(&self) -> bool {
        !self.body.is_done()
    }

    /// Takes bytes of the head, and returns their number. When the head is complete, the request begins.
    pub(super) fn take_head(&mut self, bytes: &[u8]) -> io::Result<(usize, Begun)> {
        let before = self.text.len();
        self.text.extend_from_slice(bytes);
        let wrong = |_| io::Error::from(ErrorKind::InvalidData);
        let Some(length) = self.scan.advance(&self.text, HEAD_LIMIT).map_err(wrong)? else {
            return Ok((bytes.len(), Begun::Part));
        };
        self.text.truncate(length);
        self.head.parse(&self.text).map_err(wrong)?;
        let request = head::outgoing(&self.text, &self.head, self.scheme);
        self.body = Decoder::new(self.head.framing);
        (self.stream, self.scan) = (None, HeadScan::default());
        self.text.clear();
        let facts = HeadFacts { is_head: self.head.is_head, has_body: !self.body.is_done() };
        let begun = request.map_or(Begun::Impossible, |request| Begun::Request(Box::new(request), facts));
        Ok((length - before, begun))
    }

    pub(super) fn begin_body(&mut self, stream: SendStream<Bytes>) {
        self.trailers.clear();
        self.stream = Some(stream);
    }

    /// Takes bytes of the body; ready with how many were taken.
    pub(super) fn poll_body(&mut self, bytes: &[u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(Err(ErrorKind::BrokenPipe.into())) };
        let ahead = usize::try_from(self.body.payload_ahead()).unwrap_or(usize::MAX);
        let wrong = |_| io::Error::from(ErrorKind::InvalidData);
        if ahead == 0 {
            if self.body.is_in_trailers() {
                self.trailers.push(bytes[0]);
            }
            self.body.advance(&bytes[..1]).map_err(wrong)?;
            if self.body.is_done() {
                self.end()?;
            }
            return Poll::Ready(Ok(1));
        }
        let wanted = ahead.min(bytes.len());
        let count = ready!(poll_room(stream, wanted, context))?.min(wanted);
        self.body.advance(&bytes[..count]).map_err(wrong)?;
        let data = Bytes::copy_from_slice(&bytes[..count]);
        stream.send_data(data, self.body.is_done()).map_err(io::Error::other)?;
        Poll::Ready(Ok(count))
    }

    /// Ends a body in chunks.
    fn end(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let trailers = head::read_trailers(&self.trailers).ok_or(ErrorKind::InvalidData)?;
        let sent = match trailers.is_empty() {
            true => stream.send_data(Bytes::new(), true),
            false => stream.send_trailers(trailers),
        };
        sent.map_err(io::Error::other)
    }
}

/// How many bytes the server's window allows.
fn poll_room(
    stream: &mut SendStream<Bytes>,
    wanted: usize,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    stream.reserve_capacity(wanted);
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(context)) {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
            None => return Poll::Ready(Err(ErrorKind::BrokenPipe.into())),
        }
    }
    Poll::Ready(Ok(stream.capacity()))
}
