//! The gateway's own responses: errors and rejections.

use crate::forward::{Asked, LevelReport, write_number, write_status};
use crate::http1::Refusal;
use crate::settings::Rejection;
use std::time::Duration;

/// The phrase of a status line.
pub(crate) fn phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Other",
    }
}

/// What every own response begins with.
pub(crate) fn write_start(out: &mut Vec<u8>, status: u16, date: &str) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_status(out, status);
    out.push(b' ');
    out.extend_from_slice(phrase(status).as_bytes());
    out.extend_from_slice(b"\r\ndate: ");
    out.extend_from_slice(date.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// An error, with what is wrong as its text.
pub(crate) fn write_error(out: &mut Vec<u8>, refusal: Refusal, asked: Asked, date: &str) {
    write_start(out, refusal.status, date);
    out.extend_from_slice(b"content-type: text/plain; charset=utf-8\r\n");
    write_number(out, b"content-length: ", refusal.why.len() as u64 + 1);
    asked.write_connection(out);
    out.extend_from_slice(b"\r\n");
    if !asked.is_head {
        out.extend_from_slice(refusal.why.as_bytes());
        out.push(b'\n');
    }
}

/// What a rejection says.
pub(crate) struct Rejected<'a> {
    pub rejection: &'a Rejection,
    pub retry_after: Duration,
    pub report: Option<LevelReport<'a>>,
    pub asked: Asked,
    pub date: &'a str,
}

impl Rejected<'_> {
    /// Appends the rejection; returns how many of its bytes are head.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> usize {
        write_start(out, self.rejection.status, self.date);
        // At least a second: zero asks for a storm.
        let seconds = self.retry_after.as_secs() + u64::from(self.retry_after.subsec_nanos() > 0);
        write_number(out, b"retry-after: ", seconds.max(1));
        out.extend_from_slice(b"cache-control: no-store\r\ncontent-type: ");
        out.extend_from_slice(self.rejection.content_type.as_bytes());
        write_number(out, b"\r\ncontent-length: ", self.rejection.body.len() as u64);
        if let Some(report) = &self.report {
            report.write(out);
        }
        self.asked.write_connection(out);
        out.extend_from_slice(b"\r\n");
        let head = out.len();
        if !self.asked.is_head {
            out.extend_from_slice(self.rejection.body.as_bytes());
        }
        head
    }
}
