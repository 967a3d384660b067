//! What systemd is told, on a socket that the test has opened in its place.

use nix::sys::signal::Signal;
use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{PlayedUpstream, Plimsoll};
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until this was told.
fn told(socket: &UnixDatagram, wanted: &str) {
    let (start, mut all) = (Instant::now(), Vec::new());
    let mut message = [0; 4096];
    while start.elapsed() < PATIENCE {
        let Ok(length) = socket.recv(&mut message) else { continue };
        let text = String::from_utf8_lossy(&message[..length]).into_owned();
        if text.lines().any(|line| line == wanted) {
            return;
        }
        all.push(text);
    }
    panic!("{wanted} was not told: {all:?}");
}

#[test]
fn systemd_is_told_when_it_serves_lives_reloads_is_replaced_and_ends() {
    let folder = plimsoll_e2e::Folder::new();
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("it can be bound");
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("it is not zero");
    let origin = PlayedUpstream::new();
    let variables = [("NOTIFY_SOCKET", path.to_str().expect("it is text")), ("WATCHDOG_USEC", "600000")];
    let mut gateway = Plimsoll::run_with(&before(origin.address(), &plain()), &variables);
    told(&socket, "READY=1");
    told(&socket, "WATCHDOG=1");
    gateway.process.signal(Signal::SIGHUP);
    told(&socket, "RELOADING=1");
    told(&socket, "READY=1");
    let first = gateway.pid();
    let next = gateway.upgrade();
    told(&socket, &format!("MAINPID={next}"));
    gateway.wait_for_end_of(first);
    told(&socket, "WATCHDOG=1");
    assert!(gateway.stop().success());
    told(&socket, "STOPPING=1");
}
