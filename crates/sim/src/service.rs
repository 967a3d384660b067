//! What a request takes of its plant at its level of service.
//!
//! At full quality a request takes its own service time, or else the server's fixed part and its part for each byte. At another
//! level it takes the share of that which the workload gives, or, if the workload gives none, what the server takes for fewer
//! bytes.

use crate::distribution::Distribution;
use crate::front::Start;
use crate::plant::Work;
use crate::request::Request;
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

/// What a request would take at full quality.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FullService {
    pub(crate) bytes: u64,
    /// The request's own mean time, if it differs from what the server takes for these bytes.
    pub(crate) service: Option<Duration>,
    /// The factor on the mean, drawn from its law.
    pub(crate) factor: f64,
}

impl FullService {
    pub(crate) fn of(request: &Request, factor: f64) -> Self {
        FullService { bytes: request.bytes, service: request.service, factor }
    }
}

/// What is known before a run about the service of all its requests.
pub(crate) struct ServicePlan {
    plants: Vec<Costs>,
    sites: Vec<Site>,
}

impl ServicePlan {
    pub(crate) fn new(promises: &Promises, workload: &Workload) -> Self {
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
    pub(crate) fn draw(&self, site: u16, random: &mut Random) -> f64 {
        self.plants[self.sites[usize::from(site)].plant].law.draw(random)
    }

    /// Whether a level is lower than full quality.
    pub(crate) fn is_degraded(&self, site: u16, level: u8) -> bool {
        usize::from(level) < self.sites[usize::from(site)].versions.len()
    }

    /// The plant of a site, and its highest level.
    pub(crate) fn full(&self, site: u16) -> (usize, u8) {
        let Site { plant, versions } = &self.sites[usize::from(site)];
        (*plant, versions.len() as u8)
    }

    /// The work of a request that starts.
    pub(crate) fn work(&self, site: u16, start: Start, full: FullService) -> Work {
        let version = self.sites[usize::from(site)].versions[usize::from(start.level) - 1];
        let plant = &self.plants[start.plant];
        let full_bytes = full.bytes as f64;
        let bytes = full_bytes * version.bytes;
        let mean_ns = match (full.service, version.cost) {
            (Some(own), cost) => own.as_nanos() as f64 * cost.unwrap_or(version.bytes),
            (None, Some(cost)) => (plant.fixed_ns + plant.per_byte_ns * full_bytes) * cost,
            (None, None) => plant.fixed_ns + plant.per_byte_ns * bytes,
        };
        // The cast saturates, so a service that never ends stays one.
        Work { service: Duration::from_nanos((mean_ns * full.factor) as u64), bytes: bytes as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::tests::{promises, truth};
    use plimsoll_core::request::Reason;

    #[test]
    fn fixed_and_per_byte_or_its_own_times_the_draw() {
        let plant =
            crate::workload::Plant { service: Duration::from_millis(10), service_per_byte: 1e-6, ..truth() };
        let mut workload = Workload { plants: vec![plant], ..Workload::default() };
        let mut request = FullService { bytes: 5000, service: None, factor: 1.0 };
        let of = |workload: &Workload, request: FullService| {
            let start = Start { plant: 0, level: 2, reason: Reason::Full };
            ServicePlan::new(&promises(), workload).work(0, start, request).service.as_micros()
        };
        assert_eq!(of(&workload, request), 15_000);
        request.factor = 2.0;
        assert_eq!(of(&workload, request), 30_000);
        request.service = Some(Duration::from_millis(7));
        assert_eq!(of(&workload, request), 14_000);
        // Only the level that starts counts.
        let light = Version { cost: Some(0.1), bytes: 0.1 };
        workload.versions = vec![vec![light, Version { cost: Some(0.5), bytes: 0.5 }]];
        assert_eq!(of(&workload, request), 7_000);
        workload.versions = vec![vec![light, Version { cost: None, bytes: 0.2 }]];
        assert_eq!(of(&workload, request), 2_800);
        request.service = None;
        assert_eq!(of(&workload, request), 22_000);
    }
}
