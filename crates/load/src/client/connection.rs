//! One client connection, and one exchange on it.
//!
//! A client is its source address, 127.x.y.z, bound before the connect. `IP_BIND_ADDRESS_NO_PORT` leaves the choice of the port
//! to the connect, which may then use a port again for another destination; without it each bind takes a whole port, and some
//! thousands of clients exhaust them.

use super::record::{Answer, ErrorKind};
use crate::machine::plain_congestion_control;
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use nix::sys::socket::{setsockopt, sockopt};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpSocket;
use tokio::sync::Semaphore;

/// The server under load, and what a client asks of it.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where to connect.
    pub address: SocketAddr,
    /// The `Host` header.
    pub host: String,
    /// The response header that begins with the level, as `2` or `level=2`; `None`: levels are not read.
    pub level_header: Option<String>,
    /// A request that has no complete answer after this time is an error. The time begins at its dispatch and includes
    /// connecting.
    pub timeout: Duration,
}

impl Target {
    /// `address`, with itself as host, no level header, and 10 s to answer.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, host: address.to_string(), level_header: None, timeout: Duration::from_secs(10) }
    }
}

/// The parts that all requests of a load share, parsed once.
pub(crate) struct Requests {
    pub(crate) target: Target,
    uri: Uri,
    host: HeaderValue,
    level_header: Option<HeaderName>,
    first_address: Ipv4Addr,
    /// One permit for each socket that may still be opened.
    sockets: Arc<Semaphore>,
}

impl Requests {
    /// # Errors
    /// If the host, the level header or the path is not valid in HTTP; the error says which.
    pub(crate) fn new(
        target: Target,
        path: &str,
        first_address: Ipv4Addr,
        max_sockets: usize,
    ) -> io::Result<Self> {
        let invalid = |what: &str, value: &str| {
            let text = format!("{what} {value:?} is not valid in HTTP");
            io::Error::new(io::ErrorKind::InvalidInput, text)
        };
        let host = HeaderValue::from_str(&target.host).map_err(|_| invalid("the host", &target.host))?;
        let header = |name: &String| name.parse().map_err(|_| invalid("the level header", name));
        let level_header = target.level_header.as_ref().map(header).transpose()?;
        let uri = path.parse().map_err(|_| invalid("the path", path))?;
        let sockets = Arc::new(Semaphore::new(max_sockets));
        Ok(Self { target, uri, host, level_header, first_address, sockets })
    }

    fn request(&self) -> Request<Empty<Bytes>> {
        let mut request = Request::new(Empty::new());
        *request.uri_mut() = self.uri.clone();
        request.headers_mut().insert(HOST, self.host.clone());
        request
    }

    /// Opens a connection from the address of `client`; its driver runs as a task of the current runtime.
    pub(crate) async fn connect(&self, client: u32) -> Result<Connection, ErrorKind> {
        let permit = Arc::clone(&self.sockets).try_acquire_owned().map_err(|_| ErrorKind::LocalLimit)?;
        let socket = self.socket(client).map_err(|_| ErrorKind::LocalLimit)?;
        let stream = socket.connect(self.target.address).await.map_err(|error| match error.kind() {
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::AddrInUse => ErrorKind::LocalLimit,
            _ => ErrorKind::Connect,
        })?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (sender, driver) = handshake.map_err(|error| error_kind(&error))?;
        tokio::spawn(async move {
            // The exchange on the connection reports how the connection ended, so the driver's result is ignored.
            let _ = driver.await;
            drop(permit);
        });
        Ok(Connection { sender })
    }

    fn socket(&self, client: u32) -> io::Result<TcpSocket> {
        let IpAddr::V4(server) = self.target.address.ip() else { return TcpSocket::new_v6() };
        let socket = TcpSocket::new_v4()?;
        socket.set_nodelay(true)?;
        plain_congestion_control(&socket);
        if server.is_loopback() {
            setsockopt(&socket, sockopt::IpBindAddressNoPort, &true)?;
            socket.bind(SocketAddr::from((client_address(self.first_address, client), 0)))?;
        }
        Ok(socket)
    }
}

/// The address of client number `client`, counted from `first`, without final bytes 0 and 255.
fn client_address(first: Ipv4Addr, client: u32) -> Ipv4Addr {
    let first = u32::from(first);
    let hosts = (first >> 8) * 254 + (first & 0xff).clamp(1, 254) - 1;
    let host = hosts.wrapping_add(client);
    Ipv4Addr::from(((host / 254) << 8) + host % 254 + 1)
}

/// A connection without a request in progress.
pub(crate) struct Connection {
    sender: SendRequest<Empty<Bytes>>,
}

/// Why an exchange failed.
pub(crate) enum Failure {
    /// The request was not written at all, so it may be sent on another connection without being sent twice.
    Unsent,
    /// The server may have seen the request.
    Error(ErrorKind),
}

impl Connection {
    /// Whether the other side has closed the connection, as far as is known.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends one request and reads the whole answer.
    pub(crate) async fn exchange(&mut self, requests: &Requests) -> Result<Answer, Failure> {
        self.sender.ready().await.map_err(|_| Failure::Unsent)?;
        let sent = self.sender.try_send_request(requests.request()).await;
        let response = sent.map_err(|mut error| match error.take_message() {
            Some(_) => Failure::Unsent,
            None => Failure::Error(error_kind(error.error())),
        })?;
        let (head, mut body) = response.into_parts();
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Failure::Error(body_error(&error)))?;
            bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
        }
        let header = requests.level_header.as_ref();
        let level = header.and_then(|name| leading_number(&head.headers, name));
        Ok(Answer { status: head.status.as_u16(), level, bytes })
    }
}

fn leading_number(headers: &HeaderMap, name: &HeaderName) -> Option<u8> {
    let text = headers.get(name)?.to_str().ok()?.trim_start();
    let text = text.strip_prefix("level=").unwrap_or(text);
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    text[..digits].parse().ok()
}

fn error_kind(error: &hyper::Error) -> ErrorKind {
    if error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        return ErrorKind::Closed;
    }
    if error.is_parse() {
        return ErrorKind::Malformed;
    }
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    match source.map(io::Error::kind) {
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => ErrorKind::Reset,
        _ => ErrorKind::Closed,
    }
}

fn body_error(error: &hyper::Error) -> ErrorKind {
    match error_kind(error) {
        ErrorKind::Closed => ErrorKind::Truncated,
        kind => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_addresses_are_distinct_and_stay_in_order() {
        let first = Ipv4Addr::new(127, 1, 0, 1);
        assert_eq!(client_address(first, 0), first);
        assert_eq!(client_address(first, 253), Ipv4Addr::new(127, 1, 0, 254));
        assert_eq!(client_address(first, 254), Ipv4Addr::new(127, 1, 1, 1));
        assert_eq!(client_address(first, 254 * 256), Ipv4Addr::new(127, 2, 0, 1));
        assert_eq!(client_address(Ipv4Addr::new(127, 1, 0, 0), 1), Ipv4Addr::new(127, 1, 0, 2));
    }

    #[test]
    fn the_level_is_the_leading_number() {
        let name = HeaderName::from_static("level");
        for (text, wanted) in [
            ("level=2; reason=full", Some(2)),
            ("1; reason=x", Some(1)),
            (" 0", Some(0)),
            ("high", None),
            ("999", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(&name, HeaderValue::from_str(text).unwrap());
            assert_eq!(leading_number(&headers, &name), wanted, "{text}");
        }
        assert_eq!(leading_number(&HeaderMap::new(), &name), None);
    }

    #[test]
    fn a_host_that_is_no_header_is_refused_by_name() {
        let mut target = Target::new(SocketAddr::from(([127, 0, 0, 1], 1)));
        target.host = "a\nb".into();
        let error = Requests::new(target, "/", Ipv4Addr::LOCALHOST, 1).err().unwrap();
        assert!(error.to_string().contains("the host \"a\\nb\""), "{error}");
    }
}
