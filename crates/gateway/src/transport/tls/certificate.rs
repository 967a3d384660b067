//! A certificate and its key, read from their files.
//!
//! An error is reported where it does no harm: by `plimsoll check`, at the start, or at a reload that then changes nothing.
//! Each error names the wrong file, what is wrong with it, and what to do.

use super::settings::CertificateFiles;
use crate::clock::since_1970;
use rustls::InconsistentKeys;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use std::path::Path;
use std::time::Duration;
use x509_cert::Certificate as Parsed;
use x509_cert::der::Decode;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::{DirectoryString, GeneralName};
use x509_cert::name::Name;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");

/// A certificate, with the facts that an operator wants to know.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The files that it was read from.
    pub files: CertificateFiles,
    /// The names that it is for, as it has them: `shop.example`, `*.shop.example`.
    pub names: Vec<String>,
    /// Until when it is valid; time since 1970.
    pub valid_until: Duration,
    pub(crate) key: CertifiedKey,
}

impl Certificate {
    /// Reads both files, and checks that they belong together.
    ///
    /// # Errors
    /// What is wrong, where, and what to do.
    pub fn read(files: &CertificateFiles) -> Result<Self, String> {
        let chain = chain(&files.chain).map_err(|wrong| wrong + &how_to_make(files))?;
        let Some(leaf) = chain.first() else {
            return Err(format!(
                "{}: there is no certificate in it; it must have one that begins with `-----BEGIN CERTIFICATE-----`",
                files.chain.display()
            ));
        };
        let name = files.chain.display();
        let parsed = Parsed::from_der(leaf)
            .map_err(|error| format!("{name}: its first certificate is damaged: {error}"))?;
        let names = names(&parsed);
        let validity = parsed.tbs_certificate().validity();
        let valid_until = validity.not_after.to_unix_duration();
        let key = private_key(&files.key)?;
        let key = aws_lc_rs::sign::any_supported_type(&key).map_err(|_| {
            format!(
                "{}: this kind of key is not supported; use ECDSA with P-256 or P-384, RSA of 2048 bits or more, or Ed25519",
                files.key.display()
            )
        })?;
        let key = CertifiedKey::new(chain, key);
        match key.keys_match() {
            // A key that does not show its public half is taken as it is.
            Ok(()) | Err(rustls::Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(rustls::Error::InconsistentKeys(_)) => {
                return Err(format!(
                    "{}: this is not the key of {name}; name the key that the certificate was made with",
                    files.key.display()
                ));
            }
            Err(_) => {
                return Err(format!(
                    "{name}: no client takes this certificate: it is not of version 3; make it with `subjectAltName`"
                ));
            }
        }
        Ok(Certificate { files: files.clone(), names, valid_until, key })
    }

    /// What is wrong with its period of validity, if anything.
    pub fn untimely(&self) -> Option<String> {
        let now = since_1970();
        (self.valid_until < now).then(|| {
            let ago = (now - self.valid_until).as_secs() / 86_400;
            let when = if ago == 0 { "today".to_owned() } else { format!("{ago} days ago") };
            format!("{}: the certificate expired {when}; renew it", self.files.chain.display())
        })
    }
}

/// The command that makes a certificate to try TLS with, if both its file and the key's are missing.
fn how_to_make(CertificateFiles { chain, key }: &CertificateFiles) -> String {
    if chain.exists() || key.exists() {
        return String::new();
    }
    let folder = key.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists());
    let make_folder = folder.map_or(String::new(), |folder| format!("mkdir -p {} && ", folder.display()));
    format!(
        "; to try TLS, make both: {make_folder}openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 \
         -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout {} -out {}",
        key.display(),
        chain.display()
    )
}

/// All certificates of a file.
pub(crate) fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(file, &error))?;
    all.map(|one| one.map_err(|error| unreadable(file, &error))).collect()
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(file).map_err(|error| match error {
        error @ pem::Error::Io(_) => unreadable(file, &error),
        _ if has_password(file) => format!(
            "{name}: the key has a password, which nobody could give at a start; write it without one, readable by the gateway alone: \
             openssl pkey -in {name} -out {name}.open",
            name = file.display()
        ),
        pem::Error::NoItemsFound => {
            format!(
                "{}: there is no key in it that can be read; it must have one that begins with `-----BEGIN PRIVATE KEY-----` \
                 and has no password",
                file.display()
            )
        }
        error => unreadable(file, &error),
    })
}

/// Whether a key is encrypted, in the form of PKCS #8 or in the older form, which has header lines that are no longer PEM.
fn has_password(file: &Path) -> bool {
    let text = std::fs::read(file).unwrap_or_default();
    let has = |word: &[u8]| text.windows(word.len()).any(|some| some == word);
    has(b"-----BEGIN ENCRYPTED PRIVATE KEY-----") || has(b"Proc-Type: 4,ENCRYPTED")
}

/// The library's error, with names as text where the library lists their bytes.
fn what_is_wrong(error: &pem::Error) -> String {
    match error {
        pem::Error::MissingSectionEnd { end_marker } => {
            format!("no line ends what begins with `-----BEGIN {}-----`", String::from_utf8_lossy(end_marker))
        }
        error => error.to_string(),
    }
}

fn unreadable(file: &Path, error: &pem::Error) -> String {
    let name = file.display();
    match error {
        pem::Error::Io(error) => format!(
            "{name}: cannot be read: {error}; a relative path is taken from the folder of the configuration"
        ),
        error => format!(
            "{name}: this is not PEM, or a part of it is missing: {}; write the file anew, from its first `-----BEGIN` line to its \
             last `-----END` line",
            what_is_wrong(error)
        ),
    }
}

/// The DNS names and addresses that a certificate is for.
fn names(certificate: &Parsed) -> Vec<String> {
    let found = certificate.tbs_certificate().get_extension::<SubjectAltName>();
    let Ok(Some((_, SubjectAltName(names)))) = found else { return Vec::new() };
    names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DnsName(name) => Some(name.as_str().to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

/// The name in a client's certificate: its first DNS name, mail address or URI, else its common name, else its subject.
pub(crate) fn client_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let parsed = Parsed::from_der(certificate).ok()?;
    let tbs = parsed.tbs_certificate();
    let others = tbs.get_extension::<SubjectAltName>().ok().flatten();
    let other = others.into_iter().flat_map(|(_, SubjectAltName(names))| names).find_map(|name| match name {
        GeneralName::DnsName(name)
        | GeneralName::Rfc822Name(name)
        | GeneralName::UniformResourceIdentifier(name) => Some(name.as_str().to_owned()),
        _ => None,
    });
    let subject = || common_name(tbs.subject()).unwrap_or_else(|| tbs.subject().to_string());
    // The name becomes the value of a request field.
    let name = other.unwrap_or_else(subject);
    // Blanks around the name would be lost on the way, and the server would see another name than the classes do.
    let is_whole = name.trim() == name && !name.is_empty();
    (is_whole && name.chars().all(|char| char == ' ' || char.is_ascii_graphic())).then_some(name)
}

/// The last common name of a subject, which names the subject itself; earlier ones name what it belongs to. It is read from the
/// encoding: in the subject's text, the value of another attribute may look like a common name.
fn common_name(subject: &Name) -> Option<String> {
    let last = subject.iter().filter(|one| one.oid == COMMON_NAME).last()?;
    DirectoryString::try_from(&last.value).ok().map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The older form of an encrypted key has header lines that are no longer PEM.
    #[test]
    fn a_key_with_a_password_is_said_to_have_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("site.key");
        let older = "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n\
                     -----END EC PRIVATE KEY-----\n";
        let newer = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        for text in [older, newer] {
            std::fs::write(&file, text).unwrap();
            let wrong = private_key(&file).unwrap_err();
            assert!(wrong.contains("has a password") && wrong.contains("openssl pkey -in"), "{wrong}");
        }
    }

    #[test]
    fn a_common_name_is_that_of_its_attribute_and_of_no_text_in_another() {
        for (subject, name) in [
            ("CN=partner.test,O=Shop", Some("partner.test")),
            (r"O=x\,CN=partner.test,CN=stranger.test", Some("stranger.test")),
            (r"CN=Shop\, Ltd,O=x", Some("Shop, Ltd")),
            ("OU=x+CN=in a group,O=x", Some("in a group")),
            ("CN=host,CN=department,O=x", Some("host")),
            ("O=x", None),
        ] {
            let parsed: Name = subject.parse().unwrap_or_else(|error| panic!("{subject}: {error}"));
            assert_eq!(common_name(&parsed).as_deref(), name, "{subject}");
        }
    }
}
