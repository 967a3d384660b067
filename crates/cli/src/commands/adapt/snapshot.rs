//! Fetches a dynamic page, of which lower trees store a copy: once, within bounds of time and size, over plain HTTP.

use crate::service::page;
use std::io::Read;
use std::time::Duration;

/// The time that fetching a page may take in all.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest page that is stored.
const MOST_BYTES: usize = 16 << 20;

/// The page at an address, or why it cannot be stored.
pub(super) fn fetch(address: &str) -> Result<Vec<u8>, String> {
    let name = concat!("plimsoll-adapt/", env!("CARGO_PKG_VERSION"));
    let agent = page::client(PATIENCE, name).accept("text/html").build().new_agent();
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

    /// Fetches from a server that sends this answer.
    fn from(path: &str, answer: &'static str) -> Result<Vec<u8>, String> {
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
    fn a_page_is_fetched() {
        let page =
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 5\r\n\r\n<p>hi";
        assert_eq!(from("/shop/list.php", page).as_deref(), Ok(&b"<p>hi"[..]));
    }

    #[test]
    fn what_is_no_page_is_reported() {
        for (answer, expected) in [
            ("HTTP/1.1 302 Found\r\nLocation: /x\r\n\r\n", "the answer is 302"),
            ("HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n\r\nno", "404"),
            ("HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nno", "image/png"),
            (
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9\r\n\r\ncut",
                "3 of its 9 bytes",
            ),
            ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\nxyz", "gzip"),
            ("SSH-2.0-OpenSSH\r\n", "no answer in HTTP"),
        ] {
            let error = from("/", answer).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
