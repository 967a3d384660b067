//! A log that nobody reads, or that cannot be written, ends nothing: the gateway serves on, the agent works on, and both
//! end as they should.

mod support;

use nix::sys::signal::Signal;
use plimsoll_load::{Origin, OriginHandle, OriginSettings};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write, pipe};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};
use support::{Process, binary, place};

/// How long anything may take that takes milliseconds on a machine that does nothing else.
const PATIENCE: Duration = Duration::from_secs(60);

type Stream = fn() -> Stdio;

/// Streams that take nothing: a full disk, a pipe without a reader, a pipe whose reader has stopped reading; and one that takes
/// a line, as `| head -1` does.
const STREAMS: [(&str, Stream); 4] =
    [("full-disk", full_disk), ("no-reader", no_reader), ("no-reading", no_reading), ("one-line", one_line)];

fn full_disk() -> Stdio {
    File::options().write(true).open("/dev/full").expect("this system has one").into()
}

fn no_reader() -> Stdio {
    pipe().expect("there are descriptors").1.into()
}

fn no_reading() -> Stdio {
    let (reader, writer) = pipe().expect("there are descriptors");
    let mut filled = writer.try_clone().expect("there are descriptors");
    thread::spawn(move || {
        let _unread = reader;
        // The last write finds the pipe full, and waits for ever.
        while filled.write_all(&[b'.'; 4096]).is_ok() {}
    });
    writer.into()
}

fn one_line() -> Stdio {
    let (reader, writer) = pipe().expect("there are descriptors");
    thread::spawn(move || BufReader::new(reader).read_line(&mut String::new()));
    writer.into()
}

fn start(command: &str, file: &Path, more: &[&str], stream: Stream) -> Process {
    let mut binary = binary();
    binary.arg(command).arg(file).args(more).stdout(stream()).stderr(stream());
    Process(binary.spawn().expect("the binary runs"))
}

/// The exit code of a process, once it has ended.
fn code(process: &mut Process) -> Option<i32> {
    let start = Instant::now();
    loop {
        match process.0.try_wait().expect("it can be waited for") {
            Some(status) => return status.code(),
            None => assert!(start.elapsed() < PATIENCE, "it does not end"),
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn origin() -> OriginHandle {
    Origin::start(OriginSettings::default()).expect("the origin starts")
}

/// What `method` of `path` is answered with; empty if it is not.
fn ask(address: &str, method: &str, path: &str) -> String {
    let mut answer = Vec::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        stream.set_read_timeout(Some(PATIENCE)).expect("it is not zero");
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
        );
        let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut answer).map(drop));
    }
    String::from_utf8_lossy(&answer).into_owned()
}

fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn lost_lines(admin: &str) -> f64 {
    let page = ask(admin, "GET", "/metrics");
    let value = page.lines().find_map(|line| line.strip_prefix("plimsoll_log_lines_dropped_total "));
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no such metric in\n{page}"))
}

fn folder(name: &str) -> PathBuf {
    let folder = place(name);
    fs::create_dir_all(&folder).expect("the folder for tests can be written");
    folder
}

#[test]
fn the_gateway_serves_and_drains_without_its_log() {
    let origin = origin();
    for (number, (name, stream)) in STREAMS.into_iter().enumerate() {
        // Its log cannot show the addresses, so they are this test's own.
        let [high, low] = u16::try_from(std::process::id() & 0xffff).unwrap_or_default().to_be_bytes();
        let host = format!("127.{}.{high}.{low}", 100 + number);
        let (address, admin) = (format!("{host}:8080"), format!("{host}:8081"));
        let text = format!(
            "[gateway]\nlisten = \"{address}\"\nadmin = \"{admin}\"\nthreads = 1\n[upstream.app]\n\
             address = \"{}\"\ncapacity = {{ workers = 8 }}\n",
            origin.address()
        );
        let file = folder("log").join(format!("{name}.toml"));
        fs::write(&file, &text).expect("it can be written");
        let mut gateway = start("run", &file, &[], stream);
        eventually(name, || ask(&address, "GET", "/").starts_with("HTTP/1.1 200"));
        // The listeners are there a moment before the program follows its file.
        eventually(name, || ask(&admin, "POST", "/reload").starts_with("HTTP/1.1 200"));
        // A long complaint, far more than a pipe holds.
        let wrong: String = (0..2000).map(|number| format!("wrong{number} = 1\n")).collect();
        fs::write(&file, wrong + &text).expect("it can be written");
        gateway.signal(Signal::SIGHUP);
        assert!(ask(&admin, "POST", "/reload").starts_with("HTTP/1.1 422"), "{name}");
        assert!(ask(&address, "GET", "/").starts_with("HTTP/1.1 200"), "{name}");
        if name != "no-reading" {
            eventually("lines are lost", || lost_lines(&admin) >= 2.0);
        }
        gateway.signal(Signal::SIGTERM);
        assert_eq!(code(&mut gateway), Some(0), "{name}");
    }
}

#[test]
fn the_agent_works_and_restores_without_its_log() {
    let origin = origin();
    for (name, stream) in STREAMS {
        let folder = folder(&format!("log-agent-{name}"));
        let link = folder.join("www");
        for tree in ["full", "light"] {
            fs::create_dir_all(folder.join(tree)).expect("it can be written");
        }
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink("full", &link).expect("it can be written");
        fs::write(folder.join("access.log"), "").expect("it can be written");
        let text = format!(
            "[server]\nprobe = \"http://{}/\"\ncosts = {{ request = \"1ms\" }}\n[load]\nlog = \"access.log\"\n\
             [trees]\nfull = \"full\"\ndegraded = \"light\"\n[link]\npath = \"www\"\n",
            origin.address()
        );
        let file = folder.join("agent.toml");
        fs::write(&file, text).expect("it can be written");
        let mut agent = start("agent", &file, &["--json"], stream);
        let probed = origin.served().answers;
        eventually("it asks again and again", || origin.served().answers > probed + 2);
        // While the server does not answer, every client is degraded.
        origin.set_speed(0.0);
        eventually("everybody is degraded", || {
            fs::read_link(&link).is_ok_and(|tree| tree.ends_with("light"))
        });
        agent.signal(Signal::SIGTERM);
        assert_eq!(code(&mut agent), Some(0), "{name}");
        assert!(
            fs::read_link(&link).is_ok_and(|tree| tree.ends_with("full")),
            "{name}: full quality is restored"
        );
        origin.set_speed(1.0);
    }
}
