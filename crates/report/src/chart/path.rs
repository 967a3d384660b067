//! Points as SVG path data, in a picture of 1000 by 300 that is stretched over the plot.
//!
//! One decimal is a tenth of a pixel. If a series has more points than the plot has pixels, it is reduced by columns (M4: the
//! first, least, greatest and last point of each), which gives the same pixels.

use super::Style;
use super::plot::{Frame, Point};
use crate::number::push_fixed;

/// The picture's width in its own units.
pub(super) const WIDTH: f64 = 1000.0;
/// The height in the same units.
pub(super) const HEIGHT: f64 = 300.0;

/// The number of columns after reduction: with four points each, they are twice as fine as the widest plot's pixels.
const COLUMNS: f64 = 500.0;

/// A run of points longer than this is reduced.
const LONG: usize = 2000;

/// The path of a line; and the points with gaps on both sides, which a line would not show.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Drawn {
    pub(super) line: String,
    pub(super) dots: String,
}

/// A series that is not stacked.
pub(super) fn line(frame: &Frame, points: &[Point], style: Style) -> Drawn {
    let mut drawn = Drawn::default();
    for run in points.split(|point| point.1.is_none()).filter(|run| !run.is_empty()) {
        let run = placed(frame, run);
        if run.len() == 1 || style == Style::Points {
            for dot in &run {
                drawn.dots.push('M');
                push_point(&mut drawn.dots, *dot);
                drawn.dots.push_str("h0");
            }
        } else {
            push_run(&mut drawn.line, &run, style == Style::Step);
        }
    }
    drawn
}

/// The area between two boundaries of a stack, which have the same xs and gaps.
pub(super) fn area(frame: &Frame, bottom: &[Point], top: &[Point]) -> String {
    let mut out = String::new();
    let runs = |points: &[Point]| -> Vec<Vec<(f64, f64)>> {
        let runs = points.split(|point| point.1.is_none()).filter(|run| !run.is_empty());
        runs.map(|run| placed(frame, run)).collect()
    };
    for (top, mut bottom) in runs(top).into_iter().zip(runs(bottom)) {
        push_run(&mut out, &top, false);
        bottom.reverse();
        out.push('L');
        for (index, point) in bottom.iter().enumerate() {
            out.push_str(if index == 0 { "" } else { " " });
            push_point(&mut out, *point);
        }
        out.push('Z');
    }
    out
}

/// The places of points in the picture, reduced if there are many.
fn placed(frame: &Frame, run: &[Point]) -> Vec<(f64, f64)> {
    let place = |point: &Point| {
        let y = point.1.unwrap_or(frame.y.low);
        (frame.x.share(point.0) * WIDTH, (1.0 - frame.y.share(y)) * HEIGHT)
    };
    let places: Vec<(f64, f64)> = run.iter().map(place).collect();
    if places.len() > LONG { reduce(&places) } else { places }
}

/// The first, least, greatest and last point of each column, in their original order.
fn reduce(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let column = |place: &(f64, f64)| (place.0 * COLUMNS / WIDTH).floor();
    let mut kept = Vec::new();
    for group in places.chunk_by(|a, b| column(a) == column(b)) {
        let by_height = |a: &usize, b: &usize| group[*a].1.total_cmp(&group[*b].1);
        let least = (0..group.len()).min_by(by_height).unwrap_or(0);
        let greatest = (0..group.len()).max_by(by_height).unwrap_or(0);
        let mut indices = [0, least.min(greatest), least.max(greatest), group.len() - 1].to_vec();
        indices.dedup();
        kept.extend(indices.into_iter().map(|index| group[index]));
    }
    kept
}

fn push_run(out: &mut String, run: &[(f64, f64)], step: bool) {
    out.push('M');
    for (index, place) in run.iter().enumerate() {
        match index {
            0 => push_point(out, *place),
            _ if step => {
                out.push('H');
                push_fixed(out, place.0, 1);
                out.push('V');
                push_fixed(out, place.1, 1);
            }
            _ => {
                out.push(if index == 1 { 'L' } else { ' ' });
                push_point(out, *place);
            }
        }
    }
}

fn push_point(out: &mut String, place: (f64, f64)) {
    push_fixed(out, place.0, 1);
    out.push(' ');
    push_fixed(out, place.1, 1);
}

#[cfg(test)]
mod tests {
    use super::super::plot::Range;
    use super::*;

    fn frame(points: usize) -> Frame {
        Frame {
            x: Range { low: 0.0, high: points as f64 },
            y: Range { low: 0.0, high: 3.0 },
            ..Frame::default()
        }
    }

    #[test]
    fn a_gap_breaks_the_line_and_a_lone_point_is_a_dot() {
        let points = [(0.0, Some(0.0)), (1.0, Some(3.0)), (2.0, None), (3.0, Some(1.0)), (4.0, None)];
        let drawn = line(&frame(4), &points, Style::Line);
        assert_eq!(drawn.line, "M0 300L250 0");
        assert_eq!(drawn.dots, "M750 200h0");
    }

    #[test]
    fn steps_hold_until_the_next() {
        let points = [(0.0, Some(0.0)), (1.0, Some(3.0)), (2.0, Some(1.5))];
        assert_eq!(line(&frame(2), &points, Style::Step).line, "M0 300H500V0H1000V150");
    }

    #[test]
    fn areas_close_between_their_boundaries() {
        let bottom = [(0.0, Some(0.0)), (1.0, Some(0.0)), (2.0, None)];
        let top = [(0.0, Some(1.0)), (1.0, Some(2.0)), (2.0, None)];
        assert_eq!(area(&frame(2), &bottom, &top), "M0 200L500 100L500 300 0 300Z");
    }

    #[test]
    fn a_long_series_gets_short_and_keeps_its_peak() {
        let count = 100_000;
        let value = |index: usize| if index == 61_803 { 3.0 } else { 1.0 + (index % 7) as f64 / 10.0 };
        let points: Vec<Point> = (0..count).map(|index| (index as f64, Some(value(index)))).collect();
        let drawn = line(&frame(count), &points, Style::Line);
        assert!(drawn.line.len() < 30_000, "{}", drawn.line.len());
        assert!(drawn.line.contains(" 618 0 ") || drawn.line.contains("618 0 "), "the peak stays");
        assert!(drawn.line.starts_with("M0 200"), "the first point stays");
        assert!(
            drawn.line.ends_with(&format!("1000 {}", 300.0 - 100.0 * value(count - 1))),
            "the last point stays"
        );
    }
}
