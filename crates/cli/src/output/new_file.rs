//! A file that a command writes: the old file stays until the new content is complete.
//!
//! The new content is written beside its place and replaces the old file at the end, so that a command that fails leaves the
//! old file. If the path is no ordinary file (a pipe, a device, this command's own output), it is written directly, because
//! nothing can replace it.

use super::failure::{Failure, folder, without_temporary_name};
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

#[derive(Debug)]
pub(crate) struct NewFile {
    /// The path as the user named it.
    path: PathBuf,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// A temporary file, and the place that it will take; if `path` is a link, that is where the link leads.
    Beside(NamedTempFile, PathBuf),
    Direct(File),
}

impl NewFile {
    /// Opens a file before the work whose result it will hold, so that a missing folder is reported at once.
    ///
    /// # Errors
    /// The file cannot be written, or the command reads it or the folder that it is in.
    pub(crate) fn begin(path: &Path, read: &[PathBuf]) -> Result<NewFile, Failure> {
        if let Some(input) = read.iter().find(|input| holds(input, path)) {
            return Err(Failure::Input(format!(
                "error: {} would be overwritten, and it is read: {}\nName another file for what is written.",
                path.display(),
                input.display()
            )));
        }
        let content =
            begin(path).map_err(|error| Failure::not_written(path, &without_temporary_name(error)))?;
        Ok(NewFile { path: path.to_owned(), content })
    }

    /// Refuses two files with the same place; each comes with the option that names it.
    pub(crate) fn must_differ(
        (option, one): (&str, &Option<NewFile>),
        (other_option, other): (&str, &Option<NewFile>),
    ) -> Result<(), Failure> {
        let (Some(one), Some(other)) = (one, other) else { return Ok(()) };
        match (&one.content, &other.content) {
            (Content::Beside(_, place), Content::Beside(_, others)) if place == others => {
                Err(Failure::Input(format!(
                    "error: `{option}` and `{other_option}` both name {}\nName another file for one of them.",
                    other.path.display()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Puts the file in its place.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let NewFile { path, content } = self;
        let placed = match content {
            // A file that is itself a mount point cannot be replaced, so the content is copied into it.
            Content::Beside(new, place) => {
                new.persist(&place).map(drop).or_else(|failed| match failed.error.kind() {
                    io::ErrorKind::ResourceBusy => fs::copy(failed.file.path(), &place).map(drop),
                    _ => Err(failed.error),
                })
            }
            Content::Direct(_) => Ok(()),
        };
        placed.map_err(|error| Failure::not_written(&path, &error))
    }

    /// Writes the whole text, and puts the file in its place.
    pub(crate) fn fill(mut self, text: &str) -> Result<(), Failure> {
        self.write_all(text.as_bytes()).map_err(|error| Failure::not_written(&self.path, &error))?;
        self.finish()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.content {
            Content::Beside(new, _) => new.as_file_mut().write(bytes),
            Content::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn begin(path: &Path) -> io::Result<Content> {
    let old = match fs::metadata(path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let Some(old) = old else {
        let place = folder(path).canonicalize()?.join(path.file_name().unwrap_or_default());
        // The process's umask decides which users may read the file.
        let mut builder = tempfile::Builder::new();
        let new = builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder(&place))?;
        return Ok(Content::Beside(new, place));
    };
    if !old.is_file() || is_output(&old) {
        return OpenOptions::new().append(true).open(path).map(Content::Direct);
    }
    // If this user may not write the file, it must not be replaced either.
    OpenOptions::new().write(true).open(path)?;
    let place = path.canonicalize()?;
    match NamedTempFile::new_in(folder(&place)) {
        Ok(new) => {
            new.as_file().set_permissions(old.permissions())?;
            Ok(Content::Beside(new, place))
        }
        // The file may be writable although its folder is not, so it is written directly.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            OpenOptions::new().write(true).truncate(true).open(path).map(Content::Direct)
        }
        Err(error) => Err(error),
    }
}

/// Whether the file at `path` is `input`, or is or would be in the folder `input`.
fn holds(input: &Path, path: &Path) -> bool {
    let is = fs::metadata(path);
    let place = if is.is_ok() { path.canonicalize() } else { folder(path).canonicalize() };
    match (fs::metadata(input), is) {
        (_, Ok(is)) if !is.is_file() => false,
        (Ok(input_is), _) if input_is.is_dir() => {
            place.is_ok_and(|place| input.canonicalize().is_ok_and(|folder| place.starts_with(folder)))
        }
        (Ok(input_is), Ok(is)) => same(&input_is, &is),
        _ => false,
    }
}

/// Whether this process prints to the file.
fn is_output(file: &Metadata) -> bool {
    let outputs = [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
    let outputs = outputs.into_iter().flatten().map(File::from);
    outputs.flat_map(|output| output.metadata()).any(|output| same(&output, file))
}

fn same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_file_stays_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("report.html"), folder.path().join("link"));
        NewFile::begin(&path, &[]).unwrap().fill("old").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut given_up = NewFile::begin(&link, &[]).unwrap();
        given_up.write_all(b"ha").unwrap();
        drop(given_up);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        NewFile::begin(&link, &[]).unwrap().fill("new").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.is_symlink(), "a link leads to it as before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing temporary stays");
    }

    #[test]
    fn what_is_read_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let (log, other) = (folder.path().join("a.log"), folder.path().join("hard-link"));
        fs::write(&log, "line\n").unwrap();
        fs::hard_link(&log, &other).unwrap();
        for input in [&log, &folder.path().to_owned()] {
            let refused = NewFile::begin(&other, std::slice::from_ref(input)).unwrap_err();
            assert!(refused.text().contains("it is read"), "{}", refused.text());
        }
    }

    #[test]
    fn what_cannot_be_written_is_said_with_what_to_name_instead() {
        let folder = tempfile::tempdir().unwrap();
        let refusal = |path: &Path| NewFile::begin(path, &[]).unwrap_err().text().to_owned();
        let missing = "No such file or directory (os error 2)\nName a file in a folder that is there";
        let nowhere = refusal(&folder.path().join("none/report.html"));
        assert!(nowhere.contains(&format!("none/report.html: {missing}")), "{nowhere}");
        // No temporary file can be made in /proc, and the message must not name the temporary file.
        let temporary = refusal(Path::new("/proc/report.html"));
        assert!(temporary.starts_with(&format!("cannot write /proc/report.html: {missing}")), "{temporary}");
        let itself = refusal(folder.path());
        assert!(itself.ends_with("(os error 21)\nThat is a folder; name a file in it."), "{itself}");
    }

    #[test]
    fn a_device_is_written_to() {
        let full = NewFile::begin(Path::new("/dev/full"), &[]).unwrap();
        assert!(full.fill("page").unwrap_err().text().contains("cannot write /dev/full: No space left"));
        let both = [(), ()].map(|()| Some(NewFile::begin(Path::new("/dev/null"), &[]).unwrap()));
        assert!(NewFile::must_differ(("--a", &both[0]), ("--b", &both[1])).is_ok(), "both may go there");
    }
}
