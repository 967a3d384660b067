//! What handshakes with clients need: the certificates in force, and the keys of session tickets.
//!
//! New certificates take effect with the next handshake; open connections keep the former ones. Tickets stay valid over such a
//! change, unless clients are asked for certificates.

use super::certificate::{Certificate, chain};
use super::names::CertificatesByName;
use super::reason;
use super::settings::{ClientCertificates, TlsSettings};
use crate::sync::lock;
use rustls::crypto::aws_lc_rs;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, RootCertStore, ServerConfig};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// The protocols that clients are offered, best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

impl TlsSettings {
    /// Reads every file.
    ///
    /// # Errors
    /// Everything that is wrong with the files: what, where, and what to do.
    pub fn read(&self) -> Result<Vec<Certificate>, Vec<String>> {
        let read = self.certificates.iter().map(Certificate::read);
        let (mut certificates, mut wrong) = (Vec::new(), Vec::new());
        for one in read {
            match one {
                Ok(certificate) => certificates.push(certificate),
                Err(error) => wrong.push(error),
            }
        }
        wrong.extend(self.clients.as_ref().and_then(|clients| verifier(clients).err()));
        if wrong.is_empty() { Ok(certificates) } else { Err(wrong) }
    }

    /// The path of every file: certificate chains, keys, and the authorities of clients' certificates.
    pub fn files(&self) -> Vec<&Path> {
        let own = self.certificates.iter().flat_map(|files| [files.chain.as_path(), files.key.as_path()]);
        own.chain(self.clients.iter().map(|clients| clients.authorities.as_path())).collect()
    }

    /// The state of every file, seen without reading it.
    pub(crate) fn look(&self) -> Vec<SeenFile> {
        self.files().into_iter().map(SeenFile::at).collect()
    }
}

/// The state of a file, seen without reading it, by which a changed file is recognized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenFile {
    path: PathBuf,
    /// When the file was written, and its length; `None` if the file cannot be seen.
    data: Option<(SystemTime, u64)>,
}

impl SeenFile {
    fn at(path: &Path) -> Self {
        let seen = || {
            let data = std::fs::metadata(path).ok()?;
            Some((data.modified().ok()?, data.len()))
        };
        SeenFile { path: path.to_path_buf(), data: seen() }
    }
}

/// How a handshake checks clients' certificates.
fn verifier(clients: &ClientCertificates) -> Result<Arc<dyn ClientCertVerifier>, String> {
    let name = clients.authorities.display();
    let mut roots = RootCertStore::empty();
    for authority in chain(&clients.authorities)? {
        roots.add(authority).map_err(|error| {
            format!("{name}: a certificate in it is no authority's: {}", reason::of(&error))
        })?;
    }
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(aws_lc_rs::default_provider()));
    let verifier = if clients.optional { verifier.allow_unauthenticated() } else { verifier };
    verifier.build().map_err(|error| {
        format!("{name}: no client can be checked by it: {error}; name the certificate of the authority that signs theirs")
    })
}

/// The configuration of handshakes, and until when its certificates are valid.
#[derive(Debug)]
pub(crate) struct ServerTls {
    config: Arc<ServerConfig>,
    ends: Vec<CertificateEnd>,
    /// The first name of the first certificate that is not a pattern.
    host: Option<String>,
    /// The state of the files before they were read.
    read_from: Vec<SeenFile>,
}

/// Until when a certificate is valid (since 1970), by its file.
pub(crate) type CertificateEnd = (String, Duration);

/// TLS with clients, for all threads.
#[derive(Debug)]
pub(crate) struct TlsServer {
    /// The TLS in force; `None` if no listener speaks TLS.
    current: Mutex<Option<ServerTls>>,
    tickets: Arc<dyn ProducesTickets>,
    pub handshakes: Handshakes,
}

impl TlsServer {
    pub(crate) fn new() -> io::Result<Self> {
        let tickets = aws_lc_rs::Ticketer::new().map_err(io::Error::other)?;
        Ok(TlsServer { current: Mutex::default(), tickets, handshakes: Handshakes::default() })
    }

    pub(crate) fn current(&self) -> Option<Arc<ServerConfig>> {
        lock(&self.current).as_ref().map(|tls| tls.config.clone())
    }

    /// The host that is sent to clients without a name for it.
    pub(crate) fn host(&self) -> Option<String> {
        lock(&self.current).as_ref()?.host.clone()
    }

    /// Until when the certificates in force are valid.
    pub(crate) fn certificate_ends(&self) -> Vec<CertificateEnd> {
        lock(&self.current).as_ref().map_or_else(Vec::new, |tls| tls.ends.clone())
    }

    /// The state of the files of the certificates in force, before they were read.
    pub(crate) fn read_from(&self) -> Vec<SeenFile> {
        lock(&self.current).as_ref().map_or_else(Vec::new, |tls| tls.read_from.clone())
    }

    /// Prepares the TLS that [`install`](Self::install) puts in force.
    pub(crate) fn prepare(&self, settings: Option<&TlsSettings>) -> Result<Option<ServerTls>, Vec<String>> {
        let Some(settings) = settings else { return Ok(None) };
        // The state is taken first: a file that is written meanwhile is then seen to differ.
        let read_from = settings.look();
        let certificates = settings.read()?;
        let end = |own: &Certificate| (own.files.chain.display().to_string(), own.valid_until);
        let ends = certificates.iter().map(end).collect();
        let names = certificates.first().map_or(&[][..], |first| first.names.as_slice());
        let is_host =
            |name: &&String| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
        let host = names.iter().find(is_host).cloned();
        let certificates = CertificatesByName::new(certificates);
        let versions: &[_] = if settings.only_1_3 { &[&TLS13] } else { &[&TLS13, &TLS12] };
        let one = |error: String| vec![error];
        let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_protocol_versions(versions).map_err(|error| one(error.to_string()))?;
        let builder = match &settings.clients {
            None => builder.with_no_client_auth(),
            Some(clients) => builder.with_client_cert_verifier(verifier(clients).map_err(one)?),
        };
        let mut config = builder.with_cert_resolver(Arc::new(certificates));
        config.alpn_protocols =
            PROTOCOLS[usize::from(settings.only_http1)..].iter().map(|name| name.to_vec()).collect();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        // A ticket stands in for the client's certificate, so it must not outlive the rules by which the certificate was
        // checked.
        config.ticketer = match &settings.clients {
            None => self.tickets.clone(),
            Some(_) => aws_lc_rs::Ticketer::new().map_err(|error| one(error.to_string()))?,
        };
        Ok(Some(ServerTls { config: Arc::new(config), ends, host, read_from }))
    }

    pub(crate) fn install(&self, tls: Option<ServerTls>) {
        *lock(&self.current) = tls;
    }
}

/// How handshakes with clients ended.
#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    full: AtomicU64,
    resumed: AtomicU64,
    failed: AtomicU64,
}

impl Handshakes {
    pub(crate) fn counts(&self) -> [u64; 3] {
        [&self.full, &self.resumed, &self.failed].map(|counter| counter.load(Relaxed))
    }

    pub(crate) fn count(&self, kind: Option<HandshakeKind>) {
        let counter = match kind {
            Some(HandshakeKind::Resumed) => &self.resumed,
            Some(_) => &self.full,
            None => &self.failed,
        };
        counter.fetch_add(1, Relaxed);
    }
}
