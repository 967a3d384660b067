//! A folder that lasts as long as its value.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// A new, empty folder, readable by the unprivileged users that servers change to; removed on drop.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes one. Panics if the system's folder for temporary files is not writable.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "making a folder is no default value")]
    pub fn new() -> Folder {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("plimsoll-e2e-{}-{number}", process::id()));
        fs::create_dir_all(&path).unwrap_or_else(|error| panic!("cannot make {}: {error}", path.display()));
        let folder = Folder { path };
        Folder::open_to_all(folder.path());
        folder
    }

    /// Copies a program into it, where every user may run it, and returns its path: the build's folder may be closed to
    /// the user that a server runs as.
    pub fn install(&self, program: &Path) -> PathBuf {
        let file = self.path.join(program.file_name().unwrap_or(program.as_os_str()));
        fs::copy(program, &file).unwrap_or_else(|error| panic!("cannot copy {}: {error}", program.display()));
        Folder::open_to_all(&file);
        file
    }

    fn open_to_all(path: &Path) {
        fs::set_permissions(path, Permissions::from_mode(0o755))
            .unwrap_or_else(|error| panic!("cannot open {} to all: {error}", path.display()));
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file in it, with the folders above it, and returns its path.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let file = self.path.join(name);
        let above = file.parent().unwrap_or(&self.path);
        fs::create_dir_all(above).unwrap_or_else(|error| panic!("cannot make {}: {error}", above.display()));
        fs::write(&file, text).unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failure to clean up must not hide what the test has to say.
        drop(fs::remove_dir_all(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_with_its_value() {
        let folder = Folder::new();
        let file = folder.write("a/b.txt", "text");
        assert_eq!(fs::read_to_string(&file).unwrap(), "text");
        let path = folder.path().to_owned();
        assert_ne!(path, Folder::new().path());
        let program = folder.install(Path::new("/bin/sh"));
        assert_eq!(program.metadata().unwrap().permissions().mode() & 0o777, 0o755);
        drop(folder);
        assert!(!path.exists());
    }
}
