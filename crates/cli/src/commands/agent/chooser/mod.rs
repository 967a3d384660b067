//! What chooses the tree: a link, or what nginx or Apache reads.
//!
//! All three are exchanged at once, by renaming the new one over the old: nobody ever sees half of it, and a full disk
//! leaves the old one working.

mod apache;
mod link;
mod nginx;

use apache::ApacheMap;
use link::Link;
use nginx::NginxSplit;
use plimsoll_config::{Agent, Chooser as Configured};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Chooses between the trees.
pub(super) trait Chooser {
    /// F as it stands; none if nothing stands there yet.
    ///
    /// # Errors
    /// Something else stands there, which is not to be touched.
    fn present(&self) -> Result<Option<f64>, String>;

    /// All that is wrong with it, each with what to do. `acts`: it may be written to find out.
    fn check(&self, acts: bool) -> Vec<String>;

    /// Makes it so; returns F as it then is, which may be rounded.
    ///
    /// # Errors
    /// It could not be written, or the server could not be told. What was there is still there then.
    fn set(&mut self, fraction: f64) -> io::Result<f64>;
}

/// The one that the file names.
pub(super) fn chooser(agent: &Agent) -> Box<dyn Chooser> {
    let trees = Trees { full: agent.full.clone(), degraded: agent.degraded.clone() };
    match &agent.chooser {
        Configured::Link(path) => Box::new(Link::new(path.clone(), trees)),
        Configured::Nginx(nginx) => Box::new(NginxSplit::new(nginx.clone(), trees)),
        Configured::Apache(map) => Box::new(ApacheMap::new(map.clone(), trees)),
    }
}

/// The two.
#[derive(Clone, Debug)]
pub(super) struct Trees {
    full: String,
    degraded: String,
}

/// The name beside `path` under which the new one is made.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.plimsoll-{}", std::process::id()))
}

/// Writes a file that takes the place of the old one when it is whole.
fn exchange(path: &Path, text: &str) -> io::Result<()> {
    let new = beside(path);
    let written = fs::File::create(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    let done = written.and_then(|()| fs::rename(&new, path));
    if done.is_err() {
        // What could not be finished must not be left lying about; that it cannot be removed either is no news.
        drop(fs::remove_file(&new));
    }
    done
}

/// Whether files can be made where `path` is: finds out by making one.
fn writable(path: &Path) -> Result<(), String> {
    let new = beside(path);
    let made = fs::File::create(&new).and_then(|_| fs::remove_file(&new));
    made.map_err(|error| {
        let folder = new.parent().unwrap_or(Path::new(".")).display();
        format!("cannot write in {folder}: {error}; let this user write there, or name another place")
    })
}

/// F, as the first line of a file of ours tells it.
fn fraction_of(path: &Path) -> Result<Option<f64>, String> {
    let name = path.display();
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read {name}: {error}")),
    };
    let fraction = text.strip_prefix(FIRST_LINE).and_then(|rest| rest.split_ascii_whitespace().next());
    match fraction.and_then(|fraction| fraction.parse().ok()) {
        Some(fraction) if (0.0..=1.0).contains(&fraction) => Ok(Some(fraction)),
        _ => Err(format!("{name} was not written by `plimsoll agent`: name another file, or remove it")),
    }
}

/// How each file of ours begins.
const FIRST_LINE: &str = "# Written by `plimsoll agent`, do not edit. Clients at full quality: ";

/// A folder for tests.
#[cfg(test)]
struct Scratch(PathBuf);

#[cfg(test)]
impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("plimsoll-chooser-{name}-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

#[cfg(test)]
impl Drop for Scratch {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}
