//! The dashboard: one page that is whole in itself and loads nothing but the stream `/live`.
//!
//! The page is built from the folder dashboard/ by `make dashboard`, and kept in the tree, so that building the gateway needs
//! no Node. Its policy allows its own style and script by their hashes, and nothing else: a name that a configuration or a
//! request brought along could not run, were it ever written into the page as markup.

use super::live::AdminBody;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::Response;
use hyper::body::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const PAGE: &str = include_str!("dashboard.html");

/// The content security policy of the page.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = hash(between(PAGE, "<style>", "</style>"));
    let script = hash(between(PAGE, "<script type=\"module\">", "</script>"));
    let policy = format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    // Words and base64 are visible ASCII.
    HeaderValue::try_from(policy).unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'"))
});

/// The page, for a browser.
pub(super) fn page() -> Response<AdminBody> {
    let mut response = Response::new(AdminBody::Whole(Bytes::from_static(PAGE.as_bytes())));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY.clone());
    for (name, value) in [
        (CACHE_CONTROL, "no-store"),
        (VARY, "accept"),
        (REFERRER_POLICY, "no-referrer"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A report page, which loads nothing either. Its policy separates whatever it contains from this listener's other pages.
pub(super) fn report(page: String) -> Response<AdminBody> {
    let mut response = Response::new(AdminBody::from(page));
    let policy = "sandbox allow-scripts allow-popups; default-src 'none'; script-src 'unsafe-inline'; \
                  style-src 'unsafe-inline'; img-src data:";
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn between<'a>(text: &'a str, from: &str, until: &str) -> &'a str {
    let inside = text.split_once(from).map_or("", |(_, rest)| rest);
    inside.split_once(until).map_or("", |(inside, _)| inside)
}

fn hash(text: &str) -> String {
    format!("sha256-{}", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_names_what_the_page_has_and_nothing_that_it_could_load() {
        let policy = page().headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(!policy.contains(&hash("")) && policy.matches("sha256-").count() == 2, "{policy}");
        assert_eq!(PAGE.matches("<script").count(), 1);
        assert_eq!(PAGE.matches("<style").count(), 1);
        for outside in ["http://", "https://", "src=\"/", "@import", "onclick="] {
            let found = PAGE.matches(outside).count();
            // The name spaces of SVG and XHTML look like addresses, but nothing is loaded from them.
            let names = PAGE.matches("http://www.w3.org/").count();
            assert_eq!(found - if outside == "http://" { names } else { 0 }, 0, "{outside}");
        }
    }
}
