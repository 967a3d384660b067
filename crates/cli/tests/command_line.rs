//! What the command line says: help, wrong input with exit code 2, and `check` on the examples.

mod support;

use std::path::Path;
use std::process::{Command, Output};
use support::{binary, failed, has, of_repository, place, temporary};

fn plimsoll(arguments: &[&str]) -> Output {
    binary().args(arguments).env_remove("COLUMNS").output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is text")
}

#[track_caller]
fn refused(arguments: &[&str], parts: &[&str]) {
    failed(&plimsoll(arguments), 2, parts);
}

/// The commands that the main page of help lists.
fn commands() -> Vec<String> {
    let page = text(&plimsoll(&["--help"]).stdout);
    let listed =
        page.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let first = |line: &str| line.split_whitespace().next().map(str::to_owned);
    // A line that goes on is further to the right.
    let names = listed.filter(|line| !line.starts_with("   ")).filter_map(first);
    names.filter(|name| name != "help").collect()
}

/// A state is written in the place of its file, which is no other one.
#[test]
fn a_state_is_not_written_in_the_place_of_something_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("site.toml");
    let text = "[gateway]\nlisten = \"127.0.0.1:0\"\nstate = \"site.toml\"\n[upstream.app]\naddress = \"127.0.0.1:1\"\n";
    std::fs::write(&file, text).expect("it can be written");
    for command in ["check", "run"] {
        refused(&[command, file.to_str().expect("text")], &["site.toml is no state of a gateway"]);
    }
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), text);
    // Another program's JSON, what has no end, a pipe that nobody writes, a folder.
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("package.json"), "{\"name\":\"my-app\"}").expect("it can be written");
    std::process::Command::new("mkfifo").arg(place("pipe")).status().expect("a pipe");
    for key in ["state", "rate_forecast"] {
        for (other, expected) in [
            ("package.json", "my-app"),
            ("/dev/full", "a device"),
            ("pipe", "a named pipe"),
            (".", "a folder"),
        ] {
            let (one, two) = match key {
                "state" => (format!("state = \"{other}\"\n"), String::new()),
                _ => (
                    String::new(),
                    format!("[control]\nadmission = \"budget\"\nrate_forecast = \"{other}\"\n"),
                ),
            };
            let file = place("other.toml");
            let text = format!(
                "[gateway]\nlisten = \"127.0.0.1:0\"\n{one}{two}[upstream.app]\naddress = \"127.0.0.1:1\"\n"
            );
            std::fs::write(&file, text).expect("it can be written");
            for command in ["check", "run"] {
                let found = plimsoll(&[command, file.to_str().expect("text")]);
                let said = String::from_utf8_lossy(&found.stderr);
                assert_eq!(found.status.code(), Some(2), "{key} {other}: {said}");
                assert!(
                    said.contains(expected) || said.contains("package.json is no state"),
                    "{key} {other}: {said}"
                );
            }
        }
    }
    assert_eq!(std::fs::read_to_string(place("package.json")).expect("it is there"), "{\"name\":\"my-app\"}");
}

/// After a change of the command line: `make generate`.
#[test]
fn the_reference_is_what_help_prints() {
    let mut written =
        "<!-- Generated from crates/cli/src/args: do not edit. Rewrite it with `make generate`. -->\n\
                       # The command line\n\nEvery page is what `plimsoll COMMAND --help` prints.\n"
            .to_owned();
    let commands = commands();
    assert!(commands.len() >= 12, "{commands:?}");
    for command in std::iter::once("").chain(commands.iter().map(String::as_str)) {
        let words: Vec<&str> = [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        let output = plimsoll(&words);
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{command}");
        let page = text(&output.stdout);
        assert!(page.contains("Example:\n  plimsoll "), "no example in\n{page}");
        assert!(page.lines().all(|line| line.chars().count() <= 88), "too wide:\n{page}");
        written += &format!(
            "\n## {}\n\n```text\n{}\n```\n",
            ["plimsoll ", command].concat().trim(),
            page.trim_end()
        );
    }
    let file = of_repository("docs/command-line.md");
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::write(&file, &written).expect("the reference can be written");
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(kept == written, "{} says otherwise; run `make generate`:\n{written}", file.display());
}

#[test]
fn completions_manual_pages_and_schemas_come_from_the_same_definitions() {
    for shell in ["bash", "zsh", "fish"] {
        let output = plimsoll(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let script = text(&output.stdout);
        assert!(commands().iter().all(|command| script.contains(command)), "{shell}: {script}");
        assert!(script.contains("i-may-load-this-server"), "{shell}: {script}");
    }
    let folder = place("manual");
    let output = plimsoll(&["manual", folder.to_str().expect("its name is text")]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    for command in commands() {
        let page = std::fs::read_to_string(folder.join(format!("plimsoll-{command}.1")));
        assert!(page.is_ok_and(|page| page.contains("Example:")), "{command}");
    }
    for (of, key) in
        [("configuration", "upstream"), ("workload", "stream"), ("agent", "probe"), ("adaptation", "levels")]
    {
        let schema: serde_json::Value =
            serde_json::from_slice(&plimsoll(&["schema", of]).stdout).expect("the schema is JSON");
        assert!(schema.to_string().contains(&format!("\"{key}\"")), "{of}: {schema}");
    }
    assert_eq!(plimsoll(&["schema"]).stdout, plimsoll(&["schema", "configuration"]).stdout);
}

#[test]
fn a_slip_is_answered_with_what_to_write() {
    refused(&["demo", "--secnds", "3"], &["'--secnds'", "'--seconds'", "--help"]);
    refused(&["chek", "a.toml"], &["'chek'", "'check'"]);
    refused(&["demo", "--load", "lots"], &["'lots' for '--load <X>'", "from 0.1 to 5"]);
    refused(&["run"], &["<FILE>", "plimsoll run", "--help"]);
}

#[test]
fn a_file_that_is_missing_is_named() {
    for command in ["check", "run"] {
        refused(&[command, "no/such.toml"], &["cannot read no/such.toml", "examples/one-site.toml"]);
    }
}

/// What runs for long has a log, whose level says what an error is: its text does not say so again.
#[test]
fn a_failure_in_the_log_says_where_it_is_what_it_is_and_what_to_write() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: &str| std::fs::write(place(name), text).expect("it can be written");
    write("key.toml", "[gateway]\nlisen = \"127.0.0.1:0\"\n");
    write("found.toml", "[gateway]\nlisten = \"127.0.0.1:0\"\n[upstream.app]\naddress = \"127.0.0.1:1\"\n");
    let state = place("state");
    let cases: [(&[&str], &[&str]); 5] = [
        (
            &["run", &place("key.toml")],
            &[" ERROR 2 errors in ", "key.toml:\nerror[", "did you mean `listen`?"],
        ),
        (
            &["control", &place("found.toml"), "--state", &state],
            &["found.toml: app: ", "`workers` under [upstream.app.capacity]"],
        ),
        (&["run", &folder.path().display().to_string()], &["That is a folder"]),
        (&["agent", &place("missing.toml")], &["examples/agent.toml"]),
        (&["agent", &place("found.toml")], &["is a configuration of the gateway", "plimsoll run "]),
    ];
    for (arguments, said) in cases {
        refused(arguments, said);
        let stderr = text(&plimsoll(arguments).stderr);
        assert!(stderr.contains(" ERROR ") && !stderr.contains("ERROR error"), "{stderr}");
    }
}

#[test]
fn every_error_of_a_configuration_is_shown_at_its_place() {
    let wrong = "[gateway]\nlisten = \"127.0.0.1\"\n[upstream.app]\nadress = \"127.0.0.1:81\"\n";
    let path = temporary("wrong.toml", wrong);
    let name = path.to_str().expect("its name is text");
    for command in ["check", "run"] {
        refused(&[command, name], &["wrong.toml:2:", "wrong.toml:4:", "address", "errors in"]);
    }
}

#[test]
fn the_examples_are_right() {
    let mut count = 0;
    for entry in std::fs::read_dir(of_repository("examples")).expect("there are examples") {
        let path = entry.expect("the folder can be read").path();
        // The agent's is no gateway's.
        if path.extension().is_none_or(|extension| extension != "toml") || path.ends_with("agent.toml") {
            continue;
        }
        // One names files that are made by a line of its own.
        let made = path.ends_with("tls.toml").then(|| with_certificates(&path));
        let path = made.as_ref().map_or(path, |folder| folder.path().join("tls.toml"));
        let name = path.to_str().expect("its name is text");
        let output = plimsoll(&["check", name]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("is right."), "{name}");
        let json = plimsoll(&["check", "--json", name]);
        let plan: serde_json::Value = serde_json::from_slice(&json.stdout).expect("the plan is JSON");
        let upstream = &plan["upstreams"][0];
        let workers = [&upstream["workers"], &upstream["find_workers"]["begins_with"]]
            .map(|number| number.as_u64() > Some(0));
        assert_eq!(workers.iter().filter(|is| **is).count(), 1, "configured or to be found: {plan}");
        assert!(plan["sites"][0]["levels"].as_array().is_some_and(|levels| !levels.is_empty()), "{plan}");
        // One of them states what requests cost.
        let states_costs = name.ends_with("contracts.toml");
        assert_eq!(plan["verified"], states_costs, "{name}");
        assert!(!states_costs || plan["contracts"][0]["verdict"] == "fits", "{plan}");
        let promised = plan["sites"][0]["promises"][0]["delay_seconds"].is_number();
        let names_a_delay =
            ["/delays.toml", "/gateway-before-module.toml"].iter().any(|own| name.ends_with(own));
        assert_eq!(promised, names_a_delay, "{plan}");
        count += 1;
    }
    assert!(count >= 4, "only {count} examples found");
}

/// A copy of an example beside the certificates that its comment says how to make.
fn with_certificates(example: &Path) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let source = std::fs::read_to_string(example).expect("the example");
    let line = source.lines().find_map(|line| line.strip_prefix("#   ")).expect("its line");
    let made = Command::new("sh").args(["-c", line]).current_dir(folder.path()).output().expect("a shell");
    assert!(made.status.success(), "{line}: {}", text(&made.stderr));
    let copy = folder.path().join("tls.toml");
    std::fs::write(&copy, source).expect("a copy");
    let name = example.to_str().expect("its name is text");
    let without = plimsoll(&["check", name]);
    let error = text(&without.stderr);
    assert!(
        error.contains("tls/cert.pem: cannot be read") && error.contains("/tls && openssl req"),
        "{error}"
    );
    folder
}

#[test]
fn the_plan_says_what_is_not_known() {
    let example = of_repository("examples/one-site.toml");
    let plan = text(&plimsoll(&["check", example.to_str().expect("its name is text")]).stdout);
    let unknown = "costs unknown: the plan is unverified until they are measured";
    has(&plan, &["0.85", "/light/...", "0.15 of full", unknown]);
}

/// A file in a folder of its own, which goes with the folder.
fn written(bytes: &[u8]) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("written.toml");
    std::fs::write(&path, bytes).expect("it can be written");
    (folder, path.into_os_string().into_string().expect("text"))
}

/// A configuration with these lines under [gateway].
fn with_lines(lines: &str) -> Vec<u8> {
    format!("[gateway]\nlisten = \"127.0.0.1:0\"\n{lines}\n[upstream.app]\naddress = \"127.0.0.1:81\"\n")
        .into_bytes()
}

/// What is no configuration at all is refused in few lines.
#[test]
fn a_file_of_another_kind_is_refused_in_few_lines() {
    let (_folder, large) = written(&vec![0; 30 << 20]);
    refused(&["check", &large], &["is larger than 8 MiB", "examples/one-site.toml"]);
    let (_folder, latin) = written(b"[gateway]\n# caf\xe9\nlisten = \"127.0.0.1:0\"\n");
    refused(&["check", &latin], &["line 2 has a byte (0xe9) that is no UTF-8", "iconv"]);
    let (_folder, wrong) = written("wrong = 1\n".repeat(100_000).as_bytes());
    let output = plimsoll(&["check", &wrong]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.matches("error[").count()), (Some(2), 20), "{} bytes", said.len());
    assert!(said.contains("or more errors in") && said.contains("of which these are the first 20"), "{said}");
}

/// A pipe has its text once, and a device has no end.
#[test]
fn a_configuration_is_read_once_and_to_a_bound() {
    let (folder, wrong) = written(b"[gateway]\nlisen = \"127.0.0.1:0\"\n");
    let pipe = folder.path().join("pipe").display().to_string();
    let through =
        format!("mkfifo {pipe}; cat {wrong} >{pipe} & exec timeout -s KILL 60 \"$0\" \"$@\" {pipe}");
    let state = folder.path().join("state").display().to_string();
    let agent = of_repository("examples/agent.toml").display().to_string();
    let simulate = ["simulate", "--log", "no.log"];
    for command in [&["check"][..], &["control", "--state", &state], &simulate] {
        let mut shell = Command::new("sh");
        shell.args(["-c", &through, env!("CARGO_BIN_EXE_plimsoll")]).args(command);
        failed(&shell.output().expect("a shell"), 2, &["did you mean `listen`?"]);
        std::fs::remove_file(&pipe).expect("a pipe");
        refused(&[command, &["/dev/zero"]].concat(), &["/dev/zero is larger than 8 MiB"]);
        if command != simulate {
            refused(&[command, &[&agent]].concat(), &["is a file for `plimsoll agent`"]);
        }
    }
}

/// Nothing listens on what is no socket, so that nothing can be stopped.
#[test]
fn a_listener_in_the_place_of_a_file_is_refused() {
    let (_folder, other) = written(b"no socket");
    let (_folder, file) =
        written(text(&with_lines("")).replace("127.0.0.1:0", &format!("unix:{other}")).as_bytes());
    let said = ["cannot listen on unix:", "what is there is no socket", "Write another path"];
    failed(&plimsoll(&["run", &file]), 1, &said);
    assert_eq!(std::fs::read(other).expect("it is there"), b"no socket");
}

/// Each line of a text or of another program's configuration is an error of syntax: three of them say all.
#[test]
fn a_file_that_is_not_toml_is_refused_with_its_first_three_errors() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let (_folder, nginx) =
        written(b"worker_processes 4;\nevents {\n}\nhttp {\n    server {\n        listen 80;\n    }\n}\n");
    for file in [readme, &nginx] {
        let said = text(&plimsoll(&["check", file]).stderr);
        assert_eq!(said.matches("error[syntax]").count(), 3, "{said}");
        let last = said.lines().last().unwrap_or_default();
        assert!(last.contains(" errors in ") && last.ends_with(" of them not shown"), "{said}");
    }
    // A slip or two are shown whole, and so is all else that is wrong beside them.
    let slips = with_lines("admin = 127.0.0.1:1\nunknown = 1\nname = shop");
    let (_folder, slips) = written(&slips);
    let said = text(&plimsoll(&["check", &slips]).stderr);
    assert!(said.contains("error[unknown-key]") && !said.contains("not shown"), "{said}");
}

/// `run` would not start with them either.
#[test]
fn tokens_that_are_missing_or_short_are_wrong() {
    let (folder, file) = written(&with_lines("admin_token_file = \"admin.token\""));
    refused(&["check", &file], &["admin.token: No such file", "`admin_token_file` under [gateway]"]);
    std::fs::write(folder.path().join("admin.token"), "short\n").expect("it can be written");
    refused(&["check", &file], &["32 characters", "`admin_token_file` under [gateway]"]);
    std::fs::write(folder.path().join("admin.token"), "t".repeat(32)).expect("it can be written");
    let right = plimsoll(&["check", &file]);
    assert_eq!((right.status.code(), text(&right.stderr).as_str()), (Some(0), ""));
}

/// The same as of the gateway's own `admin`, before a state is made.
#[test]
fn a_controllers_admin_address_that_cannot_be_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str| folder.path().join(name).display().to_string();
    let of = |more: &str| {
        format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n{more}\n\
             [upstream.app]\naddress = \"127.0.0.1:1\"\ncapacity = {{ workers = 2 }}\n"
        )
    };
    std::fs::write(place("plain.toml"), of("")).expect("it can be written");
    let with_token = of("admin_token_file = \"admin.token\"");
    std::fs::write(place("token.toml"), with_token).expect("it can be written");
    let (plain, token, state) = (place("plain.toml"), place("token.toml"), place("state"));
    let control = |file: &str, admin: &str, said: &[&str]| {
        let arguments = ["control", file, "--state", &state, "--admin", admin];
        let output = plimsoll(&arguments);
        let stderr = text(&output.stderr);
        has(&stderr, said);
        assert!(!Path::new(&state).exists(), "no state is made: {stderr}");
        output.status.code()
    };
    let open = ["--admin 0.0.0.0:0: whoever reaches this address", "`admin_token_file = \"admin.token\"`"];
    assert_eq!(control(&plain, "0.0.0.0:0", &open), Some(2));
    let mapped = ["--admin [::ffff:10.0.0.1]:0: whoever reaches"];
    assert_eq!(control(&plain, "[::ffff:10.0.0.1]:0", &mapped), Some(2));
    let missing = ["admin.token: No such file", "`admin_token_file` under [gateway]"];
    assert_eq!(control(&token, "0.0.0.0:0", &missing), Some(2));
    assert_eq!(control(&token, "127.0.0.1:0", &missing), Some(2));
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = other.local_addr().expect("its address").to_string();
    let in_use = [&*format!("the controller does not start: cannot listen on {taken}: "), "after `--admin`"];
    assert_eq!(control(&plain, &taken, &in_use), Some(1));
    assert_eq!(control(&plain, "192.0.2.1:0", &["whoever reaches"]), Some(2));
    std::fs::write(place("admin.token"), "t".repeat(32)).expect("it can be written");
    assert_eq!(control(&token, "192.0.2.1:0", &["This machine has no such address"]), Some(1));
    refused(
        &["control", &plain, "--admin", "localhost:9091"],
        &["write `\"127.0.0.1:9091\"`", "'--admin <ADDRESS>'"],
    );
}

/// They may be there where the gateway runs.
#[test]
fn names_and_folders_that_are_not_here_are_warned_of() {
    let more = "[access_log]\nfile = \"no/such/folder/access.log\"";
    let (_folder, file) = written(&with_lines(more));
    let output = plimsoll(&["check", &file]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(
        said.contains("warning: there is no folder ") && said.contains("`plimsoll run` does not start"),
        "{said}"
    );
    let strict = |file: &str| plimsoll(&["check", "--strict", file]);
    let said = text(&strict(&file).stderr);
    assert!(said.contains("has a warning, which `--strict` does not let pass"), "{said}");
    assert_eq!(strict(&file).status.code(), Some(1));
    let (_folder, plain) = written(&with_lines(""));
    assert_eq!(strict(&plain).status.code(), Some(0), "{}", text(&strict(&plain).stderr));
    let open = "[[site]]\nname = \"shop\"\nexempt = [{ path = \"/healthz\" }]\n";
    let (_folder, open) = written(&[with_lines(""), open.into()].concat());
    assert_eq!(strict(&open).status.code(), Some(1), "a warning of the plan");
}

#[test]
fn a_socket_that_cannot_be_is_answered_with_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let listen = format!("listen = \"unix:{}/none/plimsoll.sock\"\nadmin = \"off\"", folder.path().display());
    let (_folder, file) = written(
        &String::from_utf8(with_lines(""))
            .expect("text")
            .replace("listen = \"127.0.0.1:0\"", &listen)
            .into_bytes(),
    );
    let output = plimsoll(&["run", &file]);
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("There is no folder for the socket: make it"),
        "{said}"
    );
}

/// As the status of a gateway with a token says it.
#[test]
fn the_dashboard_in_a_terminal_says_how_to_show_a_token() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address").to_string();
    let answer = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().expect("a client");
        let mut asked = [0; 1000];
        let _ = std::io::Read::read(&mut stream, &mut asked);
        let head = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _ = std::io::Write::write_all(&mut stream, head.as_bytes());
    });
    let output = plimsoll(&["top", &address, "--once"]);
    let said = text(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("asks for a token: `--token-file FILE`"),
        "{said}"
    );
    answer.join().expect("it answered");
}
