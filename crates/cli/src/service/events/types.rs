//! Types of requests: logs a line when the costs of a type vary too much for the site's deadline, and one when that is over.

use super::Steady;
use crate::output::type_costs::{UNNAMED, known, verdict};
use crate::service::log::{News, Subject};
use plimsoll_core::telemetry::status::SiteStatus;

/// Periods that a state must last before it is logged, because estimates from few requests waver.
const LASTS: u32 = 10;

/// The logged states of a site's types, by name and level.
#[derive(Debug, Default)]
pub(super) struct TypeCosts(Vec<(String, String, Steady<bool>)>);

impl TypeCosts {
    /// A line if there is news; `promised` is the share of the site's requests that is promised to be in time.
    pub(super) fn look(&mut self, site: &SiteStatus, promised: f64) -> Option<News> {
        let may_be_late = 1.0 - promised;
        let (mut lines, mut is_bad) = (Vec::new(), false);
        for (own, in_time) in known(site) {
            let place = self.0.iter().position(|(name, level, _)| (name, level) == (&own.name, &own.level));
            let place = place.unwrap_or_else(|| {
                self.0.push((own.name.clone(), own.level.clone(), Steady::default()));
                self.0.len() - 1
            });
            let said = &mut self.0[place].2;
            let is = 1.0 - in_time > if said.said { UNNAMED * may_be_late } else { may_be_late };
            if said.is_news(is, LASTS) {
                is_bad |= is;
                lines.push(match is {
                    true => verdict(&own.name, in_time),
                    false => format!("requests of type `{}` are in time alone again", own.name),
                });
            }
        }
        let subject = Subject::Site(site.name.clone());
        let news = if is_bad { News::warn } else { News::info };
        (!lines.is_empty()).then(|| news(subject, lines.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::telemetry::status::TypeStatus;

    #[test]
    fn a_type_is_named_once_when_its_requests_differ_and_once_when_they_do_not() {
        let mut said = TypeCosts::default();
        let mut look = |in_time, requests, times| {
            let own = TypeStatus { name: "static".into(), requests, in_time, ..TypeStatus::default() };
            let site = SiteStatus { name: "shop".into(), types: vec![own], ..SiteStatus::default() };
            (0..times).filter_map(|_| said.look(&site, 0.95)).map(|news| news.to_string()).collect::<Vec<_>>()
        };
        assert!(look(Some(0.9), 50, 100).is_empty(), "too few");
        assert!(look(None, 5000, 100).is_empty(), "no deadline");
        assert!(look(Some(0.9), 5000, 9).is_empty(), "it may waver");
        assert!(look(Some(0.955), 5000, 100).is_empty(), "five in a hundred may be late");
        let lines = look(Some(0.92), 5000, 100);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with(
            "shop: requests of type `static` cost too differently for the deadline: 8.0 % of them are late even alone"
        ));
        assert!(look(Some(0.96), 5000, 100).is_empty(), "not yet over");
        assert_eq!(look(Some(1.0), 5000, 100), ["shop: requests of type `static` are in time alone again"]);
        assert!(look(Some(0.2), 5000, 100)[0].contains("takes too long"));
    }
}
