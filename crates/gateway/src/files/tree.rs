//! A content tree: opening names beneath an open root.
//!
//! Linux's `openat2` with `RESOLVE_BENEATH` resolves the whole name in the kernel and fails (`EXDEV`) where the name would
//! leave the root: by `..`, by an absolute link, or by a link that climbs too far. Checking and opening are one step, so that a
//! folder replaced by a link in between gains nothing. The portable way, to `canonicalize` and compare, leaves time between the
//! two steps. Size and times come from the file that was opened, never from its name a second time.
//!
//! Where the kernel or a container's filter has no `openat2`, names are walked folder by folder with `O_NOFOLLOW`. That
//! is as safe, but follows no link at all. An absolute link counts as leaving the tree even if it leads back into it;
//! write the link relative, or allow links.

use super::REVALIDATE;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Reading only: a pipe must not block the thread, and a terminal must not become the process's own.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::CLOEXEC).union(OFlags::NOCTTY);
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Confinement {
    /// The kernel keeps names beneath the root.
    Kernel,
    /// Each folder is opened in turn, and no link is followed.
    Walk,
    /// Links may lead anywhere, as the operator allows.
    Links,
}

#[derive(Debug)]
pub(super) struct Tree {
    path: PathBuf,
    root: File,
    /// Device and inode of the root.
    identity: (u64, u64),
    confinement: Confinement,
    followed: Option<Instant>,
}

impl Tree {
    pub(super) fn open(path: PathBuf, follow_symlinks: bool) -> std::io::Result<Tree> {
        let (root, identity) = open_root(&path)?;
        let confinement = match follow_symlinks {
            true => Confinement::Links,
            false if kernel_confines(&root) => Confinement::Kernel,
            false => Confinement::Walk,
        };
        Ok(Tree { path, root, identity, confinement, followed: None })
    }

    #[cfg(test)]
    pub(super) fn confine(&mut self, confinement: Confinement) {
        self.confinement = confinement;
    }

    /// Looks up the root's path again, at most once per [`REVALIDATE`]. True if it leads to another folder. While the path
    /// leads nowhere, between a remove and a rename, the last root is kept.
    pub(super) fn follow_root(&mut self, now: Instant) -> bool {
        if self.followed.is_some_and(|followed| now.saturating_duration_since(followed) < REVALIDATE) {
            return false;
        }
        self.look_again(now)
    }

    /// As [`follow_root`](Self::follow_root), at any time.
    pub(super) fn look_again(&mut self, now: Instant) -> bool {
        self.followed = Some(now);
        match open_root(&self.path) {
            Ok((root, identity)) if identity != self.identity => {
                self.root = root;
                self.identity = identity;
                true
            }
            _ => false,
        }
    }

    pub(super) fn open_name(&self, name: &[u8]) -> Result<File, Errno> {
        match self.confinement {
            Confinement::Kernel => beneath(&self.root, name),
            Confinement::Walk => walk(&self.root, name),
            Confinement::Links => Ok(openat(&self.root, name, FILE, Mode::empty())?.into()),
        }
    }
}

fn open_root(path: &Path) -> std::io::Result<(File, (u64, u64))> {
    let root = File::from(openat(CWD, path, FOLDER, Mode::empty())?);
    let metadata = root.metadata()?;
    Ok((root, (metadata.dev(), metadata.ino())))
}

fn kernel_confines(root: &File) -> bool {
    // Old kernels return ENOSYS, some containers' filters EPERM. On any error `openat2` is not used.
    beneath(root, b".").is_ok()
}

fn beneath(root: &File, name: &[u8]) -> Result<File, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match openat2(root, name, FILE, Mode::empty(), resolve) {
            // The kernel asks to try again after a rename anywhere on the machine while it resolved a link's `..`.
            Err(Errno::AGAIN) if tries < 8 => tries += 1,
            opened => return opened.map(File::from),
        }
    }
}

fn walk(root: &File, name: &[u8]) -> Result<File, Errno> {
    let mut segments = name.split(|&byte| byte == b'/').filter(|segment| !segment.is_empty()).peekable();
    let mut folder: Option<File> = None;
    while let Some(segment) = segments.next() {
        if segment == b".." {
            return Err(Errno::XDEV);
        }
        let flags = if segments.peek().is_some() { FOLDER } else { FILE };
        let opened =
            openat(folder.as_ref().unwrap_or(root), segment, flags | OFlags::NOFOLLOW, Mode::empty())?;
        folder = Some(opened.into());
    }
    folder.ok_or(Errno::NOENT)
}
