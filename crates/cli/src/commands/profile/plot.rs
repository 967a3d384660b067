//! The fit as a picture of characters: service time over size, both logarithmic, as UC's Fig. 7.

use crate::output::units::{size, time};
use plimsoll_load::profile::{Fit, Point};

const WIDTH: usize = 56;
const HEIGHT: usize = 12;

struct Axis {
    low: f64,
    high: f64,
    cells: usize,
}

impl Axis {
    fn over(values: impl Iterator<Item = f64>, cells: usize) -> Self {
        let (low, high) =
            values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        Axis { low: low.ln(), high: high.ln(), cells }
    }

    fn cell(&self, value: f64) -> usize {
        let share = (value.ln() - self.low) / (self.high - self.low);
        (share.clamp(0.0, 1.0) * (self.cells - 1) as f64).round() as usize
    }

    fn value(&self, cell: usize) -> f64 {
        (self.low + (self.high - self.low) * cell as f64 / (self.cells - 1) as f64).exp()
    }
}

/// The picture: `o` is measured, `.` is the fit. `None` if there are fewer than two different sizes.
pub(crate) fn plot(points: &[Point], fit: &Fit) -> Option<String> {
    // The logarithmic axis begins at one byte, where an empty body is shown too.
    let bytes = |point: &Point| point.bytes.max(1.0);
    let sizes = Axis::over(points.iter().map(bytes), WIDTH);
    let times = points.iter().flat_map(|point| [point.seconds, fit.seconds(point.bytes)]);
    let times = Axis::over(times, HEIGHT);
    if !(sizes.high - sizes.low > 0.01 && times.high - times.low > 0.001) {
        return None;
    }
    let mut cells = vec![vec![' '; WIDTH]; HEIGHT];
    for column in 0..WIDTH {
        cells[times.cell(fit.seconds(sizes.value(column)))][column] = '.';
    }
    for point in points {
        cells[times.cell(point.seconds)][sizes.cell(bytes(point))] = 'o';
    }
    let mut text = String::from("service time by size (o measured, . the fit; both axes logarithmic)\n");
    for (row, line) in cells.iter().enumerate().rev() {
        let label = if row == 0 || row == HEIGHT - 1 || row == HEIGHT / 2 {
            time(times.value(row))
        } else {
            String::new()
        };
        let line: String = line.iter().collect();
        text += format!("{label:>10} |{line}").trim_end();
        text.push('\n');
    }
    text += &format!("{:>10} +{}\n", "", "-".repeat(WIDTH));
    let (from, to) = (size(sizes.value(0)), size(sizes.value(WIDTH - 1)));
    text += &format!("{:>10}  {from}{to:>1$}", "", WIDTH - from.len());
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_rises_from_the_left_below_to_the_right_above() {
        let fit =
            Fit { per_request_seconds: 1e-3, per_byte_seconds: 1e-8, link_per_byte_seconds: Some(2e-8) };
        let point = |bytes: f64| Point { bytes, seconds: fit.seconds(bytes) };
        let points = [1024.0, 16_384.0, 262_144.0].map(point);
        let text = plot(&points, &fit).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), HEIGHT + 3);
        assert!(lines[1].contains("5.24 ms |") && lines[1].ends_with('o'), "{text}");
        assert!(lines[HEIGHT].contains("1.01 ms |o"), "{text}");
        let measured = lines[1..=HEIGHT].iter().map(|line| line.matches('o').count()).sum::<usize>();
        assert_eq!(measured, 3, "{text}");
        assert!(lines[HEIGHT + 2].ends_with("256 KiB"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn one_size_has_no_picture() {
        let fit = Fit { per_request_seconds: 1e-3, per_byte_seconds: 0.0, link_per_byte_seconds: None };
        assert_eq!(plot(&[Point { bytes: 0.0, seconds: 1e-3 }], &fit), None);
        assert_eq!(plot(&[], &fit), None);
    }
}
