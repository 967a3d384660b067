use super::*;
use plimsoll_core::random::Random;

#[test]
fn reserved_names_are_no_trailers() {
    let own = |name: &str| vec![(name.to_owned(), "low".to_owned())];
    let long = "x-quality-of-what-is-served-here";
    for (reserved, trailer, is_good) in [
        ("x-quality", "X_Quality", false),
        ("x-quality", "x-qualities", true),
        (long, long, false),
        (long, "x-quality-of-what", true),
    ] {
        let fields = own(reserved);
        let dropped = [reserved.to_owned()];
        for mut body in [
            Decoder::new(Framing::Chunked).of_request(&fields),
            Decoder::new(Framing::Chunked).of_request(&[]).without(&dropped, None),
            Decoder::new(Framing::Chunked).of_request(&[]).without(&[], Some(reserved)),
        ] {
            let text = format!("0\r\n{trailer}: high\r\n\r\n");
            assert_eq!(body.advance(text.as_bytes()).is_ok(), is_good, "{trailer}");
        }
    }
}

/// Fields that an origin may merge into the head, although the request was classified without them.
#[test]
fn fields_of_the_head_are_no_trailers() {
    let trailer = |name: &str| {
        let text = format!("0\r\n{name}: x\r\n\r\n");
        Decoder::new(Framing::Chunked).advance(text.as_bytes()).is_ok()
    };
    for name in
        ["Authorization", "COOKIE", "set_cookie", "If-None-Match", "X-Real-IP", "Content-Type", "Host"]
    {
        assert!(!trailer(name), "{name}");
    }
    for name in ["Grpc-Status", "Server-Timing", "x-checksum", "digest"] {
        assert!(trailer(name), "{name}");
    }
}

/// A field about the client behind a proxy is refused in requests, however long its name is; a server may say what it likes.
#[test]
fn a_client_says_nothing_of_itself_in_trailers() {
    for (name, is_good) in [
        ("x-forwarded-prefix", false),
        ("X-Forwarded-Client-Certificate", false),
        ("x-forwarding-is-another-thing", true),
    ] {
        let text = format!("0\r\n{name}: high\r\n\r\n");
        let request = Decoder::new(Framing::Chunked).of_request(&[]).advance(text.as_bytes());
        assert_eq!(request.is_ok(), is_good, "{name}");
        assert!(Decoder::new(Framing::Chunked).advance(text.as_bytes()).is_ok(), "{name} of a server");
    }
}

/// Decodes a body; returns the payload, whether the body ended, and the bytes left over, or the refusal.
fn decode(framing: Framing, pieces: &[&[u8]]) -> Result<(Vec<u8>, bool, Vec<u8>), Refusal> {
    let mut decoder = Decoder::new(framing);
    let (mut payload, mut rest) = (Vec::new(), Vec::new());
    for piece in pieces {
        let mut at = 0;
        while at < piece.len() && !decoder.is_done() {
            let step = decoder.step(&piece[at..])?;
            assert!(step.taken > 0, "no progress");
            payload.extend_from_slice(&piece[at..][step.payload]);
            at += step.taken;
        }
        rest.extend_from_slice(&piece[at..]);
    }
    Ok((payload, decoder.is_done(), rest))
}

#[test]
fn good_bodies() {
    assert_eq!(decode(Framing::None, &[b"x"]), Ok((vec![], true, b"x".to_vec())));
    assert_eq!(decode(Framing::Length(3), &[b"ab", b"cd"]), Ok((b"abc".to_vec(), true, b"d".to_vec())));
    assert_eq!(decode(Framing::UntilClose, &[b"ab"]), Ok((b"ab".to_vec(), false, vec![])));
    let chunked = b"3\r\nabc\r\n0A;x=\"y\"\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\nGET";
    assert_eq!(decode(Framing::Chunked, &[chunked]), Ok((b"abc0123456789".to_vec(), true, b"GET".to_vec())));
}

#[test]
fn bad_chunks_are_refused() {
    for bad in [
        &b"\r\n"[..],
        b"g\r\n",
        b"0x3\r\nabc\r\n",
        b"+3\r\nabc\r\n",
        b"-3\r\n",
        b" 3\r\nabc\r\n",
        b"3 \r\nabc\r\n",
        b"3 ;a\r\nabc\r\n",
        b"3\nabc\r\n",
        b"3\rabc",
        b"3\r\r\nabc",
        b"3\r\nabcd\r\n",
        b"3\r\nabc\n",
        b"3\r\nabc\rX",
        b"1000000000000000\r\n",
        b"3;a\nb\r\nabc\r\n",
        b"3;a\0\r\nabc\r\n",
        b"0\r\n\n",
        b"0\r\nA: 1\n\r\n",
        b"0\r\n A: 1\r\n\r\n",
        b"0\r\nA : 1\r\n\r\n",
        b"0\r\nA: \0\r\n\r\n",
        b"0\r\nContent-Length: 5\r\n\r\n",
        b"0\r\ntransfer_encoding: chunked\r\n\r\n",
        b"0\r\nHost: b\r\n\r\n",
        b"0\r\n: 1\r\n\r\n",
    ] {
        assert!(decode(Framing::Chunked, &[bad]).is_err(), "{:?}", String::from_utf8_lossy(bad));
    }
    let long = [b"3;".as_slice(), &[b'a'; MAX_CHUNK_LINE as usize]].concat();
    assert!(decode(Framing::Chunked, &[&long]).is_err());
    let trailers = [b"0\r\na:".as_slice(), &[b'a'; MAX_TRAILERS as usize]].concat();
    assert_eq!(decode(Framing::Chunked, &[&trailers]).map_err(|r| r.status), Err(431));
}

#[test]
fn fuzz_smoke_a_damaged_body_is_read_alike_however_it_is_split() {
    let seeds: [&[u8]; 3] = [
        b"3\r\nabc\r\n1;e=1\r\nx\r\n0\r\n\r\nrest",
        b"10\r\n0123456789abcdef\r\n0\r\nA: b\r\nC: d\r\n\r\n",
        b"0\r\n\r\n0\r\n\r\n",
    ];
    let mut random = Random::new(7);
    let mut below = |bound: usize| random.below(bound as u64) as usize;
    let (mut accepted, mut refused) = (0, 0);
    for round in 0..20_000 {
        let mut text = seeds[round % seeds.len()].to_vec();
        for _ in 0..below(3) {
            let at = below(text.len());
            match below(3) {
                0 => text[at] = b"\r\n;0aA: \0"[below(9)],
                1 => drop(text.remove(at)),
                _ => text.insert(at, b"\r\n;0aA: \0"[below(9)]),
            }
        }
        let whole = decode(Framing::Chunked, &[&text]);
        let mut pieces = Vec::new();
        let mut rest = &text[..];
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(1 + below(rest.len()));
            pieces.push(piece);
            rest = tail;
        }
        assert_eq!(decode(Framing::Chunked, &pieces), whole, "{:?}", String::from_utf8_lossy(&text));
        match whole {
            Ok((_, true, _)) => accepted += 1,
            Ok(_) => {}
            Err(_) => refused += 1,
        }
    }
    assert!(
        accepted > 1000 && refused > 1000,
        "accepted {accepted}, refused {refused}: the test tests nothing"
    );
}
