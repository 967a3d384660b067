use super::*;
use crate::http1::Version;
use crate::http1::body::Framing;
use crate::http1::scan::HeadScan;

fn read(builder: request::Builder, has_body: bool) -> Result<(RequestHead, Vec<u8>), Refusal> {
    let (parts, ()) = builder.body(()).expect("a request").into_parts();
    let (mut head, mut buffer) = (RequestHead::default(), b"left over".to_vec());
    let start = StreamStart { goes_on: has_body, nonce: 7 };
    request(&parts, start, &mut buffer, &mut head).map(|()| (head, buffer))
}

fn get(uri: &str) -> request::Builder {
    http::Request::builder().uri(uri)
}

#[test]
fn a_streams_head_is_read_like_a_text() {
    let request = get("http://Shop.example:80/a%62?q=1").header("x-plan", "gold").header("te", "trailers");
    let (head, bytes) = read(request, false).expect("a good head");
    assert_eq!((head.method.of(&bytes), head.target.of(&bytes)), (&b"GET"[..], &b"/a%62?q=1"[..]));
    assert_eq!((head.host(&bytes), head.rule_path(&bytes)), (&b"Shop.example"[..], "/ab"));
    assert_eq!(head.field(&bytes, "X-Plan"), Some(&b"gold"[..]));
    assert_eq!(head.field(&bytes, "te"), None, "a field of the connection");
    assert!(head.takes_trailers && head.keep_alive && !head.upgrade);
    assert_eq!((head.version, head.framing, head.length), (Version::Http2, Framing::None, bytes.len()));
}

#[test]
fn cookies_become_one_field() {
    let request = get("http://h/").header("cookie", "a=1").header("accept", "x").header("cookie", "b=2; c=3");
    let (head, bytes) = read(request, false).expect("a good head");
    assert_eq!(head.field(&bytes, "cookie"), Some(&b"a=1; b=2; c=3"[..]));
    assert_eq!(head.fields.len(), 2);
}

#[test]
fn a_body_is_framed_by_what_its_client_says() {
    let post = || get("http://h/").method("POST");
    for (request, has_body, framing) in [
        (post(), false, Framing::None),
        (post(), true, Framing::Chunked),
        (post().header("content-length", "7"), true, Framing::Length(7)),
        (post().header("content-length", "0"), true, Framing::None),
        (post().header("content-length", "0"), false, Framing::None),
    ] {
        assert_eq!(read(request, has_body).expect("a good head").0.framing, framing);
    }
    let waits = post().header("expect", "100-continue").header("content-length", "7");
    assert!(read(waits, true).expect("a good head").0.expects_continue);
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    for request in [
        get("/"),
        get("/").header("host", ""),
        get("http://h/").header("host", "other"),
        get("http://h/").header("host", "h").header("host", "h"),
        get("http://user@h/"),
        get("http://h/../etc"),
        get("http://h/").header("content-length", "7"),
        get("http://h/").header("content-length", "0").header("content-length", "0"),
        get("http://h/").header("content-length", "+1"),
        get("http://h/").header("x", "a "),
        get("http://h/").header("expect", "200-ok"),
        get("http://h/").method("get"),
        get("http://h/").method("TRACE"),
        get("*"),
    ] {
        let text = format!("{request:?}");
        assert!(read(request, false).is_err(), "{text}");
    }
    let many = (0..=MAX_FIELDS).fold(get("http://h/"), |request, at| request.header(format!("x-{at}"), "y"));
    assert_eq!(read(many, false).expect_err("too many").status, 431);
    let tunnel = get("h:80").method("CONNECT");
    assert_eq!(read(tunnel, false).expect_err("no proxy").status, 501, "as over HTTP/1.1");
    let agree = get("http://h/").header("host", "H");
    assert!(read(agree, false).is_ok());
    assert!(read(get("/").header("host", "h"), false).is_ok(), "a client may name the host in Host");
}

#[test]
fn a_response_loses_the_fields_of_its_connection() {
    let text = b"HTTP/1.1 200 OK\r\nConnection: close, x-hop\r\nTransfer-Encoding: chunked\r\nX-Hop: 1\r\n\
        Keep-Alive: 5\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nServer: \xc3\xa4\r\n\r\n";
    let length = HeadScan::default().advance(text, 4096).expect("a head").expect("all of it");
    let mut head = ResponseHead::default();
    head.parse(&text[..length], false).expect("a good response");
    let response = to_client(text, &head).expect("fields that can be sent");
    let names: Vec<&str> = response.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!((response.status().as_u16(), names), (200, vec!["set-cookie", "server"]));
    assert_eq!(response.headers().get_all("set-cookie").iter().count(), 2);
}

#[test]
fn a_websocket_is_a_get_that_asks_for_an_upgrade() {
    let ask = |protocol: &'static str| {
        let connect = get("http://h/chat").method("CONNECT").extension(Protocol::from_static(protocol));
        connect.header("sec-websocket-version", "13").header("sec_websocket_key", "mine")
    };
    let (head, bytes) = read(ask("websocket"), true).expect("a good head");
    assert_eq!((head.method.of(&bytes), head.rule_path(&bytes)), (&b"GET"[..], "/chat"));
    assert_eq!((head.framing, head.upgrade), (Framing::None, true), "what follows is no body");
    assert_eq!(head.field(&bytes, "upgrade"), Some(&b"websocket"[..]));
    assert_eq!(head.field(&bytes, "sec-websocket-key"), Some(&b"AAAAAAAAAAAAAAAAAAAABw=="[..]));
    assert_eq!(head.fields.len(), 3, "a second key would be the client's");
    assert_eq!(read(ask("connect-udp"), true).expect_err("no WebSocket").status, 501);
    assert!(read(ask("websocket").header("content-length", "7"), true).is_err());
    assert!(read(ask("websocket").method("GET"), true).is_err());
}

#[test]
fn a_switch_of_protocols_is_a_200() {
    let text = b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\n";
    let mut head = ResponseHead::default();
    head.parse(text, false).expect("a good response");
    let response = to_client(text, &head).expect("fields that can be sent");
    let names: Vec<&str> = response.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!((response.status().as_u16(), names), (200, vec!["sec-websocket-protocol"]));
}

#[test]
fn a_request_goes_out_as_it_was_written() {
    let text = "POST /a<b>?c=\u{e4} HTTP/1.1\r\nHost: h:80\r\nX-A: b\r\nte: trailers\r\nTransfer-Encoding: chunked\r\n\
        Connection: te\r\n\r\n";
    let mut head = RequestHead::default();
    head.parse(text.as_bytes()).expect("a good request");
    let request = outgoing(text.as_bytes(), &head, "https").expect("a request");
    assert_eq!(request.uri(), "https://h:80/a%3Cb%3E?c=%C3%A4");
    let names: Vec<&str> = request.headers().keys().map(HeaderName::as_str).collect();
    assert_eq!((request.method().as_str(), names), ("POST", vec!["x-a", "te"]));
}

#[test]
fn a_response_comes_in_as_text() {
    let read = |status: u16, length: Option<&str>, ends, to_head| {
        let response = Response::builder().status(status).header("a", "b");
        let response =
            length.into_iter().fold(response, |response, length| response.header("content-length", length));
        let (text, in_chunks) =
            incoming(&response.body(()).expect("a response").into_parts().0, ends, to_head);
        let mut head = ResponseHead::default();
        head.parse(&text, to_head).map(|()| (head.status, head.framing, in_chunks))
    };
    for (status, length, ends, to_head, framing) in [
        (200, None, false, false, Framing::Chunked),
        (200, None, true, false, Framing::Length(0)),
        (200, Some("7"), false, false, Framing::Length(7)),
        (200, None, true, true, Framing::None),
        (204, None, true, false, Framing::None),
        (304, Some("7"), true, false, Framing::None),
        (103, None, false, false, Framing::None),
    ] {
        let in_chunks = framing == Framing::Chunked;
        assert_eq!(read(status, length, ends, to_head), Ok((status, framing, in_chunks)), "{status}");
    }
    assert!(read(101, None, false, false).is_err(), "there is no switch");
}

#[test]
fn trailers_go_both_ways() {
    let trailers = read_trailers(b"Grpc-Status: 0\r\ngrpc-message:\r\nx: a b\r\n\r\n").expect("trailers");
    let mut out = Vec::new();
    write_trailers(&trailers, &mut out);
    assert_eq!(String::from_utf8_lossy(&out), "grpc-status: 0\r\ngrpc-message: \r\nx: a b\r\n");
    assert!(read_trailers(b"\r\n").expect("none").is_empty());
    assert!(read_trailers(b"").expect("none").is_empty());
}
