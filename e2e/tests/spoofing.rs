//! What clients write to seem to be somebody else, or to be served in another class: it counts as little as the configuration
//! says.

use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{Folder, Plimsoll, Response, answering, exchange};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take. Only a failure takes this long.
const PATIENCE: Duration = Duration::from_secs(30);
const KEY: &str = "0123456789abcdef0123456789abcdef0123";

/// A server that tells the heads that it gets, in lower case.
fn origin() -> (SocketAddr, Receiver<String>) {
    let (sender, heads) = mpsc::channel();
    let address = answering(move |head| {
        drop(sender.send(head.to_owned()));
        "page"
    });
    (address, heads)
}

/// A gateway before that server, with these keys of the gateway and these sections.
fn gateway(keys: &str, sections: &str) -> (Plimsoll, Receiver<String>) {
    let (origin, heads) = origin();
    let file = before(origin, &plain()).replacen("\n[upstream", &format!("{keys}\n\n[upstream"), 1);
    (Plimsoll::run(&(file + sections)), heads)
}

fn ask(gateway: &Plimsoll, target: &str, fields: &str) -> Response {
    let head = format!("GET {target} HTTP/1.1\r\nHost: e2e.test\r\n{fields}Connection: close\r\n\r\n");
    exchange(gateway.address, head)
}

/// The head of the next request that the server gets.
fn got(heads: &Receiver<String>) -> String {
    heads.recv_timeout(PATIENCE).expect("a request at the server")
}

/// How many requests were decided in this class.
fn decided(gateway: &Plimsoll, class: &str) -> usize {
    let page = gateway.ask_admin("/metrics").text();
    let of_class = page.lines().filter(|line| {
        line.starts_with("plimsoll_requests_total{") && line.contains(&format!("class=\"{class}\""))
    });
    of_class.filter_map(|line| line.rsplit(' ').next()?.parse::<usize>().ok()).sum()
}

/// Whether a request is served in the class `gold`.
fn is_gold(gateway: &Plimsoll, fields: &str) -> bool {
    let before = decided(gateway, "gold");
    assert_eq!(ask(gateway, "/", fields).status, 200, "{fields}");
    decided(gateway, "gold") > before
}

/// A site with a class for whom this condition holds.
fn gold(condition: &str) -> String {
    format!("\n[[site]]\nname = \"site\"\n[[site.class]]\nname = \"gold\"\nmatch = {{ {condition} }}\n")
}

const FROM_NINE: &str = "client = \"9.9.9.0/24\"";

#[test]
fn behind_a_proxy_that_sets_forwarded_alone_a_made_up_x_forwarded_for_is_not_believed() {
    let keys = "trusted_proxies = \"127.0.0.0/8\"\nreal_ip_header = \"forwarded\"\nforwarded = \"both\"";
    let (gateway, heads) = gateway(keys, &gold(FROM_NINE));
    let forged = "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: forged\r\nX-Forwarded-Host: forged.test\r\n";
    assert!(!is_gold(&gateway, &format!("{forged}Forwarded: for=6.6.6.6\r\n")));
    let head = got(&heads);
    assert!(!head.contains("9.9.9.9") && !head.contains("forged"), "{head}");
    assert!(head.contains("\r\nx-forwarded-for: 6.6.6.6, 127.0.0.1\r\n"), "{head}");
    // A client that is in the chain twice is the last that no proxy of ours added.
    assert!(!is_gold(&gateway, "Forwarded: for=9.9.9.9, for=6.6.6.6\r\n"));
    assert!(!is_gold(&gateway, forged), "a proxy that says nothing is the client itself");
    assert!(is_gold(&gateway, "Forwarded: for=9.9.9.9\r\n"), "what the proxy says is believed");
}

#[test]
fn behind_a_proxy_that_sets_x_forwarded_for_a_made_up_forwarded_is_not_believed() {
    let (gateway, heads) =
        gateway("trusted_proxies = \"127.0.0.0/8\"\nforwarded = \"both\"", &gold(FROM_NINE));
    assert!(!is_gold(&gateway, "Forwarded: for=9.9.9.9;proto=forged\r\nX-Forwarded-For: 6.6.6.6\r\n"));
    let head = got(&heads);
    assert!(!head.contains("9.9.9.9") && !head.contains("forged"), "{head}");
    assert!(is_gold(&gateway, "X-Forwarded-For: 9.9.9.9\r\n"));
}

#[test]
fn a_client_that_is_no_proxy_is_believed_nothing() {
    let (gateway, heads) = gateway("trusted_proxies = \"10.0.0.0/8\"", &gold(FROM_NINE));
    assert!(!is_gold(&gateway, "X-Forwarded-For: 9.9.9.9\r\nForwarded: for=9.9.9.9\r\n"));
    let head = got(&heads);
    assert!(head.contains("\r\nx-forwarded-for: 127.0.0.1\r\n") && !head.contains("9.9.9.9"), "{head}");
}

/// The requests from which the cost of each type was learned.
fn types(gateway: &Plimsoll) -> Vec<(String, u64)> {
    let status: serde_json::Value =
        serde_json::from_str(&gateway.ask_admin("/status").text()).expect("a status");
    let types = status["sites"][0]["types"].as_array().expect("types").iter();
    let row = |one: &serde_json::Value| {
        Some((one["name"].as_str()?.to_owned(), one["requests"].as_u64()?))
            .filter(|(_, requests)| *requests > 0)
    };
    let mut types: Vec<_> = types.filter_map(row).collect();
    types.sort();
    types
}

#[test]
fn however_a_path_is_spelled_it_keeps_its_class_and_its_type_and_goes_on_as_it_came() {
    let sections = "\n[[site]]\nname = \"site\"\ndeadline = \"20s\"\n\
                    [[site.type]]\nname = \"report\"\nmatch = { path = \"/report\" }\n\
                    [[site.class]]\nname = \"search\"\nmatch = { path = \"/search\" }\n";
    let (gateway, heads) = gateway("", sections);
    let search = ["/search", "/%73earch", "//search", "/;a/search", "/search;x=1", "/%53earch/../search"];
    for (count, path) in search.iter().enumerate().take(5) {
        assert_eq!(ask(&gateway, path, "").status, 200, "{path}");
        assert_eq!(decided(&gateway, "search"), count + 1, "{path}");
        let head = got(&heads);
        assert!(head.starts_with(&format!("GET {path} HTTP/1.1\r\n")), "{path}: {head}");
    }
    assert_eq!(ask(&gateway, search[5], "").status, 400, "what a server may resolve is refused");
    // The five searches have no extension: programs make them, as they do what follows a program's name.
    for path in ["/%72eport", "//report", "/report", "/index.php/a.css", "/a.css"] {
        assert_eq!(ask(&gateway, path, "").status, 200, "{path}");
    }
    let expected =
        [("dynamic", 6), ("report", 3), ("static", 1)].map(|(name, count)| (name.to_owned(), count));
    let start = Instant::now();
    while types(&gateway) != expected {
        assert!(start.elapsed() < PATIENCE, "{:?}", types(&gateway));
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_header_that_connection_names_counts_for_no_class_and_goes_nowhere() {
    let (gateway, heads) = gateway("", &gold("header = { x-plan = \"gold\" }"));
    assert!(is_gold(&gateway, "X-Plan: gold\r\n"));
    assert!(got(&heads).to_lowercase().contains("x-plan"));
    assert!(!is_gold(&gateway, "X-Plan: gold\r\nConnection: x-plan\r\n"));
    assert!(!got(&heads).to_lowercase().contains("x-plan"));
}

/// A token as the documentation says: `value.expiry.signature` of `name=value.expiry`.
fn token(name: &str, value: &str) -> String {
    let script = "signed=\"$2.$(($(date +%s) + 600))\"; printf %s \"$signed.\"; printf %s \"$1=$signed\" | \
                  openssl dgst -sha256 -hmac \"$3\" -binary | basenc --base64url | tr -d =";
    let ran = Command::new("sh").args(["-c", script, "sh", name, value, KEY]).output().expect("a shell");
    assert!(ran.status.success(), "{ran:?}");
    String::from_utf8_lossy(&ran.stdout).trim().to_owned()
}

#[test]
fn a_header_that_must_be_signed_counts_only_so() {
    let folder = Folder::new();
    let key = folder.write("signing.key", format!("{KEY}\n"));
    let keys = format!("signed_headers = \"x-plan\"\nsigning_key_file = \"{}\"", key.display());
    let (gateway, heads) = gateway(&keys, &gold("header = { x-plan = \"gold\" }"));
    let right = token("x-plan", "gold");
    assert!(is_gold(&gateway, &format!("X-Plan: {right}\r\n")));
    assert!(got(&heads).contains(&right), "it goes on as it came");
    // Gold by the signature of another value.
    let forged = token("x-plan", "iron").replacen("iron", "gold", 1);
    for wrong in ["gold", &forged, &token("x-other", "gold"), &right[..right.len() - 1], "gold.9999999999."] {
        assert!(!is_gold(&gateway, &format!("X-Plan: {wrong}\r\n")), "{wrong}");
    }
}

#[test]
fn a_trusted_header_counts_from_a_trusted_proxy_alone() {
    let rule = gold("header = { x-plan = \"gold\" }");
    let keys = "trusted_headers = \"x-plan\"\ntrusted_proxies = ";
    let (behind_proxy, _heads) = gateway(&format!("{keys}\"127.0.0.1/32\""), &rule);
    assert!(is_gold(&behind_proxy, "X-Plan: gold\r\n"));
    let (open, heads) = gateway(&format!("{keys}\"10.0.0.0/8\""), &rule);
    assert!(!is_gold(&open, "X-Plan: gold\r\n"));
    assert!(got(&heads).to_lowercase().contains("x-plan: gold"), "it is forwarded all the same");
}

/// What clients write about where they are from counts as little for classes as for servers, named in `trusted_headers` or not.
#[test]
fn what_a_client_writes_about_where_it_is_from_gives_no_class() {
    let told = ["X-Real-IP", "X-Forwarded-User", "X-Forwarded-Proto", "Forwarded"];
    for name in told {
        let rule = gold(&format!("header = {{ {name} = \"gold\" }}"));
        let field = format!("{name}: gold\r\n");
        let (open, heads) = gateway("", &rule);
        assert!(!is_gold(&open, &field), "{field}");
        let head = got(&heads);
        assert!(!head.contains("gold"), "{head}");
        let (behind_proxy, heads) = gateway("trusted_proxies = \"127.0.0.1/32\"", &rule);
        // The field that the proxies do not write is their clients'.
        let is_believed = name != "Forwarded";
        assert_eq!(is_gold(&behind_proxy, &field), is_believed, "{field}");
        assert_eq!(got(&heads).contains("gold"), is_believed, "{field}");
    }
}

/// The client that a request with this cookie is counted for, and its hash, by which its luck is drawn.
fn luck(file: &str, cookie: &str) -> (String, String) {
    let arguments =
        ["explain", file, "--json", "--request", "/", "--client", "203.0.113.7", "--cookie", cookie];
    let ran = Plimsoll::output(&arguments);
    assert!(ran.status.success(), "{ran:?}");
    let told: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert!(!told["hash"].is_null(), "{told}");
    (told["client"].to_string(), told["hash"].to_string())
}

/// One of 156 cookies would almost surely be of the luckiest fortieth. With a signed cookie they are all one client.
#[test]
fn luck_cannot_be_bought_with_156_tries() {
    const TRIES: u32 = 156;
    let folder = Folder::new();
    folder.write("signing.key", format!("{KEY}\n"));
    let site = "\n[[site]]\nname = \"site\"\nclient = \"cookie:session\"\n";
    let file = |name: &str, keys: &str| {
        let (address, _) = origin();
        let text =
            before(address, &plain()).replacen("\n[upstream", &format!("seed = 7\n{keys}\n[upstream"), 1);
        folder.write(name, text + site).display().to_string()
    };
    let open = file("open.toml", "");
    let signed = file("signed.toml", "signed_cookies = \"session\"\nsigning_key_file = \"signing.key\"\n");
    let lucks = |file: &str, cookies: &[String]| -> BTreeSet<(String, String)> {
        cookies.iter().map(|cookie| luck(file, &format!("session={cookie}"))).collect()
    };
    let tries: Vec<String> = (0..TRIES).map(|number| number.to_string()).collect();
    assert_eq!(lucks(&open, &tries).len(), TRIES as usize, "each cookie is a client where none is signed");
    assert_eq!(lucks(&signed, &tries).len(), 1);
    let tokens = ["7", "8", "9"].map(|value| token("session", value));
    assert_eq!(lucks(&signed, &tokens).len(), tokens.len(), "who is known keeps a luck of his own");
}

#[test]
fn methods_in_small_letters_are_refused_and_as_many_fields_are_taken_as_by_others() {
    let (gateway, heads) = gateway("", "");
    for method in ["head", "Get", "TRACE"] {
        let head = format!("{method} / HTTP/1.1\r\nHost: e2e.test\r\nConnection: close\r\n\r\n");
        let expected = if method == "TRACE" { 405 } else { 400 };
        assert_eq!(exchange(gateway.address, head).status, expected, "{method}");
    }
    // `Host` and `Connection` count too.
    for (fields, status) in [(129, 200), (256, 200), (257, 431)] {
        let lines: String = (0..fields - 2).map(|number| format!("X-{number}: {number}\r\n")).collect();
        assert_eq!(ask(&gateway, "/", &lines).status, status, "{fields} fields");
        if status == 200 {
            let head = got(&heads);
            assert_eq!(head.matches("\r\nX-").count(), fields - 2, "{head}");
        }
    }
    assert!(heads.try_recv().is_err(), "what is refused reaches no server");
    let page = ask(&gateway, "/caf\u{e9}", "");
    assert_eq!(page.status, 200, "a path in UTF-8");
    assert!(got(&heads).starts_with("GET /caf\u{e9} "));
}
