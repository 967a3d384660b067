//! Promised response times in words: for the plan, its refusal, and `explain`.

use crate::output::facts::{Facts, hidden};
use crate::output::text;
pub(crate) use crate::output::units::promised_time as time;
use plimsoll_core::promises::plan::{DelayRow, Feasibility, PlantPlan, promised_costs};
use plimsoll_core::promises::{Delay, LAST_PRIORITY, Plant, Promises, Site};
use plimsoll_core::time::Duration;
use plimsoll_report::{Column, Table};

/// The promises to a class about its response times, and its priority.
pub(crate) struct Promised<'a> {
    pub(crate) class: &'a str,
    priority: u8,
    pub(crate) delay: Option<Delay>,
    pub(crate) ratio: Option<f64>,
    pub(crate) deadline: Option<Duration>,
    /// The promised percentage of admitted requests that are in time.
    pub(crate) in_time: f64,
}

/// The classes of a site, the built-in `default` last.
pub(crate) fn of(site: &Site) -> impl Iterator<Item = Promised<'_>> {
    let classes = site.classes.iter().enumerate().map(|(place, class)| Promised {
        class: &class.name,
        priority: class.priority,
        delay: class.delay,
        ratio: class.ratio,
        deadline: site.deadline_of(place),
        in_time: site.in_time_of(place),
    });
    classes.chain([Promised {
        class: "default",
        priority: site.default_priority,
        delay: site.default_delay,
        ratio: site.default_ratio,
        deadline: site.deadline_of(site.classes.len()),
        in_time: site.in_time,
    }])
}

impl Promised<'_> {
    fn is_empty(&self) -> bool {
        self.delay.is_none() && self.ratio.is_none() && self.deadline.is_none()
    }

    /// If the deadline is shorter than one worker's mean time (s) for a request of the site at its lowest level, that time. It
    /// is the mean of all classes; one class may have lighter requests.
    fn too_long(&self, site: &Site, promises: &Promises) -> Option<f64> {
        let (deadline, plant) = (self.deadline?, &promises.plants[site.plant]);
        if plant.find_workers.is_some() || site.levels.iter().any(|level| level.plant.is_some()) {
            return None;
        }
        let full = promised_costs(promises, site)?.costs.per_request_seconds * f64::from(plant.workers);
        let lower = site.levels.split_last().map_or(&[][..], |(_, lower)| lower);
        // If a level's cost is not known, no bound can be computed.
        let least = lower.iter().try_fold(full, |cost, level| Some(cost * level.cost_ratio?))?;
        (least > deadline.as_secs_f64()).then_some(least)
    }

    /// Such as `95 % within 200 ms`, `ratio 2`, `99 % of the admitted within 1 s`.
    fn words(&self) -> String {
        let ratio = self.ratio.map(|ratio| format!("ratio {ratio}"));
        let deadline = self.deadline.map(|within| deadline(within, self.in_time));
        let all = self.delay.map(delay).or(ratio).into_iter().chain(deadline);
        all.collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn sentence(&self, site: &Site) -> Option<String> {
        let deadline = self.deadline.map(|deadline| {
            format!(
                "{} % of its admitted requests are done within {}",
                self.in_time,
                time(deadline.as_secs_f64())
            )
        });
        let all = self.sentence_of_delay(site).into_iter().chain(deadline).collect::<Vec<_>>();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn sentence_of_delay(&self, site: &Site) -> Option<String> {
        match (self.delay, self.ratio) {
            (Some(delay), _) => Some(match delay.percentile {
                Some(p) => format!("{p} % of its responses within {}", time(delay.target.as_secs_f64())),
                None => format!("its responses take {} on average", time(delay.target.as_secs_f64())),
            }),
            (None, Some(_)) => {
                let all = of(site).filter_map(|other| Some(format!("{} {}", other.class, other.ratio?)));
                let strict = if site.strict_ratios { ", though workers idle for it" } else { "" };
                let all: Vec<String> = all.collect();
                Some(format!("response times in the ratio of {}{strict}", all.join(", ")))
            }
            (None, None) => None,
        }
    }

    pub(crate) fn facts(&self) -> Facts {
        let priority = (self.priority != LAST_PRIORITY).then_some(u64::from(self.priority));
        Facts(vec![
            hidden("class", self.class),
            hidden("priority", priority),
            hidden("delay_seconds", self.delay.map(|delay| delay.target.as_secs_f64())),
            hidden("percentile", self.delay.and_then(|delay| delay.percentile)),
            hidden("ratio", self.ratio),
            hidden("deadline_seconds", self.deadline.map(|deadline| deadline.as_secs_f64())),
            hidden("in_time", self.deadline.map(|_| self.in_time)),
        ])
    }
}

/// One line for each deadline that is shorter than a request's service time, so that hardly any request could be admitted.
pub(crate) fn short_deadlines(promises: &Promises) -> Option<String> {
    let sentence = |site: &Site, promised: &Promised<'_>| {
        Some(format!(
            "site {}: class {} has {} to be done, and a request takes {} of a worker on the mean (`costs`), at the lightest level: \
             this deadline cannot be kept: allow more time, or serve a lighter level (`[[site.level]]`)\n",
            site.name,
            promised.class,
            time(promised.deadline?.as_secs_f64()),
            time(promised.too_long(site, promises)?)
        ))
    };
    let sites = promises.sites.iter();
    let all: String =
        sites.flat_map(|site| of(site).filter_map(move |promised| sentence(site, &promised))).collect();
    (!all.is_empty()).then_some(all)
}

pub(crate) fn delay_facts(row: &DelayRow) -> Facts {
    Facts(vec![
        hidden("site", row.site.as_str()),
        hidden("class", row.class.as_str()),
        hidden("delay_seconds", row.delay.target.as_secs_f64()),
        hidden("percentile", row.delay.percentile),
        hidden("requests_per_second", row.rate),
        hidden("service_seconds", row.service_seconds),
        hidden("least_seconds", row.least_seconds),
        hidden("fitting_requests_per_second", row.fitting_rate),
        hidden("yields_to_higher_priorities", row.yields),
        hidden("verdict", row.verdict().as_str()),
    ])
}

/// Such as `99 % of the admitted within 1 s`.
pub(crate) fn deadline(deadline: Duration, in_time: f64) -> String {
    format!("{in_time} % of the admitted within {}", time(deadline.as_secs_f64()))
}

/// Such as `95 % within 200 ms`.
pub(crate) fn delay(delay: Delay) -> String {
    let target = time(delay.target.as_secs_f64());
    delay.percentile.map_or(format!("{target} on average"), |p| format!("{p} % within {target}"))
}

/// A table of all promised response times, each with the plan's verdict; empty if there are none.
pub(crate) fn table(promises: &Promises, plans: &[PlantPlan]) -> String {
    let columns = ["site", "class", "priority", "response times", "plan"];
    let mut table = Table::new("Promised response times", columns.map(Column::text));
    for site in &promises.sites {
        for promised in of(site).filter(|promised| !promised.is_empty()) {
            let planned = plans[site.plant].delays.iter();
            let planned = planned.filter(|row| row.site == site.name).find(|row| row.class == promised.class);
            let strict = if site.strict_ratios && promised.ratio.is_some() { ", strict" } else { "" };
            let plan = match planned {
                Some(row) => says(row, &promises.plants[site.plant]),
                None if promised.ratio.is_none() => "enforced at admission".to_owned(),
                None => "shown by status while it runs".to_owned(),
            };
            table = table.row([
                site.name.clone().into(),
                promised.class.into(),
                priority(promised.priority).into(),
                (promised.words() + strict).into(),
                plan.into(),
            ]);
        }
    }
    let beside: String = promises.sites.iter().filter_map(beside_ratios).collect();
    if table.rows.is_empty() { String::new() } else { text::table(&table) + &beside + "\n" }
}

/// Which classes a site's deadline holds for, if other classes have a ratio.
fn beside_ratios(site: &Site) -> Option<String> {
    let deadline = time(site.deadline?.as_secs_f64());
    let named = |is_meant: &dyn Fn(&Promised<'_>) -> bool| {
        of(site).filter(is_meant).map(|promised| promised.class).collect::<Vec<_>>().join(", ")
    };
    let ratios = named(&|promised| promised.ratio.is_some());
    let others = named(&|promised| promised.deadline == site.deadline);
    (!ratios.is_empty()).then(|| {
        format!(
            "site {}: its deadline of {deadline} is not promised to classes with a `ratio` ({ratios}), only to: {others}\n",
            site.name
        )
    })
}

fn priority(priority: u8) -> String {
    if priority == LAST_PRIORITY { "last".to_owned() } else { priority.to_string() }
}

fn says(row: &DelayRow, plant: &Plant) -> String {
    let missing = match (row.rate, row.service_seconds) {
        (None, _) => "its site has no guarantee",
        (Some(_), None) if plant.find_workers.is_some() => "the workers are to be found",
        (Some(_), _) => "costs unknown",
    };
    match (row.verdict(), row.least_seconds) {
        (Feasibility::Fits, Some(least)) => format!("fits: {} can be kept", time(least)),
        (Feasibility::Exceeds, _) => "cannot be kept".to_owned(),
        _ if row.yields => format!("unverified: {missing}; kept only while higher priorities leave room"),
        _ => format!("unverified: {missing}"),
    }
}

/// A table of a plant's planned delays, if any of them cannot be kept; otherwise `None`.
pub(crate) fn refusal(plan: &PlantPlan) -> Option<String> {
    if plan.delays.iter().all(|row| row.verdict() != Feasibility::Exceeds) {
        return None;
    }
    let text = ["delay of", "promised"].map(Column::text);
    let numbers = ["at", "one request takes", "at best"].map(Column::number);
    let columns = text.into_iter().chain(numbers).chain([Column::text("would fit")]);
    let planned = plan.delays.iter().filter_map(|row| {
        let (service, least) = (row.service_seconds?, row.least_seconds?);
        Some([
            format!("{} {}", row.site, row.class),
            delay(row.delay),
            row.rate.map_or("any rate".to_owned(), |rate| format!("{rate:.0}/s")),
            time(service),
            if least.is_finite() { time(least) } else { "-".to_owned() },
            would_fit(row, service, least),
        ])
    });
    let rows = planned.fold(Table::new("Delays", columns), |table, row| table.row(row.map(Into::into)));
    let mut exceeding = plan.delays.iter().filter(|row| row.verdict() == Feasibility::Exceeds);
    let fits_alone =
        |row: &DelayRow| row.service_seconds.is_none_or(|own| own <= row.delay.target.as_secs_f64());
    let instead = match exceeding.any(|row| row.rate.is_some() || fits_alone(row)) {
        true => "allow more time, guarantee fewer requests, or add workers",
        false => "allow more time, or serve at a lower level (`[[site.level]]`) too",
    };
    let table = text::table(&rows);
    Some(format!("{table}{}: these delays cannot be kept: {instead}\n", plan.plant))
}

fn would_fit(row: &DelayRow, service: f64, least: f64) -> String {
    let rate = row.fitting_rate.map(f64::floor).filter(|rate| *rate > 0.0).map(|rate| format!("{rate:.0}/s"));
    let delay = least.is_finite().then(|| time(least));
    match row.verdict() {
        Feasibility::Exceeds => match (delay, rate) {
            (Some(delay), Some(rate)) => format!("{delay}, or {rate}"),
            (delay, rate) => delay
                .or(rate)
                .unwrap_or_else(|| format!("cannot be met: one request alone takes {}", time(service))),
        },
        _ => "all".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::args::source::understand;
    use crate::output::failure::Failure;
    use crate::output::{json, plan};

    /// A worker takes 40 ms.
    const PREMIUM: &str = "[gateway]\nlisten = \"127.0.0.1:0\"\n[upstream.app]\naddress = \"127.0.0.1:81\"\n\
        [upstream.app.capacity]\nworkers = 8\ncosts = { request = \"5ms\" }\n\
        [[site]]\nname = \"shop\"\nguarantee.rate = \"100/s\"\n\
        [[site.class]]\nname = \"premium\"\nmatch.path = \"/p/*\"\ndelay = \"200ms\"\npercentile = 95\n";

    fn table(source: &str) -> String {
        plan::text(&understand(source, "test.toml").unwrap_or_else(|_| panic!("refused:\n{source}")))
    }

    fn refused(source: &str) -> String {
        match understand(source, "test.toml") {
            Err(Failure::Input(refusal)) => refusal,
            _ => panic!("it was not refused"),
        }
    }

    #[test]
    fn a_plan_says_which_delay_can_be_kept() {
        let plan = table(PREMIUM);
        for part in ["premium  1         95 % within 200 ms", "fits: 120.7 ms can be kept"] {
            assert!(plan.contains(part), "{part} in\n{plan}");
        }
        let json = json::line(&plan::facts(&understand(PREMIUM, "test.toml").unwrap()));
        assert!(json.contains("\"delay_seconds\":0.2,\"percentile\":95,\"ratio\":null"), "{json}");
    }

    #[test]
    fn what_is_not_known_is_named() {
        let no_contract = PREMIUM.replace("guarantee.rate = \"100/s\"\n", "");
        assert!(table(&no_contract).contains("unverified: its site has no guarantee"));
        // If the delay is shorter than one request takes alone, it is refused at any rate.
        let short = refused(&no_contract.replace("200ms", "30ms"));
        for part in ["shop premium", "any rate", "40 ms", "allow more time, or serve at a lower level"] {
            assert!(short.contains(part), "no {part:?} in\n{short}");
        }
        assert!(
            table(&PREMIUM.replace("costs = { request = \"5ms\" }", ""))
                .contains("unverified: costs unknown")
        );
        let to_be_found = table(&PREMIUM.replace("workers = 8", "max_workers = 64"));
        for part in ["unverified: the workers are to be found", "found, 1 to 64"] {
            assert!(to_be_found.contains(part), "{part} in\n{to_be_found}");
        }
        let ratios = PREMIUM
            .replace("delay = \"200ms\"\npercentile = 95", "ratio = 1")
            .replace("guarantee.rate = \"100/s\"", "default_ratio = 3\nstrict_ratios = true");
        assert!(table(&ratios).contains("last      ratio 3, strict  shown by status"), "{}", table(&ratios));
    }

    #[test]
    fn a_delay_that_yields_to_a_higher_priority_says_so() {
        let no_contract = PREMIUM.replace("guarantee.rate = \"100/s\"\n", "");
        let first = "[[site.class]]\nname = \"first\"\nmatch.path = \"/f/*\"\npriority = 1\n";
        let note = "unverified: its site has no guarantee; kept only while higher priorities leave room";
        let below = no_contract.replace("percentile = 95", "priority = 2") + first;
        assert!(table(&below).contains(note), "{}", table(&below));
        let json = json::line(&plan::facts(&understand(&below, "test.toml").unwrap()));
        assert!(json.contains("\"yields_to_higher_priorities\":true"), "{json}");
        assert!(!table(&(no_contract + first)).contains("leave room"), "among equals a delay comes first");
    }

    #[test]
    fn a_delay_beside_a_contract_waits_for_what_is_in_service() {
        // 160/s of 40 ms keep eight workers busy for 0.8 of the time, so a request waits 2.3 ms for one of them.
        let beside = |ms: u32| {
            let firm = "[[site]]\nname = \"firm\"\nhost = \"firm.example\"\nguarantee.rate = \"160/s\"\n";
            let shop = PREMIUM.replace("guarantee.rate = \"100/s\"\n", "host = \"shop.example\"\n");
            shop.replace("delay = \"200ms\"\npercentile = 95", &format!("delay = \"{ms}ms\"")) + firm
        };
        assert!(table(&beside(44)).contains("unverified: its site has no guarantee"));
        let short = refused(&beside(41));
        for part in ["shop premium", "any rate", "guarantee fewer requests"] {
            assert!(short.contains(part), "no {part:?} in\n{short}");
        }
    }

    #[test]
    fn a_deadline_is_kept_at_the_door() {
        let deadline = PREMIUM.replace("delay = \"200ms\"\npercentile = 95", "deadline = \"1s\"");
        let plan = table(&deadline);
        for part in ["premium  1         99 % of the admitted within 1 s", "enforced at admission"] {
            assert!(plan.contains(part), "{part} in\n{plan}");
        }
    }

    #[test]
    fn a_deadline_that_leaves_less_than_a_request_takes_is_refused() {
        let deadline = |text: &str| {
            PREMIUM.replace("delay = \"200ms\"\npercentile = 95", &format!("deadline = \"{text}\""))
        };
        let short = refused(&deadline("10ms"));
        for part in [
            "test.toml: more is promised",
            "site shop: class premium has 10 ms",
            "takes 40 ms",
            "cannot be kept: allow more time, or serve a lighter level",
        ] {
            assert!(short.contains(part), "{part} in\n{short}");
        }
        let on_site = deadline("1s").replace("name = \"shop\"", "name = \"shop\"\ndeadline = \"30ms\"");
        assert!(refused(&on_site).contains("class default has 30 ms"));
        assert!(table(&deadline("50ms")).contains("enforced at admission"));
        // At the light level a request takes 8 ms; if no cost is configured, its service time is not known.
        let levels = "[[site.level]]\nname = \"light\"\nprefix = \"/l\"\ncost = 0.2\n[[site.level]]\nname = \"full\"\n";
        for levels in [levels.to_owned(), levels.replace("cost = 0.2\n", "")] {
            table(&deadline("10ms").replace("[[site.class]]", &format!("{levels}[[site.class]]")));
        }
    }

    #[test]
    fn a_deadline_beside_ratios_names_those_for_whom_it_holds() {
        let classes = "[[site.class]]\nname = \"gold\"\nmatch.path = \"/g/*\"\nratio = 1\n\
                       [[site.class]]\nname = \"silver\"\nmatch.path = \"/s/*\"\nratio = 2\n";
        let deadline = PREMIUM.replace("delay = \"200ms\"\npercentile = 95", "") + classes;
        let deadline = deadline.replace("name = \"shop\"", "name = \"shop\"\ndeadline = \"1s\"");
        let said = "site shop: its deadline of 1 s is not promised to classes with a `ratio` (gold, silver), only to: \
                    premium, default\n";
        assert!(table(&deadline).contains(said), "{}", table(&deadline));
        let alone = deadline.replace(classes, "");
        assert!(!table(&alone).contains("not promised"), "{}", table(&alone));
    }

    #[test]
    fn a_delay_that_cannot_be_kept_is_refused_with_what_could() {
        let short = refused(&PREMIUM.replace("200ms", "30ms"));
        for part in ["test.toml: more is promised", "shop premium", "40 ms", "these delays cannot be kept"] {
            assert!(short.contains(part), "{part} in\n{short}");
        }
        let crowded = refused(&PREMIUM.replace("200ms", "130ms").replace("100/s", "160/s"));
        assert!(crowded.contains("160/s") && crowded.contains(" ms, or 1"), "{crowded}");
        // Contracts that fit are not printed.
        assert!(!crowded.contains("of the upstream"), "{crowded}");
    }
}
