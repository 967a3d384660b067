//! Static files from content trees, for the gateway's own HTTP/1.1 codec.
//!
//! In: a [`FileRequest`]. Out: a [`FileResponse`], that is status, a prebuilt block of header lines, and a body that is in
//! memory or is a slice of an open file. There is one [`Files`] for each tree and thread, so that a request takes no lock.
//!
//! **Small files** (up to [`SMALL_FILE_BYTES`]) are served from memory, with header lines made once. That takes 7 us of
//! CPU a request, nginx's sendfile 12, a pool of blocking threads 84.
//!
//! **Following the disk.** An entry is compared with the disk by a new open and fstat, at most once per [`REVALIDATE`]; every
//! later request sees the change. The whole path is resolved each time, and the root once a second, so that `current ->
//! releases/42` may be switched under load; inotify misses such a switch, and changes on network file systems. A stamp of size
//! and times can miss a second write within the clock's tick: content read within two seconds of its last change is therefore
//! read again (see [`resource`]).
//!
//! **Large files** are read in line, 64 to 128 KiB a turn ([`FileSlice::read`]), and not by a blocking pool. A read from
//! the page cache is a copy of about 10 us, cheaper than waking another thread, and the kernel reads ahead of a sequential
//! reader. A cold file stalls its thread for the length of a disk read: keep trees on network file systems behind an
//! upstream.
//!
//! **No path escapes.** [`path`] refuses text that could name anything outside, and [`tree`] resolves names beneath an
//! open root in the kernel, in one system call, so that no rename can come between check and use.
//!
//! **Copies beside a file** are sent in its place: a text compressed ([`encoding`]), an image in a newer format
//! ([`mod@format`]), whichever is the smallest that the client takes.
//!
//! **Lower trees may have gaps.** A file that a tree of `plimsoll adapt` lacks is served from the next tree
//! ([`fallback_trees`]).
//!
//! **Programs are no pages.** A file that is a program's source is treated as missing ([`program`]).
//!
//! Not here: rewriting by level (the caller prepends the level's prefix), folder listings, uploads.

mod cache;
mod conditional;
mod encoding;
mod fallback_trees;
mod format;
mod path;
pub(crate) mod program;
mod range;
mod request;
mod resource;
mod response;
#[cfg(test)]
mod tests;
mod tree;
mod types;

use cache::Cache;
use conditional::Precondition;
use fallback_trees::Order;
use range::Selection;
pub(crate) use request::{FileFields, FileRequest};
use resource::{Found, Resource, Variant};
pub(crate) use response::{FileBody, FileResponse, FileSlice};
use rustix::io::Errno;
use std::borrow::Cow;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tree::Tree;

/// The largest file that is kept in memory. For a larger one, a copy from the page cache costs little beside sending it.
pub(crate) const SMALL_FILE_BYTES: u64 = 64 * 1024;

/// How long a file is served without comparing it with the disk.
pub(crate) const REVALIDATE: Duration = Duration::from_secs(1);

const ALLOW: &str = "GET, HEAD, OPTIONS";

/// How a tree is served.
#[derive(Clone, Debug, PartialEq)]
pub struct FilesSettings {
    /// The folder. It may be a link, whose target is looked up again every [`REVALIDATE`].
    pub root: PathBuf,
    /// The names of files that are served for a folder; the first that exists is served.
    pub index: Vec<String>,
    /// Whether links that leave the tree are followed. Relative links within the tree always are.
    pub follow_symlinks: bool,
    /// The most memory for small files, per thread.
    pub cache_bytes: usize,
}

impl FilesSettings {
    /// The settings of this folder, with the defaults.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        FilesSettings { root: root.into(), ..FilesSettings::default() }
    }
}

impl Default for FilesSettings {
    /// No folder yet, `index.html`, no links that leave the folder, 64 MiB of memory.
    fn default() -> Self {
        FilesSettings {
            root: PathBuf::new(),
            index: vec!["index.html".to_owned()],
            follow_symlinks: false,
            cache_bytes: 64 << 20,
        }
    }
}

/// A tree's server, one per thread.
#[derive(Debug)]
pub(crate) struct Files {
    index: Vec<String>,
    tree: Tree,
    cache: Cache,
    order: Order,
}

impl Files {
    /// Opens the tree.
    ///
    /// # Errors
    /// The root does not exist, is no folder, or may not be opened.
    pub(crate) fn new(settings: FilesSettings) -> std::io::Result<Files> {
        Ok(Files {
            index: settings.index,
            tree: Tree::open(settings.root, settings.follow_symlinks)?,
            cache: Cache::new(settings.cache_bytes),
            order: Order::default(),
        })
    }

    /// Answers one request. Reads small files and metadata on the caller's thread; waits only for the disk.
    pub(crate) fn respond(&mut self, now: Instant, request: &FileRequest<'_>) -> FileResponse {
        match request.method {
            "GET" | "HEAD" => {}
            "OPTIONS" => return FileResponse::bare(204).with("allow", ALLOW),
            _ => return FileResponse::bare(405).with("allow", ALLOW),
        }
        let relative = match path::normalize(request.path) {
            Ok(relative) => relative,
            Err(status) => return FileResponse::bare(status),
        };
        if self.tree.follow_root(now) {
            self.forget();
        }
        let mut response = self.look_up(now, request, &relative);
        // A tree that was just replaced is empty: its root is looked up again before a request gets a 404. The next tree may be
        // replaced during that look-up too.
        while response.status == 404 && self.tree.look_again(now) {
            self.forget();
            response = self.look_up(now, request, &relative);
        }
        response
    }

    fn forget(&mut self) {
        self.cache.clear();
        self.order.forget();
    }

    fn look_up(&mut self, now: Instant, request: &FileRequest<'_>, relative: &[u8]) -> FileResponse {
        let mut name = Cow::Borrowed(relative);
        let mut found = self.find(now, &name);
        while matches!(found, Err(Errno::NOENT))
            && let Some(above) = self.order.above(&self.tree, now, &name)
        {
            found = self.find(now, &above);
            name = Cow::Owned(above);
        }
        let mut response = match found {
            Ok(Found::File(resource)) => self.answer(request, &name, &resource),
            Ok(Found::Folder) => redirect(&name, request.query),
            Err(error) => FileResponse::bare(status_of(error)),
        };
        if let Cow::Owned(above) = name {
            response.above = Some(above);
        }
        response
    }

    /// The resource from memory, or from the disk if it was last compared longer than [`REVALIDATE`] ago.
    fn find(&mut self, now: Instant, relative: &[u8]) -> Result<Found, Errno> {
        let known = self.cache.get(relative);
        if let Some((checked, resource)) = &known
            && now.saturating_duration_since(*checked) < REVALIDATE
        {
            return Ok(Found::File(resource.clone()));
        }
        let found = self.load(relative, known.as_ref().map(|(_, resource)| resource));
        match &found {
            Ok(Found::File(resource)) => self.cache.put(relative, now, resource.clone()),
            _ => self.cache.remove(relative),
        }
        found
    }

    fn load(&self, relative: &[u8], known: Option<&Rc<Resource>>) -> Result<Found, Errno> {
        if !(relative.is_empty() || relative.ends_with(b"/")) {
            return resource::load(&self.tree, relative, known);
        }
        for index in &self.index {
            let name = [relative, index.as_bytes()].concat();
            match resource::load(&self.tree, &name, known) {
                Ok(Found::Folder) | Err(Errno::NOENT) => {}
                found => return found,
            }
        }
        Err(Errno::NOENT)
    }

    fn answer(&mut self, request: &FileRequest<'_>, relative: &[u8], resource: &Resource) -> FileResponse {
        let mut variant = resource.choose(&request.fields);
        let mut file = None;
        if variant.content.is_none() {
            // The file may have changed since it was last compared, and the headers must be those of the content that is sent.
            match variant.open(&self.tree) {
                Ok((opened, same)) => {
                    file = Some(opened);
                    variant = same;
                }
                Err(error) => {
                    self.cache.remove(relative);
                    return FileResponse::bare(status_of(error));
                }
            }
        }
        respond_with(request, &variant, file)
    }
}

/// Evaluates preconditions first and the range then (RFC 9110, 13.2.2).
fn respond_with(request: &FileRequest<'_>, variant: &Variant, file: Option<std::fs::File>) -> FileResponse {
    let fields = &request.fields;
    match conditional::evaluate(fields, variant) {
        Precondition::Holds => {}
        Precondition::NotModified => return FileResponse::not_modified(variant),
        Precondition::Fails => return FileResponse::bare(412),
    }
    let size = variant.size();
    let head_only = request.method == "HEAD";
    let selection = match fields.range {
        Some(range) if !head_only && conditional::range_applies(fields, variant) => {
            range::select(range, size)
        }
        _ => Selection::Whole,
    };
    match selection {
        Selection::Whole if head_only => FileResponse::head(variant),
        Selection::Whole => FileResponse::content(variant, file, None),
        Selection::Part(part) => FileResponse::content(variant, file, Some(part)),
        Selection::Unsatisfiable => FileResponse::bare(416).with("content-range", format!("bytes */{size}")),
    }
}

/// Redirects to a folder's name with its final slash, without which the relative links of its page would lead elsewhere.
///
/// The location is relative, since the client does not know the prefix of its level. It begins with `./`, so that no
/// name can become `//host` or `scheme:`.
fn redirect(relative: &[u8], query: Option<&str>) -> FileResponse {
    let name = relative.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
    let mut location = format!("./{}/", path::encode(name));
    if let Some(query) = query.filter(|query| query.bytes().all(|byte| byte.is_ascii_graphic())) {
        location.push('?');
        location.push_str(query);
    }
    FileResponse::bare(301).with("location", location)
}

fn status_of(error: Errno) -> u16 {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::NXIO | Errno::INVAL => 404,
        // The name has a link that leaves the tree (XDEV), or a link where none is followed (LOOP), or may not be read.
        Errno::XDEV | Errno::LOOP | Errno::ACCESS | Errno::PERM => 403,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => 503,
        _ => 500,
    }
}
