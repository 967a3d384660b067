//! The gateway's own responses: errors, and rejections by the engine.

use super::lifecycle::{Next, Way};
use crate::accounting::log_entry::Why;
use crate::accounting::permit_guard::PermitGuard;
use crate::client::response_fields::{LevelReport, Requested};
use crate::client::wire::Wire;
use crate::http1::Refusal;
use crate::http1::body::Framing;
use crate::http1::write::{write_number, write_status};
use crate::settings::{ReportMode, Settings};
use http::StatusCode;
use plimsoll_core::request::{Outcome, Reason, Rejection, Service};

impl<W: Wire> Way<W> {
    /// Answers a request that cannot be read, and ends the connection, since what follows cannot be read either.
    pub(super) async fn refuse(&mut self, refusal: Refusal) -> Next {
        self.note_turned_away(refusal.status, Why::Error(refusal.why), body_length(&refusal));
        self.send_error(refusal, Requested::default()).await;
        Next::Linger
    }

    pub(super) async fn turn_away(&mut self, refusal: Refusal, mut requested: Requested) -> Next {
        requested.keep_alive &= self.may_go_on();
        self.note_turned_away(refusal.status, Why::Error(refusal.why), body_length(&refusal));
        self.push_error(refusal, requested);
        self.finish(requested).await
    }

    /// Answers a request that the engine rejected. The connection goes on if the body is small enough to be read and dropped.
    pub(super) async fn reject(&mut self, rejection: Rejection, mut requested: Requested) -> Next {
        let tables = self.worker.tables();
        let settings = &tables.settings;
        requested.keep_alive &= self.may_go_on();
        self.scratch.clear();
        write_rejection(&mut self.scratch, settings, &self.worker.date.borrow(), rejection, requested);
        self.client.outbox.push_head(&self.scratch);
        let answer = &settings.rejection;
        self.note_turned_away(answer.status, Why::Reason(rejection.reason), answer.body.len());
        self.finish(requested).await
    }

    pub(super) async fn fail(
        &mut self,
        refusal: Refusal,
        mut requested: Requested,
        mut permit: PermitGuard,
    ) -> Next {
        // If a part of the body was already sent on, the beginning of the next request is not known.
        requested.keep_alive &= self.head.framing == Framing::None && !self.worker.is_draining();
        permit.release(Service::default());
        permit.answered(refusal.status);
        permit.failed(refusal.why, if requested.is_head { 0 } else { body_length(&refusal) as u64 });
        // A mistake of the client is no failure of the plant.
        permit.depart(Outcome::of_answer(refusal.status));
        match self.send_error(refusal, requested).await {
            false => Next::Close,
            true if requested.keep_alive => Next::Request,
            true => Next::Linger,
        }
    }

    /// Whether the connection may serve another request. The gateway may have begun to drain since this one came.
    pub(super) fn may_go_on(&self) -> bool {
        self.may_discard() && !self.worker.is_draining()
    }

    /// Whether the rest of the request's body can be read and dropped. If the client waits for `100 Continue`, it may or may
    /// not send its body, so that the beginning of its next request is not known.
    fn may_discard(&self) -> bool {
        match self.head.framing {
            Framing::None => true,
            _ if self.early.is_whole => true,
            _ if self.early.stored.is_some() => false,
            Framing::Length(length) => length <= 64 * 1024 && !self.head.expects_continue,
            Framing::Chunked | Framing::UntilClose => !self.head.expects_continue,
        }
    }

    /// Sends a response that was made without reading the request's body, then reads the body and drops it.
    pub(super) async fn finish(&mut self, requested: Requested) -> Next {
        let framing = self.pass_request();
        if !self.client.flush(&self.worker, None).await {
            return Next::Close;
        }
        self.go_on(requested, framing).await
    }

    /// Removes the request from the inbox as far as it was read, and returns the framing of the rest of its body.
    pub(super) fn pass_request(&mut self) -> Framing {
        // A body that was read whole is removed with the head.
        let early = std::mem::take(&mut self.early);
        let (read, framing) =
            if early.is_whole { (early.in_inbox, Framing::None) } else { (0, self.head.framing) };
        self.client.inbox.consume(self.head.length + read);
        framing
    }

    /// Reads and drops the rest of the body, if another request may follow it.
    pub(super) async fn go_on(&mut self, requested: Requested, left: Framing) -> Next {
        match requested.keep_alive {
            true if left == Framing::None || !W::IN_ORDER => Next::Request,
            true if self.client.discard(&self.worker, left).await => Next::Request,
            false if left == Framing::None => Next::Close,
            _ => Next::Linger,
        }
    }

    /// Sends an error. False if the client left or does not read.
    pub(super) async fn send_error(&mut self, refusal: Refusal, requested: Requested) -> bool {
        self.push_error(refusal, requested);
        self.client.flush(&self.worker, None).await
    }

    /// Puts an error into the outbox, with the reason as its text.
    fn push_error(&mut self, refusal: Refusal, requested: Requested) {
        let out = &mut self.scratch;
        out.clear();
        write_start(out, refusal.status, &self.worker.date.borrow());
        if refusal.status == 405 {
            // The methods that the gateway forwards, if the server takes them.
            out.extend_from_slice(b"allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n");
        }
        out.extend_from_slice(b"content-type: text/plain; charset=utf-8\r\n");
        write_number(out, b"content-length: ", body_length(&refusal) as u64);
        requested.write_connection(out);
        out.extend_from_slice(b"\r\n");
        if !requested.is_head {
            out.extend_from_slice(refusal.why.as_bytes());
            out.push(b'\n');
        }
        self.client.outbox.push_head(&self.scratch);
    }
}

/// Writes the answer to a request that the engine rejected.
pub(super) fn write_rejection(
    out: &mut Vec<u8>,
    settings: &Settings,
    date: &str,
    rejection: Rejection,
    requested: Requested,
) {
    let answer = &settings.rejection;
    write_start(out, answer.status, date);
    // `Retry-After` is at least a second: with zero all rejected clients would come back at once.
    let (reason, seconds) = (rejection.reason, rejection.retry_after_seconds().max(1));
    write_number(out, b"retry-after: ", seconds);
    // By draft-ietf-httpapi-ratelimit-headers: nothing of the server's capacity is left until then.
    out.extend_from_slice(b"ratelimit: \"");
    out.extend_from_slice(reason.as_str().as_bytes());
    write_number(out, b"\";r=0;t=", seconds);
    out.extend_from_slice(b"cache-control: no-store\r\ncontent-type: ");
    out.extend_from_slice(answer.content_type.as_bytes());
    write_number(out, b"\r\ncontent-length: ", answer.body.len() as u64);
    if settings.report.mode != ReportMode::Off {
        report(settings, 0, reason).write(out);
    }
    requested.write_connection(out);
    out.extend_from_slice(b"\r\n");
    if !requested.is_head {
        out.extend_from_slice(answer.body.as_bytes());
    }
}

/// The length of an error's text, with its line end.
fn body_length(refusal: &Refusal) -> usize {
    refusal.why.len() + 1
}

pub(super) fn report(settings: &Settings, level: u8, reason: Reason) -> LevelReport<'_> {
    LevelReport { name: &settings.report.name, level, reason }
}

pub(super) fn phrase(status: u16) -> &'static str {
    match StatusCode::from_u16(status) {
        // The phrase is RFC 9110's; the library has an older one.
        Ok(StatusCode::PAYLOAD_TOO_LARGE) => "Content Too Large",
        status => status.ok().and_then(|status| status.canonical_reason()).unwrap_or("Other"),
    }
}

/// Writes the beginning of a response: its status line and the date.
pub(super) fn write_start(out: &mut Vec<u8>, status: u16, date: &str) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_status(out, status);
    out.push(b' ');
    out.extend_from_slice(phrase(status).as_bytes());
    out.extend_from_slice(b"\r\ndate: ");
    out.extend_from_slice(date.as_bytes());
    out.extend_from_slice(b"\r\n");
}
