//! Requests that come without TLS where they should come with it, and what clients with TLS are sent about that.

use super::answer::write_start;
use super::lifecycle::{Next, Way};
use crate::accounting::log_entry::Why;
use crate::client::response_fields::Requested;
use crate::client::wire::Wire;
use crate::http1::Refusal;

/// Where authorities look for the proof that a site is its operator's (RFC 8555 8.3). They ask without TLS.
const CHALLENGES: &str = "/.well-known/acme-challenge/";

/// The refusal of a request that must come over TLS but names no host to which it could be redirected.
const NO_HOST: Refusal = Refusal::bad("this site is served over TLS alone, and the request names no host");

impl<W: Wire> Way<W> {
    /// Whether the client's own connection speaks TLS.
    fn is_secure(&self) -> bool {
        let tables = self.worker.tables();
        self.peer.is_client_secure(self.client.inbox.bytes(), &self.head, &tables.settings)
    }

    /// For how many seconds the client is to use TLS alone. A word of it counts only over TLS.
    pub(super) fn secure_seconds(&self) -> u64 {
        let tables = self.worker.tables();
        let seconds = tables.settings.tls.as_ref().map_or(0, |tls| tls.hsts.as_secs());
        if seconds > 0 && self.is_secure() { seconds } else { 0 }
    }

    /// Whether the request is to be redirected to TLS.
    pub(super) fn is_to_be_secured(&self) -> bool {
        let tables = self.worker.tables();
        let is_wanted = tables.settings.tls.as_ref().is_some_and(|tls| tls.redirect.is_some());
        is_wanted
            && !self.is_secure()
            && !self.head.rule_path(self.client.inbox.bytes()).starts_with(CHALLENGES)
    }

    /// Redirects to the same place over TLS. With 308, methods other than GET and HEAD are kept. A client that named no host,
    /// as HTTP/1.0 allows, is redirected to the first certificate's host; if that names none, the request is refused.
    pub(super) async fn redirect_to_tls(&mut self, mut requested: Requested) -> Next {
        requested.keep_alive &= self.may_go_on();
        let tables = self.worker.tables();
        let own_host;
        let (bytes, head, out) = (self.client.inbox.bytes(), &self.head, &mut self.scratch);
        let mut host = head.host(bytes);
        if host.is_empty() {
            own_host = self.worker.shared.tls.host();
            let Some(name) = &own_host else { return self.turn_away(NO_HOST, requested).await };
            host = name.as_bytes();
        }
        let port = tables.settings.tls.as_ref().and_then(|tls| tls.redirect).unwrap_or(443);
        let status = if matches!(head.method.of(bytes), b"GET" | b"HEAD") { 301 } else { 308 };
        out.clear();
        write_start(out, status, &self.worker.date.borrow());
        out.extend_from_slice(b"location: https://");
        out.extend_from_slice(host);
        if port != 443 {
            out.extend_from_slice(format!(":{port}").as_bytes());
        }
        let target = head.target.of(bytes);
        out.extend_from_slice(if target.starts_with(b"/") { target } else { b"/" });
        out.extend_from_slice(b"\r\ncontent-length: 0\r\n");
        requested.write_connection(out);
        out.extend_from_slice(b"\r\n");
        self.client.outbox.push_head(&self.scratch);
        self.note_turned_away(status, Why::Nothing, 0);
        self.finish(requested).await
    }
}
