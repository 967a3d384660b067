//! A client of HTTP/2, by the crate `h2`, and one that sends what frames it likes.

use super::{PATIENCE, Peer};
use bytes::Bytes;
use h2::client::{Builder, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use std::future::Future;
use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread::JoinHandle;
use tokio::net::TcpStream;
use tokio::runtime::{Builder as Runtime, Runtime as Running};

/// A connection whose frames are moved by a thread of its own.
pub struct Connection {
    pub send: SendRequest<Bytes>,
    ended: JoinHandle<Result<(), h2::Error>>,
    runtime: Running,
}

/// A response, read to its end.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
    pub trailers: Option<HeaderMap>,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

fn runtime() -> Running {
    Runtime::new_current_thread().enable_all().build().expect("a runtime")
}

/// A request for `http://test` and this path.
pub fn request(method: &str, path: &str) -> http::request::Builder {
    Request::builder().method(method).uri(format!("http://test{path}"))
}

impl Connection {
    pub fn new(address: SocketAddr) -> Connection {
        Connection::with(address, &Builder::new())
    }

    pub fn with(address: SocketAddr, builder: &Builder) -> Connection {
        let (sender, receiver) = mpsc::channel();
        let builder = builder.clone();
        let ended = std::thread::spawn(move || {
            runtime().block_on(async {
                let io = TcpStream::connect(address).await.expect("the gateway accepts");
                let (send, connection) = builder.handshake(io).await.expect("a handshake");
                sender.send(send).expect("the test waits");
                connection.await
            })
        });
        let send = receiver.recv_timeout(PATIENCE).expect("a connection");
        Connection { send, ended, runtime: runtime() }
    }

    /// Waits for what comes of a future.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime
            .block_on(async { tokio::time::timeout(PATIENCE, future).await.expect("it comes in time") })
    }

    /// Sends a head. A body follows if `has_body`.
    pub fn begin(
        &mut self,
        request: http::request::Builder,
        has_body: bool,
    ) -> (ResponseFuture, SendStream<Bytes>) {
        let request = request.body(()).expect("a good request");
        let ready = self.wait(self.send.clone().ready()).expect("a stream");
        self.send = ready;
        self.send.send_request(request, !has_body).expect("sent")
    }

    pub fn answer(&self, response: ResponseFuture) -> Result<Answer, h2::Error> {
        self.wait(read(response))
    }

    pub fn ask(&mut self, request: http::request::Builder) -> Answer {
        let (response, _) = self.begin(request, false);
        self.answer(response).expect("an answer")
    }

    pub fn get(&mut self, path: &str) -> Answer {
        self.ask(request("GET", path))
    }

    /// Sends a request with a body, in pieces. A server that has all bytes of a known length may answer, and end the stream,
    /// before the last piece if that is empty.
    pub fn post(&mut self, request: http::request::Builder, pieces: &[&[u8]]) -> Answer {
        let (response, mut body) = self.begin(request, true);
        for (at, piece) in pieces.iter().enumerate() {
            let is_last = at + 1 == pieces.len();
            let sent = body.send_data(Bytes::copy_from_slice(piece), is_last);
            assert!(sent.is_ok() || (is_last && piece.is_empty()), "{sent:?}");
        }
        self.answer(response).expect("an answer")
    }

    /// Waits for the connection's end.
    pub fn ended(self) -> Result<(), h2::Error> {
        drop(self.send);
        self.ended.join().expect("no panic")
    }

    /// Whether the connection has ended.
    pub fn is_over(&self) -> bool {
        self.ended.is_finished()
    }
}

pub async fn read(response: ResponseFuture) -> Result<Answer, h2::Error> {
    let (parts, mut stream) = response.await?.into_parts();
    let body = read_body(&mut stream).await?;
    let trailers = stream.trailers().await?;
    Ok(Answer { status: parts.status.as_u16(), headers: parts.headers, body, trailers })
}

pub async fn read_body(stream: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut body = Vec::new();
    while let Some(bytes) = stream.data().await {
        let bytes = bytes?;
        stream.flow_control().release_capacity(bytes.len())?;
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

/// The reason of an error that the other end sent.
pub fn reason(error: &h2::Error) -> Option<Reason> {
    error.reason().filter(|_| error.is_remote())
}

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// `GET /` of `test`, without compression.
pub fn get_fields() -> Vec<u8> {
    // The static table has GET, the scheme http, the path /; and :authority with a value of four bytes.
    [&[0x82, 0x86, 0x84, 0x01, 4][..], b"test"].concat()
}

/// A connection after the preface and the first settings.
pub fn raw(address: SocketAddr) -> Peer {
    let mut peer = Peer::connect(address);
    peer.send([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(SETTINGS, 0, 0, &[])[..]].concat()).expect("sent");
    peer
}

/// The kind, the flags, the stream and the payload of the next frame.
pub fn frame_of(peer: &mut Peer) -> (u8, u8, u32, Vec<u8>) {
    let head = peer.exactly(9);
    let payload = peer.exactly(u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize);
    (head[3], head[4], u32::from_be_bytes([head[5], head[6], head[7], head[8]]), payload)
}

/// Reads to the connection's end, and returns the code of the last `GOAWAY`.
pub fn goaway(peer: &mut Peer) -> Option<u32> {
    let bytes = peer.rest();
    let (mut rest, mut code) = (&bytes[..], None);
    while rest.len() >= 9 {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        if rest[3] == GOAWAY && rest.len() >= 17 {
            code = Some(u32::from_be_bytes([rest[13], rest[14], rest[15], rest[16]]));
        }
        rest = rest.get(9 + length..).unwrap_or_default();
    }
    code
}
