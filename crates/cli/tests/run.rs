//! `plimsoll run`: what it prints, how it ends.

mod support;

use nix::sys::signal::Signal;
use plimsoll_load::{Origin, OriginHandle, OriginSettings};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{ChildStderr, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use support::{Process, binary, failed, place, temporary};

/// A gateway under test.
struct Running {
    process: Process,
    log: BufReader<ChildStderr>,
    address: SocketAddr,
    admin: SocketAddr,
}

impl Running {
    fn start(name: &str, origin: &OriginHandle) -> Running {
        Running::start_with(name, origin, "")
    }

    /// With more in its file.
    fn start_with(name: &str, origin: &OriginHandle, more: &str) -> Running {
        let path = rewrite(name, origin.address(), more);
        let mut child =
            binary().arg("run").arg(path).stderr(Stdio::piped()).spawn().expect("the binary runs");
        let mut log = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let address = address_after("listening on ", &mut log);
        let admin = address_after("admin on ", &mut log);
        Running { process: Process(child), log, address, admin }
    }

    /// Waits for its end: the exit code, and what else it said.
    fn end(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.log.read_to_string(&mut said).expect("the log is text");
        (self.process.0.wait().expect("it can be waited for").code(), said)
    }
}

/// The address behind `label` in the first line that has it. Panics with the log if it ends without one.
fn address_after(label: &str, log: &mut impl BufRead) -> SocketAddr {
    let mut said = String::new();
    loop {
        let start = said.len();
        if log.read_line(&mut said).expect("the log is text") == 0 {
            panic!("no {label:?} in\n{said}");
        }
        if let Some((_, address)) = said[start..].split_once(label) {
            return address.trim_end().parse().expect("an address and nothing else");
        }
    }
}

/// A file in the folder for tests.
fn configuration(name: &str, listen: &str, origin: SocketAddr) -> PathBuf {
    let text = format!(
        "[gateway]\nlisten = \"{listen}\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\n\
         [upstream.app]\naddress = \"localhost:{}\"\ncapacity = {{ workers = 8 }}\n",
        origin.port()
    );
    temporary(&format!("{name}.toml"), &text)
}

/// The same file with another text in it; `levels` and so on are TOML to append.
fn rewrite(name: &str, origin: SocketAddr, more: &str) -> PathBuf {
    let path = configuration(name, "127.0.0.1:0", origin);
    let text = std::fs::read_to_string(&path).expect("it was written");
    temporary(&format!("{name}.toml"), &(text + more))
}

impl Running {
    /// Reads the log until a line contains `what`; returns that line.
    fn says(&mut self, what: &str) -> String {
        let mut said = String::new();
        loop {
            let start = said.len();
            assert!(self.log.read_line(&mut said).expect("the log is text") > 0, "no {what:?} in\n{said}");
            if said[start..].contains(what) {
                return said[start..].to_owned();
            }
        }
    }

    fn post_reload(&self) -> String {
        let mut stream = TcpStream::connect(self.admin).expect("it listens");
        write!(stream, "POST /reload HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n")
            .expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

const LEVELS: &str = "[report]\nwhen = \"always\"\n[[site]]\nname = \"shop\"\n[[site.level]]\nname = \"light\"\n\
                      prefix = \"/light\"\n[[site.level]]\nname = \"full\"\n";

/// By signal and by request, under load: nobody fails, a new level is there, and what is wrong changes nothing.
#[test]
fn it_reloads_under_load_and_nobody_fails() {
    let origin = origin();
    let mut gateway = Running::start("reload", &origin);
    let (stop, served) = (AtomicBool::new(false), AtomicU32::new(0));
    let address = gateway.address;
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(SeqCst) {
                    let answer = ask(address, "/");
                    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                    served.fetch_add(1, SeqCst);
                }
            });
        }
        // Also when the test fails, or the clients would ask for ever.
        let _stop_at_the_end = StopOnDrop(&stop);
        let traffic = || {
            let before = served.load(SeqCst);
            while served.load(SeqCst) < before + 50 {
                std::thread::yield_now();
            }
        };
        traffic();
        rewrite("reload", origin.address(), LEVELS);
        gateway.process.signal(Signal::SIGHUP);
        let said = gateway.says("reloaded ");
        assert!(said.contains("site new: shop; site gone: ") && said.contains("changed: report"), "{said}");
        assert!(ask(address, "/").contains("x-plimsoll: level=2; reason=full"));
        traffic();

        rewrite("reload", origin.address(), &LEVELS.replace("prefix", "prefux"));
        let answer = gateway.post_reload();
        assert!(answer.starts_with("HTTP/1.1 422") && answer.contains("prefux"), "{answer}");
        gateway.says("not reloaded, everything stays as it was");
        gateway.process.signal(Signal::SIGHUP);
        gateway.says("not reloaded, everything stays as it was");
        assert!(ask(address, "/").contains("x-plimsoll: level=2; reason=full"));
        traffic();

        rewrite(
            "reload",
            origin.address(),
            &LEVELS.replace("always", "rejections").replace("light", "small"),
        );
        let answer = gateway.post_reload();
        assert!(
            answer.starts_with("HTTP/1.1 200") && answer.contains("\"settings\": [\n    \"report\"\n"),
            "{answer}"
        );
        assert!(!ask(address, "/").contains("x-plimsoll"));
        assert!(ask(gateway.admin, "/status").contains("\"small\""));
        traffic();
    });
    gateway.process.signal(Signal::SIGTERM);
    let (code, said) = gateway.end();
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn what_needs_a_restart_is_said() {
    let origin = origin();
    let mut gateway = Running::start("restart", &origin);
    let path = configuration("restart", "127.0.0.1:1", origin.address());
    let text = std::fs::read_to_string(&path).expect("it was written").replace("threads = 1", "threads = 2");
    std::fs::write(&path, text).expect("it can be written");
    gateway.process.signal(Signal::SIGHUP);
    assert!(gateway.says("reloaded ").contains("needs a restart: listen, threads"));
    assert!(ask(gateway.address, "/").starts_with("HTTP/1.1 200"));
}

#[test]
fn the_seed_is_drawn_at_the_first_start_and_kept() {
    let origin = origin();
    let file = place("seed.state");
    // None is there from an earlier run of the tests.
    let _ = std::fs::remove_file(&file);
    let mut before = None;
    for _ in 0..2 {
        let mut gateway = Running::start("seed", &origin);
        let status = ask(gateway.admin, "/status");
        assert!(status.contains("\"seed\": \"kept\""), "{status}");
        let text = std::fs::read_to_string(&file).expect("it was written");
        let state: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        let seed = state["seed"].as_u64().expect("it has the seed").to_string();
        assert!(!status.contains(&seed), "the seed itself is a secret");
        assert_eq!(*before.get_or_insert_with(|| seed.clone()), seed, "a restart changes nobody's level");
        gateway.process.signal(Signal::SIGHUP);
        assert!(gateway.says("reloaded ").contains("nothing changed"));
    }
}

const BUDGET: &str = "[[site]]\nname = \"shop\"\ndeadline = \"20ms\"\n[control]\nadmission = \"budget\"\n";

/// Counts of rates that hardly ever move, of every hour: only part of them can be relearned before the end.
fn rate_forecast() -> String {
    let lines: String = (0..24).map(|hour| format!("{hour} 1026  0 0 0  7 5000 7  0 0 0\n")).collect();
    format!("# by hand\nupstream app\n{lines}")
}

/// By hour, how often a rate stayed after it had stayed.
fn stayed(text: &str) -> Vec<u32> {
    let own = text.lines().filter(|line| line.split_whitespace().nth(1) == Some("1026"));
    own.map(|line| line.split_whitespace().nth(6).and_then(|word| word.parse().ok()).expect("a count"))
        .collect()
}

#[test]
fn what_was_learned_of_rates_is_there_after_a_restart() {
    let origin = origin();
    let file = temporary("forecast.txt", &rate_forecast());
    let read = || std::fs::read_to_string(&file).expect("it is there");
    let more = format!("{BUDGET}rate_forecast = \"forecast.txt\"\n");
    for _ in 0..2 {
        let before = stayed(&read());
        let mut gateway = Running::start_with("rate_forecast", &origin, &more);
        assert!(ask(gateway.address, "/").starts_with("HTTP/1.1 200"));
        // A reload writes it, and some periods end in the meantime.
        let grown = (0..10_000).any(|_| {
            assert!(gateway.post_reload().starts_with("HTTP/1.1 200"));
            // Read, or it waits for room in the pipe.
            gateway.says("reloaded ");
            stayed(&read()).iter().sum::<u32>() > before.iter().sum()
        });
        assert!(grown, "{}", read());
        let at_reload = stayed(&read());
        gateway.process.signal(Signal::SIGTERM);
        let (code, said) = gateway.end();
        assert_eq!(code, Some(0), "{said}");
        for (known, least) in [(&at_reload, &before), (&stayed(&read()), &at_reload)] {
            assert_eq!((known.len(), least.len()), (24, 24));
            assert!(known.iter().zip(least).all(|(known, least)| known >= least), "{known:?} of {least:?}");
        }
    }
    assert!(!file.with_extension("txt.new").exists(), "it was put in its place");
}

#[test]
fn a_rate_forecast_that_is_none_is_the_users_input() {
    let origin = origin();
    temporary("no-forecast.txt", "upstream app\n1 1026 many\n");
    for (rate_forecast, wrong) in [
        ("no-forecast.txt", "no-forecast.txt: line 2: \"1 1026 many\" is neither"),
        ("no/such/folder.txt", "there is no folder"),
    ] {
        let path = rewrite(
            "no-forecast",
            origin.address(),
            &format!("{BUDGET}rate_forecast = \"{rate_forecast}\"\n"),
        );
        failed(&binary().arg("run").arg(path).output().expect("the binary runs"), 2, &[wrong]);
    }
}

fn origin() -> OriginHandle {
    Origin::start(OriginSettings::default()).expect("the origin starts")
}

fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn it_serves_until_it_is_told_to_stop() {
    let origin = origin();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut gateway = Running::start(&format!("serve-{signal}"), &origin);
        assert!(ask(gateway.address, "/").starts_with("HTTP/1.1 200"));
        assert!(ask(gateway.admin, "/healthz").ends_with("ok\n"));
        gateway.process.signal(signal);
        let (code, said) = gateway.end();
        assert_eq!(code, Some(0), "{said}");
        assert!(TcpStream::connect(gateway.address).is_err(), "it has stopped listening");
    }
}

#[test]
fn a_request_under_way_is_finished_first_unless_a_second_signal_comes() {
    let origin = origin();
    for (signals, code) in [(1, 0), (2, 1)] {
        let mut gateway = Running::start(&format!("drain-{signals}"), &origin);
        origin.set_speed(0.0);
        let mut client = TcpStream::connect(gateway.address).expect("it listens");
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").expect("it reads");
        // The request is under way once the origin has it.
        while origin.busy().inside == 0 {
            std::thread::yield_now();
        }
        gateway.process.signal(Signal::SIGTERM);
        let mut said = String::new();
        while !said.contains("stopping") {
            assert!(gateway.log.read_line(&mut said).expect("the log is text") > 0, "{said}");
        }
        if signals == 2 {
            gateway.process.signal(Signal::SIGTERM);
        } else {
            origin.set_speed(1.0);
            let mut answer = [0; 12];
            client.read_exact(&mut answer).expect("it answers");
            assert_eq!(&answer, b"HTTP/1.1 200");
            drop(client);
        }
        let (ended, said) = gateway.end();
        assert_eq!(ended, Some(code), "{said}");
        origin.set_speed(1.0);
        while origin.busy().inside > 0 {
            std::thread::yield_now();
        }
    }
}

#[test]
fn an_address_in_use_is_exit_code_1_and_what_to_do() {
    let (origin, owner) = (origin(), TcpListener::bind("127.0.0.1:0").expect("a port is free"));
    let taken = owner.local_addr().expect("it is bound").to_string();
    let file = configuration("taken", &taken, origin.address());
    let state = file.with_extension("state");
    let _ = std::fs::remove_file(&state);
    let output = binary().arg("run").arg(&file).output().expect("the binary runs");
    failed(&output, 1, &[&format!("cannot listen on {taken}"), "Stop what listens there"]);
    assert!(!state.exists(), "a start that failed leaves nothing behind");
}
