//! Names of upstreams, whose addresses change while the gateway runs. The test runs itself again in namespaces of its own,
//! where `/etc/hosts` is a file of the test's.

use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{Folder, Plimsoll, get};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::thread;

/// The variable by which the test knows that it is inside.
const INSIDE: &str = "PLIMSOLL_E2E_INSIDE";
const NAME: &str = "app.test";

fn names(lines: &[[u8; 4]]) {
    let text: String =
        lines.iter().map(|ip| format!("{} {NAME}\n", SocketAddr::from((*ip, 0)).ip())).collect();
    fs::write("/etc/hosts", text).expect("the test's own /etc/hosts");
}

/// A server that answers each request with its address, at a port that is the same everywhere.
fn serve(address: SocketAddr) {
    let listener = TcpListener::bind(address).expect("the port");
    let answer = move |stream: std::net::TcpStream| {
        let mut lines = BufReader::new(stream.try_clone().expect("the same socket")).lines();
        let mut stream = stream;
        while let Some(Ok(line)) = lines.next() {
            let text = address.ip().to_string();
            if line.is_empty() {
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len());
                if stream.write_all(head.as_bytes()).is_err() {
                    return;
                }
            }
        }
    };
    thread::spawn(move || {
        listener.incoming().flatten().for_each(|stream| _ = thread::spawn(move || answer(stream)))
    });
}

#[test]
fn a_name_that_moves_is_followed_and_one_that_is_not_found_keeps_its_servers() {
    const TEST: &str = "names::a_name_that_moves_is_followed_and_one_that_is_not_found_keeps_its_servers";
    if std::env::var_os(INSIDE).is_some() {
        return follow();
    }
    let folder = Folder::new();
    let (hosts, resolver) =
        (folder.write("hosts", ""), folder.write("resolv.conf", "nameserver 127.9.8.7\n"));
    let script = "ip link set lo up && mount --bind \"$1\" /etc/hosts && mount --bind \"$2\" /etc/resolv.conf && \
                  exec \"$3\" --exact \"$4\" --nocapture";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "--net", "sh", "-c", script, "sh"]).arg(hosts).arg(resolver);
    command.arg(std::env::current_exe().expect("this test")).arg(TEST).env(INSIDE, "1");
    let ran = command.output().expect("unshare");
    let said = String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned();
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

fn follow() {
    let (one, two, port) = ([127, 0, 0, 21], [127, 0, 0, 22], 8321);
    [one, two].into_iter().for_each(|ip| serve((ip, port).into()));
    names(&[one]);
    let server = SocketAddr::from((one, port));
    let by_name = |every: &str| {
        let written = format!("\"{NAME}:{port}\"\nresolve = \"{every}\"");
        before(server, &plain()).replacen(&format!("\"{server}\""), &written, 1)
    };
    let still = Plimsoll::run(&by_name("off"));
    let mut gateway = Plimsoll::run(&by_name("100ms"));
    assert_eq!(get(gateway.address, "/page").text().lines().last(), Some("127.0.0.21"));
    names(&[two]);
    gateway.process.wait_for("the move", |log| {
        log.contains("its names have other addresses; new: 127.0.0.22:8321; gone: 127.0.0.21:8321")
            .then_some(())
    });
    assert_eq!(get(gateway.address, "/page").text().lines().last(), Some("127.0.0.22"));
    assert_eq!(
        get(still.address, "/page").text().lines().last(),
        Some("127.0.0.21"),
        "it was to look no more"
    );
    names(&[]);
    gateway.process.wait_for("the failure", |log| {
        (log.contains("`app.test:8321` cannot be looked up") && log.contains("stay in use")).then_some(())
    });
    assert_eq!(get(gateway.address, "/page").text().lines().last(), Some("127.0.0.22"), "its server stays");
    let status = gateway.ask_admin("/status").text();
    assert!(status.contains("\"lookup_failure\": \"`app.test:8321` cannot be looked up"), "{status}");
    gateway.wait_for_metric("plimsoll_upstream_lookup_failed", 1.0);
    names(&[one, two]);
    gateway.process.wait_for("both", |log| log.contains("its names are found again").then_some(()));
    gateway.wait_for_metric("plimsoll_upstream_lookup_failed", 0.0);
    assert!(
        gateway.process.log().contains("other addresses; new: 127.0.0.21:8321\n"),
        "{}",
        gateway.process.log()
    );
    // Without a name server nothing waits: requests pass, and the end is obeyed.
    assert_eq!(get(gateway.address, "/page").status, 200);
    assert_eq!(gateway.stop().code(), Some(0));
}
