//! The path of a state, and whether the state's file still has it. If the file was removed, or a controller has made it anew, a
//! process that has mapped the former file goes on with a file that no other process finds.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The path and the file of a state as it was mapped. While the file is mapped, no other file gets its number.
#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl StateFile {
    /// The file of the state that has just been mapped from this path.
    pub(crate) fn of(path: &Path) -> Self {
        StateFile { path: path.to_owned(), file: file_at(path) }
    }

    /// Whether the path leads elsewhere now: to another file, or to none.
    pub(crate) fn is_gone_or_replaced(&self) -> bool {
        self.file.is_none() || file_at(&self.path) != self.file
    }

    /// Whether the path leads to another file now.
    pub(crate) fn is_replaced(&self) -> bool {
        file_at(&self.path).is_some_and(|file| Some(file) != self.file)
    }
}

/// The file of this name, by its device and its number.
fn file_at(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn a_state_file_is_gone_when_it_is_removed_and_replaced_when_another_has_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        // The file is open, so its number is not given to another.
        let _first = File::create(&path).unwrap();
        let place = StateFile::of(&path);
        assert!(!place.is_gone_or_replaced() && !place.is_replaced());
        fs::remove_file(&path).unwrap();
        assert!(place.is_gone_or_replaced() && !place.is_replaced());
        File::create(&path).unwrap();
        assert!(place.is_gone_or_replaced() && place.is_replaced());
        assert!(StateFile::of(&folder.path().join("none")).is_gone_or_replaced());
    }
}
