//! TLS with clients: listeners, certificates, and the authorities of clients' certificates.

use super::addresses::in_folder_of;
use super::http::HeaderName;
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Located, OneOrMany, Table, Text, Whole, section, words};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::{Address, CertificateFiles, ClientCertificates, TlsSettings};

section! { "[tls]"
    /// TLS with clients: where it is spoken, and with which certificates. The files are read at the start, at each reload,
    /// and when they change. If a changed file is wrong, the log has the reason and the certificates stay as they were.
    TlsKeys {
        /// Where clients connect that speak TLS, such as `"0.0.0.0:443"`.
        listen: OneOrMany<Address>, required("write where clients connect that speak TLS: `listen = \"0.0.0.0:443\"`");
        /// The files of the certificates in PEM, each with those between it and its root. A client gets the one that has the
        /// name it asks for (SNI), and the first where none has it. A relative path is taken from the folder of this file.
        certificate: OneOrMany<Text>, required("name the certificate's file: `certificate = \"tls/cert.pem\"`");
        /// The files of their keys in PEM, in the same order. Absent: each key is in its certificate's file.
        key: OneOrMany<Text>, optional;
        /// The oldest version that is spoken.
        min_version: TlsVersion, default(TlsVersion::V1_2);
        /// Whether HTTP/2 is spoken with clients that can.
        http2: bool, default(true);
        /// The port to which requests that come without TLS are redirected, usually 443. Absent: they are served. Requests
        /// that a trusted proxy received over TLS are served in any case, and so is `/.well-known/acme-challenge/`.
        redirect: Whole<1, 65_535>, optional;
        /// How long browsers are told to use TLS alone for a host (`Strict-Transport-Security`), such as `"180d"`. The
        /// field that an upstream sends is dropped then. Absent: they are told nothing. It cannot be taken back.
        hsts: Duration, optional;
        /// The file of the authorities, in PEM, that sign the certificates of clients. Absent: clients are not asked for any.
        client_ca: Text, optional;
        /// Whether a client must show a certificate. Absent: it must, where there is `client_ca`.
        client_certificates: ClientCertificateUse, optional;
        /// The request header that carries the name in a client's certificate: its first DNS name, mail address or URI,
        /// else its common name. Conditions of classes see it, and so does the upstream; a field of this name that a client
        /// sends is dropped.
        client_header: HeaderName, optional;
    }
}

words! {
    /// A version of TLS.
    enum TlsVersion {
        "1.2" => V1_2, "TLS 1.2 and 1.3";
        "1.3" => V1_3, "TLS 1.3 alone";
    }
}

words! {
    /// How a client without a certificate is treated.
    enum ClientCertificateUse {
        "required" => Required, "a client without one is not served";
        "optional" => Optional, "a client without one is served too";
    }
}

/// The advice if the name of a PEM file is empty.
pub(super) const WRITE_PATH: &str = "write its path, such as `\"tls/cert.pem\"`";

/// The TLS settings in the file with this name.
pub(super) fn tls(
    keys: Option<&Located<Table<TlsKeys>>>,
    name: &str,
    findings: &mut Findings,
) -> Option<TlsSettings> {
    let keys = &keys?.value.0;
    Some(TlsSettings {
        certificates: certificates(keys, name, findings),
        only_1_3: keys.min_version.value == TlsVersion::V1_3,
        only_http1: !keys.http2.value,
        redirect: keys.redirect.as_ref().map(|port| port.value.0 as u16),
        hsts: keys.hsts.as_ref().map_or(Duration::ZERO, |time| time.value),
        clients: clients(keys, name, findings),
    })
}

fn certificates(keys: &TlsKeys, name: &str, findings: &mut Findings) -> Vec<CertificateFiles> {
    let mut file = |text: &Located<Text>| in_folder_of(name, text, WRITE_PATH, findings);
    let chains: Vec<_> = keys.certificate.iter().flat_map(|list| &list.value.0).map(&mut file).collect();
    let Some(given) = &keys.key else {
        let both = |chain: std::path::PathBuf| CertificateFiles { key: chain.clone(), chain };
        return chains.into_iter().map(both).collect();
    };
    let own: Vec<_> = given.value.0.iter().map(&mut file).collect();
    if let Some(named) = keys.certificate.as_ref().filter(|_| own.len() != chains.len()) {
        refuse!(findings, Conflict at &given.span,
            format!("{} keys are named for {} certificates", own.len(), chains.len()),
            help: "name one key for each certificate, in the same order",
            beside &named.span => "the certificates are named");
    }
    chains.into_iter().zip(own).map(|(chain, key)| CertificateFiles { chain, key }).collect()
}

fn clients(keys: &TlsKeys, name: &str, findings: &mut Findings) -> Option<ClientCertificates> {
    const NAME_AUTHORITIES: &str =
        "name the authorities that sign clients' certificates: `client_ca = \"tls/clients.pem\"`";
    let (header, asked) = (keys.client_header.as_ref(), keys.client_certificates.as_ref());
    let Some(authorities) = &keys.client_ca else {
        if let Some(header) = header {
            refuse!(findings, Conflict at &header.span,
                "no client is asked for a certificate, so that there is no name in one",
                help: NAME_AUTHORITIES);
        }
        if let Some(asked) = asked {
            refuse!(findings, Conflict at &asked.span,
                "no client is asked for a certificate, whatever is written here",
                help: NAME_AUTHORITIES);
        }
        return None;
    };
    Some(ClientCertificates {
        authorities: in_folder_of(name, authorities, WRITE_PATH, findings),
        optional: asked.is_some_and(|asked| asked.value == ClientCertificateUse::Optional),
        header: header.map(|header| header.value.0.clone()),
    })
}

/// Every address where TLS is spoken.
pub(super) fn addresses(keys: Option<&Located<Table<TlsKeys>>>) -> Vec<Located<Address>> {
    let listen = keys.and_then(|keys| keys.value.0.listen.as_ref());
    listen.iter().flat_map(|list| &list.value.0).cloned().collect()
}
