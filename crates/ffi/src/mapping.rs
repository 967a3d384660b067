//! The mapping as typed references. A mapping lives as long as the server made from it, since lanes refer to it; a controller's
//! lives as long as the process.
//!
//! *Soundness.* Every part is a struct of fixed layout (`repr(C)`) that holds only integers, so any bits are valid; what
//! changes while other processes map it is atomic, and the rest is written before the file gets the name by which they find it.
//! Each part is aligned, and lies inside the file by its length at the attachment (`Layout::read`). A file that is cut short
//! while it is mapped ends the processes by SIGBUS, as any mapped file does: only its owner may write to it.

#![expect(unsafe_code, reason = "memory that several processes map can be had by a pointer only")]

use crate::fault::Fault;
use crate::layout::{Header, Held, Layout, MAGIC, Slot, checksum, fingerprint};
use crate::lock::beside;
use crate::owner;
use crate::slot::LaneSlot;
use plimsoll_core::processes::{
    ClassCounters, PlantCounters, SharedClass, SharedLane, SharedPlant, SharedSite, SharedWords,
};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// The contents with which a mapping is made.
pub(crate) struct Contents<'a> {
    pub(crate) layout: Layout,
    pub(crate) configuration: &'a str,
    pub(crate) seed: u64,
    pub(crate) period_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the mapping is undone only when nothing refers to it any more, and everything in it that changes is atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

/// A type for which any bits are valid, and which changes only through atomics.
///
/// # Safety
/// The type is `repr(C)`, holds only integers and atomic integers, and its plain integers are not written once others map it.
unsafe trait Plain {}
// SAFETY: see `layout` and `plimsoll_core::processes`, which state this of each type.
unsafe impl Plain for Header {}
// SAFETY: as above.
unsafe impl Plain for Slot {}
// SAFETY: as above.
unsafe impl Plain for Held {}
// SAFETY: as above.
unsafe impl Plain for SharedClass {}
// SAFETY: as above.
unsafe impl Plain for SharedPlant {}
// SAFETY: as above.
unsafe impl Plain for SharedSite {}
// SAFETY: as above.
unsafe impl Plain for ClassCounters {}
// SAFETY: as above.
unsafe impl Plain for PlantCounters {}

impl Mapping {
    /// Maps a state that exists.
    pub(crate) fn open(path: &Path) -> Result<Self, Fault> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|_| Fault::File)?;
        let length = rustix::fs::fstat(&file).map_err(|_| Fault::File)?.st_size;
        let length = usize::try_from(length).map_err(|_| Fault::NotState)?;
        if length < size_of::<Header>() {
            return Err(Fault::NotState);
        }
        let base = map(&file, length).map_err(|_| Fault::File)?;
        // SAFETY: the mapping is at least as long as a header, page-aligned, and undone only when nothing refers to it any
        // more.
        let header: &'static Header = unsafe { base.cast().as_ref() };
        let read = Layout::read(header).and_then(|layout| {
            let mapping = Mapping { base, layout };
            let is_whole =
                layout.length() == length && checksum(mapping.configuration_bytes()) == header.checksum;
            if is_whole { Ok(mapping) } else { Err(Fault::NotState) }
        });
        if read.is_err() {
            // SAFETY: nothing refers to this mapping.
            unsafe { unmap(base, length) };
        }
        read
    }

    /// Maps a state that exists, and makes a value from the mapping. If that fails, nothing keeps the mapping and it is undone,
    /// so that a process that tries again each second does not collect mappings.
    pub(crate) fn open_for<T>(path: &Path, make: impl FnOnce(Self) -> Result<T, Fault>) -> Result<T, Fault> {
        let mapping = Mapping::open(path)?;
        // SAFETY: nothing refers to this mapping, since the value was not made.
        make(mapping).inspect_err(|_| unsafe { unmap(mapping.base, mapping.layout.length()) })
    }

    /// Makes a state, which replaces the one at this path. Other processes find it complete or not at all. The caller holds the
    /// state's lock, so that no other process uses the new file's temporary name.
    pub(crate) fn create(path: &Path, contents: &Contents<'_>) -> Result<Self, Fault> {
        let new = beside(path, ".new");
        // A controller that was killed at this point has left this file.
        let _ = rustix::fs::unlink(&new);
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::open(&new, flags, mode).map_err(|_| Fault::File)?;
        let made = Mapping::fill(&file, contents)
            .and_then(|mapping| rustix::fs::rename(&new, path).map(|()| mapping).map_err(|_| Fault::File));
        if made.is_err() {
            let _ = rustix::fs::unlink(&new);
        }
        made
    }

    fn fill(file: &OwnedFd, contents: &Contents<'_>) -> Result<Self, Fault> {
        let layout = contents.layout;
        let length = layout.length();
        rustix::fs::ftruncate(file, length as u64).map_err(|_| Fault::File)?;
        let base = map(file, length).map_err(|_| Fault::File)?;
        let header = Header {
            magic: MAGIC,
            layout: fingerprint(),
            length: length as u64,
            lanes: layout.lanes as u64,
            classes: layout.shape.classes as u64,
            plants: layout.shape.plants as u64,
            sites: layout.shape.sites as u64,
            seed: contents.seed,
            configuration_bytes: contents.configuration.len() as u64,
            checksum: checksum(contents.configuration.as_bytes()),
            period_ns: contents.period_ns,
            namespace: owner::namespace(),
            boot: owner::boot(),
            ..Header::default()
        };
        let configuration = contents.configuration.as_bytes();
        // SAFETY: the layout has room for both from these places on, and no other process maps a file that has no name yet.
        unsafe {
            base.cast::<Header>().write(header);
            let to = base.as_ptr().add(layout.configuration);
            ptr::copy_nonoverlapping(configuration.as_ptr(), to, configuration.len());
        }
        Ok(Mapping { base, layout })
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }

    pub(crate) fn header(&self) -> &'static Header {
        &self.part::<Header>(0, 1)[0]
    }

    /// The text of the configuration.
    pub(crate) fn configuration(&self) -> Result<&'static str, Fault> {
        std::str::from_utf8(self.configuration_bytes()).map_err(|_| Fault::NotState)
    }

    fn configuration_bytes(&self) -> &'static [u8] {
        let Layout { configuration, configuration_bytes, .. } = self.layout;
        // SAFETY: the layout lies inside the mapping, and nobody writes the configuration once the file has its name.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(configuration), configuration_bytes) }
    }

    pub(crate) fn words(&self) -> SharedWords {
        let Layout { shape, classes, plants, sites, .. } = self.layout;
        SharedWords {
            classes: self.part(classes, shape.classes),
            plants: self.part(plants, shape.plants),
            sites: self.part(sites, shape.sites),
            turn: &self.header().changing.turn,
        }
    }

    pub(crate) fn lane(&self, lane: usize) -> LaneSlot {
        let layout = &self.layout;
        let counters = SharedLane {
            classes: self.part(layout.lane_classes(lane), layout.shape.classes),
            plants: self.part(layout.lane_plants(lane), layout.shape.plants),
        };
        let held = self.part(layout.held(lane), layout.shape.plants);
        LaneSlot::new(&self.part::<Slot>(layout.slot(lane), 1)[0], held, counters)
    }

    pub(crate) fn lanes(&self) -> impl Iterator<Item = LaneSlot> + '_ {
        (0..self.layout.lanes).map(|lane| self.lane(lane))
    }

    fn part<T: Plain>(&self, offset: usize, count: usize) -> &'static [T] {
        let end = offset + count * size_of::<T>();
        assert!(end <= self.layout.length() && offset.is_multiple_of(align_of::<T>()));
        // SAFETY: the part lies inside the mapping, which begins at a page and is undone only when nothing refers to it any
        // more. Any bits are valid for a plain type, which changes only through atomics.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr().add(offset).cast::<T>(), count) }
    }
}

fn map(file: &OwnedFd, length: usize) -> Result<NonNull<u8>, Errno> {
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: the kernel chooses a place where nothing is mapped.
    let base = unsafe { rustix::mm::mmap(ptr::null_mut(), length, access, flags, file, 0) }?;
    NonNull::new(base.cast()).ok_or(Errno::FAULT)
}

/// Undoes a mapping of this length.
///
/// # Safety
/// Nothing refers to the mapping.
unsafe fn unmap(base: NonNull<u8>, length: usize) {
    // SAFETY: as the caller says.
    let undone = unsafe { rustix::mm::munmap(base.as_ptr().cast(), length) };
    debug_assert!(undone.is_ok());
}

/// Undoes a mapping when this value is dropped, after everything that refers to it.
pub(crate) struct Unmap(pub(crate) Mapping);

impl Drop for Unmap {
    fn drop(&mut self) {
        // SAFETY: this value is the last field of what is made from a mapping (`server`), which hands out nothing that outlives
        // it.
        unsafe { unmap(self.0.base, self.0.layout.length()) };
    }
}

/// A word that is 1 in the process that made it, and 0 in those forked from it.
pub(crate) struct Mark(NonNull<AtomicU64>);

// SAFETY: the pointer is to a page that this mark alone owns, from `new`, which maps it, to `drop`, which unmaps it. The mark
// hands out only shared references to its `AtomicU64`, which any thread may read. So a mark may move to another thread.
unsafe impl Send for Mark {}
// SAFETY: for the same reason several threads may use one mark at once.
unsafe impl Sync for Mark {}

impl Mark {
    const PAGE: usize = 4096;

    pub(crate) fn new() -> Result<Mark, Fault> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place where nothing is mapped.
        let page =
            unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), Self::PAGE, access, MapFlags::PRIVATE) };
        let mark = Mark(NonNull::new(page.map_err(|_| Fault::Internal)?.cast()).ok_or(Fault::Internal)?);
        // SAFETY: the call concerns the `PAGE` bytes that `mmap_anonymous` has just mapped for this mark, and nothing
        // refers to them yet. The advice makes the kernel fill the page with zeros in processes that are forked from this
        // one, and zeros are a valid `AtomicU64`.
        let wiped =
            unsafe { rustix::mm::madvise(mark.0.as_ptr().cast(), Self::PAGE, Advice::LinuxWipeOnFork) };
        wiped.map_err(|_| Fault::Kernel)?;
        mark.word().store(1, Ordering::Relaxed);
        Ok(mark)
    }

    /// Whether this is the process that made the mark.
    pub(crate) fn is_own(&self) -> bool {
        self.word().load(Ordering::Relaxed) != 0
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: the page is aligned, holds zeros or the stored word, and lives as long as the mark.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // SAFETY: nothing but the mark refers to its page.
        unsafe { unmap(self.0.cast(), Self::PAGE) };
    }
}
