//! `plimsoll explain`: on an example file, what it says of requests.

mod support;

use std::process::Output;
use support::{binary, done, example, failed, has, of_repository, temporary, without_types};

fn explain(arguments: &[&str]) -> Output {
    explain_of("classes.toml", arguments)
}

fn explain_of(example: &str, arguments: &[&str]) -> Output {
    let file = of_repository("examples").join(example);
    binary().arg("explain").arg(file).args(arguments).output().expect("the binary runs")
}

/// What is printed, each run of blanks as one.
fn explained(arguments: &[&str]) -> String {
    explained_by("classes.toml", arguments)
}

fn explained_by(example: &str, arguments: &[&str]) -> String {
    let text = done(&explain_of(example, arguments));
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect()
}

/// The example with a seed, and where it is.
fn with_a_seed() -> String {
    let text = example("classes.toml").replacen("[gateway]\n", "[gateway]\nseed = 0\n", 1);
    temporary("with-a-seed.toml", &text).into_os_string().into_string().expect("text")
}

#[test]
fn a_request_is_followed_to_its_class_and_levels() {
    let unknown = explained(&["--request", "/", "--host", "shop.example"]);
    let drawn = "its hash is not known until `plimsoll run` has drawn the seed";
    assert!(unknown.contains(drawn) && unknown.contains("3 full - app GET /"), "{unknown}");
    let text = explained_by(
        &with_a_seed(),
        &[
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
        ],
    );
    let lines = [
        "site shop: it has `shop.example`, `*.shop.example`",
        "class gold: the header is `x-plan: gold*`",
        "not exempt, condition 1: the path is not `/healthz`",
        "not checkout: the path is none of `/buy/*`, `/cart`",
        "0 rejection - - answered with 503",
        "1 stale - cache GET /list?page=2",
        "2 plain 1.0879 app GET /list?page=2, x-quality: low",
        "3 full 2.0879 app GET /list?page=2",
    ];
    has(&text, &lines);
    assert!(text.contains("client the cookie `session`; its hash is 0.0879 of 1"), "{text}");
    // Each upstream has its own m.
    assert!(text.contains("which its loop sets: app (1 to 3), then cache (0 to 1)."), "{text}");
    assert!(text.contains("\"From m\" is the m of app."), "{text}");
}

#[test]
fn who_is_exempt_and_who_has_no_site_is_explained() {
    let probe = ["--request", "/healthz", "--host", "shop.example", "--client", "10.1.2.3"];
    let text = explained(&probe);
    assert!(text.contains("class exempt: the path is `/healthz` and the client is `10.0.0.0/8`"), "{text}");
    assert!(text.contains("The level is always the highest level: it is exempt."), "{text}");
    assert!(text.contains("the address 10.1.2.3, since the request has no `session`"), "{text}");
    let json = done(&explain(&[&probe[..], &["--json"]].concat()));
    assert!(json.contains("\"exempt\": true") && json.contains("\"from_m\": null"), "{json}");
    assert!(text.contains("2 plain - app GET /healthz\n"), "{text}");
    assert!(text.contains("It goes as it came, without a level's prefix and headers."), "{text}");
    let prefixed = explained_by("one-site.toml", &["--request", "/healthz", "--client", "10.1.2.3"]);
    assert!(prefixed.contains("1 light - app GET /healthz\n"), "no prefix: {prefixed}");
    // The second site has every other host.
    let text = explained(&["--request", "/", "--host", "other.example"]);
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
        failed(&explain(arguments), 2, &[said]);
    }
}

#[test]
fn what_a_class_was_promised_of_its_response_times_is_explained() {
    let explained = |host: &str, arguments: &[&str]| {
        let request = [&["--request", "/list", "--host", host][..], arguments].concat();
        done(&explain_of("delays.toml", &request))
    };
    let premium = ["--cookie", "plan=premium"];
    let text = explained("shop.example", &premium);
    assert!(text.contains("promise 95 % of its responses within 200 ms\n"), "{text}");
    assert!(!explained("shop.example", &[]).contains("promise"));
    let text = explained("reports.example", &[]);
    assert!(text.contains("promise response times in the ratio of subscribers 1, default 2\n"), "{text}");
    let json = explained("shop.example", &[&premium[..], &["--json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["promise"]["delay_seconds"], &json["promise"]["priority"]), (&0.2.into(), &1.into()));
}

#[test]
fn a_type_that_was_found_is_recognized_by_a_saved_status() {
    let config = temporary("explain-found.toml", &without_types());
    let found = r#"{"upstreams":[{"name":"app","limit":6,"limit_reason":"refusals"}],"sites":[{"name":"shop","found_types":[{"name":"item-report","within":"dynamic",
        "path":["/item/*/report"],"method":["POST"],"query":["deep"]}],
        "types":[{"name":"item-report","requests":900,"in_time_alone":0.925},{"name":"dynamic","requests":9}]}]}"#;
    let status = temporary("explain-status.json", found);
    let explained = |request: &str, saved: bool| {
        let mut command = binary();
        command.arg("explain").arg(&config).args(["--request", request]);
        let command = if saved { command.arg("--status").arg(&status) } else { &mut command };
        done(&command.output().expect("the binary runs"))
    };
    let request = "POST /item/7/report?page=2&deep=1";
    let text = explained(request, true);
    assert!(
        text.contains(
            "item-report: the method is `POST` and the path is `/item/*/report` and a key of the query is `deep`; by it \
             what it will cost is estimated (it was found)"
        ),
        "{text}"
    );
    let differs =
        "requests of type `item-report` cost too differently for the deadline: 7.5 % of them are late";
    assert!(text.contains(differs), "{text}");
    let limit = "limit   app is given at most 6 requests at once (refusals): it refuses more\n";
    assert!(text.contains(limit), "{text}");
    let other = explained("POST /item/7/report", true);
    assert!(!other.contains("too differently"), "{other}");
    assert!(
        other.contains("dynamic: by it what it will cost is estimated (none that was found has it)"),
        "{other}"
    );
    let without = explained(request, false);
    assert!(
        without.contains("dynamic: by it what it will cost is estimated, unless a type is found"),
        "{without}"
    );
    let classes = done(&explain_of("deadlines.toml", &["--request", "/reports/7"]));
    assert!(classes.contains("report: the path is `/reports/*`; by it"), "{classes}");
}

/// The gateway's own check of a head comes first, as it does where the request is served.
#[test]
fn what_the_gateway_refuses_belongs_nowhere() {
    let requests = [("GET /a/../b", 400), ("TRACE /a", 405)];
    for (request, status) in requests {
        let text = explained(&["--request", request, "--host", "shop.example"]);
        assert!(
            text.contains(&format!("The gateway answers {status} before")) && !text.contains("class"),
            "{text}"
        );
        let json = explained(&["--request", request, "--host", "shop.example", "--json"]);
        assert!(json.contains(&format!("\"status\": {status}")), "{json}");
    }
    // Without a host, and with the host among the headers.
    for more in [&[][..], &["--header", "Host: shop.example"], &["--host", "shop.example:8080"]] {
        let text = explained(&[&["--request", "GET /a?b=%zz"], more].concat());
        assert!(!text.contains("The gateway answers"), "{text}");
    }
    let [option, header] = [["--host", "shop.example"], ["--header", "Host: shop.example"]]
        .map(|host| explained(&[&["--request", "GET /a"], &host[..]].concat()));
    assert_eq!(option, header, "a host among the headers is the request's");
}
