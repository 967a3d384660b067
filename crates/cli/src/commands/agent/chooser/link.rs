//! A symbolic link (CA 4.1, "content adaptor"): one tree for everybody.
//!
//! The paper changes the link; a link cannot be changed, and removed and made anew it is missing for a moment. So a new
//! one is made beside it and renamed over it, which is one step for everybody who looks.

use super::{Chooser, Trees, beside};
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

pub(super) struct Link {
    path: PathBuf,
    /// Absolute: a link's target is taken from the link's own folder.
    full: PathBuf,
    degraded: PathBuf,
}

impl Link {
    pub(super) fn new(path: PathBuf, trees: Trees) -> Link {
        let absolute = |tree: String| std::path::absolute(&tree).unwrap_or(PathBuf::from(tree));
        Link { path, full: absolute(trees.full), degraded: absolute(trees.degraded) }
    }

    /// Whether the link's target is this tree, however it is written.
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
                return Err(format!(
                    "{name} is no symbolic link; move it away, and let `plimsoll agent FILE --restore` make the link: mv \
                     {name} {}",
                    self.full.display()
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
        let try_it = || {
            let new = beside(&self.path);
            symlink(&self.full, &new).and_then(|()| fs::remove_file(&new))
        };
        if acts && let Err(error) = try_it() {
            let folder = self.path.parent().unwrap_or(Path::new(".")).display();
            wrong.push(format!("cannot make links in {folder}: {error}; let this user write there"));
        }
        wrong
    }

    fn set(&mut self, fraction: f64) -> io::Result<f64> {
        let full = fraction >= 0.5;
        let new = beside(&self.path);
        // Left by one that was killed in between, with the same process id.
        drop(fs::remove_file(&new));
        symlink(if full { &self.full } else { &self.degraded }, &new)?;
        let renamed = fs::rename(&new, &self.path);
        if renamed.is_err() {
            drop(fs::remove_file(&new));
        }
        renamed.map(|()| if full { 1.0 } else { 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scratch;
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn link(folder: &Scratch) -> Link {
        for tree in ["full", "light"] {
            fs::create_dir(folder.0.join(tree)).unwrap();
            fs::write(folder.0.join(tree).join("page"), tree).unwrap();
        }
        let tree = |name| folder.0.join(name).display().to_string();
        Link::new(folder.0.join("www"), Trees { full: tree("full"), degraded: tree("light") })
    }

    #[test]
    fn it_is_exchanged_and_never_missing() {
        let folder = Scratch::new("link");
        let mut link = link(&folder);
        assert_eq!((link.present(), link.check(true).len()), (Ok(None), 1));
        assert_eq!(link.set(1.0).unwrap(), 1.0);
        assert_eq!((link.present(), link.check(true)), (Ok(Some(1.0)), vec![]));
        let (stop, page) = (AtomicBool::new(false), folder.0.join("www/page"));
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut seen = [0_u32; 2];
                while !stop.load(Ordering::Relaxed) {
                    let text = fs::read_to_string(&page).expect("the page is always there");
                    seen[usize::from(text == "full")] += 1;
                }
                seen
            });
            for round in 0..500 {
                link.set(f64::from(round % 2)).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
            let seen = reader.join().unwrap();
            assert!(seen[0] + seen[1] > 0, "{seen:?}");
        });
        assert_eq!(link.set(0.0).unwrap(), 0.0);
        assert_eq!(link.present(), Ok(Some(0.0)));
        assert_eq!(fs::read_to_string(&page).unwrap(), "light");
        assert_eq!(folder.names(), ["full", "light", "www"], "nothing is left lying about");
    }

    #[test]
    fn what_is_not_ours_is_not_touched() {
        let folder = Scratch::new("foreign");
        let link = link(&folder);
        fs::create_dir(folder.0.join("www")).unwrap();
        assert!(link.present().is_err_and(|why| why.contains("is no symbolic link")));
        fs::remove_dir(folder.0.join("www")).unwrap();
        symlink("/etc", folder.0.join("www")).unwrap();
        assert!(link.present().is_err_and(|why| why.contains("neither tree")));
        fs::remove_file(folder.0.join("www")).unwrap();
        symlink("light", folder.0.join("www")).unwrap();
        assert_eq!(link.present(), Ok(Some(0.0)), "a relative link");
        fs::remove_dir_all(folder.0.join("full")).unwrap();
        assert!(link.check(true)[0].contains("there is no folder"));
    }
}
