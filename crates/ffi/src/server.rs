//! A process of a server: it attaches to the shared state, and makes the three calls of UC 6.2 for each request.
//!
//! The threads of the process share its lane under a lock, which a thread holds for the length of a decision. The lock is in
//! the process's own memory, so that a process that dies leaves no lock held.

use crate::Counts;
use crate::fault::Fault;
use crate::frozen::{ControllerWatch, Frozen};
use crate::layout::Changing;
use crate::listen_queue::Listeners;
use crate::mapping::{Mapping, Mark, Unmap};
use crate::owner;
use crate::report::{ClassName, class_names, class_sums};
use crate::slot::LaneSlot;
use crate::view::{Fields, View};
use nix::time::{ClockId, clock_gettime};
use plimsoll_config::Configuration;
use plimsoll_core::Lane;
use plimsoll_core::processes::{ClassSums, PlaceLoad, SharedWords};
use plimsoll_core::request::{
    Arrival, Classifier, Outcome, Permit, Reason, Rejection, Service, Target, Token, Verdicts,
    has_dot_segment,
};
use plimsoll_core::time::Instant;
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::sync::atomic::compiler_fence;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Requests under way for which there is room from the beginning; the room grows if there are more.
const ROOM: usize = 256;

/// A process of a server that is attached to the shared state.
pub struct Server {
    mapping: Mapping,
    words: SharedWords,
    slot: LaneSlot,
    /// A mark that is 1 in this process, and 0 in its children.
    mark: Mark,
    configuration: Configuration,
    classifier: Classifier,
    classes: Vec<ClassName>,
    /// By site, whether the file has a gateway before this server that reports its places.
    behind_gateway: Vec<bool>,
    own: Mutex<Own>,
    listeners: Mutex<Listeners>,
    watch: ControllerWatch,
    /// Undoes the mapping; declared last, so that everything that refers to the mapping is dropped before.
    _unmap: Unmap,
}

/// What one thread at a time uses, under the lock.
struct Own {
    lane: Lane,
    verdicts: Verdicts,
    /// The controller's generation at which the lane's copy of its words was last renewed.
    generation: u64,
    under_way: Vec<Option<UnderWay>>,
    free: Vec<u32>,
    /// The number of requests so far, so that request numbers do not soon repeat.
    count: u32,
}

struct UnderWay {
    number: u64,
    permit: Permit,
    bytes: u64,
}

/// The decision on a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Served<'s> {
    /// The request's number, for the calls that follow; 0 if the request is rejected.
    pub request: u64,
    /// The level at which the request is served, from 1 to M; 0 if the request is rejected.
    pub level: u8,
    /// Why the request has this level.
    pub reason: Reason,
    /// The site's number in the configuration.
    pub site: u16,
    /// The number of seconds after which a rejected client may come again.
    pub retry_after: u64,
    /// The prefix that the level puts before the path.
    pub prefix: &'s str,
    /// Why no controller is awake, so that levels stand still; `None` while one is awake.
    pub frozen: Option<Frozen>,
}

impl Server {
    /// Attaches this process.
    ///
    /// # Errors
    /// Why the process cannot attach.
    pub fn attach(path: &Path) -> Result<Server, Fault> {
        Mapping::open_for(path, |mapping| Server::over(mapping, path))
    }

    fn over(mapping: Mapping, path: &Path) -> Result<Server, Fault> {
        let changing = &mapping.header().changing;
        if changing.generation.load(Acquire) == 0
            || mapping.header().is_of_earlier_start(owner::boot(), now())
        {
            return Err(Fault::File);
        }
        if owner::is_elsewhere(mapping.header().namespace) {
            return Err(Fault::Namespace);
        }
        let configuration =
            plimsoll_config::parse_inside(mapping.configuration()?, &path.display().to_string())
                .map_err(|_| Fault::Configuration)?;
        let promises = &configuration.promises;
        let classifier =
            Classifier::new(promises, mapping.header().seed).map_err(|_| Fault::Configuration)?;
        let own = owner::own();
        let slot = claim(&mapping, changing, own).ok_or_else(|| {
            changing.refused.fetch_add(1, Relaxed);
            Fault::NoLane
        })?;
        let words = mapping.words();
        // If all processes drew the same random numbers, the first requests of short-lived processes would all get the same
        // level.
        let seed = mapping.header().seed ^ own ^ now().as_nanos();
        let generation = changing.generation.load(Acquire);
        let lane = Lane::in_process(promises, seed, words, slot.counters).map_err(|_| Fault::Configuration);
        let (lane, mark) = lane.and_then(|lane| Ok((lane, Mark::new()?))).inspect_err(|_| slot.free())?;
        let own = Own {
            lane,
            verdicts: Vec::new(),
            generation,
            under_way: Vec::with_capacity(ROOM),
            free: Vec::with_capacity(ROOM),
            count: 0,
        };
        Ok(Server {
            mapping,
            words,
            slot,
            mark,
            classes: class_names(promises),
            behind_gateway: promises.decided_inside().collect(),
            configuration,
            classifier,
            own: Mutex::new(own),
            listeners: Mutex::default(),
            watch: ControllerWatch::new(path, mapping.header().period_ns),
            _unmap: Unmap(mapping),
        })
    }

    /// The configuration that the controller was started with.
    pub fn configuration(&self) -> &Configuration {
        &self.configuration
    }

    /// Decides on a request. `room` is the number of bytes that its rewritten path may have.
    ///
    /// # Errors
    /// Why the request cannot be decided on; it is not counted then.
    pub fn adapt<'a>(&self, fields: &'a Fields<'a>, room: usize) -> Result<Served<'_>, Fault> {
        // The header callback runs before the lock is taken. It is the server's own code and may wait for a lock, as that of
        // Python's interpreter, whose holder waits for this one.
        if has_dot_segment(fields.path) {
            return Err(Fault::Path);
        }
        let target = self.classifier.classify(&View::new(fields)).ok_or(Fault::NoSite)?;
        if fields.path.len() + self.longest_prefix(&target) > room {
            return Err(Fault::TooLong);
        }
        let told = self.told_place_load(fields, target.site);
        self.with_own(|own| {
            let generation = self.changing().generation.load(Acquire);
            if generation != own.generation {
                own.generation = generation;
                own.lane.follow_words(self.words);
            }
            let (token, now) = (Token::default(), now());
            if let Some(load) = told {
                own.lane.hear_place_load(now, target, load);
            }
            let decided = self.slot.change(|slot| {
                let permit = match own.lane.arrive(now, target, token, &mut own.verdicts) {
                    Arrival::Serve(permit) | Arrival::Exempt(permit) => permit,
                    Arrival::Reject(rejection) => return Err(rejection),
                    // A gate has room for everything that a server takes, so no request ever waits; one that did would be
                    // rejected.
                    Arrival::Wait(permit) => {
                        own.lane.depart(now, permit, Outcome::Abandoned, &mut own.verdicts);
                        return Err(Rejection {
                            reason: Reason::QueueFull,
                            retry_after: Duration::from_secs(1),
                        });
                    }
                };
                slot.hold(permit.plant(), permit.reason() == Reason::Exempt);
                Ok(permit)
            });
            let (site, frozen) = (target.site, self.frozen_at(now));
            Ok(match decided {
                Ok(permit) => {
                    let (level, reason) = (permit.level(), permit.reason());
                    // An exempt request goes as it came, and so does one that asks for no page, as `OPTIONS *`.
                    let asks_for_page = fields.path.first().is_none_or(|first| *first == b'/');
                    let keeps_path = reason == Reason::Exempt || !asks_for_page;
                    let prefix = if keeps_path { "" } else { self.prefix(site, level) };
                    Served { request: own.keep(permit), level, reason, site, retry_after: 0, prefix, frozen }
                }
                Err(rejection) => {
                    let (reason, retry_after) = (rejection.reason, rejection.retry_after_seconds());
                    Served { request: 0, level: 0, reason, site, retry_after, prefix: "", frozen }
                }
            })
        })
    }

    /// The gateway's report of its places at this server, if the file has a gateway before it.
    fn told_place_load(&self, fields: &Fields<'_>, site: u16) -> Option<PlaceLoad> {
        let is_behind_gateway = self.behind_gateway.get(usize::from(site)).is_some_and(|is| *is);
        if is_behind_gateway {
            (fields.header)(PlaceLoad::HEADER).and_then(PlaceLoad::of_header)
        } else {
            None
        }
    }

    fn prefix(&self, site: u16, level: u8) -> &str {
        let rewrites = self.configuration.gateway.settings.rewrites.get(usize::from(site));
        let own = rewrites.and_then(|levels| levels.get(usize::from(level).checked_sub(1)?));
        own.map_or("", |rewrite| rewrite.prefix.as_str())
    }

    fn longest_prefix(&self, target: &Target) -> usize {
        let rewrites = self.configuration.gateway.settings.rewrites.get(usize::from(target.site));
        rewrites.into_iter().flatten().map(|rewrite| rewrite.prefix.len()).max().unwrap_or(0)
    }

    /// Notes how many connections waited in the server's listen queue after this process had taken one.
    ///
    /// # Errors
    /// The process was forked from the one that attached.
    pub fn saw_queue(&self, waiting: u32) -> Result<(), Fault> {
        if !self.is_own() {
            return Err(Fault::Forked);
        }
        self.mapping.header().queue.saw(now(), waiting);
        Ok(())
    }

    /// Counts the connections that wait in the listen queues of this process, notes the number as
    /// [`saw_queue`](Self::saw_queue) does, and returns it; `u32::MAX` if a queue is nearly full. If the process has no such
    /// queue, nothing is noted.
    ///
    /// # Errors
    /// The process was forked from the one that attached.
    pub fn look_at_queue(&self) -> Result<u32, Fault> {
        // If another thread is counting, its result is enough.
        let waiting = self.listeners.try_lock().ok().and_then(|mut listeners| listeners.waiting(now()));
        waiting.map_or(Ok(0), |waiting| self.saw_queue(waiting).map(|()| waiting))
    }

    /// Counts bytes of a response as they are delivered.
    ///
    /// # Errors
    /// There is no request of this number.
    pub fn log_size(&self, request: u64, bytes: u64) -> Result<(), Fault> {
        self.with_own(|Own { lane, under_way, .. }| {
            let one = find(under_way, request)?;
            one.bytes = one.bytes.saturating_add(bytes);
            lane.sent(&one.permit, bytes);
            Ok(())
        })
    }

    /// Notes that the response stays open for as long as its client likes, such as a stream of events or an upgraded
    /// connection. The request gives its place back, unless `tunnels_keep_places` says that it occupies a worker.
    ///
    /// # Errors
    /// There is no request of this number; or as many responses stay open as may, and the request keeps its place.
    pub fn stays_open(&self, request: u64) -> Result<(), Fault> {
        self.with_own(|Own { lane, under_way, verdicts, .. }| {
            let permit = &mut find(under_way, request)?.permit;
            let (plant, is_exempt, now) = (permit.plant(), permit.reason() == Reason::Exempt, now());
            self.slot.change(|slot| {
                let held_place = permit.holds_place();
                if held_place {
                    slot.let_go(plant, is_exempt);
                }
                let may_stay = lane.stay_open(now, permit, verdicts);
                if held_place && permit.holds_place() {
                    slot.hold(plant, is_exempt);
                }
                if may_stay { Ok(()) } else { Err(Fault::TooManyStreams) }
            })
        })
    }

    /// Ends a request.
    ///
    /// # Errors
    /// There is no request of this number, or it has ended already.
    pub fn done(&self, request: u64, outcome: Outcome) -> Result<(), Fault> {
        self.with_own(|own| {
            let known = own
                .under_way
                .get_mut(place(request))
                .and_then(|one| one.take_if(|one| one.number == request));
            let UnderWay { mut permit, bytes, .. } = known.ok_or(Fault::NoRequest)?;
            own.free.push(place(request) as u32);
            // A server works for a client that leaves early as for any other. If these services did not count and all clients
            // left before their answers, the controller would take the server for idle.
            let representative = outcome != Outcome::Failed;
            let service = Service { response_bytes: bytes, representative, cost: None };
            let (plant, is_exempt, now) = (permit.plant(), permit.reason() == Reason::Exempt, now());
            let Own { lane, verdicts, .. } = own;
            self.slot.change(|slot| {
                if permit.holds_place() {
                    slot.let_go(plant, is_exempt);
                }
                lane.release(now, &mut permit, service, verdicts);
                lane.depart(now, permit, outcome, verdicts);
            });
            Ok(())
        })
    }

    /// The counts of all processes.
    pub fn counts(&self) -> Counts {
        Counts::read(&self.mapping)
    }

    /// The name and the figures of a class, by its number.
    pub(crate) fn class(&self, class: usize) -> Option<(&ClassName, ClassSums)> {
        Some((self.classes.get(class)?, class_sums(&self.mapping, class)))
    }

    /// Whether this process attached, and not the one that it was forked from.
    pub fn is_own(&self) -> bool {
        self.mark.is_own()
    }

    /// Whether no controller is awake, and why.
    pub fn frozen(&self) -> Option<Frozen> {
        self.frozen_at(now())
    }

    fn frozen_at(&self, now: Instant) -> Option<Frozen> {
        self.watch.look(now, self.changing().heartbeat_ns.load(Relaxed))
    }

    fn changing(&self) -> &'static Changing {
        &self.mapping.header().changing
    }

    /// Runs `act` under the lock. Refused in a process that was forked from the one that attached, and in a signal handler that
    /// has interrupted this thread here.
    fn with_own<T>(&self, act: impl FnOnce(&mut Own) -> Result<T, Fault>) -> Result<T, Fault> {
        if !self.is_own() {
            return Err(Fault::Forked);
        }
        IS_WITHIN.with(|is_within| {
            let _within = Within::begin(is_within).ok_or(Fault::Interrupted)?;
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            let result = act(&mut own);
            drop(own);
            result
        })
    }

    /// Gives the lane back and touches nothing else: a signal handler may end the process in the middle of any call.
    pub(crate) fn abandon(&self) {
        if self.is_own() {
            self.slot.free();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.abandon();
    }
}

thread_local! {
    static IS_WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// Marks that this thread is in the part of a call that holds the lock or waits for it. Otherwise a call by a signal handler,
/// such as Apache prefork's that ends a child, would wait for ever for the thread that it has interrupted. Within one thread
/// program order is enough.
struct Within<'t>(&'t Cell<bool>);

impl<'t> Within<'t> {
    fn begin(is_within: &'t Cell<bool>) -> Option<Self> {
        let begins = !is_within.replace(true);
        compiler_fence(SeqCst);
        begins.then(|| Within(is_within))
    }
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        self.0.set(false);
    }
}

impl Own {
    /// Keeps the permit of a request under way; returns the request's number.
    fn keep(&mut self, permit: Permit) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() as u32 - 1
        });
        self.count = self.count.wrapping_add(1).max(1);
        let number = u64::from(self.count) << 32 | u64::from(place);
        self.under_way[place as usize] = Some(UnderWay { number, permit, bytes: 0 });
        number
    }
}

/// The request of this number.
fn find(under_way: &mut [Option<UnderWay>], request: u64) -> Result<&mut UnderWay, Fault> {
    let one = under_way.get_mut(place(request)).and_then(Option::as_mut);
    one.filter(|one| one.number == request).ok_or(Fault::NoRequest)
}

/// The index at which a request's permit is kept.
fn place(request: u64) -> usize {
    (request & u64::from(u32::MAX)) as usize
}

/// Claims a lane that no living process has. A lane that this process had before it replaced its program comes first, since no
/// other process can see that this lane is left.
pub(crate) fn claim(mapping: &Mapping, changing: &Changing, own: u64) -> Option<LaneSlot> {
    let left = |lane: &LaneSlot| owner::is_replaced(lane.owner(), own) && lane.claim_from_dead(own, changing);
    let free = mapping.lanes().find(left).or_else(|| mapping.lanes().find(|lane| lane.claim(own)));
    free.or_else(|| mapping.lanes().find(|lane| lane.claim_from_dead(own, changing)))
}

/// The time that all processes of the machine share.
pub(crate) fn now() -> Instant {
    // The call goes to libc, which gets the vDSO from the loader: rustix looks for the vDSO itself, and reads memory that
    // valgrind does not map. The call cannot fail for this clock.
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Instant::ZERO, |time| {
        Instant::from_nanos(time.tv_sec().unsigned_abs() * 1_000_000_000 + time.tv_nsec().unsigned_abs())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Controller, Taken};
    use crate::layout::Header;
    use std::fs;
    use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
    use std::path::PathBuf;

    const CONFIGURATION: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n\n\
                                 [upstream.server]\naddress = \"127.0.0.1:80\"\ncapacity = { workers = 4 }\n\n\
                                 [[site]]\nname = \"www\"\n\n\
                                 [[site.class]]\nname = \"gold\"\nmatch = { header = { x-plan = \"gold\" } }\n";

    /// A state with one lane, in a folder of its own.
    fn state(folder: &tempfile::TempDir) -> PathBuf {
        let path = folder.path().join("state");
        let configuration =
            plimsoll_config::parse_inside(CONFIGURATION, "test").expect("a valid configuration");
        let mut controller =
            Controller::start(&path, (CONFIGURATION, &configuration), 1, 1).expect("a controller").0;
        controller.tick();
        path
    }

    fn ask(server: &Server, header: impl Fn() -> Option<&'static str>) -> u64 {
        let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let header = &|_: &str| header();
        let fields = Fields { method: "GET", host: "www", path: b"/", query: "", client, header };
        server.adapt(&fields, 256).expect("a decision").request
    }

    #[test]
    fn an_attachment_that_fails_or_ends_leaves_no_mapping() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = state(&folder);
        let first = Server::attach(&path).expect("a lane");
        let mappings = || {
            let maps = fs::read_to_string("/proc/self/maps").expect("this process's mappings");
            maps.lines().filter(|line| line.ends_with(&path.display().to_string())).count()
        };
        let before = mappings();
        for _ in 0..20 {
            assert_eq!(Server::attach(&path).err(), Some(Fault::NoLane));
        }
        assert_eq!(mappings(), before);
        assert_eq!(first.changing().refused.load(Relaxed), 20, "the controller can tell it");
        drop(first);
        assert_eq!(mappings(), before - 1);
        for _ in 0..20 {
            assert_ne!(ask(&Server::attach(&path).expect("a lane"), || None), 0);
        }
        assert_eq!(mappings(), before - 1);
    }

    /// A state on a disk outlives the machine's clock, which begins anew at each start.
    #[test]
    fn a_heartbeat_ahead_of_the_clock_is_that_of_no_controller() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = state(&folder);
        let server = Server::attach(&path).expect("a lane");
        let beat = |at: u64| server.changing().heartbeat_ns.store(at, Relaxed);
        assert_eq!(server.frozen(), None);
        beat(now().as_nanos() + 1_000_000_000);
        assert_eq!(server.frozen(), None, "it has ticked since the clock was read");
        beat(now().as_nanos() + 100_000_000_000);
        assert_eq!(server.frozen(), Some(Frozen::Silent));
        assert_eq!(Server::attach(&path).err(), Some(Fault::File));
        let configuration = plimsoll_config::parse_inside(CONFIGURATION, "test").expect("a valid one");
        let next = Controller::start(&path, (CONFIGURATION, &configuration), 1, 1).expect("a controller");
        assert_eq!(next.1, Taken::Made, "its times are those of another clock");
        server.watch.forget();
        assert_eq!(server.frozen(), Some(Frozen::Replaced), "no controller comes back to the former state");
    }

    #[test]
    fn processes_that_attach_one_after_another_draw_different_random_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let levels = "choice = \"random\"\n[[site.level]]\nname = \"light\"\nprefix = \"/light\"\n[[site.level]]\nname = \"full\"\n";
        let file = CONFIGURATION.replace("name = \"www\"\n", &format!("name = \"www\"\n{levels}"));
        let configuration = plimsoll_config::parse_inside(&file, "test").expect("a valid configuration");
        let mut controller = Controller::start(&path, (&file, &configuration), 1, 1).expect("a controller").0;
        let mut learned = controller.learned();
        learned.classes.iter_mut().for_each(|class| class.service_level = [1.5; 2]);
        assert_eq!(controller.restore(&learned, true), Vec::<String>::new());
        controller.tick();
        let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let fields = Fields { method: "GET", host: "www", path: b"/", query: "", client, header: &|_| None };
        let is_full = |_: &i32| {
            let server = Server::attach(&path).expect("a lane");
            let served = server.adapt(&fields, 256).expect("a decision");
            server.done(served.request, Outcome::Completed).expect("it is under way");
            served.level == 2
        };
        let full = (0..200).filter(is_full).count();
        assert!((60..=140).contains(&full), "{full} of 200");
    }

    #[test]
    fn a_state_of_an_earlier_start_of_the_machine_is_refused_and_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = state(&folder);
        let mut bytes = fs::read(&path).expect("the state");
        bytes[std::mem::offset_of!(Header, boot)] ^= 1;
        fs::write(&path, bytes).expect("the state");
        assert_eq!(Server::attach(&path).err(), Some(Fault::File), "its heartbeat is in the past");
        let configuration = plimsoll_config::parse_inside(CONFIGURATION, "test").expect("a valid one");
        let next = Controller::start(&path, (CONFIGURATION, &configuration), 1, 1).expect("a controller");
        assert_eq!(next.1, Taken::Made);
    }

    #[test]
    fn a_state_of_another_pid_namespace_is_refused_and_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = state(&folder);
        let mut bytes = fs::read(&path).expect("the state");
        bytes[std::mem::offset_of!(Header, namespace)] ^= 1;
        fs::write(&path, bytes).expect("the state");
        assert_eq!(Server::attach(&path).err(), Some(Fault::Namespace));
        state(&folder);
        Server::attach(&path).expect("a lane");
    }

    #[test]
    fn the_listen_queues_of_a_process_are_found_and_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::attach(&state(&folder)).expect("a lane");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let told = || server.mapping.header().queue.read(now(), Duration::from_secs(60)).1;
        assert_eq!(told(), None);
        let _clients = [0; 3].map(|_| TcpStream::connect(listener.local_addr().expect("an address")));
        let seen = server.look_at_queue().expect("this process is the attached one");
        assert!(seen >= 3 && told() >= Some(3), "{seen}, {:?}", told());
    }

    /// The signal handler of Apache's prefork ends requests and closes the handle, wherever it interrupts the process.
    #[test]
    fn a_signal_handler_gets_an_error_instead_of_the_lock_and_gives_the_lane_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = state(&folder);
        let server = Server::attach(&path).expect("a lane");
        let request = ask(&server, || None);
        let interrupted = server.with_own(|_| {
            assert_eq!(server.log_size(request, 1), Err(Fault::Interrupted));
            assert_eq!(server.done(request, Outcome::Completed), Err(Fault::Interrupted));
            assert!(IS_WITHIN.get());
            server.abandon();
            assert_eq!(server.counts().ended, 1);
            drop(Server::attach(&path).expect("the lane is free"));
            Ok(())
        });
        assert_eq!((interrupted, IS_WITHIN.get()), (Ok(()), false));
    }

    /// The lowest m, after a server of which one of two workers is busy was told this with each request. Its file has a gateway
    /// before it, or not.
    fn level_where_told(places: Option<&'static str>, is_behind_gateway: bool) -> f64 {
        let mut file = CONFIGURATION.replace("workers = 4", "workers = 2")
            + "[[site.level]]\nname = \"light\"\nprefix = \"/light\"\n[[site.level]]\nname = \"full\"\n";
        if is_behind_gateway {
            file = file.replace("capacity = ", "decides_itself = true\ncapacity = ");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("state");
        let configuration = plimsoll_config::parse_inside(&file, "test").expect("a valid configuration");
        let mut controller = Controller::start(&path, (&file, &configuration), 1, 1).expect("a controller").0;
        controller.tick();
        let server = Server::attach(&path).expect("a lane");
        let header = |name: &str| places.filter(|_| name == PlaceLoad::HEADER);
        let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let fields = Fields { method: "GET", host: "www", path: b"/", query: "", client, header: &header };
        let begun = std::time::Instant::now();
        let level = || {
            (0..3).filter_map(|class| server.class(class)).map(|own| own.1.service_level).fold(2.0, f64::min)
        };
        while level() >= 2.0 && begun.elapsed() < Duration::from_secs(if is_behind_gateway { 60 } else { 5 })
        {
            let request = server.adapt(&fields, 256).expect("a decision").request;
            std::thread::sleep(Duration::from_millis(2));
            server.done(request, Outcome::Completed).expect("it is under way");
            controller.tick();
        }
        level()
    }

    #[test]
    fn what_a_gateway_tells_of_its_places_lowers_levels_where_the_file_has_one() {
        assert!(level_where_told(Some("1.100"), true) < 2.0);
        assert_eq!(level_where_told(Some("1.100"), false), 2.0, "a client may send whatever it likes");
    }

    #[test]
    fn other_threads_go_on_while_one_looks_for_a_header() {
        let folder = tempfile::tempdir().expect("a folder");
        let server = Server::attach(&state(&folder)).expect("a lane");
        let requests = std::thread::scope(|scope| {
            ask(&server, || {
                let other = scope.spawn(|| ask(&server, || None));
                assert_ne!(other.join().expect("a decision"), 0);
                Some("gold")
            })
        });
        assert_ne!(requests, 0);
    }
}
