//! Connections, by descriptor.

use crate::connection::Connection;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, TryLockError};

/// A descriptor above is not looked at.
const DESCRIPTORS: usize = 1 << 16;
/// How often a lock is tried. Its holder needs less than a microsecond; in a forked child it may be held for ever.
const TRIES: usize = 1000;

struct WatchedDescriptor {
    /// Whether there is a connection.
    is_watched: AtomicBool,
    connection: Mutex<Option<Box<Connection>>>,
}

static PLACES: [WatchedDescriptor; DESCRIPTORS] =
    [const { WatchedDescriptor { is_watched: AtomicBool::new(false), connection: Mutex::new(None) } };
        DESCRIPTORS];

fn place(descriptor: c_int) -> Option<&'static WatchedDescriptor> {
    PLACES.get(usize::try_from(descriptor).ok()?)
}

/// Whether the descriptor is a connection that is looked at.
#[inline]
pub(crate) fn is_watched(descriptor: c_int) -> bool {
    place(descriptor).is_some_and(|place| place.is_watched.load(Ordering::Acquire))
}

/// Runs `act` with the connection, which is kept if `act` leaves it there. None if there is none, or it cannot be had.
pub(crate) fn with<T>(
    descriptor: c_int,
    act: impl FnOnce(&mut Option<Box<Connection>>) -> Option<T>,
) -> Option<T> {
    let place = place(descriptor)?;
    for _ in 0..TRIES {
        match place.connection.try_lock() {
            Ok(mut connection) => {
                let result = act(&mut connection);
                place.is_watched.store(connection.is_some(), Ordering::Release);
                return result;
            }
            // A call panicked: nothing is known of the connection any more.
            Err(TryLockError::Poisoned(_)) => {
                place.is_watched.store(false, Ordering::Release);
                return None;
            }
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}
