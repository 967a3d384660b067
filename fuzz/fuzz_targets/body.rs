//! Any bytes as a chunked body, in one piece or in two: the same end, or refused both times.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway::http1::body::{Decoder, Framing};

fn read(pieces: &[&[u8]]) -> Result<(usize, bool), u16> {
    let mut decoder = Decoder::new(Framing::Chunked);
    let (mut total, mut held) = (0, Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            let taken = decoder.advance(&held).map_err(|refusal| refusal.status)?.bytes;
            held.drain(..taken);
            total += taken;
            if taken == 0 || decoder.is_done() {
                break;
            }
        }
        if decoder.is_done() {
            break;
        }
    }
    Ok((total, decoder.is_done()))
}

fuzz_target!(|input: (u16, &[u8])| {
    let (cut, bytes) = input;
    let (first, second) = bytes.split_at(usize::from(cut).min(bytes.len()));
    assert_eq!(read(&[bytes]), read(&[first, second]));
});
