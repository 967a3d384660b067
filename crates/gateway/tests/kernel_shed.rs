//! Clients that the system turns away, by the real nftables, in a network namespace of the test's own.

use crate::support::*;
use nix::sched::{CloneFlags, unshare};
use plimsoll_gateway::{Before, Gateway, Inherited, ListeningSocket, Settings};
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

/// Runs a test in a network of its own: a thread has it for itself and for the threads and programs that it starts.
fn alone(test: impl FnOnce() + Send + 'static) {
    std::thread::spawn(|| {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            // As any other user than root.
            return eprintln!("left out: no network namespace: {error}");
        }
        let (is_up, said) = ran("ip", &["link", "set", "lo", "up"]);
        assert!(is_up, "{said}");
        test();
    })
    .join()
    .expect("no panic");
}

/// A gateway at this address, whose admin listener is at `ADMIN` of the same one.
fn start(before: &mut Before, origin: &Origin, address: [u8; 4], kernel_shed: bool) -> Gateway {
    let mut promises = promises(1);
    promises.sites[0].guarantee = None;
    promises.sites[0].levels.truncate(1);
    let listen = vec![SocketAddr::from((address, PORT)).into()];
    let admin = Some(SocketAddr::from((if address == ALL { LOCALHOST } else { address }, ADMIN)));
    let own = settings(&[origin.address]);
    let own = Settings { listen, admin, reject_at_accept: true, kernel_shed, ..own };
    Gateway::start_after(before, own, &promises).expect("a gateway")
}

const ALL: [u8; 4] = [0; 4];
const LOCALHOST: [u8; 4] = [127, 0, 0, 1];

/// What the rules of a table are; nothing if there is none.
fn rules(table: &str) -> String {
    let (is_there, rules) = nft(&["list", "table", "inet", table]);
    if is_there { rules } else { String::new() }
}

/// All tables.
fn tables() -> String {
    nft(&["list", "tables"]).1
}

/// What a crash leaves.
fn leave(table: &str) {
    let left = format!(
        "table inet {table} {{ chain left {{ type filter hook input priority 0; tcp dport 8080 drop; }}; }}"
    );
    let (is_left, said) = nft(&[&left]);
    assert!(is_left, "{said}");
}

#[test]
fn a_client_that_was_told_to_stay_away_is_reset_by_the_system_and_counted() {
    alone(|| {
        let origin = ten_a_second();
        let gateway = start(&mut Before::default(), &origin, ALL, true);
        let table = table(LOCALHOST);
        assert!(gateway.drain(PATIENCE));
        // What a crash has left is gone with the start.
        leave(&table);
        let gateway = start(&mut Before::default(), &origin, ALL, true);
        let made = rules(&table);
        assert!(made.contains("reject with tcp reset") && !made.contains("drop"), "{made}");

        let (made, refused) = overload(|_, refused| refused > 0);
        eventually("all resets are counted", || turned_away(LOCALHOST, "kernel") == refused);
        assert!(turned_away(LOCALHOST, "overload") > 0, "each client was told so first");
        settled(&gateway);
        let arrivals: u64 = gateway.status().classes.iter().map(|class| class.counts.arrivals).sum();
        assert_eq!(arrivals, made, "{refused} were reset");

        // The crowd is gone: nobody stays shed.
        eventually("all are served again", || {
            sleep(Duration::from_millis(100));
            (0..ADDRESSES).step_by(40).all(|number| connect(number, LOCALHOST).is_ok())
        });
        // A firewall that is loaded anew takes the table away.
        nft(&["flush", "ruleset"]);
        overload(|_, _| !rules(&table).is_empty());
        assert_eq!(status(LOCALHOST)["kernel_shed"]["failing"], serde_json::Value::Null);
        assert!(gateway.drain(PATIENCE));
        assert_eq!(tables(), "", "it goes with the gateway");
    });
}

#[test]
fn gateways_at_the_same_port_of_other_addresses_turn_away_their_own_clients_alone() {
    const OTHER: [u8; 4] = [127, 0, 0, 2];
    alone(|| {
        let origin = ten_a_second();
        let first = start(&mut Before::default(), &origin, LOCALHOST, true);
        let second = start(&mut Before::default(), &origin, OTHER, true);
        let tables = [LOCALHOST, OTHER].map(table);
        let guarded = |number: usize| rules(&tables[number]).matches("ip daddr").count();
        assert_eq!([guarded(0), guarded(1)], [1, 1], "{tables:?}");
        assert!(rules(&tables[0]).contains("ip daddr 127.0.0.1 "), "{}", rules(&tables[0]));
        let reset_at_other = AtomicU64::new(0);
        overload(|_, refused| {
            let resets = (0..ADDRESSES).filter(|number| connect(*number, OTHER).is_err()).count();
            reset_at_other.fetch_add(resets as u64, SeqCst);
            refused > 0
        });
        assert_eq!(reset_at_other.into_inner(), 0, "the second one has no load");
        eventually("resets are counted", || turned_away(LOCALHOST, "kernel") > 0);
        assert_eq!(turned_away(OTHER, "kernel"), 0);
        assert!(second.drain(PATIENCE));
        assert_eq!([guarded(0), guarded(1)], [1, 0]);
        assert!(first.drain(PATIENCE));
    });
}

#[test]
fn no_table_outlives_the_gateways_that_want_one() {
    alone(|| {
        let origin = ten_a_second();
        let first = start(&mut Before::default(), &origin, LOCALHOST, true);
        let table = table(LOCALHOST);
        let replace = |old: Gateway, kernel_shed: bool| {
            let sockets = old.listeners().iter().map(ListeningSocket::try_clone);
            let sockets = sockets.collect::<std::io::Result<Vec<_>>>().expect("sockets");
            let mut before =
                Before { sockets: Inherited::new(sockets).expect("sockets"), ..Before::default() };
            let new = start(&mut before, &origin, LOCALHOST, kernel_shed);
            assert!(old.hand_over(Duration::from_millis(10), PATIENCE));
            new
        };
        let second = replace(first, true);
        assert!(rules(&table).contains("reject"), "the process before leaves it to this one");
        let third = replace(second, false);
        assert_eq!(tables(), "", "nobody wants it any more");
        assert!(status(LOCALHOST)["kernel_shed"].is_null());
        assert!(third.drain(PATIENCE));
        leave(&table);
        let gateway = start(&mut Before::default(), &origin, LOCALHOST, false);
        assert_eq!(tables(), "", "it is what a crash has left");
        assert!(gateway.drain(PATIENCE));
    });
}

const ADDRESSES: u32 = 400;

fn connect(number: u32, to: [u8; 4]) -> std::io::Result<TcpStream> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None)?;
    let [_, _, high, low] = number.to_be_bytes();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 1, high, low), 0)).into())?;
    socket.connect(&SocketAddr::from((to, PORT)).into())?;
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
                    match connect(thread * (ADDRESSES / 20) + turn % (ADDRESSES / 20), LOCALHOST) {
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

/// What the gateway at this address says of itself.
fn status(gateway: [u8; 4]) -> serde_json::Value {
    let mut peer = Peer::connect(SocketAddr::from((gateway, ADMIN)));
    let (status, body) = peer.ask("GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(status, 200);
    serde_json::from_slice(&body).expect("JSON")
}

/// How many connections were turned away for a reason.
fn turned_away(gateway: [u8; 4], reason: &str) -> u64 {
    status(gateway)["connections_turned_away"][reason].as_u64().expect("a count")
}

/// Its table.
fn table(gateway: [u8; 4]) -> String {
    status(gateway)["kernel_shed"]["table"].as_str().expect("a name").to_owned()
}
