//! Promises beside one another, in virtual time. The server has workers of its own, and the promises are judged by its clock
//! and the clients'.

use super::*;
use crate::Decision;
use plimsoll_core::promises::{Class, Condition, Mode};
use plimsoll_core::random::Random;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::task::Wake;

const WORKERS: u32 = 8;
const FULL: Duration = Duration::from_millis(40);
/// An answer after this time is late.
const LATE: Duration = Duration::from_millis(300);
const LIGHT: Duration = Duration::from_millis(6);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Tick,
    Arrival {
        premium: bool,
    },
    /// A handler has done its work.
    Done {
        request: usize,
    },
}

/// What became of the requests of a class.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    full: u32,
    light: u32,
    rejected: u32,
    /// Answered after more than [`LATE`].
    late: u32,
}

impl Tally {
    fn all(&self) -> f64 {
        f64::from(self.full + self.light + self.rejected)
    }
}

/// The server's side: what waits for a worker, how many work, and which handlers are done.
#[derive(Default)]
struct Server {
    begun: VecDeque<(usize, Duration)>,
    at_work: u32,
    done: Vec<bool>,
}

/// A request that was sent: whether it is premium, when it came, and its response to be.
type Sent = (bool, u64, Pending<Full<Bytes>>);

/// Wakes a request by putting it on the list of those to poll.
struct ToPoll(usize, Arc<Mutex<Vec<usize>>>);

impl Wake for ToPoll {
    fn wake(self: Arc<Self>) {
        self.1.lock().expect("no panic").push(self.0);
    }
}

struct Simulation {
    bench: Bench,
    random: Random,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    server: Arc<Mutex<Server>>,
    requests: Vec<Option<Sent>>,
    to_poll: Arc<Mutex<Vec<usize>>>,
    /// Best effort, premium.
    tallies: [Tally; 2],
    busy: Duration,
}

/// A handler that works for as long as its level takes.
fn working(server: &Arc<Mutex<Server>>) -> Handler<Full<Bytes>> {
    let server = server.clone();
    BoxCloneSyncService::new(tower::service_fn(move |request: Request<()>| {
        let decision = request.extensions().get::<Decision>().expect("a decision");
        let takes = if decision.level_name() == "light" { LIGHT } else { FULL };
        let number: usize = request.headers()["number"].to_str().expect("text").parse().expect("a number");
        server.lock().expect("no panic").begun.push_back((number, takes));
        let server = server.clone();
        std::future::poll_fn(move |_| match server.lock().expect("no panic").done[number] {
            true => Poll::Ready(Ok(Response::new(Full::from("page")))),
            false => Poll::Pending,
        })
    }))
}

impl Simulation {
    fn new(builder: Builder, seed: u64) -> Self {
        Simulation {
            bench: Bench::new(builder),
            random: Random::new(seed),
            events: BinaryHeap::new(),
            server: Arc::default(),
            requests: Vec::new(),
            to_poll: Arc::default(),
            tallies: [Tally::default(); 2],
            busy: Duration::ZERO,
        }
    }

    fn at(&mut self, after: Duration, event: Event) {
        let now = self.bench.time.load(Ordering::Relaxed);
        self.events.push(Reverse((now + after.as_nanos() as u64, event)));
    }

    fn exponential(&mut self, mean: Duration) -> Duration {
        mean.mul_f64(-(1.0 - self.random.uniform()).ln())
    }

    /// Runs for `seconds` at these rates (1/s): best effort, premium. Figures are those of the time after `from` seconds.
    fn run(&mut self, rates: [f64; 2], from: u64, seconds: u64) {
        let handler = working(&self.server);
        let gap = |premium: bool| Duration::from_secs_f64(1.0 / rates[usize::from(premium)]);
        self.at(Duration::ZERO, Event::Tick);
        [false, true].into_iter().for_each(|premium| self.at(gap(premium), Event::Arrival { premium }));
        let mut measured = false;
        while let Some(Reverse((time, event))) = self.events.pop() {
            if time > seconds * 1_000_000_000 {
                break;
            }
            if !measured && time > from * 1_000_000_000 {
                (measured, self.tallies, self.busy) = (true, Default::default(), Duration::ZERO);
            }
            self.bench.time.store(time.max(1), Ordering::Relaxed);
            match event {
                Event::Tick => {
                    let next = self.bench.tick();
                    self.at(next.max(Duration::from_micros(1)), Event::Tick);
                }
                Event::Arrival { premium } => {
                    self.arrive(&handler, premium);
                    let next = self.exponential(gap(premium));
                    self.at(next, Event::Arrival { premium });
                }
                Event::Done { request } => {
                    let mut server = self.server.lock().expect("no panic");
                    server.done[request] = true;
                    server.at_work -= 1;
                    drop(server);
                    self.to_poll.lock().expect("no panic").push(request);
                }
            }
            self.poll_all();
        }
    }

    fn arrive(&mut self, handler: &Handler<Full<Bytes>>, premium: bool) {
        let number = self.requests.len();
        let mut asked = request(if premium { "/buy" } else { "/" });
        asked.headers_mut().insert("number", number.into());
        self.server.lock().expect("no panic").done.push(false);
        let came = self.bench.time.load(Ordering::Relaxed);
        self.requests.push(Some((premium, came, call(&self.bench, handler, asked))));
        self.to_poll.lock().expect("no panic").push(number);
    }

    fn poll_all(&mut self) {
        loop {
            let Some(number) = self.to_poll.lock().expect("no panic").pop() else { break };
            let Some((premium, came, mut pending)) = self.requests[number].take() else { continue };
            let waker = Waker::from(Arc::new(ToPoll(number, self.to_poll.clone())));
            match pending.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Pending => self.requests[number] = Some((premium, came, pending)),
                Poll::Ready(Ok(response)) => self.count(premium, came, response),
            }
        }
        while let Some((request, mean)) = self.next_to_work() {
            let takes = self.exponential(mean);
            self.busy += takes;
            self.at(takes, Event::Done { request });
        }
    }

    /// The next request for which a worker is free.
    fn next_to_work(&mut self) -> Option<(usize, Duration)> {
        let mut server = self.server.lock().expect("no panic");
        let next = if server.at_work < WORKERS { server.begun.pop_front() } else { None };
        server.at_work += u32::from(next.is_some());
        next
    }

    fn count(&mut self, premium: bool, came: u64, response: Response<ResponseBody<Full<Bytes>>>) {
        let decision = response.extensions().get::<Decision>().expect("a decision").clone();
        let took = self.bench.time.load(Ordering::Relaxed) - came;
        let tally = &mut self.tallies[usize::from(premium)];
        match decision.level_name() {
            "full" => tally.full += 1,
            "light" => tally.light += 1,
            _ => tally.rejected += 1,
        }
        tally.late += u32::from(decision.level() > 0 && took > LATE.as_nanos() as u64);
        read(response.into_body());
    }

    fn utilization(&self, seconds: f64) -> f64 {
        self.busy.as_secs_f64() / seconds / f64::from(WORKERS)
    }
}

fn shop(mode: Mode) -> Builder {
    workers(WORKERS)
        .levels(["light", "full"])
        .class(Class { priority: 1, ..Class::new("premium", Condition::path("/buy")) })
        .promises(|promises| promises.control.mode = mode)
}

/// At 450/s before a server of 200/s, premium gets half of the capacity, and best effort the rest at the light level.
#[test]
fn premium_keeps_full_quality_while_best_effort_is_degraded_to_hold_the_load_line() {
    let mut simulation = Simulation::new(shop(Mode::Control), 1);
    simulation.run([350.0, 100.0], 20, 80);
    let [others, premium] = simulation.tallies;
    let utilization = simulation.utilization(60.0);
    println!("premium {premium:?}, others {others:?}, utilization {utilization:.3}");
    assert!(f64::from(premium.full) > 0.99 * premium.all(), "{premium:?}");
    assert!(f64::from(others.light) > 0.85 * others.all() && others.full > 0, "{others:?}");
    assert!(f64::from(others.rejected) < 0.02 * others.all(), "{others:?}");
    assert!(
        f64::from(others.late + premium.late) < 0.01 * (others.all() + premium.all()),
        "{others:?} {premium:?}"
    );
    assert!((0.81..0.88).contains(&utilization), "{utilization}");
}

/// Without control the same requests wait in one queue that is never empty.
#[test]
fn without_control_premium_is_late_or_turned_away_like_everybody() {
    let mut simulation = Simulation::new(shop(Mode::Off), 1);
    simulation.run([350.0, 100.0], 20, 40);
    let [_, premium] = simulation.tallies;
    assert!(f64::from(premium.late + premium.rejected) > 0.9 * premium.all(), "{premium:?}");
}

/// A deadline of seven and a half times the work of a request, under the same overload: this part of the admitted requests is
/// in time.
#[test]
fn admitted_requests_keep_their_deadline_beside_best_effort() {
    let mut shares = Vec::new();
    for deadline in [Some(LATE), None] {
        let builder = shop(Mode::Control)
            .load_line(1.0)
            .promises(|promises| promises.sites[0].classes[0].deadline = deadline);
        let mut simulation = Simulation::new(builder, 2);
        simulation.run([350.0, 220.0], 20, 80);
        let [others, premium] = simulation.tallies;
        println!("{deadline:?}: premium {premium:?}, others {others:?}");
        shares.push(f64::from(premium.late) / f64::from(premium.full + premium.light));
    }
    assert!(shares[0] <= 0.005 && shares[1] > 0.05, "late: {shares:?}");
}
