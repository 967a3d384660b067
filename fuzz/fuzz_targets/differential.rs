//! Any bytes as a request: what the gateway accepts is read alike by httparse, and by nobody as two requests.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway::http1::MAX_FIELDS;
use plimsoll_gateway::http1::body::Framing;
use plimsoll_gateway::http1::request::RequestHead;
use plimsoll_gateway::http1::scan::HeadScan;

const LIMIT: usize = 64 * 1024;

/// The values of a field, any case.
fn values<'h>(fields: &'h [httparse::Header<'_>], name: &str) -> Vec<&'h [u8]> {
    fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value).collect()
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(length)) = HeadScan::default().advance(bytes, LIMIT) else { return };
    let mut ours = RequestHead::default();
    if ours.parse(&bytes[..length]).is_err() {
        return;
    }
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut theirs = httparse::Request::new(&mut fields);
    assert_eq!(theirs.parse(bytes), Ok(httparse::Status::Complete(length)));
    assert_eq!(ours.method.of(bytes), theirs.method.unwrap_or_default().as_bytes());
    assert!(theirs.path.unwrap_or_default().as_bytes().ends_with(ours.target.of(bytes)));
    assert_eq!(ours.fields.len(), theirs.headers.len());
    let lengths = values(theirs.headers, "content-length");
    let codings = values(theirs.headers, "transfer-encoding");
    match ours.framing {
        Framing::Chunked => assert!(lengths.is_empty() && codings.len() == 1),
        Framing::Length(length) => {
            assert!(codings.is_empty() && lengths.len() == 1);
            let text = std::str::from_utf8(lengths[0]).expect("digits");
            assert_eq!(text.trim().parse(), Ok(length));
        }
        Framing::None => assert!(codings.is_empty() && lengths.iter().all(|text| text.iter().all(|&b| b == b'0'))),
        Framing::UntilClose => panic!("a request ends before its connection does"),
    }
});
