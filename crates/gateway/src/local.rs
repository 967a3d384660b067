//! Requests that the gateway serves itself, from a folder.

use crate::answer;
use crate::buffers::Buffer;
use crate::connection::{Connection, Next};
use crate::files::{FileBody, FileFields, FileRequest, FileResponse, FileSlice};
use crate::forward::write_number;
use crate::held::Held;
use crate::http1::Refusal;
use crate::outbox::Bytes;
use crate::serve::Serving;
use plimsoll_core::request::{Outcome, Service};

impl Connection {
    /// Serves a file. The plant, which is this machine, is free once the file is open: how fast its client takes it
    /// is no work of the plant, and slow ones would else hold all of its places.
    pub(crate) async fn serve_file(&mut self, mut serving: Serving<'_>) -> Next {
        let Some(response) = self.find_file(&serving) else {
            serving.held.release(Service::default());
            serving.held.depart(Outcome::Failed);
            self.answer(Refusal::with(500, "this plant has no files"), serving.asked).await;
            return Next::Linger;
        };
        serving.asked.keep_alive &= self.may_discard();
        self.write_file_head(&serving, &response);
        let mut service = Service {
            response_bytes: response.content_length.unwrap_or(0),
            representative: response.status < 500,
            cost: None,
        };
        let head = self.scratch.len();
        match response.body {
            FileBody::Memory { bytes, range } => {
                // One write for a small file; a larger one is not copied.
                if head + range.len() <= crate::buffers::SMALL {
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
                serving.held.release(service);
                if !self.send_slice(slice, &serving.held).await {
                    return Next::Close;
                }
            }
        }
        serving.held.release(service);
        let next = self.finish(serving.asked, Some(&serving.held)).await;
        let delivered = self.client.outbox.is_empty();
        serving.held.depart(if delivered { Outcome::Completed } else { Outcome::Abandoned });
        self.client.outbox.clear();
        next
    }

    fn find_file(&self, serving: &Serving<'_>) -> Option<FileResponse> {
        let files = serving.tables.files.get(serving.plant)?.as_ref()?;
        let bytes = self.client.inbox.bytes();
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        let target = text(self.head.target.of(bytes));
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let path = if path.is_empty() { "/" } else { path };
        let prefix = serving.rewrites.first().map_or("", |rewrite| rewrite.prefix.as_str());
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
        let request = FileRequest { method, path, query, fields: FileFields::of(headers) };
        Some(files.borrow_mut().respond(std::time::Instant::now(), &request))
    }

    fn write_file_head(&mut self, serving: &Serving<'_>, response: &FileResponse) {
        let out = &mut self.scratch;
        out.clear();
        answer::write_start(out, response.status, &self.worker.date.borrow());
        out.extend_from_slice(response.headers.block().as_bytes());
        for (name, value) in response.headers.extra() {
            for part in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        let phrase = answer::phrase(response.status);
        let is_error = response.status >= 400;
        if is_error {
            out.extend_from_slice(b"content-type: text/plain; charset=utf-8\r\n");
            write_number(out, b"content-length: ", phrase.len() as u64 + 1);
        } else if let Some(length) = response.content_length {
            write_number(out, b"content-length: ", length);
        }
        if let Some(report) = &serving.report {
            report.write(out);
        }
        serving.asked.write_connection(out);
        out.extend_from_slice(b"\r\n");
        if is_error && !serving.asked.is_head {
            out.extend_from_slice(phrase.as_bytes());
            out.push(b'\n');
        }
    }

    /// Sends a large file piece by piece; the last piece is left in the outbox.
    async fn send_slice(&mut self, mut slice: FileSlice, held: &Held) -> bool {
        loop {
            let mut buffer = Buffer::large();
            match slice.read(&mut buffer) {
                Ok(0) => return true,
                Ok(count) => self.client.outbox.push(Bytes::Pooled(buffer), 0..count, 0),
                // The file became shorter than was promised: closing tells the client.
                Err(_) => {
                    self.client.outbox.clear();
                    return false;
                }
            }
            if slice.remaining() == 0 {
                return true;
            }
            if !self.flush(Some(held)).await {
                return false;
            }
        }
    }
}
