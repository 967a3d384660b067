//! The shared state of the controller. Each process attaches to it with its first request.

use crate::settings::PreloadSettings;
use crate::tell::{Once, OnceEach};
use plimsoll_core::request::{Outcome, Reason};
use plimsoll_ffi::{Fault, Fields, Frozen, Server};
use plimsoll_wire::RequestHead;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

/// The time after a failed attachment until the next try.
const RETRY: Duration = Duration::from_secs(1);

/// A request that was counted; [`UnderWay::done`] ends it.
pub(crate) struct UnderWay {
    server: &'static Server,
    number: u64,
}

/// The decision on a request.
#[derive(Debug)]
pub(crate) enum Decision {
    /// The request is served with this prefix.
    Serve(&'static str, UnderWay),
    /// The request is rejected.
    Reject(Refusal),
    /// The request is passed on unchanged, and is not counted.
    AsItCame,
}

/// The contents of a rejection.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) reason: &'static str,
    pub(crate) retry_after: u64,
    pub(crate) content_type: &'static str,
    pub(crate) body: &'static str,
}

/// The answer to a request that the server would resolve to another path than the one that was decided on.
const DOT_SEGMENT: Refusal = Refusal {
    status: 400,
    reason: Reason::NoSite.as_str(),
    retry_after: 0,
    content_type: "text/plain; charset=utf-8",
    body: "The path has a dot segment.\n",
};

/// Decides on a request of this client. The server's buffer has `room` bytes; if they cannot hold the head with its prefix, the
/// request is passed on unchanged.
pub(crate) fn decide(head: &RequestHead<'_, '_>, client: IpAddr, room: usize) -> Decision {
    static FAULTS: OnceEach = OnceEach::new();
    static FROZEN: [Once; 2] = [const { Once::new() }; 2];
    let Some(server) = server() else { return Decision::AsItCame };
    let (path, query) = head.target.split_once('?').unwrap_or((head.target, ""));
    let fields = Fields {
        method: head.method,
        host: head.header("host").unwrap_or(""),
        path: path.as_bytes(),
        query,
        client,
        header: &|name| head.header(name),
    };
    let room = path.len() + room.saturating_sub(head.target_at + 1);
    let served = match server.adapt(&fields, room) {
        Ok(served) => served,
        Err(Fault::Path) => return Decision::Reject(DOT_SEGMENT),
        Err(fault) => {
            FAULTS.of(fault).tell(&format!("a request goes as it came, and others like it: {fault}"));
            return Decision::AsItCame;
        }
    };
    match served.frozen {
        Some(frozen) => FROZEN[usize::from(frozen == Frozen::Replaced)].tell(frozen.text()),
        None => FROZEN.iter().for_each(Once::again),
    }
    if served.level > 0 {
        return Decision::Serve(served.prefix, UnderWay { server, number: served.request });
    }
    let rejection = &server.configuration().gateway.settings.rejection;
    Decision::Reject(Refusal {
        status: rejection.status,
        reason: served.reason.as_str(),
        retry_after: served.retry_after,
        content_type: &rejection.content_type,
        body: &rejection.body,
    })
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnderWay").field(&self.number).finish()
    }
}

impl UnderWay {
    /// Counts bytes of the answer's body.
    pub(crate) fn sent(&self, bytes: u64) {
        // In a child that was forked meanwhile the call fails: the requests are its parent's.
        let _ = self.server.log_size(self.number, bytes);
    }

    /// Reports that the answer stays open for as long as its client likes.
    pub(crate) fn stays_open(&self) {
        // Beyond the limit of such answers the call fails, and the request keeps its place.
        let _ = self.server.stays_open(self.number);
    }

    pub(crate) fn done(self, outcome: Outcome) {
        let _ = self.server.done(self.number, outcome);
    }
}

/// Reports how many connections wait behind one that the server has accepted. A process without any request so far does not
/// count them: it may be a parent process, which serves no request and needs no lane.
pub(crate) fn saw_queue(waiting: impl FnOnce() -> Option<u32>) {
    // The lock is released before the kernel is asked: a request of another thread that cannot take it is passed on unchanged.
    let own = OWN.try_lock().ok().and_then(|own| own.0);
    let server = own.filter(|server| server.is_own());
    if let Some((server, waiting)) = server.and_then(|server| Some((server, waiting()?))) {
        // In a child that was forked meanwhile the call fails and reports nothing.
        let _ = server.saw_queue(waiting);
    }
}

/// The attachment of this process, and the time of the next try to attach.
static OWN: Mutex<(Option<&'static Server>, Option<Instant>)> = Mutex::new((None, None));

/// The attachment of this process; `None` if there is none, or while another thread attaches.
fn server() -> Option<&'static Server> {
    static FAULTS: OnceEach = OnceEach::new();
    const TRIES: usize = 1000;
    let mut own = (0..TRIES).find_map(|_| match OWN.try_lock() {
        Ok(own) => Some(own),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            std::thread::yield_now();
            None
        }
    })?;
    if let Some(server) = own.0.filter(|server| server.is_own()) {
        return Some(server);
    }
    // An attachment of the parent is forgotten, not dropped: this process can end none of its requests nor give its lane back.
    let was_forked = own.0.take().is_some();
    let now = Instant::now();
    if own.1.is_some_and(|next| now < next) && !was_forked {
        return None;
    }
    own.1 = Some(now + RETRY);
    match Server::attach(PreloadSettings::own().state.as_ref()?) {
        Ok(server) => own.0 = Some(Box::leak(Box::new(server))),
        Err(fault) => FAULTS.of(fault).tell(&format!("requests go as they came: {fault}")),
    }
    own.0
}
