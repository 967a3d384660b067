//! Sites: what serves each, what each was promised, and its contract.

use super::classes::{self, classes, condition, priority};
use super::levels::{ONLY_LEVEL, levels};
use super::plants::{Plants, ServedBy};
use super::response_times::{self, Promised};
use super::{deadlines, hosts};
use crate::diagnostic::{Code, Complaint, Findings};
use crate::gateway::keys::{ConfigurationKeys, SiteKeys};
use crate::syntax::{Located, Name, Within, listed};
use plimsoll_core::promises::{Guarantee, Site};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::Rewrite;
use std::ops::Range;

/// The sites of a file, and the rewrites of their levels.
pub(super) fn resolve(
    file: &ConfigurationKeys,
    plants: &Plants,
    findings: &mut Findings,
) -> (Vec<Site>, Vec<Vec<Rewrite>>) {
    let sites = &file.site.value.0;
    if sites.is_empty() {
        return implied(plants, findings);
    }
    super::unique(sites.iter().filter_map(|site| name_of(site.value.name.as_ref())), "sites", findings);
    hosts::check(sites, findings);
    classes::check_count(sites, findings);
    sites.iter().map(|keys| site(keys, plants, findings)).unzip()
}

/// The site of a file that lists none.
fn implied(plants: &Plants, findings: &mut Findings) -> (Vec<Site>, Vec<Vec<Rewrite>>) {
    if plants.plants.len() > 1 {
        let complaint = Complaint::new(
            "there are several upstreams or folders, and no site says which requests go where",
            "add a section `[[site]]` with a `name`, a `host` and an `upstream` or `folder` for each",
        );
        findings.add(Code::MissingKey, &(0..0), complaint);
    }
    let name = plants.plants.first().map_or("", |plant| plant.name.as_str());
    let site = Site::new(name, &[ONLY_LEVEL]);
    (vec![site], vec![vec![Rewrite::default()]])
}

pub(super) fn name_of(name: Option<&Located<Name>>) -> Option<(&str, &Range<usize>)> {
    name.map(|name| (name.value.0.as_str(), &name.span))
}

pub(super) fn text_of(name: Option<&Located<Name>>) -> String {
    name.map_or(String::new(), |name| name.value.0.clone())
}

fn site(keys: &Located<SiteKeys>, plants: &Plants, findings: &mut Findings) -> (Site, Vec<Rewrite>) {
    response_times::check(keys, findings);
    deadlines::check(keys, findings);
    let Located { value: keys, span, sound } = keys;
    let by = ServedBy { upstream: keys.upstream.as_ref(), folder: keys.folder.as_ref() };
    if *sound && by.upstream.is_none() && by.folder.is_none() && plants.plants.len() > 1 {
        let complaint = Complaint::new(
            "this site does not say what serves it, and there are several",
            "add `upstream = \"...\"` or `folder = \"...\"`",
        );
        findings.add(Code::MissingKey, span, complaint);
    }
    let plant = plants.find(&by, findings).unwrap_or(0);
    let (levels, rewrites) = levels(&keys.level.value.0, plant, plants, findings);
    let exempt = keys.exempt.value.0.iter().map(|keys| condition(keys, &keys.value, findings)).collect();
    let Promised { delay: default_delay, ratio: default_ratio } = response_times::of_default(keys, findings);
    let site = Site {
        name: text_of(keys.name.as_ref()),
        hosts: listed(&keys.host, |host| host.0.clone()),
        plant,
        levels,
        classes: classes(keys, findings),
        exempt,
        identity: keys.client.value.0.clone(),
        choice: keys.choice.value,
        guarantee: guarantee(keys, findings),
        weight: keys.weight.value.0,
        share_excess: keys.share_excess.value,
        default_priority: priority(
            keys.default_priority.as_ref(),
            default_delay.is_some() || keys.deadline.is_some(),
        ),
        deadline: deadlines::deadline(keys.deadline.as_ref(), findings),
        prefer: keys.prefer.value,
        types: deadlines::types(keys, findings),
        cost_header: keys.cost_header.as_ref().map(|name| name.value.0.clone()),
        default_delay,
        default_ratio,
        strict_ratios: keys.strict_ratios.value,
        costs: super::plants::costs(keys.costs.as_ref()),
    };
    (site, rewrites)
}

/// A site's contract.
fn guarantee(keys: &SiteKeys, findings: &mut Findings) -> Option<Guarantee> {
    let Some(Located { value: Within(guarantee), .. }) = &keys.guarantee else {
        if !keys.share_excess.value {
            let complaint = Complaint::new(
                "a site without a guarantee lives of what others leave: nothing would be served",
                "add `guarantee = { rate = \"100/s\" }`, or leave this out",
            );
            findings.add(Code::Conflict, &keys.share_excess.span, complaint);
        }
        return None;
    };
    let rate = guarantee.rate.as_ref()?;
    if rate.value.0 <= 0.0 {
        let complaint = Complaint::new(
            "a guarantee of nothing",
            "write the most requests that it covers, or leave `guarantee` out: then it is best effort",
        );
        findings.add(Code::OutOfRange, &rate.span, complaint);
    }
    let burst = &guarantee.burst;
    if !(Duration::from_millis(1)..=Duration::from_secs(3600)).contains(&burst.value) {
        let complaint = Complaint::new(
            "a burst this short or long does not work",
            "write something from `\"1ms\"` to `\"1h\"`; `\"2s\"` leaves room for chance",
        );
        findings.add(Code::OutOfRange, &burst.span, complaint);
    }
    Some(Guarantee {
        rate: rate.value.0,
        bandwidth_bytes_per_second: guarantee.bandwidth.as_ref().map(|bandwidth| bandwidth.value.0),
        burst: burst.value,
    })
}
