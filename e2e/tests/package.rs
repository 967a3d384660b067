//! The Debian package, made of the binary under test: what is in it, and whether its configuration and its units work.
//! `make deb-test` installs it in a Debian that boots.

use plimsoll_e2e::{Folder, Process, binary, free_port, get};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name)
}

/// What a program prints. Panics, with all that it said, if it fails.
fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{}{said}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_package_has_all_that_an_operator_needs() {
    let folder = Folder::new();
    let mut make = Command::new(packaging("deb"));
    make.arg(binary()).arg(folder.path()).env("DPKG_DEB_COMPRESSOR_TYPE", "none");
    let package = PathBuf::from(printed(&mut make).trim_end());
    let version = env!("CARGO_PKG_VERSION");
    let begin = format!("plimsoll_{version}_");
    assert!(
        package.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&begin)),
        "{package:?}"
    );

    let unpacked = folder.path().join("unpacked");
    printed(Command::new("dpkg-deb").arg("--raw-extract").arg(&package).arg(&unpacked));
    for path in [
        "usr/bin/plimsoll",
        "etc/plimsoll/plimsoll.toml",
        "lib/systemd/system/plimsoll.service",
        "lib/systemd/system/plimsoll.socket",
        "usr/lib/sysusers.d/plimsoll.conf",
        "usr/share/bash-completion/completions/plimsoll",
        "usr/share/zsh/vendor-completions/_plimsoll",
        "usr/share/fish/vendor_completions.d/plimsoll.fish",
        "usr/share/man/man1/plimsoll.1.gz",
        "usr/share/man/man1/plimsoll-run.1.gz",
        "usr/share/plimsoll/welcome/index.html",
        "usr/share/doc/plimsoll/README.md",
        "usr/share/doc/plimsoll/changelog.gz",
        "usr/share/doc/plimsoll/copyright",
        "usr/share/doc/plimsoll/docs/configuration.md",
        "usr/share/doc/plimsoll/examples/one-site.toml",
        "usr/share/doc/plimsoll/examples/prometheus/plimsoll.rules.yml",
    ] {
        assert!(unpacked.join(path).is_file(), "the package has no {path}");
    }
    let control = |name: &str| fs::read_to_string(unpacked.join("DEBIAN").join(name)).unwrap_or_default();
    assert_eq!(control("conffiles"), "/etc/logrotate.d/plimsoll\n/etc/plimsoll/plimsoll.toml\n");
    assert!(control("control").contains(&format!("Version: {version}\n")), "{}", control("control"));
}

#[test]
fn its_configuration_serves_a_page_as_it_stands() {
    let folder = Folder::new();
    let text = fs::read_to_string(packaging("plimsoll.toml")).expect("it is there");
    let (listen, admin) = (free_port(), free_port());
    let text = text
        .replace("\"0.0.0.0:8080\"", &format!("\"127.0.0.1:{listen}\""))
        .replace("\"127.0.0.1:9090\"", &format!("\"127.0.0.1:{admin}\""))
        .replace("/usr/share/plimsoll/welcome", &packaging("welcome").display().to_string());
    let file = folder.write("plimsoll.toml", &text);
    printed(Command::new(binary()).arg("check").arg(&file));
    let log = folder.path().join("run.log");
    let mut gateway = Process::spawn("plimsoll", Command::new(binary()).arg("run").arg(&file), &log);
    gateway.wait_for("its addresses", |log| log.contains("admin on ").then_some(()));
    let page = get(([127, 0, 0, 1], listen).into(), "/");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("Plimsoll is running"), "{}", page.text());

    // What its comments say for one's own server.
    let own: String = text.split("# In front of your server").next().unwrap_or_default().to_owned();
    let lines =
        text.lines().filter_map(|line| line.strip_prefix('#')).filter(|line| line.starts_with(['[', 'a']));
    let own = lines.fold(own, |file, line| file + line + "\n");
    assert!(own.contains("[upstream.app]\naddress = "), "{own}");
    printed(Command::new(binary()).arg("check").arg(folder.write("own.toml", own)));
}

#[test]
fn its_units_are_right_and_tightly_bounded() {
    let folder = Folder::new();
    let unit = fs::read_to_string(packaging("plimsoll.service")).expect("it is there");
    let service = unit.replace("=plimsoll ", &format!("={} ", binary().display()));
    assert!(service != unit);
    let files = [
        folder.write("plimsoll.service", service),
        folder.write("plimsoll.socket", fs::read(packaging("plimsoll.socket")).expect("it is there")),
    ];
    printed(Command::new("systemd-analyze").arg("verify").args(&files));
    // The exposure in tenths.
    printed(
        Command::new("systemd-analyze").args(["security", "--offline=true", "--threshold=20"]).arg(&files[0]),
    );
}
