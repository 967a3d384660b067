//! How a gRPC call has ended. Its HTTP status is 200 even if the call failed: the field `grpc-status` has the result, in the
//! head of a response without messages, otherwise in the trailers.

use http::{HeaderMap, HeaderName};

pub(crate) const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// The HTTP status of a call that ended by the server's fault, as `google.rpc.Code` has it; `None` for any other.
pub(crate) fn status_of_call(fields: &HeaderMap) -> Option<u16> {
    match fields.get(GRPC_STATUS)?.to_str().ok()? {
        // UNKNOWN, INTERNAL, DATA_LOSS
        "2" | "13" | "15" => Some(500),
        // UNIMPLEMENTED
        "12" => Some(501),
        // UNAVAILABLE
        "14" => Some(503),
        // DEADLINE_EXCEEDED
        "4" => Some(504),
        _ => None,
    }
}
