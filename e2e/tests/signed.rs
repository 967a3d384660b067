//! Classes and clients are told by a signed cookie only if its signature is right, and the documented one-line commands make
//! one.

use plimsoll_e2e::configuration::{before, plain};
use plimsoll_e2e::{Folder, Plimsoll, answering, exchange};
use std::fs;
use std::process::Command;

const KEY: &str = "0123456789abcdef0123456789abcdef0123";

/// The commands of the documentation, which sign the cookie `plan` with the value `gold` for a day by `signing.key`.
fn documented() -> Vec<String> {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/security.md");
    let page = fs::read_to_string(page).expect("docs/security.md");
    let signs = |block: &&str| block.contains("signing.key") && block.contains("sha256");
    let blocks = page.split("```").skip(1).step_by(2).filter(signs);
    blocks.map(|block| block.trim_start_matches("sh\n").to_owned()).collect()
}

/// The class in which a request with this cookie is served.
fn class(gateway: &Plimsoll, cookie: &str) -> String {
    let of = |class: &str| {
        let page = gateway.ask_admin("/metrics").text();
        let is_its = |line: &&str| {
            line.starts_with("plimsoll_requests_total{") && line.contains(&format!("class=\"{class}\""))
        };
        page.lines()
            .filter(is_its)
            .filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok())
            .sum::<f64>()
    };
    let before = of("gold");
    let head = format!(
        "GET / HTTP/1.1\r\nHost: e2e.test\r\nConnection: close\r\nCookie: theme=dark; plan={cookie}\r\n\r\n"
    );
    assert_eq!(exchange(gateway.address, head).status, 200);
    if of("gold") > before { "gold".to_owned() } else { "default".to_owned() }
}

#[test]
fn a_class_by_a_signed_cookie_cannot_be_chosen() {
    let folder = Folder::new();
    let key = folder.write("signing.key", format!("{KEY}\n"));
    let signed = format!("signed_cookies = \"plan\"\nsigning_key_file = \"{}\"\n\n[upstream", key.display());
    let file = before(answering(|_| "page"), &plain()).replacen("\n[upstream", &signed, 1)
        + "\n[[site]]\nname = \"site\"\nclient = \"cookie:plan\"\n\
           [[site.class]]\nname = \"gold\"\nmatch = { cookie = { plan = \"gold\" } }\n";
    let mut gateway = Plimsoll::run(&file);
    assert_eq!(class(&gateway, "gold"), "default", "an unsigned cookie");
    let commands = documented();
    assert_eq!(commands.len(), 2, "one for the shell and one for Python: {commands:?}");
    let mut token = String::new();
    for command in &commands {
        let ran = Command::new("bash").arg("-c").arg(command).current_dir(folder.path()).output();
        let ran = ran.expect("a shell");
        token = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
        assert_eq!(class(&gateway, &token), "gold", "{command}: {token} {ran:?}");
        assert_eq!(class(&gateway, &token.replace("gold", "good")), "default");
    }
    // The key is read again with the configuration.
    folder.write("signing.key", "another key, which is long enough to be one\n");
    gateway.hang_up(1);
    let log = gateway.process.log();
    assert!(log.contains("signed cookies and headers"), "{log}");
    // A thread takes new settings between two requests.
    let keeps = |_: &usize| class(&gateway, &token) == "gold";
    assert!((0..100).take_while(keeps).count() < 100, "the key has gone");
}

#[test]
fn check_tells_what_anybody_may_send_and_a_key_that_is_missing() {
    let folder = Folder::new();
    folder.write("k", "k".repeat(32));
    let check = |more: &str, class: &str| {
        let file = before("127.0.0.1:81".parse().expect("an address"), &plain());
        let file = file.replacen("\n[upstream", &format!("{more}\n[upstream"), 1)
            + &format!(
                "\n[[site]]\nname = \"site\"\n[[site.class]]\nname = \"gold\"\nmatch = {{ {class} }}\n"
            );
        let file = folder.write("plimsoll.toml", &file);
        let ran = Plimsoll::output(&["check", &file.display().to_string()]);
        String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned()
    };
    let cookie = "cookie = { plan = \"gold\" }";
    let open = check("", cookie);
    assert!(open.contains("anybody may send the header or cookie that decides the class `gold`"), "{open}");
    let signed = check("signed_cookies = \"plan\"\nsigning_key_file = \"k\"\n", cookie);
    assert!(signed.contains("is right.") && !signed.contains("anybody"), "{signed}");
    let trusted = check(
        "trusted_proxies = \"10.0.0.0/8\"\ntrusted_headers = \"x-plan\"\n",
        "header = { x-plan = \"gold\" }",
    );
    assert!(!trusted.contains("anybody"), "{trusted}");
    let of_proxies = check("", "header = { x-real-ip = \"9.9.9.9\" }");
    assert!(!of_proxies.contains("anybody"), "{of_proxies}");
    let keyless = check("signed_cookies = \"plan\"\n", cookie);
    assert!(keyless.contains("no key says which signatures are right"), "{keyless}");
}
