//! Refuses upstreams that lead back to the gateway's own listeners: by an address of this machine if a listener has all of them
//! (`0.0.0.0`), or by a name. What the file alone shows is refused when the file is read; here the machine's addresses are
//! used.

use crate::output::failure::Failure;
use nix::ifaddrs::getifaddrs;
use plimsoll_config::{Backend, Configuration, comes_to};
use plimsoll_gateway::settings::{Address, Settings};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// The longest path that fits into Linux's `sun_path` with its final zero.
const LONGEST_PATH: usize = 107;

/// Refuses upstreams that lead back, and sockets that cannot be made. A name is looked up only if its port is a listener's; a
/// name that is not found is ignored here.
pub(crate) fn refuse(configuration: &Configuration) -> Result<(), Failure> {
    let mut wrong = wrong(configuration, &own_addresses());
    wrong.extend(long_paths(&configuration.gateway.settings));
    match wrong {
        wrong if wrong.is_empty() => Ok(()),
        wrong => Err(Failure::Input(wrong.join("\n"))),
    }
}

fn wrong(configuration: &Configuration, own: &[IpAddr]) -> Vec<String> {
    let settings = &configuration.gateway.settings;
    let listeners: Vec<SocketAddr> = listened_at(settings).chain(settings.admin).collect();
    let plants = configuration.promises.plants.iter().zip(&configuration.gateway.backends);
    let upstreams = plants.flat_map(|(plant, backend)| match backend {
        Backend::Upstream { addresses, .. } => {
            addresses.iter().map(|address| (&plant.name, address)).collect()
        }
        Backend::Files(_) => Vec::new(),
    });
    let leads_back = |address: &str| {
        let port = address.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok())?;
        let alike: Vec<SocketAddr> =
            listeners.iter().copied().filter(|listener| listener.port() == port).collect();
        if alike.is_empty() {
            return None;
        }
        let found: Vec<SocketAddr> = address.to_socket_addrs().ok()?.collect();
        let comes = |listener: &SocketAddr| found.iter().any(|to| comes_to(*to, *listener, own));
        alike.into_iter().find(comes)
    };
    upstreams
        .filter_map(|(upstream, address)| {
            let listener = leads_back(address)?;
            Some(format!(
                "error: [upstream.{upstream}]: `{address}` is this machine, where the gateway itself listens at {listener}: \
                 requests would come back to it\nWrite the server's own address and port."
            ))
        })
        .collect()
}

/// Unix sockets whose path is too long for the kernel.
fn long_paths(settings: &Settings) -> impl Iterator<Item = String> {
    let paths = settings.listen.iter().filter_map(|listener| match &listener.address {
        Address::Unix(path) => Some(path),
        Address::Tcp(_) => None,
    });
    paths.filter(|path| path.as_os_str().len() > LONGEST_PATH).map(|path| {
        format!(
            "error: the path of the socket unix:{} has {} bytes, of which {LONGEST_PATH} are the most\nWrite a shorter one under \
             `listen`, such as \"unix:/run/plimsoll.sock\".",
            path.display(),
            path.as_os_str().len()
        )
    })
}

/// The network addresses of the listeners for clients.
fn listened_at(settings: &Settings) -> impl Iterator<Item = SocketAddr> {
    settings.listen.iter().filter_map(|listener| match listener.address {
        Address::Tcp(address) => Some(address),
        Address::Unix(_) => None,
    })
}

/// The addresses of this machine's interfaces; none if they cannot be read.
fn own_addresses() -> Vec<IpAddr> {
    let addresses = getifaddrs().into_iter().flatten().filter_map(|interface| interface.address);
    addresses
        .filter_map(|address| {
            let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
            four.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::source::understand;

    #[test]
    fn a_socket_has_a_path_that_the_kernel_takes() {
        for (length, fits) in [(LONGEST_PATH, true), (LONGEST_PATH + 1, false)] {
            let path = format!("/{}", "s".repeat(length - 1));
            let source =
                format!("[gateway]\nlisten = \"unix:{path}\"\n[upstream.app]\naddress = \"127.0.0.1:81\"\n");
            let configuration = understand(&source, "test.toml").expect("the test's file is right");
            assert_eq!(refuse(&configuration).is_ok(), fits);
        }
    }

    fn refused(listen: &str, upstream: &str) -> bool {
        let source = format!(
            "[gateway]\nlisten = \"{listen}\"\nadmin = \"off\"\n[upstream.app]\naddress = \"{upstream}\"\n"
        );
        let configuration = understand(&source, "test.toml").expect("the test's file is right");
        let wrong = wrong(&configuration, &["192.0.2.1".parse().expect("an address")]);
        assert!(wrong.iter().all(|text| text.contains(upstream) && text.contains(listen)), "{wrong:?}");
        !wrong.is_empty()
    }

    #[test]
    fn an_address_of_this_machine_is_where_a_listener_of_all_addresses_is() {
        assert!(refused("0.0.0.0:8080", "192.0.2.1:8080"));
        assert!(refused("[::]:8080", "[::ffff:192.0.2.1]:8080"));
        assert!(!refused("0.0.0.0:8080", "192.0.2.1:8081"), "another port");
        assert!(!refused("0.0.0.0:8080", "192.0.2.2:8080"), "another machine");
        assert!(!refused("127.0.0.1:8080", "192.0.2.1:8080"), "not listened at");
        assert!(!refused("0.0.0.0:8080", "no.such.name.invalid:8080"), "an unknown name");
    }

    #[test]
    fn this_machine_has_addresses() {
        assert!(own_addresses().iter().any(IpAddr::is_loopback), "{:?}", own_addresses());
    }
}
