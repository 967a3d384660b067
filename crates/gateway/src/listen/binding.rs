//! The sockets of all addresses, one for each address and thread: taken over or bound.

use super::acceptor;
use super::inherited::{Inherited, spread};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use tokio::net::TcpSocket;

/// Sockets that do not accept yet.
pub(crate) struct Bound {
    /// The addresses, in the order of the settings.
    pub addresses: Vec<SocketAddr>,
    /// By thread.
    pub sockets: Vec<Vec<TcpSocket>>,
    /// The same sockets, to be handed over.
    pub kept: Vec<OwnedFd>,
}

/// Takes over the sockets of these addresses, or binds one for each thread. For port 0 a port is picked once per address.
///
/// # Errors
/// An address is taken by another process.
pub(crate) fn bind_all(
    listen: &[SocketAddr],
    threads: usize,
    inherited: &mut Inherited,
) -> io::Result<Bound> {
    let sockets = (0..threads).map(|_| Vec::new()).collect();
    let mut bound = Bound { addresses: Vec::new(), sockets, kept: Vec::new() };
    for &wanted in listen {
        let taken = inherited.take(wanted);
        let address = match taken.first() {
            Some(socket) => socket.local_addr(),
            None => bound.bind(wanted),
        };
        let address = address.map_err(|error| named(wanted, &error))?;
        if !taken.is_empty() {
            for (thread, socket) in spread(&taken, threads)? {
                bound.sockets[thread].push(socket);
            }
            bound.kept.extend(taken.into_iter().map(OwnedFd::from));
        }
        bound.addresses.push(address);
    }
    Ok(bound)
}

impl Bound {
    fn bind(&mut self, wanted: SocketAddr) -> io::Result<SocketAddr> {
        acceptor::ensure_free(wanted)?;
        let mut address = wanted;
        for own in &mut self.sockets {
            let socket = acceptor::bind(address)?;
            address = socket.local_addr()?;
            self.kept.push(socket.as_fd().try_clone_to_owned()?);
            own.push(socket);
        }
        Ok(address)
    }
}

/// The error of an address that cannot be listened on.
pub(crate) fn named(address: SocketAddr, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
}
