//! An upstream's response head, read as strictly as a request's: if two parsers read a response differently, the next client on
//! the connection may get a part of it as its own response.

use super::body::Framing;
use super::field::{self, Field, FieldKind};
use super::{MAX_FIELDS, Refusal, Span, Version};
use std::mem::MaybeUninit;

/// A response's head as ranges of the buffer that holds it. Reused from response to response.
#[derive(Clone, Debug, Default)]
pub struct ResponseHead {
    /// How many bytes the head takes, empty line included.
    pub length: usize,
    /// The status code, 100..=599.
    pub status: u16,
    pub phrase: Span,
    pub version: Version,
    pub fields: Vec<Field>,
    pub framing: Framing,
    /// `Content-Length` as sent; even if there is no body (`HEAD`, 304).
    pub content_length: Option<u64>,
    /// Whether the connection can serve another request after this response.
    pub keep_alive: bool,
}

impl ResponseHead {
    /// Reads the head in `head`, which must end with its empty line. `to_head`: the request was `HEAD`.
    pub fn parse(&mut self, head: &[u8], to_head: bool) -> Result<(), Refusal> {
        let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut parsed = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        match config.parse_response_with_uninit_headers(&mut parsed, head, &mut storage) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => self.length = length,
            _ => return Err(Refusal::bad("the upstream's response head is malformed")),
        }
        self.status = parsed.code.unwrap_or(0);
        if !(100..600).contains(&self.status) {
            return Err(Refusal::bad("the upstream's status code is out of range"));
        }
        self.phrase = Span::within(head, parsed.reason.unwrap_or_default().as_bytes());
        self.version = if parsed.version == Some(0) { Version::Http10 } else { Version::Http11 };
        field::collect(head, parsed.headers, &mut self.fields);
        let lengths = field::read_lengths(head, &self.fields)
            .map_err(|_| Refusal::bad("the upstream's response has ambiguous framing"))?;
        if lengths.chunked && self.version == Version::Http10 {
            return Err(Refusal::bad("the upstream sent Transfer-Encoding with HTTP/1.0"));
        }
        self.content_length = lengths.content_length;
        let bodiless = to_head || self.status < 200 || matches!(self.status, 204 | 304);
        self.framing = match lengths.content_length {
            _ if bodiless => Framing::None,
            _ if lengths.chunked => Framing::Chunked,
            Some(length) => Framing::Length(length),
            None => Framing::UntilClose,
        };
        let options = field::read_connection(head, &mut self.fields)
            .ok_or(Refusal::bad("the upstream's Connection field names too many fields"))?;
        self.keep_alive = self.framing != Framing::UntilClose
            && match self.version {
                Version::Http10 => options.keep_alive && !options.close,
                Version::Http11 | Version::Http2 => !options.close,
            };
        Ok(())
    }

    /// Whether a final response follows this one.
    pub fn is_interim(&self) -> bool {
        self.status < 200 && self.status != 101
    }

    /// The first field of this name, any case.
    pub fn field<'a>(&self, head: &'a [u8], name: &str) -> Option<&'a [u8]> {
        field::find(head, &self.fields, name)
    }

    /// The load report's value, if the upstream sent one.
    pub fn load_report<'a>(&self, head: &'a [u8]) -> Option<&'a [u8]> {
        self.fields.iter().find(|field| field.kind == FieldKind::LoadReport).map(|field| field.value.of(head))
    }
}

#[cfg(test)]
mod tests {
    use super::super::scan::HeadScan;
    use super::*;

    fn parse(text: &[u8], to_head: bool) -> Result<ResponseHead, Refusal> {
        let length = HeadScan::default().advance(text, 4096)?.ok_or(Refusal::bad("incomplete"))?;
        let mut head = ResponseHead::default();
        head.parse(&text[..length], to_head)?;
        Ok(head)
    }

    #[test]
    fn framing_follows_status_and_method() {
        let table: &[(&[u8], bool, Framing, bool)] = &[
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", false, Framing::Length(5), true),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, Framing::None, true),
            (b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n", false, Framing::Chunked, true),
            (b"HTTP/1.1 200 OK\r\n\r\n", false, Framing::UntilClose, false),
            (b"HTTP/1.1 304 N\r\nContent-Length: 5\r\n\r\n", false, Framing::None, true),
            (b"HTTP/1.1 204 N\r\n\r\n", false, Framing::None, true),
            (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n", false, Framing::Length(5), false),
            (
                b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n",
                false,
                Framing::Length(0),
                true,
            ),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n",
                false,
                Framing::Length(5),
                false,
            ),
        ];
        for (text, to_head, framing, keep_alive) in table {
            let head = parse(text, *to_head).expect("a good response");
            assert_eq!((head.framing, head.keep_alive), (*framing, *keep_alive), "{text:?}");
        }
    }

    #[test]
    fn ambiguous_responses_are_refused() {
        for text in [
            &b"HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\n"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
            b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n",
            b"HTTP/1.1 099 OK\r\n\r\n",
            b"HTTP/1.1 600 OK\r\n\r\n",
            b"HTTP/2.0 200 OK\r\n\r\n",
            b"ICY 200 OK\r\n\r\n",
        ] {
            assert!(parse(text, false).is_err(), "{:?}", String::from_utf8_lossy(text));
        }
    }
}
