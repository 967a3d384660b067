//! The type of a request, by which its cost is estimated (AC 3.2). Pure.
//!
//! A site's own types are tried in their order. Where there are none, types are found within the default types
//! (`shape_table.rs`). What is left has its [`DefaultType`]: AC found that the service time depends on the
//! type of an object, and hardly on its size below 64 KB. A cost that an application announces in a header counts only
//! where [`RequestView::is_trusted`] holds.

use crate::promises::{DEFAULT_TYPES, Site};
use crate::request::classify::Rule;
use crate::request::shape_table::ShapeTable;
use crate::request::work::CostFeatures;
use crate::request::{DefaultType, RequestView};
use alloc::{string::String, sync::Arc, vec::Vec};

/// The types of one site, compiled.
pub(crate) struct TypeRules {
    rules: Vec<Rule>,
    /// The request header that announces a cost.
    cost_header: Option<String>,
    /// The types that were found, if no type is configured.
    found: Option<Arc<ShapeTable>>,
}

impl TypeRules {
    pub(crate) fn new(site: &Site, found: Option<Arc<ShapeTable>>) -> Self {
        let rules = site.types.iter().map(|own| Rule::new(&own.condition)).collect();
        TypeRules { rules, cost_header: site.cost_header.clone(), found }
    }

    pub(crate) fn features(&self, request: &impl RequestView) -> CostFeatures {
        let own = self.rules.iter().position(|rule| rule.holds(request));
        let request_type = own.unwrap_or_else(|| self.rules.len() + DefaultType::of(request) as usize) as u16;
        let found = self.found.as_ref().map(|table| table.type_and_shape(request, request_type));
        let (request_type, shape) = found.unwrap_or((request_type, 0));
        let header = self.cost_header.as_ref().filter(|_| request.is_trusted());
        let announced_us = header.and_then(|name| microseconds(request.header(name)?)).unwrap_or(0);
        let blocks = request.header("content-length").map_or(0, blocks);
        CostFeatures { request_type, announced_us, blocks, shape }
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

#[cfg(test)]
mod tests {
    use super::*;

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
