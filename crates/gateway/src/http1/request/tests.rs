use super::super::response::ResponseHead;
use super::super::scan::HeadScan;
use super::*;

const LIMIT: usize = 4096;

fn parse(text: &[u8]) -> Result<RequestHead, Refusal> {
    let length = HeadScan::default().advance(text, LIMIT)?.ok_or(Refusal::bad("incomplete"))?;
    let mut head = RequestHead::default();
    head.parse(&text[..length])?;
    Ok(head)
}

fn status(text: &[u8]) -> u16 {
    parse(text).map_or_else(|refusal| refusal.status, |_| 0)
}

#[test]
fn reads_a_plain_request() {
    let text = b"GET /a/b?c=d HTTP/1.1\r\nHost: Example.org:8080\r\nAccept:  x/y \r\nX-E:\r\n\r\n";
    let head = parse(text).expect("a good request");
    assert_eq!(head.length, text.len());
    assert_eq!(head.method.of(text), b"GET");
    assert_eq!(head.target.of(text), b"/a/b?c=d");
    assert_eq!(head.path.of(text), b"/a/b");
    assert_eq!(head.authority.of(text), b"Example.org:8080");
    assert_eq!(head.host(text), b"Example.org");
    assert_eq!(head.field(text, "accept"), Some(&b"x/y"[..]));
    assert_eq!(head.field(text, "x-e"), Some(&b""[..]));
    assert_eq!(head.field(text, "nothing"), None);
    assert!(head.keep_alive && head.framing == Framing::None);
}

#[test]
fn hosts() {
    for (host, name) in
        [("[::1]:80", "[::1]"), ("[::1]", "[::1]"), ("127.0.0.1:1", "127.0.0.1"), ("a", "a"), ("", "")]
    {
        let text = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let head = parse(text.as_bytes()).expect(host);
        assert_eq!(head.host(text.as_bytes()), name.as_bytes());
    }
    for bad in ["a b", "a/b", "a@b", "a,b", "a:b", "a:123456", "[x]", "[::1", "a:1:2", "a\tb", "a\"", "<a>"] {
        let text = format!("GET / HTTP/1.1\r\nHost: {bad}\r\n\r\n");
        assert_eq!(status(text.as_bytes()), 400, "{bad}");
    }
}

#[test]
fn absolute_form_overrides_host() {
    let text = b"GET HTTP://a.b:8/c?d HTTP/1.1\r\nHost: other\r\n\r\n";
    let head = parse(text).expect("absolute form");
    assert_eq!((head.authority.of(text), head.target.of(text)), (&b"a.b:8"[..], &b"/c?d"[..]));
    let text = b"GET http://a HTTP/1.1\r\nHost: a\r\n\r\n";
    let head = parse(text).expect("absolute form without path");
    assert!(head.target.of(text).is_empty());
}

#[test]
fn http10_and_connection_options() {
    assert!(!parse(b"GET / HTTP/1.0\r\n\r\n").expect("1.0").keep_alive);
    assert!(parse(b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").expect("1.0").keep_alive);
    assert!(!parse(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: x, CLOSE\r\n\r\n").expect("1.1").keep_alive);
    let text = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Hop, host, content-length\r\nx-hop: 1\r\n\r\n";
    let head = parse(text).expect("nominated fields");
    let kinds: Vec<FieldKind> = head.fields.iter().map(|field| field.kind).collect();
    assert_eq!(kinds, [FieldKind::Host, FieldKind::Connection, FieldKind::HopByHop]);
}

#[test]
fn upgrades() {
    let upgrade = |protocol: &str| {
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: {protocol}\r\n\r\n");
        parse(text.as_bytes()).expect("upgrade").upgrade
    };
    assert!(upgrade("websocket"));
    assert!(!upgrade("h2c"));
    assert!(!upgrade("websocket, H2C"));
    assert!(!parse(b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\n\r\n").expect("no option").upgrade);
}

#[test]
fn framing() {
    let framing = |fields: &str| {
        parse(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes()).map(|head| head.framing)
    };
    assert_eq!(framing(""), Ok(Framing::None));
    assert_eq!(framing("Content-Length: 0\r\n"), Ok(Framing::None));
    assert_eq!(framing("Content-Length: 12\r\n"), Ok(Framing::Length(12)));
    assert_eq!(framing("Transfer-Encoding: Chunked\r\n"), Ok(Framing::Chunked));
}

/// Rules match the path that a server will serve, and that is forwarded.
#[test]
fn rules_see_the_normal_path_and_the_fields_that_are_passed_on() {
    let text =
        "GET /%73earch;a?q HTTP/1.1\r\nHost: a\r\nConnection: X-Plan\r\nX-Plan: gold\r\n\r\n".as_bytes();
    let mut head = parse(text).expect("a good request");
    assert_eq!((head.rule_path(text), head.target.of(text)), ("/search", &b"/%73earch;a?q"[..]));
    assert_eq!(head.field(text, "x-plan"), None);
    let next = "GET /caf\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n".as_bytes();
    head.parse(next).expect("a path with letters of all languages");
    assert_eq!(head.rule_path(next), "/caf\u{e9}");
}

/// Every attempt must be refused, with the status that says what is wrong.
const ATTEMPTS: &[(u16, &str)] = &[
    // Both lengths, repeated lengths, lengths that are no numbers.
    (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n"),
    // Methods that a server could take for others, and one that shows a script what proxies added.
    (400, "head / HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "Post / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"),
    (405, "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"),
    // Codings.
    (400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"),
    (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
    (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n"),
    (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n"),
    (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n"),
    (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n"),
    (501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n"),
    (400, "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\n Transfer-Encoding: chunked\r\n\r\n"),
    (400, "POST / HTTP/1.1\r\nHost: a\r\nX: y\r\n\tTransfer-Encoding: chunked\r\n\r\n"),
    // Line ends.
    (400, "GET / HTTP/1.1\nHost: a\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\r\nX: y\rZ: w\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\r\n\n"),
    // Field syntax.
    (400, "GET / HTTP/1.1\r\nHost: a\r\nX y: z\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\r\n: z\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\r\nX: \x7f\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\n Host: a\r\n\r\n"),
    // Hosts.
    (400, "GET / HTTP/1.1\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    (400, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    (400, "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
    (400, "GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n"),
    (400, "GET http:/// HTTP/1.1\r\nHost: b\r\n\r\n"),
    (400, "GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET https:/a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    // Request lines.
    (400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
    (400, "GET / http/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /\r\nHost: a\r\n\r\n"),
    (400, "GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /#f HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "G@T / HTTP/1.1\r\nHost: a\r\n\r\n"),
    (501, "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
    (505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    (505, "GET / HTTP/1.2\r\nHost: a\r\n\r\n"),
    (400, "GET / HTTP/11\r\nHost: a\r\n\r\n"),
    (417, "POST / HTTP/1.1\r\nHost: a\r\nExpect: x\r\nContent-Length: 1\r\n\r\n"),
    // Paths that leave their tree.
    (400, "GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /.. HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /./b HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /%2e%2E/b HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /a/.%2e?x HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /..%2fb HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /..\\b HTTP/1.1\r\nHost: a\r\n\r\n"),
    (400, "GET /..;a=b/b HTTP/1.1\r\nHost: a\r\n\r\n"),
];

#[test]
fn smuggling_attempts_are_refused() {
    for (expected, text) in ATTEMPTS {
        assert_eq!(status(text.as_bytes()), *expected, "{text:?}");
    }
}

#[test]
fn dots_that_are_names_pass() {
    for path in ["/...", "/a..b", "/.well-known/x", "/a.", "/..a/", "/a?../..", "/;..", "/a%2eb"] {
        assert_eq!(status(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()), 0, "{path}");
    }
}

#[test]
fn disguised_fields_are_not_passed_on() {
    let text = b"POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 5\r\nX_Forwarded_For: b\r\nmy_own: c\r\n\r\n";
    let head = parse(text).expect("underscores");
    assert_eq!(head.framing, Framing::None);
    let kinds: Vec<FieldKind> = head.fields.iter().map(|field| field.kind).collect();
    assert_eq!(kinds, [FieldKind::Host, FieldKind::HopByHop, FieldKind::HopByHop, FieldKind::Other]);
}

#[test]
fn too_many_nominations_are_refused() {
    let text = |count| format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {}\r\n\r\n", "a,".repeat(count));
    assert_eq!(status(text(32).as_bytes()), 0);
    assert_eq!(status(text(33).as_bytes()), 400);
}

#[test]
fn too_many_fields_is_431() {
    let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a: b\r\n".repeat(MAX_FIELDS));
    assert_eq!(status(text.as_bytes()), 431);
}

/// The outcome of a scan in which one byte comes at a time.
fn scan_stepwise(text: &[u8]) -> Result<Option<usize>, Refusal> {
    let mut scan = HeadScan::default();
    let outcomes = (0..=text.len()).map(|end| scan.advance(&text[..end], LIMIT));
    outcomes.into_iter().find(|outcome| !matches!(outcome, Ok(None))).unwrap_or(Ok(None))
}

/// A damaged head gives the same result in one read and byte by byte. If it is accepted, it has no control characters and one
/// framing, so that it cannot be read in another way.
#[test]
fn fuzz_smoke_damaged_heads_never_panic_and_stay_strict() {
    let base = b"POST /a?b HTTP/1.1\r\nHost: a.b\r\nContent-Length: 3\r\nX: y\r\nConnection: close\r\n\r\n";
    let mut state = 1u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut accepted = 0;
    for _ in 0..30_000 {
        let mut text = base.to_vec();
        for _ in 0..=next(3) {
            let at = next(text.len());
            match next(3) {
                0 => text[at] = next(256) as u8,
                1 => drop(text.remove(at)),
                _ => text.insert(at, b"\r\n :\0\t/"[next(7)]),
            }
        }
        let at_once = HeadScan::default().advance(&text, LIMIT);
        assert_eq!(scan_stepwise(&text).map_err(|r| r.status), at_once.map_err(|r| r.status));
        if let Ok(Some(length)) = at_once {
            let _ = ResponseHead::default().parse(&text[..length], length % 2 == 0);
        }
        if let Ok(head) = parse(&text) {
            accepted += 1;
            let taken = &text[..head.length];
            assert!(!taken.contains(&0));
            let lines = taken.iter().filter(|&&b| b == b'\n').count();
            assert_eq!(lines, head.fields.len() + 2, "{:?}", String::from_utf8_lossy(taken));
            assert!(is_authority(head.authority.of(&text)));
        }
    }
    assert!(accepted > 1000, "only {accepted} accepted: the test tests nothing");
}
