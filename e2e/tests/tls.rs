//! TLS with clients: real curl and openssl, clients that speak something else or nothing, certificates that change, and names.

use plimsoll_e2e::certificates::{
    certificate, curl, expired_certificate, s_client, signed_certificate, tls_address,
};
use plimsoll_e2e::{Folder, Nginx, Plimsoll, answer, exchange, serving};
use std::fs;
use std::io::{BufRead, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

const REQUEST: &str = "GET /page.html HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n";

/// A site of files behind a gateway that has these keys in `[tls]`, and these lines behind it.
struct Secure {
    gateway: Plimsoll,
    tls: SocketAddr,
    certificates: Folder,
    _server: Nginx,
}

fn configuration(server: SocketAddr, keys: &str, more: &str) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 2\n\n\
         [tls]\nlisten = \"127.0.0.1:0\"\n{keys}\n\n\
         [upstream.app]\naddress = \"{server}\"\nmax_connections = 8\ncapacity = {{ workers = 8 }}\n\n{more}\n"
    )
}

impl Secure {
    fn run(keys: impl Fn(&Folder) -> String, more: &str) -> Secure {
        let certificates = Folder::new();
        let site = Folder::new();
        site.write("page.html", "<p>a page</p>\n");
        site.write("large.bin", vec![b'x'; 3 << 20]);
        let server = Nginx::files(site.path());
        // nginx has the files open while the folder goes with its value: it is kept beside them.
        std::mem::forget(site);
        let mut gateway = Plimsoll::run(&configuration(server.address, &keys(&certificates), more));
        let tls = tls_address(&mut gateway);
        Secure { gateway, tls, certificates, _server: server }
    }

    /// With one certificate, for shop.test.
    fn shop() -> Secure {
        Secure::run(|folder| named(folder, "shop", "shop.test"), "")
    }

    fn file(&self, name: &str) -> String {
        self.certificates.path().join(name).display().to_string()
    }
}

fn named(folder: &Folder, name: &str, host: &str) -> String {
    let (chain, key) = certificate(folder, name, host);
    format!("certificate = \"{}\"\nkey = \"{}\"", chain.display(), key.display())
}

#[test]
fn curl_gets_a_page_and_a_large_file_in_both_versions_on_one_connection() {
    let site = Secure::shop();
    let authority = site.file("shop.pem");
    for version in [["--tls-max", "1.2"], ["--tlsv1.3", "--http1.1"]] {
        let arguments = [&version[..], &["--cacert", &authority, "--include"]].concat();
        let (code, text) = curl(site.tls, "shop.test", "/page.html", &arguments);
        assert!(code == 0 && text.contains(" 200") && text.contains("a page"), "{version:?}: {code} {text}");
        let print = "%{num_connects} %{size_download} %{http_code}\n";
        let second = "https://shop.test/page.html";
        let arguments = [
            &version[..],
            &["--cacert", &authority, "-o", "/dev/null", "-o", "/dev/null", "-w", print, second],
        ]
        .concat();
        let (code, text) = curl(site.tls, "shop.test", "/large.bin", &arguments);
        assert_eq!((code, text.as_str()), (0, "1 14 200\n0 3145728 200\n"), "{version:?}");
    }
    assert!(site.gateway.metric("plimsoll_tls_handshakes_total") >= 4.0);
}

/// Answers one request after another, each on a connection of its own, with the number of bytes of its body and their sum.
fn adding_up() -> SocketAddr {
    serving(1, |stream| {
        let mut reader = std::io::BufReader::new(&stream);
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).is_ok_and(|count| count > 2) {
            if let Some(value) = line.strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap_or(0);
            }
            line.clear();
        }
        let mut body = vec![0; length];
        drop(reader.read_exact(&mut body));
        answer(&stream, &told(&body));
    })
}

fn told(body: &[u8]) -> String {
    let sum = body.iter().fold(0_u64, |sum, &byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{} {sum}", body.len())
}

#[test]
fn bodies_of_any_size_pass_in_both_versions_and_to_slow_clients() {
    let certificates = Folder::new();
    let keys = named(&certificates, "shop", "shop.test");
    let mut gateway = Plimsoll::run(&configuration(adding_up(), &keys, ""));
    let tls = tls_address(&mut gateway);
    let authority = certificates.path().join("shop.pem").display().to_string();
    for size in [1, 4096, 16 * 1024 + 1, 5 << 20] {
        let body: Vec<u8> = (0..size).map(|at| (at * 7 + at / 251) as u8).collect();
        let file = certificates.write("body", &body).display().to_string();
        for version in [&["--tls-max", "1.2", "--http1.1"][..], &["--tlsv1.3", "--http1.1"], &["--http2"]] {
            let more = ["--cacert", &authority, "--header", "Expect:", "--data-binary", &format!("@{file}")];
            let (code, text) = curl(tls, "shop.test", "/", &[version, &more].concat());
            assert_eq!((code, text), (0, told(&body)), "{size} bytes, {version:?}");
        }
    }
    let site = Secure::shop();
    let print = "%{size_download}";
    let slow = ["--cacert", &site.file("shop.pem"), "--limit-rate", "1M", "-o", "/dev/null", "-w", print];
    assert_eq!(curl(site.tls, "shop.test", "/large.bin", &slow), (0, "3145728".to_owned()));
}

#[test]
fn a_session_goes_on_where_an_earlier_one_ended() {
    let site = Secure::shop();
    let kept = site.file("session");
    for version in ["-tls1_2", "-tls1_3"] {
        let first = s_client(site.tls, &[version, "-servername", "shop.test", "-sess_out", &kept], REQUEST);
        assert!(first.contains("a page") && first.contains("\nNew, "), "{first}");
        let second = s_client(site.tls, &[version, "-servername", "shop.test", "-sess_in", &kept], REQUEST);
        assert!(second.contains("a page") && second.contains("\nReused, "), "{version}: {second}");
    }
    let page = site.gateway.ask_admin("/metrics").text();
    assert!(page.contains("plimsoll_tls_handshakes_total{result=\"resumed\"} 2"), "{page}");
}

#[test]
fn what_is_no_handshake_is_answered_counted_logged_and_ended() {
    let shop = |folder: &Folder| named(folder, "shop", "shop.test");
    let mut site = Secure::run(shop, "[log]\nlevel = \"debug\"");
    let plain = exchange(site.tls, REQUEST);
    assert_eq!(plain.status, 400);
    assert!(plain.text().contains("https://"), "{}", plain.text());
    for bytes in [
        &b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\xff"[..],
        b"\x80\x2e\x01\x00\x02",
        b"\x00\x00\x00\x00\x00\x00",
    ] {
        let mut stream = TcpStream::connect(site.tls).expect("the gateway accepts");
        stream.write_all(bytes).expect("the gateway reads");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        assert!(answer.is_empty() || answer[0] == 0x15, "an alert, or nothing: {answer:?}");
    }
    let offer = s_client(site.tls, &["-alpn", "spdy/1"], REQUEST);
    assert!(offer.contains("no application protocol"), "{offer}");
    let old = s_client(site.tls, &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], REQUEST);
    assert!(old.contains("alert handshake failure"), "{old}");
    let page = site.gateway.ask_admin("/metrics").text();
    assert!(page.contains("plimsoll_tls_handshakes_total{result=\"failed\"} 6"), "{page}");
    let (code, text) = curl(site.tls, "shop.test", "/page.html", &["--cacert", &site.file("shop.pem")]);
    assert!(code == 0 && text.contains("a page"), "{text}");
    let why = "a TLS handshake with 127.0.0.1 failed: ";
    site.gateway.process.wait_for("reasons", |log| (log.matches(why).count() == 6).then_some(()));
}

#[test]
fn a_slow_handshake_is_given_up_as_a_slow_head_is() {
    let site = Secure::run(|folder| named(folder, "shop", "shop.test"), "[timeouts]\nhead = \"500ms\"");
    let begin = Instant::now();
    let mut slow: Vec<TcpStream> =
        (0..20).map(|_| TcpStream::connect(site.tls).expect("it accepts")).collect();
    for (at, stream) in slow.iter_mut().enumerate() {
        // A record that is announced and does not come, and for every other one not even that.
        if at % 2 == 0 {
            stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00").expect("it reads");
        }
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    }
    for mut stream in slow {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("the connection ends");
    }
    assert!(begin.elapsed() >= Duration::from_millis(400));
    let (code, text) = curl(site.tls, "shop.test", "/page.html", &["--cacert", &site.file("shop.pem")]);
    assert!(code == 0 && text.contains("a page"), "{text}");
}

#[test]
fn a_client_gets_the_certificate_of_the_name_that_it_asks_for() {
    let more = "[[site]]\nname = \"all\"\nhost = [\"shop.test\", \"blog.test\", \"www.blog.test\", \"other.test\"]\n";
    let keys = |folder: &Folder| {
        for (name, host) in [("shop", "shop.test"), ("blog", "blog.test"), ("wild", "*.blog.test")] {
            certificate(folder, name, host);
        }
        let files = |ending: &str| {
            let all = ["shop", "blog", "wild"]
                .map(|name| format!("\"{}\"", folder.path().join(format!("{name}.{ending}")).display()));
            all.join(", ")
        };
        format!("certificate = [{}]\nkey = [{}]", files("pem"), files("key"))
    };
    let site = Secure::run(keys, more);
    for (host, file) in [("shop.test", "shop"), ("blog.test", "blog"), ("www.blog.test", "wild")] {
        let authority = site.file(&format!("{file}.pem"));
        let (code, text) = curl(site.tls, host, "/page.html", &["--cacert", &authority]);
        assert!(code == 0 && text.contains("a page"), "{host}: {text}");
    }
    let shown = s_client(site.tls, &["-servername", "other.test"], REQUEST);
    assert!(shown.contains("CN = shop.test"), "the first is for every other name: {shown}");
    let shown = s_client(site.tls, &["-noservername"], REQUEST);
    assert!(shown.contains("CN = shop.test"), "{shown}");
    let checked = Plimsoll::output(&["check", &site.gateway.file().display().to_string()]);
    let warning = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(checked.status.success() && warning.contains("no certificate is for other.test"), "{warning}");
    assert_eq!(warning.matches("no certificate is for").count(), 1, "{warning}");
}

/// A connection that stays open while certificates change, held by openssl.
#[test]
fn new_certificates_are_used_without_a_reload_and_wrong_ones_are_not() {
    let mut site = Secure::shop();
    let first = fs::read(site.file("shop.pem")).expect("the certificate");
    let (code, _) = curl(site.tls, "shop.test", "/page.html", &["--cacert", &site.file("shop.pem")]);
    assert_eq!(code, 0);
    // A file that is no certificate: the earlier one stays, and the log says so.
    fs::write(site.file("shop.pem"), "no certificate\n").expect("written");
    site.gateway.process.wait_for("refusal", |log| {
        (log.contains("the earlier ones stay in use")
            && log.contains("shop.pem: there is no certificate in it"))
        .then_some(())
    });
    let kept = site.certificates.write("kept.pem", &first);
    let arguments = ["--cacert", &kept.display().to_string()];
    assert_eq!(curl(site.tls, "shop.test", "/page.html", &arguments).0, 0);
    // A reload refuses it too.
    let refused = site.gateway.post_reload();
    assert!(
        refused.text().contains("there is no certificate in it"),
        "{} {}",
        refused.status,
        refused.text()
    );
    // A new one with its key is used by the next handshake.
    certificate(&site.certificates, "shop", "shop.test");
    site.gateway.process.wait_for("renewal", |log| log.contains("handshakes use the new ones").then_some(()));
    assert_eq!(
        curl(site.tls, "shop.test", "/page.html", &arguments).0,
        60,
        "the first one is not shown any more"
    );
    let (code, text) = curl(site.tls, "shop.test", "/page.html", &["--cacert", &site.file("shop.pem")]);
    assert!(code == 0 && text.contains("a page"), "{text}");
}

/// A right to read a key leaves no trace in the file. As root everything can be read, so that what is mended here is the file
/// itself, with the time and the length that it had.
#[test]
fn what_is_mended_without_a_trace_is_used_and_what_is_wrong_is_told_once() {
    const REFUSED: &str = "the earlier ones stay in use";
    let mut site = Secure::shop();
    let (first, key) = (fs::read(site.file("shop.pem")).expect("the certificate"), site.file("shop.key"));
    let kept = site.certificates.write("kept.pem", &first).display().to_string();
    let (chain, right) = certificate(&site.certificates, "next", "shop.test");
    let right = fs::read(right).expect("its key");
    let written = SystemTime::now() - Duration::from_secs(60);
    let replace_key = |text: &[u8]| {
        let file = site.certificates.write("replacement", text);
        let open = fs::OpenOptions::new().write(true).open(&file).expect("the file");
        open.set_modified(written).expect("its time");
        fs::rename(file, &key).expect("it takes the key's place");
    };
    replace_key(&vec![b'?'; right.len()]);
    fs::rename(chain, site.file("shop.pem")).expect("it takes the first one's place");
    site.gateway.process.wait_for("refusal", |log| log.contains(REFUSED).then_some(()));
    std::thread::sleep(Duration::from_secs(5));
    assert_eq!(site.gateway.process.log().matches(REFUSED).count(), 1, "{}", site.gateway.process.log());
    assert_eq!(curl(site.tls, "shop.test", "/page.html", &["--cacert", &kept]).0, 0);
    replace_key(&right);
    site.gateway.process.wait_for("renewal", |log| log.contains("handshakes use the new ones").then_some(()));
    assert_eq!(curl(site.tls, "shop.test", "/page.html", &["--cacert", &site.file("shop.pem")]).0, 0);
}

#[test]
fn a_file_that_is_replaced_right_after_a_reload_that_names_it_is_used() {
    let site = Secure::shop();
    let next = named(&site.certificates, "next", "shop.test");
    let text = fs::read_to_string(site.gateway.file()).expect("the configuration");
    let (begin, end) =
        (text.find("certificate = ").expect("a key"), text.find("\n\n[upstream").expect("a key"));
    site.gateway.rewrite(&[&text[..begin], &next, &text[end..]].concat());
    // The files were looked at a moment ago, or will be in a moment.
    for wait in [0.3, 1.3] {
        assert_eq!(site.gateway.post_reload().status, 200);
        std::thread::sleep(Duration::from_secs_f64(wait));
        certificate(&site.certificates, "next", "shop.test");
        let arguments = ["--cacert", &site.file("next.pem")];
        let end = Instant::now() + Duration::from_secs(20);
        while curl(site.tls, "shop.test", "/page.html", &arguments).0 != 0 {
            assert!(Instant::now() < end, "it is never used:\n{}", site.gateway.process.log());
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn a_reload_under_keep_alive_loses_no_request() {
    let mut site = Secure::shop();
    let (pages, tls, authority) = (60, site.tls, site.file("shop.pem"));
    let client = std::thread::spawn(move || {
        let print = "%{http_code} %{num_connects}\n";
        let limit = ["--cacert", &authority, "--rate", "20/s", "-o", "/dev/null", "-w", print];
        curl(tls, "shop.test", &format!("/page.html?[1-{pages}]"), &limit)
    });
    for nth in 1..=3 {
        std::thread::sleep(Duration::from_millis(500));
        certificate(&site.certificates, "shop", "shop.test");
        site.gateway.hang_up(nth);
    }
    let (code, text) = client.join().expect("curl ends");
    assert_eq!(code, 0, "{text}");
    assert_eq!(text.matches("200 ").count(), pages, "{text}");
    let connections: usize =
        text.lines().filter_map(|line| line.split(' ').nth(1)?.parse::<usize>().ok()).sum();
    assert_eq!(connections, 1, "it is one connection: {text}");
}

/// Clients that keep their connections ask all the while, in each version of HTTP; each process serves some of it.
#[test]
fn an_upgrade_loses_no_request_over_tls() {
    let mut site = Secure::shop();
    let (pages, tls, authority) = (80, site.tls, site.file("shop.pem"));
    let clients: Vec<_> = ["--http1.1", "--http2"]
        .map(|version| {
            let authority = authority.clone();
            std::thread::spawn(move || {
                let print = "%{http_code} %{num_connects}\n";
                let limit =
                    [version, "--cacert", &authority, "--rate", "20/s", "-o", "/dev/null", "-w", print];
                curl(tls, "shop.test", &format!("/page.html?[1-{pages}]"), &limit)
            })
        })
        .into();
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(700));
        let old = site.gateway.pid();
        site.gateway.upgrade();
        site.gateway.wait_for_end_of(old);
    }
    for client in clients {
        let (code, text) = client.join().expect("curl ends");
        assert_eq!(code, 0, "{text}");
        assert_eq!(text.matches("200 ").count(), pages, "{text}");
        let connections: usize =
            text.lines().filter_map(|line| line.split(' ').nth(1)?.parse::<usize>().ok()).sum();
        assert!(connections >= 2, "one for each process that was replaced, at least: {text}");
    }
}

#[test]
fn clients_are_told_apart_by_their_certificates() {
    let more = "[[site]]\nname = \"site\"\n[[site.class]]\nname = \"partners\"\npriority = 1\n\
                match = { header = { x-client = \"partner.test\" } }\n[report]\nwhen = \"always\"\n\
                [access_log]\nfile = \"access.log\"\n";
    let keys = |folder: &Folder| {
        let own = named(folder, "shop", "shop.test");
        let authority = certificate(folder, "authority", "authority.test");
        signed_certificate(folder, "partner", "partner.test", &authority);
        certificate(folder, "stranger", "stranger.test");
        format!(
            "{own}\nclient_ca = \"{}\"\nclient_certificates = \"optional\"\nclient_header = \"x-client\"",
            authority.0.display()
        )
    };
    let mut site = Secure::run(keys, more);
    let authority = site.file("shop.pem");
    let ask = |who: Option<&str>, more: &[&str]| {
        let own = who.map(|who| [site.file(&format!("{who}.pem")), site.file(&format!("{who}.key"))]);
        let own: Vec<&str> =
            own.iter().flat_map(|[chain, key]| ["--cert", chain.as_str(), "--key", key]).collect();
        curl(site.tls, "shop.test", "/page.html", &[&["--cacert", &authority], &own[..], more].concat())
    };
    for version in ["--http1.1", "--http2"] {
        assert_eq!(ask(Some("partner"), &[version]).0, 0);
        assert_eq!(ask(None, &[version, "--header", "x-client: partner.test"]).0, 0);
        let (code, text) = ask(Some("stranger"), &[version]);
        assert_ne!(code, 0, "{text}");
    }
    site.gateway.wait_for_metric("plimsoll_in_flight", 0.0);
    assert!(site.gateway.stop().success());
    let log = site.gateway.file().parent().unwrap_or(Path::new("")).join("access.log");
    let lines = fs::read_to_string(log).expect("the log");
    let classes: Vec<bool> = lines.lines().map(|line| line.contains("\"partners\"")).collect();
    assert_eq!(classes, [true, false, true, false], "{lines}");
}

#[test]
fn requests_without_tls_are_redirected_and_those_with_it_are_told_to_stay() {
    let keys = |folder: &Folder| named(folder, "shop", "shop.test") + "\nredirect = 8443\nhsts = \"180d\"";
    let site = Secure::run(keys, "");
    let ask = |head: &str| exchange(site.gateway.address, head.replace('\n', "\r\n"));
    let page = ask("GET /page.html?a=b HTTP/1.1\nHost: shop.test:80\nConnection: close\n\n");
    assert_eq!((page.status, page.header("location")), (301, Some("https://shop.test:8443/page.html?a=b")));
    assert_eq!(page.header("strict-transport-security"), None);
    let order = ask("POST /order HTTP/1.1\nHost: shop.test\nContent-Length: 2\nConnection: close\n\nab");
    assert_eq!((order.status, order.header("location")), (308, Some("https://shop.test:8443/order")));
    let forged = ask("GET / HTTP/1.1\nHost: shop.test\nX-Forwarded-Proto: https\nConnection: close\n\n");
    assert_eq!(forged.status, 301);
    for head in ["GET /page.html HTTP/1.0\n\n", "GET /page.html HTTP/1.1\nHost:\nConnection: close\n\n"] {
        let no_host = ask(head);
        assert_eq!(
            (no_host.status, no_host.header("location")),
            (301, Some("https://shop.test:8443/page.html"))
        );
    }
    let proof = ask("GET /.well-known/acme-challenge/x HTTP/1.1\nHost: shop.test\nConnection: close\n\n");
    assert_eq!(proof.status, 404, "it is for the server behind");
    for version in ["--http1.1", "--http2"] {
        let arguments = ["--cacert", &site.file("shop.pem"), "--include", version];
        let (code, text) = curl(site.tls, "shop.test", "/page.html", &arguments);
        assert!(code == 0 && text.contains("strict-transport-security: max-age=15552000\r\n"), "{text}");
        assert!(text.contains(" 200"), "{text}");
    }
}

#[test]
fn a_configuration_says_which_file_is_wrong() {
    let folder = Folder::new();
    let (shop, shop_key) = certificate(&folder, "shop", "shop.test");
    let (_, other_key) = certificate(&folder, "other", "other.test");
    let refused = |keys: String| {
        let server = SocketAddr::from(([127, 0, 0, 1], 8));
        let file = folder.write("plimsoll.toml", configuration(server, &keys, ""));
        let output = Plimsoll::output(&["check", &file.display().to_string()]);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let (shop, shop_key, other_key) = (shop.display(), shop_key.display(), other_key.display());
    let missing = refused("certificate = \"none.pem\"\nkey = \"none.key\"".to_owned());
    assert!(missing.contains("none.pem: cannot be read") && missing.contains("[tls]"), "{missing}");
    let swapped = refused(format!("certificate = \"{shop_key}\"\nkey = \"{shop}\""));
    assert!(swapped.contains("shop.key: there is no certificate in it"), "{swapped}");
    let other = refused(format!("certificate = \"{shop}\"\nkey = \"{other_key}\""));
    assert!(other.contains("other.key: this is not the key of") && other.contains("shop.pem"), "{other}");
    let (old, old_key) = expired_certificate(&folder, "old", "shop.test");
    let expired = refused(format!("certificate = \"{}\"\nkey = \"{}\"", old.display(), old_key.display()));
    assert!(
        expired.contains("old.pem: the certificate expired ") && expired.contains(" days ago"),
        "{expired}"
    );
    let few = refused(format!("certificate = [\"{shop}\", \"{shop}\"]\nkey = \"{shop_key}\""));
    assert!(few.contains("1 keys are named for 2 certificates"), "{few}");
}
