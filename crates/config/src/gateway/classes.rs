//! Classes of a site, and the conditions that requests of a class meet.

use super::deadlines;
use super::file::unique;
use super::hosts::covers;
use super::http::{CookieName, HeaderName, Method, PathPattern, Pattern, QueryKey};
use super::response_times::{self, ResponsePromise};
use super::sites::{SiteKeys, name_of, text_of};
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Located, Name, OneOrMany, Pairs, Percentile, Ratio, Table, Whole, listed, section};
use plimsoll_core::promises::{Class, Condition, LAST_PRIORITY, Network, Prefer};
use plimsoll_core::time::Duration;

section! { "[[site.class]]"
    /// A group of a site's requests that may have promises of its own.
    ClassKeys {
        /// The class's name in metrics, headers and logs.
        name: Name, required("give the class a name: `name = \"premium\"`");
        /// The condition by which a request belongs to the class. The first class whose condition holds takes it.
        condition as "match": Table<MatchKeys>, required("say who belongs to it: `match = { path = \"/buy/*\" }`");
        /// 1 is the highest. Lower classes of a site are degraded first, then rejected, and wait longer. Absent: 1 if it has
        /// a `delay` or a `deadline`, else after all that have one. Before a server that `decides_itself` a promised
        /// time is no priority. Priorities are strict: a higher one has full pages before a lower one has any, so under load
        /// clients of the lower one may all be rejected although light pages for everybody would fit. If that is not meant,
        /// give both the same priority, or make the lower one a site of its own with a `guarantee`.
        priority: Whole<1, 100>, optional;
        /// As the site's, for this class. It does not go beside a `ratio`.
        deadline: Duration, optional;
        /// As the site's, for this class.
        in_time: Percentile, optional;
        /// As the site's, for this class.
        prefer: Prefer, optional;
        /// The average time that its responses may take, from arrival to the server's last byte. The loop keeps as many
        /// workers for the class as that needs.
        delay: Duration, optional;
        /// The percentage of responses that keep the `delay`. Without it the `delay` is a bound on the average.
        percentile: Percentile, optional;
        /// How long its responses take relative to those of the site's other classes that have a ratio: a class with 2 has
        /// twice the response time of a class with 1. It takes the place of a `delay` and of a `deadline`, the site's too.
        ratio: Ratio, optional;
    }
}

section! { "match"
    /// A condition on requests: all keys that are given must hold, and a key holds if any of its values does. In patterns,
    /// one `*` stands for any run of characters. At least one key.
    MatchKeys {
        /// Patterns of the path, without the query.
        path: OneOrMany<PathPattern>, optional;
        /// Methods of the request, such as `"POST"`.
        method: OneOrMany<Method>, optional;
        /// Names of keys that the query has: `deep` of `?page=2&deep=1`.
        query: OneOrMany<QueryKey>, optional;
        /// Header names, and patterns of their values. One of these headers is enough, also where several are named.
        header: Pairs<HeaderName, OneOrMany<Pattern>>, optional;
        /// Cookie names, and patterns of their values. One of these cookies is enough.
        cookie: Pairs<CookieName, OneOrMany<Pattern>>, optional;
        /// Networks or addresses of clients.
        client: OneOrMany<Network>, optional;
    }
}

/// The classes that the engine adds to each site: `default` and `exempt`.
const BUILT_IN_CLASSES: usize = 2;

/// Refuses too many classes: the engine counts the classes of all sites, including each site's built-in ones, in 16 bits.
pub(super) fn check_count(sites: &[Located<SiteKeys>], findings: &mut Findings) {
    let mut count = 0;
    for site in sites {
        count += site.value.class.value.0.len() + BUILT_IN_CLASSES;
        if count > usize::from(u16::MAX) {
            refuse!(findings, TooMany at &site.span,
                format!("more than {} classes up to this site, with two of each site's own", u16::MAX),
                help: "leave out classes or sites");
            return;
        }
    }
}

/// The classes of a site.
pub(super) fn classes(site: &SiteKeys, decides_itself: bool, findings: &mut Findings) -> Vec<Class> {
    let keys = &site.class.value.0;
    unique(keys.iter().filter_map(|class| name_of(class.value.name.as_ref())), "classes", findings);
    for name in keys.iter().filter_map(|class| class.value.name.as_ref()) {
        let help = match name.value.0.as_str() {
            "default" => {
                "choose another name, or promise it to whoever matches no class under [[site]]: `delay` and `percentile`, \
                 `default_ratio`, `default_priority`"
            }
            "exempt" => "choose another name, or say under [[site]] who is not controlled: `exempt`",
            _ => continue,
        };
        refuse!(findings, Duplicate at &name.span,
            format!("every site has a class `{}` of its own", name.value.0), help: help);
    }
    check_reach(keys, findings);
    let class = |Located { value: class, .. }: &Located<ClassKeys>, findings: &mut Findings| {
        let ResponsePromise { delay, ratio } = response_times::of_class(class, site, findings);
        let promised = delay.is_some() || class.deadline.is_some() || deadlines::has_the_sites(class, site);
        Class {
            name: text_of(class.name.as_ref()),
            condition: match_condition(class.condition.as_ref(), findings),
            priority: priority(class.priority.as_ref(), promised && !decides_itself),
            deadline: deadlines::deadline(class.deadline.as_ref(), findings),
            in_time: class.in_time.as_ref().map(|in_time| in_time.value.0),
            prefer: class.prefer.as_ref().map(|prefer| prefer.value),
            delay,
            ratio,
        }
    };
    keys.iter().map(|keys| class(keys, findings)).collect()
}

/// If a site has more classes than this, they are not compared with each other.
const MOST_COMPARED: usize = 2000;

/// Refuses a class whose requests would all belong to an earlier class.
fn check_reach(keys: &[Located<ClassKeys>], findings: &mut Findings) {
    let matches = |class: &Located<ClassKeys>| {
        let keys = class.value.condition.as_ref().filter(|keys| keys.sound)?;
        // Errors in the condition itself are reported where the class is read.
        let condition = condition(keys, &keys.value.0, OTHERS_ARE_DEFAULT, &mut Findings::default());
        Some((condition, keys.span.clone()))
    };
    // Each class is compared with all before it, which would take long for many classes.
    if keys.len() > MOST_COMPARED {
        return;
    }
    let known: Vec<_> = keys.iter().map(matches).collect();
    for (number, (later, span)) in
        known.iter().enumerate().filter_map(|(n, known)| Some((n, known.as_ref()?)))
    {
        let before = known[..number].iter().flatten().find(|(earlier, _)| takes_all_of(earlier, later));
        if let Some((_, first)) = before {
            refuse!(findings, Unreachable at span,
                "no request reaches this class: one before it takes all of them",
                help: "move this class before that one: the first that matches is taken",
                beside first => "that one is");
        }
    }
}

/// Whether every request that meets `narrow` also meets `wide`, as far as their values show.
fn takes_all_of(wide: &Condition, narrow: &Condition) -> bool {
    fn all<T>(wide: &[T], narrow: &[T], covers: impl Fn(&T, &T) -> bool) -> bool {
        let is_covered = |one: &T| wide.iter().any(|other| covers(other, one));
        wide.is_empty() || !narrow.is_empty() && narrow.iter().all(is_covered)
    }
    let pattern = |wide: &String, narrow: &String| wide == narrow || covers(wide, narrow);
    let pair = |wide: &(String, String), narrow: &(String, String)| {
        wide.0 == narrow.0 && pattern(&wide.1, &narrow.1)
    };
    let network = |wide: &Network, narrow: &Network| {
        wide.prefix_bits <= narrow.prefix_bits && wide.contains(narrow.address)
    };
    let is_empty = *wide == Condition::default();
    !is_empty
        && all(&wide.paths, &narrow.paths, pattern)
        && all(&wide.methods, &narrow.methods, |wide, narrow| wide == narrow)
        && all(&wide.query, &narrow.query, |wide, narrow| wide == narrow)
        && all(&wide.headers, &narrow.headers, pair)
        && all(&wide.cookies, &narrow.cookies, pair)
        && all(&wide.clients, &narrow.clients, network)
}

/// The condition in the key `match` of a class or a type.
pub(super) fn match_condition(
    keys: Option<&Located<Table<MatchKeys>>>,
    findings: &mut Findings,
) -> Condition {
    keys.map_or(Condition::default(), |keys| condition(keys, &keys.value.0, OTHERS_ARE_DEFAULT, findings))
}

/// The advice if an exemption matches everything.
pub(super) const EXEMPT_ALL: &str = "say which are exempt, such as `path = \"/healthz\"`; `mode = \"off\"` under [gateway] decides nothing at all";
const OTHERS_ARE_DEFAULT: &str =
    "say which are meant, such as `path = \"/buy/*\"`; what matches no class is in `default` anyway";

/// The condition of a class, type or exemption; `help` is the advice if it matches everything.
pub(super) fn condition<T>(
    place: &Located<T>,
    keys: &MatchKeys,
    help: &str,
    findings: &mut Findings,
) -> Condition {
    let given = [
        keys.path.is_some(),
        keys.method.is_some(),
        keys.query.is_some(),
        keys.header.as_ref().is_some_and(|header| !header.value.0.is_empty()),
        keys.cookie.as_ref().is_some_and(|cookie| !cookie.value.0.is_empty()),
        keys.client.is_some(),
    ];
    // If a key is given but wrong, that error is reported, and this one would only confuse.
    if !given.contains(&true) && place.sound {
        refuse!(findings, Unreachable at &place.span,
            "this matches every request",
            help: help);
    }
    Condition {
        paths: listed(&keys.path, |path| path.0.clone()),
        methods: listed(&keys.method, |method| method.0.clone()),
        query: listed(&keys.query, |key| key.0.clone()),
        headers: pairs(keys.header.as_ref(), |name| &name.0),
        cookies: pairs(keys.cookie.as_ref(), |name| &name.0),
        clients: listed(&keys.client, |network| *network),
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

/// The configured priority; otherwise a class that was promised a time comes before those that were not. That does not hold
/// before a server that decides itself: it would reject other classes' requests to give such a class full pages, which take
/// longer.
pub(super) fn priority(keys: Option<&Located<Whole<1, 100>>>, comes_first: bool) -> u8 {
    let default = if comes_first { 1 } else { LAST_PRIORITY };
    keys.map_or(default, |priority| priority.value.0 as u8)
}
