//! The servers of an upstream, as the tables in force have them.

use super::connect::Secured;
use super::pool::{ConnectionBounds, Pool};
use super::server::Server;
use crate::settings::{Address, UpstreamSettings};
use crate::transport::tls::client::server_name;
use plimsoll_core::time::Instant;
use rustls::ClientConfig;
use std::net::SocketAddr;
use std::sync::Arc;

/// The servers of an upstream, as the tables in force have them. The pool outlives them.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(super) servers: Vec<Arc<Server>>,
    /// The addresses of the network, which redirects may name.
    network: Vec<SocketAddr>,
    /// The TLS configuration, if the upstream speaks TLS.
    pub secured: Option<Arc<Secured>>,
    /// Whether the upstream speaks HTTP/2.
    pub http2: bool,
    /// The host that is named if the client named none.
    pub name: String,
    /// The host that is named whatever the client named.
    pub host: Option<String>,
    pub pool: Arc<Pool>,
}

impl Upstream {
    /// An upstream with the servers at these addresses, all of them new.
    ///
    /// # Errors
    /// The name for which no certificate can exist.
    pub(crate) fn new(
        settings: &UpstreamSettings,
        client: Option<&Arc<ClientConfig>>,
        (bounds, threads): (ConnectionBounds, usize),
    ) -> Result<Self, String> {
        let nothing = Upstream {
            servers: Vec::new(),
            network: Vec::new(),
            secured: client.map(|client| Arc::new(Secured::new(client.clone()))),
            http2: settings.http2,
            name: String::new(),
            host: None,
            pool: Arc::new(Pool::new(bounds, threads)),
        };
        let upstream = nothing.with(settings, None)?;
        upstream.take_over(Instant::ZERO, settings);
        Ok(upstream)
    }

    /// The same upstream with the servers of these addresses. Servers whose addresses stay are kept. `client`: the TLS
    /// configuration of connections from now on.
    ///
    /// # Errors
    /// A name that no certificate can be for.
    pub(crate) fn with(
        &self,
        settings: &UpstreamSettings,
        client: Option<&Arc<ClientConfig>>,
    ) -> Result<Self, String> {
        let names = settings.tls.iter().flat_map(|tls| &tls.names).map(Some);
        let named = settings.addresses.iter().zip(names.chain(std::iter::repeat(None)));
        let server = |(address, name): (&Address, Option<&String>)| {
            let name = name.map(|name| server_name(name)).transpose()?;
            let mut known = self.servers.iter().filter(|known| !known.is_gone());
            let known = known.find(|known| known.address == *address && known.name == name);
            Ok(known.cloned().unwrap_or_else(|| Arc::new(Server::new(address.clone(), name))))
        };
        let network = settings.addresses.iter().filter_map(|address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Unix(_) => None,
        });
        if let Some((secured, client)) = self.secured.as_ref().zip(client) {
            secured.renew(client.clone());
        }
        let servers = named.map(server).collect::<Result<Vec<_>, String>>()?;
        Ok(Upstream {
            name: servers.first().map(|server| server.host()).unwrap_or_default(),
            host: settings.host.clone(),
            servers,
            network: network.collect(),
            secured: self.secured.clone(),
            http2: self.http2,
            pool: self.pool.clone(),
        })
    }

    /// Puts these servers into force: new ones start, and those that are no longer here leave.
    pub(crate) fn take_over(&self, now: Instant, settings: &UpstreamSettings) {
        self.pool.roster().follow(now, &self.servers, settings.slow_start);
        self.pool.close_unwanted();
    }

    pub(crate) fn addresses(&self) -> &[SocketAddr] {
        &self.network
    }

    /// Whether all servers of the upstream are out of use.
    pub(crate) fn is_down(&self) -> bool {
        self.servers.iter().all(|server| server.is_out())
    }

    /// Whether the upstream has only one server.
    pub(crate) fn is_lone(&self) -> bool {
        self.servers.len() == 1
    }
}
