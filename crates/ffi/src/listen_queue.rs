//! How many connections wait in this process's listen queues, by the kernel's figures for a listening socket.

#![expect(unsafe_code, reason = "a call of the C library that fills a structure")]

use plimsoll_core::time::{Duration, Instant};
use std::ffi::c_int;
use std::mem::MaybeUninit;

/// The kernel's `TCP_LISTEN`.
const LISTENS: u32 = 10;
/// A server opens or inherits its listening sockets before all others, so that they have low numbers.
const DESCRIPTORS: c_int = 1024;
/// If no listening socket was found, the time until the next search.
const AGAIN: Duration = Duration::from_secs(1);

/// How many connections wait to be accepted at a listening TCP socket, or `u32::MAX` if its queue is nearly full, so that the
/// number of arrivals is not known; `None` for any other descriptor.
pub fn waiting(descriptor: c_int) -> Option<u32> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes, and any bytes are valid for this structure of integers. Nothing else is
    // changed, whatever the descriptor is.
    let info = unsafe {
        let into = info.as_mut_ptr().cast();
        let asked = libc::getsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO, into, &raw mut length);
        (asked == 0).then(|| info.assume_init())
    }?;
    // For a listening socket these two fields are the connections not yet accepted and the limit of the queue. A queue just
    // below its limit counts as full too, since this process may just have taken a connection out of a full one.
    let (waiting, most) = (info.tcpi_unacked, info.tcpi_sacked);
    let is_full = waiting > 0 && waiting.saturating_add(waiting / 16 + 1) >= most;
    (u32::from(info.tcpi_state) == LISTENS).then_some(if is_full { u32::MAX } else { waiting })
}

/// The TCP sockets of this process that listen.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    known: Vec<c_int>,
    next_search: Instant,
}

impl Listeners {
    /// How many connections wait at all of these sockets, or `u32::MAX` if one's queue is nearly full; `None` if there is no
    /// such socket.
    pub(crate) fn waiting(&mut self, now: Instant) -> Option<u32> {
        if self.known.is_empty() && now >= self.next_search {
            self.next_search = now + AGAIN;
            self.known.extend((0..DESCRIPTORS).filter(|descriptor| waiting(*descriptor).is_some()));
        }
        let mut sum = None;
        self.known.retain(|descriptor| {
            let own = waiting(*descriptor);
            sum = own.map(|own| own.saturating_add(sum.unwrap_or(0))).or(sum);
            own.is_some()
        });
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    /// A socket with this backlog; the kernel's queue has room for one more.
    fn listener(backlog: i32) -> TcpListener {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        rustix::net::listen(&socket, backlog).expect("it listens");
        socket
    }

    #[test]
    fn a_queue_is_as_long_as_connections_wait_and_a_full_one_tells_no_length() {
        let (wide, narrow) = (listener(100), listener(3));
        let mut own =
            Listeners { known: Vec::from([&wide, &narrow].map(AsRawFd::as_raw_fd)), ..Listeners::default() };
        let mut ask = || own.waiting(Instant::ZERO);
        assert_eq!(ask(), Some(0));
        let connect =
            |to: &TcpListener| TcpStream::connect(to.local_addr().expect("an address")).expect("it is taken");
        let mut clients: Vec<TcpStream> = (0..5).map(|_| connect(&wide)).collect();
        clients.push(connect(&narrow));
        assert_eq!(ask(), Some(6));
        clients.extend((0..3).map(|_| connect(&narrow)));
        assert_eq!(ask(), Some(u32::MAX), "one is full");
        drop(narrow);
        assert_eq!(ask(), Some(5), "one that is closed does not count");
        drop(wide.accept());
        assert_eq!((ask(), waiting(clients[0].as_raw_fd()), waiting(-1)), (Some(4), None, None));
    }

    #[test]
    fn sockets_that_listen_are_found_and_looked_for_each_second_while_there_are_none() {
        let mut own = Listeners::default();
        let socket = listener(100);
        assert!(own.waiting(Instant::ZERO).is_some());
        assert!(own.known.contains(&socket.as_raw_fd()), "{own:?}");
        let mut none = Listeners { next_search: Instant::ZERO + AGAIN, ..Listeners::default() };
        assert_eq!(none.waiting(Instant::ZERO), None);
        assert!(none.waiting(Instant::ZERO + AGAIN).is_some());
    }
}
