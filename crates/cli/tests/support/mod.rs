//! The program as its users run it: to its end, or until it is told to stop.

#![allow(dead_code, unreachable_pub, missing_docs, reason = "shared by several test programs")]

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use tempfile::TempDir;

pub fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
}

/// What it said on both streams.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Exit code 0; what it said on stdout.
#[track_caller]
pub fn done(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", said(output));
    String::from_utf8(output.stdout.clone()).expect("it is text")
}

/// This exit code, nothing on stdout, and this on stderr.
#[track_caller]
pub fn failed(output: &Output, code: i32, parts: &[&str]) {
    assert_eq!((output.status.code(), output.stdout.len()), (Some(code), 0), "{}", said(output));
    has(&said(output), parts);
}

#[track_caller]
pub fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "no {part:?} in\n{text}"));
}

/// A file of the repository.
pub fn of_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

pub fn example(name: &str) -> String {
    fs::read_to_string(of_repository("examples").join(name)).expect("the example is there")
}

/// The example of deadlines without the type that it states.
pub fn without_types() -> String {
    let text = example("deadlines.toml");
    let (before, rest) = text.split_once("[[site.type]]").expect("it states a type");
    let (_, after) = rest.split_once("[[site.class]]").expect("and a class after it");
    format!("{before}[[site.class]]{after}")
}

/// A place in the folder for tests.
pub fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// A file there with this text.
pub fn temporary(name: &str, text: &str) -> PathBuf {
    fs::write(place(name), text).expect("the folder for tests can be written");
    place(name)
}

/// A process under test; killed if the test fails before it has ended.
pub struct Process(pub Child);

impl Process {
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.0.id().cast_signed()), signal).expect("it can be signalled");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error means that it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A folder of a test's own, gone when it ends.
pub struct Folder(pub TempDir);

impl Folder {
    pub fn new(name: &str) -> Folder {
        Folder(TempDir::with_prefix(format!("plimsoll-{name}-")).expect("a folder"))
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Folder {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
        self
    }

    pub fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&fs::read(self.0.path().join(name)).unwrap_or_default()).into_owned()
    }

    /// Runs the program in it.
    pub fn run(&self, arguments: &[&str]) -> Output {
        binary().current_dir(&self.0).args(arguments).output().expect("the binary runs")
    }
}
