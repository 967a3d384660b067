//! What each kind of call does besides the real function.

use crate::connection::{Connection, LONGEST_HEAD, Reading, Step};
use crate::decide::{decide, saw_queue};
use crate::io_buffers::IoBuffers;
use crate::settings::PreloadSettings;
use crate::socket::Socket;
use crate::table;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Flags that do not change what a read returns. After a read with any other flag the connection is not followed any more.
const PLAIN: RecvFlags = RecvFlags::DONTWAIT.union(RecvFlags::CMSG_CLOEXEC);

/// How a call by which the server reads is handled.
#[derive(Clone, Copy, Debug)]
pub enum Reads {
    /// The real call is made.
    Through,
    /// It goes its way, and what it gets is told by [`got`].
    Told,
    /// The real call is not made: the server gets this number of bytes, or this error.
    Done(Result<usize, Errno>),
}

/// The library has been loaded.
pub fn start() {
    quietly(|| Some(PreloadSettings::own()));
}

/// The server has accepted a connection at a socket that listens.
pub fn accepted(listener: c_int, descriptor: c_int) {
    quietly(|| {
        let ends = Socket::new(descriptor)?.ends().filter(|(port, _)| PreloadSettings::own().watches(*port));
        if ends.is_none() && !table::is_watched(descriptor) {
            return None;
        }
        if ends.is_some() {
            saw_queue(|| plimsoll_ffi::waiting(listener));
        }
        table::with(descriptor, |connection| {
            // The table still has a connection of this descriptor whose end was not seen.
            if let Some(mut before) = connection.take() {
                before.closed();
            }
            *connection = ends.map(|(_, client)| Box::new(Connection::new(client, process())));
            Some(())
        })
    });
}

/// The server reads into `places`.
pub fn before_read(descriptor: c_int, flags: c_int, places: &IoBuffers<'_>) -> Reads {
    let flags = RecvFlags::from_bits_retain(flags.cast_unsigned());
    // A peek of the server takes no bytes.
    if !table::is_watched(descriptor) || places.room() == 0 || flags.contains(RecvFlags::PEEK) {
        return Reads::Through;
    }
    let reads = quietly(|| {
        if !PLAIN.contains(flags) {
            return give_up(descriptor);
        }
        Some(match with(descriptor, |connection| connection.reading().clone())? {
            Reading::Head => Reads::Done(next_head(descriptor, flags, places)?),
            Reading::Rest(..) => Reads::Told,
            Reading::Opaque => Reads::Through,
            Reading::End(until) => Reads::Done(throw_away(descriptor, flags, until)?),
        })
    });
    reads.unwrap_or(Reads::Through)
}

/// Notes the `count` bytes that the server has read into `places`; 0 is the end of the stream.
pub fn got(descriptor: c_int, places: &IoBuffers<'_>, count: usize) {
    quietly(|| {
        with(descriptor, |connection| {
            if count == 0 {
                connection.client_ended();
            }
            places.first(count).for_each(|bytes| connection.read(bytes));
        })
    });
}

/// Peeks at the next head, waiting for it if the call blocks, and at the heads behind it while requests are rejected. `None` if
/// the server's own call is to be made.
fn next_head(descriptor: c_int, flags: RecvFlags, places: &IoBuffers<'_>) -> Option<Result<usize, Errno>> {
    let socket = Socket::new(descriptor)?;
    // Filling the buffer with zeros would cost more than half of the work for a request.
    let mut scratch = [MaybeUninit::uninit(); LONGEST_HEAD];
    loop {
        let seen = match socket.peek(&mut scratch, flags) {
            Ok([]) => {
                with(descriptor, |connection| connection.client_ended())?;
                return None;
            }
            Ok(seen) => seen,
            Err(Errno::NOTSOCK) => return give_up(descriptor),
            Err(error) => return Some(Err(error)),
        };
        let (have, room) = (seen.len(), places.room());
        let (step, part) = with(descriptor, |connection| {
            let waits = || waits(socket, flags);
            let step = connection.head(seen, process(), waits, |head, client| decide(head, client, room));
            let part = connection.replace_part(if matches!(step, Step::Wait) { have } else { 0 });
            (step, part)
        })?;
        if part > 0 && !matches!(step, Step::Wait) {
            socket.readable_from(1);
        }
        match step {
            // If the client had not ended, the call would have waited for more bytes.
            Step::Wait if have == part && socket.has_ended() => return give_up(descriptor),
            // A call that blocks without limit returns without new bytes only if a signal has interrupted it.
            Step::Wait if have == part && !flags.contains(RecvFlags::DONTWAIT) && socket.waits_for_ever() => {
                return Some(Err(Errno::INTR));
            }
            Step::Wait if have == part => return Some(Err(Errno::AGAIN)),
            // Nobody is told that the part can be read, which would be tried again and again.
            Step::Wait => socket.readable_from(have + 1),
            Step::Pass => return None,
            Step::Insert(at, text) => {
                let given = places.put(&[&seen[..at], text.as_bytes(), &seen[at..]]);
                let taken = given.saturating_sub(text.len());
                socket.discard(&mut seen[..taken]).ok()?;
                with(descriptor, |connection| connection.read(&seen[..taken]));
                return Some(Ok(given));
            }
            Step::Answer(taken, answer, lingers) => {
                let is_sent = socket.answer(answer.as_bytes());
                socket.discard(&mut seen[..taken]).ok()?;
                if let Some(lingers) = if is_sent { lingers } else { Some(Duration::ZERO) } {
                    socket.end_sending();
                    let until = Instant::now() + lingers;
                    with(descriptor, |connection| connection.finish(until));
                    return throw_away(descriptor, flags, until);
                }
            }
        }
    }
}

/// Whether a call of the server with these flags blocks.
fn waits(socket: Socket, flags: RecvFlags) -> bool {
    !flags.contains(RecvFlags::DONTWAIT) && socket.waits()
}

/// Throws away all bytes until this time, or until the client ends its side; the server then sees the end of the stream. Blocks
/// if the server's own call would.
fn throw_away(descriptor: c_int, flags: RecvFlags, until: Instant) -> Option<Result<usize, Errno>> {
    let socket = Socket::new(descriptor)?;
    let (waits, mut scratch) = (waits(socket, flags), [0; LONGEST_HEAD]);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Some(Ok(0));
        }
        match socket.discard(&mut scratch) {
            Ok(count) if count > 0 => {}
            Err(Errno::AGAIN) if waits => socket.wait(left),
            Err(Errno::AGAIN) => return Some(Err(Errno::AGAIN)),
            _ => return Some(Ok(0)),
        }
    }
}

/// The server is about to send the bytes of `places`. Returns the bytes that the client gets instead of the first of them, if
/// they differ; the number is the same.
pub fn before_write(descriptor: c_int, places: &IoBuffers<'_>) -> Option<Vec<u8>> {
    quietly(|| with(descriptor, |connection| connection.instead_of(places)).flatten())
}

/// The server has sent the first `count` bytes of `places`, with `instead` in place of the first of them.
pub fn sent(descriptor: c_int, places: &IoBuffers<'_>, count: usize, instead: Option<Vec<u8>>) {
    quietly(|| {
        with(descriptor, |connection| {
            if let Some(instead) = instead {
                connection.sent_instead(instead, count);
            }
            places.first(count).for_each(|bytes| connection.sent(bytes));
        })
    });
}

/// The kernel has sent bytes for the server, such as a file's, which pass no buffer of the server.
pub fn sent_by_kernel(descriptor: c_int, count: usize) {
    quietly(|| with(descriptor, |connection| connection.sent_by_kernel(count as u64)));
}

/// The server has ended its sending side.
pub fn shut(descriptor: c_int) {
    quietly(|| with(descriptor, |connection| connection.closed()));
}

/// The server is about to close the descriptor, or to put another file in its place.
pub fn closing(descriptor: c_int) {
    if !table::is_watched(descriptor) {
        return;
    }
    quietly(|| {
        table::with(descriptor, |connection| {
            // A child has its parent's descriptors, and a child of vfork also its memory, so only the process that reads the
            // connection ends it.
            if connection.as_ref().is_some_and(|connection| connection.process() == process()) {
                connection.take()?.closed();
            }
            Some(())
        })
    });
}

/// Runs `act` with the connection of the descriptor, and forgets the connection if nothing more can be seen on it.
fn with<T>(descriptor: c_int, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
    table::is_watched(descriptor).then_some(())?;
    table::with(descriptor, |connection| {
        let result = act(connection.as_mut()?);
        connection.take_if(|connection| connection.is_over());
        Some(result)
    })
}

/// Stops looking at the connection, once the request under way has ended.
fn give_up<T>(descriptor: c_int) -> Option<T> {
    let part = with(descriptor, |connection| {
        connection.give_up();
        connection.replace_part(0)
    })?;
    if part > 0 {
        Socket::new(descriptor)?.readable_from(1);
    }
    None
}

/// Catches a panic, so that it never reaches the server.
fn quietly<T>(act: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(act)).ok().flatten()
}

fn process() -> u32 {
    rustix::process::getpid().as_raw_nonzero().get().unsigned_abs()
}
