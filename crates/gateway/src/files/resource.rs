//! A file as seen on disk: itself and the copies beside it, compressed or in newer formats, each with its header lines
//! and, if small, its content.
//!
//! The validators are `last-modified` and a strong entity tag of size and modification time in nanoseconds, which is the
//! same on every machine that holds the same copy. A copy has a tag of its own, as RFC 9110 demands.
//!
//! A copy that is older than its original, by whole seconds, is ignored; some compressors preserve no finer time.
//!
//! Two writes within one tick of the file system's clock may leave the same size and times. Content that was read within
//! [`SETTLE_SECONDS`] of its last change is therefore *unsettled*: the next comparison reads it again.

use super::SMALL_FILE_BYTES;
use super::encoding::{self, Coding};
use super::format::{self, Format};
use super::program::is_program;
use super::request::FileFields;
use super::tree::Tree;
use super::types::{self, ContentType};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longer than the clock tick of any file system in use (FAT has 2 s).
const SETTLE_SECONDS: i64 = 2;

pub(super) enum Found {
    File(Rc<Resource>),
    Folder,
}

#[derive(Debug)]
pub(super) struct Resource {
    /// The original first; never empty.
    variants: Vec<Rc<Variant>>,
}

/// One representation of a file.
#[derive(Debug)]
pub(super) struct Variant {
    kind: VariantKind,
    stamp: Stamp,
    /// Whether the file had not changed for [`SETTLE_SECONDS`] when it was read.
    pub(super) settled: bool,
    pub(super) etag: String,
    /// Header lines: the validators first, then the fields that describe the content.
    pub(super) block: Rc<str>,
    /// How many bytes of the block are validators.
    pub(super) validators_length: usize,
    pub(super) content: Option<Rc<[u8]>>,
}

/// How a representation differs from its original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copied {
    /// The representation is the original.
    Not,
    As(Coding),
    /// An image in another format.
    To(Format),
}

impl Copied {
    const fn coding(self) -> Option<Coding> {
        if let Copied::As(coding) = self { Some(coding) } else { None }
    }

    const fn format(self) -> Option<Format> {
        if let Copied::To(format) = self { Some(format) } else { None }
    }

    /// The ending of the copy's file name, behind the original's whole name.
    const fn ending(self) -> &'static str {
        match self {
            Copied::Not => "",
            Copied::As(coding) => coding.names().1,
            Copied::To(format) => format.names().1,
        }
    }

    /// The part of its entity tag that the original's tag lacks.
    fn tag(self) -> String {
        match self {
            Copied::Not => String::new(),
            Copied::As(coding) => format!("-{}", coding.names().0),
            Copied::To(format) => format!("-{}", &format.names().1[1..]),
        }
    }
}

/// A representation without its content.
#[derive(Clone, Debug)]
struct VariantKind {
    name: Rc<[u8]>,
    copied: Copied,
    content_type: ContentType,
    /// The request field on which the choice of representation depends.
    varies: Option<&'static str>,
}

/// What changes when a file changes. The time of status change shows a change that kept the size and the modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size_bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// The stamp of a file or a folder, and whether it is a folder. Anything else is an error.
    pub(super) fn of(file: &File) -> Result<(Stamp, bool), Errno> {
        let metadata = file.metadata().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        if !(metadata.is_file() || metadata.is_dir()) {
            return Err(Errno::NOENT);
        }
        let stamp = Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size_bytes: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        Ok((stamp, metadata.is_dir()))
    }
}

/// A file or a copy of it, opened.
struct Opened {
    copied: Copied,
    name: Rc<[u8]>,
    file: File,
    stamp: Stamp,
}

/// Looks at a file and its copies; returns `known` if nothing has changed.
pub(super) fn load(tree: &Tree, name: &[u8], known: Option<&Rc<Resource>>) -> Result<Found, Errno> {
    let file = tree.open_name(name)?;
    let (stamp, is_folder) = Stamp::of(&file)?;
    if is_folder {
        return Ok(Found::Folder);
    }
    let mut opened = vec![Opened { copied: Copied::Not, name: name.into(), file, stamp }];
    let mut content_type = types::of(name);
    if content_type.is_page() && names_its_encoding(&opened[0].file) {
        content_type = content_type.without_charset();
    }
    let has_formats = content_type.has_formats();
    if content_type.is_picture() {
        let mut head = [0; PICTURE_HEAD];
        let read = opened[0].file.read_at(&mut head, 0).unwrap_or(0);
        content_type = content_type.of_content(&head[..read]);
    }
    let field = if content_type.compressible {
        opened
            .extend(Coding::ALL.into_iter().filter_map(|one| open_copy(tree, name, Copied::As(one), stamp)));
        "accept-encoding"
    } else {
        if has_formats {
            opened.extend(
                Format::ALL.into_iter().filter_map(|one| open_copy(tree, name, Copied::To(one), stamp)),
            );
        }
        "accept"
    };
    // The check comes before the comparison with `known`: a page's copy does not change when the page becomes a program.
    if is_source(tree, name, &opened[0].file) {
        return Err(Errno::NOENT);
    }
    if let Some(known) = known
        && known.is_still(&opened)
    {
        return Ok(Found::File(known.clone()));
    }
    let varies = (opened.len() > 1).then_some(field);
    let now = SystemTime::now();
    let variants = opened.into_iter().map(|Opened { copied, name, file, stamp }| {
        let content = read_small(&file, stamp);
        let content_type = copied
            .format()
            .map_or(content_type, |format| ContentType { text: format.names().0, ..content_type });
        let kind = VariantKind { name, copied, content_type, varies };
        Rc::new(Variant { content, ..Variant::describe(kind, stamp, now) })
    });
    Ok(Found::File(Rc::new(Resource { variants: variants.collect() })))
}

/// How many bytes of an image determine its format.
const PICTURE_HEAD: usize = 16;
/// How many bytes of a page are searched for its encoding (WHATWG HTML, 13.2.3.2).
const PRESCAN: usize = 1024;

/// Whether a page states its encoding, by `<meta charset>` or similarly.
fn names_its_encoding(file: &File) -> bool {
    let mut head = [0; PRESCAN];
    let read = file.read_at(&mut head, 0).unwrap_or(0);
    head[..read].windows(7).any(|part| part.eq_ignore_ascii_case(b"charset"))
}

fn open_copy(tree: &Tree, name: &[u8], copied: Copied, original: Stamp) -> Option<Opened> {
    let name: Rc<[u8]> = [name, copied.ending().as_bytes()].concat().into();
    let file = tree.open_name(&name).ok()?;
    let (stamp, is_folder) = Stamp::of(&file).ok()?;
    let usable = !is_folder && stamp.modified.0 >= original.modified.0;
    usable.then_some(Opened { copied, name, file, stamp })
}

/// Whether a file is a program's source, or a compressed copy of one (`config.php.gz`): its original shows what is in it, and
/// without one its name does, because nothing here decompresses.
fn is_source(tree: &Tree, name: &[u8], file: &File) -> bool {
    let original = encoding::without_codings(name);
    is_program(original, || match original.len() < name.len() {
        true => tree.open_name(original).map_or(b"<?".to_vec(), |original| read_head(&original)),
        false => read_head(file),
    })
}

/// As many bytes of a file as are kept of a small one.
fn read_head(file: &File) -> Vec<u8> {
    let mut head = vec![0; SMALL_FILE_BYTES as usize];
    let read = file.read_at(&mut head, 0).unwrap_or(0);
    head.truncate(read);
    head
}

/// The content of a file that is small and did not change while it was read.
fn read_small(file: &File, stamp: Stamp) -> Option<Rc<[u8]>> {
    if stamp.size_bytes > SMALL_FILE_BYTES {
        return None;
    }
    let mut content = Vec::with_capacity(stamp.size_bytes as usize + 1);
    file.take(SMALL_FILE_BYTES + 1).read_to_end(&mut content).ok()?;
    let unchanged = Stamp::of(file).is_ok_and(|(after, _)| after == stamp);
    (unchanged && content.len() as u64 == stamp.size_bytes).then(|| content.into())
}

impl Resource {
    pub(super) fn choose(&self, fields: &FileFields<'_>) -> Rc<Variant> {
        let variants = self.variants.iter();
        let number = match variants.as_slice() {
            [_] => 0,
            [_, copy, ..] if copy.kind.copied.format().is_some() => {
                format::choose(fields.accept.as_deref(), variants.map(|v| (v.kind.copied.format(), v.size())))
            }
            _ => encoding::choose(
                fields.accept_encoding.as_deref(),
                variants.map(|v| (v.kind.copied.coding(), v.size())),
            ),
        };
        self.variants[number].clone()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let bytes = |variant: &Rc<Variant>| {
            let texts = variant.kind.name.len() + variant.etag.len() + variant.block.len();
            size_of::<Variant>() + texts + variant.content.as_ref().map_or(0, |content| content.len())
        };
        self.variants.iter().map(bytes).sum()
    }

    fn is_still(&self, seen: &[Opened]) -> bool {
        seen.len() == self.variants.len()
            && self.variants.iter().zip(seen).all(|(variant, seen)| {
                // If a small file has no content here, it changed while it was read, and is read again.
                let is_complete = variant.content.is_some() || variant.size() > SMALL_FILE_BYTES;
                let is_same = variant.kind.copied == seen.copied && variant.kind.name == seen.name;
                variant.settled && is_complete && is_same && variant.stamp == seen.stamp
            })
    }
}

impl Variant {
    fn describe(kind: VariantKind, stamp: Stamp, now: SystemTime) -> Variant {
        let age_seconds =
            now.duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs() as i64) - stamp.modified.0;
        let (seconds, nanoseconds) = stamp.modified;
        let suffix = kind.copied.tag();
        let etag = format!("\"{:x}-{seconds:x}.{nanoseconds:x}{suffix}\"", stamp.size_bytes);
        let mut block = format!("etag: {etag}\r\n");
        // An origin must not name a future time (RFC 9110, 8.8.2.1). A time before 1970 is an artefact of archives.
        if age_seconds >= 0
            && let Ok(seconds) = u64::try_from(seconds)
        {
            let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
            line(&mut block, "last-modified", &date);
        }
        if let Some(field) = kind.varies {
            line(&mut block, "vary", field);
        }
        let validators_length = block.len();
        line(&mut block, "content-type", kind.content_type.text);
        if let Some(coding) = kind.copied.coding() {
            line(&mut block, "content-encoding", coding.names().0);
        }
        line(&mut block, "accept-ranges", "bytes");
        let settled = age_seconds >= SETTLE_SECONDS;
        Variant { kind, stamp, settled, etag, block: block.into(), validators_length, content: None }
    }

    /// Opens the file to read it from disk. If the file has changed, the returned variant describes the new file.
    pub(super) fn open(self: &Rc<Self>, tree: &Tree) -> Result<(File, Rc<Variant>), Errno> {
        let file = tree.open_name(&self.kind.name)?;
        let (stamp, is_folder) = Stamp::of(&file)?;
        if is_folder {
            return Err(Errno::NOENT);
        }
        let variant = match stamp == self.stamp {
            true => self.clone(),
            false if is_source(tree, &self.kind.name, &file) => return Err(Errno::NOENT),
            false => Rc::new(Variant::describe(self.kind.clone(), stamp, SystemTime::now())),
        };
        Ok((file, variant))
    }

    pub(super) fn size(&self) -> u64 {
        self.stamp.size_bytes
    }

    /// The time of its last change, in seconds since 1970; `None` for an earlier time.
    pub(super) fn modified_seconds(&self) -> Option<u64> {
        u64::try_from(self.stamp.modified.0).ok()
    }
}

fn line(block: &mut String, name: &str, value: &str) {
    for part in [name, ": ", value, "\r\n"] {
        block.push_str(part);
    }
}
