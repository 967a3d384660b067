//! The tokens of the admin listener. If there are any, only a request that shows one of them is answered.
//!
//! Programs send `Authorization: Bearer TOKEN` (RFC 6750). A browser asks its user for a name and a password and sends both
//! by itself from then on (RFC 7617): any name, and the token as password.

use super::signed::secrets;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha2::{Digest, Sha256};

/// The tokens of the admin listener, any of which counts. There are none by default: everybody may ask.
///
/// The tokens' hashes are kept and compared, so that the time that it takes reveals nothing about a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdminTokens(Vec<[u8; 32]>);

impl AdminTokens {
    /// Takes the tokens from the text of their file: one a line, so that a new one can be added before an old one goes.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn read(text: &str) -> Result<Self, String> {
        Ok(AdminTokens(secrets(text)?.into_iter().map(hash).collect()))
    }

    /// Whether a request with this `Authorization` may be answered.
    pub(crate) fn admit(&self, authorization: Option<&[u8]>) -> bool {
        self.0.is_empty() || authorization.and_then(token).is_some_and(|shown| self.0.contains(&hash(&shown)))
    }
}

fn hash(token: impl AsRef<[u8]>) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The token in an `Authorization`, whichever way it is shown.
fn token(authorization: &[u8]) -> Option<Vec<u8>> {
    let space = authorization.iter().position(|byte| *byte == b' ')?;
    let (scheme, credentials) = (&authorization[..space], authorization[space..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"bearer") {
        return Some(credentials.to_vec());
    }
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let pair = BASE64_STANDARD.decode(credentials).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    Some(pair[colon + 1..].to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "a-token-of-thirty-two-characters-1";

    #[test]
    fn whoever_shows_a_token_may_ask() {
        let tokens =
            AdminTokens::read(&format!("{TOKEN}\n\nanother-token-of-thirty-two-characters\n")).unwrap();
        let basic = |pair: &str| format!("basic {}", BASE64_STANDARD.encode(pair));
        let long = format!("Bearer  {TOKEN} ");
        let right =
            [&format!("Bearer {TOKEN}"), &long, &basic(&format!("me:{TOKEN}")), &basic(&format!(":{TOKEN}"))];
        for shown in right {
            assert!(tokens.admit(Some(shown.as_bytes())), "{shown}");
        }
        let wrong = [
            "",
            "Bearer",
            "Bearer ",
            TOKEN,
            &format!("Digest {TOKEN}"),
            &basic(TOKEN),
            "Basic *",
            &long[..20],
        ]
        .map(str::to_owned);
        for shown in wrong {
            assert!(!tokens.admit(Some(shown.as_bytes())), "{shown}");
        }
        assert!(!tokens.admit(None));
        assert!(AdminTokens::default().admit(None), "without tokens anybody may ask");
    }

    #[test]
    fn a_token_that_can_be_guessed_is_refused_and_none_is_shown() {
        assert!(AdminTokens::read(" \n").unwrap_err().contains("32 characters"));
        assert_eq!(
            AdminTokens::read(&format!("{TOKEN}\nshort\n")).unwrap_err(),
            "line 2 has fewer than 32 characters, which can be guessed"
        );
        assert!(!format!("{:?}", AdminTokens::read(TOKEN).unwrap()).contains("thirty"));
    }
}
