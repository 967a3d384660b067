//! Programs in C over the library, built as a user does who has installed it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// The library, its header and its `plimsoll.pc` in a folder of their own, as `.ci/module` puts them.
pub(crate) struct Installed(tempfile::TempDir);

impl Installed {
    /// Installs the library that Cargo has put into this folder.
    pub(crate) fn new(examples: &Path) -> io::Result<Self> {
        let (own, folder) = (Path::new(env!("CARGO_MANIFEST_DIR")), tempfile::tempdir()?);
        let to = |name: &str| folder.path().join(name);
        fs::copy(examples.join("libplimsoll.so"), to("libplimsoll.so.0"))?;
        std::os::unix::fs::symlink("libplimsoll.so.0", to("libplimsoll.so"))?;
        fs::copy(own.join("include/plimsoll.h"), to("plimsoll.h"))?;
        let description = fs::read_to_string(own.join("plimsoll.pc.in"))?
            .replace("@PREFIX@", &folder.path().display().to_string())
            .replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        fs::write(to("plimsoll.pc"), description)?;
        Ok(Installed(folder))
    }

    /// What `pkg-config` tells of it.
    pub(crate) fn told(&self, arguments: &[&str]) -> String {
        let mut asked = Command::new("pkg-config");
        said(asked.env("PKG_CONFIG_PATH", self.0.path()).args(arguments).arg("plimsoll"))
    }

    /// Compiles a program of this crate; `more` goes to the compiler. Only the library is left then, by the name that has its
    /// version, as where a program runs.
    pub(crate) fn compile(&self, source: &str, more: &[&str]) -> PathBuf {
        let built = self.0.path().join("program");
        let mut compiler = Command::new("cc");
        compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror"]).args(more).arg("-o").arg(&built);
        compiler.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source));
        compiler.args(self.told(&["--cflags", "--libs"]).split_whitespace());
        said(compiler.arg(format!("-Wl,-rpath,{}", self.0.path().display())));
        for name in ["libplimsoll.so", "plimsoll.h", "plimsoll.pc"] {
            fs::remove_file(self.0.path().join(name)).expect("it is there");
        }
        built
    }
}

/// What a command says. Panics, with its errors, if it fails.
pub(crate) fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {:?}: {errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
