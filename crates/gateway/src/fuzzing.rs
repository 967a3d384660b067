//! Parsers and writers that are private elsewhere, each as one function of bytes, for the fuzz targets (`crates/fuzz`). Nothing
//! else calls them.

use crate::client::response_fields::Requested;
use crate::exchange::head::Incoming;
use crate::exchange::response::ResponseTerms;
use crate::files::{FileBody, FileFields, FileRequest, Files, FilesSettings};
use crate::http1::body::Framing;
use crate::http1::request::RequestHead;
use crate::http1::response::ResponseHead;
use crate::http1::rules::HeaderRules;
use crate::http1::scan::HeadScan;
use crate::http2::head::StreamStart;
use crate::request::head::Outgoing;
use crate::request::peer::{ConnectionSource, Peer};
use crate::settings::{Rewrite, Settings};
use crate::traces::context::TraceContext;
use crate::transport::proxy_header::Header;
use crate::upstream::forwarding_loop::LoopMark;
use crate::upstream::load_report::{self, LoadReports};
use plimsoll_core::random::Random;
use std::cell::RefCell;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest head.
const LIMIT: usize = 64 * 1024;

/// The length of the PROXY protocol header at the beginning of these bytes, and the client's address in it; `None` if there is
/// no complete header.
pub fn proxy_header(bytes: &[u8]) -> Option<(usize, Option<IpAddr>)> {
    match Header::read(bytes) {
        Header::Whole(length, source) => Some((length, source)),
        Header::Begun(_) | Header::None => None,
    }
}

/// The name in a client's certificate, in DER; `None` if it has no name that can be a field's value.
pub fn client_name(certificate: &[u8]) -> Option<String> {
    crate::transport::tls::certificate::client_name(&certificate.into())
}

/// A request's head as its server gets it, with a place in a trace, and the client that it is counted for; `None` if the head
/// is refused or incomplete.
pub fn forwarded(bytes: &[u8], peer: IpAddr, settings: &Settings) -> Option<(Vec<u8>, IpAddr)> {
    let bytes = &bytes[..HeadScan::default().advance(bytes, LIMIT).ok()??];
    let mut head = RequestHead::default();
    head.parse(bytes).ok()?;
    let peer = Peer::new(&ConnectionSource::plain(peer), &settings.trusted_proxies);
    let client = peer.client(bytes, &head, settings);
    let trace = TraceContext::of(Some((bytes, &head.fields)), 0.5, &mut Random::new(0));
    Some((written((bytes, &head), &peer, settings, Some(&trace)), client))
}

/// A request's head as its server gets it, without rules of the site's.
fn written(
    (bytes, head): (&[u8], &RequestHead),
    peer: &Peer,
    settings: &Settings,
    trace: Option<&TraceContext>,
) -> Vec<u8> {
    let mut written = Vec::new();
    Outgoing {
        bytes,
        head,
        rewrite: None,
        is_lighter: false,
        peer,
        settings,
        fallback_host: "origin",
        own_host: None,
        rules: &HeaderRules::default(),
        mark: &LoopMark::default(),
        trace,
        places: None,
    }
    .write(&mut written);
    written
}

/// A stream's head as its server gets it, and what rules see of it.
#[derive(Debug)]
pub struct ForwardedStream {
    pub written: Vec<u8>,
    pub host: String,
    pub path: String,
    pub framing: Framing,
}

/// A stream's head; `None` if it is refused. `websocket`: the stream is to become a WebSocket.
pub fn forwarded_stream(
    mut parts: http::request::Parts,
    (has_body, websocket): (bool, bool),
    peer: IpAddr,
    settings: &Settings,
) -> Option<ForwardedStream> {
    let (mut bytes, mut head) = (Vec::new(), RequestHead::default());
    if websocket {
        parts.extensions.insert(h2::ext::Protocol::from_static("websocket"));
    }
    let start = StreamStart { goes_on: has_body, nonce: 0 };
    crate::http2::head::request(&parts, start, &mut bytes, &mut head).ok()?;
    let peer = Peer::new(&ConnectionSource::plain(peer), &settings.trusted_proxies);
    let written = written((&bytes, &head), &peer, settings, None);
    let host = String::from_utf8_lossy(head.host(&bytes)).into_owned();
    Some(ForwardedStream { written, host, path: head.rule_path(&bytes).to_owned(), framing: head.framing })
}

/// A response's head as a client of HTTP/1.1 gets it; `None` if it is refused or incomplete.
pub fn answered(bytes: &[u8], is_head: bool) -> Option<Vec<u8>> {
    let bytes = &bytes[..HeadScan::default().advance(bytes, LIMIT).ok()??];
    let mut head = ResponseHead::default();
    head.parse(bytes, is_head).ok()?;
    let framing = match head.framing {
        Framing::UntilClose => Framing::Chunked,
        framing => framing,
    };
    let terms = ResponseTerms {
        requested: Requested { keep_alive: true, is_head, ..Requested::default() },
        report: None,
        report_name: "x-plimsoll",
        reports: Some(&LoadReports::default()),
        cost_header: None,
        rules: &HeaderRules::default(),
        date: &RefCell::default(),
        falls_back: false,
        rewrites: &[Rewrite { prefix: "/full".to_owned(), ..Rewrite::default() }],
        sent: b"GET /full/ HTTP/1.1\r\nhost: h\r\n\r\n",
        addresses: &[],
        own_host: None,
    };
    let mut written = Vec::new();
    Incoming { bytes, head: &head, framing, terms: &terms }.write(&mut written);
    Some(written)
}

/// The utilization and the cost that a server's report of load states.
pub fn load_report(value: &[u8]) -> (Option<f64>, Option<Duration>) {
    let reports = LoadReports::default();
    reports.add(value);
    (reports.take(), load_report::cost(value))
}

/// A file server, and its time.
#[derive(Debug)]
pub struct FileServer(Files, Instant);

/// What a [`FileServer`] answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileAnswer {
    /// The status code.
    pub status: u16,
    /// The header fields.
    pub headers: Vec<(String, String)>,
    /// The length that the head states.
    pub length: Option<u64>,
    /// The bytes that follow.
    pub body: Vec<u8>,
}

impl FileServer {
    /// Opens a folder.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn open(root: &Path) -> std::io::Result<FileServer> {
        Ok(FileServer(Files::new(FilesSettings::new(root))?, Instant::now()))
    }

    /// Answers a request's head; `None` if it is refused before a file is looked for.
    pub fn answer(&mut self, bytes: &[u8]) -> Option<FileAnswer> {
        let bytes = &bytes[..HeadScan::default().advance(bytes, LIMIT).ok()??];
        let mut head = RequestHead::default();
        head.parse(bytes).ok()?;
        let text = |bytes| std::str::from_utf8(bytes).ok();
        let headers = head.fields.iter();
        let headers = headers.filter_map(|one| Some((text(one.name.of(bytes))?, one.value.of(bytes))));
        let request = FileRequest {
            method: text(head.method.of(bytes))?,
            path: text(head.path.of(bytes))?,
            query: text(head.query(bytes)),
            fields: FileFields::of(headers),
        };
        let response = self.0.respond(self.1, &request);
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let lines = response.headers.block().split_terminator("\r\n");
        let mut headers: Vec<_> = lines.filter_map(|line| line.split_once(": ")).map(owned).collect();
        headers.extend(response.headers.extra().map(owned));
        let body = match response.body {
            FileBody::Empty => Vec::new(),
            FileBody::Memory { bytes, range } => bytes[range].to_vec(),
            FileBody::File(mut slice) => {
                let (mut body, mut some) = (Vec::new(), vec![0; 64 * 1024]);
                while let Ok(count @ 1..) = slice.read(&mut some) {
                    body.extend_from_slice(&some[..count]);
                }
                body
            }
        };
        Some(FileAnswer { status: response.status, headers, length: response.content_length, body })
    }
}
