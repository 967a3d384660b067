//! A listening socket, from the time it has its address until its thread accepts from it.

use crate::transport::plain::DetachedSocket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::SocketFlags;
use socket2::SockRef;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream};
use std::path::Path;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdRegisterError};
use tokio::net::TcpSocket;

const BACKLOG: u32 = 4096;

/// How many bytes may lie unsent in a connection's socket. Unsent bytes count neither as taken by the client nor as memory of
/// the gateway; megabytes of them would hide for minutes whether a slow client reads at all.
const UNSENT: u32 = 64 * 1024;

/// A socket that has its address. A TCP socket does not listen yet, so that connections come only once its thread runs.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    pub socket: Unstarted,
    /// Whether its connections speak TLS.
    pub tls: bool,
}

#[derive(Debug)]
pub(crate) enum Unstarted {
    Tcp(TcpSocket),
    Unix(StdUnixListener),
}

/// A socket that a thread accepts from. An accepted connection is not registered with the thread's selector, since another
/// thread may serve it, or none.
#[derive(Debug)]
pub(crate) struct Listening {
    socket: AsyncFd<socket2::Socket>,
    pub tls: bool,
}

/// A connection that was accepted.
pub(crate) struct Connected {
    pub io: DetachedSocket,
    pub peer: IpAddr,
    /// Whether no other connection waits behind this one.
    pub is_last: bool,
}

/// Binds a socket, which does not listen yet, to an address that other threads may bind too.
pub(super) fn bind_tcp(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    // Connections inherit the option. If the system lacks it, slow readers are judged by the bytes that their kernel takes at a
    // time.
    let _ = SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT);
    socket.bind(address)?;
    Ok(socket)
}

/// Fails if another process listens on `address` already. `SO_REUSEPORT` alone would let a second gateway join the first
/// unnoticed, and each gateway would get a part of the clients.
pub(super) fn ensure_free(address: SocketAddr) -> io::Result<()> {
    // Linux reports an occupied address at `listen` and not yet at `bind`; `TcpListener::bind` calls both.
    std::net::TcpListener::bind(address).map(drop)
}

/// Listens on a path. If nobody answers at a socket there, it was left by another process and is removed; a file of another
/// kind stays.
pub(super) fn bind_unix(path: &Path) -> io::Result<StdUnixListener> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let there = std::fs::symlink_metadata(path);
    if there.as_ref().is_ok_and(|there| !there.file_type().is_socket()) {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "what is there is no socket"));
    }
    let is_left = there.is_ok()
        && StdUnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_left {
        std::fs::remove_file(path)?;
    }
    let listener = StdUnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    rustix::net::listen(&listener, BACKLOG as i32)?;
    // The folder's permissions say who may connect, as with other servers.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

impl Unstarted {
    /// A socket that already listens.
    pub(super) fn taken(socket: OwnedFd, is_unix: bool) -> Self {
        match is_unix {
            true => Unstarted::Unix(socket.into()),
            // The type is that of a socket that does not listen yet: to listen again changes nothing.
            false => Unstarted::Tcp(TcpSocket::from_std_stream(std::net::TcpStream::from(socket))),
        }
    }
}

impl BoundSocket {
    /// Begins to accept. Must be called in the thread's runtime.
    pub(crate) fn listen(self) -> io::Result<Listening> {
        let socket = match self.socket {
            Unstarted::Tcp(socket) => {
                // Connections inherit this option, too.
                let _ = socket.set_nodelay(true);
                socket.listen(BACKLOG)?.into_std()?.into()
            }
            Unstarted::Unix(socket) => OwnedFd::from(socket).into(),
        };
        Ok(Listening { socket: register(socket)?, tls: self.tls })
    }
}

impl Listening {
    /// The next connection, and where it comes from. Clients of a Unix socket are on this machine.
    pub(crate) fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<Connected>> {
        loop {
            let mut readiness = ready!(self.socket.poll_read_ready(context))?;
            let Ok(accepted) = readiness.try_io(|socket| accept(socket.get_ref())) else { continue };
            // Linux allocates a file before it checks whether a connection waits, so an `accept` without a connection costs
            // more than this check.
            let is_last = !is_anybody_waiting(self.socket.get_ref());
            if is_last {
                readiness.clear_ready();
            }
            return Poll::Ready(accepted.map(|(io, peer)| Connected { io, peer, is_last }));
        }
    }

    /// Accepts a waiting connection, without waiting for the selector.
    pub(crate) fn accept_waiting(&self) -> Option<io::Result<Connected>> {
        match accept(self.socket.get_ref()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            accepted => Some(accepted.map(|(io, peer)| Connected { io, peer, is_last: false })),
        }
    }

    /// Returns the socket after this pause. Meanwhile connections wait in its queue, and none wakes the thread.
    pub(crate) async fn gather(self, pause: Duration) -> Self {
        let mut socket = self.socket.into_inner();
        loop {
            tokio::time::sleep(pause).await;
            match register(socket) {
                Ok(socket) => return Listening { socket, ..self },
                // The system has no memory for the registration at the moment.
                Err(error) => socket = error.into_parts().0,
            }
        }
    }
}

/// Registers the socket with the thread's selector.
fn register(
    socket: socket2::Socket,
) -> Result<AsyncFd<socket2::Socket>, AsyncFdRegisterError<socket2::Socket>> {
    // A `socket2::Socket` owns its one descriptor, and closes it only when it is dropped, which `AsyncFd` does at its end.
    #[expect(unsafe_code, reason = "the descriptor stays the same and open while it is registered")]
    unsafe {
        AsyncFd::register_with_interest(socket, Interest::READABLE)
    }
}

/// Whether another connection waits to be accepted.
fn is_anybody_waiting(socket: &socket2::Socket) -> bool {
    let mut looked = [PollFd::new(socket, PollFlags::IN)];
    // If it cannot be known here, the next accept shows it.
    poll(&mut looked, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}

fn accept(socket: &socket2::Socket) -> io::Result<(DetachedSocket, IpAddr)> {
    // One call makes the accepted socket non-blocking, where `accept` would need two more.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (io, peer) = rustix::net::acceptfrom_with(socket, flags)?;
    Ok(match peer.and_then(|peer| SocketAddr::try_from(peer).ok()) {
        Some(peer) => (DetachedSocket::Tcp(io.into()), peer.ip()),
        None => (DetachedSocket::Unix(io.into()), IpAddr::V4(Ipv4Addr::LOCALHOST)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use tokio::runtime::{Builder, LocalOptions};

    #[test]
    fn connections_that_gather_wait_in_the_queue_and_are_not_lost_if_the_gateway_drains_just_then() {
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        runtime.expect("a runtime").block_on(async {
            let socket = bind_tcp(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
            let address = socket.local_addr().expect("its address");
            let listening =
                BoundSocket { socket: Unstarted::Tcp(socket), tls: false }.listen().expect("it listens");
            let connect = || TcpStream::connect(address).expect("there is room in the queue");
            let clients = [connect(), connect(), connect()];
            let next =
                std::future::poll_fn(|context| listening.poll_accept(context)).await.expect("a connection");
            assert!(!next.is_last);
            let listening = listening.gather(Duration::from_millis(1)).await;
            let left = std::iter::from_fn(|| listening.accept_waiting());
            assert_eq!(left.filter(Result::is_ok).count(), clients.len() - 1);
        });
    }
}
