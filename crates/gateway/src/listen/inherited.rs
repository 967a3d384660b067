//! Sockets that already listen when the gateway starts: handed over by the gateway that this one replaces, or opened by
//! systemd.
//!
//! Connections that wait in such a socket's queue belong to the socket, not to a process, so that none is lost when another
//! process accepts from it. A listener of the settings takes the sockets of its address; a listener at port 0 takes those of
//! the first remaining address with the same IP address, so that the port that the system once chose stays. Each thread accepts
//! from a socket of its own; if there are fewer sockets than threads, threads share sockets.

use crate::settings::Address;
use socket2::SockRef;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::OwnedFd;
use std::path::absolute;

/// A socket that listens.
#[derive(Debug)]
pub struct ListeningSocket {
    /// The listening socket itself.
    pub socket: OwnedFd,
    /// Whether a supervisor has opened the socket and keeps it: the path of a Unix socket is then not removed when the gateway
    /// ends.
    pub is_supervised: bool,
}

impl ListeningSocket {
    /// A second descriptor of the same socket.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn try_clone(&self) -> Result<Self> {
        Ok(ListeningSocket { socket: self.socket.try_clone()?, ..*self })
    }
}

/// Listening sockets, by address.
#[derive(Debug, Default)]
pub struct Inherited(Vec<(Address, ListeningSocket)>);

impl Inherited {
    /// Takes over sockets that listen for TCP connections, or on the path of a Unix socket.
    ///
    /// # Errors
    /// One of the sockets does not listen, or is of another kind.
    pub fn new(sockets: Vec<ListeningSocket>) -> Result<Self> {
        let of = |socket: ListeningSocket| {
            let own = SockRef::from(&socket.socket);
            let address = address(&own)?;
            if !own.is_listener()? {
                let what = format!("the socket of {address} that was handed over does not listen");
                return Err(Error::new(ErrorKind::InvalidInput, what));
            }
            own.set_nonblocking(true)?;
            Ok((address, socket))
        };
        sockets.into_iter().map(of).collect::<Result<_>>().map(Inherited)
    }

    /// The addresses that no listener of the settings has taken, and whether a supervisor has opened them.
    pub fn left(&self) -> impl Iterator<Item = (&Address, bool)> {
        self.0.iter().map(|(address, socket)| (address, socket.is_supervised))
    }

    /// Takes the sockets of an address, and returns them with the address that they have; `None` if there are none.
    pub(crate) fn take(&mut self, wanted: &Address) -> Option<(Address, Vec<ListeningSocket>)> {
        let matches = |address: &Address| match (wanted, address) {
            (Address::Tcp(wanted), Address::Tcp(address)) if wanted.port() == 0 => {
                address.ip() == wanted.ip()
            }
            (Address::Unix(wanted), Address::Unix(path)) => absolute(wanted).ok() == absolute(path).ok(),
            _ => address == wanted,
        };
        let address = self.left().map(|(address, _)| address).find(|address| matches(address))?.clone();
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(|(other, _)| *other == address);
        self.0 = left;
        let taken: Vec<(Address, ListeningSocket)> = taken;
        Some((address, taken.into_iter().map(|(_, socket)| socket).collect()))
    }
}

fn address(socket: &SockRef<'_>) -> Result<Address> {
    let address = socket.local_addr()?;
    let of_network = address.as_socket().map(Address::Tcp);
    let found = of_network.or_else(|| address.as_pathname().map(|path| Address::Unix(path.to_owned())));
    found.ok_or_else(|| Error::new(ErrorKind::InvalidInput, "a socket that was handed over has no address"))
}

/// The sockets of each of `threads` threads: at least one for each thread, and each socket for at least one.
pub(super) fn spread(taken: &[ListeningSocket], threads: usize) -> Result<Vec<(usize, OwnedFd)>> {
    let shares = (0..threads.max(taken.len()))
        .map(|number| Ok((number % threads, taken[number % taken.len()].socket.try_clone()?)));
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::{SocketAddr, TcpListener, TcpStream};

    fn own(socket: impl Into<OwnedFd>) -> ListeningSocket {
        ListeningSocket { socket: socket.into(), is_supervised: false }
    }

    fn listener(address: &str) -> TcpListener {
        TcpListener::bind(address).expect("a port is free")
    }

    #[test]
    fn an_address_takes_its_sockets_and_port_0_those_of_its_ip_address() {
        let [one, two] = ["127.0.0.1:0", "127.0.0.2:0"].map(listener);
        let [first, second] = [&one, &two].map(|socket| socket.local_addr().unwrap());
        let again = one.try_clone().unwrap();
        let mut all = Inherited::new([one, two, again].map(own).into()).unwrap();
        let mut take =
            |address: SocketAddr| all.take(&address.into()).map_or(0, |(_, sockets)| sockets.len());
        assert_eq!(take("127.0.0.3:0".parse().unwrap()), 0);
        assert_eq!(take(SocketAddr::new(first.ip(), first.port() ^ 1)), 0);
        assert_eq!(take("127.0.0.2:0".parse().unwrap()), 1);
        assert_eq!((take(first), take(first), take(second)), (2, 0, 0));
    }

    #[test]
    fn a_path_takes_its_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let mut all = Inherited::new(vec![own(socket)]).unwrap();
        assert!(all.take(&Address::Unix(folder.path().join("other"))).is_none());
        assert!(all.take(&Address::Unix(path)).is_some_and(|(_, sockets)| sockets.len() == 1));
    }

    #[test]
    fn every_thread_has_a_socket_and_every_socket_a_thread() {
        let three: Vec<ListeningSocket> = (0..3).map(|_| own(listener("127.0.0.1:0"))).collect();
        for threads in [1, 2, 3, 5] {
            let spread = spread(&three, threads).unwrap();
            let owners: BTreeSet<usize> = spread.iter().map(|(thread, _)| *thread).collect();
            let places: BTreeSet<SocketAddr> = spread
                .iter()
                .map(|(_, socket)| SockRef::from(socket).local_addr().unwrap().as_socket().unwrap())
                .collect();
            assert_eq!((owners.len(), places.len()), (threads, 3));
        }
    }

    #[test]
    fn what_does_not_listen_is_refused() {
        let listening = listener("127.0.0.1:0");
        let connected = TcpStream::connect(listening.local_addr().unwrap()).unwrap();
        let error = Inherited::new(vec![own(connected)]).unwrap_err();
        assert!(error.to_string().contains("does not listen"), "{error}");
    }
}
