//! Replaces the servers of an upstream whose names have other addresses than before. Everything else stays: promises, settings,
//! what was learned, and the servers whose addresses stay, with their connections and their health.

use crate::runtime::reload::Reloader;
use crate::settings::{Address, Backend, UpstreamSettings, UpstreamTls};
use crate::sync::lock;
use crate::worker::tables::{PlantRow, Tables};
use std::sync::Arc;

impl Reloader {
    /// Sets the addresses of an upstream, each with the name that its certificate must have if it speaks TLS. Requests under
    /// way finish at their servers. Returns the addresses that are new and those that are gone; `None` if there is no such
    /// upstream, or no address.
    ///
    /// # Errors
    /// A name that no certificate can be for. Nothing has changed then.
    pub fn readdress(
        &self,
        upstream: &str,
        addresses: &[(Address, Option<String>)],
    ) -> Result<Option<[Vec<Address>; 2]>, String> {
        // As in a reload, the lock keeps the tables unchanged until they are replaced.
        let _engine = lock(&self.engine);
        let before = self.shared.tables.current();
        let Some(plant) = before.upstream_named(upstream).filter(|_| !addresses.is_empty()) else {
            return Ok(None);
        };
        let PlantRow { backend: Backend::Upstream(was), .. } = &before.plants[plant] else { return Ok(None) };
        let of = |other: &UpstreamSettings| other.addresses.clone();
        let given: Vec<Address> = addresses.iter().map(|(address, _)| address.clone()).collect();
        let lacking = |these: &[Address], those: &[Address]| -> Vec<Address> {
            these.iter().filter(|address| !those.contains(address)).cloned().collect()
        };
        let changes = [lacking(&given, &of(was)), lacking(&of(was), &given)];
        let names: Vec<String> = addresses.iter().map(|(_, name)| name.clone().unwrap_or_default()).collect();
        // If an address passes from one name to another, it must show the other name's certificate from then on.
        let has_its_name = |tls: &UpstreamTls| {
            let before: Vec<_> = was.addresses.iter().zip(&tls.names).collect();
            given.iter().zip(&names).all(|pair| before.contains(&pair))
        };
        if changes.iter().all(Vec::is_empty) && was.tls.as_ref().is_none_or(has_its_name) {
            return Ok(Some(changes));
        }
        let tls = was.tls.as_ref().map(|tls| UpstreamTls { names, ..tls.clone() });
        let tables = before.with_servers(plant, UpstreamSettings { addresses: given, tls, ..was.clone() })?;
        self.shared.tables.publish(tables);
        let now = self.shared.tables.current();
        if let PlantRow { backend: Backend::Upstream(settings), upstream: Some(upstream), .. } =
            &now.plants[plant]
        {
            upstream.take_over(self.shared.clock.now(), settings);
        }
        Ok(Some(changes))
    }

    /// Has the status say what was wrong with the names of an upstream when they were looked up last, if something was.
    pub fn note_lookup(&self, upstream: &str, failure: Option<String>) {
        let tables = self.shared.tables.current();
        let row = tables.upstream_named(upstream).and_then(|plant| tables.plants[plant].upstream.as_ref());
        if let Some(upstream) = row {
            upstream.pool.roster().looked_up(failure);
        }
    }
}

impl Tables {
    /// The number of the upstream of this name, if it is in use.
    fn upstream_named(&self, name: &str) -> Option<usize> {
        let is_used =
            |row: &PlantRow| row.upstream.as_ref().is_some_and(|upstream| !upstream.pool.is_retired());
        (0..self.plants.len())
            .find(|plant| self.names.plant(*plant) == Some(name) && is_used(&self.plants[*plant]))
    }

    /// These tables with other servers for a plant.
    fn with_servers(&self, plant: usize, settings: UpstreamSettings) -> Result<Tables, String> {
        let mut next = self.clone();
        let row = &mut next.plants[plant];
        // The TLS configuration of its connections stays.
        let upstream = row.upstream.as_ref().map(|upstream| upstream.with(&settings, None)).transpose()?;
        (row.upstream, row.backend) = (upstream.map(Arc::new), Backend::Upstream(settings));
        Ok(next)
    }
}
