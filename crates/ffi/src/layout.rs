//! What lies where in the mapping.
//!
//! ```text
//! header | configuration | classes | plants | sites | lane | lane | ...       each part on a multiple of ALIGN
//! lane: slot | held, by plant | counters, by class | counters, by plant
//! ```
//!
//! All numbers are words of the machine. A process does not attach to a file whose header has another version or other sizes of
//! the parts' contents, nor to one whose length differs from its header's. The text of the configuration lies in the mapping,
//! so that a process has the same configuration as its controller.

use crate::fault::Fault;
use plimsoll_core::processes::{
    ClassCounters, PlantCounters, SharedClass, SharedPlant, SharedShape, SharedSite,
};
use plimsoll_core::time::Instant;
use std::mem::size_of;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

/// "PLIMSOLL".
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"PLIMSOLL");
/// The version of the layout, to be raised if the same sizes mean something else.
const VERSION: u64 = 10;
/// Two cache lines, since a processor fetches two at a time.
const ALIGN: usize = 128;
/// The most that a header may announce, so that no sum of sizes overflows.
const MOST: u64 = 1 << 24;

/// The beginning of the mapping. A field that is not atomic is written before the file has its name, and never again.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Header {
    pub(crate) magic: u64,
    /// A fingerprint of the version and all sizes.
    pub(crate) layout: u64,
    pub(crate) length: u64,
    pub(crate) lanes: u64,
    pub(crate) classes: u64,
    pub(crate) plants: u64,
    pub(crate) sites: u64,
    /// The key of the client hash.
    pub(crate) seed: u64,
    pub(crate) configuration_bytes: u64,
    /// A checksum of the configuration.
    pub(crate) checksum: u64,
    /// The control period T in nanoseconds, by which a process judges whether the controller is late.
    pub(crate) period_ns: u64,
    /// The PID namespace of the controller that made the state; 0 if the kernel did not show it.
    pub(crate) namespace: u64,
    /// The start of the machine during which the state was made; 0 if the kernel did not show it.
    pub(crate) boot: u64,
    pub(crate) changing: Changing,
    pub(crate) queue: ListenQueue,
}

/// The words of the header that change, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Changing {
    /// How often the controller has published its levels; 0 until the first time.
    pub(crate) generation: AtomicU64,
    /// When the controller was last awake (ns).
    pub(crate) heartbeat_ns: AtomicU64,
    /// The controller's process.
    pub(crate) controller: AtomicU64,
    /// What is added to the hash of each client.
    pub(crate) turn: AtomicU64,
    /// Lanes whose process was found dead, and the requests that it held.
    pub(crate) deaths: AtomicU64,
    pub(crate) returned: AtomicU64,
    /// Attachments that were refused since all lanes belonged to living processes.
    pub(crate) refused: AtomicU64,
}

impl Header {
    /// Whether the state was made during an earlier start of the machine than this one, `boot`: the header has another start,
    /// or the last tick is far ahead of the clock.
    pub(crate) fn is_of_earlier_start(&self, boot: u64, now: Instant) -> bool {
        const FAR_NS: u64 = 3_000_000_000;
        let is_other = self.boot != 0 && boot != 0 && self.boot != boot;
        is_other || self.changing.heartbeat_ns.load(Relaxed).saturating_sub(now.as_nanos()) > FAR_NS
    }
}

/// What processes have seen of the server's listen queue, on a cache line of its own: every process writes it, while every
/// process reads the words above for each request.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct ListenQueue {
    /// Since when every look has found a connection waiting (ns); 0 if the last look found none.
    since_ns: AtomicU64,
    /// When a process last looked (ns).
    seen_ns: AtomicU64,
    /// How many connections that process found waiting; `u32::MAX` if the queue was full.
    waiting: AtomicU32,
}

impl ListenQueue {
    /// A process has looked. If two processes look at the same moment, the next look corrects what they wrote.
    pub(crate) fn saw(&self, now: Instant, waiting: u32) {
        let now = now.as_nanos();
        self.seen_ns.store(now, Relaxed);
        self.waiting.store(waiting, Relaxed);
        if (self.since_ns.load(Relaxed) == 0) == (waiting > 0) {
            self.since_ns.store(if waiting > 0 { now } else { 0 }, Relaxed);
        }
    }

    /// For how long every look has found a connection waiting, and how many the last look found; nothing if no process has
    /// looked for `recent`. For a full queue there is no number: its length cannot grow, whatever the load is.
    pub(crate) fn read(&self, now: Instant, recent: Duration) -> (Duration, Option<u32>) {
        let [since, seen] = [&self.since_ns, &self.seen_ns].map(|word| word.load(Relaxed));
        if seen == 0 || u128::from(now.as_nanos().abs_diff(seen)) >= recent.as_nanos() {
            return (Duration::ZERO, None);
        }
        let stands = if since > 0 { now.as_nanos().saturating_sub(since) } else { 0 };
        let waiting = self.waiting.load(Relaxed);
        (Duration::from_nanos(stands), (waiting != u32::MAX).then_some(waiting))
    }
}

/// The beginning of a lane.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub(crate) struct Slot {
    /// The owner's word, which names the process that counts here; 0 if the lane is free.
    pub(crate) owner: AtomicU64,
    /// Odd while the owner changes a gate and the requests held.
    pub(crate) version: AtomicU64,
}

/// What the owner of a lane has in service at one plant.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Held {
    pub(crate) requests: AtomicU32,
    pub(crate) exempt: AtomicU32,
}

/// Where each part begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) shape: SharedShape,
    pub(crate) lanes: usize,
    pub(crate) configuration_bytes: usize,
    pub(crate) configuration: usize,
    pub(crate) classes: usize,
    pub(crate) plants: usize,
    pub(crate) sites: usize,
    first_lane: usize,
    lane_length: usize,
}

impl Layout {
    pub(crate) fn new(shape: SharedShape, lanes: usize, configuration_bytes: usize) -> Self {
        let configuration = size_of::<Header>();
        let classes = (configuration + configuration_bytes).next_multiple_of(ALIGN);
        let plants = classes + shape.classes * size_of::<SharedClass>();
        let sites = plants + shape.plants * size_of::<SharedPlant>();
        let first_lane = sites + shape.sites * size_of::<SharedSite>();
        let mut layout = Layout {
            shape,
            lanes,
            configuration_bytes,
            configuration,
            classes,
            plants,
            sites,
            first_lane,
            lane_length: 0,
        };
        layout.lane_length = layout.lane_plants(0) + shape.plants * size_of::<PlantCounters>() - first_lane;
        layout
    }

    /// The layout that a header announces.
    pub(crate) fn read(header: &Header) -> Result<Self, Fault> {
        if header.magic != MAGIC {
            return Err(Fault::NotState);
        }
        if header.layout != fingerprint() {
            return Err(Fault::Version);
        }
        let Header { lanes, classes, plants, sites, configuration_bytes, .. } = *header;
        if [lanes, classes, plants, sites, configuration_bytes].iter().any(|number| *number > MOST) {
            return Err(Fault::NotState);
        }
        let [classes, plants, sites] = [classes, plants, sites].map(|number| number as usize);
        let shape = SharedShape { classes, plants, sites };
        let layout = Layout::new(shape, lanes as usize, configuration_bytes as usize);
        if layout.length() as u64 == header.length { Ok(layout) } else { Err(Fault::NotState) }
    }

    pub(crate) fn length(&self) -> usize {
        self.slot(self.lanes)
    }

    pub(crate) fn slot(&self, lane: usize) -> usize {
        self.first_lane + lane * self.lane_length
    }

    pub(crate) fn held(&self, lane: usize) -> usize {
        self.slot(lane) + size_of::<Slot>()
    }

    pub(crate) fn lane_classes(&self, lane: usize) -> usize {
        (self.held(lane) + self.shape.plants * size_of::<Held>()).next_multiple_of(ALIGN)
    }

    pub(crate) fn lane_plants(&self, lane: usize) -> usize {
        self.lane_classes(lane) + self.shape.classes * size_of::<ClassCounters>()
    }
}

/// A number that differs from that of any other version: of [`VERSION`] and the sizes of all parts.
pub(crate) fn fingerprint() -> u64 {
    let sizes = [
        size_of::<Header>(),
        size_of::<Slot>(),
        size_of::<Held>(),
        size_of::<SharedClass>(),
        size_of::<SharedPlant>(),
        size_of::<SharedSite>(),
        size_of::<ClassCounters>(),
        size_of::<PlantCounters>(),
    ];
    let release = checksum(env!("CARGO_PKG_VERSION").as_bytes());
    sizes.iter().fold(release ^ VERSION, |sum, size| (sum ^ *size as u64).wrapping_mul(PRIME))
}

const PRIME: u64 = 0x100_0000_01b3;

/// FNV-1a.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another_on_lines_of_their_own() {
        let layout = Layout::new(SharedShape { classes: 5, plants: 3, sites: 2 }, 4, 1000);
        let parts = [layout.configuration, layout.classes, layout.plants, layout.sites];
        let lanes = (0..4).flat_map(|lane| {
            [layout.slot(lane), layout.held(lane), layout.lane_classes(lane), layout.lane_plants(lane)]
        });
        let all: Vec<usize> = parts.into_iter().chain(lanes).chain([layout.length()]).collect();
        assert!(all.iter().all(|part| part.is_multiple_of(ALIGN)), "{all:?}");
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        assert_eq!(layout.length() - layout.lane_plants(3), 3 * size_of::<PlantCounters>());
    }

    #[test]
    fn a_queue_stands_while_each_look_finds_somebody() {
        let queue = ListenQueue::default();
        let at = |seconds: u64| Instant::from_nanos(1_000_000_000 * seconds);
        let read = |now: u64| queue.read(at(now), Duration::from_secs(2));
        let stands = |now: u64| read(now).0.as_secs();
        assert_eq!(read(9), (Duration::ZERO, None), "nobody has looked");
        let looks = [(10, 1), (11, 40), (12, 3), (13, 0), (14, 0), (15, 2), (16, 1)];
        let found = looks.map(|(second, waiting)| {
            queue.saw(at(second), waiting);
            assert_eq!(read(second).1, Some(waiting));
            stands(second)
        });
        assert_eq!(found, [0, 1, 2, 0, 0, 0, 1]);
        assert_eq!((stands(17), read(17).1), (2, Some(1)));
        assert_eq!(read(5), (Duration::ZERO, None), "a look by the clock of an earlier start says nothing");
        queue.saw(at(17), u32::MAX);
        assert_eq!((stands(17), read(17).1), (2, None), "a full queue");
        assert_eq!(read(19), (Duration::ZERO, None), "a look of two seconds ago says nothing");
    }

    #[test]
    fn a_header_of_another_kind_is_refused() {
        let shape = SharedShape { classes: 5, plants: 3, sites: 2 };
        let layout = Layout::new(shape, 4, 1000);
        let good = || Header {
            magic: MAGIC,
            layout: fingerprint(),
            length: layout.length() as u64,
            lanes: 4,
            classes: 5,
            plants: 3,
            sites: 2,
            configuration_bytes: 1000,
            ..Header::default()
        };
        assert_eq!(Layout::read(&good()), Ok(layout));
        assert_eq!(Layout::read(&Header { magic: 0, ..good() }), Err(Fault::NotState));
        assert_eq!(Layout::read(&Header { layout: 1, ..good() }), Err(Fault::Version));
        assert_eq!(Layout::read(&Header { length: 1, ..good() }), Err(Fault::NotState));
        assert_eq!(Layout::read(&Header { classes: u64::MAX, ..good() }), Err(Fault::NotState));
    }
}
