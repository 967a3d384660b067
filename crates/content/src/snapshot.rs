//! Dynamic pages, stored as they are now: so a tree has what a program makes at full (CA 2).
//!
//! A page is fetched over plain HTTP, once, within bounds of time and size, and then adapted like any other. It is stored
//! under its own path, so that its address leads to it at every level: `/catalog.php` to the file `catalog.php`,
//! `/catalog/` to `catalog/index.html`. Not through a proxy, not over TLS: the program is the site's own, and near.
//! HTTP/1.0 is asked for, since its answers come whole and end with the connection.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// A page has so long, all in all.
const PATIENCE: Duration = Duration::from_secs(30);
/// No page is longer.
const MOST_BYTES: usize = 16 << 20;

/// A page and its path in the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

/// Host with port as it is connected to, host as it is named, and path, of an address.
struct Address<'a> {
    connect: String,
    host: &'a str,
    path: &'a str,
}

/// Fetches the page at an address.
///
/// # Errors
/// `InvalidInput`: the address cannot be one of a page of the site; else why it did not come.
pub(crate) fn fetch(address: &str) -> io::Result<Snapshot> {
    let Address { connect, host, path } = parse(address)?;
    let file = file(path).ok_or_else(|| {
        refused(address, "it leads to no file in a tree; write its path without `..` and doubled slashes")
    })?;
    let failed = |what: String| io::Error::other(format!("cannot store {address}: {what}"));
    let bytes = exchange(&connect, host, path).map_err(|error| failed(error.to_string()))?;
    let body = body(&bytes).map_err(failed)?;
    Ok(Snapshot { path: file, bytes: body.to_vec() })
}

fn refused(address: &str, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{address}: {what}"))
}

fn parse(address: &str) -> io::Result<Address<'_>> {
    let example = "write it as `http://127.0.0.1:8000/catalog.php`";
    let rest = address
        .strip_prefix("http://")
        .ok_or_else(|| refused(address, &format!("pages are fetched over plain HTTP: {example}")))?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = if path.is_empty() { "/" } else { path };
    if path.contains(['?', '#']) {
        let what = "a tree's file has no query: it answers every one; write the address without it";
        return Err(refused(address, what));
    }
    let odd = |c: char| c.is_ascii_control() || c.is_ascii_whitespace() || !c.is_ascii();
    if host.is_empty() || host.contains('@') || address.contains(odd) {
        return Err(refused(address, &format!("no address of a page; {example}")));
    }
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Ok(Address { connect: if has_port { host.to_owned() } else { format!("{host}:80") }, host, path })
}

/// The file of a tree to which a server takes this path.
fn file(path: &str) -> Option<String> {
    let crate::reference::Target::Local(file) = crate::reference::resolve("", path) else { return None };
    let plain = path[1..].split('/').rev().skip(1).all(|segment| !segment.is_empty() && segment != "..");
    let sound = plain && !file.split('/').any(|segment| segment.starts_with('.')) && !file.contains('\0');
    match sound {
        true if file.is_empty() || file.ends_with('/') => Some(format!("{file}index.html")),
        true => Some(file),
        false => None,
    }
}

fn exchange(connect: &str, host: &str, path: &str) -> io::Result<Vec<u8>> {
    let began = Instant::now();
    let left = || {
        let left = PATIENCE.saturating_sub(began.elapsed());
        if left.is_zero() {
            Err(io::Error::new(io::ErrorKind::TimedOut, "it takes too long"))
        } else {
            Ok(left)
        }
    };
    let mut found = Err(io::Error::new(io::ErrorKind::NotFound, "its host has no address"));
    for address in connect.to_socket_addrs()? {
        found = TcpStream::connect_timeout(&address, left()?);
        if found.is_ok() {
            break;
        }
    }
    let mut stream = found?;
    stream.set_write_timeout(Some(left()?))?;
    let agent = concat!("plimsoll-adapt/", env!("CARGO_PKG_VERSION"));
    // In one piece: a server may answer, and close, before it has read what comes late.
    let request = format!(
        "GET {path} HTTP/1.0\r\nHost: {host}\r\nUser-Agent: {agent}\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let (mut bytes, mut part) = (Vec::new(), [0; 16 * 1024]);
    loop {
        stream.set_read_timeout(Some(left()?))?;
        match stream.read(&mut part) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => left().map(drop)?,
            Err(error) => return Err(error),
        }
        if bytes.len() > MOST_BYTES {
            return Err(io::Error::other("it is longer than 16 MiB"));
        }
    }
}

/// The page in an answer; what is wrong with it, else.
fn body(answer: &[u8]) -> Result<&[u8], String> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or("no answer in HTTP")?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    let code = status.split(' ').nth(1).unwrap_or_default();
    if !status.starts_with("HTTP/1.") || code != "200" {
        return Err(format!("the answer is `{}`, not 200", status.chars().take(80).collect::<String>()));
    }
    let field = |name: &str| {
        head.split("\r\n").skip(1).find_map(|line| {
            let (own, value) = line.split_once(':')?;
            own.eq_ignore_ascii_case(name).then(|| value.trim().to_ascii_lowercase())
        })
    };
    let body = &answer[end + 4..];
    match field("content-type") {
        Some(kind) if kind.starts_with("text/html") || kind.starts_with("application/xhtml") => {}
        kind => return Err(format!("it is no page but `{}`", kind.unwrap_or_default())),
    }
    for coded in ["transfer-encoding", "content-encoding"] {
        if let Some(coding) = field(coded).filter(|coding| coding != "identity") {
            return Err(format!("the server sends it as `{coding}`, unasked"));
        }
    }
    match field("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if length != body.len() => Err(format!("{} of its {length} bytes came", body.len())),
        _ => Ok(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    /// Fetches from a server that answers so.
    fn from(path: &str, answer: &'static str) -> io::Result<Snapshot> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        let found = fetch(&format!("http://{address}{path}"));
        let request = server.join().unwrap();
        assert!(request.starts_with(&format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n")), "{request}");
        found
    }

    #[test]
    fn a_page_is_stored_under_its_path() {
        let page =
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 5\r\n\r\n<p>hi";
        for (path, file) in
            [("/shop/list.php", "shop/list.php"), ("/", "index.html"), ("/a%20b/", "a b/index.html")]
        {
            let found = from(path, page).unwrap();
            assert_eq!((found.path.as_str(), found.bytes.as_slice()), (file, &b"<p>hi"[..]));
        }
    }

    #[test]
    fn what_is_no_page_is_told() {
        for (answer, expected) in [
            ("HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\nno", "404"),
            ("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nno", "image/png"),
            (
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\ncut",
                "3 of its 9 bytes",
            ),
            ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\nxyz", "gzip"),
            ("SSH-2.0-OpenSSH\r\n", "no answer in HTTP"),
        ] {
            let error = from("/", answer).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        for address in [
            "https://127.0.0.1/",
            "127.0.0.1/",
            "http:///x",
            "http://127.0.0.1:1/a?b=1",
            "http://127.0.0.1:1/a/../b",
            "http://127.0.0.1:1/a//b",
            "http://127.0.0.1:1/.git/x",
            "http://127.0.0.1:1/%2e%2e/x",
            "http://127.0.0.1:1/a b",
        ] {
            assert_eq!(fetch(address).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{address}");
        }
        assert!(fetch("http://127.0.0.1:1/").unwrap_err().to_string().contains("cannot store"));
    }
}
