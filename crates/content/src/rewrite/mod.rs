//! Decides and rewrites the files of a site at a level.
//!
//! Input: a site, a policy, a level. Output: decisions on every file ([`decide`]), and pages ([`page`], [`text`]) and style
//! sheets as they are at the level. Nothing is written here.

pub(crate) mod decide;
mod names;
mod page;
mod text;

use crate::site::kind::Kind;
use crate::text::charset::decode;
use crate::text::css;
use crate::text::document::Document;
use decide::Decisions;
use std::collections::BTreeMap;

/// Images that have a copy for plain screens, with the copy's path.
pub(crate) type Plain = BTreeMap<String, String>;

/// The page or style sheet at `path`, which has these `bytes`, as it is at the level; `None` if it stays as it is.
pub(crate) fn rewritten(
    decisions: &Decisions<'_>,
    path: &str,
    bytes: &[u8],
    plain: &Plain,
) -> Option<Vec<u8>> {
    if decisions.is_important(path) {
        return None;
    }
    match decisions.site.tree.files[path].kind {
        Kind::Page => page::rewritten(decisions, path, &Document::read(path, bytes)?, plain),
        // A page may be served at another level than its sheet, so no single hash would fit all versions of a sheet: a hashed
        // sheet stays.
        Kind::Style if decisions.site.survey.usage.get(path).is_some_and(|usage| usage.hashed) => None,
        Kind::Style => {
            let decoded = decode(bytes)?;
            let text = css::without(&decoded.text, |url| decisions.sheet_loses(path, url))?;
            Some(decoded.encode(&text))
        }
        _ => None,
    }
}
