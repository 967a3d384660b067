//! A request's head: tokenized by httparse, then held to what RFC 9112 allows and two parsers agree on.
//!
//! [`HeadScan`](super::scan::HeadScan) has already refused bare CR and LF. httparse refuses bad characters in the method
//! and in field names, blanks before a colon, obsolete folding, and control characters in values. Version, target, host,
//! framing and connection options are checked here.

use super::body::Framing;
use super::field::{self, ConnectionOptions, Field, FieldKind};
use super::{MAX_FIELDS, Refusal, Span, Version};
use plimsoll_core::request::{has_dot_segment, host_length, normal_path};
use std::borrow::Cow;
use std::mem::MaybeUninit;

/// A request's head as ranges of the buffer that holds it. Reused from request to request.
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    /// How many bytes the head takes, empty line included.
    pub length: usize,
    pub method: Span,
    /// Path and query in origin form. Empty stands for `/` (absolute form without a path).
    pub target: Span,
    pub path: Span,
    /// The path in normal form, if it is spelled in another form.
    normal_path: Option<String>,
    /// Host and port, from the target if the target has them, otherwise from `Host`. Empty if an HTTP/1.0 request has no host.
    pub authority: Span,
    pub version: Version,
    pub fields: Vec<Field>,
    pub framing: Framing,
    /// The client allows another request on this connection.
    pub keep_alive: bool,
    /// The client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    pub upgrade: bool,
    /// `HEAD`: the response has no body.
    pub is_head: bool,
    /// Whether the client accepts trailers, as gRPC clients say; only on a stream.
    pub takes_trailers: bool,
}

/// A head whose parts came one by one, as a stream's do: ranges of a buffer that holds the parts and then the fields.
#[derive(Clone, Copy, Debug)]
pub struct HeadParts {
    /// How many bytes the parts and the fields take.
    pub length: usize,
    pub method: Span,
    pub target: Span,
    /// The authority; empty if the client did not state it.
    pub authority: Span,
    /// Whether a body follows the head.
    pub has_body: bool,
    /// Whether the client asks for another protocol.
    pub switches: bool,
}

impl RequestHead {
    /// Reads the head at the beginning of `head`, which must end with its empty line.
    pub fn parse(&mut self, head: &[u8]) -> Result<(), Refusal> {
        let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let mut parsed = httparse::Request::new(&mut []);
        match parsed.parse_with_uninit_headers(head, &mut storage) {
            Ok(httparse::Status::Complete(length)) if length == head.len() => self.length = length,
            // If httparse finds another end of the head than the scan did, two parsers read the head differently.
            Ok(_) => return Err(Refusal::bad("the request head is malformed")),
            Err(error) => return Err(refusal_of(error, head)),
        }
        field::collect(head, parsed.headers, &mut self.fields);
        self.method = Span::within(head, parsed.method.unwrap_or_default().as_bytes());
        self.version = if parsed.version == Some(0) { Version::Http10 } else { Version::Http11 };
        self.is_head = self.method.of(head) == b"HEAD";
        self.check_method(head)?;
        let target = Span::within(head, parsed.path.unwrap_or_default().as_bytes());
        self.read_target(head, target)?;
        self.read_host(head)?;
        self.read_framing(head)?;
        let options = field::read_connection(head, &mut self.fields)
            .ok_or(Refusal::bad("the Connection field names too many fields"))?;
        self.read_expectation(head)?;
        self.read_options(head, options);
        self.takes_trailers = false;
        Ok(())
    }

    /// Reads a stream's head, whose fields are in [`fields`](Self::fields) already. It must pass the same checks as a head in
    /// text.
    pub fn take(&mut self, head: &[u8], parts: HeadParts) -> Result<(), Refusal> {
        (self.length, self.method, self.version) = (parts.length, parts.method, Version::Http2);
        self.is_head = self.method.of(head) == b"HEAD";
        self.check_method(head)?;
        if !matches!(parts.target.of(head), b"*" | [b'/', ..]) {
            return Err(Refusal::bad("the path does not begin with a slash"));
        }
        self.read_target(head, parts.target)?;
        self.authority = parts.authority;
        self.read_host(head)?;
        if self.authority.is_empty() {
            return Err(Refusal::bad("neither :authority nor Host names a host"));
        }
        let lengths = field::read_lengths(head, &self.fields)?;
        self.framing = match lengths.content_length {
            _ if lengths.chunked => return Err(Refusal::bad("a stream has no Transfer-Encoding")),
            Some(1..) if !parts.has_body => {
                return Err(Refusal::bad("Content-Length announces a body that does not come"));
            }
            None if parts.has_body => Framing::Chunked,
            Some(length @ 1..) => Framing::Length(length),
            Some(0) | None => Framing::None,
        };
        self.read_expectation(head)?;
        let mut te = self.fields.iter().filter(|field| field.name.of(head) == b"te");
        self.takes_trailers = te.any(|field| field.value.of(head).eq_ignore_ascii_case(b"trailers"));
        (self.keep_alive, self.upgrade) = (true, parts.switches);
        Ok(())
    }

    /// What follows the path's question mark.
    pub fn query<'h>(&self, head: &'h [u8]) -> &'h [u8] {
        let (path, target) = (self.path.of(head), self.target.of(head));
        target.get(path.len() + 1..).unwrap_or_default()
    }

    /// The path as rules match it. `/` if the head has none.
    pub fn rule_path<'h>(&'h self, head: &'h [u8]) -> &'h str {
        let path = match &self.normal_path {
            Some(normal) => normal,
            None => std::str::from_utf8(self.path.of(head)).unwrap_or_default(),
        };
        if path.is_empty() { "/" } else { path }
    }

    /// Methods are distinguished by case, but some servers take `head` for `HEAD`: its answer would have a body that nobody
    /// expects. `TRACE` shows a page's script the fields that proxies added.
    fn check_method(&self, head: &[u8]) -> Result<(), Refusal> {
        match self.method.of(head) {
            b"TRACE" => Err(Refusal::with(405, "TRACE is not supported")),
            // On a stream CONNECT has no path, but a missing path is not the fault to report.
            b"CONNECT" => Err(Refusal::with(501, "CONNECT is not supported")),
            method if method.iter().any(u8::is_ascii_lowercase) => {
                Err(Refusal::bad("a method is written in capital letters"))
            }
            _ => Ok(()),
        }
    }

    fn read_target(&mut self, head: &[u8], target: Span) -> Result<(), Refusal> {
        let text = target.of(head);
        // Characters must be visible; httparse has checked that non-ASCII bytes are UTF-8, which clients send and servers read.
        // Clients never send a fragment: one that is sent is meant to be read in two ways.
        if text.iter().any(|&b| b < 0x21 || b == 0x7f || b == b'#') {
            return Err(Refusal::bad("the request target has a character that must be percent-encoded"));
        }
        self.authority = Span::default();
        self.target = target;
        if text == b"*" {
            if self.method.of(head) != b"OPTIONS" {
                return Err(Refusal::bad("the target * is for OPTIONS only"));
            }
        } else if text.first() != Some(&b'/') {
            self.read_absolute(text, target)?;
        }
        let text = self.target.of(head);
        let path = text.iter().position(|&b| b == b'?').unwrap_or(text.len());
        self.path = Span::new(self.target.start(), self.target.start() + path);
        if has_dot_segment(&text[..path]) {
            return Err(Refusal::bad("the path has a dot segment"));
        }
        self.normal_path = match normal_path(std::str::from_utf8(&text[..path]).unwrap_or_default()) {
            Cow::Owned(normal) => Some(normal),
            Cow::Borrowed(_) => None,
        };
        Ok(())
    }

    /// Absolute form, as sent to a proxy: its authority overrides `Host` (RFC 9112 3.2.2).
    fn read_absolute(&mut self, text: &[u8], target: Span) -> Result<(), Refusal> {
        // The protocol is known from the connection, and not from the scheme that its client writes.
        const SCHEMES: [&[u8]; 2] = [b"http://", b"https://"];
        let begins =
            |scheme: &&[u8]| text.get(..scheme.len()).is_some_and(|own| own.eq_ignore_ascii_case(scheme));
        let Some(scheme) = SCHEMES.iter().find(|scheme| begins(scheme)) else {
            return Err(Refusal::bad("the request target is neither a path nor an http address"));
        };
        let rest = &text[scheme.len()..];
        let end = rest.iter().position(|&b| b == b'/' || b == b'?').unwrap_or(rest.len());
        let start = target.start() + scheme.len();
        if end == 0 {
            return Err(Refusal::bad("the request target has no host"));
        }
        if rest.get(end) == Some(&b'?') {
            return Err(Refusal::bad("the request target has a query but no path"));
        }
        self.authority = Span::new(start, start + end);
        self.target = Span::new(start + end, target.end());
        Ok(())
    }

    fn read_host(&mut self, head: &[u8]) -> Result<(), Refusal> {
        let mut host = None;
        for line in self.fields.iter().filter(|field| field.kind == FieldKind::Host) {
            if host.replace(line.value).is_some() {
                return Err(Refusal::bad("more than one Host field"));
            }
        }
        match host {
            None if self.version == Version::Http11 => return Err(Refusal::bad("the Host field is missing")),
            Some(host) if !is_authority(host.of(head)) => {
                return Err(Refusal::bad("the Host field is malformed"));
            }
            Some(host) if self.authority.is_empty() => self.authority = host,
            // An absolute target overrides Host (RFC 9112 3.2.2); the authority and Host of a stream must agree (RFC 9113
            // 8.3.1).
            Some(host)
                if self.version == Version::Http2
                    && !host.of(head).eq_ignore_ascii_case(self.authority.of(head)) =>
            {
                return Err(Refusal::bad(":authority and Host differ"));
            }
            _ => {}
        }
        if !is_authority(self.authority.of(head)) {
            return Err(Refusal::bad("the request target's host is malformed"));
        }
        Ok(())
    }

    fn read_framing(&mut self, head: &[u8]) -> Result<(), Refusal> {
        let lengths = field::read_lengths(head, &self.fields)?;
        self.framing = match lengths.content_length {
            _ if lengths.chunked && self.version == Version::Http10 => {
                return Err(Refusal::bad("HTTP/1.0 has no Transfer-Encoding"));
            }
            _ if lengths.chunked => Framing::Chunked,
            Some(0) | None => Framing::None,
            Some(length) => Framing::Length(length),
        };
        Ok(())
    }

    fn read_expectation(&mut self, head: &[u8]) -> Result<(), Refusal> {
        self.expects_continue = false;
        for line in self.fields.iter().filter(|field| field.kind == FieldKind::Expect) {
            if !line.value.of(head).eq_ignore_ascii_case(b"100-continue") {
                return Err(Refusal::with(417, "the only expectation supported is 100-continue"));
            }
            // HTTP/1.0 clients do not know interim responses; the field is then ignored (RFC 9110 10.1.1).
            self.expects_continue = self.version != Version::Http10 && self.framing != Framing::None;
        }
        Ok(())
    }

    fn read_options(&mut self, head: &[u8], options: ConnectionOptions) {
        self.keep_alive = match self.version {
            Version::Http10 => options.keep_alive && !options.close,
            Version::Http11 | Version::Http2 => !options.close,
        };
        let mut wanted = false;
        for line in self.fields.iter().filter(|field| field.kind == FieldKind::Upgrade) {
            // With h2c a client could send requests that pass no check made here.
            if field::list(line.value.of(head)).any(|protocol| protocol.eq_ignore_ascii_case(b"h2c")) {
                wanted = false;
                break;
            }
            wanted = true;
        }
        self.upgrade = wanted
            && options.upgrade
            && self.version == Version::Http11
            && self.framing == Framing::None
            && !self.is_head;
    }

    /// The first field of this name, any case. A field that `Connection` names is not passed on, so it is not found.
    pub fn field<'a>(&self, head: &'a [u8], name: &str) -> Option<&'a [u8]> {
        field::find(head, &self.fields, name)
    }

    /// The host without its port, and without the dot that marks a name as complete: `a.b.` is `a.b`.
    pub fn host<'a>(&self, head: &'a [u8]) -> &'a [u8] {
        let authority = self.authority.of(head);
        &authority[..host_length(authority)]
    }
}

/// What the client gets as an answer to an error of httparse.
fn refusal_of(error: httparse::Error, head: &[u8]) -> Refusal {
    match error {
        httparse::Error::TooManyHeaders => Refusal::with(431, "too many fields"),
        httparse::Error::Version if names_other_version(head) => {
            Refusal::with(505, "only HTTP/1.0 and HTTP/1.1 are supported")
        }
        _ => Refusal::bad("the request head is malformed"),
    }
}

/// Whether the request line ends in a well-formed version. It is then an unsupported one, since httparse has refused it.
fn names_other_version(head: &[u8]) -> bool {
    let line = head.split(|&b| b == b'\r').next().unwrap_or_default();
    let mut words = line.split(|&b| b == b' ').skip(2);
    let version = words.next().unwrap_or_default();
    words.next().is_none()
        && matches!(version, [b'H', b'T', b'T', b'P', b'/', major, b'.', minor]
        if major.is_ascii_digit() && minor.is_ascii_digit())
}

/// Host and optional port: characters of a registered name, an address, or an address in brackets.
fn is_authority(text: &[u8]) -> bool {
    let (host, port) = match text.iter().rposition(|&b| b == b':') {
        Some(colon) if !text[colon..].contains(&b']') => (&text[..colon], Some(&text[colon + 1..])),
        _ => (text, None),
    };
    if port.is_some_and(|port| port.len() > 5 || !port.iter().all(u8::is_ascii_digit)) {
        return false;
    }
    if let [b'[', inner @ .., b']'] = host {
        return inner.iter().all(|&b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
    }
    host.iter().all(|&b| b.is_ascii_alphanumeric() || b"-._~!$&'()*+;=%".contains(&b))
}

#[cfg(test)]
mod tests;
