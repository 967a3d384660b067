//! Whether what Cargo has built is of the sources as they are now.
//!
//! Cargo builds neither the program nor the libraries in C where it is asked for the tests alone (`--test end_to_end`), so that
//! the tests would judge what was built before a change.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Panics, with the file, if a source has changed since `built` was.
pub(crate) fn assert_current(built: &Path) {
    if let Some(source) = changed_since(built) {
        panic!(
            "{} is older than {}: build it by `make built`, or by `cargo test --no-run` with the options of these tests and without \
             `--test`",
            built.display(),
            source.display()
        );
    }
}

/// The first of the sources that Cargo has listed beside what it has built that is newer, or gone.
fn changed_since(built: &Path) -> Option<PathBuf> {
    let modified = |path: &Path| -> Option<SystemTime> { fs::metadata(path).ok()?.modified().ok() };
    let (time, list) = (modified(built)?, built.with_extension("d"));
    // Cargo writes the list where the file itself is asked for. An older list is of another build.
    let listed = fs::read_to_string(&list).ok().filter(|_| modified(&list) >= Some(time))?;
    let (_, sources) = listed.lines().next()?.split_once(": ")?;
    // A space within a name follows a backslash.
    let sources = sources.replace("\\ ", "\0");
    let mut sources = sources.split(' ').map(|source| PathBuf::from(source.replace('\0', " ")));
    sources.find(|source| modified(source).is_none_or(|changed| changed > time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::Duration;

    #[test]
    fn a_source_that_is_newer_or_gone_is_named() {
        let folder = crate::Folder::new();
        let sources = ["one.rs", "the other.rs"].map(|name| folder.write(name, ""));
        let built = folder.write("library.so", "");
        let names = sources.each_ref().map(|source| source.display().to_string().replace(' ', "\\ "));
        folder.write("library.d", format!("{}: {}\n", built.display(), names.join(" ")));
        let touch = |path: &Path, seconds| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            File::options().write(true).open(path).and_then(|file| file.set_modified(time)).expect("a time");
        };
        touch(&built, 10);
        touch(&built.with_extension("d"), 10);
        sources.iter().for_each(|source| touch(source, 9));
        assert_eq!(changed_since(&built), None);
        touch(&sources[1], 11);
        assert_eq!(changed_since(&built).as_deref(), Some(sources[1].as_path()));
        fs::remove_file(&sources[0]).expect("it is there");
        assert_eq!(changed_since(&built).as_deref(), Some(sources[0].as_path()));
        touch(&built.with_extension("d"), 9);
        assert_eq!(changed_since(&built), None, "the list is of another build");
        assert_eq!(changed_since(&folder.write("unlisted", "")), None);
    }
}
