//! An exchange that is dropped before its end, because the gateway stops and no longer waits for it.

use super::moves::Exchange;
use crate::client::wire::Wire;

impl<W: Wire> Drop for Exchange<'_, W> {
    /// If the client takes the end of the connection for the end of the body, its connection is reset instead.
    fn drop(&mut self) {
        let is_under_way = self.lease.is_some() || !self.client.has_all();
        if is_under_way && self.response.is_committed() && self.response.ends_with_connection() {
            self.client.io.abort();
        }
    }
}
