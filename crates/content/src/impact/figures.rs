//! The figures of a site at a level, and how many more visitors they allow: the formulas of CA 3.
//!
//! A site has h pages and d objects embedded in them. Let Emb be the mean number of objects in a page, `Emb_min = d / h`, H the
//! mean size of a page and I that of an object (byte). With a server's cost a for a request (s) and b for a byte (s), one page
//! without a cache costs `a (1 + Emb) + b (H + I Emb)` (CA 3.1). A page of a visit to the whole site, with a cache that loses
//! nothing, costs the same with Emb_min instead (CA 3.2). The ratio of the cost at full to the cost at another level is how
//! many times as many visitors the server carries there: the optimistic and the pessimistic estimate. *Text* in the paper's
//! sense is `a + b H`, the pages as they are and nothing else.
//!
//! The paper uses one I for both. Objects that are on many pages are small, so its optimistic estimate has too many bytes;
//! therefore the cost of a page view is also counted object by object. With an access log, the counted cost is weighted by the
//! views of each page, which the paper could not do.

use crate::site::Views;
use crate::site::survey::{Page, Survey};
use std::collections::BTreeSet;

/// The costs of a request and of its bytes to a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// a, the server's time for a request (s).
    pub per_request: f64,
    /// b, the server's time for a byte (s).
    pub per_byte: f64,
}

impl Default for Costs {
    /// Apache 1.3 on a K460: 1.6 ms and 65 us per KB (CA 2, footnote 2).
    fn default() -> Self {
        Costs { per_request: 1.6e-3, per_byte: 65e-6 / 1024.0 }
    }
}

impl Costs {
    /// U = aR + bW.
    pub fn of(self, requests: f64, bytes: f64) -> f64 {
        self.per_request * requests + self.per_byte * bytes
    }
}

/// A page view's load on the server, as counted: the page and all that it loads, including frames.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct View {
    /// The number of requests, with the page's own.
    pub requests: f64,
    /// The bytes of all bodies.
    pub bytes: f64,
}

impl View {
    fn over(self, views: f64) -> View {
        View { requests: self.requests / views, bytes: self.bytes / views }
    }

    fn cost(self, costs: Costs) -> f64 {
        costs.of(self.requests, self.bytes)
    }
}

/// The figures of a site at one level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// h, the number of the site's pages.
    pub pages: u64,
    /// d, the number of objects embedded in its pages, each counted once.
    pub objects: u64,
    /// Emb, the mean number of objects in a page.
    pub embedded: f64,
    /// H, the mean size of a page (byte).
    pub page_bytes: f64,
    /// I, the mean size of an embedded object (byte).
    pub object_bytes: f64,
    /// A page view, as the mean over pages.
    pub view: View,
    /// A page view, weighted by the log's views of each page.
    pub popular: Option<View>,
    /// H, weighted by the log's views of each page (byte).
    pub popular_page_bytes: Option<f64>,
}

impl Figures {
    /// The figures of pages whose files have the sizes `bytes`, weighted by the views of each page if they are known.
    pub(super) fn of(survey: &Survey, views: Option<&Views>, bytes: impl Fn(&str) -> u64) -> Figures {
        let pages = survey.pages.len() as f64;
        // A page in a frame counts as a page, because CA's objects are what pages have besides.
        let is_object = |path: &&String| !survey.pages.contains_key(*path);
        let embedded_objects = |page: &Page| page.embedded.iter().filter(is_object).count();
        let objects: BTreeSet<&String> =
            survey.pages.values().flat_map(|page| &page.embedded).filter(is_object).collect();
        let object_bytes: u64 = objects.iter().map(|path| bytes(path)).sum();
        let (mut embedded, mut page_bytes) = (0, 0);
        let (mut view, mut popular) = (View::default(), View::default());
        let (mut weight, mut popular_pages) = (0.0, 0.0);
        for (path, page) in &survey.pages {
            let own = bytes(path);
            let requests = (1 + page.embedded.len()) as f64;
            let all = (own + page.embedded.iter().map(|path| bytes(path)).sum::<u64>()) as f64;
            embedded += embedded_objects(page);
            page_bytes += own;
            view = View { requests: view.requests + requests, bytes: view.bytes + all };
            let count = views.and_then(|views| views.get(path)).copied().unwrap_or(0) as f64;
            weight += count;
            popular.requests += count * requests;
            popular.bytes += count * all;
            popular_pages += count * own as f64;
        }
        Figures {
            pages: survey.pages.len() as u64,
            objects: objects.len() as u64,
            embedded: embedded as f64 / pages,
            page_bytes: page_bytes as f64 / pages,
            object_bytes: object_bytes as f64 / (objects.len() as f64).max(1.0),
            view: view.over(pages),
            popular: (weight > 0.0).then(|| popular.over(weight)),
            popular_page_bytes: (weight > 0.0).then(|| popular_pages / weight),
        }
    }

    /// Emb_min = d / h.
    pub fn embedded_least(&self) -> f64 {
        self.objects as f64 / (self.pages as f64).max(1.0)
    }

    fn cost(&self, costs: Costs, embedded: f64) -> f64 {
        costs.of(1.0 + embedded, self.page_bytes + self.object_bytes * embedded)
    }
}

/// How many times as many visitors a server carries at a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratios {
    /// The estimate of CA 3.1, without caches.
    pub optimistic: f64,
    /// The estimate of CA 3.2, with perfect caches.
    pub pessimistic: f64,
    /// The estimate by page views counted object by object.
    pub counted: f64,
    /// The counted estimate, weighted by views.
    pub popular: Option<f64>,
}

/// The ratios of `full` to the paper's text: `a + b H`.
pub fn text_ratios(full: &Figures, costs: Costs) -> Ratios {
    let bare = Figures {
        objects: 0,
        embedded: 0.0,
        object_bytes: 0.0,
        view: View { requests: 1.0, bytes: full.page_bytes },
        popular: full.popular_page_bytes.map(|bytes| View { requests: 1.0, bytes }),
        ..*full
    };
    ratios(full, &bare, costs)
}

/// The ratios of `full` to another level.
pub fn ratios(full: &Figures, level: &Figures, costs: Costs) -> Ratios {
    let popular = full.popular.zip(level.popular);
    Ratios {
        optimistic: full.cost(costs, full.embedded) / level.cost(costs, level.embedded),
        pessimistic: full.cost(costs, full.embedded_least()) / level.cost(costs, level.embedded_least()),
        counted: full.view.cost(costs) / level.view.cost(costs),
        popular: popular.map(|(full, level)| full.cost(costs) / level.cost(costs)),
    }
}

/// The curve of CA Fig. 2 and 3: for each improvement x (%), `(ratio - 1) 100`, the part of the sites (%) that improve by at
/// least x. It steps down after each site's own x. It begins at 0, so a site that gets worse is in no part.
pub fn curve(ratios: impl IntoIterator<Item = f64>) -> Vec<(f64, f64)> {
    let mut improvements: Vec<f64> = ratios.into_iter().map(|ratio| (ratio - 1.0) * 100.0).collect();
    improvements.sort_by(f64::total_cmp);
    let of = improvements.len().max(1) as f64;
    let at_least = |x: f64| improvements.iter().filter(|own| **own >= x).count() as f64 / of * 100.0;
    let first = if improvements.is_empty() { 100.0 } else { at_least(0.0) };
    let mut points = vec![(0.0, first)];
    let mut better = improvements.iter().filter(|x| **x >= 0.0);
    points.extend(better.clone().map(|x| (*x, at_least(*x))));
    points.extend(better.next_back().map(|last| (*last * 1.05 + 1.0, 0.0)));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_ratios() {
        // h = 10 pages of 4 KB, 5 objects of 8 KB, each on every page: Emb 5, Emb_min 0.5.
        let full = Figures {
            pages: 10,
            objects: 5,
            embedded: 5.0,
            page_bytes: 4096.0,
            object_bytes: 8192.0,
            view: View { requests: 6.0, bytes: 4096.0 + 5.0 * 8192.0 },
            popular: Some(View { requests: 2.0, bytes: 3.0 * 1024.0 }),
            popular_page_bytes: Some(1024.0),
        };
        let ratios = text_ratios(&full, Costs::default());
        let (a, b) = (1.6, 0.065);
        let expected = |embedded: f64| (a * (1.0 + embedded) + b * (4.0 + 8.0 * embedded)) / (a + b * 4.0);
        assert!((ratios.optimistic - expected(5.0)).abs() < 1e-9);
        assert!((ratios.pessimistic - expected(0.5)).abs() < 1e-9);
        assert!((ratios.counted - ratios.optimistic).abs() < 1e-9, "objects of one size: no difference");
        // Two requests of 3 KB in place of one of 1 KB: a visitor of the small pages gains less.
        let popular = ratios.popular.expect("it is weighted");
        assert!((popular - (2.0 * a + 3.0 * b) / (a + b)).abs() < 1e-9, "{popular}");
    }

    #[test]
    fn frames_are_requests_of_a_view_and_no_objects() {
        let page = |embedded: &[&str]| Page {
            embedded: embedded.iter().map(|name| (*name).to_owned()).collect(),
            ..Page::default()
        };
        let pages =
            [("index", page(&["left", "right", "logo"])), ("left", page(&[])), ("right", page(&["logo"]))];
        let survey =
            Survey { pages: pages.map(|(name, page)| (name.to_owned(), page)).into(), ..Survey::default() };
        let once = survey.pages.keys().map(|name| (name.clone(), 1)).collect();
        let figures = Figures::of(&survey, Some(&once), |_| 100);
        let view = View { requests: 7.0 / 3.0, bytes: 700.0 / 3.0 };
        assert_eq!((figures.embedded, figures.objects), (2.0 / 3.0, 1));
        assert_eq!((figures.view, figures.popular), (view, Some(view)), "each page is viewed once");
    }

    #[test]
    fn the_part_of_sites_that_improve_at_least_so_much() {
        assert_eq!(curve([3.0, 1.5])[..3], [(0.0, 100.0), (50.0, 100.0), (200.0, 50.0)]);
        assert_eq!(curve([]), [(0.0, 100.0)]);
        // A site whose lighter version costs more does not improve, by however little.
        assert_eq!(curve([0.8, 2.0]), [(0.0, 50.0), (100.0, 50.0), (106.0, 0.0)]);
        assert_eq!(curve([0.8, 0.9]), [(0.0, 0.0)]);
        assert_eq!(curve([1.0]), [(0.0, 100.0), (0.0, 100.0), (1.0, 0.0)]);
    }
}
