//! The options of `adapt` and `impact`: folders of sites, and how sites are adapted.

use super::values::{Bounds, within};
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use plimsoll_content::{Level, Policy, Rule, Step, Tag};
use std::path::PathBuf;

const LIMIT: Bounds<u64> = Bounds { what: "bytes", least: 1000, most: None };
const COSMETIC_LIMIT: Bounds<u64> = Bounds { what: "bytes", least: 0, most: Some(100_000) };
const FACTOR: Bounds<f64> = Bounds { what: "a factor", least: 1.0, most: Some(100.0) };
const SIMILARITY: Bounds<f64> = Bounds { what: "a structural similarity", least: 0.0, most: Some(1.0) };
const DEPTH: Bounds<u32> = Bounds { what: "a whole number", least: 0, most: None };
const PER_REQUEST: Bounds<f64> = Bounds { what: "milliseconds", least: 1e-6, most: Some(1e5) };
const PER_KB: Bounds<f64> = Bounds { what: "milliseconds", least: 0.0, most: Some(1e5) };

const ADAPT_AFTER: &str = "\
SITE is not touched. OUT gets the trees and a manifest. The new trees take the place of the old at once, \
when all are whole; what did not change is not done again. A policy and options may be given together: an \
option counts more than the policy.

Levels: text is pages without anything that a browser has to load; lean is content alone, with each \
image on one page; light is what a visitor takes for the site, in fewer bytes; full is a copy.

Steps, any of which --without leaves out:
  images       light: images in as few bytes as the similarity allows; lean: those above
               the limit in 1/8 of the bytes, or as few as stay similar
  medium       those above the medium limit too; lean: in 1/4, with more care
  sizes        images have the size at which pages show them, for plain screens and for
               those of twice the density
  webp         a WebP stands beside each image (photo.jpg.webp), for clients that take it
  photographs  photographs that are PNG or GIF become JPEG or WebP under their name
  lazy         images further down load when they are seen
  video        videos load when they are started
  embeds       frames of other hosts, such as maps and films, show a link that loads them
  expendable   what is tagged or ruled expendable goes
  compressed   each text has a compressed copy beside it (page.html.gz), at full too:
               the gateway sends it, nginx with `gzip_static on`
  vector       SVG images lose what no browser draws
  fonts        web fonts have the characters that pages can show, and no others
at the lean level alone:
  cosmetic     icons, bullets, bars and all below the limit go, or leave a word or sign
  one-page     an image on several pages stays on one; the logo and products' pictures on all
  backgrounds  small backgrounds of style sheets go
  responsive   of the candidates for several screens the smallest stays

manifest.json in OUT says of each image what it was taken for, and why.

Tags in a page, on any element: data-plimsoll=\"expendable\" (may go), \"degradable\" (may be reduced, \
but stays), \"important\" (is not touched).

Example:
  plimsoll adapt /var/www/html /srv/trees
  plimsoll adapt site trees --levels light --rule '*.woff2=expendable' --depth 4

Exit codes: 0 done, 1 failed or stopped by Ctrl-C (the old trees are as they were), 2 the input is wrong.";

/// Make lighter copies of a site's folder, one tree for each level
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = ADAPT_AFTER)]
pub(crate) struct AdaptArguments {
    /// The folder of the site
    pub(crate) site: PathBuf,
    /// The folder of the trees
    pub(crate) out: PathBuf,
    /// The levels to make [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true,
        value_parser = one_of(Level::ALL.map(Level::name), Level::named))]
    pub(crate) levels: Vec<Level>,
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    /// An access log, by which the most popular page keeps an image instead of the nearest
    #[arg(long, value_name = "ACCESS.LOG")]
    pub(crate) log: Option<PathBuf>,
    /// Store the dynamic page at URL as it is now, under its path in the lower trees; http only; may be given several
    /// times
    #[arg(long = "snapshot", value_name = "URL", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) snapshots: Vec<String>,
    /// Leave out of a tree what is the same in the next (for servers that read the manifest)
    #[arg(long)]
    pub(crate) sparse: bool,
    /// Make the trees even if the site has lost more than half of its files since the last run
    #[arg(long)]
    pub(crate) force: bool,
    /// Print what was made as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a site is adapted: a policy in a file, and options that count more than the file.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub(crate) struct PolicyOptions {
    /// A file that says how to adapt; docs/adaptation.md has its keys
    #[arg(long = "policy", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Steps to leave out
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_possible_values = true,
        value_parser = one_of(Step::ALL.map(Step::name), Step::named))]
    pub(crate) without: Option<Vec<Step>>,
    #[arg(long, value_name = "N", value_parser = within(LIMIT),
        help = format!("Above this size in {LIMIT}, images are large [default: {}]", Policy::default().image_limit_bytes))]
    pub(crate) image_limit: Option<u64>,
    #[arg(long, value_name = "N", value_parser = within(LIMIT),
        help = format!("Above this size in {LIMIT}, images are written again [default: {}]", Policy::default().medium_limit_bytes))]
    pub(crate) medium_limit: Option<u64>,
    #[arg(long, value_name = "X", value_parser = within(FACTOR),
        help = format!("At the lean level, reduce the bytes of large images by {FACTOR} [default: {}]", Policy::default().factor))]
    pub(crate) factor: Option<f64>,
    #[arg(long, value_name = "X", value_parser = within(SIMILARITY),
        help = format!("The least similarity of an image's worst region at the light level, {SIMILARITY} [default: {}]", Policy::default().similarity))]
    pub(crate) similarity: Option<f64>,
    /// Reduce AVIFs too, by libavif's avifenc and avifdec, which take seconds for each
    #[arg(long)]
    pub(crate) avif: bool,
    #[arg(long, value_name = "N", value_parser = within(COSMETIC_LIMIT),
        help = format!("Below this size in {COSMETIC_LIMIT}, images are cosmetic [default: {}]", Policy::default().cosmetic_limit_bytes))]
    pub(crate) cosmetic_limit: Option<u64>,
    /// Leave out pages more than this many links from the first
    #[arg(long, value_name = "N", value_parser = within(DEPTH))]
    pub(crate) depth: Option<u32>,
    /// Tag files by path; may be given several times, and the last that fits counts
    #[arg(long = "rule", value_name = "GLOB=TAG", value_parser = rule)]
    pub(crate) rules: Vec<Rule>,
}

const IMPACT_AFTER: &str = "\
The figures are how many times as many visitors a server carries when the site is served at a lower \
level. Optimistic: no visitor has a cache; pessimistic: every visitor sees the whole site, with a cache; \
and as counted for a view of one page. Both sides are counted as a browser gets them: texts compressed, \
images as WebP where that is smaller.

Without --adapted the levels are estimated: pages as `plimsoll adapt` would make them, images as small as \
it would like them. For several sites it prints what part of them improves by how much.

Example:
  plimsoll impact /var/www/html --log access.log
  plimsoll impact sites/* --report savings.html

Exit codes: 0 done, 1 failed, 2 the input is wrong.";

/// Say how many more visitors the lighter copies let a server carry
#[derive(Args, Clone, Debug, PartialEq)]
#[command(after_help = IMPACT_AFTER)]
pub(crate) struct ImpactArguments {
    /// The folders of the sites
    #[arg(required = true, value_name = "SITE")]
    pub(crate) sites: Vec<PathBuf>,
    /// Measure the trees that `plimsoll adapt` made of the site
    #[arg(long, value_name = "OUT")]
    pub(crate) adapted: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) policy: PolicyOptions,
    /// Weigh pages by their views, too
    #[arg(long, value_name = "ACCESS.LOG")]
    pub(crate) log: Option<PathBuf>,
    #[arg(long, value_name = "MS", value_parser = within(PER_REQUEST),
        help = format!("What a request costs the server, a, in {PER_REQUEST} [default: 1.6]"))]
    pub(crate) per_request: Option<f64>,
    #[arg(long, value_name = "MS", value_parser = within(PER_KB),
        help = format!("What 1024 bytes cost it, b, in {PER_KB} [default: 0.065]"))]
    pub(crate) per_kb: Option<f64>,
    /// Both costs from a configuration, the first upstream that states them
    #[arg(long, value_name = "FILE", conflicts_with_all = ["per_request", "per_kb"])]
    pub(crate) costs: Option<PathBuf>,
    /// Print the figures as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with plots, as one HTML file; with --adapted, pages and images before and after (pages by a
    /// browser, if there is one)
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

impl ImpactArguments {
    /// The message for options that exclude each other; `None` if there are none.
    pub(super) fn conflict(&self) -> Option<&'static str> {
        let several = self.sites.len() > 1;
        match () {
            () if several && self.adapted.is_some() => {
                Some("--adapted names the trees of one site: name one SITE only")
            }
            () if several && self.log.is_some() => {
                Some("--log is the access log of one site: name one SITE only")
            }
            () => None,
        }
    }
}

/// Parses one of `names`, which `named` knows.
fn one_of<T: Clone + Send + Sync + 'static>(
    names: impl IntoIterator<Item = &'static str>,
    named: fn(&str) -> Option<T>,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names)
        .try_map(move |name| named(&name).ok_or_else(|| format!("`{name}` is not known")))
}

/// Parses a pattern and a tag.
fn rule(text: &str) -> Result<Rule, String> {
    let parts = text.rsplit_once('=').filter(|(pattern, _)| !pattern.is_empty());
    let rule = parts
        .and_then(|(pattern, tag)| Some(Rule { pattern: pattern.to_owned(), tag: Tag::named(tag.trim())? }));
    let tags = || Tag::ALL.map(Tag::name).join(", ");
    rule.ok_or_else(|| format!("write a pattern and one of {}, such as 'fonts/**=expendable'", tags()))
}
