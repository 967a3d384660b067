//! The demo as a page: both sides over time, and the table of the run.

use super::moments::Moment;
use super::plant::SET_POINT;
use crate::output::failure::Failure;
use plimsoll_report::{Block, Chart, Color, Page, Section, Series, Style, Table};
use std::path::Path;

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

/// Writes a page to a file.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(path: &Path, page: &Page) -> Result<(), Failure> {
    let written = std::fs::write(path, page.to_html());
    written.map_err(|error| Failure::Failed(format!("cannot write {}: {error}", path.display())))
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

/// The share of requests that were answered, second by second: the picture of the README.
pub(crate) fn picture(moments: &[[Moment; 2]], marks: &[(f64, &str)]) -> Chart {
    let answered = |moment: &Moment| 100.0 * moment.share(moment.full + moment.light);
    let chart = Chart::over_time("Requests that were answered", "%").from_zero().up_to(100.0);
    let chart = marks.iter().fold(chart, |chart, (x, name)| chart.mark(*x, *name));
    chart
        .series(series("with Plimsoll in front of the server", moments, 0, answered).style(Style::Step))
        .series(series("without it", moments, 1, answered).style(Style::Step).color(Color::Alarm))
}
