//! What hostile clients and servers send, with the reading that RFC 9110 and 9112 leave: tables for the parser and for the
//! binary.

pub(crate) mod requests;
#[allow(dead_code, reason = "a test needs one table or both")]
pub(crate) mod responses;
