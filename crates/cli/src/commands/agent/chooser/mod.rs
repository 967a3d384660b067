//! Choosers of the content tree: a symbolic link, or a file that nginx or Apache reads. Input: the fraction of clients that get
//! full quality. Output: the fraction that the server then has.
//!
//! Each chooser makes its new link or file beside the old one and renames it over the old one in one step. So no reader ever
//! sees half a file, and if the disk is full the old one stays.

mod apache;
mod link;
mod nginx;

use crate::output::failure::folder;
use apache::ApacheMap;
use link::Link;
use nginx::NginxSplit;
use plimsoll_config::{Agent, Chooser as Configured};
use std::fs;
use std::io;
use std::path::Path;

/// The first line of each file that the agent writes, before the fraction.
const FIRST_LINE: &str = "# Written by `plimsoll agent`, do not edit. Clients at full quality: ";

/// Chooses between the trees.
pub(super) trait Chooser {
    /// The fraction of clients at full quality according to the link or file; `None` if neither exists yet. An error describes
    /// something that the agent did not make and must not touch.
    fn present(&self) -> Result<Option<f64>, String>;

    /// Everything that is wrong with the chooser, and what to do about each. If `acts` is set, writing is tried too.
    fn check(&self, acts: bool) -> Vec<String>;

    /// Gives full quality to this fraction of clients and returns it, rounded as the server needs it; an error changes
    /// nothing.
    fn set(&mut self, fraction: f64) -> io::Result<f64>;

    /// Gives full quality to all clients, also if no agent and no server runs; returns a sentence about what was done.
    fn restore(&mut self) -> io::Result<String> {
        self.set(1.0).map(|_| "full quality for everybody".to_owned())
    }
}

/// The chooser that the agent's file names.
pub(super) fn chooser(agent: &Agent) -> Box<dyn Chooser> {
    let trees = Trees { full: agent.full.clone(), degraded: agent.degraded.clone() };
    match &agent.chooser {
        Configured::Link(path) => Box::new(Link::new(path.clone(), trees)),
        Configured::Nginx(nginx) => Box::new(NginxSplit::new(nginx.clone(), trees)),
        Configured::Apache(map) => Box::new(ApacheMap { map: map.clone(), trees }),
    }
}

/// The link or file that the agent writes.
pub(super) fn path(agent: &Agent) -> &Path {
    match &agent.chooser {
        Configured::Link(path) | Configured::Apache(path) => path,
        Configured::Nginx(nginx) => &nginx.file,
    }
}

#[derive(Clone, Debug)]
pub(super) struct Trees {
    full: String,
    degraded: String,
}

impl Trees {
    /// The missing folders of trees. Unless `surely` says that the trees are folders, they are only if one of them exists.
    fn missing(&self, surely: bool) -> Vec<String> {
        let trees = [&self.full, &self.degraded].map(Path::new);
        let are_folders = surely || trees.iter().any(|tree| tree.is_absolute() && tree.is_dir());
        let is_missing = |tree: &&Path| {
            let found = fs::metadata(tree).map_err(|error| error.kind());
            tree.is_absolute() && found.is_err_and(|kind| kind == io::ErrorKind::NotFound)
        };
        let missing = trees.into_iter().filter(|tree| are_folders && is_missing(tree));
        missing
            .map(|tree| format!("there is no folder {}; `plimsoll adapt` makes such trees", tree.display()))
            .collect()
    }
}

/// Finds out whether files can be made beside `path`, by making one.
fn writable(path: &Path) -> Result<(), String> {
    tempfile::tempfile_in(folder(path)).map(drop).map_err(|error| {
        let folder = folder(path).display();
        format!("cannot write in {folder}: {error}; let this user write there, or name another place")
    })
}

/// The fraction that the first line of a file states, if the agent wrote the file.
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

/// The names in a folder, for tests.
#[cfg(test)]
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
