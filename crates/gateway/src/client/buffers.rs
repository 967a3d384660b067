//! Buffers that are borrowed while bytes move and given back while a connection is idle.
//!
//! A thread keeps the buffers that it has used, as long as those in use and those kept stay below its part of
//! `limits.buffer_memory`; dropping a [`Buffer`] gives it back to its thread. A steady load therefore allocates nothing, and a
//! thousand idle connections hold no buffers at all. Bytes that wait for long move to a buffer of their own size, which is not
//! kept for reuse. All buffers count against the bound.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut};

/// The size of a buffer for requests: nearly every head fits.
pub(crate) const SMALL: usize = 16 * 1024;
/// The room before a response's head: the rewritten head may be longer, and so fits in front of the body in place.
pub(crate) const HEADROOM: usize = 2 * 1024;
/// The size of a buffer for bodies: 64 KiB and a head beside them come in one read.
pub(crate) const LARGE: usize = HEADROOM + 70 * 1024;

/// The most spare buffers of each size that a thread keeps: 16 MiB of large ones. Further ones are freed.
const KEPT: usize = 224;

/// How many small buffers a thread may have in use before giving one back is worth a copy.
const FEW: usize = 8;

/// Spare buffers of one size.
#[derive(Debug)]
struct Spare {
    buffers: Vec<Box<[u8]>>,
    taken: usize,
    /// The fewest spare buffers since the last trim: this number of buffers was not needed.
    fewest: usize,
}

impl Spare {
    const NONE: Spare = Spare { buffers: Vec::new(), taken: 0, fewest: 0 };
}

thread_local! {
    static POOL: RefCell<[Spare; 2]> = const { RefCell::new([Spare::NONE, Spare::NONE]) };
    /// The bytes of buffers of their own size.
    static FITTED: Cell<usize> = const { Cell::new(0) };
    /// How many bytes the buffers in use and the spare ones may hold together; buffers in use may exceed it.
    static MOST: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Spare buffers of this thread are kept only while all buffers hold at most `most` bytes.
pub(crate) fn keep_within(most: usize) {
    MOST.set(most);
}

/// Frees half of the spare buffers that were not needed since the last call, so that a burst's memory is given back within
/// seconds.
pub(crate) fn trim() {
    POOL.with_borrow_mut(|pool| {
        for spare in pool {
            let kept = spare.buffers.len() - spare.fewest.div_ceil(2).min(spare.buffers.len());
            spare.buffers.truncate(kept.max(1));
            spare.fewest = spare.buffers.len();
        }
    });
}

/// Whether this thread uses more small buffers than it should, so that a request which waits gives its buffer back.
pub(crate) fn are_many() -> bool {
    POOL.with_borrow(|pool| pool[0].taken > FEW)
}

/// How many bytes of buffers this thread uses.
pub(crate) fn in_use() -> usize {
    POOL.with_borrow(|[small, large]| small.taken * SMALL + large.taken * LARGE) + FITTED.get()
}

fn held([small, large]: &[Spare; 2]) -> usize {
    let of = |spare: &Spare| spare.taken + spare.buffers.len();
    of(small) * SMALL + of(large) * LARGE + FITTED.get()
}

/// How many bytes all buffers of this thread hold, spare ones included.
pub(crate) fn in_memory() -> usize {
    POOL.with_borrow(held)
}

/// Frees spare buffers until new memory of `size` bytes fits the bound.
fn make_room(pool: &mut [Spare; 2], size: usize) {
    while held(pool).saturating_add(size) > MOST.get() {
        let [small, large] = pool;
        if large.buffers.pop().or_else(|| small.buffers.pop()).is_none() {
            return;
        }
    }
}

/// Whether this thread's buffers use more than `most` bytes.
pub(crate) fn exceed(most: usize) -> bool {
    in_use() > most
}

/// Whether this thread's buffers use more than the thread's part of the memory.
pub(crate) fn are_scarce() -> bool {
    exceed(MOST.get())
}

/// Whether less than a quarter of the memory is in use. This much may be memory that cannot be given back.
pub(crate) fn are_few() -> bool {
    in_use() < MOST.get() / 4
}

/// A buffer of fixed size from its thread's pool, which holds whatever its last user left in it; or a buffer as long as its
/// bytes.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
}

impl Buffer {
    pub(crate) fn small() -> Self {
        Buffer::take(0, SMALL)
    }

    pub(crate) fn large() -> Self {
        Buffer::take(1, LARGE)
    }

    /// A buffer that is as long as these bytes.
    pub(crate) fn fitting(bytes: &[u8]) -> Self {
        let mut buffer = match bytes.len() {
            SMALL => Buffer::small(),
            LARGE => Buffer::large(),
            length => {
                Buffer::make_fitting(length);
                return Buffer { bytes: bytes.into() };
            }
        };
        buffer.copy_from_slice(bytes);
        buffer
    }

    /// A buffer that takes over this memory.
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        if matches!(bytes.len(), SMALL | LARGE) {
            return Buffer::fitting(&bytes);
        }
        Buffer::make_fitting(bytes.len());
        Buffer { bytes: bytes.into() }
    }

    fn make_fitting(length: usize) {
        POOL.with_borrow_mut(|pool| make_room(pool, length));
        FITTED.set(FITTED.get() + length);
    }

    fn take(class: usize, size: usize) -> Self {
        let kept = POOL.with_borrow_mut(|pool| {
            if pool[class].buffers.is_empty() {
                make_room(pool, size);
            }
            let spare = &mut pool[class];
            let buffer = spare.buffers.pop();
            spare.taken += 1;
            spare.fewest = spare.fewest.min(spare.buffers.len());
            buffer
        });
        Buffer { bytes: kept.unwrap_or_else(|| vec![0; size].into_boxed_slice()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let class = match bytes.len() {
            SMALL => 0,
            LARGE => 1,
            length => {
                // A buffer that another thread took was not counted here, as below.
                let _ = FITTED.try_with(|fitted| fitted.set(fitted.get().saturating_sub(length)));
                return;
            }
        };
        // When the thread ends the pool may be gone already; the buffer is then freed.
        let _ = POOL.try_with(|pool| {
            let Ok(mut pool) = pool.try_borrow_mut() else { return };
            // A buffer that another thread took was not counted here.
            pool[class].taken = pool[class].taken.saturating_sub(1);
            let has_room = held(&pool).saturating_add(bytes.len()) <= MOST.get();
            if has_room && pool[class].buffers.len() < KEPT {
                pool[class].buffers.push(bytes);
            }
        });
    }
}

impl Deref for Buffer {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spare() -> usize {
        POOL.with_borrow(|pool| pool[1].buffers.len())
    }

    #[test]
    fn few_are_not_many() {
        let mut small: Vec<Buffer> = (0..=FEW).map(|_| Buffer::small()).collect();
        assert!(are_many());
        small.pop();
        assert!(!are_many());
    }

    #[test]
    fn all_that_are_in_use_count() {
        let before = in_use();
        let buffers: Vec<Buffer> = [1, SMALL, LARGE].map(|length| Buffer::fitting(&vec![7; length])).into();
        assert!(buffers.iter().all(|buffer| buffer.iter().all(|&byte| byte == 7)));
        assert_eq!(in_use(), before + 1 + SMALL + LARGE);
        drop(buffers);
        assert_eq!(in_use(), before);
    }

    #[test]
    fn spare_buffers_and_those_in_use_have_a_bound_together() {
        keep_within(4 * LARGE);
        let mut many: Vec<Buffer> = (0..6).map(|_| Buffer::large()).collect();
        many.truncate(4);
        assert_eq!(spare(), 0, "as much as may be is in use");
        many.truncate(1);
        assert_eq!(spare(), 3);
        let fitting = Buffer::fitting(&[7; 1000]);
        assert_eq!(spare(), 2, "one made room");
        drop(Buffer::small());
        drop(many);
        assert_eq!(spare(), 3);
        assert!(POOL.with_borrow(held) <= 4 * LARGE);
        drop(fitting);
        keep_within(usize::MAX);
    }

    #[test]
    fn buffers_are_kept_while_they_are_needed_and_freed_after() {
        let many: Vec<Buffer> = (0..40).map(|_| Buffer::large()).collect();
        drop(many);
        trim();
        assert_eq!(spare(), 40, "all were in use since the last look");
        drop((0..30).map(|_| Buffer::large()).collect::<Vec<_>>());
        trim();
        assert_eq!(spare(), 35, "ten were not");
        for _ in 0..10 {
            trim();
        }
        assert_eq!(spare(), 1);
    }
}
