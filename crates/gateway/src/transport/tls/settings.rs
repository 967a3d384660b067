//! What the operator says of TLS.

use std::path::PathBuf;
use std::time::Duration;

/// How TLS is spoken with clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificates. A client gets the one that has the name it asks for, and the first if none has it.
    pub certificates: Vec<CertificateFiles>,
    /// Whether TLS 1.2 is refused.
    pub only_1_3: bool,
    /// Whether HTTP/2 is not spoken.
    pub only_http1: bool,
    /// The port that requests without TLS are redirected to, if they are.
    pub redirect: Option<u16>,
    /// For how long clients are asked to use TLS alone (RFC 6797); zero for no word of it.
    pub hsts: Duration,
    /// The authorities over clients, if clients are asked for certificates.
    pub clients: Option<ClientCertificates>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate and those between it and its root, in PEM.
    pub chain: PathBuf,
    /// The key in PEM: PKCS #8, PKCS #1 or SEC 1.
    pub key: PathBuf,
}

/// The certificates of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    /// The certificates of the authorities that may have signed them, in PEM.
    pub authorities: PathBuf,
    /// Whether a client without one may connect.
    pub optional: bool,
    /// The request header that has the name in the client's certificate; what the client itself sends under it is dropped.
    pub header: Option<String>,
}

/// How TLS is spoken with an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTls {
    /// The name that each of its addresses must have in its certificate, parallel to them.
    pub names: Vec<String>,
    /// The certificates in PEM of those who may have signed it, or the server's own; `None` for the system's authorities.
    pub authorities: Option<PathBuf>,
}
