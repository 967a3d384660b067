//! Compares promised response times with what clients saw: from the histograms of a run, not from what the loops report. Beside
//! them stands the part of the time in which the status calls a promise missed, or a ratio infeasible.
//!
//! Under a percentile a request that was dropped while it waited counts as late, and so does one whose client left after it
//! had waited for as long as was promised; one whose client left before says nothing of the promise. A response is in time
//! up to the edge of its histogram's bucket, which is about one percent wide.

use super::facts::classes;
use super::inputs::Contender;
use crate::output::facts::{Facts, hidden};
use crate::output::promised;
use crate::output::units::{grouped, promised_time, short};
use plimsoll_core::promises::{Delay, Promises};
use plimsoll_core::request::Reason;
use plimsoll_core::telemetry::Histogram;
use plimsoll_core::time::Duration;
use plimsoll_report::{Column, Fact, Table, Verdict};
use plimsoll_sim::{ClassRow, Run};

pub(crate) struct DelayFigures {
    /// `site/class`.
    pub(crate) name: String,
    pub(crate) class: usize,
    pub(crate) delay: Delay,
    /// Requests that were answered, dropped while they waited, or waited for in vain as long as was promised.
    pub(crate) requests: u64,
    /// The part of these requests that took longer than promised.
    pub(crate) late: f64,
    pub(crate) mean: Duration,
    /// The part of the time in which the status calls the promise missed; `None` for a comparator.
    pub(crate) missed: Option<f64>,
}

pub(crate) struct DeadlineFigures {
    /// `site/class`.
    pub(crate) name: String,
    class: usize,
    pub(crate) deadline: Duration,
    /// The promised percentage of admitted requests that are in time.
    in_time: f64,
    /// Requests that were answered, dropped after they were admitted, or waited for in vain until their deadline.
    admitted: u64,
    /// Those of them that were not answered in time.
    missed: u64,
}

/// A site's classes that have a ratio, and how far the ratio was kept.
pub(crate) struct RatioFigures {
    pub(crate) site: String,
    pub(crate) members: Vec<Member>,
    /// The part of the time in which the status calls the ratio infeasible; `None` for a comparator.
    pub(crate) infeasible: Option<f64>,
}

pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) class: usize,
    pub(crate) delta: f64,
    mean: Duration,
}

/// All promises of response times in a contender's configuration.
#[derive(Default)]
pub(crate) struct KeptPromises {
    pub(crate) delays: Vec<DelayFigures>,
    pub(crate) ratios: Vec<RatioFigures>,
    pub(crate) deadlines: Vec<DeadlineFigures>,
}

impl KeptPromises {
    pub(crate) fn of(run: &Run, promises: &Promises) -> KeptPromises {
        let names = classes(promises);
        let (mut all, mut first) = (KeptPromises::default(), 0);
        let row = |class: usize| run.classes.get(class);
        for site in &promises.sites {
            let numbered = || promised::of(site).zip(first..);
            for (one, class) in numbered() {
                if let (Some(delay), Some(row)) = (one.delay, row(class)) {
                    all.delays.push(kept(names[class].0.clone(), class, delay, row));
                }
                if let (Some(deadline), Some(row)) = (one.deadline, row(class)) {
                    let promise = (deadline, one.in_time);
                    all.deadlines.push(DeadlineFigures::of(names[class].0.clone(), class, promise, row));
                }
            }
            let members = numbered().filter_map(|(one, class)| {
                let (name, mean) = (one.class.to_owned(), row(class)?.response.mean());
                Some(Member { name, class, delta: one.ratio?, mean })
            });
            let members: Vec<Member> = members.collect();
            if let Some(member) = members.first() {
                let held = row(member.class).and_then(|row| row.held);
                let infeasible = held.map(|held| held.infeasible);
                all.ratios.push(RatioFigures { site: site.name.clone(), members, infeasible });
            }
            // `default` and `exempt` come after a site's own classes.
            first += site.classes.len() + 2;
        }
        all
    }

    /// The promise to a class and its figures; `None` if nothing was promised.
    pub(crate) fn of_class(&self, class: usize, row: &ClassRow) -> Option<Facts> {
        let delay = self.delays.iter().find(|one| one.class == class);
        let ratio =
            self.ratios.iter().find_map(|all| Some((all, all.members.iter().find(|m| m.class == class)?)));
        let deadline = self.deadlines.iter().find(|one| one.class == class);
        if delay.is_none() && ratio.is_none() && deadline.is_none() {
            return None;
        }
        Some(Facts(vec![
            hidden("delay_seconds", delay.map(|one| one.delay.target.as_secs_f64())),
            hidden("percentile", delay.and_then(|one| one.delay.percentile)),
            hidden("ratio", ratio.map(|(_, member)| member.delta)),
            hidden("late_share", delay.map(|one| one.late)),
            hidden("missed_share_of_time", delay.and_then(|one| one.missed)),
            hidden("infeasible_share_of_time", ratio.and_then(|(all, _)| all.infeasible)),
            hidden("quota_mean", row.held.and_then(|held| held.quota)),
            hidden("deadline_seconds", deadline.map(|one| one.deadline.as_secs_f64())),
            hidden("deadline_missed", deadline.map(|one| one.missed)),
        ]))
    }

    /// Each promise, and how far it was kept.
    fn judged(&self) -> Vec<Judged> {
        let delays = self.delays.iter().filter(|one| one.requests > 0).map(|one| Judged {
            name: one.name.clone(),
            what: format!("response times of {}", one.name),
            promise: promised::delay(one.delay),
            reached: one.reached(),
            verdict: one.verdict(),
            status: of_time("missed", one.missed),
            has_requests: true,
        });
        let deadlines = self.deadlines.iter().map(|one| Judged {
            name: one.name.clone(),
            what: format!("deadline of {}", one.name),
            promise: promised::deadline(one.deadline, one.in_time),
            reached: one.reached(),
            verdict: one.verdict(),
            status: String::new(),
            has_requests: one.admitted > 0,
        });
        let ratios = self.ratios.iter().map(|one| Judged {
            name: one.site.clone(),
            what: format!("ratio of response times, {}", one.site),
            promise: one.words(),
            reached: one.reached(),
            verdict: Verdict::Neutral,
            status: of_time("infeasible", one.infeasible),
            has_requests: true,
        });
        delays.chain(deadlines).chain(ratios).collect()
    }

    /// Each promise, and whether it was kept, as a tile.
    pub(crate) fn tiles(&self) -> Vec<Fact> {
        let tile = |one: Judged| {
            Fact::new(one.what, one.reached).verdict(one.verdict).note(format!("promised: {}", one.promise))
        };
        self.judged().into_iter().map(tile).collect()
    }
}

/// A promise and how far it was kept, in words.
struct Judged {
    /// The class or site.
    name: String,
    /// The kind of the promise.
    what: String,
    promise: String,
    /// The response times that clients saw.
    reached: String,
    verdict: Verdict,
    /// For how much of the time the status called the promise missed or infeasible.
    status: String,
    /// Whether any request came under the promise; without one there is no row in the table.
    has_requests: bool,
}

/// A table of all promises and how far they were kept, for each of these contenders.
pub(crate) fn table<'a>(all: impl Iterator<Item = (&'a KeptPromises, &'a Contender)>) -> Table {
    let columns = ["promised", "response times", "in front", "reached", "the status said"];
    let table = Table::new("Promised response times", columns.map(Column::text));
    let rows = all.flat_map(|(promised, contender)| {
        let front = short(&contender.name);
        promised
            .judged()
            .into_iter()
            .filter(|one| one.has_requests)
            .map(move |one| [one.name, one.promise, front.clone(), one.reached, one.status])
    });
    rows.fold(table, |table, row| table.row(row.map(Into::into)))
}

fn kept(name: String, class: usize, delay: Delay, row: &ClassRow) -> DelayFigures {
    let in_vain = row.reasons[Reason::WaitTimeout as usize] + left_late(row, delay.target);
    let requests = row.response.count() + in_vain;
    let late = requests - within(&row.response, delay.target);
    DelayFigures {
        name,
        class,
        delay,
        requests,
        late: late as f64 / requests.max(1) as f64,
        mean: row.response.mean(),
        missed: row.held.map(|held| held.missed),
    }
}

/// How many were answered late, dropped or waited for in vain, of how many that were admitted.
pub(super) fn deadline(row: &ClassRow, deadline: Duration) -> (u64, u64) {
    let dropped = [Reason::Late, Reason::WaitTimeout].map(|reason| row.reasons[reason as usize]);
    let admitted = row.response.count() + dropped.iter().sum::<u64>() + left_late(row, deadline);
    (admitted - within(&row.response, deadline), admitted)
}

/// How many clients left after they had waited for as long as was promised.
fn left_late(row: &ClassRow, promised: Duration) -> u64 {
    row.left.range(promised..).map(|(_, count)| count).sum()
}

impl DeadlineFigures {
    fn of(name: String, class: usize, (deadline, in_time): (Duration, f64), row: &ClassRow) -> Self {
        let (missed, admitted) = self::deadline(row, deadline);
        DeadlineFigures { name, class, deadline, in_time, admitted, missed }
    }

    fn reached(&self) -> String {
        if self.missed == 0 {
            "all".to_owned()
        } else {
            format!("all but {} of {}", grouped(self.missed), grouped(self.admitted))
        }
    }

    fn verdict(&self) -> Verdict {
        let may_miss = 1.0 - self.in_time / 100.0;
        match self.missed as f64 / self.admitted.max(1) as f64 {
            share if share <= may_miss => Verdict::Good,
            share if share < 2.0 * may_miss => Verdict::Neutral,
            _ => Verdict::Bad,
        }
    }
}

/// The number of responses that took no longer than `target`.
fn within(response: &Histogram, target: Duration) -> u64 {
    let count = response.count();
    let (mut in_time, mut beyond) = (0, count + 1);
    while beyond - in_time > 1 {
        let rank = in_time + (beyond - in_time) / 2;
        let quantile = response.quantile((rank as f64 - 0.5) / count as f64);
        *(if quantile <= target { &mut in_time } else { &mut beyond }) = rank;
    }
    in_time
}

impl DelayFigures {
    /// The response times that clients saw, in words.
    fn reached(&self) -> String {
        match self.delay.percentile {
            _ if self.requests == 0 => "-".to_owned(),
            Some(_) => format!("{:.1} %", 100.0 * (1.0 - self.late)),
            None => promised_time(self.mean.as_secs_f64()),
        }
    }

    /// A promise is broken if the status would call it missed; between the promise and that bound there is no verdict.
    fn verdict(&self) -> Verdict {
        let (is, promised, missed) = match self.delay.percentile {
            Some(percentile) => (self.late, 1.0 - percentile / 100.0, Delay::MISSED_SHARE),
            None => (self.mean.as_secs_f64(), self.delay.target.as_secs_f64(), Delay::MISSED_MEAN),
        };
        match is {
            is if is <= promised => Verdict::Good,
            is if is > missed * promised => Verdict::Bad,
            _ => Verdict::Neutral,
        }
    }
}

impl RatioFigures {
    /// Such as `1 : 1.97`, in units of the first class; a class without requests shows a dash.
    fn reached(&self) -> String {
        let unit = self.members[0].mean.as_secs_f64() / self.members[0].delta;
        let times = self.members.iter().map(|member| {
            let times = member.mean.as_secs_f64() / unit;
            if times.is_finite() && times > 0.0 { format!("{:.2}", times) } else { "-".to_owned() }
        });
        times.collect::<Vec<_>>().join(" : ")
    }

    fn words(&self) -> String {
        let all: Vec<String> =
            self.members.iter().map(|member| format!("{} {}", member.name, member.delta)).collect();
        all.join(" : ")
    }
}

/// `missed 3.1 % of the time`.
fn of_time(what: &str, part: Option<f64>) -> String {
    match part {
        None => "-".to_owned(),
        Some(0.0) => format!("never {what}"),
        Some(part) => format!("{what} {:.1} % of the time", 100.0 * part),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(milliseconds: impl Iterator<Item = u64>) -> ClassRow {
        let mut row = ClassRow::default();
        milliseconds.for_each(|ms| row.response.record_ns(ms * 1_000_000));
        row
    }

    fn promise(percentile: Option<f64>) -> Delay {
        Delay { target: Duration::from_millis(200), percentile }
    }

    #[test]
    fn a_percentile_counts_who_was_late_and_who_waited_in_vain() {
        let mut row = row((1..=1000).map(|n| if n <= 940 { 100 } else { 300 }));
        let figures = kept("shop/premium".into(), 0, promise(Some(95.0)), &row);
        assert_eq!((figures.requests, figures.reached().as_str()), (1000, "94.0 %"));
        assert!((figures.late - 0.06).abs() < 1e-9 && figures.verdict() == Verdict::Neutral);
        row.reasons[Reason::WaitTimeout as usize] = 10;
        let figures = kept("shop/premium".into(), 0, promise(Some(95.0)), &row);
        assert!((figures.late - 70.0 / 1010.0).abs() < 1e-9 && figures.verdict() == Verdict::Bad);
        assert_eq!(kept("shop/premium".into(), 0, promise(Some(93.0)), &row).verdict(), Verdict::Good);
    }

    #[test]
    fn a_deadline_counts_who_was_late_and_who_was_dropped_but_nobody_refused() {
        let mut row = row((1..=1000).map(|n| if n <= 998 { 100 } else { 300 }));
        row.reasons[Reason::Deadline as usize] = 500;
        let promised = |in_time, row: &ClassRow| {
            DeadlineFigures::of("shop/all".into(), 0, (Duration::from_millis(200), in_time), row)
        };
        let of = |row: &ClassRow| promised(99.0, row);
        let verdicts = [99.0, 99.8, 99.9].map(|in_time| promised(in_time, &row).verdict());
        assert_eq!(verdicts, [Verdict::Good, Verdict::Good, Verdict::Bad]);
        assert_eq!((of(&row).admitted, of(&row).missed), (1000, 2));
        row.reasons[Reason::Late as usize] = 3;
        assert_eq!(of(&row).reached(), "all but 5 of 1,003");
        assert_eq!(of(&ClassRow::default()).reached(), "all");
    }

    #[test]
    fn who_left_is_late_after_as_long_as_was_promised() {
        let mut row = row((0..900).map(|_| 100));
        row.left = [(199, 50), (200, 60), (5_000, 40)].map(|(ms, n)| (Duration::from_millis(ms), n)).into();
        let figures = kept("shop/premium".into(), 0, promise(Some(95.0)), &row);
        assert_eq!((figures.requests, figures.reached().as_str()), (1000, "90.0 %"));
        assert_eq!(deadline(&row, Duration::from_millis(200)), (100, 1000));
        row.merge(&row.clone(), [1.0, 1.0]);
        assert_eq!(deadline(&row, Duration::from_millis(201)), (80, 1880));
    }

    #[test]
    fn a_mean_is_judged_as_one() {
        let of = |ms| kept("shop/premium".into(), 0, promise(None), &row([ms, ms].into_iter()));
        assert_eq!(
            [of(199), of(210), of(230)].map(|one| one.verdict()),
            [Verdict::Good, Verdict::Neutral, Verdict::Bad]
        );
        assert_eq!(of(210).reached(), "210 ms");
    }

    #[test]
    fn nobody_is_late_of_nobody() {
        let figures = kept("shop/premium".into(), 0, promise(Some(95.0)), &ClassRow::default());
        assert_eq!((figures.requests, figures.late, figures.reached().as_str()), (0, 0.0, "-"));
    }

    #[test]
    fn a_ratio_is_reported_in_units_of_its_first_class() {
        let member = |name: &str, delta, ms| Member {
            name: name.to_owned(),
            class: 0,
            delta,
            mean: Duration::from_millis(ms),
        };
        let members = vec![member("gold", 1.0, 100), member("plain", 2.0, 190), member("late", 3.0, 0)];
        let ratio = RatioFigures { site: "shop".to_owned(), members, infeasible: None };
        assert_eq!(ratio.words(), "gold 1 : plain 2 : late 3");
        assert_eq!(ratio.reached(), "1.00 : 1.90 : -");
        let said = [None, Some(0.0), Some(0.031)].map(|part| of_time("missed", part));
        assert_eq!(said, ["-", "never missed", "missed 3.1 % of the time"]);
    }
}
