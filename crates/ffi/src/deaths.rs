//! A process dies at each instruction, as by `kill -9`, and others go on: nothing is lost, and nothing is counted twice.
//!
//! What a process leaves behind is what it has written into the shared state. So the test runs a process one instruction at a
//! time (`ptrace`), and copies the file after each instruction that has changed it: the copy is what others would find if the
//! process died there. So the compiled code is tested, at every instruction.

use crate::controller::Controller;
use crate::mapping::Mapping;
use crate::report::class_sums;
use crate::server::{Server, claim};
use crate::view::Fields;
use crate::{Counts, Fault, owner};
use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use plimsoll_core::request::Outcome;
use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const CONFIGURATION: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n\n\
                             [upstream.server]\naddress = \"127.0.0.1:80\"\ncapacity = { workers = 4 }\n\n\
                             [[site]]\nname = \"paid\"\nhost = \"paid.test\"\nguarantee = { rate = \"100/s\" }\n\n\
                             [[site.level]]\nname = \"full\"\n\n\
                             [[site]]\nname = \"www\"\nexempt = [{ path = \"/healthz\" }]\n\n\
                             [[site.level]]\nname = \"light\"\nprefix = \"/light\"\n\n\
                             [[site.level]]\nname = \"full\"\n";
/// The first lane is that of a process that died with [`HELD`]; the second is that of the process that is stepped.
const LANES: usize = 2;
/// Requests that the first process held, and how many of them were exempt.
const HELD: (u32, u32) = (3, 1);

/// What a process does; it begins in [`process`].
#[derive(Clone, Copy, Debug, PartialEq)]
enum Act {
    /// Attaches, and holds [`HELD`]; the first process does this, and the other one of the following.
    Hold,
    /// Makes calls of each kind.
    Call,
    /// Detaches, with [`HELD`] under way.
    Leave,
    /// Takes the lanes of dead processes.
    TakeLanes,
    /// Is the controller for a tick.
    Tick,
}

impl Act {
    const ALL: [Act; 5] = [Act::Hold, Act::Call, Act::Leave, Act::TakeLanes, Act::Tick];
}

fn controller(state: &Path) -> Controller {
    let configuration = plimsoll_config::parse_inside(CONFIGURATION, "test").expect("a valid configuration");
    Controller::start(state, (CONFIGURATION, &configuration), 1, LANES).expect("a controller").0
}

/// The request's number, which is 0 if the request is rejected.
fn ask(server: &Server, host: &str, path: &str, client: u8) -> u64 {
    let client = IpAddr::V4(Ipv4Addr::new(10, 0, 0, client));
    let fields = Fields { method: "GET", host, path: path.as_bytes(), query: "", client, header: &|_| None };
    server.adapt(&fields, 256).expect("a decision").request
}

fn call(server: &Server) {
    let done = |request, outcome| server.done(request, outcome).expect("it is under way");
    let mut served = 0;
    // Some of the requests are rejected, and the others get lighter pages.
    for client in 0..5 {
        let request = ask(server, "www", "/page", client);
        if request != 0 {
            server.log_size(request, 1000).expect("it is under way");
            done(request, Outcome::Completed);
            served += 1;
        }
    }
    assert!((1..=4).contains(&served), "{served} of five are served");
    let [exempt, paid] =
        [("www", "/healthz"), ("paid.test", "/")].map(|(host, path)| ask(server, host, path, 1));
    let stream = ask(server, "paid.test", "/events", 2);
    server.stays_open(stream).expect("one may");
    done(exempt, Outcome::Failed);
    done(paid, Outcome::Abandoned);
    ask(server, "www", "/healthz", 3);
}

/// The process that the other tests start: it stops before its act, and signals when the act is done.
#[test]
#[ignore = "the tests beside it start it"]
fn process() {
    let [Some(act), Some(state)] = ["PLIMSOLL_ACT", "PLIMSOLL_STATE"].map(std::env::var_os) else { return };
    let act = Act::ALL.into_iter().find(|one| *format!("{one:?}") == *act).expect("an act");
    let state = Path::new(&state);
    let stop = || raise(Signal::SIGSTOP).expect("a signal to itself");
    match act {
        Act::Hold | Act::Leave => {
            let server = Server::attach(state).expect("a lane");
            ask(&server, "www", "/healthz", 1);
            ask(&server, "paid.test", "/", 1);
            ask(&server, "paid.test", "/", 2);
            stop();
            drop(server);
        }
        Act::Call => {
            let server = Server::attach(state).expect("a lane");
            stop();
            call(&server);
            // The server is leaked: a process need not detach.
            std::mem::forget(server);
        }
        Act::TakeLanes => {
            let mapping = Mapping::open(state).expect("a state");
            let own = owner::own();
            stop();
            while claim(&mapping, &mapping.header().changing, own).is_some() {}
        }
        Act::Tick => {
            let mut controller = controller(state);
            stop();
            controller.tick();
        }
    }
    // The process ignores this signal, but its tracer sees it.
    raise(Signal::SIGURG).expect("a signal to itself");
}

/// A process that has stopped before its act.
struct Stopped {
    child: Child,
    /// The thread that is traced.
    thread: Option<Pid>,
}

impl Stopped {
    fn start(act: Act, state: &Path) -> Self {
        let child = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "deaths::process", "--ignored", "--nocapture", "--test-threads=1"])
            .envs([("PLIMSOLL_ACT", format!("{act:?}").as_ref()), ("PLIMSOLL_STATE", state.as_os_str())])
            .stdout(Stdio::null())
            .spawn()
            .expect("this program once more");
        let own = Pid::from_raw(child.id().cast_signed());
        let status = waitpid(own, Some(WaitPidFlag::WUNTRACED)).expect("its stop");
        assert_eq!(status, WaitStatus::Stopped(own, Signal::SIGSTOP));
        Stopped { child, thread: None }
    }

    /// Lets the process act, and copies the state after each change; the process stands still while `look` inspects the copy.
    fn step(&mut self, state: &Path, mut look: impl FnMut(&[u8])) {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("its threads");
        let threads = tasks
            .map(|task| task.expect("a thread").file_name().to_string_lossy().parse().expect("a number"));
        // The thread of the test itself is the one with the highest number.
        let thread = Pid::from_raw(threads.max().expect("at least one"));
        let wait = || waitpid(thread, Some(WaitPidFlag::__WALL)).expect("a stop");
        ptrace::attach(thread).expect("it may be traced by its parent");
        self.thread = Some(thread);
        wait();
        let file = File::open(state).expect("the state");
        let length = file.metadata().expect("its length").len() as usize;
        let (mut last, mut now) = (vec![0; length], vec![0; length]);
        loop {
            file.read_exact_at(&mut now, 0).expect("the state");
            if now != last {
                look(&now);
                last.copy_from_slice(&now);
            }
            ptrace::step(thread, None).expect("one instruction");
            match wait() {
                WaitStatus::Stopped(_, Signal::SIGTRAP | Signal::SIGSTOP) => {}
                WaitStatus::Stopped(_, Signal::SIGURG) => return,
                other => panic!("{other:?}"),
            }
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // The process dies here, even if a test fails. The tracer of a thread must wait for that thread too.
        let _ = self.child.kill();
        if let Some(thread) = self.thread {
            while let Ok(WaitStatus::Stopped(..)) = waitpid(thread, Some(WaitPidFlag::__WALL)) {}
        }
        let _ = self.child.wait();
    }
}

/// The files of states, in a folder of their own.
struct States {
    folder: tempfile::TempDir,
    count: usize,
}

impl States {
    fn new() -> Self {
        States { folder: tempfile::tempdir().expect("a folder"), count: 0 }
    }

    /// Each copy has a file of its own, since a mapping stays for the life of the test.
    fn copy(&mut self, bytes: &[u8]) -> PathBuf {
        self.count += 1;
        let path = self.folder.path().join(self.count.to_string());
        fs::write(&path, bytes).expect("a copy");
        path
    }

    /// A state without a controller, whose levels reject some requests; the process of its first lane has died.
    fn first(&mut self) -> PathBuf {
        let state = self.folder.path().join("state");
        let mut first = controller(&state);
        let mut learned = first.learned();
        learned.classes.iter_mut().for_each(|class| class.service_level = [0.6, 0.6]);
        assert_eq!(first.restore(&learned, true), Vec::<String>::new());
        first.tick();
        drop(first);
        drop(Stopped::start(Act::Hold, &state));
        state
    }
}

/// The counts of a state.
fn counts(state: &Path) -> Counts {
    Counts::read(&Mapping::open(state).expect("a state"))
}

/// Requests at the gate, and how many of them are exempt.
fn in_service(state: &Path) -> (u32, u32) {
    Mapping::open(state).expect("a state").words().plants[0].in_service()
}

/// A controller takes over a state whose processes are dead: all requests that had arrived have ended, and no lane is lost.
fn controller_comes(state: &Path) {
    let before = counts(state);
    controller(state).tick();
    let after = counts(state);
    let lost = before.arrived - before.ended;
    assert_eq!(
        (after.arrived, after.ended, after.in_service, after.attached),
        (before.arrived, before.arrived, 0, 0)
    );
    assert!(after.returned <= before.returned + lost, "{after:?} after {before:?}");
    assert_eq!(in_service(state), (0, 0));
    let mapping = Mapping::open(state).expect("a state");
    assert!(mapping.lanes().all(|lane| lane.version() % 2 == 0 && lane.held(0) == (0, 0)));
    for class in 0..mapping.layout().shape.classes {
        let sums = class_sums(&mapping, class);
        assert_eq!(sums.arrived, sums.rejected + sums.ended, "class {class}");
    }
}

/// New processes take over all lanes of such a state, and then a controller comes.
fn processes_come(state: &Path) {
    let before = counts(state);
    let servers: [Server; LANES] = std::array::from_fn(|_| Server::attach(state).expect("a lane"));
    assert_eq!(Server::attach(state).err(), Some(Fault::NoLane));
    let requests = servers.each_ref().map(|server| ask(server, "www", "/healthz", 1));
    controller(state).tick();
    let during = counts(state);
    assert_eq!((during.arrived, during.ended, during.in_service), (before.arrived + 2, before.arrived, 2));
    assert_eq!(in_service(state), (2, 2));
    servers
        .iter()
        .zip(requests)
        .for_each(|(server, own)| server.done(own, Outcome::Completed).expect("it is under way"));
    let after = counts(state);
    assert_eq!((after.arrived, after.ended, after.in_service), (during.arrived, during.arrived, 0));
}

/// A controller comes to a state whose second process is stopped and still holds its requests. It gives back what the first
/// process left, and nothing of the second one's.
fn controller_comes_to_stopped(state: &Path) {
    let (before, version) = (in_service(state), Mapping::open(state).expect("a state").lane(1).version());
    controller(state).tick();
    let after = in_service(state);
    // The process may be in the middle of one change.
    let most = (version % 2) as u32;
    for (before, after, dead) in [(before.0, after.0, HELD.0), (before.1, after.1, HELD.1)] {
        let own = before - dead;
        assert!(
            (own..=own + most).contains(&after),
            "{after} at the gate, {own} of the process that is stopped"
        );
    }
}

#[test]
fn a_process_that_dies_at_any_instruction_leaves_nothing_behind() {
    for (act, arrivals) in [(Act::Call, 9), (Act::Leave, 0)] {
        let mut states = States::new();
        let state = states.first();
        let before = counts(&state).arrived;
        let mut process = Stopped::start(act, &state);
        let (mut left, mut arrived) = (Vec::new(), None);
        process.step(&state, |bytes| {
            let copy = states.copy(bytes);
            let now = counts(&copy).arrived;
            assert!(arrived.is_none_or(|last| now == last || now == last + 1), "{now} after {arrived:?}");
            arrived = Some(now);
            if act == Act::Call {
                controller_comes_to_stopped(&copy);
            }
            left.push(bytes.to_vec());
        });
        drop(process);
        let held = if act == Act::Leave { u64::from(HELD.0) } else { 0 };
        assert_eq!(arrived, Some(before + held + arrivals));
        // A request changes at least the gate once, the lane once, and six counters.
        assert!(left.len() > 8 * arrivals as usize + 5, "{} writes", left.len());
        for bytes in &left {
            controller_comes(&states.copy(bytes));
            processes_come(&states.copy(bytes));
        }
    }
}

/// The same for those that find what a process left: another process that takes its lane, and a controller.
#[test]
fn whoever_cleans_up_may_die_too() {
    let mut states = States::new();
    let state = states.first();
    let mut process = Stopped::start(Act::Call, &state);
    let mut left = Vec::new();
    process.step(&state, |bytes| left.push(bytes.to_vec()));
    drop(process);
    for (act, every) in [(Act::TakeLanes, 90), (Act::Tick, 180)] {
        // These copies are mostly from the middle of an arrival.
        for bytes in left.iter().skip(15).step_by(every) {
            let state = states.copy(bytes);
            let mut process = Stopped::start(act, &state);
            let mut both = Vec::new();
            process.step(&state, |bytes| both.push(bytes.to_vec()));
            drop(process);
            assert!(both.len() > 10, "{act:?}: {} writes", both.len());
            both.iter().for_each(|bytes| controller_comes(&states.copy(bytes)));
        }
    }
}
