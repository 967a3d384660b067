//! Heads of requests and answers, and the length of the body that follows each.

use crate::body::Body;
use httparse::{EMPTY_HEADER, Header, Request, Response, Status};

/// The most headers of a head; a head with more is foreign.
pub const HEADERS: usize = 128;

/// What was made of the beginning of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed<T> {
    /// The beginning of a head, of which more may come.
    Partial,
    /// A complete head.
    Whole(T),
    /// Bytes that are no head of HTTP/1.
    Foreign,
}

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestHead<'h, 'b> {
    /// GET, HEAD and so on, as sent.
    pub method: &'b str,
    /// What is asked for: a path with its query, or another form.
    pub target: &'b str,
    /// Where the target begins (byte).
    pub target_at: usize,
    /// The headers in their order.
    pub headers: &'h [Header<'b>],
    /// The number of bytes of the head, with the empty line.
    pub length: usize,
    /// The framing of the body that follows the head.
    pub body: Body,
    /// Whether the client may send another request on this connection.
    pub keeps_alive: bool,
}

impl<'b> RequestHead<'_, 'b> {
    /// The first header of this name, in any case, if its value is text.
    pub fn header(&self, name: &str) -> Option<&'b str> {
        let header = self.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(header.value).ok()
    }
}

/// The head of a request at the beginning of `bytes`. The caller has the room for `headers`: [`HEADERS`].
pub fn request_head<'h, 'b>(bytes: &'b [u8], headers: &'h mut [Header<'b>]) -> Parsed<RequestHead<'h, 'b>> {
    let mut request = Request::new(headers);
    let length = match request.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Parsed::Partial,
        Err(_) => return Parsed::Foreign,
    };
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Parsed::Foreign;
    };
    let headers = &*request.headers;
    let Some(framing) = Framing::of(headers) else { return Parsed::Foreign };
    let body = framing.body().unwrap_or(Body::Length(0));
    let keeps_alive = version == 1 && !has_word(headers, "connection", "close");
    let target_at = target.as_ptr() as usize - bytes.as_ptr() as usize;
    Parsed::Whole(RequestHead { method, target, target_at, headers, length, body, keeps_alive })
}

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerHead {
    pub(crate) status: u16,
    pub(crate) length: usize,
    pub(crate) body: Body,
    /// The type of the body (`Content-Type`); empty if there is none.
    pub(crate) content_type: Vec<u8>,
}

/// The head of an answer at the beginning of `bytes`; the answer to HEAD has no body.
pub(crate) fn answer_head(bytes: &[u8], is_to_head: bool) -> Parsed<AnswerHead> {
    let mut headers = [EMPTY_HEADER; HEADERS];
    let mut response = Response::new(&mut headers);
    let length = match response.parse(bytes) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Parsed::Partial,
        Err(_) => return Parsed::Foreign,
    };
    let status = response.code.unwrap_or(0);
    let body = if is_to_head || matches!(status, 100..200 | 204 | 304) {
        Body::Length(0)
    } else {
        Framing::of(response.headers).and_then(|framing| framing.body()).unwrap_or(Body::UntilClose)
    };
    let mut headers = response.headers.iter();
    let content_type = headers.find(|header| header.name.eq_ignore_ascii_case("content-type"));
    let content_type = content_type.map_or_else(Vec::new, |header| header.value.to_vec());
    Parsed::Whole(AnswerHead { status, length, body, content_type })
}

/// What the headers say about the body's length.
struct Framing {
    length: Option<u64>,
    is_chunked: bool,
}

impl Framing {
    /// `None` if the headers contradict each other, or name an unknown coding.
    fn of(headers: &[Header<'_>]) -> Option<Framing> {
        let mut framing = Framing { length: None, is_chunked: false };
        for header in headers {
            let value = || std::str::from_utf8(header.value).ok().map(str::trim);
            if header.name.eq_ignore_ascii_case("content-length") {
                let digits = value()?;
                let length = if digits.bytes().all(|byte| byte.is_ascii_digit()) {
                    digits.parse().ok()?
                } else {
                    return None;
                };
                if framing.length.is_some_and(|other| other != length) {
                    return None;
                }
                framing.length = Some(length);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                if framing.is_chunked || !value()?.eq_ignore_ascii_case("chunked") {
                    return None;
                }
                framing.is_chunked = true;
            }
        }
        (framing.length.is_none() || !framing.is_chunked).then_some(framing)
    }

    fn body(&self) -> Option<Body> {
        if self.is_chunked { Some(Body::chunked()) } else { self.length.map(Body::Length) }
    }
}

fn has_word(headers: &[Header<'_>], name: &str, word: &str) -> bool {
    let mut own = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
    own.any(|header| {
        let words = header.value.split(|byte| *byte == b',');
        words.map(<[u8]>::trim_ascii).any(|own| own.eq_ignore_ascii_case(word.as_bytes()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with<T>(bytes: &str, read: impl FnOnce(Parsed<RequestHead<'_, '_>>) -> T) -> T {
        let mut headers = [EMPTY_HEADER; HEADERS];
        read(request_head(bytes.as_bytes(), &mut headers))
    }

    #[test]
    fn a_head_is_whole_partial_or_foreign() {
        let whole = "GET /a?b=c HTTP/1.1\r\nHost: here\r\nCookie: x=1\r\n\r\n";
        with(&format!("{whole}GET"), |parsed| {
            let Parsed::Whole(head) = parsed else { panic!("{parsed:?}") };
            assert_eq!((head.method, head.target, head.target_at), ("GET", "/a?b=c", 4));
            assert_eq!(
                (head.length, head.body.clone(), head.keeps_alive),
                (whole.len(), Body::Length(0), true)
            );
            assert_eq!((head.header("HOST"), head.header("none")), (Some("here"), None));
        });
        for end in 0..whole.len() {
            with(&whole[..end], |parsed| assert_eq!(parsed, Parsed::Partial, "{end}"));
        }
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(HEADERS + 1));
        for foreign in [
            "\u{16}\u{3}\u{1}",
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            "SSH-2.0-x\r\n",
            "HTTP/1.1 200 OK\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n",
            &many,
        ] {
            with(foreign, |parsed| assert_eq!(parsed, Parsed::Foreign, "{foreign}"));
        }
    }

    #[test]
    fn what_follows_a_head_is_in_it() {
        for (head, body, keeps_alive) in [
            ("POST / HTTP/1.1\r\nContent-Length: 12\r\n\r\n", Body::Length(12), true),
            ("POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n", Body::chunked(), true),
            ("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n", Body::Length(0), false),
            ("GET / HTTP/1.0\r\n\r\n", Body::Length(0), false),
        ] {
            with(head, |parsed| {
                let Parsed::Whole(read) = parsed else { panic!("{head}: {parsed:?}") };
                assert_eq!((&read.body, read.keeps_alive), (&body, keeps_alive));
            });
        }
    }
}
