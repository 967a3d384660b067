//! The answer to a request that is turned away: 503 with `Retry-After` and a sentence that says why.
//!
//! A gRPC call is rejected in gRPC's own terms, by a response of trailers alone: status 14, UNAVAILABLE, and in
//! `grpc-retry-pushback-ms` the time after which to come again, which automatic retries of clients obey.

use super::body::ResponseBody;
use super::decision::Decision;
use super::grpc::GRPC_STATUS;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body::Body;
use plimsoll_core::request::{Reason, Rejection};

const GRPC: &str = "application/grpc";
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");
const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const UNAVAILABLE: HeaderValue = HeaderValue::from_static("14");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A request that is turned away.
pub(crate) struct Rejected {
    rejection: Rejection,
    decision: Decision,
    is_grpc: bool,
    has_dot_segment: bool,
}

impl Rejected {
    /// Builds the rejection; `headers` are the request's.
    pub(crate) fn new(rejection: Rejection, decision: Decision, headers: &HeaderMap) -> Self {
        let content_type = headers.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
        Rejected {
            rejection,
            decision,
            is_grpc: content_type.starts_with(GRPC.as_bytes()),
            has_dot_segment: false,
        }
    }

    /// The same for a request whose path the service behind the layer might resolve to another path.
    pub(crate) fn for_path(self) -> Self {
        Rejected { has_dot_segment: true, ..self }
    }

    /// `method` is the request's.
    pub(crate) fn response<B: Body<Data: From<Bytes>>>(self, method: &Method) -> Response<ResponseBody<B>> {
        let Rejected { rejection, decision, is_grpc, has_dot_segment } = self;
        let reason = rejection.reason;
        let text = if has_dot_segment { "The path has a dot segment.\n" } else { sentence(reason) };
        let is_head = method == Method::HEAD;
        let body = if is_grpc || is_head { ResponseBody::empty() } else { ResponseBody::text(text) };
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if is_grpc {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
            headers.insert(GRPC_STATUS, UNAVAILABLE);
            headers.insert(GRPC_MESSAGE, HeaderValue::from_static(text.trim_end()));
            let pushback = u64::try_from(rejection.retry_after.as_millis()).unwrap_or(u64::MAX);
            headers.insert(GRPC_PUSHBACK, pushback.into());
        } else {
            headers.insert(CONTENT_TYPE, TEXT);
            if is_head {
                headers.insert(CONTENT_LENGTH, text.len().into());
            }
        }
        if reason == Reason::NoSite {
            if !is_grpc {
                *response.status_mut() =
                    if has_dot_segment { StatusCode::BAD_REQUEST } else { StatusCode::MISDIRECTED_REQUEST };
            }
        } else {
            // At least a second: zero would bring all rejected clients back at once.
            let seconds = rejection.retry_after_seconds().max(1);
            headers.insert(RETRY_AFTER, seconds.into());
            if let Ok(limit) = HeaderValue::try_from(format!("\"{reason}\";r=0;t={seconds}")) {
                headers.insert(RATE_LIMIT, limit);
            }
            if !is_grpc {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
        }
        response.extensions_mut().insert(decision);
        response
    }
}

/// The sentence in the answer. It is ASCII without a percent sign, since gRPC sends it in a field.
const fn sentence(reason: Reason) -> &'static str {
    match reason {
        Reason::Overload => "The server has more requests than it can serve.\n",
        Reason::QueueFull => "The server has more requests than it can serve, and as many wait as may.\n",
        Reason::TooManyStreams => "The server has as many streams open as it may.\n",
        Reason::WaitTimeout => "The request waited for as long as a request may wait.\n",
        Reason::Deadline => "The server cannot answer the request in time.\n",
        Reason::Late => "The request waited until the server could no longer answer it in time.\n",
        Reason::NoSite => "No site of this server has this host.\n",
        Reason::Full | Reason::Guaranteed | Reason::Degraded | Reason::Exempt | Reason::ClientLeft => {
            "The request was not served.\n"
        }
    }
}
