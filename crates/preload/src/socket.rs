//! Calls to the kernel about a descriptor of the server. They bypass the C library's functions that this library replaces.

#![expect(unsafe_code, reason = "descriptors of the server are numbers")]

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::BorrowedFd;
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, socket_timeout};
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// A descriptor that the server has passed in a call, during that call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Socket(BorrowedFd<'static>);

impl Socket {
    pub(crate) fn new(descriptor: c_int) -> Option<Socket> {
        // SAFETY: the descriptor is not -1. It is used only during the server's call, in which the server keeps it open; if the
        // server does not, the kernel answers with an error.
        (descriptor >= 0).then(|| Socket(unsafe { BorrowedFd::borrow_raw(descriptor) }))
    }

    /// The port at which a connection was accepted, and the client's address. `None` if the socket is not TCP.
    pub(crate) fn ends(self) -> Option<(u16, IpAddr)> {
        let own = SocketAddr::try_from(rustix::net::getsockname(self.0).ok()?).ok()?;
        let client = SocketAddr::try_from(rustix::net::getpeername(self.0).ok()??).ok()?;
        Some((own.port(), client.ip().to_canonical()))
    }

    /// Peeks at the bytes that have come and leaves them in the kernel; blocks if the server's own call would.
    pub(crate) fn peek(self, into: &mut [MaybeUninit<u8>], flags: RecvFlags) -> Result<&mut [u8], Errno> {
        rustix::net::recv(self.0, into, flags | RecvFlags::PEEK).map(|((seen, _), _)| seen)
    }

    /// Takes bytes that have come and drops them, as many as `scratch` is long.
    pub(crate) fn discard(self, scratch: &mut [u8]) -> Result<usize, Errno> {
        rustix::net::recv(self.0, scratch, RecvFlags::DONTWAIT).map(|(_, length)| length)
    }

    /// Whether the server's calls block.
    pub(crate) fn waits(self) -> bool {
        fcntl_getfl(self.0).is_ok_and(|flags| !flags.contains(OFlags::NONBLOCK))
    }

    /// Whether the server's calls block without a time limit.
    pub(crate) fn waits_for_ever(self) -> bool {
        self.waits() && matches!(socket_timeout(self.0, Timeout::Recv), Ok(None))
    }

    /// Waits until more has come, at most for this time.
    pub(crate) fn wait(self, most: Duration) {
        let most = Timespec { tv_sec: most.as_secs().cast_signed(), tv_nsec: most.subsec_nanos().into() };
        // The next call shows what has come, or the error.
        let _ = poll(&mut [PollFd::from_borrowed_fd(self.0, PollFlags::IN)], Some(&most));
    }

    /// Whether the client has ended its side of the connection.
    pub(crate) fn has_ended(self) -> bool {
        let mut asked = [PollFd::from_borrowed_fd(self.0, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut asked, Some(&now)).is_ok_and(|found| found > 0)
    }

    /// Sets the number of bytes from which on the socket counts as readable, in blocking calls, `poll` and `epoll`.
    pub(crate) fn readable_from(self, bytes: usize) {
        let value = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        let (number, length) =
            (std::os::fd::AsRawFd::as_raw_fd(&self.0), size_of::<c_int>() as libc::socklen_t);
        // SAFETY: the kernel reads an integer, and writes nothing.
        let done = unsafe {
            libc::setsockopt(number, libc::SOL_SOCKET, libc::SO_RCVLOWAT, (&raw const value).cast(), length)
        };
        debug_assert!(done == 0);
    }

    /// Sends an answer without blocking; returns whether the kernel took all of it.
    pub(crate) fn answer(self, bytes: &[u8]) -> bool {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        rustix::net::send(self.0, bytes, flags).is_ok_and(|sent| sent == bytes.len())
    }

    /// Ends the sending side of the connection.
    pub(crate) fn end_sending(self) {
        // The call fails if the client has left, which is harmless.
        let _ = rustix::net::shutdown(self.0, Shutdown::Write);
    }
}
