//! The type of a request, by which its cost is estimated (AC 3.2). Pure.
//!
//! A site's own types are tried in their order, then the default types by the extension of the path: AC found that the
//! service time depends on the type of an object, and hardly on its size below 64 KB. A path without an extension, or
//! with an unknown one, is dynamic. A cost that an application announces in a header counts only where
//! [`RequestView::is_trusted`] holds.

use crate::promises::{DEFAULT_TYPES, Site};
use crate::request::RequestView;
use crate::request::classify::Rule;
use crate::request::work::CostFeatures;
use alloc::{string::String, vec::Vec};

/// The types of one site, compiled.
pub(crate) struct TypeRules {
    rules: Vec<Rule>,
    /// The request header that announces a cost.
    cost_header: Option<String>,
}

impl TypeRules {
    pub(crate) fn new(site: &Site) -> Self {
        let rules = site.types.iter().map(|own| Rule::new(&own.condition)).collect();
        TypeRules { rules, cost_header: site.cost_header.clone() }
    }

    pub(crate) fn features(&self, request: &impl RequestView) -> CostFeatures {
        let own = self.rules.iter().position(|rule| rule.holds(request));
        let request_type = own.unwrap_or_else(|| self.rules.len() + default_type(request.path())) as u16;
        let header = self.cost_header.as_ref().filter(|_| request.is_trusted());
        let announced_us = header.and_then(|name| microseconds(request.header(name)?)).unwrap_or(0);
        let blocks = request.header("content-length").map_or(0, blocks);
        CostFeatures { request_type, announced_us, blocks }
    }
}

/// Names and quanta of a site's types, in the order of their numbers.
pub(crate) fn types_of(site: &Site) -> impl Iterator<Item = (&str, f64)> {
    site.types.iter().map(|own| (own.name.as_str(), own.quantum)).chain(DEFAULT_TYPES)
}

/// Reads seconds.
fn microseconds(text: &str) -> Option<u32> {
    let seconds: f64 = text.trim().parse().ok()?;
    (seconds > 0.0 && seconds.is_finite()).then_some((seconds * 1e6) as u32)
}

/// Below this size the service time does not depend on the size (AC).
const BLOCK_BYTES: u64 = 64 << 10;

/// Reads a number of bytes as whole blocks.
fn blocks(text: &str) -> u16 {
    let bytes: u64 = text.trim().parse().unwrap_or(0);
    u16::try_from(bytes / BLOCK_BYTES).unwrap_or(u16::MAX)
}

const STATIC: usize = 0;
const DYNAMIC: usize = 1;
const AUDIO: usize = 2;
const VIDEO: usize = 3;
/// The longest known extension.
const LONGEST: usize = 5;

/// The index among [`DEFAULT_TYPES`].
fn default_type(path: &str) -> usize {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((_, extension)) = name.rsplit_once('.') else { return DYNAMIC };
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..extension.len()) else { return DYNAMIC };
    lower.copy_from_slice(extension.as_bytes());
    lower.make_ascii_lowercase();
    match &*lower {
        b"html" | b"htm" | b"css" | b"js" | b"mjs" | b"json" | b"txt" | b"xml" | b"md" | b"csv" | b"map" => {
            STATIC
        }
        b"png" | b"jpg" | b"jpeg" | b"gif" | b"svg" | b"ico" | b"webp" | b"avif" | b"bmp" => STATIC,
        b"woff" | b"woff2" | b"ttf" | b"otf" | b"eot" | b"wasm" | b"pdf" => STATIC,
        b"mp3" | b"ogg" | b"oga" | b"wav" | b"flac" | b"m4a" | b"aac" | b"opus" | b"au" | b"ra" => AUDIO,
        b"mp4" | b"webm" | b"mpg" | b"mpeg" | b"avi" | b"mov" | b"mkv" | b"m4v" | b"ogv" | b"ts" => VIDEO,
        _ => DYNAMIC,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_tell_the_default_types() {
        let paths =
            ["/", "/a/b.HTML", "/x.tar.gz", "/i.Png", "/s.mp3", "/v.webm", "/v.1/list", "/page.php", "/."];
        let expected = [DYNAMIC, STATIC, DYNAMIC, STATIC, AUDIO, VIDEO, DYNAMIC, DYNAMIC, DYNAMIC];
        assert_eq!(paths.map(default_type), expected);
    }

    #[test]
    fn a_body_counts_from_its_first_whole_block_on() {
        assert_eq!(
            ["", "x", "-1", "65535", "65536", " 200000 ", "9999999999999"].map(blocks),
            [0, 0, 0, 0, 1, 3, u16::MAX]
        );
    }

    #[test]
    fn an_announced_cost_is_a_positive_number_of_seconds() {
        let texts = [" 0.25 ", "1e-6", "0", "-1", "NaN", "inf", "soon", "1e9"];
        let expected = [Some(250_000), Some(1), None, None, None, None, None, Some(u32::MAX)];
        assert_eq!(texts.map(microseconds), expected);
    }
}
