//! A chart as a figure: caption, legend, SVG, data.

use super::plot::{Frame, Plot};
use super::{Chart, Color, Series, Style, XAxis, data, path};
use crate::number::{push_fixed, push_significant};
use crate::text::{Escaped, push_paragraphs};
use std::fmt::Write;

/// The number of steps of the colour ramp for ordered series.
const RAMP: usize = 8;

/// The number of colours that can be told apart.
const SLOTS: usize = 8;
/// The number of dash patterns for lines whose colour is already used.
const DASHES: usize = 3;

/// Writes the figures of a page, and counts them to give each an id.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    written: usize,
}

impl Figures {
    /// One chart, or several side by side at one scale.
    pub(crate) fn write(&mut self, out: &mut String, charts: &[Chart]) {
        let plots: Vec<Plot> = charts.iter().map(Plot::of).collect();
        let pairs: Vec<(&Chart, &Plot)> = charts.iter().zip(&plots).collect();
        let frame = Frame::of(&pairs);
        if charts.len() != 1 {
            out.push_str("<div class=\"beside\">\n");
        }
        for (chart, plot) in pairs {
            self.written += 1;
            let colors = colors(&chart.series);
            Figure { chart, plot, frame: &frame, number: self.written, colors }.write(out);
        }
        if charts.len() != 1 {
            out.push_str("</div>\n");
        }
    }
}

struct Figure<'a> {
    chart: &'a Chart,
    plot: &'a Plot,
    frame: &'a Frame,
    number: usize,
    /// For each series, the CSS class that sets its colour.
    colors: Vec<String>,
}

fn colors(series: &[Series]) -> Vec<String> {
    let ordered = series.iter().filter(|series| series.color == Color::Ordered).count();
    let (mut slot, mut order) = (0, 0);
    let class = |series: &Series| match series.color {
        Color::Auto if series.style == Style::Dashed => "cm".to_owned(),
        Color::Auto => {
            slot += 1;
            let (round, place) = ((slot - 1) / SLOTS, (slot - 1) % SLOTS);
            // If a colour is used again, the line gets another dash pattern.
            match round.min(DASHES) {
                0 => format!("c{place}"),
                dash => format!("c{place} d{dash}"),
            }
        }
        Color::Ordered => {
            order += 1;
            // If there are few series, their colours lie near each other on the ramp; many use all of it.
            format!("r{}", (order - 1) * (RAMP - 1) / (ordered - 1).max(3))
        }
        Color::Muted => "cm".to_owned(),
        Color::Alarm => "ca".to_owned(),
    };
    series.iter().map(class).collect()
}

impl Figure<'_> {
    fn write(&self, out: &mut String) {
        let Frame { x, y, .. } = self.frame;
        let axis = if self.chart.x == XAxis::Time { "time" } else { "plain" };
        let (title, unit) = (Escaped(&self.chart.title), Escaped(&self.chart.unit));
        let _ = write!(
            out,
            "<figure class=\"chart\" data-axis=\"{axis}\" data-x0=\"{}\" data-x1=\"{}\" data-y0=\"{}\" data-y1=\"{}\" \
             data-unit=\"{unit}\">\n<figcaption><h3>{title}</h3> <span class=\"unit\">{unit}</span></figcaption>\n",
            x.low, x.high, y.low, y.high
        );
        push_paragraphs(out, &self.chart.text);
        self.write_legend(out);
        self.write_svg(out);
        self.write_data(out);
        out.push_str("</figure>\n");
    }

    /// The buttons stay disabled until the script runs.
    fn write_legend(&self, out: &mut String) {
        // A single line is named by the chart's title; a single area needs a legend, because the title does not name it.
        let is_area = self.chart.series.first().is_some_and(|series| series.style == Style::Area);
        if self.chart.series.len() < 2 && !is_area {
            return;
        }
        out.push_str("<div class=\"legend\">");
        for (index, series) in self.chart.series.iter().enumerate() {
            let _ = write!(
                out,
                "<button type=\"button\" disabled class=\"{} {}\" data-i=\"{index}\"><i></i>{}</button>",
                style_class(series.style),
                self.colors[index],
                Escaped(&series.name)
            );
        }
        out.push_str("</div>\n");
    }

    fn write_svg(&self, out: &mut String) {
        let number = self.number;
        let _ = writeln!(
            out,
            "<div class=\"plot\"><svg class=\"frame\" role=\"img\" aria-labelledby=\"t{number} d{number}\">\n\
             <title id=\"t{number}\">{}</title><desc id=\"d{number}\">{}</desc>",
            Escaped(&self.chart.title),
            Escaped(&self.description())
        );
        self.write_axes(out);
        let _ = writeln!(
            out,
            "<svg class=\"lines\" width=\"100%\" height=\"100%\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\">",
            path::WIDTH,
            path::HEIGHT
        );
        // Areas are drawn first, because they would cover lines.
        let is_area = |index: &usize| self.chart.series[*index].style == Style::Area;
        let all = 0..self.chart.series.len();
        all.clone().filter(is_area).for_each(|index| self.write_area(out, index));
        all.filter(|index| !is_area(index)).for_each(|index| self.write_line(out, index));
        out.push_str("</svg>\n");
        self.write_marks(out);
        if self.plot.is_empty() {
            let nothing = if self.chart.nothing.is_empty() { "no data" } else { &self.chart.nothing };
            let _ = writeln!(out, "<text class=\"empty\" x=\"50%\" y=\"50%\">{}</text>", Escaped(nothing));
        }
        out.push_str("</svg></div>\n");
    }

    fn write_axes(&self, out: &mut String) {
        let frame = self.frame;
        out.push_str("<g class=\"grid\">");
        for tick in &frame.y_ticks.ticks {
            let y = percent(1.0 - frame.y.share(tick.value));
            let _ = write!(out, "<line x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>");
        }
        out.push_str("</g><g class=\"ys\">");
        for tick in &frame.y_ticks.ticks {
            let y = percent(1.0 - frame.y.share(tick.value));
            let _ = write!(out, "<text dx=\"-8\" dy=\".32em\" y=\"{y}\">{}</text>", tick.label);
        }
        out.push_str("</g><g class=\"axis\"><line x2=\"100%\" y1=\"100%\" y2=\"100%\"/></g><g class=\"xs\">");
        let many = frame.x_ticks.ticks.len() > 6;
        for tick in &frame.x_ticks.ticks {
            let x = percent(frame.x.share(tick.value));
            let class = if many && tick.odd { " class=\"odd\"" } else { "" };
            let _ = write!(out, "<g{class}><svg class=\"tick\" x=\"{x}\" y=\"100%\"><line y2=\"4\"/></svg>");
            let _ = write!(out, "<text dy=\"18\" x=\"{x}\" y=\"100%\">{}</text></g>", tick.label);
        }
        let label = self.chart.x.label(frame.x_ticks.unit);
        let _ =
            writeln!(out, "</g><text class=\"x\" x=\"100%\" y=\"100%\" dy=\"34\">{}</text>", Escaped(&label));
    }

    fn write_area(&self, out: &mut String, index: usize) {
        let (bottom, top) = &self.plot.stacked[index];
        let area = path::area(self.frame, bottom, top);
        let _ = writeln!(
            out,
            "<g class=\"area {}\" data-i=\"{index}\"><path d=\"{area}\"/></g>",
            self.colors[index]
        );
    }

    fn write_line(&self, out: &mut String, index: usize) {
        let style = self.chart.series[index].style;
        let drawn = path::line(self.frame, &self.plot.points[index], style);
        let _ = write!(out, "<g class=\"{} {}\" data-i=\"{index}\">", style_class(style), self.colors[index]);
        if !drawn.line.is_empty() {
            let _ = write!(out, "<path d=\"{}\"/>", drawn.line);
        }
        if !drawn.dots.is_empty() {
            let _ = write!(out, "<path class=\"dot\" d=\"{}\"/>", drawn.dots);
        }
        out.push_str("</g>\n");
    }

    fn write_marks(&self, out: &mut String) {
        let within = |share: f64| (0.0..=1.0).contains(&share);
        for mark in &self.chart.marks {
            let share = self.frame.x.share(mark.x);
            if !within(share) {
                continue;
            }
            let x = percent(share);
            // The name is written on the side that has room.
            let side = if share > 0.75 { "end\" dx=\"-5" } else { "start\" dx=\"5" };
            let _ = writeln!(
                out,
                "<g class=\"mark\"><line x1=\"{x}\" x2=\"{x}\" y2=\"100%\"/>\
                 <text x=\"{x}\" dy=\"10\" text-anchor=\"{side}\">{}</text></g>",
                Escaped(&mark.name)
            );
        }
        if let Some(threshold) = &self.chart.threshold
            && within(self.frame.y.share(threshold.value))
        {
            let share = self.frame.y.share(threshold.value);
            let y = percent(1.0 - share);
            let dy = if share > 0.9 { 13 } else { -5 };
            let _ = writeln!(
                out,
                "<g class=\"threshold\"><line x2=\"100%\" y1=\"{y}\" y2=\"{y}\"/>\
                 <text x=\"100%\" y=\"{y}\" dy=\"{dy}\">{}</text></g>",
                Escaped(&threshold.name)
            );
        }
    }

    fn write_data(&self, out: &mut String) {
        let rows = data::rows(self.chart, self.plot);
        out.push_str("<details><summary>Data");
        if rows.every > 1 {
            let _ = write!(out, ", one row in {} of {}", rows.every, rows.total);
        }
        let _ = writeln!(out, "</summary><pre class=\"data\" tabindex=\"0\">{}</pre></details>", rows.text);
    }

    /// A description of the picture in words: the range of each series, and its last value.
    fn description(&self) -> String {
        let mut out = match &self.chart.x {
            XAxis::Time => "Over time.".to_owned(),
            XAxis::Quantity { name, .. } => format!("Over {name}."),
        };
        for (series, points) in self.chart.series.iter().zip(&self.plot.points) {
            let values = || points.iter().filter_map(|point| point.1);
            let _ = write!(out, " {}: ", series.name);
            let Some(last) = values().next_back() else {
                out.push_str("no data.");
                continue;
            };
            push_significant(&mut out, values().fold(last, f64::min), 3);
            out.push_str(" to ");
            push_significant(&mut out, values().fold(last, f64::max), 3);
            out.push_str(", last ");
            push_significant(&mut out, last, 3);
            out.push('.');
        }
        out
    }
}

fn style_class(style: Style) -> &'static str {
    match style {
        Style::Line => "line",
        Style::Step => "step",
        Style::Dashed => "dashed",
        Style::Area => "area",
        Style::Points => "points",
    }
}

fn percent(share: f64) -> String {
    let mut out = String::new();
    push_fixed(&mut out, share * 100.0, 2);
    out.push('%');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(chart: Chart) -> String {
        let mut out = String::new();
        Figures::default().write(&mut out, &[chart]);
        out
    }

    #[test]
    fn colours_are_the_next_free_and_ordered_ones_spread() {
        let series = |color, style| Series { color, style, ..Series::default() };
        let classes = colors(&[
            series(Color::Auto, Style::Line),
            series(Color::Auto, Style::Dashed),
            series(Color::Ordered, Style::Area),
            series(Color::Auto, Style::Step),
            series(Color::Ordered, Style::Area),
            series(Color::Alarm, Style::Area),
            series(Color::Ordered, Style::Area),
        ]);
        assert_eq!(classes, ["c0", "cm", "r0", "c1", "r2", "ca", "r4"]);
        let all: Vec<_> = colors(&vec![series(Color::Ordered, Style::Area); 8]);
        assert_eq!(all, ["r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"]);
    }

    #[test]
    fn no_two_of_thirty_two_series_look_alike() {
        let all = colors(&vec![Series::default(); 32]);
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!((all[8].as_str(), all[31].as_str(), different.len()), ("c0 d1", "c7 d3", 32));
    }

    #[test]
    fn areas_lie_under_lines_whatever_their_order() {
        let html = written(
            Chart::over_time("t", "")
                .series(Series::every("line", 1.0, [1.0, 2.0]))
                .series(Series::every("area", 1.0, [1.0, 2.0]).style(Style::Area)),
        );
        let place = |what: &str| html.find(what).expect(what);
        assert!(place("<g class=\"area c1\" data-i=\"1\"") < place("<g class=\"line c0\" data-i=\"0\""));
    }

    #[test]
    fn empty_charts_say_so() {
        for chart in [
            Chart::over_time("t", ""),
            Chart::over_time("t", "").series(Series::every::<f64>("a", 1.0, [])),
            Chart::over_time("t", "").series(Series::every("a", 1.0, [None::<f64>, None])),
        ] {
            assert!(written(chart).contains("no data"));
        }
        assert!(written(Chart::over_time("t", "").nothing("nobody")).contains(">nobody</text>"));
        assert!(
            !written(Chart::over_time("t", "").series(Series::every("a", 1.0, [0.0])))
                .contains("no data</text>")
        );
    }

    #[test]
    fn a_single_point_shows_as_a_dot_in_the_middle() {
        let html = written(Chart::over_time("t", "").series(Series::new("a", [(30.0, 5.0)])));
        assert!(html.contains("<path class=\"dot\" d=\"M500 150h0\"/>"), "{html}");
    }

    #[test]
    fn the_description_tells_the_range_of_each_series() {
        let html = written(
            Chart::over_time("t", "")
                .series(Series::every("U", 1.0, [Some(0.2), None, Some(0.9), Some(0.7)]))
                .series(Series::every("none", 1.0, [None::<f64>])),
        );
        assert!(html.contains("Over time. U: 0.2 to 0.9, last 0.7. none: no data.</desc>"));
    }

    #[test]
    fn marks_and_thresholds_out_of_the_picture_are_left_out() {
        let chart = Chart::over_time("t", "")
            .series(Series::every("a", 10.0, [1.0, 2.0]))
            .mark(5.0, "inside")
            .mark(50.0, "outside")
            .threshold("none", f64::NAN);
        let html = written(chart);
        assert!(html.contains(">inside</text>") && html.contains("x1=\"50%\""));
        assert!(!html.contains("outside") && !html.contains(">none<"));
    }
}
