//! The functions of the C library that this library replaces. Each one calls the real function, and reports the call to
//! `watch`.

#![expect(unsafe_code, reason = "functions of the C library, with pointers")]
#![expect(
    missing_docs,
    clippy::missing_safety_doc,
    reason = "their manual pages say what they do, and what they need"
)]

use crate::io_buffers::IoBuffers;
use crate::watch::{self, Reads};
use libc::{c_int, c_long, c_void, iovec, msghdr, off_t, size_t, sockaddr, socklen_t, ssize_t};
use nix::errno::Errno;
use std::sync::OnceLock;
use std::{mem, process, slice};

/// The kernel takes at most this number of pieces in one call.
const MOST_PIECES: usize = 1024;

/// The real functions, by their names and types.
macro_rules! real_functions {
    ($($name:ident($($argument:ty),*) -> $result:ty;)*) => {
        struct Real { $($name: unsafe extern "C" fn($($argument),*) -> $result,)* }

        impl Real {
            fn find() -> Real {
                Real { $($name: {
                    // SAFETY: the name ends with NUL.
                    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, concat!(stringify!($name), "\0").as_ptr().cast()) };
                    if found.is_null() {
                        eprintln!("plimsoll: the C library has no {}", stringify!($name));
                        process::abort();
                    }
                    // SAFETY: the function of this name has this type.
                    unsafe { mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(found) }
                },)* }
            }
        }
    };
}

real_functions! {
    accept(c_int, *mut sockaddr, *mut socklen_t) -> c_int;
    accept4(c_int, *mut sockaddr, *mut socklen_t, c_int) -> c_int;
    read(c_int, *mut c_void, size_t) -> ssize_t;
    readv(c_int, *const iovec, c_int) -> ssize_t;
    recv(c_int, *mut c_void, size_t, c_int) -> ssize_t;
    recvfrom(c_int, *mut c_void, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t;
    recvmsg(c_int, *mut msghdr, c_int) -> ssize_t;
    __read_chk(c_int, *mut c_void, size_t, size_t) -> ssize_t;
    __recv_chk(c_int, *mut c_void, size_t, size_t, c_int) -> ssize_t;
    __recvfrom_chk(c_int, *mut c_void, size_t, size_t, c_int, *mut sockaddr, *mut socklen_t) -> ssize_t;
    write(c_int, *const c_void, size_t) -> ssize_t;
    writev(c_int, *const iovec, c_int) -> ssize_t;
    send(c_int, *const c_void, size_t, c_int) -> ssize_t;
    sendto(c_int, *const c_void, size_t, c_int, *const sockaddr, socklen_t) -> ssize_t;
    sendmsg(c_int, *const msghdr, c_int) -> ssize_t;
    sendfile(c_int, c_int, *mut off_t, size_t) -> ssize_t;
    sendfile64(c_int, c_int, *mut off_t, size_t) -> ssize_t;
    shutdown(c_int, c_int) -> c_int;
    close(c_int) -> c_int;
    dup(c_int) -> c_int;
    dup2(c_int, c_int) -> c_int;
    dup3(c_int, c_int, c_int) -> c_int;
    fcntl(c_int, c_int, c_long) -> c_int;
    fcntl64(c_int, c_int, c_long) -> c_int;
    syscall(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;
}

fn real() -> &'static Real {
    static REAL: OnceLock<Real> = OnceLock::new();
    REAL.get_or_init(Real::find)
}

/// Runs when the library is loaded, before the server's own code.
// SAFETY: functions of this type are what the section holds.
#[unsafe(link_section = ".init_array")]
#[used]
static START: extern "C" fn() = {
    extern "C" fn start() {
        real();
        watch::start();
    }
    start
};

/// # Safety
/// `pieces` may be written to.
unsafe fn reading(
    descriptor: c_int,
    pieces: &[iovec],
    flags: c_int,
    real: impl FnOnce() -> ssize_t,
) -> ssize_t {
    // SAFETY: as the caller sees to.
    let places = unsafe { IoBuffers::new(pieces) };
    match watch::before_read(descriptor, flags, &places) {
        Reads::Through => real(),
        Reads::Told => {
            let count = real();
            if let Ok(count) = usize::try_from(count) {
                watch::got(descriptor, &places, count);
            }
            count
        }
        Reads::Done(Ok(count)) => count.cast_signed(),
        Reads::Done(Err(error)) => {
            Errno::set_raw(error.raw_os_error());
            -1
        }
    }
}

/// A read by one of the functions (`__read_chk` and its like) that end the program if more is asked for than the buffer has
/// room for, here `room`. A compiler may call one in place of the plain function.
///
/// # Safety
/// The buffer may be written to.
unsafe fn checked(
    descriptor: c_int,
    (buffer, length, room): (*mut c_void, size_t, size_t),
    flags: c_int,
    real: impl FnOnce() -> ssize_t,
) -> ssize_t {
    // SAFETY: as the caller sees to.
    if length > room {
        real()
    } else {
        unsafe { reading(descriptor, &IoBuffers::piece(buffer, length), flags, real) }
    }
}

/// A write with these flags, or with `None` if the message has parts besides its bytes, so that it cannot be changed.
///
/// # Safety
/// `pieces` may be read.
unsafe fn writing(
    descriptor: c_int,
    pieces: &[iovec],
    flags: Option<c_int>,
    real_call: impl FnOnce() -> ssize_t,
) -> ssize_t {
    // SAFETY: as the caller sees to.
    let places = unsafe { IoBuffers::new(pieces) };
    let may_change = pieces.len() < MOST_PIECES;
    let instead = flags.filter(|_| may_change).zip(watch::before_write(descriptor, &places));
    let Some((flags, instead)) = instead else {
        let count = real_call();
        if let Some(sent) = usize::try_from(count).ok().filter(|sent| *sent > 0) {
            watch::sent(descriptor, &places, sent, None);
        }
        return count;
    };
    let mut parts = places.behind(&instead);
    // SAFETY: a message of zeros is a valid, empty one.
    let mut message: msghdr = unsafe { mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (parts.as_mut_ptr(), parts.len());
    // SAFETY: the parts are the server's own memory, which may be read, and the bytes that replace the first of them.
    let count = unsafe { (real().sendmsg)(descriptor, &raw const message, flags) };
    let error = Errno::last_raw();
    watch::sent(descriptor, &places, usize::try_from(count).unwrap_or(0), Some(instead));
    Errno::set_raw(error);
    count
}

/// The pieces at this pointer; none if the kernel refuses the count.
///
/// # Safety
/// `start` points to `count` pieces that may be read.
unsafe fn pieces<'a>(start: *const iovec, count: usize) -> &'a [iovec] {
    if start.is_null() || count > MOST_PIECES {
        return &[];
    }
    // SAFETY: as the caller sees to.
    unsafe { slice::from_raw_parts(start, count) }
}

fn accepted(listener: c_int, descriptor: c_int) -> c_int {
    if descriptor >= 0 {
        watch::accepted(listener, descriptor);
    }
    descriptor
}

/// Defines functions that replace the C library's. Each calls the real one with its own arguments, which are valid for both.
macro_rules! functions {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty = |$call:ident| $body:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),*) -> $result {
            // SAFETY: these are the server's own arguments, and it meant to call this function.
            let $call = || unsafe { (real().$name)($($argument),*) };
            // SAFETY: what the arguments point to is valid for the real function, and so for reading it here.
            #[allow(unused_unsafe, reason = "some look at nothing")]
            unsafe { $body }
        }
    )*};
}

functions! {
    fn accept(socket: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int = |call| accepted(socket, call());
    fn accept4(socket: c_int, address: *mut sockaddr, length: *mut socklen_t, flags: c_int) -> c_int =
        |call| accepted(socket, call());
    fn read(socket: c_int, buffer: *mut c_void, length: size_t) -> ssize_t =
        |call| reading(socket, &IoBuffers::piece(buffer, length), 0, call);
    fn readv(socket: c_int, vectors: *const iovec, count: c_int) -> ssize_t =
        |call| reading(socket, pieces(vectors, count as usize), 0, call);
    fn recv(socket: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t =
        |call| reading(socket, &IoBuffers::piece(buffer, length), flags, call);
    fn recvfrom(
        socket: c_int, buffer: *mut c_void, length: size_t, flags: c_int, from: *mut sockaddr, size: *mut socklen_t
    ) -> ssize_t = |call| {
        // The socket is a stream, so the kernel fills in no address.
        reading(socket, &IoBuffers::piece(buffer, length), flags, call)
    };
    fn __read_chk(socket: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t =
        |call| checked(socket, (buffer, length, room), 0, call);
    fn __recv_chk(socket: c_int, buffer: *mut c_void, length: size_t, room: size_t, flags: c_int) -> ssize_t =
        |call| checked(socket, (buffer, length, room), flags, call);
    fn __recvfrom_chk(
        socket: c_int, buffer: *mut c_void, length: size_t, room: size_t, flags: c_int, from: *mut sockaddr,
        size: *mut socklen_t
    ) -> ssize_t = |call| checked(socket, (buffer, length, room), flags, call);
    fn recvmsg(socket: c_int, message: *mut msghdr, flags: c_int) -> ssize_t = |call| {
        if message.is_null() {
            return call();
        }
        let (mut is_own, vectors) = (true, pieces((*message).msg_iov, (*message).msg_iovlen));
        let count = reading(socket, vectors, flags, || {
            is_own = false;
            call()
        });
        if is_own && count >= 0 {
            ((*message).msg_namelen, (*message).msg_controllen, (*message).msg_flags) = (0, 0, 0);
        }
        count
    };
    fn write(socket: c_int, buffer: *const c_void, length: size_t) -> ssize_t =
        |call| writing(socket, &IoBuffers::piece(buffer, length), Some(0), call);
    fn writev(socket: c_int, vectors: *const iovec, count: c_int) -> ssize_t =
        |call| writing(socket, pieces(vectors, count as usize), Some(0), call);
    fn send(socket: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t =
        |call| writing(socket, &IoBuffers::piece(buffer, length), Some(flags), call);
    fn sendto(
        socket: c_int, buffer: *const c_void, length: size_t, flags: c_int, to: *const sockaddr, size: socklen_t
    ) -> ssize_t = |call| writing(socket, &IoBuffers::piece(buffer, length), Some(flags), call);
    fn sendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t = |call| {
        let Some(told) = message.as_ref() else { return call() };
        let is_plain = told.msg_controllen == 0;
        writing(socket, pieces(told.msg_iov, told.msg_iovlen), is_plain.then_some(flags), call)
    };
    fn sendfile(socket: c_int, file: c_int, offset: *mut off_t, length: size_t) -> ssize_t =
        |call| sent_by_kernel(socket, call());
    fn sendfile64(socket: c_int, file: c_int, offset: *mut off_t, length: size_t) -> ssize_t =
        |call| sent_by_kernel(socket, call());
    fn shutdown(socket: c_int, how: c_int) -> c_int = |call| {
        if how != libc::SHUT_RD {
            watch::shut(socket);
        }
        call()
    };
    fn close(descriptor: c_int) -> c_int = |call| {
        watch::closing(descriptor);
        call()
    };
    // Once a connection has two descriptors, its close can no longer be seen.
    fn dup(descriptor: c_int) -> c_int = |call| {
        watch::closing(descriptor);
        call()
    };
    fn dup2(descriptor: c_int, other: c_int) -> c_int = |call| {
        watch::closing(descriptor);
        watch::closing(other);
        call()
    };
    fn dup3(descriptor: c_int, other: c_int, flags: c_int) -> c_int = |call| {
        watch::closing(descriptor);
        watch::closing(other);
        call()
    };
    // In C these functions take any number of arguments, which are passed in the same places.
    fn fcntl(descriptor: c_int, command: c_int, argument: c_long) -> c_int = |call| {
        doubled(descriptor, command);
        call()
    };
    fn fcntl64(descriptor: c_int, command: c_int, argument: c_long) -> c_int = |call| {
        doubled(descriptor, command);
        call()
    };
    // libuv closes descriptors by this function.
    fn syscall(
        number: c_long, one: c_long, two: c_long, three: c_long, four: c_long, five: c_long, six: c_long
    ) -> c_long = |call| {
        if number == libc::SYS_close {
            watch::closing(one as c_int);
        }
        call()
    };
}

fn doubled(descriptor: c_int, command: c_int) {
    if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
        watch::closing(descriptor);
    }
}

fn sent_by_kernel(descriptor: c_int, count: ssize_t) -> ssize_t {
    if let Some(sent) = usize::try_from(count).ok().filter(|sent| *sent > 0) {
        watch::sent_by_kernel(descriptor, sent);
    }
    count
}
