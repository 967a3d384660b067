//! The C functions (UC 6.2). `include/plimsoll.h` is made from this file, and a test compares them.
//!
//! No panic leaves a function: it is caught, and the function returns [`Fault::Internal`]. A null pointer is an error where
//! none is allowed. The caller guarantees that any other pointer points to what its type says.

#![expect(unsafe_code, reason = "C calls with pointers")]
#![expect(non_camel_case_types, reason = "the names in C")]

use crate::fault::Fault;
use crate::frozen::Frozen;
use crate::reasons::{REASONS, c_reason};
use crate::server::Server;
use crate::structures::{
    plimsoll_class_t, plimsoll_decision_t, plimsoll_header_t, plimsoll_place_t, plimsoll_request_t,
    plimsoll_status_t,
};
use crate::view::{Fields, utf8};
use plimsoll_core::request::{Authority, Outcome, Prefixed, Reason};
use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{Ordering::SeqCst, compiler_fence};

/// A process that is attached to the shared state.
pub struct plimsoll_t(Server);

/// Attaches this process to the shared state that `plimsoll control` keeps at `path`, and stores a handle. To be called once
/// in each process, after the fork. Returns 0 or an error.
///
/// # Safety
/// `path` is a text that ends with NUL, and `handle` may be written to; either may be NULL, which is an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_init(path: *const c_char, handle: *mut *mut plimsoll_t) -> c_int {
    guarded(|| {
        if path.is_null() || handle.is_null() {
            return Err(Fault::Argument);
        }
        // SAFETY: not null, and a text as the caller sees to.
        let path = OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes());
        let server = Server::attach(path.as_ref())?;
        // SAFETY: not null, and may be written to as the caller sees to.
        unsafe { handle.write(Box::into_raw(Box::new(plimsoll_t(server)))) };
        Ok(())
    })
}

/// Decides on a request that has come, and writes its rewritten path into `path`, which has room for `capacity` bytes. `path`
/// may lie over the texts of the request, whose own path is then written over; it becomes empty if the request is rejected,
/// and after PLIMSOLL_ERROR_NO_SITE and PLIMSOLL_ERROR_PATH. Returns 0, also if the request is rejected (`level` 0), or an
/// error; after an error the request goes as it came, and is not counted. After these two the decision has the gateway's
/// answer to such a request: `level` 0, `status` 421 or 400, and the reason.
///
/// # Safety
/// The pointers point to what their types say, and `path` to `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_adapt(
    handle: *const plimsoll_t,
    request: *const plimsoll_request_t,
    path: *mut c_char,
    capacity: usize,
    decision: *mut plimsoll_decision_t,
) -> c_int {
    guarded(|| {
        // SAFETY: these are null or point to what their types say, as the caller sees to.
        let (server, request) = unsafe { (server(handle)?, request.as_ref().ok_or(Fault::Argument)?) };
        if path.is_null() || decision.is_null() || capacity == 0 {
            return Err(Fault::Argument);
        }
        let header = |name: &str| {
            // SAFETY: the callback is the caller's, and gets the caller's context.
            unsafe { call(request.header, request.context, name) }
        };
        // SAFETY: each is null or a text that ends with NUL.
        let (fields, asked) = unsafe {
            let asked = bytes(request.path).ok_or(Fault::Argument)?;
            let fields = Fields {
                method: text(request.method),
                host: text(request.host),
                path: asked,
                query: text(request.query),
                client: address(text(request.client))?,
                header: &header,
            };
            (fields, asked)
        };
        let served = server.adapt(&fields, capacity - 1).inspect_err(|fault| {
            let answer = match fault {
                Fault::NoSite => NO_SITE,
                Fault::Path => DOTTED,
                _ => return,
            };
            // SAFETY: not null, and may be written to as the caller sees to; so may `path`, which has room for a NUL.
            unsafe { (decision.write(answer), path.write(0)) };
        })?;
        let asked = if served.level == 0 { &[] } else { asked };
        // SAFETY: `server.adapt` has checked that the `capacity` bytes at `path`, which the caller lets be written, hold the
        // prefix, the path that was asked for and a NUL. `asked` may lie in the same memory: `put_behind` moves it first. No
        // text of the request is read after this.
        let path_length = unsafe { put_behind(served.prefix.as_bytes(), asked.as_ptr(), asked.len(), path) };
        let status =
            if served.level == 0 { server.configuration().gateway.settings.rejection.status } else { 0 };
        let decided = plimsoll_decision_t {
            request: served.request,
            level: served.level.into(),
            status: status.into(),
            retry_after: u32::try_from(served.retry_after).unwrap_or(u32::MAX),
            frozen: number(served.frozen),
            reason: c_reason(served.reason),
            path_length,
        };
        // SAFETY: not null, and may be written to as the caller sees to.
        unsafe { decision.write(decided) };
        Ok(())
    })
}

/// Reports how many connections waited in the server's listen queue after this process had accepted one, or UINT32_MAX if
/// the queue was all but full, since the number of those that come is not known then. Call it for each connection, or not
/// at all. By it the controller knows the rate at which requests come, and not only that at which they are taken. While the
/// queue is never empty no worker is free, and the controller lowers the load although the calls show less, since a worker
/// is also busy before plimsoll_adapt and after plimsoll_done. Returns 0 or an error.
///
/// # Safety
/// `handle` is of plimsoll_init and not closed, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_saw_queue(handle: *const plimsoll_t, waiting: u32) -> c_int {
    guarded(|| {
        // SAFETY: null or a handle, as the caller sees to.
        unsafe { server(handle)? }.saw_queue(waiting)
    })
}

/// Counts the connections that wait in the listen queues of this process's TCP sockets, and reports their number as
/// plimsoll_saw_queue does. Call it with each connection, or with each request where connections are not seen. It is none
/// of the three calls: it asks the kernel, once for each socket. Returns how many wait (INT_MAX if a queue is all but full,
/// 0 if there is no such socket and while another thread counts), or an error. While some wait, a server whose processes
/// are held by idle connections should close this one.
///
/// # Safety
/// `handle` is of plimsoll_init and not closed, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_look_at_queue(handle: *const plimsoll_t) -> c_int {
    let mut waiting = 0;
    let result = guarded(|| {
        // SAFETY: null or a handle, as the caller sees to.
        waiting = unsafe { server(handle)? }.look_at_queue()?;
        Ok(())
    });
    if result == 0 { c_int::try_from(waiting).unwrap_or(c_int::MAX) } else { result }
}

/// Counts bytes of a response's body as they are delivered. Returns 0 or an error.
///
/// # Safety
/// `handle` is of plimsoll_init and not closed, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_log_size(handle: *const plimsoll_t, request: u64, bytes: u64) -> c_int {
    guarded(|| {
        // SAFETY: null or a handle, as the caller sees to.
        unsafe { server(handle)? }.log_size(request, bytes)
    })
}

/// Reports that a response stays open for as long as its client likes: a stream of events, or an upgraded connection. Call
/// it once, when the response's head is known. The request gives its place back, so that others are not rejected for it,
/// unless the upstream has `tunnels_keep_places = true`; plimsoll_log_size and plimsoll_done follow as for any other.
/// Returns 0 or an error; after PLIMSOLL_ERROR_TOO_MANY_STREAMS the request keeps its place.
///
/// # Safety
/// `handle` is of plimsoll_init and not closed, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_stays_open(handle: *const plimsoll_t, request: u64) -> c_int {
    guarded(|| {
        // SAFETY: null or a handle, as the caller sees to.
        unsafe { server(handle)? }.stays_open(request)
    })
}

/// Writes the value of a response's field as the client must see it into `seen`, which has room for `capacity` bytes: without
/// the level's prefix where it names a place on the site, as `Location`, `Content-Location`, `Refresh` and the path of
/// `Set-Cookie` do. It is never longer than `value`, and must not be written over it. Returns 0 or an error.
///
/// # Safety
/// The pointers point to what their types say, and `seen` to `capacity` bytes; or they are NULL, which is an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_map_place(
    place: *const plimsoll_place_t,
    name: *const c_char,
    value: *const c_char,
    seen: *mut c_char,
    capacity: usize,
) -> c_int {
    guarded(|| {
        // SAFETY: each is null or a text that ends with NUL, as the caller sees to; so are those of the place.
        let (place, name, value) = unsafe { (place.as_ref(), bytes(name), bytes(value)) };
        let (Some(place), Some(name), Some(value)) = (place, name, value) else {
            return Err(Fault::Argument);
        };
        // SAFETY: as above.
        let [host, root, prefix] =
            [place.host, place.root, place.prefix].map(|text| unsafe { bytes(text) }.unwrap_or_default());
        if seen.is_null() {
            return Err(Fault::Argument);
        }
        if value.len() >= capacity {
            return Err(Fault::TooLong);
        }
        let cut = Prefixed { root, prefix }.cut(name, value, |_, authority| Authority::of(authority, host));
        let pieces = cut.map_or([value, &[], &[]], |cut| cut.pieces(value));
        // SAFETY: the caller lets `capacity` bytes be written at `seen`. The pieces together are no longer than the value,
        // which is shorter than `capacity`, so a NUL fits too.
        unsafe { write(seen, &pieces) };
        Ok(())
    })
}

/// Ends a request, exactly once; `outcome` is a `plimsoll_outcome`. Returns 0 or an error.
///
/// # Safety
/// `handle` is of plimsoll_init and not closed, or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_done(handle: *const plimsoll_t, request: u64, outcome: c_int) -> c_int {
    guarded(|| {
        let outcome = usize::try_from(outcome).ok().and_then(|number| Outcome::ALL.get(number).copied());
        // SAFETY: null or a handle, as the caller sees to.
        unsafe { server(handle)? }.done(request, outcome.ok_or(Fault::Argument)?)
    })
}

/// The outcome, for plimsoll_done, of a request whose whole answer has this status: a failure of the server from 500 on.
#[unsafe(no_mangle)]
pub extern "C" fn plimsoll_outcome_of(status: u32) -> c_int {
    Outcome::of_answer(status.try_into().unwrap_or(u16::MAX)) as c_int
}

/// Detaches the process. Requests that it still has under way count as failed. A signal handler that ends the process may
/// call it, in the middle of another call of its own thread too, but not while another thread is in a call.
///
/// # Safety
/// `handle` is of plimsoll_init, no other thread is in a call with it, and it is not used any more; or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_close(handle: *mut plimsoll_t) {
    // The call that this signal handler has interrupted may be using the server, or be inside the allocator.
    let interrupts = CALLS.get() > 0;
    // Nobody is left to whom an error could be returned.
    let _ = guarded(|| {
        if interrupts {
            // SAFETY: null or a handle, as the caller sees to.
            unsafe { server(handle)? }.abandon();
        } else if !handle.is_null() {
            // SAFETY: it was made by `plimsoll_init` and is not used any more, as the caller sees to.
            drop(unsafe { Box::from_raw(handle) });
        }
        Ok(())
    });
}

/// Writes the state of the controller and the counts of all processes. Returns 0 or an error.
///
/// # Safety
/// The pointers point to what their types say, or are NULL, which is an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_status(handle: *const plimsoll_t, status: *mut plimsoll_status_t) -> c_int {
    guarded(|| {
        // SAFETY: null or a handle, as the caller sees to.
        let server = unsafe { server(handle)? };
        if status.is_null() {
            return Err(Fault::Argument);
        }
        let told = plimsoll_status_t { frozen: number(server.frozen()), ..server.counts() };
        // SAFETY: not null, and may be written to as the caller sees to.
        unsafe { status.write(told) };
        Ok(())
    })
}

/// Writes the state of the class of this number, which counts from 0. Returns 0, PLIMSOLL_ERROR_NO_REQUEST after the last
/// one, or another error.
///
/// # Safety
/// The pointers point to what their types say, or are NULL, which is an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn plimsoll_class(
    handle: *const plimsoll_t,
    number: usize,
    class: *mut plimsoll_class_t,
) -> c_int {
    guarded(|| {
        // SAFETY: null or a handle, as the caller sees to.
        let server = unsafe { server(handle)? };
        if class.is_null() {
            return Err(Fault::Argument);
        }
        let (name, sums) = server.class(number).ok_or(Fault::NoRequest)?;
        let told = plimsoll_class_t {
            site: name.site.as_ptr(),
            name: name.class.as_ptr(),
            service_level: sums.service_level,
            levels: name.levels,
            arrived: sums.arrived,
            rejected: sums.rejected,
            ended: sums.ended,
            bytes: sums.bytes,
        };
        // SAFETY: not null, and may be written to as the caller sees to.
        unsafe { class.write(told) };
        Ok(())
    })
}

/// The sentence that goes with an error. It lasts for ever.
#[unsafe(no_mangle)]
pub extern "C" fn plimsoll_strerror(error: c_int) -> *const c_char {
    let known = Fault::ALL.into_iter().find(|fault| *fault as c_int == error);
    known.map_or("no error\0", Fault::c_text).as_ptr().cast()
}

/// The decision if no site has the request's host.
const NO_SITE: plimsoll_decision_t = plimsoll_decision_t {
    request: 0,
    level: 0,
    status: 421,
    retry_after: 0,
    frozen: 0,
    reason: REASONS[Reason::NoSite as usize].as_ptr().cast(),
    path_length: 0,
};

/// The number of the state in C: 0 while a controller is awake.
fn number(frozen: Option<Frozen>) -> u32 {
    frozen.map_or(0, |frozen| frozen as u32)
}

/// The decision on a request whose path has a dot segment.
const DOTTED: plimsoll_decision_t = plimsoll_decision_t { status: 400, ..NO_SITE };

thread_local! {
    /// The number of calls of this thread that are under way: more than one if a signal handler has interrupted a call.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Runs a call, and turns a panic into an error.
fn guarded(call: impl FnOnce() -> Result<(), Fault>) -> c_int {
    let outer = CALLS.get();
    CALLS.set(outer + 1);
    compiler_fence(SeqCst);
    let ended = catch_unwind(AssertUnwindSafe(call));
    compiler_fence(SeqCst);
    CALLS.set(outer);
    ended.unwrap_or(Err(Fault::Internal)).map_or_else(|fault| fault as c_int, |()| 0)
}

/// # Safety
/// `handle` is null or of `plimsoll_init` and not closed.
unsafe fn server<'a>(handle: *const plimsoll_t) -> Result<&'a Server, Fault> {
    // SAFETY: as the caller sees to.
    unsafe { handle.as_ref() }.map(|handle| &handle.0).ok_or(Fault::Argument)
}

/// # Safety
/// `text` is null or a text that ends with NUL and lasts for the call.
unsafe fn bytes<'a>(text: *const c_char) -> Option<&'a [u8]> {
    // SAFETY: not null, and as the caller sees to.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// A text of C; a null pointer or text that is not UTF-8 becomes the empty text, which no rule names.
///
/// # Safety
/// As of [`bytes`].
unsafe fn text<'a>(text: *const c_char) -> &'a str {
    // SAFETY: as the caller sees to.
    unsafe { bytes(text) }.and_then(utf8).unwrap_or_default()
}

/// An address, without the zone that a link-local one may have.
fn address(text: &str) -> Result<IpAddr, Fault> {
    let without_zone = || text.split_once('%').and_then(|(address, _)| address.parse().ok());
    text.parse().ok().or_else(without_zone).ok_or(Fault::Argument)
}

/// Writes a prefix, a path that may overlap the place it is written to, and a NUL; returns the length of prefix and path.
///
/// # Safety
/// `asked` points to `length` bytes that may be read. At `path`, bytes for the prefix, for `length` more and for a NUL may
/// be written. The two may overlap; the prefix overlaps neither.
unsafe fn put_behind(prefix: &[u8], asked: *const u8, length: usize, path: *mut c_char) -> usize {
    let (start, whole) = (path.cast::<u8>(), prefix.len() + length);
    // SAFETY: as the caller sees to. The path is moved before anything is written over it.
    unsafe {
        ptr::copy(asked, start.add(prefix.len()), length);
        ptr::copy_nonoverlapping(prefix.as_ptr(), start, prefix.len());
        start.add(whole).write(0);
    }
    whole
}

/// Writes pieces of a text and a NUL.
///
/// # Safety
/// At `text`, the bytes of all pieces and a NUL may be written.
unsafe fn write(text: *mut c_char, pieces: &[&[u8]]) {
    let mut length = 0;
    for piece in pieces {
        // SAFETY: as the caller sees to.
        unsafe { ptr::copy(piece.as_ptr(), text.cast::<u8>().add(length), piece.len()) };
        length += piece.len();
    }
    // SAFETY: as above.
    unsafe { text.add(length).write(0) };
}

/// The value of a header, as the callback finds it.
///
/// # Safety
/// The callback may be called with this context and a text.
unsafe fn call<'a>(header: plimsoll_header_t, context: *mut c_void, name: &str) -> Option<&'a str> {
    /// Rules name no header longer than this.
    const LONGEST: usize = 255;
    let header = header?;
    let mut copy = [0_u8; LONGEST + 1];
    copy[..LONGEST].get_mut(..name.len())?.copy_from_slice(name.as_bytes());
    let name = CStr::from_bytes_until_nul(&copy).ok()?;
    // SAFETY: as the caller sees to; the value lasts until the C function that the caller called returns.
    unsafe {
        let value = header(context, name.as_ptr());
        if value.is_null() { None } else { CStr::from_ptr(value).to_str().ok() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Controller;

    const CONFIGURATION: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n\n\
                                 [upstream.server]\naddress = \"127.0.0.1:80\"\ncapacity = { workers = 4 }\n\n\
                                 [[site]]\nname = \"www\"\nhost = \"www\"\n\n[[site.level]]\nname = \"full\"\nprefix = \"/full\"\n";

    #[test]
    fn a_path_is_rewritten_where_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let configuration = plimsoll_config::parse_inside(CONFIGURATION, "test").unwrap();
        Controller::start(&state, (CONFIGURATION, &configuration), 1, 1).unwrap().0.tick();
        let server = plimsoll_t(Server::attach(&state).unwrap());
        // Case by case, the path begins this many bytes behind the place where it is rewritten.
        for (asked, behind) in
            [("/index.html", 0), ("/a", 0), ("/", 0), ("/index.html", 3), ("/a", 9), ("", 0), ("*", 0)]
        {
            // `OPTIONS *` asks for no page.
            let prefix = if asked == "*" { "" } else { "/full" };
            let mut buffer = [0; 64];
            buffer[behind..][..asked.len()].copy_from_slice(asked.as_bytes());
            let (path, mut decision) = (buffer.as_mut_ptr().cast::<c_char>(), NO_SITE);
            let request = |host: &'static CStr| plimsoll_request_t {
                method: c"GET".as_ptr(),
                host: host.as_ptr(),
                // SAFETY: the path is in the buffer.
                path: unsafe { path.add(behind) },
                query: ptr::null(),
                client: c"192.0.2.1".as_ptr(),
                header: None,
                context: ptr::null_mut(),
            };
            // SAFETY: every pointer is to a text, or to a value of this test.
            let error = unsafe { plimsoll_adapt(&server, &request(c"www"), path, 64, &mut decision) };
            // SAFETY: the call has written a text there.
            let seen = unsafe { CStr::from_ptr(path) }.to_str().unwrap().to_owned();
            let expected = format!("{prefix}{asked}");
            assert_eq!((error, seen, decision.path_length), (0, expected.clone(), expected.len()));
            // SAFETY: as above.
            let error = unsafe { plimsoll_adapt(&server, &request(c"other"), path, 64, &mut decision) };
            assert_eq!((error, buffer[0]), (Fault::NoSite as c_int, 0));
            let dotted = plimsoll_request_t { path: c"/a/%2e./b".as_ptr(), ..request(c"www") };
            // SAFETY: as above.
            let error = unsafe { plimsoll_adapt(&server, &dotted, path, 64, &mut decision) };
            assert_eq!((error, buffer[0], decision.status), (Fault::Path as c_int, 0, 400));
            let unknown = plimsoll_request_t { client: ptr::null(), ..request(c"www") };
            // SAFETY: as above.
            let error = unsafe { plimsoll_adapt(&server, &unknown, path, 64, &mut decision) };
            assert_eq!(error, Fault::Argument as c_int);
        }
    }

    #[test]
    fn reasons_and_errors_read_the_same_in_c() {
        for reason in Reason::ALL {
            // SAFETY: the pointer is to a word of the table, which ends with NUL.
            assert_eq!(unsafe { CStr::from_ptr(c_reason(reason)) }.to_str(), Ok(reason.as_str()));
        }
        for fault in Fault::ALL {
            assert_eq!(
                CStr::from_bytes_with_nul(fault.c_text().as_bytes()).unwrap().to_str(),
                Ok(fault.text())
            );
        }
    }
}
