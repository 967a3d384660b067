//! The part of a request's body that was read before the engine decided on the request, on its way to the server.

use super::inbox::Inbox;
use super::spill_files::Store;
use crate::http1::body::{Decoder, Framing};
use std::io;

/// The part of a body that was read before the engine decided on the request.
#[derive(Debug, Default)]
pub(crate) struct EarlyBody {
    /// The first bytes of the body, if they are in a file.
    pub stored: Option<Store>,
    /// How many bytes follow in the inbox, behind the head.
    pub in_inbox: usize,
    /// Whether the body's last byte was read.
    pub is_whole: bool,
    /// Whether the body lies there in chunks but is sent without them: it is complete, so its length is known.
    pub is_to_be_unwrapped: bool,
}

impl EarlyBody {
    /// The decoder of the body as it lies there; `of_head` is the framing that the head states.
    pub(crate) fn decoder(&self, of_head: Framing) -> Decoder<'static> {
        Decoder::new(if self.is_to_be_unwrapped { Framing::Chunked } else { of_head })
    }
}

/// The part of a body that was stored, on its way to the server.
#[derive(Debug)]
pub(crate) struct StoredBody {
    store: Store,
    pub window: Inbox,
}

impl StoredBody {
    pub(crate) fn new(store: Store) -> Self {
        StoredBody { store, window: Inbox::default() }
    }

    /// Fills the window, which must be empty, with the next bytes. False if there are no more.
    pub(crate) fn refill(&mut self) -> io::Result<bool> {
        self.window.fill_with(|buffer| self.store.read(buffer)).map(|count| count > 0)
    }
}
