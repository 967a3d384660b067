//! An upstream that a test plays itself, byte for byte: it sees what the gateway sends, and answers when the test says so.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// A listening upstream without a server behind it.
#[derive(Debug)]
pub struct PlayedUpstream {
    listener: TcpListener,
}

impl PlayedUpstream {
    /// Listens on a port of its own. Panics if it cannot.
    #[expect(clippy::new_without_default, reason = "a listening socket is no default value")]
    pub fn new() -> PlayedUpstream {
        let listener = TcpListener::bind("127.0.0.1:0");
        PlayedUpstream {
            listener: listener.unwrap_or_else(|error| panic!("cannot listen on 127.0.0.1: {error}")),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.local_addr().unwrap_or_else(|error| panic!("a listener without an address: {error}"))
    }

    /// Waits for the next connection and the head of its first request.
    pub fn request(&self) -> (TcpStream, String) {
        let accepted = self.listener.accept();
        let (stream, _) = accepted.unwrap_or_else(|error| panic!("cannot accept: {error}"));
        let limit = stream.set_read_timeout(Some(Duration::from_secs(30)));
        limit.unwrap_or_else(|error| panic!("no time limit: {error}"));
        let head = head(&stream);
        (stream, head)
    }

    /// Whether a connection is waiting to be accepted.
    pub fn was_asked(&self) -> bool {
        drop(self.listener.set_nonblocking(true));
        let asked = self.listener.accept().is_ok();
        drop(self.listener.set_nonblocking(false));
        asked
    }
}

/// Starts a server with a port of its own, whose workers serve one connection after the other; any of these may fail. Panics if
/// there is no port for it.
pub fn serving<T>(workers: usize, serve: impl Fn(TcpStream) -> T + Send + Sync + 'static) -> SocketAddr {
    let listener = PlayedUpstream::new().listener;
    let address =
        listener.local_addr().unwrap_or_else(|error| panic!("a listener without an address: {error}"));
    let shared = Arc::new((listener, serve));
    for _ in 0..workers {
        let shared = Arc::clone(&shared);
        thread::spawn(move || {
            let (listener, serve) = &*shared;
            while let Ok((stream, _)) = listener.accept() {
                drop(serve(stream));
            }
        });
    }
    address
}

/// The same with a thread for each connection.
pub fn serving_each<T>(serve: impl Fn(TcpStream) -> T + Send + Sync + 'static) -> SocketAddr {
    let serve = Arc::new(serve);
    serving(1, move |stream| {
        let serve = Arc::clone(&serve);
        thread::spawn(move || drop(serve(stream)))
    })
}

/// Starts a server that answers each request with 200 and the text that its head gives. Panics if there is no port for it.
pub fn answering<T: AsRef<str>>(text: impl Fn(&str) -> T + Send + Sync + 'static) -> SocketAddr {
    serving_each(move |stream| answer(&stream, text(&head(&stream)).as_ref()))
}

fn head(mut stream: &TcpStream) -> String {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// Answers a request with 200 and this text. The gateway may have left.
pub fn answer(mut stream: &TcpStream, text: &str) {
    let length = text.len();
    drop(write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{text}"));
}
