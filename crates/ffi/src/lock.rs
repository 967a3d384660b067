//! The lock of a state's controller: a file beside the state, which the kernel unlocks when the owner's process ends in any
//! way. Only the owner of the lock makes, replaces or takes over a state, and publishes in it. The file is never removed.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The number of tries while another process has the lock, which it may give up; and the number until that process has written
/// its number, which may take some time on a busy machine.
const TRIES: usize = 5;
const MOST_TRIES: usize = 200;
const BETWEEN: Duration = Duration::from_millis(10);

/// The lock, which is released when this value is dropped.
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock of the state at `path`.
    ///
    /// # Errors
    /// Another process has the lock, or the file cannot be used; the error is a sentence.
    pub(crate) fn take(path: &Path) -> Result<Lock, String> {
        let name = beside(path, ".lock");
        let failed = |error: io::Error| sentence(path, &name, &error);
        let mut holder = String::new();
        for tried in 1..=MOST_TRIES {
            let mut file = open(&name).map_err(failed)?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &name) => {
                    write_number(&mut file).map_err(failed)?;
                    return Ok(Lock { _file: file });
                }
                // The file was replaced between its opening and its locking.
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    holder.clear();
                    let _ = file.read_to_string(&mut holder);
                    if tried >= TRIES && !holder.is_empty() {
                        break;
                    }
                    std::thread::sleep(BETWEEN);
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        let holder = holder
            .trim()
            .parse::<u32>()
            .map_or("another process".to_owned(), |number| format!("process {number}"));
        Err(format!("{}: {holder} is its controller; stop that one, or name another file", path.display()))
    }
}

/// The error as a sentence, with what to do about it.
fn sentence(path: &Path, name: &Path, error: &io::Error) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if error.kind() == io::ErrorKind::NotFound {
        let folder = folder.display();
        return format!(
            "{folder}: the folder of the state is missing; make it for the user of the server's processes: \
             `install -d -o www-data {folder}` (systemd: `RuntimeDirectory=`)"
        );
    }
    format!(
        "{}: {error}; name a state in a folder that this user may write to, or remove this file if another user has left it",
        name.display()
    )
}

/// A hidden file beside a state.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(ending);
    path.with_file_name(name)
}

fn open(name: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.mode(0o600).custom_flags(libc::O_NOFOLLOW).open(name)
}

/// Whether the file still has this name.
fn is_at(file: &File, name: &Path) -> bool {
    let [one, other] = [file.metadata(), fs::symlink_metadata(name)]
        .map(|file| file.map(|file| (file.dev(), file.ino())).ok());
    one.is_some() && one == other
}

/// Writes this process's number into the lock's file, for processes that find it locked.
fn write_number(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Controller, Counts, Server, Taken};
    use std::sync::Barrier;

    const CONFIGURATION: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n\n\
                                 [upstream.server]\naddress = \"127.0.0.1:80\"\ncapacity = { workers = 4 }\n\n\
                                 [[site]]\nname = \"www\"\n";

    fn start(state: &Path) -> Result<(Controller, Taken), Vec<String>> {
        let configuration = plimsoll_config::parse_inside(CONFIGURATION, "test").unwrap();
        Controller::start(state, (CONFIGURATION, &configuration), 1, 2)
    }

    /// Whether the state is new or old: of eight processes one becomes its controller, and publishes in the file of that name.
    #[test]
    fn one_of_those_that_start_at_once_is_the_controller() {
        let own = format!("process {} is its controller", std::process::id());
        let folder = tempfile::tempdir().unwrap();
        for round in 0..20 {
            let state = folder.path().join((round / 2).to_string());
            let begin = Barrier::new(8);
            let started: Vec<_> = std::thread::scope(|scope| {
                let one = || {
                    begin.wait();
                    start(&state)
                };
                let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
                all.into_iter().map(|one| one.join().unwrap()).collect()
            });
            let (mut controllers, refused): (Vec<_>, Vec<_>) = started.into_iter().partition(Result::is_ok);
            assert_eq!((controllers.len(), refused.len()), (1, 7));
            for one in refused {
                let wrong = one.err().unwrap();
                assert!(wrong.len() == 1 && wrong[0].contains(&own), "{wrong:?}");
            }
            let (mut controller, taken) = controllers.pop().unwrap().unwrap();
            assert_eq!(taken, if round % 2 == 0 { Taken::Made } else { Taken::Over });
            let generation = |counts: Counts| counts.generation;
            controller.tick();
            let server = Server::attach(&state).unwrap();
            let before = generation(server.counts());
            controller.tick();
            assert_eq!(generation(server.counts()), before + 1, "it publishes elsewhere");
        }
        let left =
            fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        assert!(left.into_iter().all(|name| !name.ends_with(".new")));
    }

    #[test]
    fn a_folder_that_is_missing_is_told_with_what_makes_it() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("plimsoll");
        let wrong = start(&missing.join("state")).err().unwrap().join("\n");
        assert!(wrong.contains(&format!("`install -d -o www-data {}`", missing.display())), "{wrong}");
        assert!(!wrong.contains(".lock") && !wrong.contains("remove"), "{wrong}");
    }

    #[test]
    fn a_lock_file_that_was_removed_locks_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let name = beside(&state, ".lock");
        let old = open(&name).unwrap();
        fs::remove_file(&name).unwrap();
        old.try_lock().unwrap();
        assert!(!is_at(&old, &name));
        let lock = Lock::take(&state).unwrap();
        assert!(Lock::take(&state).is_err());
        drop(lock);
        Lock::take(&state).unwrap();
    }
}
