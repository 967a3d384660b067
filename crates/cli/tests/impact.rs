//! `plimsoll impact` as its users run it: figures, a log that weighs them, costs of a server, several sites, the report.
#![cfg(feature = "adapt")]

mod support;

use serde_json::Value;
use std::process::Output;
use support::{Folder, done, failed, has};

impl Folder {
    /// With a site of a rich page and of a plain one, and a plain site.
    fn of_sites(name: &str) -> Folder {
        let folder = Folder::new(name);
        folder.write(
            "rich/index.html",
            "<a href=plain.html>plain</a> <img src=a.gif alt=a><script src=x.js></script>",
        );
        // The size of a picture, and no picture: it is counted all the same.
        folder.write("rich/a.gif", [&b"GIF89a\x40\0\x40\0"[..], &[0; 29_990]].concat());
        folder.write("rich/x.js", [b'1'; 8000]).write("rich/plain.html", "<p>plain");
        folder.write("plain/index.html", "<p>plain");
        folder
    }

    fn adapt(&self, site: &str, options: &[&str]) {
        done(&self.run(&[&["adapt", site, &format!("{site}-trees")], options].concat()));
    }

    fn impact(&self, options: &[&str]) -> Output {
        self.run(&[&["impact"], options].concat())
    }

    fn json(&self, options: &[&str]) -> Value {
        let output = self.impact(&[options, &["--json"]].concat());
        done(&output);
        serde_json::from_slice(&output.stdout).expect("it is JSON")
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn the_papers_figures_of_a_site() {
    let folder = Folder::of_sites("figures");
    let all = folder.json(&["rich", "--per-request", "1", "--per-kb", "0.1", "--without", "compressed"]);
    let site = &all["sites"][0];
    let full = &site["full"];
    assert_eq!([&full["pages"], &full["objects"]].map(Value::as_u64), [Some(2), Some(2)]);
    assert_eq!([&full["embedded"], &full["embedded_least"]].map(number), [1.0, 1.0]);
    assert_eq!(number(&full["object_bytes"]), 19_000.0);
    // a (1 + Emb) + b (H + I Emb), to a + b H.
    let kilobytes = |of: &str| number(&full[of]) / 1024.0;
    let expected = (2.0 + 0.1 * (kilobytes("page_bytes") + kilobytes("object_bytes")))
        / (1.0 + 0.1 * kilobytes("page_bytes"));
    let text = &site["ratios"]["text (CA)"];
    for ratio in ["optimistic", "pessimistic"] {
        assert!((number(&text[ratio]) - expected).abs() < 1e-9, "{ratio}: {text}, not {expected}");
    }
    assert!(text["weighted_by_views"].is_null() && site["measured"] == false);
    let light = number(&site["ratios"]["light"]["counted"]);
    assert!(light > 1.2 && light < number(&text["counted"]), "{site}");
}

#[test]
fn a_log_weighs_text_and_every_level() {
    let folder = Folder::of_sites("log");
    let line =
        |path: &str| format!("1.2.3.4 - - [01/Aug/1995:00:00:01 -0400] \"GET {path} HTTP/1.0\" 200 12\n");
    let log = |rich: usize, plain: usize| {
        line("/").repeat(rich) + &line("/plain.html").repeat(plain) + &line("/a.gif")
    };
    let weighted = |rich, plain| {
        folder.write("access.log", log(rich, plain));
        let all = folder.json(&["rich", "--log", "access.log"]);
        let site = &all["sites"][0];
        assert_eq!(
            [&site["log_requests_for_pages"], &site["log_requests"]].map(Value::as_u64),
            [Some(10), Some(11)]
        );
        ["text (CA)", "text", "lean"].map(|level| number(&site["ratios"][level]["weighted_by_views"]))
    };
    let (rich, plain) = (weighted(9, 1), weighted(1, 9));
    for (rich, plain) in rich.into_iter().zip(plain) {
        assert!(rich > 1.2 && plain > 1.0 && rich > 1.15 * plain, "{rich} {plain}");
    }
}

#[test]
fn several_sites_and_a_report() {
    let folder = Folder::of_sites("several");
    let text = done(&folder.impact(&["rich", "plain", "--report", "savings.html"]));
    has(&text, &["of 2 sites improve by at least"]);
    let page = folder.read("savings.html");
    assert!(page.contains("<svg") && page.contains("optimistic") && !page.contains("<script src"), "{page}");
    for (options, why) in [
        (&["rich", "plain", "--log", "access.log"][..], "--log is the access log of one site"),
        (&["rich", "plain", "--adapted", "trees"], "--adapted names the trees of one site"),
        (&["rich", "--adapted", "nowhere"], "no trees in it"),
        (&[], "not provided:\n  <SITE>..."),
        (&["nothing"], "nothing: No such file"),
    ] {
        failed(&folder.impact(options), 2, &[why]);
    }
}

/// What stands in the terminal says what its words mean, and both sides are counted alike.
#[test]
fn like_is_compared_with_like_and_terms_are_explained() {
    let folder = Folder::of_sites("alike");
    folder.write("rich/long.html", format!("<p>{}", "a long text ".repeat(2000)));
    folder.adapt("rich", &[]);
    let measured = ["rich", "--adapted", "rich-trees"];
    let packed = folder.json(&measured)["sites"][0].clone();
    folder.adapt("rich", &["--without", "compressed"]);
    let plain = folder.json(&measured)["sites"][0].clone();
    assert!(packed["compressed"] == true && plain["compressed"] == false);
    for tree in [|site: &Value| site["full"].clone(), |site: &Value| site["levels"]["light"].clone()] {
        let [packed, plain] = [&packed, &plain].map(|site| number(&tree(site)["page_bytes"]));
        assert!(10.0 * packed < plain, "{packed} {plain}");
    }
    let text = done(&folder.impact(&measured));
    has(&text, &["Emb: objects that a page embeds", "optimistic: no visitor has a cache", "lean"]);
}

#[test]
fn trees_of_another_site_are_refused() {
    let folder = Folder::of_sites("another");
    ["rich", "plain"].iter().for_each(|site| folder.adapt(site, &[]));
    failed(&folder.impact(&["plain", "--adapted", "rich-trees"]), 2, &["these are the trees of"]);
    // The same site with a new file is the same site, and a remark says so; so is a copy of it elsewhere.
    folder.write("plain/new.html", "<p>new");
    let text = done(&folder.impact(&["plain", "--adapted", "plain-trees"]));
    has(&text, &["other files now than when its trees were made"]);
    folder.write("moved/index.html", "<p>plain");
    assert!(folder.impact(&["moved", "--adapted", "plain-trees"]).status.success());
}
