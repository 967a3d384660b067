//! An exchange that is dropped under way, since the gateway stops and waits for it no longer.

use super::moves::Exchange;
use crate::client::wire::Wire;

impl<W: Wire> Drop for Exchange<'_, W> {
    /// A client that takes the connection's end for the end of the body gets a reset instead.
    fn drop(&mut self) {
        let is_under_way = self.lease.is_some() || !self.client.has_all();
        if is_under_way && self.response.is_committed() && self.response.ends_with_connection() {
            self.client.io.abort();
        }
    }
}
