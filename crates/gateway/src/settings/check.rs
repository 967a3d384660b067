//! Whether settings fit the promises.

use super::{Backend, Settings};
use plimsoll_core::promises::Promises;

/// Checks that the settings' lists match the promises.
///
/// # Errors
/// The mismatch, and what to do about it.
pub(crate) fn check(settings: &Settings, promises: &Promises) -> Result<(), String> {
    if settings.backends.len() != promises.plants.len() {
        let (backends, plants) = (settings.backends.len(), promises.plants.len());
        return Err(format!("{plants} plants have {backends} backends: give one for each"));
    }
    for (backend, plant) in settings.backends.iter().zip(&promises.plants) {
        if matches!(backend, Backend::Upstream(upstream) if upstream.addresses.is_empty()) {
            return Err(format!("the upstream {} has no address: give at least one", plant.name));
        }
    }
    if settings.listen.is_empty() {
        return Err("no address to listen on: give at least one".to_owned());
    }
    if settings.listen.iter().any(|listener| listener.tls)
        && settings.tls.as_ref().is_none_or(|tls| tls.certificates.is_empty())
    {
        return Err("a listener that speaks TLS needs a certificate: give at least one".to_owned());
    }
    Ok(())
}
