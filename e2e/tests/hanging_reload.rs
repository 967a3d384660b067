//! A configuration that cannot be read to its end, a key file that cannot, or a name that no server answers for keeps nothing
//! waiting: requests are served, an order to end is obeyed, and the reload is refused with the reason.

use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{Folder, Plimsoll, Process, binary, free_port, get};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

/// Puts a pipe to which nobody writes in the place of a file.
fn hang(file: &Path) {
    let pipe = file.with_extension("pipe");
    mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe");
    fs::rename(&pipe, file).expect("it takes the file's place");
}

/// A gateway before a server that is down: it answers 502 at once.
fn started() -> Plimsoll {
    Plimsoll::run(&before(SocketAddr::from(([127, 0, 0, 1], free_port())), &plain()))
}

#[test]
fn a_reload_that_hangs_is_given_up_and_keeps_nothing_waiting() {
    let mut gateway = started();
    let right = fs::read_to_string(gateway.file()).expect("its configuration");
    hang(&gateway.file());
    gateway.process.signal(Signal::SIGHUP);
    let second = loop {
        // The signal is taken a moment after it was sent; a post before that hangs in its place until it is given up.
        let second = gateway.post_reload();
        if second.text().contains("another reload is under way") {
            break second;
        }
        gateway.process.signal(Signal::SIGHUP);
        thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(second.status, 422, "{}", second.text());
    assert_eq!(get(gateway.address, "/page").status, 502);
    assert_eq!(gateway.ask_admin("/healthz").status, 200);
    gateway.process.wait_for("the end of the reading", |log| log.contains("takes longer than").then_some(()));
    fs::remove_file(gateway.file()).expect("the pipe goes");
    gateway.rewrite(&right);
    while gateway.post_reload().status != 200 {
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn an_order_to_end_is_obeyed_while_a_reload_hangs() {
    for by_signal in [true, false] {
        let mut gateway = started();
        hang(&gateway.file());
        let admin = gateway.admin;
        let asking = (!by_signal).then(|| {
            thread::spawn(move || {
                let head = "POST /reload HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                plimsoll_e2e::exchange(admin, head)
            })
        });
        if by_signal {
            gateway.process.signal(Signal::SIGHUP);
        }
        thread::sleep(Duration::from_millis(300));
        assert_eq!(gateway.stop().code(), Some(0), "{}", gateway.process.log());
        if let Some(asking) = asking {
            drop(asking.join());
        }
        assert!(!gateway.process.log().contains("takes longer"), "it did not wait for the reading");
    }
}

#[test]
fn an_order_to_end_is_obeyed_while_the_first_reading_hangs() {
    let folder = Folder::new();
    let file = folder.path().join("plimsoll.toml");
    hang(&file);
    let log = folder.path().join("log");
    let mut process = Process::spawn("plimsoll", Command::new(binary()).arg("run").arg(&file), &log);
    thread::sleep(Duration::from_millis(300));
    process.signal(Signal::SIGTERM);
    assert_eq!(process.wait().code(), Some(0), "{}", process.log());
}

#[test]
fn a_key_file_that_hangs_is_given_up_and_keeps_nothing_waiting() {
    let folder = Folder::new();
    let key = folder.write("signing.key", "0123456789abcdef0123456789abcdef\n");
    let keys = format!("signed_cookies = \"plan\"\nsigning_key_file = \"{}\"\n\n[upstream", key.display());
    let origin = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let mut gateway = Plimsoll::run(&before(origin, &plain()).replacen("\n[upstream", &keys, 1));
    hang(&key);
    let refused = gateway.post_reload();
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("takes longer than"), "{}", refused.text());
    assert_eq!(get(gateway.address, "/page").status, 502);
    gateway.process.signal(Signal::SIGHUP);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(gateway.stop().code(), Some(0), "{}", gateway.process.log());
}

#[test]
fn an_access_log_that_is_a_pipe_without_a_reader_is_refused_at_once() {
    let mut gateway = started();
    let pipe = gateway.file().with_file_name("access.pipe");
    mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).expect("a pipe");
    let right = fs::read_to_string(gateway.file()).expect("its configuration");
    gateway.rewrite(&(right + "\n[access_log]\nfile = \"access.pipe\"\n"));
    let refused = gateway.post_reload();
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("it is a pipe that nobody reads"), "{}", refused.text());
    assert_eq!(gateway.ask_admin("/healthz").status, 200);
    let mut another = Command::new(binary());
    let mut another =
        Process::spawn("plimsoll", another.arg("run").arg(gateway.file()), &pipe.with_extension("log"));
    assert_eq!(another.wait().code(), Some(1), "{}", another.log());
    assert!(another.log().contains("it is a pipe that nobody reads"), "{}", another.log());
    // With a reader it is a log as any other.
    let reader = fs::OpenOptions::new().read(true).write(true).open(&pipe).expect("the pipe");
    assert_eq!(gateway.post_reload().status, 200);
    assert_eq!(get(gateway.address, "/page").status, 502);
    let mut line = String::new();
    BufReader::new(reader).read_line(&mut line).expect("a line");
    assert!(line.contains("\"path\":\"/page\""), "{line}");
    assert_eq!(gateway.stop().code(), Some(0), "{}", gateway.process.log());
}

/// The variable by which the test below knows that it is inside.
const INSIDE: &str = "PLIMSOLL_E2E_INSIDE";
/// A name server that takes questions and answers none.
const SILENT: &str = "127.9.8.7";

/// The test runs itself again in namespaces of its own, where names are looked up at a server that does not answer: neither the
/// machine's network nor its resolv.conf is touched.
#[test]
fn names_that_are_looked_up_slowly_keep_nothing_waiting() {
    const NAME: &str = "hanging_reload::names_that_are_looked_up_slowly_keep_nothing_waiting";
    if std::env::var_os(INSIDE).is_some() {
        return names_hang();
    }
    let folder = Folder::new();
    let resolver =
        folder.write("resolv.conf", format!("nameserver {SILENT}\noptions timeout:30 attempts:2\n"));
    let script =
        "ip link set lo up && mount --bind \"$1\" /etc/resolv.conf && exec \"$2\" --exact \"$3\" --nocapture";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "--net", "sh", "-c", script, "sh"]);
    command.arg(resolver).arg(std::env::current_exe().expect("this test")).arg(NAME).env(INSIDE, "1");
    let ran = command.output().expect("unshare");
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

fn names_hang() {
    let asked = UdpSocket::bind((SILENT, 53)).expect("a name server's port");
    let mut gateway = started();
    let right = fs::read_to_string(gateway.file()).expect("its configuration");
    let start = right.find("address = \"").expect("an address") + "address = \"".len();
    let end = start + right[start..].find('"').expect("its end");
    gateway.rewrite(&format!("{}slow.example:80{}", &right[..start], &right[end..]));
    let refused = gateway.post_reload();
    assert!(asked.recv(&mut [0; 512]).is_ok_and(|length| length > 12), "the name is looked up");
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert!(refused.text().contains("takes longer than"), "{}", refused.text());
    assert_eq!(get(gateway.address, "/page").status, 502);
    assert_eq!(gateway.ask_admin("/healthz").status, 200);
    gateway.process.signal(Signal::SIGHUP);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(gateway.stop().code(), Some(0), "{}", gateway.process.log());
}
