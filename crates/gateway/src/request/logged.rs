//! The beginning and the early end of a request's entry in the access log. A request that starts takes its entry along with
//! its permit, which writes the line when it departs.

use super::way::Way;
use crate::access_log::entry::{Entry, LoggedHead};
use crate::client::wire::Wire;
use plimsoll_core::request::{Reason, Target};

impl<W: Wire> Way<W> {
    /// Begins the entry of a request whose head was read, if its site has a log.
    pub(super) fn begin_log_entry(&mut self, target: Option<Target>) {
        let tables = self.worker.tables();
        let Some(log) = tables.access_logs.of(target.map(|target| target.site)).cloned() else { return };
        let (bytes, head) = (self.client.inbox.bytes(), &self.head);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let field = |name| head.field(bytes, name).map(text);
        let logged = LoggedHead {
            method: text(head.method.of(bytes)),
            target: text(head.target.of(bytes)),
            host: text(head.host(bytes)),
            referer: field("referer"),
            user_agent: field("user-agent"),
            version: head.version,
        };
        let client = self.peer.client(bytes, head, &tables.settings);
        self.entry = Some(Entry::begin(log, tables, client, Some(logged), target));
    }

    /// Writes the line of a request that does not start.
    pub(super) fn log_turned_away(&mut self, status: u16, reason: Option<Reason>, body_length: usize) {
        if let Some(entry) = self.entry.take().or_else(|| self.unread_entry()) {
            entry.turned_away(status, reason, body_length as u64);
        }
    }

    /// The entry of a request that cannot be read.
    fn unread_entry(&self) -> Option<Box<Entry>> {
        let tables = self.worker.tables();
        let log = tables.access_logs.of(None)?.clone();
        Some(Entry::begin(log, tables, self.peer.address, None, None))
    }
}
