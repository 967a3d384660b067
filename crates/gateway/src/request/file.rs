//! Requests that the gateway serves itself, from a folder.
//!
//! The plant of a folder is this machine. The request's place is given back once the file is open: sending to a slow client is
//! no work of the plant, and slow clients would otherwise hold all of its places.

use super::answer;
use super::forward::Started;
use super::lifecycle::{Next, Way};
use crate::accounting::permit_guard::PermitGuard;
use crate::client::buffers::{Buffer, SMALL};
use crate::client::caching::Caching;
use crate::client::outbox::Bytes;
use crate::client::wire::Wire;
use crate::files::{FileBody, FileFields, FileRequest, FileResponse};
use crate::http1::Refusal;
use crate::http1::write::write_number;
use crate::settings::Rewrite;
use plimsoll_core::request::{Outcome, Service};

impl<W: Wire> Way<W> {
    pub(super) async fn serve_file(&mut self, mut started: Started<'_>) -> Next {
        let Some(response) = self.find_file(&started) else {
            started.permit.release(Service::default());
            started.permit.answered(500);
            started.permit.depart(Outcome::Failed);
            self.send_error(Refusal::with(500, "this plant has no files"), started.requested).await;
            return Next::Linger;
        };
        started.requested.keep_alive &= self.may_go_on();
        started.permit.answered(response.status);
        self.write_file_head(&started, &response);
        let outcome = Outcome::of_answer(response.status);
        let mut service = Service {
            response_bytes: response.content_length.unwrap_or(0),
            representative: outcome == Outcome::Completed,
            cost: None,
        };
        let head = self.scratch.len();
        match response.body {
            FileBody::Memory { bytes, range } => {
                // A small file is copied behind its head, so that both leave in one write. A larger file is not copied.
                if head + range.len() <= SMALL {
                    let mut buffer = Buffer::small();
                    let end = head + range.len();
                    buffer[..head].copy_from_slice(&self.scratch);
                    buffer[head..end].copy_from_slice(&bytes[range]);
                    self.client.outbox.push(Bytes::Pooled(buffer), 0..end, head);
                } else {
                    self.client.outbox.push_head(&self.scratch);
                    self.client.outbox.push(Bytes::Shared(bytes), range, 0);
                }
            }
            FileBody::Empty => {
                service.response_bytes = 0;
                self.client.outbox.push_head(&self.scratch);
            }
            FileBody::File(slice) => {
                self.client.outbox.push_head(&self.scratch);
                // The request's fields and the scratch memory are freed, since the client may take long for the file.
                (self.head.fields, self.scratch) = (Vec::new(), Vec::new());
                self.note_besides();
                if self.client.outbox.follow_with(slice, !W::IN_ORDER).is_err() {
                    started.permit.release(service);
                    self.give_up(started.permit).await;
                    return Next::Close;
                }
            }
        }
        started.permit.release(service);
        let framing = self.pass_request();
        if !self.client.flush(&self.worker, Some(&started.permit)).await {
            self.give_up(started.permit).await;
            return Next::Close;
        }
        started.permit.depart(outcome);
        self.go_on(started.requested, framing).await
    }

    /// Ends a request whose file cannot be finished, or whose client does not take it.
    async fn give_up(&mut self, permit: PermitGuard) {
        self.client.outbox.clear();
        let outcome = match W::IN_ORDER {
            true => Outcome::Abandoned,
            false => self.client.abort(&self.worker, Outcome::Abandoned).await,
        };
        permit.depart(outcome);
    }

    fn find_file(&self, started: &Started<'_>) -> Option<FileResponse> {
        let files = started.tables.files.get(started.plant)?.as_ref()?;
        let bytes = self.client.inbox.bytes();
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        let target = text(self.head.target.of(bytes));
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let path = if path.is_empty() { "/" } else { path };
        let prefix = started.rewrites.first().map_or("", |rewrite| rewrite.prefix.as_str());
        let prefixed;
        let path = if prefix.is_empty() {
            path
        } else {
            prefixed = [prefix, path].concat();
            &prefixed
        };
        let headers =
            self.head.fields.iter().map(|field| (text(field.name.of(bytes)), field.value.of(bytes)));
        let method = text(self.head.method.of(bytes));
        let mut request = FileRequest { method, path, query, fields: FileFields::of(headers) };
        let (now, mut files) = (std::time::Instant::now(), files.borrow_mut());
        let response = files.respond(now, &request);
        let is_range = matches!(response.status, 206 | 416) && request.fields.if_range.is_none();
        if !is_range || !is_lighter(started.rewrites, &response) {
            return Some(response);
        }
        // The client may already have the beginning of the full page, so a range of the lighter one is not served.
        request.fields.range = None;
        Some(files.respond(now, &request))
    }

    fn write_file_head(&mut self, started: &Started<'_>, response: &FileResponse) {
        let out = &mut self.scratch;
        out.clear();
        answer::write_start(out, response.status, &self.worker.date.borrow());
        let rules = &started.headers.response;
        let mut caching = Caching::of(is_lighter(started.rewrites, response));
        caching.write_kept(rules, response.headers.block(), out);
        for (name, value) in response.headers.extra().filter(|(name, _)| !rules.drops(name.as_bytes())) {
            for part in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        let phrase = answer::phrase(response.status);
        let is_error = response.status >= 400;
        if is_error {
            rules.write_kept("content-type: text/plain; charset=utf-8\r\n", out);
            write_number(out, b"content-length: ", phrase.len() as u64 + 1);
        } else if let Some(length) = response.content_length {
            write_number(out, b"content-length: ", length);
        }
        caching.finish(rules, out);
        if let Some(report) = &started.report {
            report.write(out);
        }
        started.requested.write_connection(out);
        out.extend_from_slice(b"\r\n");
        if is_error && !started.requested.is_head {
            out.extend_from_slice(phrase.as_bytes());
            out.push(b'\n');
        }
    }
}

/// Whether a level below the highest answers from its own tree.
fn is_lighter(rewrites: &[Rewrite], response: &FileResponse) -> bool {
    let [_, .., top] = rewrites else { return false };
    let prefix = top.prefix.as_bytes();
    let is_tops = |name: &Vec<u8>| {
        let name = prefix.strip_prefix(b"/").and_then(|tree| name.strip_prefix(tree));
        name.is_some_and(|name| name.starts_with(b"/"))
    };
    !response.above.as_ref().is_some_and(is_tops)
}
