//! How a site is adapted: options of the command line count first, then the policy's file, then the defaults.

use crate::args::{PolicyOptions, source};
use crate::output::failure::Failure;
use plimsoll_config::{Adaptation, parse_adaptation};
use plimsoll_content::{Policy, Rule, Step, Tag};

/// The policy, and the file's other keys: levels, snapshots, sparse trees.
///
/// # Errors
/// [`Failure::Input`] if the file cannot be read, or is wrong.
pub(crate) fn policy(options: &PolicyOptions) -> Result<(Policy, Adaptation), Failure> {
    let format = ("a policy", "examples/adaptation/shop.toml");
    let file = options
        .file
        .as_deref()
        .map(|path| source::read_as(path, format, parse_adaptation))
        .transpose()?
        .unwrap_or_default();
    let default = Policy::default();
    let without = file.without.iter().flatten().filter_map(|name| Step::named(name));
    let rule = |(path, tag): &(String, String)| Some(Rule { pattern: path.clone(), tag: Tag::named(tag)? });
    let policy = Policy {
        without: options.without.clone().unwrap_or_else(|| without.collect()),
        image_limit_bytes: options
            .image_limit
            .or(file.image_limit_bytes)
            .unwrap_or(default.image_limit_bytes),
        medium_limit_bytes: options
            .medium_limit
            .or(file.medium_limit_bytes)
            .unwrap_or(default.medium_limit_bytes),
        factor: options.factor.or(file.factor).unwrap_or(default.factor),
        similarity: options.similarity.or(file.similarity).unwrap_or(default.similarity),
        avif: options.avif || file.avif.unwrap_or(default.avif),
        cosmetic_limit_bytes: options
            .cosmetic_limit
            .or(file.cosmetic_limit_bytes)
            .unwrap_or(default.cosmetic_limit_bytes),
        depth: options.depth.or(file.depth),
        rules: file.rules.iter().filter_map(rule).chain(options.rules.iter().cloned()).collect(),
    };
    Ok((policy, file))
}
