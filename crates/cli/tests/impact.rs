//! `plimsoll impact` as its users run it: figures, a log that weighs them, costs of a server, several sites, the report.
#![cfg(feature = "adapt")]

use serde_json::Value;
use std::fs;
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder of this test's own, gone when it ends.
struct Folder(TempDir);

impl Folder {
    /// With a site of a rich page and of a plain one, and a plain site.
    fn new(name: &str) -> Folder {
        let folder = Folder(TempDir::with_prefix(format!("plimsoll-impact-{name}-")).expect("a folder"));
        folder.write(
            "rich/index.html",
            "<a href=plain.html>plain</a> <img src=a.gif alt=a><script src=x.js></script>",
        );
        // The size of a picture, and no picture: it is counted all the same.
        folder.write("rich/a.gif", [&b"GIF89a\x40\0\x40\0"[..], &[0; 29_990]].concat());
        folder.write("rich/x.js", [b'1'; 8000]);
        folder.write("rich/plain.html", "<p>plain");
        folder.write("plain/index.html", "<p>plain");
        folder
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        fs::write(path, text).expect("it can be written");
    }

    fn impact(&self, options: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.current_dir(&self.0).arg("impact").args(options).output().expect("the binary runs")
    }

    fn json(&self, options: &[&str]) -> Value {
        let output = self.impact(&[options, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("it is JSON")
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("no number: {value}"))
}

#[test]
fn the_papers_figures_of_a_site() {
    let folder = Folder::new("figures");
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
    let folder = Folder::new("log");
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
    let folder = Folder::new("several");
    let output = folder.impact(&["rich", "plain", "--report", "savings.html"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("of 2 sites improve by at least"), "{said}");
    let page = fs::read_to_string(folder.0.path().join("savings.html")).expect("a report");
    assert!(page.contains("<svg") && page.contains("optimistic") && !page.contains("<script src"), "{page}");
    for (options, why) in [
        (&["rich", "plain", "--log", "access.log"][..], "--log is the access log of one site"),
        (&["rich", "plain", "--adapted", "trees"], "--adapted names the trees of one site"),
        (&["rich", "--adapted", "nowhere"], "no trees in it"),
        (&[], "not provided:\n  <SITE>..."),
        (&["nothing"], "nothing: No such file"),
    ] {
        let output = folder.impact(options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(why), "{options:?}: {said}");
    }
}

/// What stands in the terminal says what its words mean, and both sides are counted alike.
#[test]
fn like_is_compared_with_like_and_terms_are_explained() {
    let folder = Folder::new("alike");
    let adapt = |site: &str, options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.current_dir(&folder.0).args(["adapt", site, &format!("{site}-trees")]).args(options);
        let output = command.output().expect("the binary runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    folder.write("rich/long.html", format!("<p>{}", "a long text ".repeat(2000)));
    adapt("rich", &[]);
    let measured = ["rich", "--adapted", "rich-trees"];
    let packed = folder.json(&measured)["sites"][0].clone();
    adapt("rich", &["--without", "compressed"]);
    let plain = folder.json(&measured)["sites"][0].clone();
    assert!(packed["compressed"] == true && plain["compressed"] == false);
    for tree in [|site: &Value| site["full"].clone(), |site: &Value| site["levels"]["light"].clone()] {
        let [packed, plain] = [&packed, &plain].map(|site| number(&tree(site)["page_bytes"]));
        assert!(10.0 * packed < plain, "{packed} {plain}");
    }
    let said = String::from_utf8_lossy(&folder.impact(&measured).stdout).into_owned();
    for term in ["Emb: objects that a page embeds", "optimistic: no visitor has a cache", "lean"] {
        assert!(said.contains(term), "{term}: {said}");
    }
}

#[test]
fn trees_of_another_site_are_refused() {
    let folder = Folder::new("another");
    for site in ["rich", "plain"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.current_dir(&folder.0).args(["adapt", site, &format!("{site}-trees")]);
        assert!(command.output().expect("the binary runs").status.success());
    }
    let output = folder.impact(&["plain", "--adapted", "rich-trees"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && said.contains("these are the trees of"), "{said}");
    // The same site with a new file is the same site, and a remark says so; so is a copy of it elsewhere.
    folder.write("plain/new.html", "<p>new");
    let output = folder.impact(&["plain", "--adapted", "plain-trees"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && said.contains("other files now than when its trees were made"),
        "{said}"
    );
    folder.write("moved/index.html", "<p>plain");
    assert!(folder.impact(&["moved", "--adapted", "plain-trees"]).status.success());
}
