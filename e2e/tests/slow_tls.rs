//! Slow clients over TLS, in HTTP/1.1 and in HTTP/2: they hold no place at a server of two, whichever way their bytes go.

use plimsoll_e2e::certificates::{certificate, curl, tls_address};
use plimsoll_e2e::{Folder, Nginx, Plimsoll, program, wait_until};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A curl that moves so many bytes a second, ended with its value.
struct Slow(Child);

impl Slow {
    fn start(at: SocketAddr, folder: &Folder, arguments: &[&str], path: &str) -> Slow {
        let child = Command::new(program("curl"))
            .args(["--silent", "--max-time", "300", "--noproxy", "*", "--output", "/dev/null"])
            .args(["--connect-to", &format!("shop.test:443:{at}"), "--cacert"])
            .arg(folder.path().join("shop.pem"))
            .args(arguments)
            .arg(format!("https://shop.test{path}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Slow(child.unwrap_or_else(|error| panic!("cannot run curl: {error}")))
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// How many bytes the gateway keeps for slow clients, in memory and in files.
fn kept(gateway: &Plimsoll) -> f64 {
    gateway.metric("plimsoll_buffer_bytes")
}

fn others_are_served(slow: impl Fn(SocketAddr, &Folder) -> Vec<Slow>, enough: f64) {
    let (folder, site) = (Folder::new(), Folder::new());
    let (chain, key) = certificate(&folder, "shop", "shop.test");
    site.write("page.html", "<p>a page</p>\n");
    site.write("large.bin", vec![b'x'; 8 << 20]);
    let server = Nginx::files(site.path());
    let mut gateway = Plimsoll::run(&format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n\
         [tls]\nlisten = \"127.0.0.1:0\"\ncertificate = \"{}\"\nkey = \"{}\"\n\
         [upstream.app]\naddress = \"{}\"\nmax_connections = 2\ncapacity = {{ workers = 2 }}\n",
        chain.display(),
        key.display(),
        server.address
    ));
    let at = tls_address(&mut gateway);
    let slow = slow(at, &folder);
    let begun = wait_until(Duration::from_secs(60), || (kept(&gateway) >= enough).then_some(()));
    assert!(begun.is_some(), "the slow clients have begun: {} bytes are kept", kept(&gateway));
    let authority = folder.path().join("shop.pem").display().to_string();
    for number in 0..20 {
        let version = if number % 2 == 0 { "--http1.1" } else { "--http2" };
        let (code, text) = curl(at, "shop.test", "/page.html", &["--cacert", &authority, version]);
        assert!(code == 0 && text.contains("a page"), "request {number}, {version}: {code} {text}");
    }
    assert!(kept(&gateway) > 0.0, "the slow clients are there still");
    drop(slow);
    gateway.wait_for_metric("plimsoll_in_flight", 0.0);
}

#[test]
fn readers_hold_no_place() {
    // Each holds most of its 8 MB; the sockets between take some of it.
    let slow = |at, folder: &Folder| {
        (0..8)
            .map(|number| {
                let version = if number % 2 == 0 { "--http1.1" } else { "--http2" };
                Slow::start(at, folder, &[version, "--limit-rate", "20k"], "/large.bin")
            })
            .collect()
    };
    others_are_served(slow, 8e6);
}

#[test]
fn senders_hold_no_place() {
    let slow = |at, folder: &Folder| {
        let body = format!("@{}", folder.write("body", vec![b'x'; 2 << 20]).display());
        (0..8)
            .map(|number| {
                let version = if number % 2 == 0 { "--http1.1" } else { "--http2" };
                let sends = [version, "--limit-rate", "20k", "--header", "Expect:", "--data-binary", &body];
                Slow::start(at, folder, &sends, "/page.html")
            })
            .collect()
    };
    others_are_served(slow, 1e5);
}
