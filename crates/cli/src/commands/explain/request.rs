//! The typed request in two forms: for the gateway's check of heads, and for the engine.

use crate::args::{ExplainArguments, RequestLine};
use plimsoll_core::request::{RequestView, cookie, host_length, normal_path};
use plimsoll_gateway::settings::Signed;
use std::borrow::Cow;
use std::net::IpAddr;

/// The request as a client would send it. The gateway checks the head before it classifies the request.
pub(super) fn head(arguments: &ExplainArguments) -> Vec<u8> {
    let ExplainArguments { request: RequestLine { method, target }, host, headers, .. } = arguments;
    let names_host = !host.is_empty() || headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
    // Only HTTP/1.0 may leave out the host.
    let version = if names_host { "1.1" } else { "1.0" };
    let host = (!host.is_empty()).then_some(("host", host.as_str()));
    let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let fields = host.into_iter().chain(headers).map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("{method} {target} HTTP/{version}\r\n{}\r\n", fields.collect::<String>()).into_bytes()
}

pub(super) struct TypedRequest<'a> {
    arguments: &'a ExplainArguments,
    path: Cow<'a, str>,
    signed: Signed,
}

impl<'a> TypedRequest<'a> {
    pub(super) fn new(arguments: &'a ExplainArguments, signed: Signed) -> Self {
        let path = arguments.request.target.split('?').next().unwrap_or_default();
        TypedRequest { arguments, path: normal_path(path), signed }
    }
}

impl RequestView for TypedRequest<'_> {
    fn method(&self) -> &str {
        &self.arguments.request.method
    }
    fn host(&self) -> &str {
        let host = self.arguments.host.as_str();
        &host[..host_length(host.as_bytes())]
    }
    fn path(&self) -> &str {
        &self.path
    }
    fn query(&self) -> &str {
        self.arguments.request.target.split_once('?').map_or("", |(_, query)| query)
    }
    fn header(&self, name: &str) -> Option<&str> {
        let ExplainArguments { headers, host, .. } = self.arguments;
        let found = headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        let host = || (name.eq_ignore_ascii_case("host") && !host.is_empty()).then_some(host);
        found.or_else(host).and_then(|value| self.signed.header(name, value))
    }
    fn cookie(&self, name: &str) -> Option<&str> {
        cookie(self, name).and_then(|sent| self.signed.cookie(name, sent))
    }
    fn client(&self) -> IpAddr {
        self.arguments.client
    }
}
