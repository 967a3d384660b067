//! `make module && cargo bench --profile shipped -p plimsoll-ffi --bench calls`: what the three calls cost in C, in one to
//! eight processes that share the state with a controller, and what a decision costs without C, of a lane in memory that
//! processes share and in its own.
//!
//! All times are of the processor, so that more processes than cores do not change what is measured. The calls are those of
//! `calls.c`, by the library that `make module` has built.

#[path = "../tests/c_program/mod.rs"]
mod c_program;

use c_program::{Installed, said};
use plimsoll_core::processes::{SharedLane, SharedShape, SharedWords};
use plimsoll_core::promises::{Plant, Promises, Site};
use plimsoll_core::request::{Arrival, Outcome, Service, Target, Token, Verdicts};
use plimsoll_core::time::Instant;
use plimsoll_core::{Engine, Lane};
use plimsoll_ffi::Controller;
use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::time::{ClockId, clock_gettime};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 31;
const EACH: u64 = 200_000;
const CONFIGURATION: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n\n\
                             [upstream.server]\naddress = \"127.0.0.1:80\"\ncapacity = { workers = 64 }\n\n\
                             [[site]]\nname = \"site\"\n\n[[site.level]]\nname = \"light\"\nprefix = \"/light\"\n\n\
                             [[site.level]]\nname = \"full\"\n";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--controller") {
        control(Path::new(&arguments[at + 1]));
    }
    decisions();
    calls();
}

/// Ticks as `plimsoll control` does, until it is killed.
fn control(state: &Path) -> ! {
    let configuration = plimsoll_config::parse_inside(CONFIGURATION, "bench").expect("a valid configuration");
    let (mut controller, _) =
        Controller::start(state, (CONFIGURATION, &configuration), 1, 16).expect("a controller");
    controller.tick();
    println!("made");
    loop {
        std::thread::sleep(controller.tick().min(Duration::from_millis(100)));
    }
}

fn calls() {
    let own = std::env::current_exe().expect("this program");
    let target = own.ancestors().nth(3).expect("the folder of what is built");
    let installed = Installed::new(&target.join("shipped/examples")).expect("what `make module` builds");
    let program = installed.compile("benches/calls.c", &["-pthread", "-O2"]);
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let mut control = Command::new(&own);
    control.arg("--controller").arg(&state).stdout(Stdio::piped());
    let mut control = control.spawn().expect("the controller");
    let mut told = BufReader::new(control.stdout.take().expect("what it says")).lines();
    assert_eq!(told.next().and_then(Result::ok).as_deref(), Some("made"));
    println!(
        "the three calls in C: least and middle processor time of a process's rounds (ns), the dearest process's;"
    );
    println!("and what a million requests of each ask of the kernel, and all rounds of the memory");
    for processes in [1, 2, 4, 8] {
        let [least, middle, allocations] = in_processes(processes, &program, &state);
        let more =
            system_calls(processes, &program, &state, EACH) - system_calls(processes, &program, &state, 10);
        println!("{processes} process(es): {least:.0} {middle:.0}; {more} {allocations:.0}");
    }
    control.kill().expect("it is killed");
    control.wait().expect("its end");
}

fn start(process: &mut Command, state: &Path, [rounds, requests]: [u64; 2]) -> Child {
    let sizes = [1, rounds, requests].map(|size| size.to_string());
    process.arg(state).args(sizes).stdout(Stdio::piped()).spawn().expect("a process")
}

/// The dearest of so many processes that call at the same time.
fn in_processes(count: usize, program: &Path, state: &Path) -> [f64; 3] {
    let started: Vec<Child> =
        (0..count).map(|_| start(&mut Command::new(program), state, [ROUNDS as u64, EACH])).collect();
    started.into_iter().fold([0.0; 3], |dearest, process| {
        let told = process.wait_with_output().expect("its figures").stdout;
        let mut figures = String::from_utf8_lossy(&told)
            .split_whitespace()
            .map(|figure| figure.parse().unwrap_or(f64::NAN))
            .collect::<Vec<f64>>()
            .into_iter();
        dearest.map(|known| figures.next().map_or(f64::NAN, |figure| figure.max(known)))
    })
}

/// How many system calls so many processes make at the same time, from start to end.
fn system_calls(count: usize, program: &Path, state: &Path, requests: u64) -> i64 {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = |process: usize| folder.path().join(process.to_string());
    let traced = |process: usize| {
        let mut command = Command::new("strace");
        start(command.arg("-f").arg("-o").arg(trace(process)).arg(program), state, [5, requests])
    };
    let started: Vec<Child> = (0..count).map(traced).collect();
    let ended = started.into_iter().map(|process| process.wait_with_output().expect("its end").status);
    assert!(ended.into_iter().all(|status| status.success()), "strace runs");
    let lines = |process: usize| said(Command::new("cat").arg(trace(process))).lines().count();
    (0..count).map(lines).sum::<usize>() as i64
}

/// Memory of zeros that other processes could map.
#[expect(unsafe_code, reason = "memory that several processes map can be had by a pointer only")]
fn mapped<T>(count: usize) -> &'static [T] {
    let length = (count * size_of::<T>()).max(1);
    let file = rustix::fs::memfd_create("bench", MemfdFlags::CLOEXEC).expect("memory");
    rustix::fs::ftruncate(&file, length as u64).expect("its length");
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses a place, which begins at a page and is never undone; zeros are values of the words that are
    // shared, which are atomic.
    unsafe {
        let base = rustix::mm::mmap(std::ptr::null_mut(), length, access, MapFlags::SHARED, &file, 0);
        std::slice::from_raw_parts(base.expect("a mapping").cast::<T>(), count)
    }
}

fn promises() -> Promises {
    Promises::of(Plant::new("server", 64), Site::new("site", &["light", "full"]))
}

fn in_shared_memory() -> (Engine, Lane) {
    let shape = SharedShape::of(&promises()).expect("promises that a server keeps");
    let (classes, plants, sites) = (mapped(shape.classes), mapped(shape.plants), mapped(shape.sites));
    let words = SharedWords { classes, plants, sites, turn: &mapped(1)[0] };
    let counters = SharedLane { classes: mapped(shape.classes), plants: mapped(shape.plants) };
    let engine = Engine::of_processes(&promises(), 1, words, &[counters]).expect("an engine");
    engine.publish_words(words);
    (engine, Lane::in_process(&promises(), 1, words, counters).expect("a lane"))
}

fn in_own_memory() -> (Engine, Lane) {
    let (engine, mut lanes) = Engine::new(&promises(), 1, 1).expect("valid promises");
    (engine, lanes.remove(0))
}

/// Decisions of both kinds by turns, so that whatever else the machine does comes to both.
fn decisions() {
    let (_engines, mut lanes): (Vec<Engine>, Vec<Lane>) =
        [in_shared_memory(), in_own_memory()].into_iter().unzip();
    let rounds: Vec<[f64; 2]> = (0..ROUNDS).map(|_| [0, 1].map(|kind| decide(&mut lanes[kind]))).collect();
    let [shared, own] = [0, 1].map(|kind| {
        let mut costs: Vec<f64> = rounds.iter().map(|round| round[kind]).collect();
        costs.sort_by(f64::total_cmp);
        (costs[0], costs[ROUNDS / 2])
    });
    println!("arrive + sent + release + depart, least and middle processor time (ns)");
    println!("in memory that processes share: {:.1} {:.1}", shared.0, shared.1);
    println!("in its own memory: {:.1} {:.1}", own.0, own.1);
}

/// Nanoseconds of a decision.
fn decide(lane: &mut Lane) -> f64 {
    let spent = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        1e9 * time.tv_sec as f64 + time.tv_nsec as f64
    };
    let (start, mut verdicts) = (spent(), Verdicts::new());
    for client in 0..EACH {
        let (now, target) = (Instant::from_nanos(1_000 * client), Target { client, ..Target::default() });
        if let Arrival::Serve(mut permit) = lane.arrive(now, target, Token(client), &mut verdicts) {
            lane.sent(&permit, 1024);
            let service = Service { response_bytes: 1024, representative: true, cost: None };
            lane.release(now, &mut permit, service, &mut verdicts);
            lane.depart(now, permit, Outcome::Completed, &mut verdicts);
        }
    }
    (spent() - start) / EACH as f64
}
