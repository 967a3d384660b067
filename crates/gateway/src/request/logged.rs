//! The beginning and the early end of a request's entry in the access log. When a request starts, its entry goes to its permit
//! guard, which writes the line when the request departs.

use super::lifecycle::Way;
use crate::accounting::log_entry::{CLIENT_LEFT, Entry, LoggedHead, Why};
use crate::client::wire::Wire;
use crate::traces::context::{TRACEPARENT, TraceContext};
use plimsoll_core::request::Target;

/// The longest text in an entry (bytes): if a disk or a collector stalls, tens of thousands of entries wait.
const LONGEST: usize = 2048;

/// A text for an entry: if it is too long, its beginning with an ellipsis.
fn text(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]).into_owned();
    if bytes.len() > LONGEST {
        text.push('…');
    }
    text
}

impl<W: Wire> Way<W> {
    /// Begins the entry of a request whose head was read, if its site has a log or the request is traced.
    pub(super) fn begin_log_entry(&mut self, target: Option<Target>) {
        let tables = self.worker.tables();
        let log = tables.access_logs.of(target.map(|target| target.site)).cloned();
        let is_sampled = self.trace.is_some_and(|trace| trace.is_sampled());
        if log.is_none() && !is_sampled {
            return;
        }
        let (bytes, head) = (self.client.inbox.bytes(), &self.head);
        let field = |name| head.field(bytes, name).map(text);
        let logged = LoggedHead {
            method: text(head.method.of(bytes)),
            target: text(head.target.of(bytes)),
            host: text(head.host(bytes)),
            referer: field("referer"),
            user_agent: field("user-agent"),
            version: head.version,
            scheme: if self.peer.is_secure { "https" } else { "http" },
        };
        let client = self.peer.client(bytes, head, &tables.settings);
        self.entry = Some(Entry::begin(log, tables, client, Some(logged), target).traced(self.trace));
    }

    /// Finds the request's place in its trace, if the gateway takes part in traces.
    pub(super) fn find_trace(&mut self) {
        let tables = self.worker.tables();
        let Some(traces) = &tables.traces else { return self.trace = None };
        // If only proxies may send the field, it is not believed from others.
        let is_for_proxies = tables.settings.trusted_headers.iter().any(|name| name == TRACEPARENT);
        let believed = self.peer.trusted || !is_for_proxies;
        let fields = believed.then_some((self.client.inbox.bytes(), &self.head.fields[..]));
        let mut random = self.worker.random.borrow_mut();
        self.trace = Some(TraceContext::of(fields, traces.settings.ratio, &mut random));
    }

    /// Counts the answer to a request that does not start, and writes its line. A client that left gets no answer.
    pub(super) fn note_turned_away(&mut self, status: u16, why: Why, body_length: usize) {
        if let Some(class) = self.class.filter(|_| status != CLIENT_LEFT) {
            self.worker.lane.borrow().responded(class, status);
        }
        if let Some(entry) = self.entry.take().or_else(|| self.unread_entry()) {
            entry.turned_away(status, why, body_length as u64);
        }
    }

    /// The entry of a request that cannot be read.
    fn unread_entry(&self) -> Option<Box<Entry>> {
        let tables = self.worker.tables();
        let log = tables.access_logs.of(None)?.clone();
        Some(Entry::begin(Some(log), tables, self.peer.address, None, None))
    }
}
