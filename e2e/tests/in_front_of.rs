//! docs/in-front-of.md: every section is run as it stands there, but for the ports.

use plimsoll_e2e::{Apache, Folder, Process, binary, free_port, program};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

/// A language and a body.
type Block = (String, String);

/// The page's first block, and its sections: each with its name and its blocks.
fn sections(page: &str) -> (String, Vec<(String, Vec<Block>)>) {
    let mut parts = page.split("\n## ");
    let blocks = |text: &str| -> Vec<Block> {
        let fenced = text.split("```").skip(1).step_by(2);
        let parts = fenced.filter_map(|block| block.split_once('\n'));
        parts.map(|(language, body)| (language.to_owned(), body.to_owned())).collect()
    };
    let shared = blocks(parts.next().unwrap_or_default()).remove(0).1;
    let of = |text: &str| (text.lines().next().unwrap_or_default().to_owned(), blocks(text));
    (shared, parts.map(of).filter(|(_, blocks)| !blocks.is_empty()).collect())
}

/// A command of a shell in this folder, in which `plimsoll` is found, and servers of Debian.
fn shell(folder: &Path, line: &str) -> Command {
    let (program, path) = (binary(), env::var("PATH").unwrap_or_default());
    let above = program.parent().unwrap_or_else(|| panic!("{} has no folder", program.display()));
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("exec {line}")).current_dir(folder);
    command.env("PATH", format!("{}:{path}:/usr/sbin", above.display()));
    command
}

/// Runs the lines of a block; those that end with `&` go on until the value is dropped. Returns what the others print.
fn run(folder: &Folder, block: &str, running: &mut Vec<Process>) -> String {
    let mut printed = String::new();
    for line in block.lines() {
        if let Some(server) = line.strip_suffix(" &") {
            let log = folder.path().join(format!("log-{}", running.len()));
            running.push(Process::spawn("server", &mut shell(folder.path(), server), &log));
            continue;
        }
        let output = shell(folder.path(), line).output().unwrap_or_else(|error| panic!("{line}: {error}"));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let logs: String = running.iter().map(Process::log).collect();
        assert!(output.status.success(), "{line}\n{said}\n{logs}");
        printed += &String::from_utf8_lossy(&output.stdout);
    }
    printed
}

#[test]
fn every_section_serves_a_page_and_the_server_knows_the_client() {
    for name in ["nginx", "node", "python3", "openssl", "curl"] {
        program(name);
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/in-front-of.md");
    let page = fs::read_to_string(&page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let (shared, sections) = sections(&page);
    let mut served = Vec::new();
    for (name, blocks) in sections {
        let (folder, mut running) = (Folder::new(), Vec::new());
        let mut ports = vec![(8080, free_port()), (9090, free_port()), (8443, free_port())];
        let apache = blocks.iter().find(|(language, _)| language == "apache").map(|(_, content)| {
            let content = format!("{content}RedirectMatch 204 .*\n");
            Apache::with(Folder::new(), (2, 16), &["remoteip", "alias"], &content)
        });
        ports.push((8000, apache.as_ref().map_or_else(free_port, |apache| apache.upstream.port())));
        let here = |text: &str| {
            ports
                .iter()
                .fold(text.to_owned(), |text, (from, to)| text.replace(&from.to_string(), &to.to_string()))
        };
        folder.write("site.toml", here(&shared));
        for (language, block) in &blocks {
            let block = here(block);
            match language.as_str() {
                "sh" => served.push((name.clone(), run(&folder, &block, &mut running))),
                "apache" => {}
                _ => {
                    let first = block.lines().next().unwrap_or_default();
                    let file = first.trim_start_matches(['#', '/', ' ']);
                    folder.write(file, &block);
                }
            }
        }
        // Those that others ask end last.
        running.reverse();
    }
    let said = |name: &str| served.iter().find(|(of, _)| of == name).map(|(_, said)| said.as_str());
    assert_eq!(said("A Python application"), Some("Python, to 127.0.0.1\n"));
    assert_eq!(said("A Node application"), Some("Node, to 127.0.0.1\n"));
    assert_eq!(said("nginx"), Some("nginx, to 127.0.0.1\n"));
    assert_eq!(said("Apache"), Some(""));
    assert_eq!(said("Behind a TLS terminator"), Some("https, to 127.0.0.1, 127.0.0.1\n"));
    assert_eq!(served.len(), 5);
}
