//! Any bytes as a request or a response head, found in one read or byte by byte: the same head, or the same refusal.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway::http1::request::RequestHead;
use plimsoll_gateway::http1::response::ResponseHead;
use plimsoll_gateway::http1::scan::HeadScan;

const LIMIT: usize = 64 * 1024;

fuzz_target!(|bytes: &[u8]| {
    let at_once = HeadScan::default().advance(bytes, LIMIT);
    let mut scan = HeadScan::default();
    let stepwise = (0..=bytes.len()).map(|end| scan.advance(&bytes[..end], LIMIT)).find(|r| !matches!(r, Ok(None)));
    assert_eq!(stepwise.unwrap_or(Ok(None)).map_err(|r| r.status), at_once.map_err(|r| r.status));
    if let Ok(Some(length)) = at_once {
        let _ = RequestHead::default().parse(&bytes[..length]);
        let _ = ResponseHead::default().parse(&bytes[..length], bytes.len() % 2 == 0);
    }
});
