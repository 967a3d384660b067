//! TLS to upstreams: which servers are trusted, and under which name.
//!
//! A server is trusted if an authority has signed its certificate: one of this system's, or those of a file. A certificate in
//! that file is also trusted as the server's own certificate. A server that signed its own certificate has such a one, and
//! openssl marks it as an authority's, which a server's certificate must not be (RFC 5280).

use super::certificate::chain;
use super::settings::UpstreamTls;
use crate::transport::plain::PlainSocket;
use crate::transport::tls::session::TlsSocket;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, Connection, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use std::io;
use std::sync::Arc;

impl UpstreamTls {
    /// Reads the file of the authorities, or the system's.
    ///
    /// # Errors
    /// What is wrong, where, and what to do.
    pub fn check(&self) -> Result<(), String> {
        self.prepare(false).map(drop)
    }

    /// The TLS configuration of connections to the upstream. `http2`: they may speak HTTP/2.
    pub(crate) fn prepare(&self, http2: bool) -> Result<Arc<ClientConfig>, String> {
        let own = self.authorities.as_deref().map(chain).transpose()?;
        let mut roots = RootCertStore::empty();
        match (&own, &self.authorities) {
            (Some(own), Some(file)) => {
                roots.add_parsable_certificates(own.iter().cloned());
                if roots.is_empty() {
                    return Err(format!("{}: there is no certificate in it", file.display()));
                }
            }
            _ => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
                if roots.is_empty() {
                    let help = "install its package of them (Debian: ca-certificates), or name a file: `ca = \"ca.pem\"`";
                    return Err(format!("this system has no certificates of authorities: {help}"));
                }
            }
        }
        let provider = Arc::new(aws_lc_rs::default_provider());
        let authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
        let authorities = authorities.map_err(|error| error.to_string())?;
        let verifier = Trusted { authorities, own: own.unwrap_or_default() };
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13, &TLS12]);
        let mut config = builder
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        let protocols = [&b"h2"[..], b"http/1.1"].into_iter().skip(usize::from(!http2));
        config.alpn_protocols = protocols.map(<[u8]>::to_vec).collect();
        Ok(Arc::new(config))
    }
}

/// The name under which an upstream must show a certificate.
pub(crate) fn server_name(name: &str) -> Result<ServerName<'static>, String> {
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    ServerName::try_from(bare.to_owned())
        .map_err(|_| format!("`{name}` is no name that a certificate can be for"))
}

impl TlsSocket {
    /// The client's end of a connection.
    pub(crate) fn connect(
        io: PlainSocket,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> io::Result<Box<Self>> {
        let session = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Ok(TlsSocket::new(io, Connection::Client(session)))
    }
}

/// A verifier that trusts the servers' own certificates, and those that the authorities have signed.
#[derive(Debug)]
struct Trusted {
    authorities: Arc<WebPkiServerVerifier>,
    own: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Trusted {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if self.own.iter().any(|own| own == shown) {
            verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.authorities.verify_server_cert(shown, between, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}
