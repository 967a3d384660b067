//! The dashboard in a real browser: it shows what the gateway does and what happens to it, is usable without a mouse, and has
//! accessible names and contrasts. States are judged, and not when they come.

use plimsoll_e2e::{Browser, PlayedUpstream, Plimsoll, answering, exchange, free_port};
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A server that takes so long for a page, and less for a light one.
const FULL: Duration = Duration::from_millis(60);
const LIGHT: Duration = Duration::from_millis(4);
/// Clients at once, each with this pause between its requests: three times what full pages may take.
const CLIENTS: u32 = 24;
const PAUSE: Duration = Duration::from_millis(150);

fn upstream() -> SocketAddr {
    answering(|head| {
        thread::sleep(if head.starts_with("GET /light/") { LIGHT } else { FULL });
        "page"
    })
}

fn configuration(upstream: SocketAddr, admin: u16) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:{admin}\"\nthreads = 1\n\n\
         [upstream.app]\naddress = \"{upstream}\"\ncapacity = {{ workers = 2, load_line = 0.8 }}\n\n\
         [[site]]\nname = \"shop\"\nclient = \"cookie:session\"\n\n\
         [[site.level]]\nname = \"light\"\nprefix = \"/light\"\n\n[[site.level]]\nname = \"full\"\n\n\
         [[site.class]]\nname = \"hurried\"\nmatch = {{ path = \"/now\" }}\ndelay = \"20ms\"\n"
    )
}

/// Clients that come again and again until this value is dropped.
struct Crowd {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

impl Crowd {
    fn at(address: SocketAddr, path: &'static str, count: u32) -> Crowd {
        let (stop, session) = (Arc::<AtomicBool>::default(), Arc::<AtomicU32>::default());
        let clients = (0..count).map(|_| {
            let (stop, session) = (stop.clone(), session.clone());
            thread::spawn(move || {
                while !stop.load(Relaxed) {
                    let number = session.fetch_add(1, Relaxed);
                    let fields =
                        format!("Host: shop\r\nCookie: session={number}\r\nConnection: close\r\n\r\n");
                    exchange(address, format!("GET {path} HTTP/1.1\r\n{fields}"));
                    thread::sleep(PAUSE);
                }
            })
        });
        Crowd { clients: clients.collect(), stop }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        self.clients.drain(..).for_each(|client| drop(client.join()));
    }
}

fn open(gateway: &Plimsoll) -> Browser {
    let mut browser = Browser::start(gateway.admin);
    let viewed = browser.view(&format!("http://{}/", gateway.admin));
    assert!(viewed.errors.is_empty() && viewed.failed.is_empty(), "{viewed:?}");
    browser.wait_for("document.querySelector('#link').dataset.live === 'true'");
    browser
}

/// Whether the promise whose row begins so is in this state.
fn is(who: &str, state: &str) -> String {
    format!(
        "[...document.querySelectorAll('#rows tbody tr')].some(row => row.dataset.state === '{state}' && row.querySelector('.open').textContent === '{who}')"
    )
}

fn happened(kind: &str, times: usize) -> String {
    format!("document.querySelectorAll('#events [data-kind={kind}]').length === {times}")
}

#[test]
fn the_page_shows_a_step_a_broken_promise_a_reload_and_a_restart() {
    let (upstream, admin) = (upstream(), free_port());
    let mut gateway = Plimsoll::run(&configuration(upstream, admin));
    let mut browser = open(&gateway);
    browser.wait_for("document.querySelectorAll('#rows tbody tr').length === 2");
    browser.wait_for(&happened("started", 1));

    let crowd = Crowd::at(gateway.address, "/page", CLIENTS);
    browser.wait_for("/% of requests on light/.test(document.querySelector('#rows').textContent)");
    assert_eq!(browser.evaluate(&is("shop", "missed")), json!(false), "the load line stays");
    browser.wait_for("/% light/.test(document.querySelector('#traffic').textContent)");
    drop(crowd);

    let crowd = Crowd::at(gateway.address, "/now", 2);
    browser.wait_for(&is("shop / hurried", "missed"));
    // The terminal says the same.
    let top = Plimsoll::output(&["top", &gateway.admin.to_string(), "--once"]);
    let top = String::from_utf8_lossy(&top.stdout).into_owned();
    let first =
        top.lines().find(|line| line.starts_with("MISSED")).unwrap_or_else(|| panic!("none in {top}"));
    assert!(first.contains("shop/hurried") && first.contains("20.0 ms on average"), "{top}");
    browser.wait_for("document.querySelector('#verdict').dataset.state === 'missed'");
    browser.wait_for("document.querySelector('#rows tbody tr').dataset.state === 'missed'");
    browser.wait_for(&happened("promise-missed", 1));
    drop(crowd);

    gateway.hang_up(1);
    browser.wait_for(&happened("reloaded", 1));

    assert!(gateway.stop().success());
    browser.wait_for("document.querySelector('#link').textContent.startsWith('no answer')");
    let again = Plimsoll::run_again(&gateway, &configuration(upstream, admin));
    browser.wait_for("document.querySelector('#link').dataset.live === 'true'");
    browser.wait_for(&happened("started", 2));
    drop(again);
}

/// Puts a text into one of the page's file fields.
fn choose(name: &str, text: &str) -> String {
    let text = json!(text);
    format!(
        "(() => {{ const files = new DataTransfer(); files.items.add(new File([{text}], '{name}.txt')); \
         document.querySelector('#ask [name={name}]').files = files.files; }})()"
    )
}

#[test]
fn what_if_simulates_a_log_beside_the_gateway() {
    let gateway = Plimsoll::run(&configuration(upstream(), free_port()));
    let mut browser = open(&gateway);
    // Forty requests a second of 60 ms before two workers, three times.
    let line = |number: u32| {
        let (minute, second) = (number / 2400, number / 40 % 60);
        let time = format!("25/Nov/2026:10:{minute:02}:{second:02} +0000");
        format!(
            "10.0.{}.{} - - [{time}] \"GET /page HTTP/1.1\" 200 1000 \"-\" \"-\" 0.060\n",
            number % 200,
            number % 250
        )
    };
    let log: String = (0..4800).map(line).collect();
    browser.evaluate("document.querySelector('#what-if').closest('details').open = true");
    browser.evaluate(&choose("log", &log));
    browser.evaluate(&choose("configuration", "[gateway]\nlisten = 7\n"));
    browser.evaluate("document.querySelector('#start').click()");
    browser.wait_for("/listen = 7/.test(document.querySelector('#wrong').textContent)");
    browser.evaluate(&choose("configuration", &configuration(gateway.address, 1)));
    browser.evaluate("document.querySelector('#start').click()");
    browser.wait_for("!document.querySelector('#report').hidden");
    assert_eq!(browser.evaluate("document.querySelector('#wrong').hidden"), json!(true));
    let report = gateway.ask_admin("/what-if/report");
    assert!(report.text().contains("14,400"), "the requests of the log, three times each");
    let policy = report.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("sandbox allow-scripts"), "{policy}");
    // Nothing of it has touched the gateway.
    assert_eq!(gateway.metric("plimsoll_requests_total"), 0.0);
}

#[test]
fn the_page_is_used_with_keys_and_has_names_and_contrasts() {
    let gateway = Plimsoll::run(&configuration(upstream(), 0));
    let mut browser = open(&gateway);
    let _crowd = Crowd::at(gateway.address, "/page", 4);
    browser.wait_for("document.querySelectorAll('#plots figure').length >= 4");

    browser.evaluate("document.querySelector('#traffic .open').focus()");
    browser.press("Enter", 13);
    browser.wait_for(
        "document.activeElement.id === 'loop' && /hurried/.test(document.activeElement.textContent)",
    );
    browser.evaluate("document.querySelector('.plot').focus()");
    browser.press("ArrowLeft", 37);
    browser.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)");
    browser.wait_for("[...document.querySelectorAll('.data')].every(one => one.querySelector('tbody tr'))");
    browser.evaluate("document.querySelector('#pause').focus()");
    browser.press("Enter", 13);
    browser.wait_for("document.querySelector('#pause').textContent.startsWith('Paused at')");

    let axe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboard/node_modules/axe-core/axe.min.js");
    let axe = std::fs::read_to_string(&axe)
        .unwrap_or_else(|error| panic!("{}: {error}: run `make deps`", axe.display()));
    browser.evaluate(&axe);
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")] {
        browser.show_as(width, scheme);
        let found = browser.evaluate(
            "axe.run().then(found => found.violations.map(one => [one.id, one.nodes.map(node => node.html)]))",
        );
        assert_eq!(found, json!([]), "at a width of {width}, {scheme}");
        let over = browser.evaluate("document.documentElement.scrollWidth > innerWidth");
        assert_eq!(over, json!(false), "wider than {width}");
    }
}

/// A server that fails all requests keeps the load line well, and that is no good news.
#[test]
fn a_server_that_fails_is_no_green_headline() {
    let server = PlayedUpstream::new();
    let address = server.address();
    thread::spawn(move || {
        loop {
            let (mut stream, _) = server.request();
            let failed =
                b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = std::io::Write::write_all(&mut stream, failed);
        }
    });
    let gateway = Plimsoll::run(&configuration(address, free_port()));
    let mut browser = open(&gateway);
    let crowd = Crowd::at(gateway.address, "/page", 2);
    browser.wait_for(
        "/^The server fails [0-9]+ % of requests; /.test(document.querySelector('#verdict').textContent)",
    );
    assert_eq!(browser.evaluate("document.querySelector('#verdict').dataset.state"), json!("missed"));
    browser.wait_for(
        "/% full; [0-9]+ % failed by the server/.test(document.querySelector('#traffic').textContent)",
    );
    let top = Plimsoll::output(&["top", &gateway.admin.to_string(), "--once"]);
    let top = String::from_utf8_lossy(&top.stdout).into_owned();
    assert!(top.lines().next().is_some_and(|head| head.contains("the server fails ")), "{top}");
    drop(crowd);
}
