//! The true costs of the levels of service, relative to full quality.
//!
//! Both files state a level relative to the level above, but the simulator wants it relative to the full level, so the ratios
//! are multiplied from the top down.

use super::keys::{VersionKeys, VersionsKeys, WorkloadKeys};
use super::resolve::{WorkloadInputs, unknown_name};
use crate::diagnostic::{Findings, refuse};
use plimsoll_core::promises::{Level, Promises, Site};
use plimsoll_sim::workload::Version;

/// The assumed cost of a level relative to the level above, if nothing is given.
const ASSUMED: f64 = 0.25;

/// The levels as the promises describe them, and what was assumed.
pub(super) fn as_promised(promises: &Promises) -> (Vec<Vec<Version>>, Vec<String>) {
    let mut assumptions = Vec::new();
    let versions =
        promises.sites.iter().map(|site| of_site(site, None, promises, &mut assumptions)).collect();
    (versions, assumptions)
}

/// The true levels, one list for each of the promises' sites, and what was assumed.
pub(super) fn resolve(
    file: &WorkloadKeys,
    inputs: WorkloadInputs<'_>,
    findings: &mut Findings,
) -> (Vec<Vec<Version>>, Vec<String>) {
    let WorkloadInputs { promises, reading, .. } = inputs;
    let sites: Vec<&str> = promises.sites.iter().map(|site| site.name.as_str()).collect();
    for (name, keys) in file.site.value.0.iter().filter(|_| !reading.compared) {
        match promises.sites.iter().find(|site| site.name == name.value) {
            Some(site) => levels_exist(site, &keys.value, findings),
            None => unknown_name(name, "site", &sites, findings),
        }
    }
    let mut assumptions = Vec::new();
    let versions = promises.sites.iter().map(|site| {
        let keys = file.site.value.0.iter().find(|(name, _)| name.value == site.name);
        of_site(site, keys.map(|(_, keys)| &keys.value), promises, &mut assumptions)
    });
    (versions.collect(), assumptions)
}

fn levels_exist(site: &Site, keys: &VersionsKeys, findings: &mut Findings) {
    let levels: Vec<&str> = site.levels.iter().map(|level| level.name.as_str()).collect();
    for (name, level) in &keys.level.value.0 {
        if !levels.contains(&name.value.as_str()) {
            unknown_name(name, "level of this site", &levels, findings);
        } else if levels.last() == Some(&name.value.as_str()) {
            refuse!(findings, Conflict at &level.span,
                "the last level is full quality: the others are compared with it",
                help: "leave it out; `[[stream.page]]` says how large pages are, `[plant.NAME]` what they take");
        }
    }
}

/// The levels of one site, lowest quality first.
fn of_site(
    site: &Site,
    keys: Option<&VersionsKeys>,
    promises: &Promises,
    assumptions: &mut Vec<String>,
) -> Vec<Version> {
    let mut versions = vec![Version::FULL];
    // The cost of the level above so far. A level that takes the server's time for its bytes has no ratio of its own.
    let mut cost = 1.0;
    for (level, above) in site.levels.iter().rev().skip(1).zip(site.levels.iter().rev()) {
        let given =
            keys.and_then(|keys| keys.level.value.0.iter().find(|(name, _)| name.value == level.name));
        let (ratio, assumption) = relative(level, above, given.map(|(_, keys)| &keys.value), site, promises);
        assumptions.extend(
            assumption.map(|what| format!("site {}: level {} is assumed {what}", site.name, level.name)),
        );
        let bytes = versions.last().map_or(1.0, |version| version.bytes) * ratio.bytes;
        cost *= ratio.cost.unwrap_or(1.0);
        versions.push(Version { cost: ratio.cost.map(|_| cost), bytes });
    }
    versions.reverse();
    versions
}

/// A level's ratio to the level above, and what had to be assumed.
fn relative(
    level: &Level,
    above: &Level,
    keys: Option<&VersionKeys>,
    site: &Site,
    promises: &Promises,
) -> (Version, Option<String>) {
    let (site, name, above) = (&site.name, &level.name, &above.name);
    let cost = keys.and_then(|keys| keys.cost.as_ref()).map(|cost| cost.value.0).or(level.cost_ratio);
    let bytes = keys.and_then(|keys| keys.bytes.as_ref()).map(|bytes| bytes.value.0);
    let (cost, bytes, assumption) = match (cost, bytes, level.plant) {
        (Some(cost), Some(bytes), _) => (Some(cost), bytes, None),
        (Some(cost), None, _) => {
            let what = format!("to save bytes as it saves time, down to {cost} of level {above}");
            (Some(cost), cost, Some(what))
        }
        // If the level is on another server, it takes that server's own time.
        (None, Some(bytes), Some(_)) => (None, bytes, None),
        (None, Some(bytes), None) => {
            let what = "to take what the server takes for its bytes, as no cost of it is given";
            (None, bytes, Some(what.to_owned()))
        }
        (None, None, Some(plant)) => {
            let plant = promises.plants.get(plant).map_or("", |plant| plant.name.as_str());
            let what = format!("to have the bytes of level {above}, and to take what {plant} takes for them");
            (None, 1.0, Some(what))
        }
        (None, None, None) => {
            let what = format!(
                "to take {ASSUMED} of the time and of the bytes of level {above}; say what it takes by \
                 `cost` of the level in the configuration, or in a workload under `[site.{site}.level.{name}]`"
            );
            (Some(ASSUMED), ASSUMED, Some(what))
        }
    };
    (Version { cost, bytes }, assumption)
}
