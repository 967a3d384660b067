//! The structures that the C functions take and fill.

#![expect(non_camel_case_types, reason = "the names in C")]

use std::ffi::{c_char, c_void};

/// Finds the value of a header by its name, in any case: `context` is that of the request. NULL if the request has none. The
/// value must last until plimsoll_adapt returns. An exception of C++ that leaves it aborts the process.
pub type plimsoll_header_t =
    Option<unsafe extern "C" fn(context: *mut c_void, name: *const c_char) -> *const c_char>;

/// A request. All texts end with NUL.
#[repr(C)]
pub struct plimsoll_request_t {
    /// The method, as sent. NULL is none.
    pub method: *const c_char,
    /// The host, with or without port. NULL if the request names none.
    pub host: *const c_char,
    /// The path as it was sent, without query: rules decode it. A server that has decoded it encodes it again.
    pub path: *const c_char,
    /// The query, without its question mark. NULL if there is none.
    pub query: *const c_char,
    /// The client's address as text: `192.0.2.1` or `2001:db8::1`. It must not be NULL: that is PLIMSOLL_ERROR_ARGUMENT.
    pub client: *const c_char,
    /// Finds headers; NULL if no rule names one and the file has no `decides_itself`, with which a gateway sends its load
    /// in one.
    pub header: plimsoll_header_t,
    /// The first argument of each call of `header`.
    pub context: *mut c_void,
}

/// The decision on a request.
#[repr(C)]
pub struct plimsoll_decision_t {
    /// The request's number, for the calls that follow; 0 where it is rejected, and then none follows.
    pub request: u64,
    /// The level at which the request is served, from 1 to M, the highest; 0 if it is rejected.
    pub level: u32,
    /// The status code of a rejection; 0 otherwise.
    pub status: u32,
    /// The time after which a client that is rejected may come again (s), for `Retry-After`.
    pub retry_after: u32,
    /// 0 while a controller is awake, so that levels move. 1 while there is none: levels stand still until there is one
    /// again. 2 if the state was made anew: no controller will come back to the one that this process has, so start the
    /// process anew. Log it.
    pub frozen: u32,
    /// Why, as in the headers and metrics of the gateway. It lasts for ever.
    pub reason: *const c_char,
    /// The bytes of the rewritten path, without its NUL.
    pub path_length: usize,
}

/// How a request has come to the server: its host, and the parts of its path that the client did not ask for. All texts end
/// with NUL; NULL is none.
#[repr(C)]
pub struct plimsoll_place_t {
    /// The host that the client asked, with or without port.
    pub host: *const c_char,
    /// The part of the path before the prefix, at which an application is mounted.
    pub root: *const c_char,
    /// The prefix that the level has put before the path.
    pub prefix: *const c_char,
}

/// How a request ended.
#[repr(C)]
pub enum plimsoll_outcome {
    /// The whole response was delivered.
    Completed = 0,
    /// The server failed to answer it.
    Failed = 1,
    /// The client left before its response's end.
    Abandoned = 2,
}

/// The state of the controller and the counts of all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct plimsoll_status_t {
    /// The process number of the controller; 0 if there is none.
    pub controller: u32,
    /// 0 while the controller is awake, else 1 or 2 as in a decision.
    pub frozen: u32,
    /// The number of lanes: the most processes that may be attached.
    pub lanes: u32,
    /// The number of processes that are attached.
    pub attached: u32,
    /// How often the controller has published.
    pub generation: u64,
    /// Requests that have arrived since the shared state was made.
    pub arrived: u64,
    /// Requests that have ended, whether they were served or rejected.
    pub ended: u64,
    /// Requests that are in service now.
    pub in_service: u64,
    /// Processes that were found dead.
    pub deaths: u64,
    /// Requests that dead processes held; each counts as failed.
    pub returned: u64,
}

/// A class of requests, in the report of the state.
#[repr(C)]
pub struct plimsoll_class_t {
    /// The names of the site and the class. They last until plimsoll_close.
    pub site: *const c_char,
    /// The class's name; `default` and `exempt` are classes of every site.
    pub name: *const c_char,
    /// m, the service level, from 0 to `levels`.
    pub service_level: f64,
    /// The number M of the highest level.
    pub levels: u32,
    /// Requests that have arrived.
    pub arrived: u64,
    /// Requests that were rejected.
    pub rejected: u64,
    /// Requests that ended, without those that were rejected.
    pub ended: u64,
    /// Bytes that were delivered.
    pub bytes: u64,
}
