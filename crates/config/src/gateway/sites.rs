//! Sites: the plant that serves each, its promises, and its contract.

use super::classes::{self, ClassKeys, EXEMPT_ALL, MatchKeys, classes, condition, priority};
use super::deadlines::TypeKeys;
use super::file::{ConfigurationKeys, unique};
use super::headers::HeaderRuleKeys;
use super::http::{HeaderName, HostPattern};
use super::levels::{LevelKeys, ONLY_LEVEL, levels};
use super::plants::{CostKeys, Plants, costs};
use super::response_times::{self, ResponsePromise};
use super::values::ClientIdentity;
use super::{deadlines, hosts};
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{
    Located, Name, OneOrMany, Percentile, Rate, Ratio, RequestRate, Sections, Table, Text, Weight, Whole,
    listed, section,
};
use plimsoll_core::promises::{Choice, Guarantee, Identity, Prefer, Site};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::Rewrite;
use std::ops::Range;

section! { "[[site]]"
    /// A virtual server. A request belongs to the first site whose host matches.
    SiteKeys {
        /// The site's name in metrics, headers and logs.
        name: Name, required("give the site a name: `name = \"shop\"`");
        /// Hosts, without port; one `*` stands for anything. Absent: every host.
        host: OneOrMany<HostPattern>, optional;
        /// The upstream that serves it. May be left out where only one is defined, and where the last level names its own.
        upstream: Name, optional;
        /// The folder that serves it, instead of an upstream.
        folder: Name, optional;
        /// The identity of a client: its address, a header's value or a cookie's value.
        client: ClientIdentity, default(ClientIdentity(Identity::default()));
        /// Which requests get the better level when not all can.
        choice: Choice, default(Choice::default());
        /// The contract that is served at full quality whatever other sites do, except for requests that would miss their
        /// deadline at it. Absent: best effort, served from what the guarantees of others leave. A site that asks for more gets
        /// the larger of what its guarantee carries and its weighted share of the server (only the former with `share_excess =
        /// false`), at lower levels if needed.
        guarantee: Table<GuaranteeKeys>, optional;
        /// The site's share of the whole server while sites want more of it than there is, relative to the others'. The
        /// guarantee is a part of this share: beyond it the site gets something only where the share is more than the
        /// guarantee.
        weight: Weight, default(Weight(1.0));
        /// Whether the site may take more than its guarantee, of what the others leave. `false` holds it to its own, on an
        /// idle server too.
        share_excess: bool, default(true);
        /// Priority of the class `default`. Absent: 1 if it has a `delay` or a `deadline`, else after all classes that have
        /// one.
        default_priority: Whole<1, 100>, optional;
        /// The average time that its responses may take, from arrival to the server's last byte. It holds for each of its
        /// classes that has neither a `delay` nor a `ratio` of its own, `default` too.
        delay: Duration, optional;
        /// The percentage of responses that keep the `delay`. Without it the `delay` is a bound on the average.
        percentile: Percentile, optional;
        /// The `ratio` of the class `default`.
        default_ratio: Ratio, optional;
        /// Whether `ratio`s hold even if a worker must be left idle for it while a request waits.
        strict_ratios: bool, default(false);
        /// The time within which each of its requests that is admitted is answered, from arrival to the server's last byte. A
        /// request that could not be in time is served at a lighter level, or refused at once, with a `Retry-After` that tells
        /// when it could. Admission goes by the cost of requests, not by their number. It holds for each of its classes that
        /// has neither a `deadline` nor a `ratio` of its own, `default` too. With it the capacity plan allows contracts only
        /// 0.58 of the server, unless the upstream has a `ceiling`.
        deadline: Duration, optional;
        /// The percentage of admitted requests that are answered within their `deadline`. The higher it is, the sooner
        /// requests are refused.
        in_time: Percentile, default(Percentile(Site::IN_TIME));
        /// The preference of its deadlines where they cannot have both: no idle worker, or short waits.
        prefer: Prefer, default(Prefer::default());
        /// The request header in which your application announces the cost of a request, in seconds of service. It is
        /// believed from the gateway's `trusted_proxies` alone: a client would claim to cost nothing.
        cost_header: HeaderName, optional;
        /// Types of requests of about the same cost, matched in order, where deadlines are promised. A request that matches
        /// none is `static`, `audio`, `video` or `dynamic` by its method, path and query. Absent: types are found within
        /// these by the time that requests take.
        types as "type": Sections<TypeKeys>, default(Sections(Vec::new()));
        /// The costs of its requests, if they differ from the upstream's `costs`: a script is not a file.
        costs: Table<CostKeys>, optional;
        /// Requests that are never degraded nor rejected for the load, and come first: health checks. They hold half of the
        /// places at most, so that others are served too; name their `client` as well. Those of a named client need no
        /// `Host` of a site, since a balancer checks by address. They go as they came, without a level's prefix and
        /// headers: where every level has a prefix, their pages lie at the root beside the trees.
        exempt: Sections<MatchKeys>, default(Sections(Vec::new()));
        /// How request headers are changed on their way to the upstream, after the rules of `[gateway]`.
        request_headers: Table<HeaderRuleKeys>, optional;
        /// How response headers of the upstream or folder are changed, after the rules of `[gateway]`.
        response_headers: Table<HeaderRuleKeys>, optional;
        /// The log of its requests: a file, `"stdout"` or `"off"`. Absent: that of `[access_log]`.
        access_log: Text, optional;
        /// The levels of service, lowest quality first. Absent: one level, `full`, the site as it is.
        level: Sections<LevelKeys>, default(Sections(Vec::new()));
        /// Groups of requests, matched in order. A request that matches none is in the class `default`.
        class: Sections<ClassKeys>, default(Sections(Vec::new()));
    }
}

section! { "guarantee"
    /// A site's capacity contract: a rate, and a bandwidth if one is given, that are served at full quality whatever other
    /// sites do. If the contracts together need more than the server carries at current costs, a site that uses more than the
    /// utilization planned for its contract is degraded first; rejections come only after that.
    GuaranteeKeys {
        /// The most requests that it covers.
        rate: RequestRate, required("write the most requests that it covers: `rate = \"100/s\"`");
        /// The most delivered bytes that it covers. Absent: the bytes of full responses at that rate.
        bandwidth: Rate, optional;
        /// How much may come at once, as the time in which the contract would bring it; at least eight requests, and enough
        /// bytes for responses of different sizes. Where each page brings ten or more requests at once, write the time of
        /// twenty pages, and a `rate` a tenth above what comes: with less, some of them are not served as promised by
        /// chance alone.
        burst: Duration, default(Guarantee::BURST);
    }
}

/// The sites of a file, and the rewrites of their levels.
pub(super) fn resolve(
    file: &ConfigurationKeys,
    plants: &Plants,
    findings: &mut Findings,
) -> (Vec<Site>, Vec<Vec<Rewrite>>) {
    let sites = &file.site.value.0;
    if sites.is_empty() {
        return implied_site(plants, findings);
    }
    unique(sites.iter().filter_map(|site| name_of(site.value.name.as_ref())), "sites", findings);
    hosts::check(sites, findings);
    classes::check_count(sites, findings);
    let all: (Vec<Site>, _) = sites.iter().map(|keys| site(keys, plants, findings)).unzip();
    for (keys, site) in sites.iter().zip(&all.0) {
        let decides = |plant: usize| decides_itself(plants, plant);
        let others =
            || site.levels.iter().filter_map(|level| level.plant).filter(|plant| *plant != site.plant);
        if others().next().is_some() && others().chain([site.plant]).any(decides) {
            refuse!(findings, Conflict at &keys.span,
                "levels of several upstreams, and one of these decides itself",
                help: "serve all levels by the upstream that decides itself, or leave its `decides_itself` out");
        }
    }
    all
}

/// Warnings about priorities without effect: `default` has the same priority as a class, because it was promised a time.
pub(super) fn warnings(file: &ConfigurationKeys, sites: &[Site]) -> Vec<String> {
    let of_site = |(keys, site): (&Located<SiteKeys>, &Site)| {
        let Located { value: keys, .. } = keys;
        let has_it = |class: &&Located<ClassKeys>| {
            class.value.priority.as_ref().is_some_and(|own| own.value.0 as u8 == site.default_priority)
        };
        let class = keys.class.value.0.iter().filter(|_| keys.default_priority.is_none()).find(has_it)?;
        let promise = if site.default_delay.is_some() { "delay" } else { "deadline" };
        Some(format!(
            "site {}: class {} has priority {}, and so has `default`, since the site's `{promise}` holds for it: neither goes \
             first; write `default_priority = {}` under [[site]] if {1} is to",
            site.name,
            text_of(class.value.name.as_ref()),
            site.default_priority,
            site.default_priority + 1
        ))
    };
    file.site.value.0.iter().zip(sites).filter_map(of_site).collect()
}

fn decides_itself(plants: &Plants, plant: usize) -> bool {
    plants.plants.get(plant).is_some_and(|plant| plant.decides_itself)
}

/// The implied site of a file that lists none.
fn implied_site(plants: &Plants, findings: &mut Findings) -> (Vec<Site>, Vec<Vec<Rewrite>>) {
    if plants.plants.len() > 1 {
        refuse!(findings, MissingKey at &(0..0),
            "there are several upstreams or folders, and no site says which requests go where",
            help: "add a section `[[site]]` with a `name`, a `host` and an `upstream` or `folder` for each");
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

/// The number of the plant that serves a site: the plant that the site names, otherwise that of its last level, which is full
/// quality. An unknown plant of a level is reported where levels are read.
fn plant(keys: &SiteKeys, plants: &Plants, findings: &mut Findings) -> Option<usize> {
    if keys.upstream.is_some() || keys.folder.is_some() {
        return Some(plants.find(keys.upstream.as_ref(), keys.folder.as_ref(), findings).unwrap_or(0));
    }
    let last = &keys.level.value.0.last()?.value;
    let name = last.upstream.as_ref().or(last.folder.as_ref())?;
    Some(plants.plants.iter().position(|plant| plant.name == name.value.0).unwrap_or(0))
}

fn site(keys: &Located<SiteKeys>, plants: &Plants, findings: &mut Findings) -> (Site, Vec<Rewrite>) {
    response_times::check(keys, findings);
    deadlines::check(keys, findings);
    let Located { value: keys, span, sound } = keys;
    let plant = plant(keys, plants, findings).unwrap_or_else(|| {
        if *sound && plants.plants.len() > 1 {
            refuse!(findings, MissingKey at span,
                "this site does not say what serves it, and there are several",
                help: "add `upstream = \"...\"` or `folder = \"...\"`");
        }
        0
    });
    let (levels, rewrites) = levels(&keys.level.value.0, plant, plants, findings);
    let exempt = keys.exempt.value.0.iter();
    let exempt = exempt.map(|keys| condition(keys, &keys.value, EXEMPT_ALL, findings)).collect();
    let ResponsePromise { delay: default_delay, ratio: default_ratio } =
        response_times::of_default(keys, findings);
    let promised = default_delay.is_some() || (keys.deadline.is_some() && default_ratio.is_none());
    let decides_itself = decides_itself(plants, plant);
    let site = Site {
        name: text_of(keys.name.as_ref()),
        hosts: listed(&keys.host, |host| host.0.clone()),
        plant,
        levels,
        classes: classes(keys, decides_itself, findings),
        exempt,
        identity: keys.client.value.0.clone(),
        choice: keys.choice.value,
        guarantee: guarantee(keys, findings),
        weight: keys.weight.value.0,
        share_excess: keys.share_excess.value,
        default_priority: priority(keys.default_priority.as_ref(), promised && !decides_itself),
        deadline: deadlines::deadline(keys.deadline.as_ref(), findings),
        in_time: keys.in_time.value.0,
        prefer: keys.prefer.value,
        types: deadlines::types(keys, findings),
        cost_header: keys.cost_header.as_ref().map(|name| name.value.0.clone()),
        default_delay,
        default_ratio,
        strict_ratios: keys.strict_ratios.value,
        costs: costs(keys.costs.as_ref()),
    };
    (site, rewrites)
}

/// A site's contract.
fn guarantee(keys: &SiteKeys, findings: &mut Findings) -> Option<Guarantee> {
    let Some(Located { value: Table(guarantee), .. }) = &keys.guarantee else {
        if !keys.share_excess.value {
            refuse!(findings, Conflict at &keys.share_excess.span,
                "a site without a guarantee lives of what others leave: nothing would be served",
                help: "add `guarantee = { rate = \"100/s\" }`, or leave this out");
        }
        return None;
    };
    let rate = guarantee.rate.as_ref()?;
    if rate.value.0 <= 0.0 {
        refuse!(findings, OutOfRange at &rate.span,
            "a guarantee of nothing",
            help: "write the most requests that it covers, or leave `guarantee` out: then it is best effort");
    }
    let burst = &guarantee.burst;
    if !(Duration::from_millis(1)..=Duration::from_secs(3600)).contains(&burst.value) {
        refuse!(findings, OutOfRange at &burst.span,
            "a burst this short or long does not work",
            help: "write something from `\"1ms\"` to `\"1h\"`; `\"2s\"` leaves room for chance");
    }
    Some(Guarantee {
        rate: rate.value.0,
        bandwidth_bytes_per_second: guarantee.bandwidth.as_ref().map(|bandwidth| bandwidth.value.0),
        burst: burst.value,
    })
}
