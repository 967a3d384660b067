//! The request API: the values that a shell hands in and gets back (the three calls of UC 6.2).
//!
//! ```text
//! arrive -> exempt -------------------------------------------> release -> depart
//!        -> rejected (reason, retry after)
//!        -> served at level L -------------------------------> release -> depart
//!        -> waiting (one queue per plant) -> started at L ---> release -> depart
//!                                         -> dropped (too late, client left)
//! ```
//!
//! *Queue delay* is arrive to start, *service time* start to release, *response time* arrive to release, *delivery*
//! arrive to depart. Every permit departs exactly once.

use crate::request::Reason;
use crate::request::work::{CostFeatures, Work};
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use core::net::IpAddr;

/// The view of a request that classification reads. The shell implements it over its own request type, without copying.
pub trait RequestView {
    /// The method, as sent.
    fn method(&self) -> &str;
    /// The requested host, without port; empty if the request names none.
    fn host(&self) -> &str;
    /// The path, without query.
    fn path(&self) -> &str;
    /// The query, without its question mark; empty if the request has none.
    fn query(&self) -> &str {
        ""
    }
    /// The first header of this name (any case); `None` if absent or not text.
    fn header(&self, name: &str) -> Option<&str>;
    /// The value of the first cookie of this name; `None` if it is absent or the shell does not let it count.
    fn cookie(&self, name: &str) -> Option<&str> {
        cookie(self, name)
    }
    /// The client's address, after trusted proxies.
    fn client(&self) -> IpAddr;
    /// Whether the request's own announcement of its cost is believed, because it comes from a place that the operator
    /// trusts.
    fn is_trusted(&self) -> bool {
        true
    }
}

/// The value of the first cookie of this name, as it was sent.
pub fn cookie<'r>(request: &'r (impl RequestView + ?Sized), name: &str) -> Option<&'r str> {
    let pairs = request.header("cookie")?.split(';');
    pairs.filter_map(|pair| pair.trim().split_once('=')).find(|(n, _)| *n == name).map(|(_, value)| value)
}

/// The time after which a connection that goes on sending requests is counted again ([`Target::repeats`]).
pub const COUNTED_EVERY: Duration = Duration::from_secs(1);

/// Where a request belongs, and what its level and its cost depend on: the result of classification.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The class's number, unique over all sites.
    pub class: u16,
    /// The site's number, in the order of the promises.
    pub site: u16,
    /// The keyed hash of the client, 56 bits: if it is below F 2^56 the client is served the higher level.
    pub client: u64,
    /// The request is not controlled.
    pub exempt: bool,
    /// Whether its body still comes while it holds a place at the plant. The shell sets it, since classification does not
    /// know.
    pub streams: bool,
    /// Whether its connection, which has one request under way at a time, sent another request of the same class and was
    /// counted within [`COUNTED_EVERY`]. The shell sets it, since classification does not know; each of several streams on a
    /// connection counts as a connection. The connections that are counted bound how many requests can wait at once, however
    /// many are sent.
    pub repeats: bool,
    /// The number of its type among its site's types; 0 where no deadline is promised.
    pub request_type: u16,
    /// The announced cost (us of service); 0 without an announcement.
    pub announced_us: u32,
    /// Whole blocks of 64 KB in its body, by its `Content-Length`; 0 where no deadline is promised.
    pub blocks: u16,
    /// The number of the request's shape, by which types are found; 0 if the site has types of its own, or no deadline is
    /// promised.
    pub shape: u16,
}

impl Target {
    /// What its cost is estimated from.
    pub(crate) fn features(&self) -> CostFeatures {
        let Target { request_type, announced_us, blocks, shape, .. } = *self;
        CostFeatures { request_type, announced_us, blocks, shape }
    }
}

/// The shell's own name for a request, handed back in verdicts. The engine does not read it. No two waiting requests may have
/// the same token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Token(pub u64);

/// A token that a shell makes of the place in which a request of a lane waits.
impl Token {
    /// Bits of a place's number, and of the number of the request in it; the lane's number has the other bits.
    const BITS: (u32, u32) = (24, 32);

    /// The token of the request in this place. `generation` counts the place's requests.
    pub fn of_place(lane: usize, place: u32, generation: u32) -> Self {
        Token(
            (lane as u64) << (Self::BITS.0 + Self::BITS.1)
                | u64::from(place) << Self::BITS.1
                | u64::from(generation),
        )
    }

    /// The lane whose request it is.
    pub fn lane(self) -> usize {
        (self.0 >> (Self::BITS.0 + Self::BITS.1)) as usize
    }

    /// The number of the place.
    pub fn place(self) -> usize {
        (self.0 >> Self::BITS.1 & ((1 << Self::BITS.0) - 1)) as usize
    }

    /// The number of the request among those of its place.
    pub fn generation(self) -> u32 {
        self.0 as u32
    }
}

/// The answer to an arrival.
#[derive(Debug)]
#[must_use]
pub enum Arrival {
    /// Start it now, at the permit's level.
    Serve(Permit),
    /// Start it now at the highest level; it is not controlled.
    Exempt(Permit),
    /// Keep it until a [`Verdict`] with its token comes; depart the permit if its client leaves before.
    Wait(Permit),
    /// Turn it away. It is fully accounted for, and nothing more is to be called.
    Reject(Rejection),
}

/// Why a request is turned away, and when its client may come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Why the request is rejected.
    pub reason: Reason,
    /// The time after which the client may come again, for the `Retry-After` header.
    pub retry_after: Duration,
}

impl Rejection {
    /// The whole seconds of the `Retry-After` header: no client comes too early.
    pub fn retry_after_seconds(&self) -> u64 {
        self.retry_after.as_secs() + u64::from(self.retry_after.subsec_nanos() > 0)
    }
}

/// The engine's record of a request under way. It is plain data: a shell wraps it in a guard that departs on drop.
#[derive(Debug)]
#[must_use = "every permit departs exactly once"]
pub struct Permit {
    pub(crate) class: u16,
    pub(crate) plant: u16,
    pub(crate) level: u8,
    pub(crate) reason: Reason,
    pub(crate) stage: Stage,
    /// The request's bytes count against a contract.
    pub(crate) has_contract: bool,
    /// The request is counted in the quota of its class while in service.
    pub(crate) has_quota: bool,
    /// The request holds a right to stream at its plant.
    pub(crate) streams: bool,
    /// The request has become an upgraded connection or a stream of events.
    pub(crate) tunnel: bool,
    /// Whether the client has left, so that the plant finishes the request although its answer goes to no client.
    pub(crate) abandoned: bool,
    /// The work that was reserved for it, where deadlines are promised.
    pub(crate) work: Option<Work>,
    /// The generation of the promises by which it was given.
    pub(crate) generation: u32,
    /// The number of requests in service at the plant right after its start, which determines the part of a worker that it had.
    pub(crate) in_service_at_start: u32,
    pub(crate) arrived: Instant,
    pub(crate) started: Instant,
    /// How long the plant only waited for the client.
    pub(crate) excused_ns: u64,
}

/// How far the request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Waiting { ticket: u64 },
    InService,
    Released,
}

impl Permit {
    /// The number of the request's class.
    pub fn class(&self) -> u16 {
        self.class
    }
    /// The plant that serves it: index into [`Promises::plants`](crate::promises::Promises::plants).
    pub fn plant(&self) -> usize {
        self.plant.into()
    }
    /// The level to serve, 1..=M. In observe mode always M.
    pub fn level(&self) -> u8 {
        self.level
    }
    /// Why it has this level. In observe mode the reason that would have been.
    pub fn reason(&self) -> Reason {
        self.reason
    }
    /// Whether it still waits for its start.
    pub fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting { .. })
    }
    /// Whether it is in service.
    pub fn holds_place(&self) -> bool {
        self.stage == Stage::InService
    }
    /// Whether its client has left, while the plant works on.
    pub fn is_abandoned(&self) -> bool {
        self.abandoned
    }
    /// Takes time out of the request's service and response times, because the plant only waited for the client then.
    pub fn excuse(&mut self, waited: Duration) {
        self.excused_ns += waited.as_nanos() as u64;
    }
    /// The instant at which the request arrived.
    pub fn arrived(&self) -> Instant {
        self.arrived
    }
    /// When it started; while it waits, when it arrived.
    pub fn started(&self) -> Instant {
        self.started
    }
}

/// How the service of a request ended at the plant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Service {
    /// Body bytes that the plant sent.
    pub response_bytes: u64,
    /// Whether the models learn from this request: the plant answered as it should. False for a failed connection, a
    /// time-out, an upgrade, or a response cut short.
    pub representative: bool,
    /// The cost that the plant reported; `None`: the time that the request took.
    pub cost: Option<Duration>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Outcome {
    /// The whole response was delivered.
    Completed,
    /// The plant or the gateway failed it, or its answer is an error ([`of_answer`](Outcome::of_answer)).
    Failed,
    /// The client left before its response's end.
    Abandoned,
}

impl Outcome {
    /// All outcomes, in the order of their numbers.
    pub const ALL: [Outcome; 3] = [Outcome::Completed, Outcome::Failed, Outcome::Abandoned];

    /// The outcome of a request whose whole answer had this status. A status of 500 or more is an error of the plant: no model
    /// learns from it, and no promise is kept by it. The gateway, the layer and a server that decides itself all go by this.
    pub const fn of_answer(status: u16) -> Outcome {
        if status >= 500 { Outcome::Failed } else { Outcome::Completed }
    }

    /// The text for metric labels.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
            Outcome::Abandoned => "abandoned",
        }
    }
}

/// The decision on a waiting request. Verdicts are made under the queue's lock, and acted on after it.
#[derive(Debug)]
#[must_use]
pub enum Verdict {
    /// Start it. This permit replaces the waiting one: to depart that one does nothing. If the client is gone, depart this
    /// permit as abandoned, which lets another request start.
    Start(Token, Permit),
    /// Answer it with a rejection. To depart its waiting permit does nothing.
    Drop(Token, Rejection),
}

impl Verdict {
    /// The token of the request.
    pub fn token(&self) -> Token {
        let (Verdict::Start(token, _) | Verdict::Drop(token, _)) = self;
        *token
    }

    /// The permit of a request that starts.
    pub fn permit(self) -> Option<Permit> {
        match self {
            Verdict::Start(_, permit) => Some(permit),
            Verdict::Drop(..) => None,
        }
    }
}

/// The caller's reused buffer of verdicts.
pub type Verdicts = Vec<Verdict>;
