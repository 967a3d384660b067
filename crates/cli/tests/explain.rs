//! `plimsoll explain`: on an example file, what it says of requests.

use std::path::PathBuf;
use std::process::{Command, Output};

fn explain(arguments: &[&str]) -> Output {
    explain_of("classes.toml", arguments)
}

fn explain_of(example: &str, arguments: &[&str]) -> Output {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example);
    Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .arg("explain")
        .arg(file)
        .args(arguments)
        .output()
        .expect("the binary runs")
}

/// What is printed, each run of blanks as one.
fn told(arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = explain(arguments);
    assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
    let text = String::from_utf8(stdout).expect("text");
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

#[test]
fn a_request_is_followed_to_its_class_and_levels() {
    let text = told(&[
        "--request",
        "GET /list?page=2",
        "--host",
        "WWW.shop.example:8080",
        "--header",
        "X-Plan: gold-2",
        "--cookie",
        "a=b",
        "--cookie",
        "session=42",
    ]);
    for line in [
        "site shop: it has `shop.example`, `*.shop.example`",
        "class gold: the header is `x-plan: gold*`",
        "not exempt, condition 1: the path is not `/healthz`",
        "not checkout: the path is none of `/buy/*`, `/cart`",
        "1 stale 0.0879 cache GET /list?page=2",
        "2 plain 1.0879 app GET /list?page=2, x-quality: low",
        "3 full 2.0879 app GET /list?page=2",
    ] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    assert!(text.contains("client the cookie `session`; its hash is 0.0879 of 1"), "{text}");
}

#[test]
fn who_is_exempt_and_who_has_no_site_is_told() {
    let probe = ["--request", "/healthz", "--host", "shop.example", "--client", "10.1.2.3"];
    let text = told(&probe);
    assert!(text.contains("class exempt: the path is `/healthz` and the client is `10.0.0.0/8`"), "{text}");
    assert!(text.contains("The level is always the highest level: it is exempt."), "{text}");
    assert!(text.contains("the address 10.1.2.3, since the request has no `session`"), "{text}");
    let json = explain(&[&probe[..], &["--json"]].concat());
    let json = String::from_utf8(json.stdout).expect("text");
    assert!(json.contains("\"exempt\": true") && json.contains("\"from_m\": null"), "{json}");
    // The second site has every other host.
    let text = told(&["--request", "/", "--host", "other.example"]);
    assert!(text.contains("site blog: it has every host") && text.contains("not shop, which has"), "{text}");
    assert!(text.contains("class default: what matches no class of its own"), "{text}");
}

#[test]
fn wrong_input_is_exit_code_2_and_what_to_write() {
    for (arguments, said) in [
        (&["--request", "GET"][..], "a method and a path that begins with /"),
        (&[][..], "not provided:\n  --request <METHOD /PATH>"),
        (&["--request", "/", "--client", "me"][..], "an IP address, such as 203.0.113.7"),
        (&["--requset", "/"][..], "'--request'"),
    ] {
        let Output { status, stderr, .. } = explain(arguments);
        let text = String::from_utf8_lossy(&stderr);
        assert!(status.code() == Some(2) && text.contains(said), "{arguments:?}: {text}");
    }
}

#[test]
fn what_a_class_was_promised_of_its_response_times_is_told() {
    let told = |host: &str, arguments: &[&str]| {
        let request = [&["--request", "/list", "--host", host][..], arguments].concat();
        String::from_utf8(explain_of("delays.toml", &request).stdout).expect("text")
    };
    let premium = ["--cookie", "plan=premium"];
    let text = told("shop.example", &premium);
    assert!(text.contains("promise 95 % of its responses within 200 ms\n"), "{text}");
    assert!(!told("shop.example", &[]).contains("promise"));
    let text = told("reports.example", &[]);
    assert!(text.contains("promise response times in the ratio of subscribers 1, default 2\n"), "{text}");
    let json = told("shop.example", &[&premium[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["promise"]["delay_seconds"], &json["promise"]["priority"]), (&0.2.into(), &1.into()));
}
