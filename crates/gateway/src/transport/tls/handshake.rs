//! The beginning of a connection that speaks TLS.

use super::session::TlsSocket;
use crate::transport::plain::PlainSocket;
use crate::transport::protocol::Protocol;
use rustls::pki_types::CertificateDer;
use rustls::{Connection, HandshakeKind, ServerConfig, ServerConnection};
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// What a client gets that speaks HTTP where TLS is spoken.
const NOT_TLS: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 44\r\nconnection: close\r\n\r\nThis port speaks TLS: ask it with https://.\n";

impl TlsSocket {
    /// The server's end of a connection.
    pub(crate) fn accept(io: PlainSocket, config: Arc<ServerConfig>) -> Result<Box<Self>, rustls::Error> {
        let session = ServerConnection::new(config)?;
        Ok(TlsSocket::new(io, Connection::Server(session)))
    }

    /// Ready when bytes can be exchanged, or never will be.
    pub(crate) fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.session.is_handshaking() {
            ready!(self.poll_drain(context))?;
            match ready!(self.poll_receive(context)) {
                Ok(0) => return Poll::Ready(Err(ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(error) => {
                    self.explain(context, &error);
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Tells the other end what was wrong, as far as it listens.
    fn explain(&mut self, context: &mut Context<'_>, error: &io::Error) {
        if error.kind() != ErrorKind::InvalidData {
            return;
        }
        if self.first.is_some_and(|byte| byte.is_ascii_uppercase()) {
            // No record of TLS begins so. An alert would mean nothing to this client.
            let _ = Pin::new(&mut self.io).poll_write(context, NOT_TLS.as_bytes());
        } else {
            let _ = self.poll_drain(context);
        }
        self.abort();
        let _ = Pin::new(&mut self.io).poll_shutdown(context);
    }

    /// How many bytes came.
    pub(crate) fn received(&self) -> usize {
        self.received
    }

    /// The protocol that both ends agreed on.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.session.alpn_protocol() {
            Some(b"h2") => Protocol::Http2,
            _ => Protocol::Http1,
        }
    }

    /// Whether the handshake was whole, or went on from an earlier one.
    pub(crate) fn kind(&self) -> Option<HandshakeKind> {
        self.session.handshake_kind()
    }

    /// The other end's certificate, which was checked.
    pub(crate) fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.session.peer_certificates()?.first()
    }
}
