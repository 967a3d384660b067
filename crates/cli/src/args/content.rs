//! What `adapt` and `impact` take.

use super::{Command, next, number, path_once, unknown_option, word, wrong};
use crate::args::bounds;
use crate::args::help::{self, Topic};
use crate::output::failure::Failure;
use lexopt::{Arg, Parser};
use plimsoll_config::Adaptation;
use plimsoll_content::{Level, Policy, Rule, Step, Tag};
use std::path::PathBuf;

/// `plimsoll adapt SITE OUT`
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AdaptArguments {
    pub(crate) site: PathBuf,
    pub(crate) out: PathBuf,
    pub(crate) levels: Vec<Level>,
    pub(crate) policy: Policy,
    pub(crate) log: Option<PathBuf>,
    pub(crate) snapshots: Vec<String>,
    pub(crate) sparse: bool,
    pub(crate) json: bool,
}

/// `plimsoll impact SITE...`
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ImpactArguments {
    pub(crate) sites: Vec<PathBuf>,
    pub(crate) adapted: Option<PathBuf>,
    pub(crate) policy: Policy,
    pub(crate) log: Option<PathBuf>,
    /// a (ms) and b (ms per KB).
    pub(crate) per_request: Option<f64>,
    pub(crate) per_kb: Option<f64>,
    /// A configuration, whose upstream's costs count.
    pub(crate) costs: Option<PathBuf>,
    pub(crate) json: bool,
    pub(crate) report: Option<PathBuf>,
}

pub(super) fn adapt(parser: &mut Parser) -> Result<Command, Failure> {
    const TOPIC: Topic = Topic::Adapt;
    let (mut folders, mut arguments) = (Vec::new(), AdaptArguments::default());
    while let Some(argument) = next(parser, TOPIC)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(help::page(TOPIC))),
            Arg::Long("json") => arguments.json = true,
            Arg::Long("sparse") => arguments.sparse = true,
            Arg::Long("snapshot") => {
                let example = "http://127.0.0.1:8000/catalog.php";
                arguments.snapshots.push(word(parser, "snapshot", "a page's address", example, TOPIC)?);
            }
            Arg::Long("policy") => {
                let said = policy_file(&mut arguments.policy, parser, TOPIC)?;
                let levels: Vec<Level> = said.levels.iter().filter_map(|name| Level::named(name)).collect();
                if !levels.is_empty() {
                    arguments.levels = levels;
                }
                arguments.sparse = said.sparse.unwrap_or(arguments.sparse);
                arguments.snapshots.extend(said.snapshots);
            }
            Arg::Long("log") => path_once(&mut arguments.log, parser, "log", TOPIC)?,
            Arg::Long("levels") => {
                let names = word(parser, "levels", "names of levels", "text,light", TOPIC)?;
                arguments.levels = list(&names, "level", &Level::ALL.map(Level::name), Level::named, TOPIC)?;
            }
            Arg::Value(folder) => folders.push(PathBuf::from(folder)),
            Arg::Long(option) => {
                let option = option.to_owned();
                policy(&mut arguments.policy, &option, parser, TOPIC)?;
            }
            option @ Arg::Short(_) => return Err(unknown_option(&option, TOPIC)),
        }
    }
    let [site, out] = folders.try_into().map_err(|_| {
        wrong(
            "two folders: the site's, and one for its trees: `plimsoll adapt /var/www/html /srv/trees`",
            TOPIC,
        )
    })?;
    if arguments.levels.is_empty() {
        arguments.levels = Level::ALL.to_vec();
    }
    arguments.levels.sort_unstable();
    arguments.levels.dedup();
    Ok(Command::Adapt(AdaptArguments { site, out, ..arguments }))
}

pub(super) fn impact(parser: &mut Parser) -> Result<Command, Failure> {
    const TOPIC: Topic = Topic::Impact;
    let mut arguments = ImpactArguments::default();
    while let Some(argument) = next(parser, TOPIC)? {
        match argument {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Print(help::page(TOPIC))),
            Arg::Long("json") => arguments.json = true,
            Arg::Long("log") => path_once(&mut arguments.log, parser, "log", TOPIC)?,
            Arg::Long("report") => path_once(&mut arguments.report, parser, "report", TOPIC)?,
            Arg::Long("policy") => drop(policy_file(&mut arguments.policy, parser, TOPIC)?),
            Arg::Long("adapted") => path_once(&mut arguments.adapted, parser, "adapted", TOPIC)?,
            Arg::Long("costs") => path_once(&mut arguments.costs, parser, "costs", TOPIC)?,
            Arg::Long("per-request") => {
                arguments.per_request = Some(number(parser, &bounds::PER_REQUEST, TOPIC)?);
            }
            Arg::Long("per-kb") => arguments.per_kb = Some(number(parser, &bounds::PER_KB, TOPIC)?),
            Arg::Value(folder) => arguments.sites.push(folder.into()),
            Arg::Long(option) => {
                let option = option.to_owned();
                policy(&mut arguments.policy, &option, parser, TOPIC)?;
            }
            option @ Arg::Short(_) => return Err(unknown_option(&option, TOPIC)),
        }
    }
    let several = arguments.sites.len() > 1;
    let what = match () {
        () if arguments.sites.is_empty() => "which site? Name its folder: `plimsoll impact /var/www/html`",
        () if several && arguments.adapted.is_some() => "`--adapted` is for one site: trees are of one",
        () if several && arguments.log.is_some() => "`--log` is for one site: a log is of one",
        () if arguments.costs.is_some()
            && (arguments.per_request.is_some() || arguments.per_kb.is_some()) =>
        {
            "costs from a configuration, `--costs`, or by hand, `--per-request` and `--per-kb`; not both"
        }
        () => return Ok(Command::Impact(arguments)),
    };
    Err(wrong(what, TOPIC))
}

/// What a policy file says, taken up into `policy`; the rest is for the caller.
fn policy_file(policy: &mut Policy, parser: &mut Parser, topic: Topic) -> Result<Adaptation, Failure> {
    let mut path = None;
    path_once(&mut path, parser, "policy", topic)?;
    let path = path.unwrap_or_default();
    let name = path.display().to_string();
    let source = std::fs::read_to_string(&path).map_err(|error| {
        Failure::Input(format!(
            "cannot read {name}: {error}\nName a policy; examples/adaptation/shop.toml is one to begin with."
        ))
    })?;
    let said =
        plimsoll_config::parse_adaptation(&source, &name).map_err(|all| Failure::Input(all.to_string()))?;
    if let Some(without) = &said.without {
        policy.without = without.iter().filter_map(|name| Step::named(name)).collect();
    }
    policy.image_limit_bytes = said.image_limit_bytes.unwrap_or(policy.image_limit_bytes);
    policy.medium_limit_bytes = said.medium_limit_bytes.unwrap_or(policy.medium_limit_bytes);
    policy.cosmetic_limit_bytes = said.cosmetic_limit_bytes.unwrap_or(policy.cosmetic_limit_bytes);
    policy.factor = said.factor.unwrap_or(policy.factor);
    policy.similarity = said.similarity.unwrap_or(policy.similarity);
    policy.avif = said.avif.unwrap_or(policy.avif);
    policy.depth = said.depth.or(policy.depth);
    let rules = said.rules.iter();
    policy
        .rules
        .extend(rules.filter_map(|(path, tag)| Some(Rule { pattern: path.clone(), tag: Tag::named(tag)? })));
    Ok(said)
}

/// The options that both have: how a site is adapted.
fn policy(policy: &mut Policy, option: &str, parser: &mut Parser, topic: Topic) -> Result<(), Failure> {
    match option {
        "without" => {
            let names = word(parser, "without", "names of steps", "one-page,lazy", topic)?;
            policy.without = list(&names, "step", &Step::ALL.map(Step::name), Step::named, topic)?;
        }
        "image-limit" => policy.image_limit_bytes = number(parser, &bounds::IMAGE_LIMIT, topic)?,
        "medium-limit" => policy.medium_limit_bytes = number(parser, &bounds::MEDIUM_LIMIT, topic)?,
        "factor" => policy.factor = number(parser, &bounds::FACTOR, topic)?,
        "similarity" => policy.similarity = number(parser, &bounds::SIMILARITY, topic)?,
        "cosmetic-limit" => policy.cosmetic_limit_bytes = number(parser, &bounds::COSMETIC_LIMIT, topic)?,
        "avif" => policy.avif = true,
        "depth" => policy.depth = Some(number(parser, &bounds::DEPTH, topic)?),
        "rule" => {
            let rule = word(parser, "rule", "a pattern and a tag", "'*.woff2=expendable'", topic)?;
            let parts =
                rule.rsplit_once('=').and_then(|(pattern, tag)| Some((pattern.to_owned(), Tag::named(tag)?)));
            let tags = Tag::ALL.map(Tag::name).join(", ");
            let (pattern, tag) = parts.filter(|(pattern, _)| !pattern.is_empty()).ok_or_else(|| {
                wrong(
                    &format!(
                        "`--rule {rule}`: a pattern and one of {tags}, such as `--rule 'fonts/**=expendable'`"
                    ),
                    topic,
                )
            })?;
            policy.rules.push(Rule { pattern, tag });
        }
        option => return Err(unknown_option(&Arg::Long(option), topic)),
    }
    Ok(())
}

/// Names with commas between.
fn list<T>(
    names: &str,
    what: &str,
    known: &[&str],
    named: impl Fn(&str) -> Option<T>,
    topic: Topic,
) -> Result<Vec<T>, Failure> {
    let one = |name: &str| {
        let name = name.trim();
        named(name).ok_or_else(|| {
            wrong(&format!("there is no {what} `{name}`{}", super::instead(name, known)), topic)
        })
    };
    names.split(',').map(one).collect()
}
