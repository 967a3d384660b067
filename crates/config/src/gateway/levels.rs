//! Levels of service, and how each changes a request.

use super::file::unique;
use super::http::{HeaderValue, Prefix, SetHeaderName};
use super::plants::Plants;
use super::sites::{name_of, text_of};
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Located, Name, Pairs, Share, section};
use plimsoll_core::promises::{Level, MAX_LEVELS};
use plimsoll_gateway::settings::Rewrite;

section! { "[[site.level]]"
    /// A version of the service: how a request is changed to get it. The last level is full quality. A response at a lower
    /// level says `Cache-Control: private, no-cache` (`no-store` if the server or a rule says that), and has no `Expires`,
    /// `Last-Modified` and the like, so that no cache gives the lighter copy to others or keeps it longer than the
    /// overload.
    LevelKeys {
        /// The level's name in metrics, headers and logs.
        name: Name, required("give the level a name: `name = \"light\"`");
        /// The text put before the path, at most 255 bytes: `/light` makes `/light/page.html` of `/page.html`. It is taken
        /// out again of redirects and of the paths of cookies. Exempt requests go without it. All others of the level have it,
        /// whatever their method, and the server's own rules, such as who may read `/admin/`, see the path with it.
        prefix: Prefix, optional;
        /// Another upstream for this level, held at a load line of its own. Clients beyond that line are passed down to the
        /// next level. The levels of one upstream follow one another.
        upstream: Name, optional;
        /// Another folder for this level. What it lacks is answered with 404, since the request has no place at the upstream:
        /// `snapshot` of `plimsoll adapt` stores the pages that a program makes.
        folder: Name, optional;
        /// Request headers to set, for a server that has versions of its own.
        headers: Pairs<SetHeaderName, HeaderValue>, optional;
        /// Whether a page that the upstream lacks at this level (404, to a GET or HEAD) is asked for once more as the next
        /// level has it. The request counts, and its cost is learned, at the level that was decided; the report's header
        /// names the level that answered. A folder of `plimsoll adapt` needs no such key, since its manifest has it.
        fallback: bool, default(false);
        /// The cost of a request at this level, as a share of that at the level above, if you know it. It is a first guess
        /// until the cost is measured.
        cost: Share, optional;
    }
}

/// The name of the only level of a site that lists none.
pub(super) const ONLY_LEVEL: &str = "full";

/// The levels of a site, and the rewrite of each.
pub(super) fn levels(
    keys: &[Located<LevelKeys>],
    site_plant: usize,
    plants: &Plants,
    findings: &mut Findings,
) -> (Vec<Level>, Vec<Rewrite>) {
    if keys.is_empty() {
        let only = Level { name: ONLY_LEVEL.to_owned(), plant: None, cost_ratio: None };
        return (vec![only], vec![Rewrite::default()]);
    }
    if let Some(first_too_many) = keys.get(MAX_LEVELS) {
        refuse!(findings, TooMany at &first_too_many.span,
            format!("{} levels, where at most {MAX_LEVELS} may be", keys.len()),
            help: "leave out those nearest to another");
    }
    unique(keys.iter().filter_map(|level| name_of(level.value.name.as_ref())), "levels", findings);
    if let Some(cost) = keys.last().and_then(|level| level.value.cost.as_ref()) {
        refuse!(findings, Conflict at &cost.span,
            "`cost` compares a level with the one above, and above the last is none",
            help: "leave it out here; the lowest quality comes first, the last level is full quality");
    }
    let mut served: Vec<(usize, Rewrite)> = Vec::new();
    let mut levels = Vec::new();
    for Located { value: level, span, sound } in keys {
        let plant = plants.find(level.upstream.as_ref(), level.folder.as_ref(), findings);
        let this = (plant.unwrap_or(site_plant), rewrite(level));
        let same = served.iter().zip(keys).position(|(known, other)| *known == this && other.sound);
        if let Some(same) = same.filter(|_| *sound) {
            refuse!(findings, Conflict at span,
                "this level is served like another: nothing would be saved",
                help: "give one of them a `prefix`, another `upstream` or `folder`, or `headers`",
                beside &keys[same].span => "the other is");
        }
        served.push(this);
        let cost_ratio = level.cost.as_ref().map(|cost| cost.value.0);
        levels.push(Level { name: text_of(level.name.as_ref()), plant, cost_ratio });
    }
    check_plants(keys, &served, site_plant, findings);
    for at in 0..keys.len() {
        served[at].1.falls_back = falls_back(at, keys, &served, plants, findings);
    }
    (levels, served.into_iter().map(|(_, rewrite)| rewrite).collect())
}

/// Checks that the levels of one plant are neighbours, and that the highest level is at the site's own plant.
fn check_plants(
    keys: &[Located<LevelKeys>],
    served: &[(usize, Rewrite)],
    site_plant: usize,
    findings: &mut Findings,
) {
    let plant = |at: usize| served[at].0;
    for at in (1..keys.len()).filter(|at| plant(*at) != plant(at - 1)) {
        if let Some(same) = (0..at).rev().find(|before| plant(*before) == plant(at)) {
            refuse!(findings, Conflict at &keys[at].span,
                "the levels of one upstream follow one another, and another upstream's stands between",
                help: "change the order of the levels, or serve all three by one upstream",
                beside &keys[same].span => "the other level of this upstream is");
        }
    }
    if let Some(top) = keys.last().filter(|_| plant(keys.len() - 1) != site_plant) {
        refuse!(findings, Conflict at &top.span,
            "the last level is full quality, and the site's own upstream serves that one",
            help: "list the levels from the lowest quality up, or name this upstream in `[[site]]`");
    }
}

/// Whether a level falls back to the next one; refuses the key if it cannot.
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
        Some((next, _)) if *next != plant && plants.is_folder(plant) => (
            "what a folder lacks is asked of no server: a request holds a place at one upstream or folder alone",
            "leave `fallback` out, and store the pages that a program makes in the folder (`snapshot` of `plimsoll adapt`); or \
             serve this level by the upstream too, with a `prefix`",
        ),
        Some(_) if plants.is_folder(plant) => {
            ("a folder follows the `manifest.json` of `plimsoll adapt`", "leave `fallback` out")
        }
        Some((next, _)) if *next != plant => (
            "the next level is served by another: a request holds a place at one upstream alone",
            "leave `fallback` out, or serve both by one upstream, with a `prefix`",
        ),
        Some(_) => return true,
    };
    refuse!(findings, Conflict at &level.fallback.span, what, help: help);
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
