//! A symbolic link (CA 4.1, "content adaptor"): one tree for everybody.
//!
//! The paper changes the link. A link cannot be changed in place, and one that is removed and made anew is missing for a
//! moment. So a new link is made beside the old one and renamed over it, which readers see as one step.

use super::{Chooser, Trees};
use crate::output::failure::folder;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

pub(super) struct Link {
    path: PathBuf,
    /// The trees are absolute, because a relative target would be taken from the link's own folder.
    full: PathBuf,
    degraded: PathBuf,
}

impl Link {
    pub(super) fn new(path: PathBuf, trees: Trees) -> Link {
        let absolute = |tree: String| std::path::absolute(&tree).unwrap_or(PathBuf::from(tree));
        Link { path, full: absolute(trees.full), degraded: absolute(trees.degraded) }
    }

    /// A new link to `tree`, beside the old one; it is removed again if it is dropped.
    fn beside(&self, tree: &Path) -> io::Result<tempfile::TempPath> {
        let made = tempfile::Builder::new().make_in(folder(&self.path), |path| symlink(tree, path))?;
        Ok(made.into_temp_path())
    }

    /// Whether `target`, as read from the link, is the folder `tree`, also if the two paths differ.
    fn leads_to(&self, target: &Path, tree: &Path) -> bool {
        let from = self.path.parent().unwrap_or(Path::new("")).join(target);
        from == tree
            || fs::canonicalize(from).ok().is_some_and(|real| fs::canonicalize(tree).ok() == Some(real))
    }
}

impl Chooser for Link {
    fn present(&self) -> Result<Option<f64>, String> {
        let name = self.path.display();
        let target = match fs::read_link(&self.path) {
            Ok(target) => target,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(_) if self.path.exists() => {
                // If a tree has that path already, `mv` would move into it, so another name is proposed.
                let to = match fs::symlink_metadata(&self.full).is_ok() {
                    true => self.path.with_added_extension("old"),
                    false => self.full.clone(),
                };
                return Err(format!(
                    "{name} is no symbolic link; move it away, and let `plimsoll agent FILE --restore` make the link: mv \
                     {name} {}",
                    to.display()
                ));
            }
            Err(error) => return Err(format!("cannot read the link {name}: {error}")),
        };
        match (self.leads_to(&target, &self.full), self.leads_to(&target, &self.degraded)) {
            (true, _) => Ok(Some(1.0)),
            (_, true) => Ok(Some(0.0)),
            _ => Err(format!(
                "{name} leads to {}, which is neither tree; name that one, or point the link to {}",
                target.display(),
                self.full.display()
            )),
        }
    }

    fn check(&self, acts: bool) -> Vec<String> {
        let mut wrong = Vec::new();
        for tree in [&self.full, &self.degraded] {
            match fs::read_dir(tree) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => wrong.push(format!(
                    "there is no folder {}; `plimsoll adapt` makes such trees",
                    tree.display()
                )),
                Err(error) => wrong.push(format!("cannot read the tree {}: {error}", tree.display())),
            }
        }
        if self.present() == Ok(None) {
            let name = self.path.display();
            wrong.push(format!("there is no link {name}; make it: ln -s {} {name}", self.full.display()));
        }
        if acts && let Err(error) = self.beside(&self.full) {
            let folder = folder(&self.path).display();
            wrong.push(format!("cannot make links in {folder}: {error}; let this user write there"));
        }
        wrong
    }

    fn set(&mut self, fraction: f64) -> io::Result<f64> {
        let full = fraction >= 0.5;
        let new = self.beside(if full { &self.full } else { &self.degraded })?;
        new.persist(&self.path).map_err(|failed| failed.error)?;
        Ok(if full { 1.0 } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::names;
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn link(folder: &Path) -> Link {
        for tree in ["full", "light"] {
            fs::create_dir(folder.join(tree)).unwrap();
            fs::write(folder.join(tree).join("page"), tree).unwrap();
        }
        let tree = |name| folder.join(name).display().to_string();
        Link::new(folder.join("www"), Trees { full: tree("full"), degraded: tree("light") })
    }

    #[test]
    fn readers_find_the_link_during_every_exchange() {
        let folder = tempfile::tempdir().unwrap();
        let mut link = link(folder.path());
        assert_eq!((link.present(), link.check(true).len()), (Ok(None), 1));
        assert_eq!(link.set(1.0).unwrap(), 1.0);
        assert_eq!((link.present(), link.check(true)), (Ok(Some(1.0)), vec![]));
        let (reads, page) = (AtomicU32::new(0), folder.path().join("www/page"));
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while reads.fetch_add(1, Ordering::Relaxed) < 1000 {
                    fs::read_to_string(&page).expect("the page is always there");
                }
            });
            let mut round = 0;
            while !reader.is_finished() {
                link.set(f64::from(round % 2)).unwrap();
                round += 1;
            }
        });
        assert_eq!(link.set(0.0).unwrap(), 0.0);
        assert_eq!(link.present(), Ok(Some(0.0)));
        assert_eq!(fs::read_to_string(&page).unwrap(), "light");
        assert_eq!(names(folder.path()), ["full", "light", "www"], "no temporary link is left");
    }

    #[test]
    fn what_the_agent_did_not_make_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = link(folder.path());
        fs::create_dir(folder.path().join("www")).unwrap();
        assert!(
            link.present().is_err_and(|why| why.contains("is no symbolic link") && why.ends_with("/www.old"))
        );
        let new = Link {
            path: link.path.clone(),
            full: folder.path().join("missing"),
            degraded: link.degraded.clone(),
        };
        assert!(new.present().is_err_and(|why| why.ends_with("/missing")), "it becomes the tree");
        fs::remove_dir(folder.path().join("www")).unwrap();
        symlink("/etc", folder.path().join("www")).unwrap();
        assert!(link.present().is_err_and(|why| why.contains("neither tree")));
        fs::remove_file(folder.path().join("www")).unwrap();
        symlink("light", folder.path().join("www")).unwrap();
        assert_eq!(link.present(), Ok(Some(0.0)), "a relative link");
        fs::remove_dir_all(folder.path().join("full")).unwrap();
        assert!(link.check(true)[0].contains("there is no folder"));
    }
}
