//! The folder of the trees: written beside the old one, and exchanged with it in one step.
//!
//! If the disk is full, a failure occurs or the user presses Ctrl-C, the old trees stay, because everything is written into a
//! new folder first. Then the kernel exchanges the two names in one step (`renameat2`, `RENAME_EXCHANGE`), so that a server
//! that looks files up by name finds complete trees at every moment. Unchanged files are links to those of the old trees: they
//! keep their time, and caches need not check them again.

use super::manifest::is_manifest;
use crate::parallel::{about, refused};
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, BufRead, BufReader, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// The manifest's name, which marks a folder of trees.
pub(crate) const MANIFEST: &str = "manifest.json";

/// A new folder of trees, which is removed unless it is published.
#[derive(Debug)]
pub(crate) struct Output {
    /// Where the folder is to be published.
    out: PathBuf,
    /// Where the folder is written.
    new: PathBuf,
    published: bool,
    /// A lock that is held while this process works on the folder.
    _lock: File,
}

impl Output {
    /// Creates a new folder for `out`.
    ///
    /// # Errors
    /// `InvalidInput`: `out` is in the site or contains it, or holds something else; or the folder cannot be written.
    pub(crate) fn begin(site: &Path, out: &Path) -> io::Result<Output> {
        let shown = out.display();
        let cannot = |error: io::Error| {
            refused(format!(
                "cannot write the trees to {shown}: {error}; name a folder in one that is there and that this user may write to"
            ))
        };
        // If `out` is a link, the folder that it leads to is used, and the link stays.
        let out = resolved(out).map_err(cannot)?;
        if out.starts_with(site) || site.starts_with(&out) {
            let site = site.display();
            return Err(refused(format!(
                "{shown}: in the site {site}, or around it; write the trees elsewhere"
            )));
        }
        let is_ours = is_manifest(&out.join(MANIFEST));
        if out.exists() && !is_ours && (!out.is_dir() || fs::read_dir(&out)?.next().is_some()) {
            return Err(refused(format!(
                "{shown}: there is something that `adapt` did not make; name a folder that is empty or not there"
            )));
        }
        let (Some(parent), Some(name)) = (out.parent(), out.file_name()) else {
            return Err(refused(format!("{shown}: no name for a folder")));
        };
        let new = parent.join(format!(".{}.plimsoll-new", name.to_string_lossy()));
        fs::create_dir_all(&new).map_err(cannot)?;
        let lock = File::open(&new)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(io::Error::other(format!("{shown}: another `adapt` is at work on it")));
        }
        // Files that are already in the new folder were left by a run that was killed.
        for entry in fs::read_dir(&new)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(path)?
            } else {
                fs::remove_file(path)?
            }
        }
        Ok(Output { out, new, published: false, _lock: lock })
    }

    /// The path of a file in the present trees.
    pub(crate) fn old(&self, path: &str) -> PathBuf {
        self.out.join(path)
    }

    /// The path of a file in the new trees; its parent folders are created.
    pub(crate) fn place(&self, path: &str) -> io::Result<PathBuf> {
        let place = self.new.join(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(|error| about(parent, &error))?;
        }
        Ok(place)
    }

    /// Writes a file with the rights of the site's file `of`, or links it to the old tree's file if that is the same. True if
    /// it was written.
    ///
    /// If a copy beside a file (`page.html.gz`, `photo.png.webp`) is older than that file it is written anew, because servers
    /// treat it as outdated.
    pub(crate) fn write(&self, path: &str, bytes: &[u8], of: Option<&Path>) -> io::Result<bool> {
        let (old, place) = (self.old(path), self.place(path)?);
        let of = of.map(|of| fs::metadata(of).map_err(|error| about(of, &error))).transpose()?;
        let mode = of.as_ref().map(rights);
        let original = fs::metadata(place.with_extension("")).and_then(|original| original.modified()).ok();
        let is_same = |found: &Metadata| {
            found.len() == bytes.len() as u64
                && mode.is_none_or(|mode| rights(found) == mode)
                && found.modified().ok() >= original
                && fs::read(&old).is_ok_and(|old| old == bytes)
        };
        if linked(&old, &place, is_same) {
            return Ok(false);
        }
        let first = if mode.is_some() { 0o600 } else { 0o666 };
        let written = || {
            let mut file = File::options().write(true).create_new(true).mode(first).open(&place)?;
            file.write_all(bytes)?;
            mode.map_or(Ok(()), |mode| file.set_permissions(Permissions::from_mode(mode)))
        };
        written().map_err(|error| about(&place, &error))?;
        Ok(true)
    }

    /// Copies a file of the site with its time, or links it to the old tree's file if size and rights are the same, and time or
    /// content: if a site was checked out again, its files have new times. True if it was copied.
    pub(crate) fn copy(&self, from: &Path, path: &str) -> io::Result<bool> {
        let (old, place) = (self.old(path), self.place(path)?);
        let of = fs::metadata(from).map_err(|error| about(from, &error))?;
        let is_same = |found: &Metadata| {
            let is_of_time = found.modified().ok() == of.modified().ok();
            found.len() == of.len()
                && rights(found) == rights(&of)
                && (is_of_time || has_same_content(from, &old).unwrap_or(false))
        };
        if linked(&old, &place, is_same) {
            return Ok(false);
        }
        fs::copy(from, &place).map_err(|error| about(&place, &error))?;
        let file = File::options().write(true).open(&place);
        // If its owner may not write the file, the copy cannot get the file's time and has the present one.
        if let (Ok(file), Ok(modified)) = (file, of.modified()) {
            file.set_modified(modified)?;
        }
        Ok(true)
    }

    /// Puts the new folder in the old one's place.
    ///
    /// # Errors
    /// The folder cannot be put there; the old one stays.
    pub(crate) fn publish(mut self) -> io::Result<()> {
        if !self.out.exists() {
            fs::rename(&self.new, &self.out)?;
            self.published = true;
            return Ok(());
        }
        match renameat_with(CWD, &self.new, CWD, &self.out, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            // The file system cannot exchange names, so for a moment neither folder has the name.
            Err(Errno::INVAL | Errno::NOSYS) => {
                let aside = self.new.with_extension("plimsoll-old");
                fs::rename(&self.out, &aside)?;
                if let Err(error) = fs::rename(&self.new, &self.out) {
                    fs::rename(&aside, &self.out)?;
                    return Err(error);
                }
                fs::rename(&aside, &self.new)?;
            }
            Err(error) => return Err(error.into()),
        }
        // The new name now leads to the old trees, which are removed when this value is dropped.
        Ok(())
    }
}

/// The path with links followed, also if its last folders do not exist yet.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name = path.file_name().ok_or(error)?;
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            Ok(resolved(parent.unwrap_or(Path::new(".")))?.join(name))
        }
        found => found,
    }
}

/// The rights to read, write and run a file.
fn rights(of: &Metadata) -> u32 {
    of.permissions().mode() & 0o777
}

fn has_same_content(one: &Path, other: &Path) -> io::Result<bool> {
    let (mut one, mut other) = (BufReader::new(File::open(one)?), BufReader::new(File::open(other)?));
    loop {
        let (left, right) = (one.fill_buf()?, other.fill_buf()?);
        let count = left.len().min(right.len());
        if count == 0 || left[..count] != right[..count] {
            return Ok(left.is_empty() && right.is_empty());
        }
        one.consume(count);
        other.consume(count);
    }
}

/// If the old file is the same, links it to its new place.
fn linked(old: &Path, place: &Path, is_same: impl Fn(&Metadata) -> bool) -> bool {
    let found = fs::symlink_metadata(old);
    found.is_ok_and(|found| found.is_file() && is_same(&found)) && fs::hard_link(old, place).is_ok()
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.published {
            // The next run removes whatever is left.
            let _ = fs::remove_dir_all(&self.new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tree::tests::folder_of;
    use std::time::{Duration, SystemTime};

    /// As much of a manifest as marks a folder as one that `adapt` made.
    const MANIFEST_OF_OURS: &[u8] = br#"{"plimsoll": 1, "trees": []}"#;

    #[test]
    fn the_old_trees_stay_until_the_new_are_whole() {
        let folder = folder_of(&["site/a"]);
        let path = |path: &str| folder.path().join(path);
        let (site, out) = (path("site").canonicalize().unwrap(), path("out"));
        let first = Output::begin(&site, &out).unwrap();
        assert!(first.write("light/a", b"one", None).unwrap());
        first.write(MANIFEST, MANIFEST_OF_OURS, None).unwrap();
        assert!(!out.exists());
        first.publish().unwrap();
        let second = Output::begin(&site, &out).unwrap();
        assert!(Output::begin(&site, &out).unwrap_err().to_string().contains("another"));
        assert!(!second.write("light/a", b"one", None).unwrap(), "it is there already");
        second.write("light/b", b"two", None).unwrap();
        drop(second);
        assert!(!path("out/light/b").exists(), "it was given up");
        let third = Output::begin(&site, &out).unwrap();
        third.write("light/c", b"three", None).unwrap();
        third.write(MANIFEST, MANIFEST_OF_OURS, None).unwrap();
        third.publish().unwrap();
        assert!(path("out/light/c").exists() && !path("out/light/a").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
    }

    /// If a copy beside a file is older than the file, servers treat it as a copy of the old file.
    #[test]
    fn new_times_make_no_copy_older_than_its_file() {
        let folder = folder_of(&["site/a.png"]);
        let path = |path: &str| folder.path().join(path);
        let (from, out) = (path("site/a.png"), path("out"));
        let run = |content: &str, age: u64| {
            fs::write(&from, content).unwrap();
            let time = SystemTime::now() - Duration::from_secs(age);
            File::options().write(true).open(&from).unwrap().set_modified(time).unwrap();
            let output = Output::begin(&path("site").canonicalize().unwrap(), &out).unwrap();
            let copied = output.copy(&from, "light/a.png").unwrap();
            let written = output.write("light/a.png.webp", b"webp", None).unwrap();
            output.write(MANIFEST, MANIFEST_OF_OURS, None).unwrap();
            output.publish().unwrap();
            let [file, copy] = ["a.png", "a.png.webp"]
                .map(|name| fs::metadata(out.join("light").join(name)).unwrap().modified().unwrap());
            assert!(copy >= file, "{content}");
            (copied, written)
        };
        assert_eq!(run("x", 3600), (true, true));
        assert_eq!(run("x", 0), (false, false), "the same bytes at another time");
        assert_eq!(run("y", 0), (true, true), "another file with the same copy");
    }

    #[test]
    fn what_few_may_read_stays_so() {
        let folder = folder_of(&["site/a"]);
        let path = |path: &str| folder.path().join(path);
        let (site, out) = (path("site").canonicalize().unwrap(), path("out"));
        let source = site.join("a");
        for mode in [0o600, 0o640, 0o644, 0o400] {
            fs::set_permissions(&source, Permissions::from_mode(mode)).unwrap();
            let output = Output::begin(&site, &out).unwrap();
            assert!(output.copy(&source, "full/a").unwrap(), "its rights are others");
            assert!(output.write("lean/a", b"less", Some(&source)).unwrap());
            output.write(MANIFEST, MANIFEST_OF_OURS, None).unwrap();
            output.publish().unwrap();
            let made = ["out/full/a", "out/lean/a"].map(|place| rights(&fs::metadata(path(place)).unwrap()));
            assert_eq!(made, [mode; 2]);
        }
    }

    #[test]
    fn what_is_not_ours_is_not_touched() {
        let folder = folder_of(&["a/site/x", "mine/letter"]);
        let path = |path: &str| folder.path().join(path);
        let site = path("a/site").canonicalize().unwrap();
        for out in ["a/site", "a/site/out", "a", "mine", "mine/letter", "mine/letter/out"] {
            let error = Output::begin(&site, &path(out)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{out}: {error}");
        }
        assert_eq!(fs::read_dir(&site).unwrap().count(), 1, "nothing was made in the site");
        Output::begin(&site, &path("a/sites")).unwrap();
        Output::begin(&site, &path("far/away/out")).unwrap();
    }
}
