//! The demo as a page: both sides over time, and the table of the run.

use super::plant::{SET_POINT, Server};
use super::show::{CALM, LENGTHS};
use super::side::Moment;
use super::{LOAD, SEED, SHOW_CAPACITY, simulated};
use crate::output::failure::Failure;
use plimsoll_report::{Block, Chart, Color, Page, Section, Series, Style, Table};

const SIDES: [&str; 2] = ["with the gateway", "without it"];

/// The page of a run: for each second, both sides.
pub(crate) fn page(moments: &[[Moment; 2]], table: Table) -> Page {
    let charts = |chart: &dyn Fn(usize) -> Chart| Block::Multiples(vec![chart(0), chart(1)]);
    let section = Section::new("Second by second")
        .block(charts(&|side| utilization(moments, side)))
        .block(charts(&|side| shares(moments, side)))
        .chart(response(moments));
    Page {
        title: "An overloaded server with the gateway and without it".to_owned(),
        subtitle: "Both sides are judged by the server's own busy time and the clients' own clocks."
            .to_owned(),
        sections: vec![Section::new("The whole run").table(table), section],
        footer: format!("plimsoll {} demo", env!("CARGO_PKG_VERSION")),
        ..Page::default()
    }
}

/// One value of a side for each second.
fn series(name: &str, moments: &[[Moment; 2]], side: usize, value: impl Fn(&Moment) -> f64) -> Series {
    Series::every(name, 1.0, moments.iter().map(|moment| value(&moment[side])))
}

fn utilization(moments: &[[Moment; 2]], side: usize) -> Chart {
    Chart::over_time(format!("Utilization, {}", SIDES[side]), "of all workers")
        .from_zero()
        .up_to(1.0)
        .threshold("load line", SET_POINT)
        .series(series("utilization", moments, side, |moment| moment.utilization))
}

fn shares(moments: &[[Moment; 2]], side: usize) -> Chart {
    type Count = fn(&Moment) -> u64;
    let parts: [(&str, Count, Color); 4] = [
        ("full pages", |moment| moment.full, Color::Ordered),
        ("light pages", |moment| moment.light, Color::Ordered),
        ("rejected", |moment| moment.rejected, Color::Muted),
        ("failed", |moment| moment.failed, Color::Alarm),
    ];
    let chart =
        Chart::over_time(format!("What became of requests, {}", SIDES[side]), "requests/s").from_zero();
    parts.into_iter().fold(chart, |chart, (name, count, color)| {
        let part = series(name, moments, side, |moment| count(moment) as f64);
        chart.series(part.style(Style::Area).color(color))
    })
}

fn response(moments: &[[Moment; 2]]) -> Chart {
    let chart = Chart::over_time("99th percentile of response times", "ms").from_zero();
    SIDES.iter().enumerate().fold(chart, |chart, (side, name)| {
        chart.series(series(name, moments, side, |moment| moment.response.map_or(f64::NAN, |[_, p99]| p99)))
    })
}

/// The picture of the README: the share of answered requests by second, in virtual time, so that it is always the same.
pub(crate) fn picture() -> Result<String, Failure> {
    let phases: Vec<(u64, f64)> = LENGTHS.into_iter().zip([CALM, LOAD, CALM]).collect();
    let moments = simulated::moments(Server::of_capacity(SHOW_CAPACITY), SEED, &phases)?;
    let [begin, end] = [LENGTHS[0], LENGTHS[0] + LENGTHS[1]].map(|second| second as f64);
    let answered = |moment: &Moment| 100.0 * moment.share(moment.full + moment.light);
    let sides = ["with Plimsoll in front of the server", "without it"];
    let [with, without] = [0, 1].map(|side| series(sides[side], &moments, side, answered).style(Style::Step));
    let chart = Chart::over_time("Requests that were answered", "%")
        .from_zero()
        .up_to(100.0)
        .mark(begin, format!("{LOAD} times as many requests as the server can carry"))
        .mark(end, "half as many");
    Ok(chart.series(with).series(without.color(Color::Alarm)).to_svg())
}

#[cfg(test)]
mod tests {
    /// With `PLIMSOLL_BLESS=1` the test writes the picture again.
    #[test]
    fn the_picture_of_the_readme_is_current() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/demo.svg");
        let svg = super::picture().unwrap();
        if std::env::var_os("PLIMSOLL_BLESS").is_some() {
            std::fs::write(&path, &svg).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == svg,
            "docs/demo.svg is not what the demo gives now: `plimsoll demo --picture docs/demo.svg`"
        );
    }
}
