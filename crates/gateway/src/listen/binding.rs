//! The sockets of all listeners, one for each listener and thread, either taken over from another process or bound.

use super::bound::{BoundSocket, Unstarted, bind_tcp, bind_unix, ensure_free};
use super::inherited::{Inherited, ListeningSocket, spread};
use crate::settings::{Address, Listener};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

/// Sockets that do not accept connections yet.
pub(crate) struct Bound {
    /// The listeners' addresses, in the order of the settings.
    pub listeners: Vec<Listener>,
    /// The sockets that each thread accepts from.
    pub sockets: Vec<Vec<BoundSocket>>,
    /// The same sockets, to be handed to another process.
    pub kept: Vec<ListeningSocket>,
    /// The paths of Unix sockets that the gateway removes at its end.
    pub own_paths: Vec<PathBuf>,
}

/// Takes over the sockets of these listeners, or binds one for each thread. For port 0 a port is picked once per listener.
///
/// # Errors
/// An address is taken by another process.
pub(crate) fn bind_all(listen: &[Listener], threads: usize, inherited: &mut Inherited) -> io::Result<Bound> {
    let sockets = (0..threads).map(|_| Vec::new()).collect();
    let mut bound = Bound { listeners: Vec::new(), sockets, kept: Vec::new(), own_paths: Vec::new() };
    for wanted in listen {
        let address = match inherited.take(&wanted.address) {
            Some((address, taken)) => bound.take_over(taken, wanted).map(|()| address),
            None => bound.bind(wanted),
        };
        let address = address.map_err(|error| named(&wanted.address, &error))?;
        bound.listeners.push(Listener { address, tls: wanted.tls });
    }
    Ok(bound)
}

impl Bound {
    fn take_over(&mut self, taken: Vec<ListeningSocket>, wanted: &Listener) -> io::Result<()> {
        let is_unix = matches!(wanted.address, Address::Unix(_));
        if let Address::Unix(path) = &wanted.address
            && taken.iter().all(|socket| !socket.is_supervised)
        {
            self.own_paths.push(path.clone());
        }
        for (thread, socket) in spread(&taken, self.sockets.len())? {
            self.sockets[thread]
                .push(BoundSocket { socket: Unstarted::taken(socket, is_unix), tls: wanted.tls });
        }
        self.kept.extend(taken);
        Ok(())
    }

    fn bind(&mut self, wanted: &Listener) -> io::Result<Address> {
        let tls = wanted.tls;
        match &wanted.address {
            Address::Tcp(address) => {
                ensure_free(*address)?;
                let mut address = *address;
                for own in &mut self.sockets {
                    let socket = bind_tcp(address)?;
                    address = socket.local_addr()?;
                    self.kept.push(own_socket(socket.as_fd().try_clone_to_owned()?));
                    own.push(BoundSocket { socket: Unstarted::Tcp(socket), tls });
                }
                Ok(address.into())
            }
            Address::Unix(path) => {
                let listener = bind_unix(path)?;
                for own in &mut self.sockets {
                    own.push(BoundSocket { socket: Unstarted::Unix(listener.try_clone()?), tls });
                }
                self.kept.push(own_socket(listener.into()));
                self.own_paths.push(path.clone());
                Ok(wanted.address.clone())
            }
        }
    }
}

/// A socket that the gateway has bound itself.
fn own_socket(socket: OwnedFd) -> ListeningSocket {
    ListeningSocket { socket, is_supervised: false }
}

/// The error of an address that cannot be listened on.
pub(crate) fn named(address: &Address, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
}
