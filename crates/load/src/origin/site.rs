//! The origin's pages, and their costs.
//!
//! A site is a list of path classes, each with one size of page. The cost follows the gateway's own model, whose coefficients
//! the gateway must find, `S = fixed + per_kilobyte * kilobytes` (UC 4.3: a and b), so both coefficients have true values.

use hyper::body::Bytes;
use std::time::Duration;

/// Service time of one request: `fixed + per_kilobyte * size / 1024`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// The part for any size, a in service-seconds.
    pub fixed: Duration,
    /// The part for each 1024 bytes, 1024 b in service-seconds.
    pub per_kilobyte: Duration,
}

impl Cost {
    /// The same cost for every page.
    pub const fn constant(fixed: Duration) -> Self {
        Self { fixed, per_kilobyte: Duration::ZERO }
    }

    /// The cost function under which two pages, given as (bytes, service time), cost exactly that (to a nanosecond per KB).
    ///
    /// # Errors
    /// If no non-negative fixed and per-kilobyte costs fit; the text says which bound is broken.
    pub fn through(larger: (usize, Duration), smaller: (usize, Duration)) -> Result<Self, String> {
        let kilobytes = larger.0 as f64 / 1024.0 - smaller.0 as f64 / 1024.0;
        let seconds = larger.1.as_secs_f64() - smaller.1.as_secs_f64();
        if kilobytes <= 0.0 || seconds < 0.0 {
            return Err(
                "the first page must be the larger one, and must not cost less than the second".into()
            );
        }
        let per_kilobyte = seconds / kilobytes;
        let fixed = larger.1.as_secs_f64() - per_kilobyte * larger.0 as f64 / 1024.0;
        if fixed < -1e-9 {
            return Err(format!(
                "the smaller page costs less than its share of bytes: make it at most {:.0} bytes",
                larger.0 as f64 * smaller.1.as_secs_f64() / larger.1.as_secs_f64()
            ));
        }
        let (fixed, per_kilobyte) = (fixed.max(0.0), Duration::from_secs_f64(per_kilobyte));
        Ok(Self { fixed: Duration::from_secs_f64(fixed), per_kilobyte })
    }

    /// Service time of a page of `bytes`.
    pub fn of(&self, bytes: usize) -> Duration {
        let variable = self.per_kilobyte.as_nanos() * bytes as u128 / 1024;
        self.fixed + Duration::from_nanos(u64::try_from(variable).unwrap_or(u64::MAX))
    }
}

/// Pages under one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathClass {
    /// Paths with this prefix belong to the class; if several fit, the longest prefix wins.
    pub prefix: String,
    /// The size of each page of the class.
    pub bytes: usize,
}

impl PathClass {
    /// Pages of `bytes` under `prefix`.
    pub fn new(prefix: &str, bytes: usize) -> Self {
        Self { prefix: prefix.into(), bytes }
    }
}

/// One page for each class, with its body made once; the longest prefix first.
pub(crate) struct Site(Vec<Page>);

pub(crate) struct Page {
    prefix: String,
    pub(crate) body: Bytes,
    pub(crate) service_ns: u64,
}

impl Site {
    pub(crate) fn new(classes: &[PathClass], cost: Cost) -> Self {
        let largest = classes.iter().map(|class| class.bytes).max().unwrap_or(0);
        let text = Bytes::from(page_text(largest));
        let page = |class: &PathClass| Page {
            prefix: class.prefix.clone(),
            body: text.slice(..class.bytes),
            service_ns: u64::try_from(cost.of(class.bytes).as_nanos()).unwrap_or(u64::MAX),
        };
        let mut pages: Vec<Page> = classes.iter().map(page).collect();
        pages.sort_by_key(|page| std::cmp::Reverse(page.prefix.len()));
        Self(pages)
    }

    /// The page at `path`, if there is one.
    pub(crate) fn find(&self, path: &str) -> Option<&Page> {
        self.0.iter().find(|page| path.starts_with(&page.prefix))
    }
}

/// Readable filler, so that the page is recognized in a browser or a capture.
fn page_text(bytes: usize) -> Vec<u8> {
    b"<p>A page of the origin of known capacity, as long as its class says.</p>\n"
        .iter()
        .copied()
        .cycle()
        .take(bytes)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_through_two_pages_hits_both() {
        let (full, light) = ((32 * 1024, Duration::from_millis(8)), (4 * 1024, Duration::from_micros(1200)));
        let cost = Cost::through(full, light).unwrap();
        for (bytes, wanted) in [full, light] {
            assert!(cost.of(bytes).abs_diff(wanted) < Duration::from_nanos(64), "{:?}", cost.of(bytes));
        }
    }

    #[test]
    fn an_impossible_cost_says_what_to_write() {
        let full = (10_000, Duration::from_millis(10));
        let error = Cost::through(full, (5_000, Duration::from_millis(1))).unwrap_err();
        assert!(error.contains("at most 1000 bytes"), "{error}");
        assert!(Cost::through((10, Duration::ZERO), full).is_err());
    }

    #[test]
    fn the_longest_prefix_wins() {
        let classes = [PathClass::new("/", 100), PathClass::new("/light/", 10)];
        let site = Site::new(&classes, Cost::constant(Duration::from_millis(1)));
        let found = ["/light/a", "/light", "*"].map(|path| site.find(path).map(|page| page.body.len()));
        assert_eq!(found, [Some(10), Some(100), None]);
    }
}
