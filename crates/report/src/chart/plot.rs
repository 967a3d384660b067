//! Prepares a chart for drawing: cleaned points, the stack, the ranges, the ticks.

use super::ticks::{self, Ticks};
use super::{Chart, Series, Style, XAxis};

/// A point (x, y), both finite; `None` is a gap.
pub(super) type Point = (f64, Option<f64>);

/// The range of an axis; `low` < `high`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Range {
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The two axes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Frame {
    pub(super) x: Range,
    pub(super) y: Range,
    pub(super) x_ticks: Ticks,
    pub(super) y_ticks: Ticks,
}

/// A chart's points as they are drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plot {
    /// The points of each series: finite, with ascending x.
    pub(super) points: Vec<Vec<Point>>,
    /// For each series, the lower and upper boundary if it is an area; empty for others.
    pub(super) stacked: Vec<(Vec<Point>, Vec<Point>)>,
}

impl Range {
    /// The place of `value` on the axis: 0 at the low end, 1 at the high end.
    pub(super) fn share(self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The range from the least value to the greatest; `None` if there are no values.
    fn over(values: impl Iterator<Item = f64>) -> Option<Self> {
        values.fold(None, |range: Option<Self>, value| {
            let range = range.unwrap_or(Self { low: value, high: value });
            Some(Self { low: range.low.min(value), high: range.high.max(value) })
        })
    }

    /// Whether the range cannot make an axis: too narrow, because all values are equal but for rounding, or too wide for
    /// floating-point numbers.
    fn is_degenerate(self) -> bool {
        let width = self.high - self.low;
        !(width > self.low.abs().max(self.high.abs()) * 1e-6 && width > 1e-100 && width < 1e100)
    }
}

impl Plot {
    pub(super) fn of(chart: &Chart) -> Self {
        let points: Vec<Vec<Point>> = chart.series.iter().map(clean).collect();
        let stacked = stack(&chart.series, &points);
        Self { points, stacked }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.points.iter().flatten().all(|point| point.1.is_none())
    }

    fn xs(&self) -> impl Iterator<Item = f64> {
        self.points.iter().flatten().map(|point| point.0)
    }

    /// All values that the vertical axis must include.
    fn heights(&self, chart: &Chart) -> impl Iterator<Item = f64> {
        let lines = self.points.iter().zip(&chart.series).filter(|(_, series)| series.style != Style::Area);
        let lines = lines.flat_map(|(points, _)| points.iter().filter_map(|point| point.1));
        let areas = self.stacked.iter().flat_map(|(bottom, top)| bottom.iter().chain(top));
        let areas = areas.filter_map(|point| point.1);
        let threshold = chart.threshold.iter().map(|threshold| threshold.value);
        lines.chain(areas).chain(threshold).chain(chart.y.max).filter(|height| height.is_finite())
    }
}

impl Frame {
    /// One frame for all of these charts, which have the same kind of horizontal axis.
    pub(super) fn of(charts: &[(&Chart, &Plot)]) -> Self {
        let is_time = charts.iter().all(|(chart, _)| chart.x == XAxis::Time);
        let x = Range::over(charts.iter().flat_map(|(_, plot)| plot.xs()))
            .unwrap_or(Range { low: 0.0, high: 1.0 });
        let x = if x.is_degenerate() { widened(x.low, is_time) } else { x };
        let heights = Range::over(charts.iter().flat_map(|(chart, plot)| plot.heights(chart)));
        let from_zero = charts.iter().any(|(chart, _)| chart.y.from_zero);
        let max = charts.iter().filter_map(|(chart, _)| chart.y.max).filter(|max| max.is_finite());
        let y = vertical(heights, from_zero, max.reduce(f64::max));
        let x_ticks = if is_time { ticks::time(x.low, x.high) } else { ticks::plain(x.low, x.high) };
        Self { x, y, x_ticks, y_ticks: ticks::plain(y.low, y.high) }
    }
}

/// The vertical axis: begins at zero if the chart asks for it, extends to the next ticks, and ends at the chart's maximum
/// unless a value lies above that.
fn vertical(heights: Option<Range>, from_zero: bool, max: Option<f64>) -> Range {
    let mut y = heights.unwrap_or(Range { low: 0.0, high: 1.0 });
    if from_zero {
        y = Range { low: y.low.min(0.0), high: y.high.max(0.0) };
    }
    if y.is_degenerate() {
        let around = widened(y.low, false);
        return if from_zero && y.low == 0.0 { Range { low: 0.0, ..around } } else { around };
    }
    let step = ticks::plain(y.low, y.high).step;
    let out = Range {
        low: if y.low == 0.0 { 0.0 } else { (y.low / step + 1e-9).floor() * step },
        high: if Some(y.high) == max { y.high } else { (y.high / step - 1e-9).ceil() * step },
    };
    // At the limits of floating-point numbers there is no next tick.
    if out.is_degenerate() { y } else { out }
}

/// A range around a lone value.
fn widened(value: f64, is_time: bool) -> Range {
    // Values that no axis can show (1e200) must not break the page.
    let value = value.clamp(-1e90, 1e90);
    let around = if value == 0.0 || (is_time && value.abs() < 10.0) { 1.0 } else { value.abs() / 10.0 };
    Range { low: if is_time && value == 0.0 { 0.0 } else { value - around }, high: value + around }
}

fn clean(series: &Series) -> Vec<Point> {
    let finite = series.points.iter().filter(|point| point.0.is_finite());
    let mut points: Vec<Point> = finite.map(|point| (point.0, point.1.filter(|y| y.is_finite()))).collect();
    if !points.is_sorted_by(|a, b| a.0 <= b.0) {
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    points
}

/// The boundaries of each area over the xs of all areas. If an area has no value at an x it adds nothing there; if no area has
/// a value, there is a gap.
fn stack(series: &[Series], points: &[Vec<Point>]) -> Vec<(Vec<Point>, Vec<Point>)> {
    let areas = || points.iter().zip(series).filter(|(_, series)| series.style == Style::Area);
    let mut xs: Vec<f64> = areas().flat_map(|(points, _)| points.iter().map(|point| point.0)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let filled: Vec<Vec<Option<f64>>> = areas().map(|(points, _)| values_at(points, &xs)).collect();
    let bottom = |row: usize| filled.iter().any(|values| values[row].is_some()).then_some(0.0);
    let mut height: Vec<Point> = xs.iter().enumerate().map(|(row, x)| (*x, bottom(row))).collect();
    let mut filled = filled.iter();
    let boundaries = |series: &Series| {
        let values = (series.style == Style::Area).then(|| filled.next()).flatten();
        let Some(values) = values else { return Default::default() };
        let add = |(below, value): (&Point, &Option<f64>)| {
            (below.0, below.1.map(|below| below + value.unwrap_or(0.0)))
        };
        let top: Vec<Point> = height.iter().zip(values).map(add).collect();
        (std::mem::replace(&mut height, top.clone()), top)
    };
    series.iter().map(boundaries).collect()
}

/// The value of a series at each x: that of its last point with this x, or `None`.
fn values_at(points: &[Point], xs: &[f64]) -> Vec<Option<f64>> {
    let mut rest = points.iter().peekable();
    let value_at = |x: &f64| {
        let mut value = None;
        while let Some(point) = rest.next_if(|point| point.0 <= *x) {
            value = point.1.or(value);
        }
        value
    };
    xs.iter().map(value_at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(chart: &Chart) -> Frame {
        Frame::of(&[(chart, &Plot::of(chart))])
    }

    fn over(values: impl IntoIterator<Item = f64>) -> Chart {
        Chart::over_time("t", "").series(Series::every("a", 5.0, values))
    }

    #[test]
    fn the_axis_reaches_out_to_ticks_or_up_to_the_maximum_that_holds() {
        assert_eq!(frame(&over([0.2, 0.83])).y, Range { low: 0.2, high: 1.0 });
        assert_eq!(frame(&over([0.2, 0.83]).from_zero().up_to(0.9)).y, Range { low: 0.0, high: 0.9 });
        assert_eq!(frame(&over([0.2, 1.75]).from_zero().up_to(1.0)).y, Range { low: 0.0, high: 2.0 });
        assert!(frame(&over([0.2, 0.3]).threshold("limit", 5.0)).y.high >= 5.0);
    }

    #[test]
    fn nothing_one_point_and_equal_values_have_an_axis() {
        let odd = [
            over([]),
            over([f64::NAN, f64::INFINITY]),
            over([3.0]),
            over([0.0, 0.0]),
            over([0.0, 0.0]).from_zero(),
            over([-7.0, -7.0]),
            over([1e9, 1e9 + 1e-3]),
            over([1e300, -1e300]),
            over([1e-300, 2e-300]),
            Chart::over_time("t", ""),
            over([1.0]).up_to(f64::NAN).threshold("x", f64::INFINITY),
            Chart::over_time("t", "")
                .series(Series::new("a", [(1e300, 1.0), (-1e300, 1.0), (f64::NAN, 1.0)])),
        ];
        for chart in odd {
            let frame = frame(&chart);
            for (range, ticks) in [(frame.x, &frame.x_ticks), (frame.y, &frame.y_ticks)] {
                assert!(range.low < range.high, "{chart:?} {range:?}");
                assert!((3..=10).contains(&ticks.ticks.len()), "{chart:?} {ticks:?}");
            }
        }
    }

    #[test]
    fn small_multiples_share_a_frame() {
        let (small, large) = (over([1.0, 2.0]), over([10.0, 40.0, 30.0]));
        let frame = Frame::of(&[(&small, &Plot::of(&small)), (&large, &Plot::of(&large))]);
        assert_eq!(frame.x, Range { low: 0.0, high: 10.0 });
        assert_eq!(frame.y, Range { low: 0.0, high: 40.0 });
    }

    #[test]
    fn areas_stack_over_all_xs_and_share_their_gaps() {
        let area = |points: &[(f64, Option<f64>)]| Series::new("a", points.to_vec()).style(Style::Area);
        let chart = Chart::over_time("t", "")
            .series(area(&[(0.0, Some(1.0)), (1.0, None), (2.0, Some(1.0))]))
            .series(Series::new("line", [(0.0, 100.0)]))
            .series(area(&[(0.0, Some(2.0)), (1.0, None), (3.0, Some(5.0))]));
        let plot = Plot::of(&chart);
        assert_eq!(plot.stacked[0].1, [(0.0, Some(1.0)), (1.0, None), (2.0, Some(1.0)), (3.0, Some(0.0))]);
        assert_eq!(plot.stacked[1], (vec![], vec![]));
        assert_eq!(plot.stacked[2].0, plot.stacked[0].1);
        assert_eq!(plot.stacked[2].1, [(0.0, Some(3.0)), (1.0, None), (2.0, Some(1.0)), (3.0, Some(5.0))]);
    }

    #[test]
    fn points_out_of_order_are_sorted() {
        let chart = Chart::over_time("t", "").series(Series::new("a", [(2.0, 1.0), (1.0, 2.0)]));
        assert_eq!(Plot::of(&chart).points[0], [(1.0, Some(2.0)), (2.0, Some(1.0))]);
    }
}
