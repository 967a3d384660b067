//! Headers and cookies that count only if they are signed.
//!
//! A rule that gives a class by a cookie gives it to anybody who sends that cookie, and a client that is known by a cookie may
//! try cookies until it is lucky. A signed value is `value.expiry.signature`: the value itself, the second of Unix time at
//! which it ends, and the HMAC-SHA256 of `name=value.expiry` in base64url without padding. The name is signed too, so that no
//! cookie's value passes for another one's. A value that is not signed, or has expired, counts as absent; the request itself is
//! not changed.

use crate::clock::since_1970;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The fewest bytes of a key: the length of the signature.
const LEAST_SECRET: usize = 32;

/// Which headers and cookies count only if they are signed, and with which keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Signed {
    /// Names of cookies.
    pub cookies: Vec<String>,
    /// Names of headers, in lower case.
    pub headers: Vec<String>,
    /// The keys; a signature by any of them is valid.
    keys: Vec<Box<[u8]>>,
}

/// Keys are never written to a log.
impl std::fmt::Debug for Signed {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Signed { cookies, headers, keys } = self;
        write!(formatter, "Signed {{ cookies: {cookies:?}, headers: {headers:?}, {} keys }}", keys.len())
    }
}

impl Signed {
    /// These names without any key, so that no value counts as signed.
    pub fn new(cookies: Vec<String>, headers: Vec<String>) -> Self {
        Signed { cookies, headers, keys: Vec::new() }
    }

    /// Takes the keys from the text of a key file: one a line, so that a new key can be added before an old one goes.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn set_keys(&mut self, text: &str) -> Result<(), String> {
        self.keys = secrets(text)?.into_iter().map(|key| key.as_bytes().into()).collect();
        Ok(())
    }

    /// The value of a header for rules, given the value that was sent.
    pub fn header<'r>(&self, name: &str, sent: &'r str) -> Option<&'r str> {
        match self.headers.iter().find(|signed| signed.eq_ignore_ascii_case(name)) {
            Some(signed) => self.value(signed, sent, since_1970().as_secs()),
            None => Some(sent),
        }
    }

    /// The value of a cookie for rules, given the value that was sent.
    pub fn cookie<'r>(&self, name: &str, sent: &'r str) -> Option<&'r str> {
        match self.cookies.iter().any(|signed| signed == name) {
            true => self.value(name, sent, since_1970().as_secs()),
            false => Some(sent),
        }
    }

    /// The value in a token, if the token is signed for this name and has not expired.
    fn value<'r>(&self, name: &str, token: &'r str, now: u64) -> Option<&'r str> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (value, expiry) = signed.rsplit_once('.')?;
        if !expiry.bytes().all(|byte| byte.is_ascii_digit()) || expiry.parse::<u64>().ok()? <= now {
            return None;
        }
        let mut bytes = [0; 32];
        if BASE64_URL_SAFE_NO_PAD.decode_slice(signature, &mut bytes) != Ok(bytes.len()) {
            return None;
        }
        let is_right = |key: &[u8]| {
            let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return false };
            [name, "=", signed].iter().for_each(|part| mac.update(part.as_bytes()));
            // The comparison takes constant time.
            mac.verify_slice(&bytes).is_ok()
        };
        self.keys.iter().any(|key| is_right(key)).then_some(value)
    }
}

/// The secrets in the text of a file, one a line.
///
/// # Errors
/// What is wrong with the text.
pub(super) fn secrets(text: &str) -> Result<Vec<&str>, String> {
    let lines = || text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    if let Some((number, _)) = lines().find(|(_, line)| !line.is_empty() && line.len() < LEAST_SECRET) {
        return Err(format!("line {number} has fewer than {LEAST_SECRET} characters, which can be guessed"));
    }
    let secrets: Vec<&str> = lines().map(|(_, line)| line).filter(|line| !line.is_empty()).collect();
    if secrets.is_empty() {
        return Err(format!("nothing is in it: write a line of at least {LEAST_SECRET} characters"));
    }
    Ok(secrets)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "a-key-of-thirty-two-characters-at-least";

    fn signed(keys: &str) -> Signed {
        let mut signed = Signed::new(vec!["plan".into()], vec!["x-user".into()]);
        signed.set_keys(keys).expect("keys");
        signed
    }

    fn token(name: &str, value: &str, expiry: u64, key: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("a key");
        mac.update(format!("{name}={value}.{expiry}").as_bytes());
        let signature = BASE64_URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
        format!("{value}.{expiry}.{signature}")
    }

    #[test]
    fn a_signed_value_counts_until_it_ends() {
        let signed = signed(KEY);
        let good = token("plan", "gold.v2", 1000, KEY);
        assert_eq!(signed.value("plan", &good, 999), Some("gold.v2"));
        assert_eq!(signed.value("plan", &good, 1000), None, "it has ended");
        assert_eq!(signed.value("user", &good, 999), None, "another name");
        assert_eq!(signed.value("plan", &good.replace("gold", "blue"), 999), None);
        assert_eq!(signed.value("plan", &good.replace("1000", "9999"), 999), None);
        for end in 0..good.len() {
            assert_eq!(signed.value("plan", &good[..end], 999), None, "{}", &good[..end]);
        }
        for bad in ["", ".", "..", "gold", "gold.1000", "gold.+1000.AAAA", "gold.99999999999999999999999.AA"]
        {
            assert_eq!(signed.value("plan", bad, 999), None, "{bad}");
        }
    }

    #[test]
    fn the_signature_is_the_one_that_openssl_makes() {
        // printf %s 'plan=gold.4102444800' | openssl dgst -sha256 -hmac 'a-key-of-thirty-two-characters-at-least' -binary |
        // basenc --base64url | tr -d =
        let token = "gold.4102444800.SquNkrhVKFhfZClJ1YoDhrKHhcHeovZNb5OEZO-m0F8";
        assert_eq!(signed(KEY).cookie("plan", token), Some("gold"));
    }

    #[test]
    fn keys_rotate_and_names_that_are_not_signed_pass() {
        let other = "another-key-of-at-least-thirty-two-characters";
        let both = signed(&format!("{other}\n{KEY}\n"));
        let expiry = since_1970().as_secs() + 60;
        assert_eq!(both.cookie("plan", &token("plan", "a", expiry, KEY)), Some("a"));
        assert_eq!(both.cookie("plan", &token("plan", "b", expiry, other)), Some("b"));
        assert_eq!(both.header("X-User", &token("x-user", "7", expiry, KEY)), Some("7"));
        assert_eq!(
            (both.header("x-plan", "gold"), both.cookie("theme", "dark")),
            (Some("gold"), Some("dark"))
        );
        assert_eq!(both.header("x-user", "7"), None);
        assert!(Signed::default().set_keys("\n").is_err());
        assert!(Signed::default().set_keys("short").unwrap_err().contains("line 1 has fewer than 32"));
        assert!(!format!("{both:?}").contains(KEY));
    }
}
