//! One page over HTTP or HTTPS, on a connection of its own.
//!
//! Each request opens a new connection, because a new connection waits in the server's listen queue like all others, while a
//! kept connection would bypass the queue. The server's name is looked up once, at the start, so that a slow or failing name
//! service does not look like a slow server. Certificates are judged by the roots that this machine trusts.

use plimsoll_config::HttpUrl;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use ureq::config::{Config, ConfigBuilder};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::typestate::AgentScope;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

const MOST_BYTES: u64 = 4 << 20;

/// A page's address, already looked up, and how to request the page.
#[derive(Clone, Debug)]
pub(crate) struct PageClient {
    url: HttpUrl,
    client: ureq::Agent,
    /// The `Authorization` header of each request.
    authorization: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl PageClient {
    /// Looks up the page's server. A request fails after `patience`.
    pub(crate) fn new(url: &HttpUrl, patience: Duration) -> io::Result<PageClient> {
        let none = || io::Error::other("it has no address");
        let server = url.address.to_socket_addrs()?.next().ok_or_else(none)?;
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        let config = client(patience, "plimsoll-agent").tls_config(tls.build()).max_idle_connections(0);
        let client = ureq::Agent::with_parts(config.build(), DefaultConnector::new(), KnownAddress(server));
        Ok(PageClient { url: url.clone(), client, authorization: None })
    }

    /// Sends this token with each request.
    pub(crate) fn with_token(self, token: Option<&str>) -> PageClient {
        PageClient { authorization: token.map(|token| format!("Bearer {token}")), ..self }
    }

    pub(crate) fn get(&self) -> io::Result<Page> {
        self.answer().map_err(|error| match error {
            ureq::Error::Timeout(_) => io::Error::new(io::ErrorKind::TimedOut, "no answer in time"),
            ureq::Error::BodyExceedsLimit(_) => {
                io::Error::other("the page is larger than 4 MiB: name a smaller one")
            }
            ureq::Error::Protocol(_) => io::Error::other("what it answers is not HTTP"),
            error => error.into_io(),
        })
    }

    fn answer(&self) -> Result<Page, ureq::Error> {
        let mut request = self.client.get(self.url.to_string()).header("connection", "close");
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        let mut answer = request.call()?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MOST_BYTES).lossy_utf8(true).read_to_string()?;
        Ok(Page { status, body })
    }
}

/// What all clients of this program share: no proxy, no redirects, and an answer whatever its status.
pub(crate) fn client(patience: Duration, name: &str) -> ConfigBuilder<AgentScope> {
    ureq::Agent::config_builder()
        .proxy(None)
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(patience))
        .user_agent(name)
}

#[derive(Debug)]
struct KnownAddress(SocketAddr);

impl Resolver for KnownAddress {
    fn resolve(
        &self,
        _: &ureq::http::Uri,
        _: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let mut addresses = self.empty();
        addresses.push(self.0);
        Ok(addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_config::Scheme;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread;

    fn client(address: SocketAddr, scheme: Scheme, patience: u64) -> PageClient {
        let url =
            HttpUrl { scheme, address: address.to_string(), host: "a".to_owned(), target: "/x?y".to_owned() };
        PageClient::new(&url, Duration::from_millis(patience)).unwrap()
    }

    #[test]
    fn an_answer_and_a_server_that_says_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1024];
            let read = stream.read(&mut head).unwrap();
            stream.write_all(b"HTTP/1.1 404 Not Found\r\na: b\r\n\r\nbody").unwrap();
            drop(stream);
            // The next connection is accepted but gets no answer.
            let silent = listener.accept().unwrap();
            (String::from_utf8_lossy(&head[..read]).into_owned(), silent)
        });
        let page = client(address, Scheme::Http, 10_000).get().unwrap();
        assert_eq!((page.status, page.body.as_str()), (404, "body"));
        let error = client(address, Scheme::Http, 50).get().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let (asked, _silent) = server.join().unwrap();
        let asked = asked.to_ascii_lowercase();
        assert!(asked.starts_with("get /x?y http/1.1\r\n"), "{asked}");
        for field in ["\r\nhost: a\r\n", "\r\nconnection: close\r\n", "\r\nuser-agent: plimsoll-agent\r\n"] {
            assert!(asked.contains(field), "no {field:?} in {asked}");
        }
    }

    #[test]
    fn every_request_has_a_connection_of_its_own_and_redirects_are_answers() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            // The connections stay open: a client that kept a connection would send its next request on it.
            let serve = |stream: std::io::Result<std::net::TcpStream>| {
                let mut stream = stream.unwrap();
                assert!(stream.read(&mut [0; 1024]).unwrap() > 0);
                let answer = b"HTTP/1.1 302 Found\r\nlocation: /y\r\ncontent-length: 2\r\n\r\nok";
                stream.write_all(answer).unwrap();
                stream
            };
            listener.incoming().take(2).map(serve).collect::<Vec<_>>().len()
        });
        let client = client(address, Scheme::Http, 10_000);
        for _ in 0..2 {
            let page = client.get().unwrap();
            assert_eq!((page.status, page.body.as_str()), (302, "ok"));
        }
        assert_eq!(server.join().unwrap(), 2);
    }

    #[test]
    fn https_begins_with_a_handshake() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut first = [0; 3];
            stream.read_exact(&mut first).unwrap();
            first
        });
        assert!(client(address, Scheme::Https, 10_000).get().is_err());
        // The client's first bytes are a handshake record of TLS.
        assert_eq!(server.join().unwrap(), [22, 3, 1]);
    }
}
