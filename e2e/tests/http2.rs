//! HTTP/2 with clients that are not ours: curl, over TLS and without, and h2load.

use plimsoll_e2e::certificates::{certificate, curl, tls_address};
use plimsoll_e2e::{Folder, Nginx, Plimsoll, program};
use std::fs;
use std::net::SocketAddr;
use std::process::Command;

/// A site of files behind a gateway that speaks HTTP/2, with these keys in `[tls]`.
struct Site {
    gateway: Plimsoll,
    tls: SocketAddr,
    folder: Folder,
    _server: Nginx,
}

impl Site {
    fn run(keys: &str, more: &str) -> Site {
        let folder = Folder::new();
        folder.write("page.html", "<p>a page</p>\n");
        folder.write("large.bin", vec![b'x'; 3 << 20]);
        let server = Nginx::files(folder.path());
        let (chain, key) = certificate(&folder, "site", "shop.test");
        let log = folder.path().join("access.log");
        let mut gateway = Plimsoll::run(&format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\nh2c = true\n\n\
             [tls]\nlisten = \"127.0.0.1:0\"\ncertificate = \"{}\"\nkey = \"{}\"\n{keys}\n\n\
             [access_log]\nfile = \"{}\"\n\n\
             [upstream.app]\naddress = \"{}\"\nmax_connections = 8\ncapacity = {{ workers = 8 }}\n\n{more}\n",
            chain.display(),
            key.display(),
            log.display(),
            server.address
        ));
        let tls = tls_address(&mut gateway);
        Site { gateway, tls, folder, _server: server }
    }

    fn authority(&self) -> String {
        self.folder.path().join("site.pem").display().to_string()
    }

    /// What curl says of a request over TLS.
    fn over_tls(&self, path: &str, arguments: &[&str]) -> (i32, String) {
        curl(self.tls, "shop.test", path, &[&["--cacert", &self.authority()], arguments].concat())
    }

    /// What curl says of a request without TLS.
    fn in_clear(&self, path: &str, arguments: &[&str]) -> (i32, String) {
        let ran = Command::new(program("curl"))
            .args(["--silent", "--show-error", "--max-time", "30", "--noproxy", "*"])
            .args(arguments)
            .arg(format!("http://{}{path}", self.gateway.address))
            .output()
            .unwrap_or_else(|error| panic!("cannot run curl: {error}"));
        (ran.status.code().unwrap_or(-1), String::from_utf8_lossy(&ran.stdout).into_owned())
    }
}

const PRINT: [&str; 4] = ["-o", "/dev/null", "-w", "%{http_version} %{http_code} %{size_download}"];

#[test]
fn curl_gets_pages_over_tls_and_without() {
    let site = Site::run("", "");
    for (path, length) in [("/page.html", 14), ("/large.bin", 3 << 20)] {
        let expected = (0, format!("2 200 {length}"));
        assert_eq!(site.over_tls(path, &PRINT), expected, "over TLS: {path}");
        let prior = [&PRINT[..], &["--http2-prior-knowledge"]].concat();
        assert_eq!(site.in_clear(path, &prior), expected, "without: {path}");
        let expected = (0, format!("1.1 200 {length}"));
        assert_eq!(site.over_tls(path, &[&PRINT[..], &["--http1.1"]].concat()), expected, "{path}");
        assert_eq!(site.in_clear(path, &PRINT), expected, "{path}");
    }
    let (code, head) = site.over_tls("/large.bin", &["--head"]);
    assert!(
        code == 0 && head.starts_with("HTTP/2 200") && head.contains("content-length: 3145728"),
        "{head}"
    );
    site.gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    let log = fs::read_to_string(site.folder.path().join("access.log")).unwrap_or_default();
    assert_eq!(log.matches("\"protocol\":\"HTTP/2.0\"").count(), 5, "{log}");
}

#[test]
fn a_listener_of_tls_may_speak_http11_alone() {
    let site = Site::run("http2 = false", "");
    assert_eq!(site.over_tls("/page.html", &PRINT), (0, "1.1 200 14".to_owned()));
}

#[test]
fn an_answer_before_the_end_of_an_upload_is_an_answer() {
    let site = Site::run("", "[limits]\nbody = \"64 KiB\"");
    let upload = format!("@{}", site.folder.path().join("large.bin").display());
    let body = ["--data-binary", &upload];
    let unknown = ["--data-binary", &upload, "--header", "transfer-encoding: chunked"];
    for arguments in [&body[..], &unknown] {
        let (code, text) = site.over_tls("/page.html", &[&PRINT[..], arguments].concat());
        assert!(code == 0 && text.starts_with("2 413"), "{code} {text}");
    }
    assert_eq!(site.over_tls("/page.html", &PRINT), (0, "2 200 14".to_owned()));
}

#[test]
fn what_h2load_asks_is_answered_and_accounted_for() {
    let site = Site::run("", "");
    let (requests, streams) = ("3000", "16");
    for url in
        [format!("http://{}/page.html", site.gateway.address), format!("https://{}/page.html", site.tls)]
    {
        let before = site.gateway.metric("plimsoll_arrivals_total");
        let ran = Command::new(program("h2load"))
            .args(["-n", requests, "-c", "6", "-m", streams, &url])
            .output()
            .unwrap_or_else(|error| panic!("cannot run h2load: {error}"));
        let said = String::from_utf8_lossy(&ran.stdout);
        let line = said.lines().find(|line| line.starts_with("requests:")).unwrap_or_default();
        assert!(line.contains("3000 done") && line.contains(" 0 errored, 0 timeout"), "{said}");
        site.gateway.wait_for_metric("plimsoll_in_flight", 0.0);
        assert_eq!(site.gateway.metric("plimsoll_arrivals_total") - before, 3000.0, "{said}");
    }
    assert_eq!(site.gateway.metric("plimsoll_http2_connections_ended_total"), 0.0);
}
