//! A chart as a picture of its own: an SVG file for documents other than this crate's pages.
//!
//! A reader's style sheet and theme do not apply inside such a file, so the picture has its own colours and a white background,
//! and is readable on light and dark pages.

use super::path::{self, HEIGHT, WIDTH};
use super::plot::{Frame, Plot};
use super::{Chart, Color};
use crate::text::Escaped;
use std::fmt::Write;

/// The margins of the plot: above for title and legend, below for the axis, at the left for labels.
const ABOVE: f64 = 96.0;
const BELOW: f64 = 64.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 28.0;
/// The series' colours on white, as in page.css.
const SLOTS: [&str; 4] = ["#376abd", "#e96c14", "#47a27c", "#a5577d"];
const ALARM: &str = "#e00f40";
const MUTED: &str = "#6b7680";

impl Chart {
    /// The lines of the chart as an SVG file, with title, legend, axes and marks.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let plot = Plot::of(self);
        let frame = Frame::of(&[(self, &plot)]);
        let (width, height) = (LEFT + WIDTH + RIGHT, ABOVE + HEIGHT + BELOW);
        let mut out = String::new();
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             font-family=\"system-ui, 'DejaVu Sans', sans-serif\" font-size=\"19\" fill=\"#1b2127\">\n\
             <title>{title}</title>\n\
             <rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"10\" fill=\"#fff\" stroke=\"#dfe3e8\"/>\n\
             <text x=\"{LEFT}\" y=\"34\" font-size=\"23\" font-weight=\"600\">{title}</text>",
            width - 1.0,
            height - 1.0,
            title = Escaped(&self.title)
        );
        self.write_key(&mut out);
        let _ = writeln!(out, "<g transform=\"translate({LEFT} {ABOVE})\">");
        self.write_scales(&mut out, &frame);
        self.write_moments(&mut out, &frame);
        // The first series is drawn last, so that it is on top where lines meet.
        for (place, series) in self.series.iter().enumerate().rev() {
            let drawn = path::line(&frame, &plot.points[place], series.style);
            let _ = writeln!(
                out,
                "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"3.5\" stroke-linejoin=\"round\"/>",
                drawn.line,
                ink(series.color, place)
            );
        }
        out.push_str("</g>\n</svg>\n");
        out
    }

    /// The legend: a line in the colour of each series, and its name.
    fn write_key(&self, out: &mut String) {
        let mut x = LEFT;
        for (place, series) in self.series.iter().enumerate() {
            let _ = writeln!(
                out,
                "<path d=\"M{x} 62h30\" stroke=\"{}\" stroke-width=\"5\"/><text x=\"{}\" y=\"69\">{}</text>",
                ink(series.color, place),
                x + 40.0,
                Escaped(&series.name)
            );
            // This is about the width of the text, which is precise enough for a legend.
            x += 80.0 + 10.0 * series.name.chars().count() as f64;
        }
    }

    fn write_scales(&self, out: &mut String, frame: &Frame) {
        for tick in &frame.y_ticks.ticks {
            let y = (1.0 - frame.y.share(tick.value)) * HEIGHT;
            let _ = writeln!(
                out,
                "<path d=\"M0 {y:.1}H{WIDTH}\" stroke=\"#dfe3e8\"/><text x=\"-12\" y=\"{:.1}\" text-anchor=\"end\" \
                 fill=\"#55606b\">{}</text>",
                y + 6.0,
                tick.label
            );
        }
        for tick in &frame.x_ticks.ticks {
            let x = frame.x.share(tick.value) * WIDTH;
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} {HEIGHT}v6\" stroke=\"#55606b\"/><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\" \
                 fill=\"#55606b\">{}</text>",
                HEIGHT + 28.0,
                tick.label
            );
        }
        let _ = writeln!(
            out,
            "<path d=\"M0 {HEIGHT}H{WIDTH}\" stroke=\"#55606b\"/><text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\" \
             fill=\"#55606b\">{}</text>\n<text x=\"-12\" y=\"-14\" text-anchor=\"end\" fill=\"#55606b\">{}</text>",
            HEIGHT + 52.0,
            Escaped(&self.x.label(frame.x_ticks.unit)),
            Escaped(&self.unit)
        );
    }

    fn write_moments(&self, out: &mut String, frame: &Frame) {
        for mark in &self.marks {
            let x = frame.x.share(mark.x) * WIDTH;
            let _ = writeln!(
                out,
                "<path d=\"M{x:.1} 0V{HEIGHT}\" stroke=\"#55606b\" stroke-dasharray=\"3 5\"/>\
                 <text x=\"{:.1}\" y=\"{}\" fill=\"#55606b\">{}</text>",
                x + 8.0,
                HEIGHT - 12.0,
                Escaped(&mark.name)
            );
        }
    }
}

/// The colour of the series at `place`.
fn ink(color: Color, place: usize) -> &'static str {
    match color {
        Color::Alarm => ALARM,
        Color::Muted => MUTED,
        Color::Auto | Color::Ordered => SLOTS[place % SLOTS.len()],
    }
}

#[cfg(test)]
mod tests {
    use crate::{Chart, Color, Series};

    #[test]
    fn a_picture_stands_alone_and_has_a_line_and_a_name_for_each_series() {
        let svg = Chart::over_time("Answered <all>", "%")
            .from_zero()
            .mark(2.0, "the crowd comes")
            .series(Series::every("with", 1.0, [100.0, 100.0, 99.0]))
            .series(Series::every("without", 1.0, [100.0, 50.0, 33.0]).color(Color::Alarm))
            .to_svg();
        assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
        for part in [
            "Answered &lt;all&gt;",
            ">with</text>",
            ">without</text>",
            "the crowd comes",
            "time (s)",
            "#e00f40",
        ] {
            assert!(svg.contains(part), "no {part} in {svg}");
        }
        assert_eq!(svg.matches("stroke-width=\"3.5\"").count(), 2);
        assert!(!svg.contains("class=") && !svg.contains("style="), "nothing outside the file is needed");
    }
}
