//! Which certificate a client gets: the one that has the name it asks for (SNI).

use super::certificate::Certificate;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::Arc;

/// Certificates by their names.
#[derive(Debug, Default)]
pub(crate) struct CertificatesByName {
    all: Vec<Arc<CertifiedKey>>,
    /// The numbers of the certificates for each name; the name of a wildcard stands without its `*`.
    by_name: HashMap<String, Vec<usize>>,
}

impl CertificatesByName {
    pub(crate) fn new(certificates: impl IntoIterator<Item = Certificate>) -> Self {
        let mut found = CertificatesByName::default();
        for certificate in certificates {
            for name in &certificate.names {
                let name = name.strip_prefix('*').unwrap_or(name).to_owned();
                found.by_name.entry(name).or_default().push(found.all.len());
            }
            found.all.push(Arc::new(certificate.key));
        }
        found
    }

    /// The certificates for a name, the exact ones before those with a wildcard; if there is none for it, all certificates.
    fn candidates(&self, name: Option<&str>) -> impl Iterator<Item = &Arc<CertifiedKey>> {
        let name = name.map(str::to_ascii_lowercase).unwrap_or_default();
        let exact = self.by_name.get(&name);
        // A wildcard stands for one label (RFC 9525 6.3).
        let wild = name.find('.').and_then(|dot| self.by_name.get(&name[dot..]));
        let named = [exact, wild].into_iter().flatten().flatten().map(|&at| &self.all[at]);
        let others = if exact.or(wild).is_none() { &self.all[..] } else { &[] };
        named.chain(others)
    }
}

impl ResolvesServerCert for CertificatesByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let schemes = hello.signature_schemes();
        // If a name has a certificate with ECDSA and one with RSA, old clients know only the latter.
        let knows = |own: &&Arc<CertifiedKey>| own.key.choose_scheme(schemes).is_some();
        let fitting = self.candidates(hello.server_name()).find(knows);
        fitting.or_else(|| self.candidates(hello.server_name()).next()).cloned()
    }
}

/// Whether a certificate with these names is for a host.
pub fn is_for(names: &[String], host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let after_first_label = host.find('.').map(|dot| &host[dot..]);
    names.iter().any(|name| match name.strip_prefix('*') {
        Some(parent) => after_first_label == Some(parent) || host == *name,
        None => host == *name,
    })
}
