//! A new connection to one server of an upstream: TCP or a Unix socket, and TLS over it where the upstream speaks that.

use super::server::Server;
use crate::settings::Address;
use crate::sync::lock;
use crate::transport::http2::Http2Socket;
use crate::transport::plain::PlainSocket;
use crate::transport::protocol::Protocol;
use crate::transport::socket::Socket;
use crate::transport::tls::reason;
use crate::transport::tls::session::TlsSocket;
use rustls::ClientConfig;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex};
use tokio::net::{TcpStream, UnixStream};

/// The TLS configuration of an upstream's connections.
#[derive(Debug)]
pub(crate) struct Secured {
    /// The configuration, which a reload may replace, since the file of the authorities may have changed.
    config: Mutex<Arc<ClientConfig>>,
    fault: Mutex<TlsFault>,
}

/// Why the last handshake failed, and whether the operator knows it.
#[derive(Debug, Default)]
struct TlsFault {
    why: Option<String>,
    is_logged: bool,
}

impl Secured {
    pub(crate) fn new(config: Arc<ClientConfig>) -> Self {
        Secured { config: Mutex::new(config), fault: Mutex::default() }
    }

    pub(crate) fn renew(&self, config: Arc<ClientConfig>) {
        *lock(&self.config) = config;
    }

    /// Why handshakes fail, if that is news.
    pub(crate) fn take_news(&self) -> Option<String> {
        let mut fault = lock(&self.fault);
        let is_news = !std::mem::replace(&mut fault.is_logged, true);
        fault.why.clone().filter(|_| is_news)
    }

    async fn secure(&self, io: PlainSocket, server: &Server) -> io::Result<Socket> {
        let name = server.name.clone().ok_or(io::ErrorKind::InvalidInput)?;
        let mut io = TlsSocket::connect(io, lock(&self.config).clone(), name)?;
        let agreed = poll_fn(|context| io.poll_handshake(context)).await;
        let mut fault = lock(&self.fault);
        match agreed {
            Ok(()) => {
                *fault = TlsFault::default();
                Ok(Socket::Tls(io))
            }
            Err(error) => {
                let why = Some(reason::of_handshake(&error));
                if fault.why != why {
                    *fault = TlsFault { why, is_logged: false };
                }
                Err(error)
            }
        }
    }
}

/// Connects to a server. `http2`: the upstream speaks HTTP/2, over TLS only if both ends agree. If the server is not trusted or
/// speaks no TLS, the error is `InvalidData`.
pub(super) async fn connect(to: &Server, secured: Option<&Secured>, http2: bool) -> io::Result<Socket> {
    let io = match &to.address {
        Address::Tcp(to) => {
            let io = TcpStream::connect(to).await?;
            io.set_nodelay(true)?;
            PlainSocket::Tcp(io)
        }
        Address::Unix(path) => PlainSocket::Unix(UnixStream::connect(path).await?),
    };
    let io = match secured {
        None => Socket::Plain(io),
        // The handshake is on the heap, so that connections without TLS need no room for it.
        Some(secured) => Box::pin(secured.secure(io, to)).await?,
    };
    let is_agreed = match &io {
        Socket::Tls(io) => io.protocol() == Protocol::Http2,
        _ => http2,
    };
    if is_agreed { Box::pin(Http2Socket::connect(io)).await.map(Socket::Http2) } else { Ok(io) }
}
