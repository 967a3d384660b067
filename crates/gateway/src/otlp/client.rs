//! Posts to a collector.

use std::sync::Arc;
use std::time::Duration;
use ureq::tls::{RootCerts, TlsConfig};

/// The most bytes that are read of an answer.
const MOST_ANSWER: u64 = 64 * 1024;
/// How long the collector has for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The result of a post.
#[derive(Debug)]
pub(crate) enum Delivery {
    Taken,
    /// The post may be tried again, for this reason.
    Later(String),
    /// The collector refuses the post, for this reason.
    Refused(String),
}

/// A client of a collector, which keeps its connection.
#[derive(Debug)]
pub(crate) struct CollectorClient(ureq::Agent);

impl CollectorClient {
    pub(crate) fn new() -> Self {
        let tls = TlsConfig::builder()
            .root_certs(RootCerts::PlatformVerifier)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
        let config = ureq::Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(PATIENCE))
            .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls.build());
        CollectorClient(config.build().into())
    }

    /// Posts an export request, and waits for the answer.
    pub(crate) fn post(&self, endpoint: &str, body: &[u8]) -> Delivery {
        match self.0.post(endpoint).header("content-type", "application/json").send(body) {
            Ok(mut answer) => {
                let status = answer.status();
                // The answer is read to its end, so that the connection can be used again.
                let _ = answer.body_mut().with_config().limit(MOST_ANSWER).read_to_vec();
                if status.is_success() {
                    return Delivery::Taken;
                }
                let why = format!("{endpoint} answers {status}");
                // The statuses after which OTLP wants another try.
                match status.as_u16() {
                    429 | 502..=504 => Delivery::Later(why),
                    _ => Delivery::Refused(why),
                }
            }
            Err(error) => Delivery::Later(format!("{endpoint}: {error}")),
        }
    }
}
