//! The profiler against a real nginx and a real Apache that serve files: it ends, prints the fit's error by size as the
//! paper does (UC 7.2), and what it writes is a configuration.
//!
//! What the costs are is not asserted: client and server share this machine. That they are right where the truth is
//! known is a test of `plimsoll-load`.

use nix::sys::signal::Signal;
use plimsoll_e2e::{Folder, Plimsoll, Process, binary, free_port, program};
use plimsoll_load::{Cost, Origin as Server, OriginSettings, on_a_steady_machine};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const SIZES: &str = "1K,4K,16K,64K,256K";

/// Files named after their size, and a configuration that checks the section.
fn site() -> Folder {
    let folder = Folder::new();
    for kilobytes in SIZES.split(',').map(|size| size.trim_end_matches('K')) {
        let bytes = vec![b'x'; kilobytes.parse::<usize>().expect("a number") * 1024];
        folder.write(&format!("{kilobytes}K.bin"), bytes);
    }
    folder
}

/// Started by root, both change to an unprivileged user, and Apache insists on one being named.
fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

fn nginx(folder: &Path) -> (Process, SocketAddr) {
    let (port, place) = (free_port(), folder.display());
    let user = if is_root() { "user www-data;\n" } else { "" };
    let text = format!(
        "daemon off;\nworker_processes 1;\npid {place}/nginx.pid;\nerror_log /dev/stderr notice;\n{user}\
         events {{ worker_connections 1024; }}\n\
         http {{\n access_log off;\n keepalive_requests 1000000;\n client_body_temp_path {place}/t1;\n \
         proxy_temp_path {place}/t2;\n fastcgi_temp_path {place}/t3;\n uwsgi_temp_path {place}/t4;\n \
         scgi_temp_path {place}/t5;\n server {{\n listen 127.0.0.1:{port};\n root {place};\n \
         location /full {{ return 503; }}\n }}\n}}\n"
    );
    let configuration = folder.join("nginx.conf");
    std::fs::write(&configuration, text).expect("the folder can be written");
    let mut command = Command::new(program("nginx"));
    command.arg("-e").arg("/dev/stderr").arg("-c").arg(configuration);
    let mut process = Process::spawn("nginx", &mut command, &folder.join("nginx.log"));
    process.wait_for("readiness", |log| log.contains("start worker process ").then_some(()));
    (process, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn apache(folder: &Path) -> (Process, SocketAddr) {
    let (port, place, modules) = (free_port(), folder.display(), "/usr/lib/apache2/modules");
    let user = if is_root() { "User www-data\nGroup www-data\n" } else { "" };
    let text = format!(
        "ServerRoot {place}\nServerName e2e.test\nPidFile {place}/apache.pid\nDefaultRuntimeDir {place}\n\
         ErrorLog /dev/stderr\nLogLevel notice\n{user}\
         LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         StartServers 8\nServerLimit 8\nMaxRequestWorkers 8\nMaxKeepAliveRequests 0\nKeepAliveTimeout 5\n\
         DocumentRoot {place}\nListen 127.0.0.1:{port}\n<Directory />\nRequire all granted\n</Directory>\n"
    );
    let configuration = folder.join("apache.conf");
    std::fs::write(&configuration, text).expect("the folder can be written");
    // When told to end, Apache ends its whole process group, so it must not be in ours.
    let mut command = Command::new(program("setpriv"));
    command.arg("--pdeathsig=TERM").arg(program("apache2")).process_group(0);
    command.arg("-DFOREGROUND").arg("-f").arg(configuration);
    let mut process = Process::spawn("apache", &mut command, &folder.join("apache.log"));
    process.wait_for("readiness", |log| log.contains("resuming normal operations").then_some(()));
    (process, SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Profiles the five sizes with 1.5 s for each, and checks what a user would.
fn profile(folder: &Path, address: SocketAddr, more: &[&str]) -> String {
    let (url, section, page) =
        (format!("http://{address}/{{size}}.bin"), folder.join("section.toml"), folder.join("page.html"));
    let mut command = Command::new(binary());
    command.args(["profile", &url, "--sizes", SIZES, "--seconds-per-size", "1.5"]).args(more);
    command.arg("--write").arg(&section).arg("--report").arg(&page);
    let begin = Instant::now();
    let output = command.output().expect("the binary runs");
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    println!("{stdout}\n{stderr}");
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(begin.elapsed() < Duration::from_secs(30), "eight phases of 1.5 s took {:?}", begin.elapsed());
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

/// UC 7.5, Fig. 11: above its highest rate a server spends time on those whom it fails, and answers fewer for it.
#[test]
fn what_failures_cost_is_found() {
    on_a_steady_machine(|| {
        /// Of one of the workers, for each who finds no room.
        const REFUSAL: Duration = Duration::from_millis(8);
        let settings = OriginSettings {
            queue: 32,
            cost: Cost::constant(Duration::from_millis(32)),
            refusal: REFUSAL,
            ..OriginSettings::default()
        };
        let truth = REFUSAL.as_secs_f64() / f64::from(settings.workers);
        let origin = Server::start(settings).expect("a free port on loopback");
        let page = format!("http://{}/page", origin.address());
        // As many clients as find room: who is refused in a closed loop is back at once.
        let (code, stdout, stderr) =
            run(&["profile", &page, "--seconds-per-size", "4", "--clients", "32", "--json"]);
        assert_eq!(code, Some(0), "{stderr}");
        let found: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
        let overload = &found["overload"];
        let figure =
            |name: &str| overload[name].as_f64().unwrap_or_else(|| panic!("no {name} in {overload}"));
        let (cost, error) = (figure("failure_seconds"), figure("failure_error_seconds"));
        println!(
            "T_f {:.1} us within {:.1}, truth {:.1} us: {overload}",
            cost * 1e6,
            error * 1e6,
            truth * 1e6
        );
        assert!((0.85..1.15).contains(&(cost / truth)), "T_f is {cost:e}, not {truth:e}: {overload}");
        // 1 / X = 4 ms and T_f = 1 ms: twice X is offered, a third of it is answered.
        let answered = figure("answered") / figure("offered");
        assert!((0.28..0.38).contains(&answered), "{answered:.3} answered: {overload}");
    });
}

/// The section in a configuration is right.
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
    on_a_steady_machine(|| {
        let folder = site();
        let (_nginx, address) = nginx(folder.path());
        let rejecting = format!("http://{address}/full");
        let section = profile(folder.path(), address, &["--rejecting", &rejecting]);
        assert!(section.contains("rejection = "), "{section}");
    });
}

#[test]
fn apache_is_profiled() {
    on_a_steady_machine(|| {
        let folder = site();
        let (_apache, address) = apache(folder.path());
        profile(folder.path(), address, &[]);
    });
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
    assert!(stderr.contains("does not answer: connect"), "{stderr}");

    let folder = site();
    let (_nginx, address) = nginx(folder.path());
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

#[test]
fn a_server_that_dies_leaves_what_was_measured() {
    let folder = site();
    let (nginx, address) = nginx(folder.path());
    let url = format!("http://{address}/{{size}}.bin");
    let log = folder.path().join("profile.log");
    let mut command = Command::new(binary());
    command.args(["profile", &url, "--sizes", "1K,64K,256K", "--seconds-per-size", "2"]);
    let mut profile = Process::spawn("plimsoll", &mut command, &log);
    std::thread::sleep(Duration::from_millis(3500));
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
    let (_nginx, address) = nginx(folder.path());
    let url = format!("http://{address}/{{size}}.bin");
    let mut command = Command::new(binary());
    command.args(["profile", &url, "--sizes", "1K,64K,256K", "--seconds-per-size", "2"]);
    let mut profile = Process::spawn("plimsoll", &mut command, &folder.path().join("profile.log"));
    std::thread::sleep(Duration::from_millis(3500));
    profile.signal(Signal::SIGINT);
    let status = profile.wait();
    assert_eq!(status.code(), Some(0), "{}", profile.log());
    let log = profile.log();
    assert!(log.contains("stopped: ") && log.contains("[upstream.app.capacity]"), "{log}");
}
