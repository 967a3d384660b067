//! The operator's settings for TLS.

use std::path::PathBuf;
use std::time::Duration;

/// How TLS is spoken with clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// The certificates. A client gets the one for the name it asks for, or the first if none has the name.
    pub certificates: Vec<CertificateFiles>,
    /// Whether TLS 1.2 is refused.
    pub only_1_3: bool,
    /// Whether HTTP/2 is not offered.
    pub only_http1: bool,
    /// The port to which requests without TLS are redirected, if they are.
    pub redirect: Option<u16>,
    /// For how long clients are asked to use TLS alone (RFC 6797); zero for no word of it.
    pub hsts: Duration,
    /// The authorities that sign clients' certificates, if clients are asked for certificates.
    pub clients: Option<ClientCertificates>,
}

/// A certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The chain in PEM: the certificate, and those between it and its root.
    pub chain: PathBuf,
    /// The key in PEM: PKCS #8, PKCS #1 or SEC 1.
    pub key: PathBuf,
}

/// The certificates of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificates {
    /// The certificates of the authorities that may have signed them, in PEM.
    pub authorities: PathBuf,
    /// Whether a client without a certificate may connect.
    pub optional: bool,
    /// The request header that gets the name in the client's certificate; a client's own field of that name is dropped.
    pub header: Option<String>,
}

/// How TLS is spoken with an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamTls {
    /// The name that a server's certificate must have, for each address in the order of the addresses.
    pub names: Vec<String>,
    /// The certificates in PEM of the authorities that may have signed the server's, or the server's own; `None` for the
    /// system's authorities.
    pub authorities: Option<PathBuf>,
}
