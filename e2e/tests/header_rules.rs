//! Header rules before a real nginx and a folder, for curl over HTTP/1.1 and HTTP/2.

use plimsoll_e2e::{Folder, Nginx, Plimsoll, program};
use std::process::Command;

const RULES: &str = "request_headers = { set = { x-site = \"shop\" }, add = { x-tag = \"a\" }, remove = \"x-secret\" }\n\
                     response_headers = { set = { x-frame-options = \"DENY\" }, remove = [\"server\", \"x-inside\"] }\n";

/// The answer of `curl --include`, its head in lower case.
fn ask(gateway: &Plimsoll, version: &str, path: &str) -> String {
    let ran = Command::new(program("curl"))
        .args(["--silent", "--show-error", "--include", "--max-time", "30", "--noproxy", "*", version])
        .args(["-H", "X-Site: made-up", "-H", "X-Secret: 1", "-H", "Host: shop.test"])
        .arg(format!("http://{}{path}", gateway.address))
        .output()
        .unwrap_or_else(|error| panic!("cannot run curl: {error}"));
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8_lossy(&ran.stdout).to_ascii_lowercase()
}

fn values<'a>(answer: &'a str, name: &str) -> Vec<&'a str> {
    let field = |line: &'a str| line.split_once(": ").filter(|(found, _)| *found == name);
    answer.lines().filter_map(field).map(|(_, value)| value.trim_end()).collect()
}

/// A gateway before this upstream or folder, with rules for the whole gateway and for the site.
fn gateway(plant: &str, site: &str) -> Plimsoll {
    Plimsoll::run(&format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nthreads = 1\nh2c = true\n{RULES}\n{plant}\n\n\
         [[site]]\nname = \"shop\"\n{site}\n"
    ))
}

/// nginx writes the fields that it was sent into its own, so that the test sees both directions.
#[test]
fn a_servers_messages_are_changed_both_ways_over_both_protocols() {
    let server = "location / { add_header x-saw \"$http_x_site|$http_x_secret|$http_x_tag\" always;\n\
                  add_header x-inside 10.0.0.1; add_header x-frame-options ALLOW; return 200 page; }";
    let server = Nginx::logging(Folder::new().path(), None, ("", server));
    let plant = format!("[upstream.app]\naddress = \"{}\"\ncapacity = {{ workers = 8 }}", server.address);
    let own = "response_headers = { add = { x-site-says = [\"hello\", \"again\"] } }";
    let gateway = gateway(&plant, own);
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        let answer = ask(&gateway, version, "/");
        assert_eq!(values(&answer, "x-saw"), ["shop||a"], "{version}: {answer}");
        assert_eq!(values(&answer, "x-frame-options"), ["deny"], "{version}: {answer}");
        assert_eq!(values(&answer, "x-site-says"), ["hello", "again"], "{version}: {answer}");
        for gone in ["server", "x-inside"] {
            assert!(values(&answer, gone).is_empty(), "{version}: {answer}");
        }
        assert!(answer.ends_with("page"), "{version}: {answer}");
    }
}

/// Files, and the answer where there is none, get the rules of the site; a request that the gateway refuses does not.
#[test]
fn files_get_rules_and_refusals_do_not() {
    let folder = Folder::new();
    folder.write("page.html", "<p>a page</p>\n");
    let plant = format!("[folder.pages]\nroot = \"{}\"", folder.path().display());
    let site = "host = \"shop.test\"\nresponse_headers = { set = { cache-control = \"max-age=60\" }, remove = \"etag\" }";
    let gateway = gateway(&plant, site);
    for version in ["--http1.1", "--http2-prior-knowledge"] {
        for (path, status) in [("/page.html", "200"), ("/none", "404")] {
            let answer = ask(&gateway, version, path);
            assert_eq!(answer.split(' ').nth(1), Some(status), "{version}: {answer}");
            assert_eq!(values(&answer, "x-frame-options"), ["deny"], "{version}: {answer}");
            assert_eq!(values(&answer, "cache-control"), ["max-age=60"], "{version}: {answer}");
            assert!(values(&answer, "etag").is_empty(), "{version}: {answer}");
        }
    }
    let other = plimsoll_e2e::exchange(
        gateway.address,
        "GET / HTTP/1.1\r\nHost: other.test\r\nConnection: close\r\n\r\n",
    );
    assert_eq!((other.status, other.header("x-frame-options")), (421, None));
}
