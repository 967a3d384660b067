//! Inside a Python server: the wheel, installed as a user would, and its middleware before a real controller.

use plimsoll_e2e::{Folder, binary, module, program};
use std::path::Path;
use std::process::Command;

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
    said
}

#[test]
fn the_wheel_is_installed_and_its_middleware_counts_each_request_once() {
    let (root, folder) = (Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), Folder::new());
    let (built, environment) = (module(), folder.path().join("venv"));
    run(Command::new(root.join(".ci/wheel")).arg(built));
    run(Command::new(program("python3")).args(["-m", "venv"]).arg(&environment));
    let wheel =
        built.read_dir().expect("the module's folder").filter_map(Result::ok).map(|entry| entry.path());
    let wheel =
        wheel.into_iter().find(|path| path.extension().is_some_and(|end| end == "whl")).expect("a wheel");
    let python = environment.join("bin/python");
    run(Command::new(&python)
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index"])
        .arg(wheel));
    let said = run(Command::new(&python)
        .args(["-W", "error", "-m", "unittest", "discover", "-s"])
        .arg(root.join("python/tests"))
        .current_dir(folder.path())
        .env_remove("PLIMSOLL_LIBRARY")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PLIMSOLL", binary())
        .env("PLIMSOLL_HEADER", built.join("plimsoll.h")));
    assert!(said.contains("Ran 21 tests"), "{said}");
}
