//! One request over a connection of its own, byte for byte.

use nix::sys::socket::{self, AddressFamily, SockFlag, SockType, SockaddrIn};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// An answer, as far as the tests look at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code; 0 if the connection was closed without one.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The bytes after the head, as they came: chunked bodies keep their chunks.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of this name, which is given in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(this, _)| this == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn parse(bytes: &[u8]) -> Response {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let (head, body) = end.map_or((bytes, &[][..]), |at| (&bytes[..at], &bytes[at + 4..]));
        let head = String::from_utf8_lossy(head);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        Response { status: status.unwrap_or(0), headers, body: body.to_vec() }
    }
}

/// Sends `request` as it is and reads until the server closes. Panics if nothing happens for half a minute.
pub fn exchange(server: SocketAddr, request: impl AsRef<[u8]>) -> Response {
    let mut stream =
        TcpStream::connect(server).unwrap_or_else(|error| panic!("cannot connect to {server}: {error}"));
    let patience = Some(Duration::from_secs(30));
    stream.set_read_timeout(patience).unwrap_or_else(|error| panic!("no time limit on {server}: {error}"));
    let mut bytes = Vec::new();
    // A server may refuse before it has read everything; its answer counts all the same.
    drop(stream.write_all(request.as_ref()));
    if let Err(error) = stream.read_to_end(&mut bytes) {
        assert!(
            error.kind() == std::io::ErrorKind::ConnectionReset,
            "{server} does not finish its answer: {error}"
        );
    }
    Response::parse(&bytes)
}

/// A GET for `path`, in a connection that ends with it.
pub fn get(server: SocketAddr, path: &str) -> Response {
    exchange(server, format!("GET {path} HTTP/1.1\r\nHost: e2e.test\r\nConnection: close\r\n\r\n"))
}

/// The same from a client at an address of its own in 127.0.0.0/8, without compression.
///
/// # Errors
/// The connection fails, or nothing happens for ten seconds.
pub fn get_from(address: Ipv4Addr, server: SocketAddr, path: &str) -> io::Result<Response> {
    let mut stream = connect_from(address, server)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: e2e.test\r\nConnection: close\r\n\r\n")?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(Response::parse(&bytes))
}

/// A connection from this address.
///
/// # Errors
/// Why there is none.
pub fn connect_from(address: Ipv4Addr, server: SocketAddr) -> io::Result<TcpStream> {
    let SocketAddr::V4(server) = server else { return Err(io::Error::other("not an IPv4 address")) };
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket::socket(AddressFamily::Inet, SockType::Stream, flags, None)?;
    socket::bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(address, 0)))?;
    let stream = TcpStream::from(socket);
    let patience = Some(Duration::from_secs(10));
    stream.set_read_timeout(patience)?;
    // Connecting, too, is given up after so long.
    stream.set_write_timeout(patience)?;
    socket::connect(stream.as_raw_fd(), &SockaddrIn::from(server))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_an_answer() {
        let answer = Response::parse(b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\n\r\nlater\n");
        assert_eq!(
            (answer.status, answer.header("retry-after"), answer.text().as_str()),
            (503, Some("1"), "later\n")
        );
        assert_eq!(Response::parse(b"").status, 0);
    }
}
