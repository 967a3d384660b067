//! Connections, by descriptor.

use crate::connection::Connection;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, TryLockError};

/// Descriptors from this one on are not looked at.
const DESCRIPTORS: usize = 1 << 16;
/// How often a lock is tried. Its holder keeps it less than a microsecond; in a forked child a lock may stay held for ever.
const TRIES: usize = 1000;

struct WatchedDescriptor {
    /// Whether `connection` holds a connection.
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

/// Runs `act` with the descriptor's connection, which stays in the table if `act` leaves it in the option. `None` if the lock
/// cannot be had.
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
            // A call panicked with the lock, so the state of the connection is not known any more.
            Err(TryLockError::Poisoned(_)) => {
                place.is_watched.store(false, Ordering::Release);
                return None;
            }
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}
