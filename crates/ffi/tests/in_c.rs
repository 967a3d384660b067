//! Programs in C over the library, while a controller ticks.

mod c_program;

use c_program::{Installed, said};
use plimsoll_ffi::{Controller, Counts, Server};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const CONFIGURATION: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n\n\
                             [upstream.server]\naddress = \"127.0.0.1:80\"\ncapacity = { workers = 64 }\n\n\
                             [[site]]\nname = \"site\"\n\n[[site.level]]\nname = \"light\"\nprefix = \"/light\"\n\n\
                             [[site.level]]\nname = \"full\"\n";

/// The library that was built with this test.
fn installed() -> Installed {
    let own = std::env::current_exe().expect("this program");
    Installed::new(&own.parent().expect("deps").with_file_name("examples")).expect("a folder of its own")
}

/// Runs this while a controller ticks; returns what was counted after it.
fn with_controller(act: impl FnOnce(&Path)) -> Counts {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().join("state");
    let configuration = plimsoll_config::parse_inside(CONFIGURATION, "test").expect("a valid configuration");
    let (mut controller, _) =
        Controller::start(&state, (CONFIGURATION, &configuration), 1, 4).expect("a controller");
    controller.tick();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Relaxed) {
                std::thread::sleep(controller.tick().min(Duration::from_millis(10)));
            }
        });
        let acted = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| act(&state)));
        is_over.store(true, Relaxed);
        acted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    Server::attach(&state).expect("a lane").counts()
}

/// `benches/calls.c` with so many threads, rounds and requests: how often the rounds asked for memory, and what it made.
fn calls(program: &Path, state: &Path, sizes: [u64; 3]) -> (u64, u64) {
    let told = said(Command::new(program).arg(state).args(sizes.map(|size| size.to_string())));
    let figures: Vec<&str> = told.split_whitespace().collect();
    let [_, _, allocations, served, rejected] = figures[..] else { panic!("{told}") };
    let [allocations, served, rejected] =
        [allocations, served, rejected].map(|figure| figure.parse::<u64>().expect("a number"));
    (allocations, served + rejected)
}

#[test]
fn pkg_config_tells_how_to_compile_and_where_the_library_is() {
    let installed = installed();
    assert_eq!(installed.told(&["--modversion"]).trim(), env!("CARGO_PKG_VERSION"));
    let elsewhere = installed.told(&["--define-variable=prefix=/elsewhere", "--cflags", "--libs"]);
    assert_eq!(elsewhere.trim(), "-I/elsewhere -L/elsewhere -lplimsoll");
    let program = installed.compile("examples/three_calls.c", &[]);
    let counts = with_controller(|state| {
        let told = said(Command::new(&program).arg(state).arg("100"));
        assert!(told.contains("in all 100 arrived, 100 ended, 0 in service"), "{told}");
    });
    assert_eq!((counts.arrived, counts.ended, counts.in_service), (100, 100, 0));
}

#[test]
fn many_threads_call_at_once() {
    let (installed, made) = (installed(), 16 * 6 * 2000);
    let more = ["-pthread", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover"];
    let program = installed.compile("benches/calls.c", &more);
    let counts = with_controller(|state| assert_eq!(calls(&program, state, [16, 5, 2000]).1, made));
    assert_eq!((counts.arrived, counts.ended, counts.in_service), (made, made, 0));
    assert_eq!((counts.attached, counts.deaths), (1, 0), "this one is attached");
}

#[test]
fn requests_ask_for_no_memory_after_the_first_thousand() {
    let installed = installed();
    let program = installed.compile("benches/calls.c", &["-pthread", "-O2"]);
    with_controller(|state| assert_eq!(calls(&program, state, [1, 99, 1000]), (0, 100_000)));
    with_controller(|state| assert_eq!(calls(&program, state, [8, 9, 1000]), (0, 80_000)));
}

/// Waits until the controller has returned what processes have left at the gates.
fn returned(state: &Path) {
    let (own, start) = (Server::attach(state).expect("a lane"), Instant::now());
    while own.counts().in_service > 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "it is never returned: {:?}", own.counts());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_process_that_replaces_its_program_takes_its_lane_again() {
    let installed = installed();
    let program = installed.compile("tests/programs/exec.c", &[]);
    let counts = with_controller(|state| {
        said(Command::new(&program).arg(state).arg("20"));
        returned(state);
    });
    assert_eq!((counts.arrived, counts.ended, counts.in_service, counts.attached), (21, 21, 0, 1));
}

#[test]
fn a_signal_handler_may_end_a_process_in_the_middle_of_a_call() {
    let installed = installed();
    let program = installed.compile("tests/programs/signal.c", &[]);
    let counts = with_controller(|state| {
        said(Command::new(&program).arg(state).arg("300"));
        returned(state);
    });
    assert_eq!((counts.arrived, counts.in_service, counts.attached), (counts.ended, 0, 1));
}
