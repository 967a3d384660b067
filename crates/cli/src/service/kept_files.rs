//! The files that a gateway writes: `state`, `rate_forecast`, access logs. Each must be an ordinary file, and none may be
//! another file that the gateway reads or writes, because it would be replaced, or lines would be appended to it.

use super::{forecast_file, state};
use crate::output::failure::{Failure, folder};
use plimsoll_config::Configuration;
use plimsoll_gateway::settings::LogTarget;
use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The largest state or forecast (bytes). A larger file is something else, or has no end.
const LARGEST: u64 = 64 << 20;
/// The most links that are followed in a row, as in the kernel.
const LINKS: usize = 40;

/// Refuses files that are something else, or have two uses, before anything is written. The state `in_force` is this gateway's
/// own and is not checked; if something else took its place, the next write says so.
pub(crate) fn refuse(
    configuration: &Configuration,
    file: &Path,
    in_force: Option<&Path>,
) -> Result<(), Failure> {
    let state = state::path(configuration, file);
    if let Some(path) = state.as_ref().filter(|path| Some(path.as_path()) != in_force) {
        state::refuse_other_file(path)?;
    }
    if let Some(path) = &configuration.gateway.rate_forecast {
        forecast_file::read(path)?;
    }
    let kept = state.iter().map(|path| ("`state` under [gateway]", path.as_path()));
    let kept = kept.chain(
        configuration
            .gateway
            .rate_forecast
            .iter()
            .map(|path| ("`rate_forecast` under [control]", path.as_path())),
    );
    let mut used: Vec<(&str, &Path)> = std::iter::once(("the configuration", file)).chain(kept).collect();
    let logs = configuration.gateway.settings.access_log.targets().filter_map(|target| match target {
        LogTarget::File(path) => Some(("the access log", path.as_path())),
        LogTarget::Stdout => None,
    });
    for (what, path) in logs {
        if path.is_dir() {
            return Err(Failure::Input(format!(
                "error: {what} {} is a folder\nName a file in it.",
                path.display()
            )));
        }
        // Sites may log into the same file.
        if !used.contains(&(what, path)) {
            used.push((what, path));
        }
    }
    for (number, (what, path)) in used.iter().enumerate() {
        let other = used[..number].iter().find(|(other, place)| other != what && is_same(place, path));
        if let Some((other, _)) = other {
            return Err(Failure::Input(format!(
                "error: {what} and {other} are the same file, {}\nName a file of its own for {what}.",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Reads a whole ordinary file, up to a limit; links are followed.
///
/// # Errors
/// The file is missing, is something else, is too large, or cannot be read.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    if let Some(what) = other_than_file(path)? {
        return Err(io::Error::other(format!("it is {what} and no ordinary file")));
    }
    read_bounded(path)
}

/// Reads any kind of file, such as a pipe that a user has named, up to a limit.
pub(crate) fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("it has more than {} MiB", LARGEST >> 20),
        ));
    }
    Ok(bytes)
}

/// Where a new file must be put to replace the one at `path`: where its links lead.
///
/// # Errors
/// The path is no ordinary file, or its links lead in a circle.
pub(crate) fn place(path: &Path) -> io::Result<PathBuf> {
    match other_than_file(path) {
        Ok(None) => {}
        Ok(Some(what)) => return Err(io::Error::other(format!("it is {what} and no ordinary file"))),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(followed(path))
}

/// The kind of `path`, if it is no ordinary file.
pub(crate) fn other_than_file(path: &Path) -> io::Result<Option<&'static str>> {
    let kind = fs::metadata(path)?.file_type();
    Ok((!kind.is_file()).then(|| named(kind)))
}

fn named(kind: FileType) -> &'static str {
    match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a named pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

/// Where the links of a path lead, also if no file is there yet.
fn followed(path: &Path) -> PathBuf {
    let mut place = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = fs::read_link(&place) else { break };
        place = folder(&place).join(target);
    }
    place
}

fn is_same(one: &Path, other: &Path) -> bool {
    if let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) {
        // Several logs may go to the same device.
        return one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    let whole = |path: &Path| {
        let place = followed(path);
        Some(folder(&place).canonicalize().ok()?.join(place.file_name()?))
    };
    whole(one).is_some_and(|place| whole(other) == Some(place))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::source::understand;
    use std::os::unix::fs::symlink;

    fn refused(folder: &Path, more: &str) -> Option<String> {
        let text = format!(
            "[gateway]\nlisten = \"127.0.0.1:0\"\n{more}[upstream.app]\naddress = \"127.0.0.1:81\"\n"
        );
        let file = folder.join("site.toml");
        fs::write(&file, &text).unwrap();
        let configuration = understand(&text, file.to_str().unwrap()).expect("the test's file is right");
        refuse(&configuration, &file, None).err().map(|failure| failure.text().to_owned())
    }

    #[test]
    fn no_file_has_two_uses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        symlink("access.log", path.join("link.log")).unwrap();
        symlink("site.toml", path.join("own.log")).unwrap();
        fs::create_dir(path.join("logs")).unwrap();
        for (more, expected) in [
            ("[access_log]\nfile = \"access.log\"\n", None),
            ("[access_log]\nfile = \"/dev/null\"\n", None),
            ("[access_log]\nfile = \"logs\"\n", Some("logs is a folder")),
            (
                "[access_log]\nfile = \"./site.toml\"\n",
                Some("the access log and the configuration are the same file"),
            ),
            (
                "[access_log]\nfile = \"own.log\"\n",
                Some("the access log and the configuration are the same file"),
            ),
            (
                "[access_log]\nfile = \"site.state\"\n",
                Some("the access log and `state` under [gateway] are the same"),
            ),
            ("state = \"access.log\"\n[access_log]\nfile = \"link.log\"\n", Some("the same file")),
            (
                "state = \"a\"\n[control]\nadmission = \"budget\"\nrate_forecast = \"a\"\n",
                Some("`rate_forecast` under [control] and `state`"),
            ),
            ("[control]\nadmission = \"budget\"\nrate_forecast = \"logs\"\n", Some("logs: it is a folder")),
        ] {
            let found = refused(path, more);
            assert_eq!(found.is_some(), expected.is_some(), "{more}: {found:?}");
            assert!(found.is_none_or(|text| text.contains(expected.unwrap_or_default())), "{more}");
        }
    }
}
