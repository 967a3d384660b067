//! The lines of an access log.
//!
//! Common and Combined are as Apache's and nginx's, so that every tool reads them; what would break a line stands as `\xHH`, as
//! nginx writes it. A line of JSON has all that is known, under the names that `plimsoll simulate --log` reads: times in
//! seconds, `bytes` of the body that the client took, and `client_share`, where the client's hash lies in [0, 1): below the
//! fraction F of its class it gets the better of two levels.

use super::logs::LogForm;
use jiff::Timestamp;
use jiff::fmt::strtime;
use serde::Serialize;
use std::io::Write;
use std::net::IpAddr;

/// What a line says. A field that is `None` is not known or does not apply.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) struct Line<'a> {
    /// When the request came.
    #[serde(serialize_with = "to_milliseconds")]
    pub time: Timestamp,
    pub client: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<&'a str>,
    /// Path and query, as they came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<&'a str>,
    pub protocol: &'static str,
    /// The scheme is for the request's spans; the line does not have it.
    #[serde(skip)]
    pub scheme: &'static str,
    pub status: u16,
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub referer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<&'a str>,
    /// The server of the upstream that was tried last: the one that answered, if one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<&'a str>,
    /// How many tries there were, each at a server or on a connection of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    /// Why the gateway answered the request itself, or why the answer ended early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// The time from arrival to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_time: Option<f64>,
    /// The time from start until the place at the upstream was given back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_time: Option<f64>,
    /// The time from arrival until the client had the last byte.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_time: Option<f64>,
    /// The trace that the request belongs to, where the gateway takes part in traces.
    #[serde(serialize_with = "to_hexadecimal", skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<u128>,
}

fn to_milliseconds<S: serde::Serializer>(time: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{time:.3}"))
}

fn to_hexadecimal<S: serde::Serializer>(id: &Option<u128>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{:032x}", id.unwrap_or_default()))
}

impl Line<'_> {
    /// Writes the line, with its end.
    pub(crate) fn write(&self, form: LogForm, out: &mut Vec<u8>) {
        match form {
            // Writing to a vector does not fail, and every value here can be written as JSON.
            LogForm::Json => drop(serde_json::to_writer(&mut *out, self)),
            LogForm::Common => self.common(out),
            LogForm::Combined => {
                self.common(out);
                for value in [self.referer, self.user_agent] {
                    out.push(b' ');
                    quoted(&[value.unwrap_or("-")], out);
                }
            }
        }
        out.push(b'\n');
    }

    /// `client - - [time] "request" status bytes`
    fn common(&self, out: &mut Vec<u8>) {
        let time = strtime::format("%d/%b/%Y:%H:%M:%S +0000", self.time).unwrap_or_default();
        let _ = write!(out, "{} - - [{time}] ", self.client);
        match (self.method, self.path) {
            (Some(method), Some(path)) => quoted(&[method, " ", path, " ", self.protocol], out),
            _ => quoted(&["-"], out),
        }
        let _ = write!(out, " {} {}", self.status, self.bytes);
    }
}

/// Writes text in quotes. Characters that would end the quotes or the line, and control characters, are written as `\xHH`.
fn quoted(parts: &[&str], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in parts.iter().flat_map(|part| part.bytes()) {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => drop(write!(out, "\\x{byte:02X}")),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> Line<'static> {
        Line {
            time: Timestamp::new(807_249_601, 250_499_999).unwrap_or_default(),
            client: [203, 0, 113, 7].into(),
            method: Some("GET"),
            host: Some("shop.example"),
            path: Some("/a\"b\\c?d"),
            protocol: "HTTP/1.1",
            scheme: "https",
            status: 200,
            bytes: 1713,
            referer: None,
            user_agent: Some("ä\n"),
            site: Some("shop"),
            class: Some("default"),
            level: Some("light"),
            reason: Some("degraded"),
            client_share: Some(0.25),
            upstream: Some("app"),
            server: Some("10.0.0.2:8000"),
            tries: Some(2),
            error: None,
            queue_time: Some(0.0),
            service_time: Some(0.0125),
            delivery_time: Some(0.5),
            trace_id: Some(0xab),
        }
    }

    fn written(form: LogForm, line: &Line<'_>) -> String {
        let mut out = Vec::new();
        line.write(form, &mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    #[test]
    fn three_forms() {
        let common = r#"203.0.113.7 - - [01/Aug/1995:04:00:01 +0000] "GET /a\x22b\x5Cc?d HTTP/1.1" 200 1713"#;
        assert_eq!(written(LogForm::Common, &line()), format!("{common}\n"));
        assert_eq!(written(LogForm::Combined, &line()), format!("{common} \"-\" \"\\xC3\\xA4\\x0A\"\n"));
        let json = concat!(
            r#"{"time":"1995-08-01T04:00:01.250Z","client":"203.0.113.7","method":"GET","host":"shop.example","#,
            r#""path":"/a\"b\\c?d","protocol":"HTTP/1.1","status":200,"bytes":1713,"user_agent":"ä\n","site":"shop","#,
            r#""class":"default","level":"light","reason":"degraded","client_share":0.25,"upstream":"app","server":"10.0.0.2:8000","tries":2,"#,
            r#""queue_time":0.0,"service_time":0.0125,"delivery_time":0.5,"#,
            r#""trace_id":"000000000000000000000000000000ab"}"#,
        );
        assert_eq!(written(LogForm::Json, &line()), format!("{json}\n"));
    }

    #[test]
    fn a_request_that_could_not_be_read_has_a_line() {
        let unread = Line { method: None, path: None, status: 400, bytes: 0, ..line() };
        assert!(written(LogForm::Common, &unread).ends_with("] \"-\" 400 0\n"));
        let failed = Line { status: 502, server: None, tries: None, error: Some("why"), ..line() };
        assert!(written(LogForm::Json, &failed).contains(r#""upstream":"app","error":"why","queue_time""#));
    }
}
