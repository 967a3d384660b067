//! Trailers of a response: kept until all have come, and then filtered for the client.

use super::response::ResponseTerms;
use crate::client::caching::Caching;
use crate::http1::Refusal;
use crate::http1::body::Decoder;
use crate::http1::field::kind_of;

/// The bytes of the trailers that have come, their last line included.
#[derive(Debug, Default)]
pub(super) struct TrailerSection(Vec<u8>);

impl TrailerSection {
    pub(super) fn held(&self) -> usize {
        self.0.capacity()
    }

    /// Takes the trailer bytes of `bytes`, and returns their number.
    pub(super) fn take(&mut self, body: &mut Decoder<'_>, bytes: &[u8]) -> Result<usize, Refusal> {
        let taken = body.advance(bytes)?.bytes;
        self.0.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// The trailers for the client: a field that the client's head would not have is left out.
    pub(super) fn passed(&self, terms: &ResponseTerms<'_>) -> Vec<u8> {
        let mut caching = Caching::of(terms.is_lighter());
        let passes = |line: &&[u8]| {
            let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
            !terms.drops(name, kind_of(name)) && caching.passes(name, b"")
        };
        self.0.split_inclusive(|&byte| byte == b'\n').filter(passes).flatten().copied().collect()
    }
}
