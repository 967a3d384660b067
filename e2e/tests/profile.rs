//! The profiler against a real nginx and a real Apache that serve files: it ends, prints the fit's error by size as the paper
//! does (UC 7.2), and what it writes is a configuration.
//!
//! What the costs are is not judged here, for client and server share this machine. That they are right where the truth is
//! known is judged in virtual time by `plimsoll-load`.

use nix::sys::signal::Signal;
use plimsoll_e2e::{Apache, Folder, Nginx, Plimsoll, Process, binary, free_port};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Output};

const SIZES: &str = "1K,4K,16K,64K,256K";

/// Files named after their size.
fn site() -> Folder {
    let folder = Folder::new();
    for kilobytes in SIZES.split(',').map(|size| size.trim_end_matches('K')) {
        let bytes = vec![b'x'; kilobytes.parse::<usize>().expect("a number") * 1024];
        folder.write(&format!("{kilobytes}K.bin"), bytes);
    }
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Profiles the five sizes with a second for each, and checks what a user would.
fn profile(folder: &Path, address: SocketAddr, more: &[&str]) -> String {
    let (url, section, page) =
        (format!("http://{address}/{{size}}.bin"), folder.join("section.toml"), folder.join("page.html"));
    let mut command = Command::new(binary());
    command.args(["profile", &url, "--sizes", SIZES, "--seconds-per-size", "1"]).args(more);
    command.arg("--write").arg(&section).arg("--report").arg(&page);
    let output = command.output().expect("the binary runs");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    println!("{stdout}\n{stderr}");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("to its limit: 5 sizes") && stderr.contains("requests in all"), "{stderr}");
    for size in SIZES.split(',') {
        let line = stdout.lines().find(|line| line.starts_with(&format!("/{size}.bin ")));
        let line = line.unwrap_or_else(|| panic!("no line of {size} in\n{stdout}"));
        assert!(line.contains("/s ") && line.matches(" %").count() >= 2, "rate, spread and error in {line}");
    }
    assert!(stdout.contains("service time by size"), "{stdout}");
    let page = std::fs::read_to_string(page).expect("the page is written");
    assert!(page.starts_with("<!doctype html>") && page.contains("/256K.bin"));
    let written = std::fs::read_to_string(section).expect("the section is written");
    check(folder, address, &written);
    written
}

/// A configuration with the section is right.
fn check(folder: &Path, address: SocketAddr, section: &str) {
    let whole = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\n\n[upstream.app]\naddress = \"{address}\"\n\n{section}\n\
         [[site]]\nname = \"shop\"\nupstream = \"app\"\n"
    );
    let file = folder.join("whole.toml");
    std::fs::write(&file, &whole).expect("the folder can be written");
    let output = Plimsoll::output(&["check", file.to_str().expect("its name is text")]);
    assert_eq!(output.status.code(), Some(0), "{whole}\n{}", text(&output.stderr));
}

#[test]
fn nginx_is_profiled_with_its_rejections() {
    let folder = site();
    let nginx = Nginx::files(folder.path());
    let rejecting = format!("http://{}/full", nginx.address);
    let section = profile(folder.path(), nginx.address, &["--rejecting", &rejecting]);
    assert!(section.contains("rejection = "), "{section}");
}

#[test]
fn apache_is_profiled() {
    let folder = site();
    let content = format!("DocumentRoot {}\n", folder.path().display());
    let apache = Apache::with(Folder::new(), (8, 511), &[], &content);
    profile(folder.path(), apache.upstream, &[]);
}

fn run(arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Plimsoll::output(arguments);
    (status.code(), text(&stdout), text(&stderr))
}

#[test]
fn what_must_not_or_cannot_be_profiled_is_refused_before_any_load() {
    let (code, _, stderr) = run(&["profile", "http://192.0.2.1/"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("--i-may-load-this-server"), "{stderr}");

    let (code, _, stderr) = run(&["profile", &format!("http://127.0.0.1:{}/", free_port())]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("does not answer: it takes no connection"), "{stderr}");

    let folder = site();
    let nginx = Nginx::files(folder.path());
    let address = nginx.address;
    let (code, _, stderr) = run(&["profile", &format!("http://{address}/nothing")]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("answers 404"), "{stderr}");
    let page = format!("http://{address}/1K.bin");
    let file = folder.write("there.toml", "mine");
    let (code, _, stderr) = run(&["profile", &page, "--write", file.to_str().expect("its name is text")]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains("is not overwritten"), "{stderr}");
    assert_eq!(std::fs::read_to_string(file).expect("it is there"), "mine");
}

/// A profiler that has begun to load a server with the second of three sizes. The first one is measured, for one follows the
/// other; before all, each is asked for once.
fn at_the_second_size(folder: &Folder) -> (Nginx, Process) {
    let nginx = Nginx::logging(folder.path(), Some("$status $uri"), ("", ""));
    let url = format!("http://{}/{{size}}.bin", nginx.address);
    let mut command = Command::new(binary());
    command.args(["profile", &url, "--sizes", "1K,64K,256K", "--seconds-per-size", "3"]);
    let mut profile = Process::spawn("plimsoll", &mut command, &folder.path().join("profile.log"));
    profile.wait_for("the second size", |_| {
        let log = std::fs::read_to_string(nginx.access_log()).unwrap_or_default();
        (log.lines().filter(|line| line.ends_with(" /64K.bin")).count() > 1).then_some(())
    });
    (nginx, profile)
}

#[test]
fn a_server_that_dies_leaves_what_was_measured() {
    let folder = site();
    let (nginx, mut profile) = at_the_second_size(&folder);
    drop(nginx);
    let status = profile.wait();
    assert_eq!(status.code(), Some(1), "{}", profile.log());
    let log = profile.log();
    assert!(log.contains("no longer answered") && log.contains("of 3 sizes were measured"), "{log}");
    assert!(log.contains("/1K.bin") && log.contains("[upstream.app.capacity]"), "{log}");
}

#[test]
fn an_interrupt_prints_what_there_is() {
    let folder = site();
    let (_nginx, mut profile) = at_the_second_size(&folder);
    profile.signal(Signal::SIGINT);
    let status = profile.wait();
    assert_eq!(status.code(), Some(0), "{}", profile.log());
    let log = profile.log();
    assert!(log.contains("stopped: ") && log.contains("[upstream.app.capacity]"), "{log}");
}
