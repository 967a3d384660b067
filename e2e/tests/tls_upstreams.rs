//! TLS to upstreams, and Unix sockets on both sides: a real nginx behind the gateway, whose certificate is trusted or is not.

use plimsoll_e2e::certificates::{certificate, signed_certificate};
use plimsoll_e2e::{Folder, Nginx, Plimsoll, Response, free_port, get, program};
use std::path::{Path, PathBuf};
use std::process::Command;

/// nginx over a folder: by TLS at a port, and at the path of a Unix socket.
struct Server {
    port: u16,
    socket: PathBuf,
    folder: Folder,
    _nginx: Nginx,
}

impl Server {
    /// With the certificate of this name in the folder.
    fn run(folder: Folder, name: &str) -> Server {
        Server::speaking("ssl", folder, name)
    }

    /// The same, with other words behind its port.
    fn speaking(words: &str, folder: Folder, name: &str) -> Server {
        folder.write("site/page.html", "<p>a page</p>\n");
        folder.write("site/large.bin", vec![b'x'; 3 << 20]);
        let (port, socket) = (free_port(), folder.path().join("nginx.sock"));
        let place = folder.path().display();
        let server = format!(
            "listen 127.0.0.1:{port} {words}; listen unix:{}; ssl_certificate {place}/{name}.pem; \
             ssl_certificate_key {place}/{name}.key; ssl_session_tickets on; ssl_protocols TLSv1.2 TLSv1.3; \
             location = /protocol {{ return 200 $server_protocol; }}",
            socket.display()
        );
        let nginx = Nginx::logging(&folder.path().join("site"), None, ("", &server));
        Server { port, socket, folder, _nginx: nginx }
    }
}

fn configuration(address: &str, tls: &str) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n\n\
         [upstream.app]\naddress = \"{address}\"\nmax_connections = 8\ncapacity = {{ workers = 8 }}\n{tls}\n"
    )
}

fn is_the_page(response: &Response) -> bool {
    response.status == 200 && response.text().contains("a page")
}

/// As many requests as make both threads take connections that the other one made.
fn ask_often(gateway: &Plimsoll) {
    for _ in 0..40 {
        let page = get(gateway.address, "/page.html");
        assert!(is_the_page(&page), "{}: {}", page.status, page.text());
    }
    let large = get(gateway.address, "/large.bin");
    assert_eq!((large.status, large.body.len()), (200, 3 << 20));
}

#[test]
fn a_server_that_an_authority_vouches_for_is_asked_by_tls() {
    let folder = Folder::new();
    let authority = certificate(&folder, "authority", "authority.test");
    signed_certificate(&folder, "app", "app.test", &authority);
    let server = Server::run(folder, "app");
    let ca = authority.0.display();
    let tls = format!("tls = {{ ca = \"{ca}\", server_name = \"app.test\" }}");
    let gateway = Plimsoll::run(&configuration(&format!("https://127.0.0.1:{}", server.port), &tls));
    ask_often(&gateway);
}

#[test]
fn a_server_that_signed_for_itself_is_trusted_by_its_own_certificate() {
    let folder = Folder::new();
    let (own, _) = certificate(&folder, "app", "localhost");
    let server = Server::run(folder, "app");
    let tls = format!("tls = {{ ca = \"{}\" }}", own.display());
    let gateway = Plimsoll::run(&configuration(&format!("localhost:{}", server.port), &tls));
    ask_often(&gateway);
}

#[test]
fn http2_is_spoken_with_a_server_that_agrees_and_http1_with_one_that_does_not() {
    for (words, spoken) in [("ssl http2", "HTTP/2.0"), ("ssl", "HTTP/1.1")] {
        let folder = Folder::new();
        let (own, _) = certificate(&folder, "app", "localhost");
        let server = Server::speaking(words, folder, "app");
        let keys = format!("http2 = true\ntls = {{ ca = \"{}\" }}", own.display());
        let gateway = Plimsoll::run(&configuration(&format!("localhost:{}", server.port), &keys));
        ask_often(&gateway);
        assert_eq!(get(gateway.address, "/protocol").text(), spoken);
    }
}

#[test]
fn a_server_that_is_not_trusted_is_not_asked_and_the_log_says_why() {
    let folder = Folder::new();
    let authority = certificate(&folder, "authority", "authority.test");
    let (other, _) = certificate(&folder, "other", "authority.test");
    signed_certificate(&folder, "app", "app.test", &authority);
    let server = Server::run(folder, "app");
    let (own, other) = (authority.0.display(), other.display());
    for (tls, why) in [
        (
            format!("tls = {{ ca = \"{other}\", server_name = \"app.test\" }}"),
            "its certificate was not signed with its authority's key",
        ),
        (
            format!("tls = {{ ca = \"{own}\", server_name = \"shop.test\" }}"),
            "its certificate is not for `shop.test`, but for app.test",
        ),
    ] {
        let mut gateway = Plimsoll::run(&configuration(&format!("https://127.0.0.1:{}", server.port), &tls));
        let answer = get(gateway.address, "/page.html");
        assert_eq!(answer.status, 502, "{}", answer.text());
        assert!(answer.text().contains("no TLS that can be trusted"), "{}", answer.text());
        gateway.process.wait_for("the reason", |log| {
            (log.contains("upstream app: TLS fails: ") && log.contains(why)).then_some(())
        });
    }
}

#[test]
fn wrong_files_of_authorities_are_named() {
    let folder = Folder::new();
    let empty = folder.write("empty.pem", "");
    let refused = |tls: &str| {
        let file = folder.write("plimsoll.toml", configuration("https://app.invalid", tls));
        let output = Plimsoll::output(&["check", &file.display().to_string()]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let missing = refused("tls = { ca = \"none.pem\" }");
    assert!(
        missing.contains("none.pem: cannot be read") && missing.contains("[upstream.app.tls]"),
        "{missing}"
    );
    let none = refused(&format!("tls = {{ ca = \"{}\" }}", empty.display()));
    assert!(none.contains("empty.pem: there is no certificate in it"), "{none}");
    let file = folder.write("plimsoll.toml", configuration("https://app.invalid/path", ""));
    let output = Plimsoll::output(&["check", &file.display().to_string()]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("has a path") && text.contains("`\"https://app.invalid\"`"), "{text}");
}

fn curl_by_socket(socket: &Path) -> String {
    let ran = Command::new(program("curl"))
        .args(["--silent", "--show-error", "--max-time", "30", "--unix-socket"])
        .arg(socket)
        .arg("http://e2e.test/page.html")
        .output()
        .unwrap_or_else(|error| panic!("cannot run curl: {error}"));
    String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr)
}

#[test]
fn unix_sockets_on_both_sides() {
    let folder = Folder::new();
    certificate(&folder, "app", "app.test");
    let server = Server::run(folder, "app");
    let own = server.folder.path().join("plimsoll.sock");
    // What a gateway left there that was killed is taken away.
    drop(std::os::unix::net::UnixListener::bind(&own).expect("a socket"));
    let file = configuration(&format!("unix:{}", server.socket.display()), "");
    let listen = format!("listen = [\"127.0.0.1:0\", \"unix:{}\"]", own.display());
    let mut gateway = Plimsoll::run(&file.replace("listen = \"127.0.0.1:0\"", &listen));
    ask_often(&gateway);
    assert!(curl_by_socket(&own).contains("a page"));
    assert!(gateway.stop().success());
    assert!(!own.exists(), "the socket goes with the gateway");
}
