//! Why no TLS came about, in words: what the other end did, and what can be done. "It" is the other end.
//!
//! A reason stays the same as long as what is wrong does, so that it is logged once: it has no seconds in it.

use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, Error, InvalidMessage};
use std::io::{self, ErrorKind};

/// What is logged of a handshake that failed.
pub(crate) fn of_handshake(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => of(error),
        None if error.kind() == ErrorKind::UnexpectedEof => {
            "it closed the connection during the handshake".to_owned()
        }
        None => error.to_string(),
    }
}

/// What is logged of an error.
pub(super) fn of(error: &Error) -> String {
    let text = match error {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => "it speaks no TLS at this port",
        Error::InvalidCertificate(wrong) => return of_certificate(wrong),
        Error::AlertReceived(alert) => return of_alert(*alert),
        Error::NoCertificatesPresented => "it shows no certificate, and must",
        Error::PeerIncompatible(_) => {
            "it speaks neither TLS 1.2 nor 1.3, or knows none of the ciphers that are used here"
        }
        Error::NoApplicationProtocol => "it speaks neither HTTP/2 nor HTTP/1.1 over TLS",
        other => return other.to_string(),
    };
    text.to_owned()
}

fn of_certificate(wrong: &CertificateError) -> String {
    use CertificateError as Wrong;
    let text = match wrong {
        Wrong::BadEncoding => "its certificate is damaged",
        Wrong::Expired => "its certificate has expired",
        Wrong::ExpiredContext { time, not_after } => {
            let days = days(time.as_secs(), not_after.as_secs());
            return format!("its certificate expired {days} ago, by this machine's clock");
        }
        Wrong::NotValidYet => "its certificate is not valid yet",
        Wrong::NotValidYetContext { time, not_before } => {
            let days = days(not_before.as_secs(), time.as_secs());
            return format!("its certificate is valid only in {days}, by this machine's clock");
        }
        Wrong::Revoked => "its certificate is revoked",
        Wrong::UnhandledCriticalExtension => {
            "its certificate has an extension that is not known here and must be (it is marked as critical)"
        }
        Wrong::UnknownIssuer => {
            "no authority that is trusted here has signed its certificate, or it does not show those between: name the \
             authority's certificate as `ca`"
        }
        Wrong::BadSignature => "its certificate was not signed with its authority's key",
        Wrong::NotValidForName => "its certificate is for other names",
        Wrong::NotValidForNameContext { expected, presented } => return of_name(expected, presented),
        Wrong::InvalidPurpose | Wrong::InvalidPurposeContext { .. } => {
            "its certificate is for another purpose (extended key usage)"
        }
        Wrong::UnsupportedSignatureAlgorithmContext { .. }
        | Wrong::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "its certificate is signed in a way that is not taken here, such as with SHA-1"
        }
        other => return of_other(&other.to_string()),
    };
    text.to_owned()
}

fn of_name(expected: &ServerName<'_>, presented: &[String]) -> String {
    // The library writes them as the names of a type, with the name in quotation marks.
    let bare = |name: &String| name.split('"').nth(1).unwrap_or(name).to_owned();
    let names: Vec<String> = presented.iter().map(bare).collect();
    let names = if names.is_empty() { "no name at all".to_owned() } else { names.join(", ") };
    let expected = expected.to_str();
    format!(
        "its certificate is not for `{expected}`, but for {names}: `server_name` is the name that it must have"
    )
}

/// An error that only the library which checks certificates can name.
fn of_other(name: &str) -> String {
    let known = [
        (
            "CaUsedAsEndEntity",
            "its certificate is an authority's own, as of one that signed for itself: name it as `ca` if it is to be trusted",
        ),
        ("EndEntityUsedAsCa", "what signed its certificate is no authority's"),
        ("NameConstraintViolation", "its authority may not sign for this name"),
        ("PathLenConstraintViolated", "more authorities stand between than one of them allows"),
        ("UnsupportedCertVersion", "its certificate is not of version 3: make it with `subjectAltName`"),
        (
            "UnsupportedCriticalExtension",
            "an authority's certificate has an extension that is not known here and must be",
        ),
    ];
    let known = known.iter().find(|(known, _)| name.contains(known));
    known.map_or_else(|| format!("its certificate is refused: {name}"), |(_, text)| (*text).to_owned())
}

fn of_alert(alert: AlertDescription) -> String {
    use AlertDescription as Alert;
    let text = match alert {
        Alert::ProtocolVersion => "it speaks neither TLS 1.2 nor 1.3",
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            "it agrees on no cipher that is used here, or wants a certificate of this end"
        }
        Alert::UnrecognisedName => {
            "it has no certificate for this name: `server_name` is the one that it is asked for"
        }
        Alert::CertificateRequired => "it wants a certificate of this end, which has none",
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA => "it does not trust the certificate that it was shown",
        Alert::NoApplicationProtocol => "it speaks neither HTTP/2 nor HTTP/1.1 over TLS",
        other => return format!("it ended the handshake (alert {})", u8::from(other)),
    };
    text.to_owned()
}

fn days(later: u64, earlier: u64) -> String {
    match later.saturating_sub(earlier) / 86_400 {
        0 => "less than a day".to_owned(),
        1 => "a day".to_owned(),
        days => format!("{days} days"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::OtherError;
    use rustls::pki_types::UnixTime;
    use std::sync::Arc;
    use std::time::Duration;

    fn reason(wrong: CertificateError) -> String {
        of_handshake(&io::Error::new(ErrorKind::InvalidData, Error::InvalidCertificate(wrong)))
    }

    #[test]
    fn what_an_operator_meets_is_reported_in_words() {
        let expected = ServerName::try_from("shop.test").unwrap();
        let presented = ["DnsName(\"app.test\")", "DnsName(\"*.app.test\")"].map(str::to_owned).into();
        let name = reason(CertificateError::NotValidForNameContext { expected, presented });
        assert!(name.contains("not for `shop.test`, but for app.test, *.app.test: `server_name`"), "{name}");
        let own = |name: &str| {
            reason(CertificateError::Other(OtherError(Arc::new(io::Error::other(name.to_owned())))))
        };
        assert!(own("CaUsedAsEndEntity").contains("signed for itself: name it as `ca`"));
        assert_eq!(
            own("Strange"),
            "its certificate is refused: Other(OtherError(Custom { kind: Other, error: \"Strange\" }))"
        );
        assert!(reason(CertificateError::UnknownIssuer).starts_with("no authority that is trusted here"));
        let alert = Error::AlertReceived(AlertDescription::CertificateRequired);
        assert_eq!(of(&alert), "it wants a certificate of this end, which has none");
        assert_eq!(
            of(&Error::AlertReceived(AlertDescription::InternalError)),
            "it ended the handshake (alert 80)"
        );
        let end = io::Error::from(ErrorKind::UnexpectedEof);
        assert_eq!(of_handshake(&end), "it closed the connection during the handshake");
    }

    #[test]
    fn a_reason_stays_the_same_while_what_is_wrong_does() {
        let at = |seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let expired =
            |time| reason(CertificateError::ExpiredContext { time: at(time), not_after: at(100_000) });
        assert_eq!(expired(100_001), expired(100_002));
        assert_eq!(expired(300_000), "its certificate expired 2 days ago, by this machine's clock");
        let early =
            |time| reason(CertificateError::NotValidYetContext { time: at(time), not_before: at(100_000) });
        assert_eq!(early(1), "its certificate is valid only in a day, by this machine's clock");
    }
}
