//! What the access log says of one request, and its spans: begun when the head is read, and written when the request ends.

use crate::access_log::format::Line;
use crate::access_log::logs::AccessLog;
use crate::http1::Version;
use crate::traces::context::TraceContext;
use crate::traces::spans::{self, Moments};
use crate::transport::address::Address;
use crate::worker::tables::ThreadTables;
use plimsoll_core::request::{Permit, Reason, Target};
use plimsoll_core::time::Instant;
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

/// The status of a request whose client left before it was answered, as nginx has it.
pub(crate) const CLIENT_LEFT: u16 = 499;

/// Why a request was answered without having started.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Why {
    /// The engine's reason.
    Reason(Reason),
    /// What was wrong, in words.
    Error(&'static str),
    /// Nothing was wrong.
    Nothing,
}

/// A request's head, as far as a log shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoggedHead {
    pub method: String,
    pub target: String,
    pub host: String,
    pub referer: Option<String>,
    pub user_agent: Option<String>,
    pub version: Version,
    pub scheme: &'static str,
}

impl LoggedHead {
    fn held(&self) -> usize {
        let optional = [&self.referer, &self.user_agent].into_iter().flatten();
        [&self.method, &self.target, &self.host].into_iter().chain(optional).map(String::capacity).sum()
    }
}

/// The log entry of a request under way. It exists only if a log or a trace needs it.
pub(crate) struct Entry {
    log: Option<Arc<AccessLog>>,
    trace: Option<TraceContext>,
    tables: Rc<ThreadTables>,
    came: SystemTime,
    client: IpAddr,
    /// `None` if the head could not be read.
    head: Option<LoggedHead>,
    /// `None` if the request belongs to no site.
    target: Option<Target>,
    status: u16,
    bytes: Cell<u64>,
    reason: Option<Reason>,
    error: Option<&'static str>,
    released: Option<Instant>,
    /// The server that was tried last, and how many tries there were.
    server: RefCell<Option<Address>>,
    tries: Cell<u32>,
    is_written: Cell<bool>,
}

impl Entry {
    pub(crate) fn begin(
        log: Option<Arc<AccessLog>>,
        tables: Rc<ThreadTables>,
        client: IpAddr,
        head: Option<LoggedHead>,
        target: Option<Target>,
    ) -> Box<Self> {
        Box::new(Entry {
            log,
            trace: None,
            tables,
            came: SystemTime::now(),
            client,
            head,
            target,
            status: 0,
            bytes: Cell::new(0),
            reason: None,
            error: None,
            released: None,
            server: RefCell::default(),
            tries: Cell::new(0),
            is_written: Cell::new(false),
        })
    }

    /// The entry for a request that belongs to a trace.
    pub(crate) fn traced(mut self: Box<Self>, trace: Option<TraceContext>) -> Box<Self> {
        self.trace = trace;
        self
    }

    /// How much memory the entry takes.
    pub(crate) fn held(&self) -> usize {
        size_of::<Self>() + self.head.as_ref().map_or(0, LoggedHead::held)
    }

    /// Notes the status that was sent to the client.
    pub(crate) fn answered(&mut self, status: u16) {
        self.status = status;
    }

    /// Counts body bytes that the client took.
    pub(crate) fn sent(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    /// Notes that a server was tried.
    pub(crate) fn tried(&self, server: &Address) {
        self.tries.set(self.tries.get() + 1);
        *self.server.borrow_mut() = Some(server.clone());
    }

    /// Notes why the request failed, and the bytes of the gateway's own answer.
    pub(crate) fn failed(&mut self, why: &'static str, answer_bytes: u64) {
        self.error.get_or_insert(why);
        self.sent(answer_bytes);
    }

    /// Notes that the gateway stops. The client has not left: if it got no answer, the request counts as one that the gateway
    /// could not serve.
    pub(crate) fn cut_off(&mut self) {
        if self.status == CLIENT_LEFT {
            return;
        }
        self.error.get_or_insert("the gateway stopped before the answer was whole");
        if self.status == 0 {
            self.status = 503;
        }
    }

    /// Notes when the place at the upstream was given back: after the last byte, or because the request stays open without a
    /// place. Only the first call counts.
    pub(crate) fn released(&mut self, now: Instant) {
        self.released.get_or_insert(now);
    }

    /// Notes the reason for which the request left the queue without a verdict.
    pub(crate) fn left_queue(&mut self, reason: Reason) {
        self.reason = Some(reason);
    }

    /// Writes the line of a request that never started.
    pub(crate) fn turned_away(mut self: Box<Self>, status: u16, why: Why, bytes: u64) {
        self.status = status;
        match why {
            Why::Reason(reason) => self.reason = Some(reason),
            Why::Error(error) => self.error = Some(error),
            Why::Nothing => {}
        }
        let is_head = self.head.as_ref().is_some_and(|head| head.method == "HEAD");
        self.bytes.set(if is_head { 0 } else { bytes });
        self.write(None, None);
    }

    /// Writes the line of a request that was served and departs now, which gives its place back at the latest.
    pub(crate) fn departed(mut self: Box<Self>, permit: &Permit, now: Instant) {
        self.released(now);
        self.write(Some(permit), Some(now));
    }

    fn write(&self, permit: Option<&Permit>, departed: Option<Instant>) {
        self.is_written.set(true);
        let names = &self.tables.names;
        let served = permit.filter(|permit| !permit.is_waiting());
        let seconds = |from: Option<Instant>, to: Option<Instant>| {
            let time = to?.since(from?);
            Some((time.as_secs_f64() * 1e6).round() / 1e6)
        };
        let (arrived, started) = (served.map(Permit::arrived), served.map(Permit::started));
        let level = served.zip(self.target);
        let head = self.head.as_ref();
        let server = self.server.borrow().as_ref().map(ToString::to_string);
        let line = Line {
            time: self.came.try_into().unwrap_or_default(),
            client: self.client,
            method: head.map(|head| head.method.as_str()),
            host: head.map(|head| head.host.as_str()).filter(|host| !host.is_empty()),
            path: head.map(|head| head.target.as_str()),
            protocol: head.map_or(Version::Http11, |head| head.version).as_str(),
            scheme: head.map_or("http", |head| head.scheme),
            status: if self.status == 0 { CLIENT_LEFT } else { self.status },
            bytes: self.bytes.get(),
            referer: head.and_then(|head| head.referer.as_deref()),
            user_agent: head.and_then(|head| head.user_agent.as_deref()),
            site: self.target.and_then(|target| names.site(target.site)),
            class: self.target.and_then(|target| names.class(target.class)),
            level: level.and_then(|(permit, target)| names.level(target.site, permit.level())),
            reason: permit.map(Permit::reason).or(self.reason).map(Reason::as_str),
            client_share: self.target.map(|target| share(target.client)),
            upstream: served.and_then(|permit| names.plant(permit.plant())),
            server: server.as_deref(),
            tries: server.as_ref().map(|_| self.tries.get()),
            error: self.error,
            queue_time: seconds(arrived, started),
            service_time: seconds(started, self.released),
            delivery_time: seconds(arrived, departed),
            trace_id: self.trace.map(|trace| trace.trace),
        };
        if let Some(log) = &self.log {
            let mut out = Vec::with_capacity(512);
            line.write(log.form, &mut out);
            log.write(&out);
        }
        if let (Some(trace), Some(traces)) = (&self.trace, &self.tables.traces)
            && trace.is_sampled()
        {
            let plant = served.and_then(|permit| self.tables.plants.get(permit.plant()));
            let is_proxied = plant.is_some_and(|plant| plant.upstream.is_some());
            traces.export(spans::of(&line, trace, self.moments(served, departed), is_proxied));
        }
    }

    /// The times of the request's stages, by the machine's calendar.
    fn moments(&self, served: Option<&Permit>, departed: Option<Instant>) -> Moments {
        let ended = SystemTime::now();
        let at = |moment: Instant| ended.checked_sub(departed?.since(moment));
        Moments {
            came: self.came,
            arrived: served.map(Permit::arrived).and_then(at),
            started: served.map(Permit::started).and_then(at),
            released: self.released.filter(|_| served.is_some()).and_then(at),
            ended,
        }
    }
}

/// If the gateway stops while a request waits for its place or sends its body, the request gets its line here.
impl Drop for Entry {
    fn drop(&mut self) {
        if !self.is_written.get() {
            self.cut_off();
            self.write(None, None);
        }
    }
}

/// Where a client's hash lies in [0, 1), to six digits.
fn share(client: u64) -> f64 {
    const HASHES: f64 = (1_u64 << 56) as f64;
    (client as f64 / HASHES * 1e6).floor() / 1e6
}
