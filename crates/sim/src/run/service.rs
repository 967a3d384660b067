//! What a request takes of its plant at its level.
//!
//! At full quality a request takes its own service time, or the server's fixed part and its part for each byte. At
//! another level it takes the share that the workload gives, or, where it gives none, what the server takes for fewer
//! bytes.

use super::flight::Flight;
use crate::distribution::Distribution;
use crate::front::Start;
use crate::plant::Work;
use crate::workload::{Version, Workload};
use plimsoll_core::promises::Promises;
use plimsoll_core::random::Random;
use plimsoll_core::time::Duration;

/// A plant's law and costs (ns of one worker).
struct Costs {
    law: Distribution,
    fixed_ns: f64,
    per_byte_ns: f64,
}

/// A site's plant and levels.
struct Site {
    plant: usize,
    /// Levels 1..=M.
    versions: Vec<Version>,
}

/// What is known before a run about all its requests.
pub(super) struct ServicePlan {
    plants: Vec<Costs>,
    sites: Vec<Site>,
}

impl ServicePlan {
    pub(super) fn new(promises: &Promises, workload: &Workload) -> Self {
        let costs = workload.plants.iter().map(|plant| Costs {
            law: Distribution::new(&plant.law),
            fixed_ns: plant.service.as_secs_f64() * 1e9,
            per_byte_ns: plant.service_per_byte * 1e9,
        });
        let sites = promises.sites.iter().enumerate().map(|(number, site)| {
            let given = workload.versions.get(number).map_or(&[][..], Vec::as_slice);
            let version = |level: usize| given.get(level).copied().unwrap_or(Version::FULL);
            Site { plant: site.plant, versions: (0..site.levels.len()).map(version).collect() }
        });
        ServicePlan { plants: costs.collect(), sites: sites.collect() }
    }

    /// The factor of a request's service time, drawn by the law of its site's plant.
    pub(super) fn draw(&self, site: u16, random: &mut Random) -> f64 {
        self.plants[self.sites[usize::from(site)].plant].law.draw(random)
    }

    /// Whether it is less than the full quality.
    pub(super) fn is_degraded(&self, site: u16, level: u8) -> bool {
        usize::from(level) < self.sites[usize::from(site)].versions.len()
    }

    /// What a request that starts takes.
    pub(super) fn work(&self, flight: &Flight, start: Start) -> Work {
        let version = self.sites[usize::from(flight.site)].versions[usize::from(start.level) - 1];
        let plant = &self.plants[start.plant];
        let full_bytes = flight.bytes as f64;
        let bytes = full_bytes * version.bytes;
        let mean_ns = match (flight.service, version.cost) {
            (Some(full), cost) => full.as_nanos() as f64 * cost.unwrap_or(version.bytes),
            (None, Some(cost)) => (plant.fixed_ns + plant.per_byte_ns * full_bytes) * cost,
            (None, None) => plant.fixed_ns + plant.per_byte_ns * bytes,
        };
        // A cast saturates: a service without an end stays one.
        Work { service: Duration::from_nanos((mean_ns * flight.work) as u64), bytes: bytes as u64 }
    }
}
