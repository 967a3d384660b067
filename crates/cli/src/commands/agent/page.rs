//! One page over plain HTTP, on a connection of its own.
//!
//! A connection of its own, because that is what waits in the server's listen queue: an idle one that is used again
//! passes by everybody who waits. HTTP/1.0, so that the body is what comes until the end.

use plimsoll_config::HttpUrl;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// More than this of a page nobody reads.
const MOST_BYTES: u64 = 4 << 20;

/// An answer.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Where a page's server is.
///
/// # Errors
/// The name is not known.
pub(crate) fn look_up(url: &HttpUrl) -> io::Result<SocketAddr> {
    let none = || io::Error::other("it has no address");
    url.address.to_socket_addrs()?.next().ok_or_else(none)
}

/// Asks for it. It gives up when `patience` is over.
///
/// # Errors
/// No connection, no complete answer in time, or one that is not HTTP.
pub(crate) fn get(server: SocketAddr, url: &HttpUrl, patience: Duration) -> io::Result<Page> {
    let started = Instant::now();
    let late = || io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
    let left = || patience.checked_sub(started.elapsed()).filter(|left| !left.is_zero()).ok_or_else(late);
    let mut stream = TcpStream::connect_timeout(&server, left()?)?;
    stream.set_write_timeout(Some(left()?))?;
    let HttpUrl { host, target, .. } = url;
    // In one piece: a server that answers the first part of a head and closes would reset the connection on the rest.
    let request = format!(
        "GET {target} HTTP/1.0\r\nHost: {host}\r\nUser-Agent: plimsoll-agent\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let (mut answer, mut piece) = (Vec::new(), [0; 16 << 10]);
    loop {
        stream.set_read_timeout(Some(left()?))?;
        let read = match stream.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A timeout of a socket is told as "would block".
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(late()),
            Err(error) => return Err(error),
        };
        if read == 0 {
            break;
        }
        answer.extend_from_slice(&piece[..read]);
        if answer.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("the page is larger than 4 MiB: name a smaller one"));
        }
    }
    parse(&answer).ok_or_else(|| io::Error::other("what it answers is not HTTP"))
}

fn parse(answer: &[u8]) -> Option<Page> {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").or_else(|| text.split_once("\n\n"))?;
    let mut words = head.split(' ');
    let status = words.next().filter(|version| version.starts_with("HTTP/")).and(words.next())?;
    Some(Page { status: status.parse().ok()?, body: body.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn url(address: SocketAddr) -> HttpUrl {
        HttpUrl { address: address.to_string(), host: "a".to_owned(), target: "/x?y".to_owned() }
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
            // The next one is let in, and hears nothing.
            let silent = listener.accept().unwrap();
            (String::from_utf8_lossy(&head[..read]).into_owned(), silent)
        });
        let page = get(address, &url(address), Duration::from_secs(10)).unwrap();
        assert_eq!((page.status, page.body.as_str()), (404, "body"));
        let error = get(address, &url(address), Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let (asked, _silent) = server.join().unwrap();
        assert!(asked.starts_with("GET /x?y HTTP/1.0\r\nHost: a\r\n"), "{asked}");
    }
}
