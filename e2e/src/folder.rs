//! A folder that lasts as long as its value.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// A new, empty folder, readable by the unprivileged users that servers change to; removed on the drop of its last copy.
#[derive(Clone, Debug)]
pub struct Folder(Arc<TempDir>);

impl Folder {
    /// Makes one. Panics if the system's folder for temporary files is not writable.
    #[expect(clippy::new_without_default, reason = "making a folder is no default value")]
    pub fn new() -> Folder {
        let made = tempfile::Builder::new().prefix("plimsoll-e2e-").tempdir();
        let made = made.unwrap_or_else(|error| panic!("cannot make a folder: {error}"));
        let folder = Folder(Arc::new(made));
        open_to_all(folder.path());
        folder
    }

    /// Copies a program into it, where every user may run it, and returns its path: the build's folder may be closed to the
    /// user that a server runs as.
    pub fn install(&self, program: &Path) -> PathBuf {
        let file = self.path().join(program.file_name().unwrap_or(program.as_os_str()));
        fs::copy(program, &file).unwrap_or_else(|error| panic!("cannot copy {}: {error}", program.display()));
        open_to_all(&file);
        file
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file in it, with the folders above it, and returns its path.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let file = self.path().join(name);
        let above = file.parent().unwrap_or(self.path());
        fs::create_dir_all(above).unwrap_or_else(|error| panic!("cannot make {}: {error}", above.display()));
        fs::write(&file, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
        file
    }
}

/// Lets every user read and enter it.
pub fn open_to_all(path: &Path) {
    fs::set_permissions(path, Permissions::from_mode(0o755))
        .unwrap_or_else(|error| panic!("cannot open {} to all: {error}", path.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_program_can_be_run_by_everybody() {
        let program = Folder::new().install(Path::new("/bin/sh"));
        assert!(!program.exists(), "the folder goes with its value");
        let folder = Folder::new();
        assert_eq!(
            folder.install(Path::new("/bin/sh")).metadata().unwrap().permissions().mode() & 0o777,
            0o755
        );
    }
}
