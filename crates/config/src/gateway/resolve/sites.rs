//! Sites with their levels and classes, and how each level changes a request.

use super::deadlines;
use super::plants::{Plants, ServedBy};
use super::response_times::{self, Promised};
use crate::diagnostic::{Code, Complaint, Findings, Other};
use crate::gateway::keys::{ClassKeys, File, LevelKeys, MatchKeys, SiteKeys};
use crate::http::{HostPattern, Pattern};
use crate::syntax::{Located, OneOrMany, Pairs, Whole, Within};
use plimsoll_core::promises::{Class, Condition, Guarantee, LAST_PRIORITY, Level, MAX_LEVELS, Site};
use plimsoll_core::time::Duration;
use plimsoll_gateway::settings::Rewrite;
use std::collections::BTreeMap;
use std::ops::Range;

/// The engine's own classes: what matches no other, and what is exempt.
const BUILT_IN_CLASSES: [&str; 2] = ["default", "exempt"];
/// The name of the only level of a site that lists none.
const ONLY_LEVEL: &str = "full";

/// The sites of a file, and the rewrites of their levels.
pub(super) fn resolve(
    file: &File,
    plants: &Plants,
    findings: &mut Findings,
) -> (Vec<Site>, Vec<Vec<Rewrite>>) {
    let sites = &file.site.value.0;
    if sites.is_empty() {
        return implied(plants, findings);
    }
    super::unique(sites.iter().filter_map(|site| name_of(site.value.name.as_ref())), "sites", findings);
    hosts(sites, findings);
    class_count(sites, findings);
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

fn only_level() -> Level {
    Level { name: ONLY_LEVEL.to_owned(), plant: None, cost_ratio: None }
}

fn name_of(name: Option<&Located<crate::syntax::Name>>) -> Option<(&str, &Range<usize>)> {
    name.map(|name| (name.value.0.as_str(), &name.span))
}

fn text_of(name: Option<&Located<crate::syntax::Name>>) -> String {
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
        hosts: keys
            .host
            .iter()
            .flat_map(|hosts| hosts.value.0.iter().map(|host| host.value.0.clone()))
            .collect(),
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

/// As told; else a class that was promised a time comes before those that were promised none.
fn priority(keys: Option<&Located<Whole<1, 100>>>, has_promise: bool) -> u8 {
    let untold = if has_promise { 1 } else { LAST_PRIORITY };
    keys.map_or(untold, |priority| priority.value.0 as u8)
}

/// The hosts of the sites before.
#[derive(Default)]
struct KnownHosts<'a> {
    all: BTreeMap<&'a str, &'a Range<usize>>,
    /// Those with a star, each with the number of its site.
    patterns: Vec<(&'a str, &'a Range<usize>, usize)>,
}

/// A host belongs to one site, a narrow pattern comes before a wide one, and a site that takes every host comes last:
/// the first site that matches takes the request.
fn hosts(sites: &[Located<SiteKeys>], findings: &mut Findings) {
    let mut known = KnownHosts::default();
    let mut every: Option<&Range<usize>> = None;
    for (number, site) in sites.iter().enumerate() {
        let hosts = site.value.host.as_ref().map_or(&[][..], |hosts| &hosts.value.0);
        if let Some(every) = every {
            let complaint = Complaint::new(
                "no request reaches this site: one before it takes every host",
                "move the site without `host` to the end, or give it one",
            );
            findings.add_with(
                Code::Unreachable,
                &site.span,
                complaint,
                Other { span: every, what: "that one is" },
            );
        }
        for host in hosts.iter().filter(|_| every.is_none()) {
            host_is_reached(host, number, &mut known, findings);
        }
        if site.value.host.is_none() && site.sound || hosts.iter().any(|host| host.value.0 == "*") {
            every = every.or(Some(&site.span));
        }
    }
}

fn host_is_reached<'a>(
    host: &'a Located<HostPattern>,
    site: usize,
    known: &mut KnownHosts<'a>,
    findings: &mut Findings,
) {
    let Located { value: HostPattern(name), span, .. } = host;
    let wider = known.patterns.iter().find(|(wide, _, of)| *of != site && covers(wide, name));
    if let Some(first) = known.all.get(name.as_str()) {
        let message = format!("the host `{name}` is given twice");
        let complaint = Complaint::new(message, "keep it in one site: the first takes all its requests");
        findings.add_with(Code::Duplicate, span, complaint, Other { span: first, what: "it is" });
    } else if let Some((wide, first, _)) = wider {
        let message = format!("no request for `{name}` reaches this site");
        let complaint =
            Complaint::new(message, "move this site before that one: the first that matches is taken");
        let what = format!("`{wide}` takes them");
        findings.add_with(Code::Unreachable, span, complaint, Other { span: first, what: &what });
    }
    known.all.insert(name, span);
    if name.contains('*') {
        known.patterns.push((name, span, site));
    }
}

/// Whether every host that `narrow` matches is matched by `wide` too.
fn covers(wide: &str, narrow: &str) -> bool {
    // Neither end of `wide` holds a star, so a star of `narrow` is never taken for a letter of them.
    wide.split_once('*').is_some_and(|(start, end)| {
        let letters = narrow.len() - narrow.matches('*').count();
        letters >= start.len() + end.len() && narrow.starts_with(start) && narrow.ends_with(end)
    })
}

fn levels(
    keys: &[Located<LevelKeys>],
    site_plant: usize,
    plants: &Plants,
    findings: &mut Findings,
) -> (Vec<Level>, Vec<Rewrite>) {
    if keys.is_empty() {
        return (vec![only_level()], vec![Rewrite::default()]);
    }
    if let Some(first_too_many) = keys.get(MAX_LEVELS) {
        let message = format!("{} levels, where at most {MAX_LEVELS} may be", keys.len());
        findings.add(
            Code::TooMany,
            &first_too_many.span,
            Complaint::new(message, "leave out those nearest to another"),
        );
    }
    super::unique(keys.iter().filter_map(|level| name_of(level.value.name.as_ref())), "levels", findings);
    if let Some(cost) = keys.last().and_then(|level| level.value.cost.as_ref()) {
        let complaint = Complaint::new(
            "`cost` compares a level with the one above, and above the last is none",
            "leave it out here; the lowest quality comes first, the last level is full quality",
        );
        findings.add(Code::Conflict, &cost.span, complaint);
    }
    let mut served: Vec<(usize, Rewrite)> = Vec::new();
    let mut levels = Vec::new();
    for Located { value: level, span, sound } in keys {
        let by = ServedBy { upstream: level.upstream.as_ref(), folder: level.folder.as_ref() };
        let plant = plants.find(&by, findings);
        let this = (plant.unwrap_or(site_plant), rewrite(level));
        let same = served.iter().zip(keys).position(|(known, other)| *known == this && other.sound);
        if let Some(same) = same.filter(|_| *sound) {
            let complaint = Complaint::new(
                "this level is served like another: nothing would be saved",
                "give one of them a `prefix`, another `upstream` or `folder`, or `headers`",
            );
            let other = Other { span: &keys[same].span, what: "the other is" };
            findings.add_with(Code::Conflict, span, complaint, other);
        }
        served.push(this);
        let cost_ratio = level.cost.as_ref().map(|cost| cost.value.0);
        levels.push(Level { name: text_of(level.name.as_ref()), plant, cost_ratio });
    }
    for at in 0..keys.len() {
        served[at].1.falls_back = falls_back(at, keys, &served, plants, findings);
    }
    (levels, served.into_iter().map(|(_, rewrite)| rewrite).collect())
}

/// Whether a level falls back to the next, as it says; and why it cannot, if it cannot.
fn falls_back(
    at: usize,
    keys: &[Located<LevelKeys>],
    served: &[(usize, Rewrite)],
    plants: &Plants,
    findings: &mut Findings,
) -> bool {
    let Located { value: level, sound, .. } = &keys[at];
    if !level.fallback.value || !sound {
        return level.fallback.value;
    }
    let plant = served[at].0;
    let (what, help) = match served.get(at + 1) {
        None => {
            ("the last level has no next one", "leave `fallback` out here; the last level is full quality")
        }
        Some(_) if plants.is_folder(plant) => {
            ("a folder follows the `manifest.json` of `plimsoll adapt`", "leave `fallback` out")
        }
        Some((next, _)) if *next != plant => (
            "the next level is served by another: a request holds a place at one upstream alone",
            "leave `fallback` out, or serve both by one upstream, with a `prefix`",
        ),
        Some(_) => return true,
    };
    findings.add(Code::Conflict, &level.fallback.span, Complaint::new(what, help));
    false
}

fn rewrite(level: &LevelKeys) -> Rewrite {
    let headers = level.headers.iter().flat_map(|headers| &headers.value.0);
    Rewrite {
        prefix: level.prefix.as_ref().map_or(String::new(), |prefix| prefix.value.0.clone()),
        headers: headers.map(|(name, value)| (name.value.0.clone(), value.value.0.clone())).collect(),
        falls_back: false,
    }
}

/// The engine counts classes in 16 bits, over all sites, with each site's built-in ones.
fn class_count(sites: &[Located<SiteKeys>], findings: &mut Findings) {
    let mut count = 0;
    for site in sites {
        count += site.value.class.value.0.len() + BUILT_IN_CLASSES.len();
        if count > usize::from(u16::MAX) {
            let message =
                format!("more than {} classes up to this site, with two of each site's own", u16::MAX);
            findings.add(Code::TooMany, &site.span, Complaint::new(message, "leave out classes or sites"));
            return;
        }
    }
}

fn classes(site: &SiteKeys, findings: &mut Findings) -> Vec<Class> {
    let keys = &site.class.value.0;
    super::unique(keys.iter().filter_map(|class| name_of(class.value.name.as_ref())), "classes", findings);
    for name in keys.iter().filter_map(|class| class.value.name.as_ref()) {
        if BUILT_IN_CLASSES.contains(&name.value.0.as_str()) {
            let instead = match name.value.0.as_str() {
                "default" => {
                    "choose another name, or promise it to whoever matches no class under [[site]]: `delay` and `percentile`, \
                     `default_ratio`, `default_priority`"
                }
                _ => "choose another name, or say under [[site]] who is not controlled: `exempt`",
            };
            let complaint =
                Complaint::new(format!("every site has a class `{}` of its own", name.value.0), instead);
            findings.add(Code::Duplicate, &name.span, complaint);
        }
    }
    let class = |Located { value: class, .. }: &Located<ClassKeys>, findings: &mut Findings| {
        let Promised { delay, ratio } = response_times::of_class(class, site, findings);
        Class {
            name: text_of(class.name.as_ref()),
            condition: class
                .condition
                .as_ref()
                .map_or(Condition::default(), |keys| condition(keys, &keys.value.0, findings)),
            priority: priority(
                class.priority.as_ref(),
                delay.is_some() || class.deadline.is_some() || site.deadline.is_some(),
            ),
            deadline: deadlines::deadline(class.deadline.as_ref(), findings),
            prefer: class.prefer.as_ref().map(|prefer| prefer.value),
            delay,
            ratio,
        }
    };
    keys.iter().map(|keys| class(keys, findings)).collect()
}

pub(super) fn condition<T>(place: &Located<T>, keys: &MatchKeys, findings: &mut Findings) -> Condition {
    let given = [
        keys.path.is_some(),
        keys.method.is_some(),
        keys.header.as_ref().is_some_and(|header| !header.value.0.is_empty()),
        keys.cookie.as_ref().is_some_and(|cookie| !cookie.value.0.is_empty()),
        keys.client.is_some(),
    ];
    // A key that is there but wrong has its finding: then this one would only confuse.
    if !given.contains(&true) && place.sound {
        let complaint = Complaint::new(
            "this matches every request",
            "say which are meant, such as `path = \"/buy/*\"`; what matches no class is in `default` anyway",
        );
        findings.add(Code::Unreachable, &place.span, complaint);
    }
    Condition {
        paths: keys
            .path
            .iter()
            .flat_map(|list| list.value.0.iter().map(|path| path.value.0.clone()))
            .collect(),
        methods: keys
            .method
            .iter()
            .flat_map(|list| list.value.0.iter().map(|method| method.value.0.clone()))
            .collect(),
        headers: pairs(keys.header.as_ref(), |name| &name.0),
        cookies: pairs(keys.cookie.as_ref(), |name| &name.0),
        clients: keys
            .client
            .iter()
            .flat_map(|list| list.value.0.iter().map(|network| network.value))
            .collect(),
    }
}

fn pairs<N>(
    keys: Option<&Located<Pairs<N, OneOrMany<Pattern>>>>,
    name_of: fn(&N) -> &String,
) -> Vec<(String, String)> {
    let pairs = keys.iter().flat_map(|pairs| &pairs.value.0);
    pairs
        .flat_map(|(name, patterns)| {
            patterns.value.0.iter().map(|pattern| (name_of(&name.value).clone(), pattern.value.0.clone()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::covers;

    #[test]
    fn a_wide_pattern_covers_a_narrow_one() {
        assert!(covers("*", "shop.example"));
        assert!(covers("*.example", "api.example"));
        assert!(covers("*.example", "*.shop.example"));
        assert!(covers("api.*", "api.example"));
        assert!(!covers("*.shop.example", "*.example"));
        assert!(!covers("*.example", "example"));
        assert!(!covers("api.example", "api.example.org"));
        assert!(!covers("ab*bc", "abc"));
        assert!(!covers("a*", "*a"));
    }
}
