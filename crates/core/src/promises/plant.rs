//! A plant: a server whose utilization is held at a set point.

use super::Site;
use crate::time::Duration;
use alloc::string::String;

/// A server whose utilization is held at a set point.
#[derive(Clone, Debug, PartialEq)]
pub struct Plant {
    /// The plant's name in the configuration, metrics and status.
    pub name: String,
    /// s, how many requests it works on at once: Apache's `MaxRequestWorkers`, or an application server's processes.
    /// With `find_workers` it is the number to begin with.
    pub workers: u32,
    /// If given, the engine searches the number of workers between these bounds, and starts no more requests at once
    /// than it found.
    pub find_workers: Option<WorkerBounds>,
    /// Whether it reports how many workers it has, which are not searched for then. The last number that it reported stays in
    /// force over a reload.
    pub reports_workers: bool,
    /// The most requests in service at once, over all threads; further requests wait. At least 1.
    pub max_connections: u32,
    /// The load line: the utilization U* to hold, in (0, 1].
    pub set_point: f64,
    /// How U is sensed.
    pub sense: Sense,
    /// The second resource of UC 7.2: the most bytes per second that the link carries, 1 / b'.
    pub bandwidth_bytes_per_second: Option<f64>,
    /// A mean service time above this in one period means U = 1 (CA 4.2.1).
    pub response_time_limit: Option<Duration>,
    /// The gateway shares the plant's machine: a rejection's cost c enters the plant's U (UC eq. 2).
    pub same_host: bool,
    /// Costs known beforehand, from a profile. With reported utilization they drive the loop from the first period; with
    /// gap estimation measured service times replace them as soon as there are any.
    pub costs: Option<Costs>,
    /// The largest part of its places that streams hold, though one of them at least: requests whose bodies still come, and
    /// tunnels that keep their places. They hold a place for as long as their clients like.
    pub stream_share: f64,
    /// The plant's use by upgraded connections and streams of events.
    pub tunnels: Tunnels,
    /// Whether it stops working on a request when the connection of the request is closed. Otherwise a request whose client
    /// left holds its place until the plant has finished it.
    pub stops_when_abandoned: bool,
    /// Whether its own processes decide on levels (`halves.rs`).
    pub decides_itself: bool,
    /// Whether requests wait out of the engine's sight: in the listen queue of a server inside of which it decides.
    pub waits_unseen: bool,
    /// The bounds of the queue in front of the plant.
    pub queue: QueueBounds,
    /// The largest part of the plant that contracts may promise together, in (0, 1). `None`: the load line, or, where
    /// deadlines are promised, the planning rule of [`crate::promises::plan`].
    pub ceiling: Option<f64>,
    /// The response header in which the plant reports what a request cost, in seconds of service.
    pub cost_header: Option<String>,
}

impl Plant {
    /// The part of the places that streams may hold, unless the file says otherwise.
    pub const STREAM_SHARE: f64 = 0.5;

    /// U*, unless the file says otherwise.
    pub const LOAD_LINE: f64 = 0.85;

    /// U* of the plant of this number, unless the file says otherwise: [`Plant::LOAD_LINE`], or 1 if the plant keeps
    /// promised times, from which it follows how full the server may be.
    ///
    /// A plant keeps times where classes that it serves, at some level, were promised a delay or a deadline. Classes without a
    /// promise may stand beside them, since the queue answers them in time or not at all. A ratio or a contract needs the
    /// room above the line, unless every class has a time.
    pub fn usual_load_line(number: usize, sites: &[Site]) -> f64 {
        let has_time = |site: &Site, place: usize| {
            let delay = site.classes.get(place).map_or(site.default_delay, |class| class.delay);
            delay.is_some() || site.deadline_of(place).is_some()
        };
        let all = |site: &Site| (0..=site.classes.len()).all(|place| has_time(site, place));
        let some = |site: &Site| (0..=site.classes.len()).any(|place| has_time(site, place));
        let needs_room = |site: &Site| {
            let has_ratio =
                site.default_ratio.is_some() || site.classes.iter().any(|class| class.ratio.is_some());
            (has_ratio || site.guarantee.is_some()) && !all(site)
        };
        let serves = |site: &&Site| {
            site.plant == number || site.levels.iter().any(|level| level.plant == Some(number))
        };
        let served = || sites.iter().filter(serves);
        let holds_times =
            sites.iter().any(|site| site.plant == number) && served().any(some) && !served().any(needs_room);
        if holds_times { 1.0 } else { Plant::LOAD_LINE }
    }

    /// A plant with this number of workers and with defaults: one connection a worker, a load line of 0.85, gap estimation,
    /// and a generous queue.
    pub fn new(name: &str, workers: u32) -> Self {
        Plant {
            name: name.into(),
            workers,
            find_workers: None,
            reports_workers: false,
            max_connections: workers,
            set_point: Plant::LOAD_LINE,
            sense: Sense::Gap,
            bandwidth_bytes_per_second: None,
            response_time_limit: None,
            same_host: false,
            costs: None,
            stream_share: Plant::STREAM_SHARE,
            tunnels: Tunnels::default(),
            stops_when_abandoned: false,
            decides_itself: false,
            waits_unseen: false,
            queue: QueueBounds::default(),
            ceiling: None,
            cost_header: None,
        }
    }
}

/// The use of a plant by upgraded connections (WebSocket) and streams of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnels {
    /// The most at once; one more is refused.
    pub most: u32,
    /// Whether each keeps its place to its end, because it occupies a worker of the server. It then counts as a stream.
    pub keep_places: bool,
}

impl Default for Tunnels {
    fn default() -> Self {
        Tunnels { most: 1024, keep_places: false }
    }
}

/// Where the utilization of a plant comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sense {
    /// Gap estimation over s workers: U = time average of min(in service, s) / s (CA 4.2.1, generalized).
    #[default]
    Gap,
    /// A reading pushed into `tick`: ORCA's `endpoint-load-metrics` of the upstream, or the gateway's own CPU for a
    /// folder that it serves itself.
    Reported,
}

/// The bounds between which the number of workers is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerBounds {
    /// The limit of requests in service never falls below this.
    pub least: u32,
    /// The limit of requests in service never rises above this.
    pub most: u32,
}

impl WorkerBounds {
    /// The number of workers that a search begins with: more than a server needs to be seen at work, and few enough that a
    /// small one is not flooded.
    pub const FIRST_GUESS: u32 = 16;
    /// The bounds where none are given.
    pub const USUAL: WorkerBounds = WorkerBounds { least: 1, most: 1024 };
}

/// The linear model's coefficients, UC eq. 1 and 2: what one request takes of the plant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// a: fixed part, utilization times seconds per request (s).
    pub per_request_seconds: f64,
    /// b: per delivered byte [s/byte].
    pub per_byte_seconds: f64,
    /// c: per rejected request (s).
    pub per_rejection_seconds: f64,
}

/// How long, and how many, requests may wait for a plant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBounds {
    /// The most requests that wait at once; one more is rejected as `queue-full`.
    pub max_waiting: u32,
    /// A request without a deadline that waited this long is answered instead of started. `None`:
    /// [`QueueBounds::LONGEST_WAIT`], and for requests without a promise of their own less while the plant is overloaded.
    pub max_wait: Option<Duration>,
}

impl QueueBounds {
    /// The longest wait, unless the file says otherwise. It is generous, because a healthy burst must wait and not fail.
    pub const LONGEST_WAIT: Duration = Duration::from_secs(10);

    /// The longest that a request without a deadline waits.
    pub fn longest_wait(&self) -> Duration {
        self.max_wait.unwrap_or(Self::LONGEST_WAIT)
    }
}

impl Default for QueueBounds {
    fn default() -> Self {
        // Generous, because a healthy burst must wait and not fail: the level loop empties the queue, this bound only
        // ends it.
        QueueBounds { max_waiting: 20_000, max_wait: None }
    }
}
