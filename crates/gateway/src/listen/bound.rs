//! A listening socket, from when it has its address to when its thread accepts from it.

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
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::TcpSocket;

const BACKLOG: u32 = 4096;

/// How many bytes may lie unsent in a connection's socket. What lies there is neither counted as taken by the client nor
/// memory of the gateway's; megabytes of it would hide for minutes whether a slow client reads at all.
const UNSENT: u32 = 64 * 1024;

/// A socket that has its address. One of TCP does not listen yet: connections come only once its thread runs.
#[derive(Debug)]
pub(crate) struct BoundSocket {
    pub socket: Unstarted,
    /// Whether TLS is spoken there.
    pub tls: bool,
}

#[derive(Debug)]
pub(crate) enum Unstarted {
    Tcp(TcpSocket),
    Unix(StdUnixListener),
}

/// A socket that a thread accepts from. What it accepts is not registered with the thread's selector, since it may be for
/// another thread, or for none.
#[derive(Debug)]
pub(crate) struct Listening {
    socket: AsyncFd<socket2::Socket>,
    pub tls: bool,
}

/// Binds a socket, which does not listen yet, to an address that other threads may bind too.
pub(super) fn bind_tcp(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    // Connections inherit it. On a system without it, slow readers are judged by what their kernel takes at a time.
    let _ = SockRef::from(&socket).set_tcp_notsent_lowat(UNSENT);
    socket.bind(address)?;
    Ok(socket)
}

/// Fails if another process listens on `address` already. `SO_REUSEPORT` alone would let a second gateway join the first
/// unnoticed, and each gateway would get a part of the clients.
pub(super) fn ensure_free(address: SocketAddr) -> io::Result<()> {
    // Linux reports this at listen, not yet at bind; `TcpListener::bind` does both.
    std::net::TcpListener::bind(address).map(drop)
}

/// Listens on a path. A socket at which nobody answers was left there, and is removed; a file of another kind stays.
pub(super) fn bind_unix(path: &Path) -> io::Result<StdUnixListener> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let is_left = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
        && StdUnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
    if is_left {
        std::fs::remove_file(path)?;
    }
    let listener = StdUnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    rustix::net::listen(&listener, BACKLOG as i32)?;
    // The folder's rights say who may connect, as with other servers.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666))?;
    Ok(listener)
}

impl Unstarted {
    /// A socket that listens already.
    pub(super) fn taken(socket: OwnedFd, is_unix: bool) -> Self {
        match is_unix {
            true => Unstarted::Unix(socket.into()),
            // The type of a socket that does not listen yet: to listen again changes nothing.
            false => Unstarted::Tcp(TcpSocket::from_std_stream(std::net::TcpStream::from(socket))),
        }
    }
}

impl BoundSocket {
    /// Begins to accept. Must be called in the thread's runtime.
    pub(crate) fn listen(self) -> io::Result<Listening> {
        let socket = match self.socket {
            Unstarted::Tcp(socket) => {
                // Connections inherit it, too.
                let _ = socket.set_nodelay(true);
                socket.listen(BACKLOG)?.into_std()?.into()
            }
            Unstarted::Unix(socket) => OwnedFd::from(socket).into(),
        };
        // A `socket2::Socket` owns its one descriptor, and closes it only when it is dropped, which `AsyncFd` does at its end.
        #[expect(unsafe_code, reason = "the descriptor stays the same and open while it is registered")]
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
        Ok(Listening { socket, tls: self.tls })
    }
}

impl Listening {
    /// The next connection, and where it comes from. Clients of a Unix socket are on this machine.
    pub(crate) fn poll_accept(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<(DetachedSocket, IpAddr)>> {
        loop {
            let mut readiness = ready!(self.socket.poll_read_ready(context))?;
            let Ok(accepted) = readiness.try_io(|socket| accept(socket.get_ref())) else { continue };
            // Linux makes a file before it looks whether somebody waits: an accept that finds nobody costs more than a look.
            if !is_anybody_waiting(self.socket.get_ref()) {
                readiness.clear_ready();
            }
            return Poll::Ready(accepted);
        }
    }
}

/// Whether another connection can be accepted at once.
fn is_anybody_waiting(socket: &socket2::Socket) -> bool {
    let mut looked = [PollFd::new(socket, PollFlags::IN)];
    // If it cannot be told, the next accept tells.
    poll(&mut looked, Some(&Timespec::default())).map_or(true, |ready| ready > 0)
}

fn accept(socket: &socket2::Socket) -> io::Result<(DetachedSocket, IpAddr)> {
    // In one call, where `accept` and two more would make it one that does not block.
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (io, peer) = rustix::net::acceptfrom_with(socket, flags)?;
    Ok(match peer.and_then(|peer| SocketAddr::try_from(peer).ok()) {
        Some(peer) => (DetachedSocket::Tcp(io.into()), peer.ip()),
        None => (DetachedSocket::Unix(io.into()), IpAddr::V4(Ipv4Addr::LOCALHOST)),
    })
}
