//! Dynamic pages, stored as they are now: so a tree has what a program makes at full (CA 2).
//!
//! A page is fetched over plain HTTP, once, within bounds of time and size, and then adapted like any other. It is stored
//! under its own path, so that its address leads to it at every level: `/catalog.php` to the file `catalog.php`,
//! `/catalog/` to `catalog/index.html`. No proxy and no TLS take part: the program is the site's own, and near.

use std::io::{self, Read};
use std::time::Duration;

/// The time that fetching a page may take in all.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest page that is stored.
const MOST_BYTES: usize = 16 << 20;

/// A page and its path in the site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

/// Fetches the page at an address.
///
/// # Errors
/// `InvalidInput`: the address cannot be one of a page of the site; else why it did not come.
pub(crate) fn fetch(address: &str) -> io::Result<Snapshot> {
    let path = file(path_of(address)?).ok_or_else(|| {
        refused(address, "it leads to no file in a tree; write its path without `..` and doubled slashes")
    })?;
    let bytes = page(address).map_err(|what| io::Error::other(format!("cannot store {address}: {what}")))?;
    Ok(Snapshot { path, bytes })
}

fn refused(address: &str, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("{address}: {what}"))
}

/// The path of an address that can be one of a page of the site.
fn path_of(address: &str) -> io::Result<&str> {
    let example = "write it as `http://127.0.0.1:8000/catalog.php`";
    let rest = address
        .strip_prefix("http://")
        .ok_or_else(|| refused(address, &format!("pages are fetched over plain HTTP: {example}")))?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if path.contains(['?', '#']) {
        let what = "a tree's file has no query: it answers every one; write the address without it";
        return Err(refused(address, what));
    }
    let odd = |c: char| c.is_ascii_control() || c.is_ascii_whitespace() || !c.is_ascii();
    if host.is_empty() || host.contains('@') || address.contains(odd) {
        return Err(refused(address, &format!("no address of a page; {example}")));
    }
    Ok(if path.is_empty() { "/" } else { path })
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

/// The page at a sound address; what is wrong with the answer, else.
fn page(address: &str) -> Result<Vec<u8>, String> {
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(PATIENCE))
        .http_status_as_error(false)
        .max_redirects(0)
        .proxy(None)
        .user_agent(concat!("plimsoll-adapt/", env!("CARGO_PKG_VERSION")))
        .accept("text/html")
        .build()
        .new_agent();
    let mut response = agent.get(address).call().map_err(|error| match error {
        ureq::Error::Protocol(_) | ureq::Error::Http(_) => "no answer in HTTP".to_owned(),
        error => error.to_string(),
    })?;
    if response.status() != 200 {
        return Err(format!("the answer is {}, not 200", response.status()));
    }
    let field = |name: &str| {
        let value = response.headers().get(name).and_then(|value| value.to_str().ok());
        value.map(str::to_ascii_lowercase)
    };
    match field("content-type") {
        Some(kind) if kind.starts_with("text/html") || kind.starts_with("application/xhtml") => {}
        kind => return Err(format!("it is no page but `{}`", kind.unwrap_or_default())),
    }
    if let Some(coding) = field("content-encoding").filter(|coding| coding != "identity") {
        return Err(format!("the server sends it as `{coding}`, unasked"));
    }
    let length = field("content-length").and_then(|length| length.parse::<usize>().ok());
    let mut bytes = Vec::new();
    let read = response.body_mut().as_reader().take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes);
    match (length, read) {
        _ if bytes.len() > MOST_BYTES => Err("it is longer than 16 MiB".to_owned()),
        (Some(length), _) if bytes.len() < length => {
            Err(format!("{} of its {length} bytes came", bytes.len()))
        }
        (_, Err(error)) => Err(error.to_string()),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
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
        assert!(
            request.starts_with(&format!("GET {path} HTTP/1.1\r\n"))
                && request.to_lowercase().contains(&format!("host: {address}\r\n")),
            "{request}"
        );
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
