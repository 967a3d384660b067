//! Clients that the system turns away, by the real nftables, in a network namespace of the test's own.

use crate::support::*;
use nix::sched::{CloneFlags, unshare};
use plimsoll_gateway::{Gateway, Settings};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Nobody else is in that network.
const PORT: u16 = 8080;
const ADMIN: u16 = 8081;

fn ran(program: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}; `.ci/deps` installs it"));
    (output.status.success(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn nft(arguments: &[&str]) -> (bool, String) {
    let path = if std::path::Path::new("/usr/sbin/nft").exists() { "/usr/sbin/nft" } else { "nft" };
    ran(path, arguments)
}

/// A thread has its network for itself and for the threads and programs that it starts.
#[test]
fn a_client_that_was_told_to_stay_away_is_reset_by_the_system_and_counted() {
    std::thread::spawn(|| {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            // As any other user than root.
            return eprintln!("left out: no network namespace: {error}");
        }
        let (is_up, said) = ran("ip", &["link", "set", "lo", "up"]);
        assert!(is_up, "{said}");
        shed();
    })
    .join()
    .expect("no panic");
}

fn shed() {
    let origin = ten_a_second();
    let mut promises = promises(1);
    promises.sites[0].guarantee = None;
    promises.sites[0].levels.truncate(1);
    let start = || {
        let listen = vec![SocketAddr::from(([0, 0, 0, 0], PORT)).into()];
        let admin = Some(SocketAddr::from(([127, 0, 0, 1], ADMIN)));
        let own = settings(&[origin.address]);
        let own = Settings { listen, admin, reject_at_accept: true, kernel_shed: true, ..own };
        Gateway::start(own, &promises).expect("a gateway")
    };
    // What a crash has left is gone with the start.
    let left = "table inet plimsoll_8080 { chain left { type filter hook input priority 0; tcp dport 8080 drop; }; }";
    let (is_left, said) = nft(&[left]);
    assert!(is_left, "{said}");
    let gateway = start();
    let list = ["list", "table", "inet", "plimsoll_8080"];
    let (is_there, rules) = nft(&list);
    assert!(is_there && rules.contains("reject with tcp reset") && !rules.contains("drop"), "{rules}");

    let (made, refused) = overload(|_, refused| refused > 0);
    eventually("all resets are counted", || turned_away("kernel") == refused);
    assert!(turned_away("overload") > 0, "each client was told so first");
    settled(&gateway);
    let arrivals: u64 = gateway.status().classes.iter().map(|class| class.counts.arrivals).sum();
    assert_eq!(arrivals, made, "{refused} were reset");

    // The crowd is gone: nobody stays shed.
    eventually("all are served again", || {
        sleep(Duration::from_millis(100));
        (0..ADDRESSES).step_by(40).all(|number| connect(number).is_ok())
    });
    // A firewall that is loaded anew takes the table away.
    nft(&["flush", "ruleset"]);
    overload(|_, _| nft(&list).0);
    assert!(gateway.drain(PATIENCE));
    assert!(!nft(&list).0, "it goes with the gateway");
}

const ADDRESSES: u32 = 400;

fn connect(number: u32) -> std::io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    let [_, _, high, low] = number.to_be_bytes();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 1, high, low), 0)).into())?;
    socket.connect(&SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)).into())?;
    Ok(socket.into())
}

/// Clients that come again at once, until it is enough; how many connections they began, and how many the system has reset.
fn overload(is_enough: impl Fn(u64, u64) -> bool) -> (u64, u64) {
    let (made, refused, ended) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..20 {
            let (made, refused, ended) = (&made, &refused, &ended);
            scope.spawn(move || {
                for turn in (0..).take_while(|_| !ended.load(SeqCst)) {
                    made.fetch_add(1, SeqCst);
                    match connect(thread * (ADDRESSES / 20) + turn % (ADDRESSES / 20)) {
                        Ok(connection) => {
                            let mut peer = Peer::new(connection);
                            let _ = peer.send("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
                            peer.rest();
                        }
                        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                            refused.fetch_add(1, SeqCst);
                        }
                        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
                    }
                    sleep(Duration::from_millis(5));
                }
            });
        }
        let end = Instant::now() + 3 * PATIENCE;
        while !is_enough(made.load(SeqCst), refused.load(SeqCst)) && Instant::now() < end {
            sleep(Duration::from_millis(50));
        }
        ended.store(true, SeqCst);
        assert!(Instant::now() < end, "never enough: {made:?} connections, {refused:?} of them reset");
    });
    (made.into_inner(), refused.into_inner())
}

/// How many connections were turned away for a reason.
fn turned_away(reason: &str) -> u64 {
    let mut peer = Peer::connect(SocketAddr::from(([127, 0, 0, 1], ADMIN)));
    let (status, body) = peer.ask("GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(status, 200);
    let all: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    all["connections_turned_away"][reason].as_u64().expect("a count")
}
