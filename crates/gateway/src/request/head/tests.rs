use super::*;
use crate::request::peer::ConnectionSource;
use crate::settings::{ForwardedFields, RealIpHeader};
use plimsoll_core::promises::Network;

fn network(text: &str, prefix_bits: u8) -> Network {
    Network { address: text.parse().expect("an address"), prefix_bits }
}

fn forwarded(peer: &str, text: &str, settings: &Settings, rewrite: Option<&Rewrite>) -> String {
    ruled(peer, text, settings, rewrite, &HeaderRules::default())
}

fn ruled(
    peer: &str,
    text: &str,
    settings: &Settings,
    rewrite: Option<&Rewrite>,
    rules: &HeaderRules,
) -> String {
    written(peer, text, settings, |plain, out| Outgoing { rewrite, rules, ..plain }.write(out))
}

/// The head that `write` makes from the plain head of a request.
fn written(
    peer: &str,
    text: &str,
    settings: &Settings,
    write: impl FnOnce(Outgoing<'_>, &mut Vec<u8>),
) -> String {
    let mut head = RequestHead::default();
    head.parse(text.as_bytes()).expect("a good request");
    let peer = ConnectionSource::plain(peer.parse().expect("an address"));
    let plain = Outgoing {
        bytes: text.as_bytes(),
        head: &head,
        rewrite: None,
        is_lighter: false,
        peer: &Peer::new(&peer, &settings.trusted_proxies),
        settings,
        fallback_host: "origin:80",
        own_host: None,
        rules: &HeaderRules::default(),
        mark: &LoopMark::default(),
        trace: None,
        places: None,
    };
    let mut out = Vec::new();
    write(plain, &mut out);
    String::from_utf8(out).expect("text")
}

/// A proxy writes this to the server that the target names (RFC 9112 3.2.4).
#[test]
fn options_of_a_whole_server_ask_for_no_path() {
    let rewrite = Rewrite { prefix: "/light".to_owned(), headers: Vec::new(), falls_back: false };
    for (target, expected) in [("http://h", "*"), ("*", "*"), ("http://h/", "/light/")] {
        let text = format!("OPTIONS {target} HTTP/1.1\r\nHost: h\r\n\r\n");
        let head = forwarded("1.2.3.4", &text, &Settings::default(), Some(&rewrite));
        assert_eq!(head.split(' ').nth(1), Some(expected), "{target}");
    }
    let get = forwarded("1.2.3.4", "GET http://h HTTP/1.1\r\nHost: h\r\n\r\n", &Settings::default(), None);
    assert_eq!(get.split(' ').nth(1), Some("/"));
}

#[test]
fn hop_by_hop_fields_stay_and_spoofed_ones_go() {
    let text = "GET /a?b HTTP/1.1\r\nHost: h:1\r\nConnection: x-hop, keep-alive\r\nX-Hop: 1\r\nKeep-Alive: 5\r\n\
                TE: trailers\r\nProxy-Connection: a\r\nUpgrade: websocket\r\nX-Forwarded-For: 9.9.9.9\r\n\
                Forwarded: for=9.9.9.9\r\nX-Forwarded-Proto: https\r\nX_Forwarded_Host: evil\r\nAccept: b\r\n\r\n";
    assert_eq!(
        forwarded("1.2.3.4", text, &Settings::default(), None),
        "GET /a?b HTTP/1.1\r\nhost: h:1\r\nAccept: b\r\nx-forwarded-for: 1.2.3.4\r\nx-forwarded-proto: http\r\n\
         x-forwarded-host: h:1\r\n\r\n"
    );
}

#[test]
fn an_upstream_with_a_host_of_its_own_is_asked_for_it_and_given_the_clients() {
    let (text, settings) = ("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n", Settings::default());
    let own_host = Some("app.internal");
    let written = written("1.2.3.4", text, &settings, |plain, out| Outgoing { own_host, ..plain }.write(out));
    assert!(written.starts_with("GET / HTTP/1.1\r\nhost: app.internal\r\n"), "{written}");
    assert!(written.contains("\r\nx-forwarded-host: shop.example\r\n"), "{written}");
}

#[test]
fn a_trusted_proxy_is_continued() {
    let settings = Settings {
        trusted_proxies: vec![network("1.2.3.0", 24)],
        forwarded: ForwardedFields::Both,
        ..Settings::default()
    };
    let text = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 9.9.9.9\r\nForwarded: for=9.9.9.9\r\n\
                X-Forwarded-Proto: https\r\nX-Forwarded-Host: outer\r\n\r\n";
    assert_eq!(
        forwarded("1.2.3.4", text, &settings, None),
        "GET / HTTP/1.1\r\nhost: h\r\nx-forwarded-for: 9.9.9.9, 1.2.3.4\r\nx-forwarded-proto: https\r\n\
         x-forwarded-host: outer\r\nforwarded: for=9.9.9.9;host=\"outer\";proto=https, \
         for=1.2.3.4;host=\"h\";proto=http\r\n\r\n"
    );
}

/// If a proxy writes only one of the fields, the other field is the client's own.
#[test]
fn the_field_that_the_proxy_does_not_write_is_dropped() {
    let settings = Settings {
        trusted_proxies: vec![network("1.2.3.0", 24)],
        real_ip_header: RealIpHeader::Forwarded,
        forwarded: ForwardedFields::Both,
        ..Settings::default()
    };
    let text = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: made-up\r\n\
                X-Forwarded-Host: made.up\r\nForwarded: for=\"[2001:db8::1]\";proto=https\r\n\r\n";
    assert_eq!(
        forwarded("1.2.3.4", text, &settings, None),
        "GET / HTTP/1.1\r\nhost: h\r\nx-forwarded-for: [2001:db8::1], 1.2.3.4\r\nx-forwarded-proto: https\r\n\
         x-forwarded-host: h\r\nforwarded: for=\"[2001:db8::1]\";proto=https, for=1.2.3.4;host=\"h\";proto=http\r\n\r\n"
    );
    let settings = Settings { real_ip_header: RealIpHeader::XForwardedFor, ..settings };
    let text = "GET / HTTP/1.1\r\nHost: h\r\nForwarded: for=6.6.6.6;proto=made-up\r\nX-Forwarded-For: 2001:db8::1\r\n\r\n";
    assert_eq!(
        forwarded("1.2.3.4", text, &settings, None),
        "GET / HTTP/1.1\r\nhost: h\r\nx-forwarded-for: 2001:db8::1, 1.2.3.4\r\nx-forwarded-proto: http\r\n\
         x-forwarded-host: h\r\nforwarded: for=\"[2001:db8::1]\", for=1.2.3.4;host=\"h\";proto=http\r\n\r\n"
    );
}

#[test]
fn proto_and_host_are_given_by_the_proxy_and_not_by_its_client() {
    let settings = Settings {
        trusted_proxies: vec![network("1.2.3.0", 24)],
        real_ip_header: RealIpHeader::Forwarded,
        ..Settings::default()
    };
    let text = "GET / HTTP/1.1\r\nHost: h\r\nForwarded: for=1.1.1.1;host=evil.example;proto=https, \
                for=203.0.113.9;host=shop.example;proto=http\r\n\r\n";
    let written = forwarded("1.2.3.4", text, &settings, None);
    assert!(
        written.ends_with("\r\nx-forwarded-proto: http\r\nx-forwarded-host: shop.example\r\n\r\n"),
        "{written}"
    );
    // The client asks for any host name it likes, and the proxy quotes it.
    let text = "GET / HTTP/1.1\r\nHost: h\r\nForwarded: for=203.0.113.9;host=\"a,b;proto=https;for=1.1.1.1\";proto=http\r\n\r\n";
    let written = forwarded("1.2.3.4", text, &settings, None);
    let fields = "\r\nx-forwarded-for: 203.0.113.9, 1.2.3.4\r\nx-forwarded-proto: http\r\n\
                x-forwarded-host: a,b;proto=https;for=1.1.1.1\r\n\r\n";
    assert!(written.ends_with(fields), "{written}");
}

#[test]
fn what_else_proxies_say_passes_from_trusted_ones_alone() {
    let settings = Settings {
        trusted_proxies: vec![network("1.2.3.0", 24)],
        forwarded: ForwardedFields::None,
        ..Settings::default()
    };
    let text = "GET / HTTP/1.1\r\nHost: h\r\nX-Real-IP: 9.9.9.9\r\nX-Forwarded-Prefix: /a\r\n\
                X_Real_IP: 8.8.8.8\r\nX-Forwarded-User: root\r\n\r\n";
    let start = "GET / HTTP/1.1\r\nhost: h\r\n";
    assert_eq!(forwarded("6.6.6.6", text, &settings, None), format!("{start}\r\n"));
    let fields = "X-Real-IP: 9.9.9.9\r\nX-Forwarded-Prefix: /a\r\nX-Forwarded-User: root\r\n";
    assert_eq!(forwarded("1.2.3.4", text, &settings, None), format!("{start}{fields}\r\n"));
    let rules = HeaderRules::new(vec!["x-forwarded-user".to_owned()], Vec::new());
    let fields = "X-Real-IP: 9.9.9.9\r\nX-Forwarded-Prefix: /a\r\n";
    assert_eq!(ruled("1.2.3.4", text, &settings, None, &rules), format!("{start}{fields}\r\n"));
}

#[test]
fn no_host_is_the_upstreams_and_forwarded_as_none() {
    let settings = Settings { forwarded: ForwardedFields::Both, ..Settings::default() };
    assert_eq!(
        forwarded("1.2.3.4", "GET / HTTP/1.0\r\n\r\n", &settings, None),
        "GET / HTTP/1.1\r\nhost: origin:80\r\nx-forwarded-for: 1.2.3.4\r\nx-forwarded-proto: http\r\n\
         forwarded: for=1.2.3.4;proto=http\r\n\r\n"
    );
}

#[test]
fn levels_rewrite_path_and_fields() {
    let rewrite = Rewrite {
        prefix: "/light".to_owned(),
        headers: vec![("X-Quality".to_owned(), "low".to_owned())],
        falls_back: false,
    };
    let settings = Settings { forwarded: ForwardedFields::None, ..Settings::default() };
    let text = "POST http://h/p?q HTTP/1.1\r\nHost: other\r\nx-quality: high\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(
        forwarded("::1", text, &settings, Some(&rewrite)),
        "POST /light/p?q HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\nX-Quality: low\r\n\r\n"
    );
    let text = "GET http://h HTTP/1.1\r\nHost: h\r\n\r\n";
    assert_eq!(
        forwarded("::1", text, &settings, Some(&rewrite)),
        "GET /light/ HTTP/1.1\r\nhost: h\r\nX-Quality: low\r\n\r\n"
    );
}

#[test]
fn rules_replace_what_clients_send_and_a_level_adds_to_them() {
    let own = |text: &str| text.to_owned();
    let rules = HeaderRules::new(
        vec![own("x-site"), own("cookie")],
        vec![(own("x-site"), own("shop")), (own("x-tag"), own("a"))],
    );
    let headers = vec![("x-quality".to_owned(), "low".to_owned())];
    let rewrite = Rewrite { headers, ..Rewrite::default() };
    let settings = Settings { forwarded: ForwardedFields::None, ..Settings::default() };
    let text =
        "GET / HTTP/1.1\r\nHost: h\r\nX_Site: made-up\r\nCookie: a=b\r\nX-Tag: b\r\nX-Quality: c\r\n\r\n";
    assert_eq!(
        ruled("::1", text, &settings, Some(&rewrite), &rules),
        "GET / HTTP/1.1\r\nhost: h\r\nX-Tag: b\r\nx-site: shop\r\nx-tag: a\r\nx-quality: low\r\n\r\n"
    );
    assert_eq!(
        ruled("::1", text, &settings, None, &rules),
        "GET / HTTP/1.1\r\nhost: h\r\nX-Tag: b\r\nX-Quality: c\r\nx-site: shop\r\nx-tag: a\r\n\r\n"
    );
}

#[test]
fn framing_cannot_be_nominated_away() {
    let settings = Settings { forwarded: ForwardedFields::None, ..Settings::default() };
    let text = "POST / HTTP/1.1\r\nHost: h\r\nConnection: content-length, host\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(
        forwarded("::1", text, &settings, None),
        "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\n"
    );
}

#[test]
fn the_client_is_the_last_that_is_not_trusted() {
    let trusted = [network("10.0.0.0", 8), network("fd00::", 8)];
    let client_by = |real_ip_header, peer: &str, fields: &str| {
        let text = format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let mut head = RequestHead::default();
        head.parse(text.as_bytes()).expect("a good request");
        let settings = Settings { trusted_proxies: trusted.to_vec(), real_ip_header, ..Settings::default() };
        Peer::new(&ConnectionSource::plain(peer.parse().expect("an address")), &trusted)
            .client(text.as_bytes(), &head, &settings)
            .to_string()
    };
    let client = |peer: &str, fields: &str| client_by(RealIpHeader::XForwardedFor, peer, fields);
    let both = "Forwarded: for=3.3.3.3\r\nX-Forwarded-For: 6.6.6.6\r\n";
    assert_eq!(
        client_by(RealIpHeader::Forwarded, "10.1.1.1", both),
        "3.3.3.3",
        "the client's own is not believed"
    );
    assert_eq!(client("10.1.1.1", "Forwarded: for=6.6.6.6\r\n"), "10.1.1.1");
    assert_eq!(client("1.1.1.1", "X-Forwarded-For: 2.2.2.2\r\n"), "1.1.1.1");
    assert_eq!(client("10.1.1.1", ""), "10.1.1.1");
    assert_eq!(client("10.1.1.1", "X-Forwarded-For: 6.6.6.6, 2.2.2.2, 10.2.2.2\r\n"), "2.2.2.2");
    assert_eq!(client("10.1.1.1", "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 2.2.2.2:80\r\n"), "2.2.2.2");
    let client_of = |fields: &str| client_by(RealIpHeader::Forwarded, "fd00::1", fields);
    assert_eq!(client_of("Forwarded: for=\"[2001:db8::1]:4\";proto=http\r\n"), "2001:db8::1");
    // A proxy quotes the host that its client asks for, and appends to what its client sends.
    for (own, fields) in [("", "for=2.2.2.2;host=\"h,for=6.6.6.6;host=\""), ("for=\"", "for=2.2.2.2")] {
        assert_eq!(client_of(&format!("Forwarded: {own}, {fields}\r\n")), "2.2.2.2", "{own}, {fields}");
    }
    assert_eq!(client("10.1.1.1", "X-Forwarded-For: 2.2.2.2, nonsense\r\n"), "10.1.1.1");
}

/// If a client could write the gateway's field, a server that decides itself would serve lighter pages to everybody.
#[test]
fn the_gateways_places_are_reported_to_a_server_that_decides_itself_and_a_clients_to_none() {
    let text =
        "GET / HTTP/1.1\r\nHost: h\r\nX-Plimsoll-Places: 2.000\r\nX_Plimsoll_Places: 2.000\r\nA: b\r\n\r\n";
    let written = |places: Option<&str>| {
        let settings = Settings { trusted_proxies: vec![network("10.0.0.0", 8)], ..Settings::default() };
        let places = places.and_then(PlaceLoad::of_header);
        written("10.0.0.1", text, &settings, |plain, out| Outgoing { places, ..plain }.write(out))
            .to_ascii_lowercase()
    };
    let [none, reported] = [written(None), written(Some("0.850"))];
    assert!(none.contains("\r\na: b\r\n") && !none.replace('_', "-").contains("x-plimsoll-places"), "{none}");
    assert!(reported.contains("\r\nx-plimsoll-places: 0.850\r\n"), "{reported}");
    assert_eq!(reported.replace('_', "-").matches("x-plimsoll-places").count(), 1, "{reported}");
}
