//! The operator's listener through the binary: whom it answers, whose orders it takes, and that idle connections keep no probe
//! waiting; and `check`, which warns of an exemption for anybody.

use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{Folder, Plimsoll, Response, exchange, free_port};
use std::net::{SocketAddr, TcpStream};

/// The connections that the listener has at once.
const MOST: usize = 32;

fn configuration() -> String {
    before(SocketAddr::from(([127, 0, 0, 1], free_port())), &plain())
}

fn ask(gateway: &Plimsoll, line: &str, fields: &str) -> Response {
    exchange(gateway.admin, format!("{line} HTTP/1.1\r\n{fields}Connection: close\r\n\r\n"))
}

/// A page of somebody else that leads a browser here by a name of its own learns nothing and orders nothing.
#[test]
fn names_that_are_not_its_own_are_misdirected() {
    let gateway = Plimsoll::run(&configuration().replace("threads", "admin_names = \"*.ops.test\"\nthreads"));
    for line in ["GET /status", "GET /metrics", "GET /healthz", "GET /incidents", "POST /reload"] {
        for name in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "ops.test"] {
            let answer = ask(&gateway, line, &format!("Host: {name}:{}\r\n", gateway.admin.port()));
            assert_eq!(answer.status, 421, "{line} of {name}: {}", answer.text());
            assert!(!answer.text().contains("plimsoll_"), "{}", answer.text());
        }
        for name in ["localhost", "127.0.0.1", "[::1]", "a.OPS.test"] {
            assert_eq!(ask(&gateway, line, &format!("Host: {name}\r\n")).status, 200, "{line} of {name}");
        }
    }
}

#[test]
fn a_page_of_another_site_orders_no_reload() {
    let gateway = Plimsoll::run(&configuration());
    let own = gateway.admin;
    for other in [
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\n",
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
    ] {
        let answer = ask(&gateway, "POST /reload", &format!("Host: {own}\r\n{other}"));
        assert_eq!(answer.status, 403, "{other}: {}", answer.text());
    }
    let log = gateway.process.log();
    assert!(!log.contains("reloaded "), "{log}");
    for right in
        [String::new(), "Sec-Fetch-Site: same-origin\r\n".to_owned(), format!("Origin: http://{own}\r\n")]
    {
        assert_eq!(ask(&gateway, "POST /reload", &format!("Host: {own}\r\n{right}")).status, 200, "{right}");
    }
}

#[test]
fn idle_connections_keep_no_probe_waiting() {
    let gateway = Plimsoll::run(&configuration());
    let idle: Vec<TcpStream> =
        (0..MOST).map(|_| TcpStream::connect(gateway.admin).expect("a connection")).collect();
    // One more than there may be, several times: each takes the place of the oldest.
    for _ in 0..MOST + 3 {
        assert_eq!(gateway.ask_admin("/healthz").status, 200);
    }
    drop(idle);
}

#[test]
fn check_warns_of_an_exemption_for_anybody() {
    let folder = Folder::new();
    let check = |rule: &str| {
        let text = format!("{}\n[[site]]\nname = \"site\"\nexempt = [{rule}]\n", configuration());
        let file = folder.write("plimsoll.toml", text).display().to_string();
        let ran = Plimsoll::output(&["check", &file]);
        assert!(ran.status.success(), "{ran:?}");
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    };
    const WARNING: &str = "anybody may send what is `exempt`";
    let open = check("{ path = \"/healthz\" }");
    assert!(open.contains(WARNING), "{open}");
    let own = check("{ path = \"/healthz\", client = \"10.0.0.0/8\" }");
    assert!(!own.contains(WARNING), "{own}");
}
