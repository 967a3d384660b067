//! `plimsoll adapt` as its users run it: a policy in a file, dynamic pages, a full disk, bad input.
#![cfg(feature = "adapt")]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;
use support::Folder;

impl Folder {
    fn adapt(&self, options: &[&str]) -> Output {
        self.run(&[&["adapt", "site", "trees"], options].concat())
    }
}

fn said(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_policy_says_how_and_options_after_it_count_more() {
    let folder = Folder::new("policy");
    folder
        .write("site/index.html", "<script src=x.js></script><a href=far.html>far</a>")
        .write("site/x.js", "1");
    folder.write("site/far.html", "<p data-plimsoll=important>x");
    folder
        .write("p.toml", "levels = \"light\"\ndepth = 0\n[[rule]]\npath = \"*.js\"\ntag = \"expendable\"\n");
    assert_eq!(said(&folder.adapt(&["--policy", "p.toml"])), (Some(0), String::new()));
    assert_eq!(folder.read("trees/light/index.html"), "<a>far</a>");
    assert!(!folder.0.path().join("trees/full").exists());
    assert_eq!(said(&folder.adapt(&["--policy", "p.toml", "--depth", "1"])), (Some(0), String::new()));
    assert_eq!(folder.read("trees/light/index.html"), "<a href=far.html>far</a>");
    folder.write("p.toml", "dept = 0\n");
    let (code, text) = said(&folder.adapt(&["--policy", "p.toml"]));
    assert!(
        code == Some(2) && text.contains("p.toml:1:1") && text.contains("did you mean `depth`?"),
        "{text}"
    );
}

/// A server of one page, for so many requests; where it listens.
fn program(page: &'static str, requests: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for stream in listener.incoming().take(requests) {
            let mut stream = stream.expect("a connection");
            let read = stream.read(&mut [0; 2048]).expect("a request");
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}");
            assert!(read > 0 && stream.write_all(answer.as_bytes()).is_ok());
        }
    });
    address
}

#[test]
fn a_dynamic_page_is_stored_and_adapted() {
    let folder = Folder::new("snapshot");
    folder
        .write("site/index.html", "<a href=shop/list.php>all</a>")
        .write("site/shop/list.php", "<?php secret");
    folder.write("site/b.js", "1");
    let address = program("<script src=../b.js></script><p>3 left", 2);
    let url = format!("http://{address}/shop/list.php");
    let rule = ["--rule", "*.js=expendable", "--without", "compressed"];
    let output = folder.adapt(&[&["--snapshot", &url], &rule[..]].concat());
    assert_eq!(said(&output), (Some(0), String::new()));
    assert_eq!(folder.read("trees/light/shop/list.php"), "<p>3 left");
    assert_eq!(folder.read("trees/full/shop/list.php"), "<?php secret", "at full it is made anew");
    let (code, text) = said(&folder.adapt(&["--snapshot", &format!("{url}?page=2")]));
    assert!(code == Some(2) && text.contains("has no query"), "{text}");
    let (code, text) = said(&folder.adapt(&["--snapshot", "http://127.0.0.1:1/x.php"]));
    assert!(code == Some(1) && text.contains("cannot store http://127.0.0.1:1/x.php"), "{text}");
    assert_eq!(folder.read("trees/light/shop/list.php"), "<p>3 left", "the old trees stay");
}

/// Programs lie in the trees for servers that run them; who lets the gateway serve the trees hears of them.
#[test]
fn programs_are_named_and_pages_under_their_names_are_not() {
    let folder = Folder::new("programs");
    folder.write("site/config.php", "<?php $password = 'secret';").write("site/list.php", "<?php list();");
    folder.write("site/page.php", "<p>stored").write("site/z.html", b"\xff\xfe\0");
    let url = format!("http://{}/list.php", program("<p>3 left", 1));
    let output = folder.adapt(&["--snapshot", &url]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("config.php: a program"), "{text}");
    assert!(text.find("z.html") < text.find("config.php"), "what is wrong comes first: {text}");
    assert!(!text.contains("list.php") && !text.contains("page.php"), "{text}");
    assert_eq!(folder.read("trees/light/config.php"), "<?php $password = 'secret';");
}

#[test]
fn a_full_disk_leaves_the_old_trees() {
    let folder = Folder::new("full");
    folder.write("site/a.html", "<p>old");
    assert_eq!(said(&folder.adapt(&[])).0, Some(0));
    folder.write("site/a.html", "<p>new").write("site/large.html", vec![b'x'; 4 << 20]);
    // A limit on the size of a file fails as a full disk does, in the midst of a write.
    let limited = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" adapt site trees"])
        .arg(env!("CARGO_BIN_EXE_plimsoll"))
        .current_dir(&folder.0)
        .output()
        .expect("a shell");
    let (code, text) = said(&limited);
    assert!(code == Some(1) && text.contains("large.html"), "{code:?} {text}");
    assert_eq!(folder.read("trees/light/a.html"), "<p>old");
    let left: Vec<_> = fs::read_dir(&folder.0).expect("a folder").filter_map(Result::ok).collect();
    assert_eq!(left.len(), 2, "nothing else is left: {left:?}");
    assert_eq!(said(&folder.adapt(&[])).0, Some(0));
    assert_eq!(folder.read("trees/light/a.html"), "<p>new");
}

#[test]
fn pages_in_any_encoding_and_files_that_are_none() {
    let folder = Folder::new("encodings");
    let tagged = "<p data-plimsoll=degradable>";
    let utf16: Vec<u8> = format!("\u{feff}{tagged}ü").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let pages: [(&str, Vec<u8>); 6] = [
        ("utf8.html", format!("{tagged}ü").into_bytes()),
        ("utf16.html", utf16),
        ("latin.html", [tagged.as_bytes(), b"\xfc"].concat()),
        ("japanese.html", [b"<meta charset=shift_jis>", tagged.as_bytes(), b"\x93\xfa\x96\x7b"].concat()),
        ("empty.html", Vec::new()),
        ("Foto \u{fc} 1.HTML", tagged.as_bytes().to_vec()),
    ];
    for (name, page) in &pages {
        folder.write(&format!("site/{name}"), page);
    }
    // Cut short, and broken in the midst; an image by name only; one that says it is larger than memory.
    folder
        .write("site/cut.gif", b"GIF89a\x10")
        .write("site/none.jpg", "<html>")
        .write("site/bomb.png", bomb());
    std::os::unix::fs::symlink("loop", folder.0.path().join("site/loop")).expect("a link");
    let output = folder.adapt(&["--json"]);
    assert_eq!(said(&output), (Some(0), String::new()));
    for (name, page) in &pages {
        let light = fs::read(folder.0.path().join("trees/light").join(name)).expect("it is there");
        let tag: Vec<u8> = match *name {
            "utf16.html" => " data-plimsoll=degradable".encode_utf16().flat_map(u16::to_le_bytes).collect(),
            _ => b" data-plimsoll=degradable".to_vec(),
        };
        let at = page.windows(tag.len()).position(|part| part == tag);
        let expected = at.map_or(page.clone(), |at| [&page[..at], &page[at + tag.len()..]].concat());
        assert_eq!(light, expected, "{name}");
    }
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let problems = all["problems"].as_array().expect("a list");
    let paths: Vec<&str> = problems.iter().filter_map(|problem| problem["path"].as_str()).collect();
    assert_eq!(paths, ["bomb.png", "cut.gif", "loop", "none.jpg"]);
    for name in ["bomb.png", "cut.gif", "none.jpg"] {
        let [before, after] =
            ["site", "trees/light"].map(|root| fs::read(folder.0.path().join(root).join(name)));
        assert_eq!(before.expect("a file"), after.expect("copied as it is"), "{name}");
    }
}

#[test]
fn a_site_that_lost_most_of_its_files_leaves_the_trees() {
    let folder = Folder::new("lost");
    for number in 0..9 {
        folder.write(&format!("site/{number}.html"), "<p>page");
    }
    assert_eq!(folder.adapt(&[]).status.code(), Some(0));
    let lose = |numbers: Range<u32>| {
        numbers
            .for_each(|number| fs::remove_file(folder.0.path().join(format!("site/{number}.html"))).unwrap());
    };
    lose(0..4);
    assert_eq!(folder.adapt(&[]).status.code(), Some(0), "more than half is there");
    lose(4..9);
    let (code, text) = said(&folder.adapt(&[]));
    assert!(code == Some(2) && text.contains("no file is in it") && text.contains("--force"), "{text}");
    folder.write("site/new.html", "<p>page");
    let (code, text) = said(&folder.adapt(&[]));
    assert!(
        code == Some(2) && text.contains("1 files, where the last run saw 5") && text.contains("--force"),
        "{text}"
    );
    assert_eq!(folder.read("trees/full/8.html"), "<p>page", "the trees stayed");
    assert_eq!(folder.adapt(&["--force"]).status.code(), Some(0));
    assert!(!folder.0.path().join("trees/full/8.html").exists());
}

/// Only the files of the site's folder are missed: dynamic pages are fetched anew whatever became of the folder.
#[test]
fn dynamic_pages_count_neither_for_nor_against_the_files_of_the_site() {
    let folder = Folder::new("dynamic");
    fs::create_dir_all(folder.0.path().join("site")).expect("it can be made");
    let address = program("<p>page", 15);
    let pages = [1, 2, 3].map(|number| format!("http://{address}/{number}.php"));
    let options: Vec<&str> = pages.iter().flat_map(|page| ["--snapshot", page]).collect();
    assert_eq!(said(&folder.adapt(&options)), (Some(0), String::new()), "a site of dynamic pages alone");
    folder.write("site/index.html", "<p>page");
    for run in ["first", "second"] {
        assert_eq!(said(&folder.adapt(&options)), (Some(0), String::new()), "the {run} with a static page");
    }
    for number in 0..9 {
        folder.write(&format!("site/{number}.html"), "<p>page");
    }
    assert_eq!(folder.adapt(&options).status.code(), Some(0));
    fs::remove_dir_all(folder.0.path().join("site")).expect("it is there");
    fs::create_dir_all(folder.0.path().join("site")).expect("it can be made");
    let (code, text) = said(&folder.adapt(&options));
    assert!(code == Some(2) && text.contains("0 files, where the last run saw 10"), "{text}");
}

/// The count is of the site, not of trees that lack what is as at full.
#[test]
fn a_sparse_tree_hides_no_lost_file() {
    let folder = Folder::new("sparse");
    for number in 0..9 {
        folder.write(&format!("site/{number}.html"), "<p>page");
    }
    let options = ["--sparse", "--levels", "light"];
    assert_eq!(said(&folder.adapt(&options)), (Some(0), String::new()));
    (0..7).for_each(|number| fs::remove_file(folder.0.path().join(format!("site/{number}.html"))).unwrap());
    let (code, text) = said(&folder.adapt(&options));
    assert!(code == Some(2) && text.contains("2 files, where the last run saw 9"), "{text}");
}

/// The head of a PNG of 65,535 by 65,535 pixels, and nothing else of note.
fn bomb() -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xff\xff\0\0\xff\xff\x08\x02\0\0\0".to_vec();
    bytes.resize(40_000, 0);
    bytes
}

#[test]
fn what_cannot_be_the_output_is_refused() {
    let folder = Folder::new("refused");
    folder.write("site/a.html", "x").write("mine/letter", "x");
    for (out, why) in [
        ("site", "in the site"),
        ("site/trees", "in the site"),
        (".", "or around it"),
        ("mine", "did not make"),
        ("mine/letter/trees", "Not a directory"),
    ] {
        let (code, text) = said(&folder.run(&["adapt", "site", out]));
        assert!(code == Some(2) && text.contains(why), "{out}: {code:?} {text}");
    }
    assert!(Path::new(&folder.0.path().join("mine/letter")).is_file());
    assert_eq!(fs::read_dir(folder.0.path().join("site")).expect("a folder").count(), 1);
}

#[test]
fn policies_know_every_level_step_and_tag() {
    use plimsoll_content::{Level, Step, Tag};
    let list = |names: Vec<&str>| format!("{names:?}");
    let mut source = format!("levels = {}\n", list(Level::ALL.map(Level::name).to_vec()));
    source += &format!("without = {}\n", list(Step::ALL.map(Step::name).to_vec()));
    for tag in Tag::ALL {
        source += &format!("[[rule]]\npath = \"x\"\ntag = \"{}\"\n", tag.name());
    }
    let said =
        plimsoll_config::parse_adaptation(&source, "all.toml").unwrap_or_else(|wrong| panic!("{wrong}"));
    assert_eq!(said.without.map(|all| all.len()), Some(Step::ALL.len()));
    assert!(said.levels.iter().all(|name| Level::named(name).is_some()));
    assert!(said.rules.iter().all(|(_, tag)| Tag::named(tag).is_some()));
}
