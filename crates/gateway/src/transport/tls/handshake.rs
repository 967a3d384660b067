//! The beginning of a TLS connection.

use super::session::TlsSocket;
use crate::transport::plain::PlainSocket;
use crate::transport::protocol::Protocol;
use crate::transport::proxy_header;
use rustls::pki_types::CertificateDer;
use rustls::{Connection, HandshakeKind, ServerConfig, ServerConnection};
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// What is spoken where TLS should be, and no record of TLS begins so: what is logged, and what the client gets as an answer.
type Other = [&'static str; 2];

const HTTP: Other = ["it speaks HTTP without TLS", "This port speaks TLS: ask it with https://."];
const PROXIED: Other = [proxy_header::UNEXPECTED, proxy_header::UNEXPECTED];

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
                Err(error) => return Poll::Ready(Err(self.explain(context, error))),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Says to the other end what was wrong, as far as it listens; returns what is logged.
    fn explain(&mut self, context: &mut Context<'_>, error: io::Error) -> io::Error {
        if error.kind() != ErrorKind::InvalidData {
            return error;
        }
        let other = self.other();
        match other {
            // An alert would mean nothing to this client.
            Some([_, answer_text]) => {
                let length = answer_text.len() + 1;
                let answer = format!(
                    "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
                     content-length: {length}\r\nconnection: close\r\n\r\n{answer_text}\n"
                );
                let _ = Pin::new(&mut self.io).poll_write(context, answer.as_bytes());
            }
            None => drop(self.poll_drain(context)),
        }
        self.abort();
        let _ = Pin::new(&mut self.io).poll_shutdown(context);
        other.map_or(error, |[logged, _]| io::Error::new(ErrorKind::InvalidData, logged))
    }

    /// What the first bytes are, if not TLS.
    fn other(&self) -> Option<Other> {
        let first = self.first?;
        match first[0].is_ascii_uppercase() {
            _ if proxy_header::is_begun(&first) => Some(PROXIED),
            is_http => is_http.then_some(HTTP),
        }
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

    /// Whether the handshake was full, or resumed an earlier session.
    pub(crate) fn kind(&self) -> Option<HandshakeKind> {
        self.session.handshake_kind()
    }

    /// The other end's certificate, which was verified.
    pub(crate) fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.session.peer_certificates()?.first()
    }
}
