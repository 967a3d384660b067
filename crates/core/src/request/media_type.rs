//! Responses whose end the server does not decide, by their type. Pure.

/// Whether a response of this `Content-Type` is a stream of events, which stays open for as long as its client likes.
pub fn is_event_stream(content_type: &[u8]) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    content_type.get(..EVENTS.len()).is_some_and(|start| start.eq_ignore_ascii_case(EVENTS))
}
