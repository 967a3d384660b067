//! A site's folder: its files, its links, and what is wrong with it.

use super::kind::Kind;
use crate::Problem;
use crate::parallel::{about, refused};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A file of the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) kind: Kind,
    pub(crate) bytes: u64,
}

/// The content of the site's folder. Paths are relative to it, with `/`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tree {
    pub(crate) root: PathBuf,
    pub(crate) files: BTreeMap<String, File>,
    /// Links within the folder, with their targets relative to their own places. They become links again in the trees, so that
    /// nothing is stored twice and a loop of links stays one.
    pub(crate) links: BTreeMap<String, PathBuf>,
    /// The fetched dynamic pages. They are among the files too, and replace a file of the same path.
    pub(crate) snapshots: BTreeMap<String, Vec<u8>>,
    /// The paths that were left out, and why.
    pub(crate) skipped: Vec<Problem>,
}

impl Tree {
    /// Reads the names and sizes in the folder, not the content of its files.
    ///
    /// # Errors
    /// `InvalidInput`: there is no such folder, or a folder in it cannot be read.
    pub(crate) fn read(root: &Path) -> io::Result<Tree> {
        let found = root.canonicalize().and_then(|root| match root.is_dir() {
            true => Ok(root),
            false => Err(io::Error::other("not a folder")),
        });
        let root = found.map_err(|error| {
            let instead = "name the folder that has the site's files, such as /var/www/html";
            refused(format!("cannot read the site {}: {error}; {instead}", root.display()))
        })?;
        let mut tree = Tree { root, ..Tree::default() };
        tree.folder("").map(|()| tree)
    }

    fn folder(&mut self, folder: &str) -> io::Result<()> {
        let read = fs::read_dir(self.root.join(folder)).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = read.map_err(|error| {
            let name = self.root.join(folder.trim_end_matches('/'));
            refused(format!("cannot read the folder {}: {error}; `ls -ld` shows who may", name.display()))
        })?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                let shown = format!("{folder}{}", name.to_string_lossy());
                self.skip(
                    &shown,
                    "its name is not UTF-8: no tree has it, and an address such as /caf%E9.html gets 404",
                );
                continue;
            };
            let path = format!("{folder}{name}");
            let kind = entry.file_type().map_err(|error| about(Path::new(&path), &error))?;
            if kind.is_dir() {
                self.folder(&format!("{path}/"))?;
            } else if kind.is_symlink() {
                self.link(path)?;
            } else if kind.is_file() {
                let is = entry.metadata().map_err(|error| about(Path::new(&path), &error))?;
                let file = File { kind: Kind::of(&path), bytes: is.len() };
                self.files.insert(path, file);
            } else {
                self.skip(&path, "neither file nor folder");
            }
        }
        Ok(())
    }

    fn link(&mut self, path: String) -> io::Result<()> {
        let at = self.root.join(&path);
        let Ok(target) = at.canonicalize() else {
            self.skip(&path, "a link that leads nowhere, or in a circle");
            return Ok(());
        };
        let Ok(inside) = target.strip_prefix(&self.root) else {
            self.skip(&path, "a link out of the site: what it leads to is not published");
            return Ok(());
        };
        let up = path.matches('/').count();
        let to: PathBuf = std::iter::repeat_n(Path::new(".."), up).collect::<PathBuf>().join(inside);
        self.links.insert(path, if to.as_os_str().is_empty() { PathBuf::from(".") } else { to });
        Ok(())
    }

    fn skip(&mut self, path: &str, why: &str) {
        self.skipped.push(Problem::new(path, why));
    }

    /// The file that a server sends for `path`: the file itself, or its folder's index; links are followed.
    pub(crate) fn find(&self, path: &str) -> Option<String> {
        if self.files.contains_key(path) {
            return Some(path.to_owned());
        }
        let index = |folder: &str| {
            let names = ["index.html", "index.htm"].map(|name| format!("{folder}{name}"));
            names.into_iter().find(|name| self.files.contains_key(name))
        };
        let slash = if path.is_empty() || path.ends_with('/') { "" } else { "/" };
        index(&format!("{path}{slash}")).or_else(|| {
            if self.links.is_empty() {
                return None;
            }
            let real = self.root.join(path).canonicalize().ok()?;
            let inside = real.strip_prefix(&self.root).ok()?.to_str()?;
            let file = self.files.contains_key(inside).then(|| inside.to_owned());
            file.or_else(|| index(&format!("{inside}/")))
        })
    }

    /// Whether neither a file nor a link has this path.
    pub(crate) fn is_free(&self, path: &str) -> bool {
        !self.files.contains_key(path) && !self.links.contains_key(path)
    }

    /// Adds a fetched dynamic page, which replaces a file or link of the same path.
    ///
    /// # Errors
    /// `InvalidInput`: a path would have to be a file and a folder at once.
    pub(crate) fn take(&mut self, path: String, bytes: Vec<u8>) -> io::Result<()> {
        let mut around = path.match_indices('/').map(|(slash, _)| &path[..slash]);
        let inside =
            |other: &&str| other.strip_prefix(path.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let all = || self.files.keys().chain(self.links.keys()).map(String::as_str);
        if let Some(other) = around.find(|folder| !self.is_free(folder)).or_else(|| all().find(inside)) {
            return Err(refused(format!(
                "the page {path} cannot be stored beside {other}: a name is either a file's or a folder's; leave one of them out"
            )));
        }
        self.links.remove(&path);
        self.files.insert(path.clone(), File { kind: Kind::Page, bytes: bytes.len() as u64 });
        self.snapshots.insert(path, bytes);
        Ok(())
    }

    pub(crate) fn read_file(&self, path: &str) -> io::Result<Vec<u8>> {
        if let Some(bytes) = self.snapshots.get(path) {
            return Ok(bytes.clone());
        }
        fs::read(self.root.join(path)).map_err(|error| about(Path::new(path), &error))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A folder with these files, removed with the value.
    pub(crate) fn folder_of(paths: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for path in paths.iter().map(|path| folder.path().join(path)) {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        folder
    }

    #[test]
    fn a_folder_that_cannot_be_read_is_named() {
        let folder = folder_of(&["index.html"]);
        let mut tree = Tree::read(folder.path()).unwrap();
        let error = tree.folder("secret/").unwrap_err().to_string();
        assert!(
            error.starts_with("cannot read the folder /") && error.contains("/secret: No such"),
            "{error}"
        );
        let error = tree.read_file("gone.png").unwrap_err().to_string();
        assert!(error.starts_with("gone.png: "), "{error}");
        let error = super::super::head(&tree, "gone.png").unwrap_err().to_string();
        assert!(error.starts_with("gone.png: "), "{error}");
    }

    #[test]
    fn links_loops_and_strange_names() {
        let folder = folder_of(&["site/a/Füße 1.HTML", "site/a/index.html", "secret"]);
        let site = folder.path().join("site");
        symlink("..", site.join("a/up")).unwrap();
        symlink("loop", site.join("loop")).unwrap();
        symlink("../secret", site.join("out")).unwrap();
        symlink(site.join("a"), site.join("absolute")).unwrap();
        let tree = Tree::read(&site).unwrap();
        assert_eq!(tree.files.keys().collect::<Vec<_>>(), ["a/Füße 1.HTML", "a/index.html"]);
        let links: Vec<(&str, &str)> =
            tree.links.iter().map(|(path, to)| (path.as_str(), to.to_str().unwrap())).collect();
        assert_eq!(links, [("a/up", "../"), ("absolute", "a")]);
        assert_eq!(
            tree.skipped.iter().map(|skipped| skipped.path.as_str()).collect::<Vec<_>>(),
            ["loop", "out"]
        );
        for path in ["a", "a/", "a/index.html", "absolute/", "a/up/a/up/absolute"] {
            assert_eq!(tree.find(path).as_deref(), Some("a/index.html"), "{path}");
        }
        assert_eq!(tree.find("secret"), None);
    }
}
