//! A chart's data as tab-separated text, one row for each x.
//!
//! Three readers use this text: a person who cannot see the picture, a spreadsheet, and the page's script for its
//! cross-hair. The text is data, never script.

use super::Chart;
use super::plot::{Plot, Point};
use crate::number::push_significant;
use crate::text::push_cell;

/// If there are more rows than this, only every n-th is kept; the picture still shows all peaks.
const MOST_ROWS: usize = 2000;

/// The rows as text; if there are too many, only every n-th.
pub(super) struct Rows {
    pub(super) text: String,
    pub(super) every: usize,
    pub(super) total: usize,
}

/// The chart's rows. A gap is `-`; the cell of a series without a point at this x is empty.
pub(super) fn rows(chart: &Chart, plot: &Plot) -> Rows {
    let total = merged(&plot.points).count();
    let every = total.div_ceil(MOST_ROWS).max(1);
    let mut text = String::new();
    push_cell(&mut text, &chart.x.label("s"));
    for series in &chart.series {
        text.push('\t');
        push_cell(&mut text, &series.name);
    }
    for (x, cells) in merged(&plot.points).step_by(every) {
        text.push('\n');
        push_significant(&mut text, x, 9);
        for cell in cells {
            text.push('\t');
            match cell {
                Some(Some(value)) => push_significant(&mut text, value, 6),
                Some(None) => text.push('-'),
                None => {}
            }
        }
    }
    Rows { text, every, total }
}

/// One row for each x that any series has, ascending, with the value of each series at that x. If a series has an x twice,
/// there are two rows.
fn merged(points: &[Vec<Point>]) -> impl Iterator<Item = (f64, Vec<Option<Option<f64>>>)> {
    let mut rest: Vec<&[Point]> = points.iter().map(Vec::as_slice).collect();
    std::iter::from_fn(move || {
        let x =
            rest.iter().filter_map(|points| points.first()).map(|point| point.0).min_by(f64::total_cmp)?;
        let cells = rest.iter_mut().map(|points| match points.split_first() {
            Some((first, others)) if first.0 == x => {
                *points = others;
                Some(first.1)
            }
            _ => None,
        });
        Some((x, cells.collect()))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Series, XAxis};
    use super::*;

    fn text(chart: &Chart) -> String {
        rows(chart, &Plot::of(chart)).text
    }

    #[test]
    fn a_row_for_each_x() {
        let chart = Chart::over_time("t", "")
            .series(Series::new("a\tb", [(0.0, Some(0.5)), (5.0, None), (10.0, Some(f64::NAN))]))
            .series(Series::new("<c>", [(0.0, 1.0), (2.5, 2.0), (2.5, 1.0 / 3.0)]));
        assert_eq!(
            text(&chart),
            "time (s)\ta b\t&lt;c&gt;\n0\t0.5\t1\n2.5\t\t2\n2.5\t\t0.333333\n5\t-\t\n10\t-\t"
        );
    }

    #[test]
    fn another_quantity_is_named() {
        let x = XAxis::Quantity { name: "size".into(), unit: "KiB".into() };
        assert_eq!(text(&Chart::over(x, "t", "ms")), "size (KiB)");
    }

    #[test]
    fn many_rows_are_thinned() {
        let chart = Chart::over_time("t", "").series(Series::every("a", 1.0, (0..9000).map(f64::from)));
        let rows = rows(&chart, &Plot::of(&chart));
        assert_eq!((rows.every, rows.total), (5, 9000));
        assert_eq!(rows.text.lines().count(), 1 + 1800);
    }
}
