//! The operator's log of `plimsoll run`: its levels, its forms, and what a reload changes of them.

mod support;

use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use support::{Process, binary, place};

const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway whose log is a file.
struct Running {
    process: Process,
    configuration: PathBuf,
    log: PathBuf,
    upstream: SocketAddr,
}

impl Running {
    /// `section` is the log's, and `journal` says what `JOURNAL_STREAM` is to be for a log with this device and number.
    fn start(name: &str, section: &str, journal: impl FnOnce(u64, u64) -> String) -> Running {
        let [configuration, log] = ["toml", "log"].map(|kind| place(&format!("log-{name}.{kind}")));
        let stderr = File::create(&log).expect("the folder for tests can be written");
        let own = stderr.metadata().expect("it exists");
        // Nothing listens there once it is dropped.
        let upstream = TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("it is free");
        write(&configuration, upstream, section);
        let child = binary()
            .arg("run")
            .arg(&configuration)
            .env("JOURNAL_STREAM", journal(own.dev(), own.ino()))
            .stderr(stderr)
            .spawn()
            .expect("the binary runs");
        Running { process: Process(child), configuration, log, upstream }
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.log).expect("it is text")
    }

    /// Waits for a whole line with this in it.
    fn line(&self, what: &str) -> String {
        let start = Instant::now();
        loop {
            let log = self.log();
            let complete = &log[..log.rfind('\n').map_or(0, |end| end + 1)];
            if let Some(line) = complete.lines().find(|line| line.contains(what)) {
                return line.to_owned();
            }
            assert!(start.elapsed() < PATIENCE, "no {what:?} in\n{log}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn reload(&self, section: &str) {
        write(&self.configuration, self.upstream, section);
        self.process.signal(Signal::SIGHUP);
    }

    /// Asks for a page, which no server has.
    fn ask(&self, line: &str) {
        let at = line.split("listening on ").nth(1).map(|rest| rest.trim_end_matches(['"', '}']));
        let mut client = TcpStream::connect(at.expect("an address")).expect("it listens");
        client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").expect("it reads");
        client.read_to_end(&mut Vec::new()).expect("it answers");
    }
}

fn write(path: &PathBuf, upstream: SocketAddr, section: &str) {
    let text = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"off\"\nthreads = 1\nstate = \"off\"\n[upstream.app]\n\
         address = \"{upstream}\"\ncapacity = {{ workers = 8 }}\n{section}"
    );
    fs::write(path, text).expect("the folder for tests can be written");
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

#[test]
fn text_has_levels_and_json_has_fields() {
    let text = Running::start("text", "", |_, _| String::new());
    text.ask(&text.line("INFO  listening on "));
    let gone = text.line("is out of use");
    let (_, said) = gone.split_once("Z ").expect("a time");
    assert!(said.starts_with(&format!("ERROR upstream app: {} is out of use (", text.upstream)), "{gone}");
    assert!(said.ends_with("no server is in use, so all are used"), "{gone}");

    let objects = Running::start("json", "[log]\nformat = \"json\"\n", |_, _| String::new());
    let listening = objects.line("listening on ");
    assert_eq!(json(&listening)["level"], "info");
    objects.ask(&listening);
    let gone = json(&objects.line("is out of use"));
    let server = objects.upstream.to_string();
    for (field, is) in [("level", "error"), ("upstream", "app"), ("server", server.as_str())] {
        assert_eq!(gone[field], is, "{gone}");
    }
    assert_eq!((&gone["in_use"], &gone["servers"]), (&0.into(), &1.into()), "{gone}");
    objects.log().lines().for_each(|line| drop(json(line)));
}

#[test]
fn a_reload_changes_form_and_level() {
    let gateway = Running::start("reload", "", |_, _| String::new());
    gateway.line("INFO  listening on ");
    gateway.reload("[log]\nformat = \"json\"\n");
    let reloaded = json(&gateway.line("reloaded"));
    assert_eq!(reloaded["level"], "info", "{reloaded}");
    assert!(reloaded["file"].as_str().is_some_and(|file| file.ends_with("log-reload.toml")), "{reloaded}");
    // A wrong file changes nothing of the log either.
    gateway.reload("[log]\nlevel = \"worse\"\n");
    let refused = json(&gateway.line("not reloaded"));
    assert_eq!(refused["level"], "error", "{refused}");
    assert!(
        refused["message"].as_str().is_some_and(|message| message.contains("`worse` is none of")),
        "{refused}"
    );
    // One reload with few lines, and a refused one: of them only the error is written.
    let before = gateway.log().lines().count();
    gateway.reload("[log]\nlevel = \"error\"\n");
    let start = Instant::now();
    loop {
        gateway.reload("wrong = 1\n");
        let log = gateway.log();
        if let Some(line) = log.lines().skip(before).find(|line| line.contains(" ERROR not reloaded")) {
            assert!(!line.contains('{'), "{line}");
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{log}");
        thread::sleep(Duration::from_millis(100));
        gateway.reload("[log]\nlevel = \"error\"\n");
        thread::sleep(Duration::from_millis(100));
    }
    let log = gateway.log();
    assert!(!log.contains("INFO  reloaded"), "{log}");
}

#[test]
fn the_journal_is_given_priorities_and_a_shell_below_it_is_not() {
    let journal = Running::start("journal", "", |device, number| format!("{device}:{number}"));
    journal.line("<6>listening on ");
    journal.reload("wrong = 1\n");
    journal.line("<3>not reloaded");
    let log = journal.log();
    assert!(log.lines().all(|line| line.starts_with('<')), "each line of several has its priority:\n{log}");
    let shell = Running::start("shell", "", |device, number| format!("{device}:{}", number + 1));
    shell.line("Z INFO  listening on ");
}
