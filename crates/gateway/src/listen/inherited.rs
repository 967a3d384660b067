//! Sockets that listen before the gateway starts: handed over by the gateway whose place this one takes, or opened by systemd.
//!
//! Connections that wait in such a socket's queue belong to the socket, not to a process, so that none is lost when another
//! process accepts from it. An address of the settings takes the sockets that have this address; port 0 takes those of the
//! first other address with the same IP address, so that a port that the system chose stays. Each thread accepts from a socket
//! of its own; where there are fewer sockets than threads, threads share one.

use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use tokio::net::TcpSocket;

/// Sockets that listen, by their addresses.
#[derive(Debug, Default)]
pub struct Inherited(Vec<(SocketAddr, TcpListener)>);

impl Inherited {
    /// Takes over sockets that listen for TCP connections.
    ///
    /// # Errors
    /// One of them is none.
    pub fn new(sockets: Vec<OwnedFd>) -> Result<Self> {
        let of = |socket: OwnedFd| {
            let listener = TcpListener::from(socket);
            let address = listener.local_addr()?;
            if !socket2::SockRef::from(&listener).is_listener()? {
                let what = format!("the socket of {address} that was handed over does not listen");
                return Err(Error::new(ErrorKind::InvalidInput, what));
            }
            listener.set_nonblocking(true)?;
            Ok((address, listener))
        };
        sockets.into_iter().map(of).collect::<Result<_>>().map(Inherited)
    }

    /// The addresses that no listener of the settings has taken.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.0.iter().map(|(address, _)| *address)
    }

    /// Takes the sockets of an address; none if there are none.
    pub(crate) fn take(&mut self, wanted: SocketAddr) -> Vec<TcpListener> {
        let matches = |address: SocketAddr| match wanted.port() {
            0 => address.ip() == wanted.ip(),
            _ => address == wanted,
        };
        let Some(address) = self.addresses().find(|address| matches(*address)) else { return Vec::new() };
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(|(other, _)| *other == address);
        self.0 = left;
        let taken: Vec<(SocketAddr, TcpListener)> = taken;
        taken.into_iter().map(|(_, listener)| listener).collect()
    }
}

/// The sockets for each of so many threads: at least one for each thread, and each socket for at least one.
pub(super) fn spread(taken: &[TcpListener], threads: usize) -> Result<Vec<(usize, TcpSocket)>> {
    let shares = (0..threads.max(taken.len())).map(|number| {
        let listener = taken[number % taken.len()].try_clone()?;
        // The type of a socket that does not listen yet: to listen again changes nothing.
        Ok((number % threads, TcpSocket::from_std_stream(TcpStream::from(OwnedFd::from(listener)))))
    });
    shares.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn listener(address: &str) -> TcpListener {
        TcpListener::bind(address).expect("a port is free")
    }

    #[test]
    fn an_address_takes_its_sockets_and_port_0_those_of_its_ip_address() {
        let [one, two] = ["127.0.0.1:0", "127.0.0.2:0"].map(listener);
        let [first, second] = [&one, &two].map(|socket| socket.local_addr().unwrap());
        let again = one.try_clone().unwrap();
        let mut all = Inherited::new([one, two, again].map(OwnedFd::from).into()).unwrap();
        assert!(all.take("127.0.0.3:0".parse().unwrap()).is_empty());
        assert!(all.take(SocketAddr::new(first.ip(), first.port() ^ 1)).is_empty());
        assert_eq!(all.take("127.0.0.2:0".parse().unwrap()).len(), 1);
        assert_eq!(all.addresses().collect::<Vec<_>>(), [first, first]);
        assert_eq!(all.take(first).len(), 2);
        assert!(all.take(first).is_empty() && all.take(second).is_empty());
    }

    #[test]
    fn every_thread_has_a_socket_and_every_socket_a_thread() {
        let three: Vec<TcpListener> = (0..3).map(|_| listener("127.0.0.1:0")).collect();
        for threads in [1, 2, 3, 5] {
            let spread = spread(&three, threads).unwrap();
            let owners: BTreeSet<usize> = spread.iter().map(|(thread, _)| *thread).collect();
            let places: BTreeSet<SocketAddr> =
                spread.iter().map(|(_, socket)| socket.local_addr().unwrap()).collect();
            assert_eq!((owners.len(), places.len()), (threads, 3));
        }
    }

    #[test]
    fn what_does_not_listen_is_refused() {
        let listening = listener("127.0.0.1:0");
        let connected = TcpStream::connect(listening.local_addr().unwrap()).unwrap();
        let error = Inherited::new(vec![connected.into()]).unwrap_err();
        assert!(error.to_string().contains("does not listen"), "{error}");
    }
}
