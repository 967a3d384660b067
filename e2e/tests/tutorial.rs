//! docs/tutorial.md and the README's line for logs: every block is run as it stands there, but for the ports.

use plimsoll_e2e::{Apache, Folder, Nginx, Process, binary, free_port, get};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn document(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The blocks of a document, each with its language.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut parts = text.split("```");
    parts.next();
    let mut all = Vec::new();
    while let (Some(block), Some(_)) = (parts.next(), parts.next()) {
        let (language, body) = block.split_once('\n').unwrap_or_else(|| panic!("an empty block: {block}"));
        all.push((language.to_owned(), body.to_owned()));
    }
    all
}

/// Commands of a shell in this folder, in which `plimsoll` is found.
fn shell(folder: &Path, script: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let program = binary();
    let above = program.parent().unwrap_or_else(|| panic!("{} has no folder", program.display()));
    let mut command = Command::new("sh");
    command.arg("-e").arg("-c").arg(script).current_dir(folder);
    command.env("PATH", format!("{}:{path}", above.display()));
    command
}

/// Exit code 0.
fn done(folder: &Path, script: &str) -> Output {
    let output = shell(folder, script).output().unwrap_or_else(|error| panic!("no shell: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{}{said}", String::from_utf8_lossy(&output.stdout));
    output
}

/// A site of two pages.
fn site(folder: &Folder) -> PathBuf {
    let page = |other: &str| {
        let text = "Plain words of some length. ".repeat(50);
        format!(
            "<!doctype html><html lang=\"en\"><title>A page</title><p>{text}<p><a href=\"{other}\">on</a></html>"
        )
    };
    folder.write("site/other.html", page("index.html"));
    let index = folder.write("site/index.html", page("other.html"));
    index.parent().map(Path::to_owned).unwrap_or_else(|| panic!("{} has no folder", index.display()))
}

const REQUESTS: usize = 120;

fn visit(server: SocketAddr) {
    for number in 0..REQUESTS {
        let path = ["/index.html", "/other.html", "/missing.html"][number % 3];
        assert_eq!(get(server, path).status, if number % 3 == 2 { 404 } else { 200 });
    }
}

/// What is simulated of a log, with these options.
fn simulated(folder: &Path, log: &Path, options: &str) -> Value {
    let script = format!("plimsoll simulate --log {} {options} --json", log.display());
    let output = done(folder, &script);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// The page of the README's own line, from a log in the default format.
fn as_the_readme_says(folder: &Folder, log: &Path) {
    let readme = document("README.md");
    let line = readme.split('`').find(|text| text.starts_with("plimsoll simulate --log access.log"));
    let line = line.unwrap_or_else(|| panic!("the README shows no `plimsoll simulate`"));
    fs::copy(log, folder.path().join("access.log"))
        .unwrap_or_else(|error| panic!("{}: {error}", log.display()));
    let said = String::from_utf8_lossy(&done(folder.path(), line).stdout).into_owned();
    assert!(said.starts_with("assumption: no configuration is given"), "{said}");
    let page = fs::read_to_string(folder.path().join("what-if.html"));
    assert!(page.is_ok_and(|page| page.contains("<b>Assumed:</b> no configuration is given")));
    let report = simulated(folder.path(), log, "--capacity 200/s");
    assert_eq!(report["runs"][0]["requests"], REQUESTS, "{report}");
    assert_eq!((&report["logs"][0]["skipped"], &report["logs"][0]["times"]), (&0.into(), &Value::Null));
}

#[test]
fn the_default_logs_of_nginx_are_simulated() {
    let folder = Folder::new();
    let site = site(&folder);
    let nginx = Nginx::logging(&site, None, ("", ""));
    visit(nginx.address);
    as_the_readme_says(&folder, &nginx.access_log());
    // The format that nginx's own configuration shows, with both times behind it.
    let format = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" "$http_x_forwarded_for" $request_time $upstream_response_time"#;
    let nginx = Nginx::logging(&site, Some(format), ("", ""));
    visit(nginx.address);
    let report = simulated(folder.path(), &nginx.access_log(), "");
    let log = &report["logs"][0];
    assert_eq!(log["times"], "field 2 behind the format's own, in seconds", "no server was asked behind it");
    assert_eq!((&log["times_are_bounds"], &log["timed"]), (&true.into(), &REQUESTS.into()));
}

#[test]
fn the_default_logs_of_apache_are_simulated() {
    let folder = Folder::new();
    let site = site(&folder);
    let serve = |format: &str| {
        let own = Folder::new();
        let log = own.path().join("access.log");
        let content = format!(
            "DocumentRoot {}\nLogFormat \"{format}\" own\nCustomLog {} own\n",
            site.display(),
            log.display()
        );
        let mut apache = Apache::with(own, (2, 16), &[], &content);
        visit(apache.direct);
        // A process writes the line of a request after its answer, and before it ends.
        apache.process.signal(nix::sys::signal::Signal::SIGTERM);
        apache.process.wait();
        (apache, log)
    };
    let combined = r#"%h %l %u %t \"%r\" %>s %O \"%{Referer}i\" \"%{User-Agent}i\""#;
    let (_apache, log) = serve(combined);
    as_the_readme_says(&folder, &log);
    let (_apache, log) = serve(&format!("{combined} %D"));
    // A small file takes less than what is taken for microseconds unasked.
    let report = simulated(folder.path(), &log, "--time-field 1:us");
    assert_eq!(report["logs"][0]["times"], "field 1 behind the format's own, in microseconds");
    assert_eq!(
        (&report["logs"][0]["timed"], &report["logs"][0]["timed_zero"]),
        (&REQUESTS.into(), &0.into())
    );
}

#[test]
fn every_block_of_the_tutorial_does_what_it_says() {
    let folder = Folder::new();
    let site = site(&folder);
    let nginx = Nginx::logging(&site, None, ("", ""));
    visit(nginx.address);
    let log = nginx.access_log();
    fs::copy(&log, folder.path().join("access.log"))
        .unwrap_or_else(|error| panic!("{}: {error}", log.display()));
    let (listen, admin) = (free_port().to_string(), free_port().to_string());
    let text = document("docs/tutorial.md")
        .replace(":8080", &format!(":{listen}"))
        .replace(":9090", &format!(":{admin}"));
    let mut gateway = None;
    let mut ran = 0;
    for (language, block) in blocks(&text) {
        match language.as_str() {
            "toml" => {
                let name = block.lines().next().and_then(|line| line.strip_prefix("# "));
                folder.write(name.unwrap_or_else(|| panic!("a file without a name: {block}")), &block);
            }
            "sh" if block.starts_with("plimsoll run") => {
                let mut command = shell(folder.path(), &format!("exec {block}"));
                let mut process = Process::spawn("plimsoll", &mut command, &folder.path().join("run.log"));
                process.wait_for("its addresses", |log| log.contains("admin on ").then_some(()));
                gateway = Some(process);
            }
            "sh" => {
                let output = done(folder.path(), &block);
                ran += usize::from(!output.stdout.is_empty());
            }
            other => panic!("a block of {other}"),
        }
    }
    assert_eq!(ran, 5, "two simulations, adapt, check and what the gateway answers");
    let mut gateway = gateway.unwrap_or_else(|| panic!("nothing was served"));
    gateway.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(gateway.wait().success(), "{}", gateway.log());
    assert!(folder.path().join("what-if.html").is_file());
}
