//! How far a response is read ahead of a slow client: a few buffers in memory, then up to `limits.response_buffer` bytes in a
//! temporary file. If the buffers of all clients exceed `limits.buffer_memory`, one buffer stays in memory.

use super::moves::Exchange;
use crate::client::buffers;
use crate::client::wire::Wire;

/// The most buffers of a response that lie in memory before the rest goes into the file.
const READ_AHEAD: usize = 4;

impl<W: Wire> Exchange<'_, W> {
    /// Whether there is room for the bytes that the upstream sends next.
    pub(super) fn has_room(&self) -> bool {
        let ahead = self.client.outbox.len();
        ahead == 0 || (ahead < READ_AHEAD && !self.is_memory_short()) || self.may_store()
    }

    pub(super) fn is_memory_short(&self) -> bool {
        buffers::exceed(self.worker.buffer_memory())
    }

    /// Whether more of the response may be stored in the file. Events stay in memory, since they have no end.
    pub(super) fn may_store(&self) -> bool {
        let most = self.worker.tables().settings.limits.response_buffer;
        let (response, outbox) = (&self.response, &self.client.outbox);
        response.is_committed()
            && !response.is_event_stream()
            && !self.storage_failed
            && outbox.stored() < most
    }

    /// Moves the pieces beyond the bound for memory to the file.
    pub(super) fn store(&mut self) {
        let outbox = &self.client.outbox;
        let scarce = outbox.len() > 1 && self.is_memory_short();
        let keep = if scarce { 1 } else { READ_AHEAD };
        if outbox.len() > keep && self.may_store() {
            let limits = self.worker.tables().settings.limits;
            self.worker.spare_files();
            let stored = self.client.outbox.store(keep, &self.worker.shared.storage, &limits);
            // If the file fails, the response stays in memory and waits for its client from here on.
            self.storage_failed = stored.is_err();
        }
    }
}
