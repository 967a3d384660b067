//! What a request truly takes of one worker, for the schemes that are assumed to know it.

use crate::request::Request;
use crate::workload::{Version, Workload};
use plimsoll_core::promises::Promises;
use plimsoll_core::time::Duration;

/// The true costs, by plant and by site.
pub(in crate::front) struct Truth {
    plants: Vec<PlantTruth>,
    /// The highest level of each site.
    highest: Vec<Version>,
}

#[derive(Clone, Copy)]
struct PlantTruth {
    fixed_seconds: f64,
    seconds_per_byte: f64,
}

impl Truth {
    pub(super) fn new(promises: &Promises, workload: &Workload) -> Self {
        let plants = workload.plants.iter().map(|plant| PlantTruth {
            fixed_seconds: plant.service.as_secs_f64(),
            seconds_per_byte: plant.service_per_byte,
        });
        let highest = (0..promises.sites.len())
            .map(|site| workload.versions.get(site).and_then(|versions| versions.last()).copied());
        Truth {
            plants: plants.collect(),
            highest: highest.map(|version| version.unwrap_or(Version::FULL)).collect(),
        }
    }

    /// Service time at the highest level. Exact where the request brings its draw, else the mean.
    pub(super) fn service(&self, plant: usize, site: u16, request: &Request) -> Duration {
        let PlantTruth { fixed_seconds, seconds_per_byte } = self.plants[plant];
        let version = self.highest[usize::from(site)];
        let of_bytes = |bytes: f64| fixed_seconds + seconds_per_byte * bytes;
        let bytes = request.bytes as f64;
        let mean = match (request.service, version.cost) {
            (Some(full), cost) => full.as_secs_f64() * cost.unwrap_or(version.bytes),
            (None, Some(cost)) => of_bytes(bytes) * cost,
            (None, None) => of_bytes(bytes * version.bytes),
        };
        Duration::try_from_secs_f64(mean * request.work.unwrap_or(1.0)).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::promises::{Plant, Site};

    #[test]
    fn fixed_and_per_byte_or_its_own_times_the_draw() {
        let promises = Promises::of(Plant::new("origin", 8), Site::new("site", &["light", "full"]));
        let plant = crate::workload::Plant {
            service: Duration::from_millis(10),
            service_per_byte: 1e-6,
            ..crate::front::limit::limited::tests::truth()
        };
        let mut workload = Workload { plants: vec![plant], ..Workload::default() };
        let mut request = Request { bytes: 5000, ..Request::default() };
        let of = |workload: &Workload, request: &Request| {
            Truth::new(&promises, workload).service(0, 0, request).as_micros()
        };
        assert_eq!(of(&workload, &request), 15_000);
        request.work = Some(2.0);
        assert_eq!(of(&workload, &request), 30_000);
        request.service = Some(Duration::from_millis(7));
        assert_eq!(of(&workload, &request), 14_000);
        // The highest level alone counts.
        let light = Version { cost: Some(0.1), bytes: 0.1 };
        workload.versions = vec![vec![light, Version { cost: Some(0.5), bytes: 0.5 }]];
        assert_eq!(of(&workload, &request), 7_000);
        workload.versions = vec![vec![light, Version { cost: None, bytes: 0.2 }]];
        assert_eq!(of(&workload, &request), 2_800);
        request.service = None;
        assert_eq!(of(&workload, &request), 22_000);
    }
}
