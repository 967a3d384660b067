//! Shows both sides on a terminal while they run; if the output is a log, as one line a second.

use super::plant::SET_POINT;
use super::side::Moment;
use crate::output::terminal::{self, FAILED, FULL, LIGHT, REJECTED};
use crate::output::units::{Unit, time};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph};
use std::net::SocketAddr;

pub(crate) struct Show {
    pub(crate) seconds: u64,
    /// The server's capacity [full pages/s].
    pub(crate) capacity: f64,
    /// The present load, as a multiple of the capacity.
    pub(crate) load: f64,
    /// The address at which the gateway shows its own view.
    pub(crate) admin: Option<SocketAddr>,
    /// Each second so far: with the gateway, and without it.
    pub(crate) moments: Vec<[Moment; 2]>,
    /// Whether colours are wanted. Shapes and names carry the same information.
    pub(crate) has_colours: bool,
}

/// A fate of requests: its name, its count, how it is drawn.
struct Part {
    name: &'static str,
    count: fn(&Moment) -> u64,
    drawn: (&'static str, Color),
}

/// The parts of a column from bottom to top.
const PARTS: [Part; 4] = [
    Part { name: "full pages", count: |moment| moment.full, drawn: FULL },
    Part { name: "light pages", count: |moment| moment.light, drawn: LIGHT },
    Part { name: "rejected", count: |moment| moment.rejected, drawn: REJECTED },
    Part { name: "failed", count: |moment| moment.failed, drawn: FAILED },
];

impl Show {
    pub(crate) fn draw(&self, frame: &mut Frame<'_>) {
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(2), Constraint::Min(0), Constraint::Length(1)])
                .areas(frame.area());
        let Show { capacity, load, seconds, .. } = self;
        let bar = "#".repeat((load * 8.0).round().clamp(1.0, 40.0) as usize);
        let lines = vec![
            Line::from(format!(
                "A server for {capacity:.0} full pages/s; a light one costs 15 % of that.  {}/{seconds} s",
                self.moments.len()
            )),
            Line::from(format!("load {bar} {load} x the capacity, {:.0} requests/s", load * capacity)).bold(),
        ];
        frame.render_widget(Paragraph::new(lines), head);
        let columns: [Rect; 2] = Layout::horizontal([Constraint::Fill(1); 2]).areas(body);
        for (side, (area, name)) in
            columns.into_iter().zip([" with the gateway ", " without it "]).enumerate()
        {
            let block = Block::bordered().title(name);
            self.draw_side(frame, block.inner(area), side);
            frame.render_widget(block, area);
        }
        let view = self
            .admin
            .map_or(String::new(), |admin| format!("  The gateway's own view: http://{admin}/status"));
        frame.render_widget(Paragraph::new(format!("q ends it.{view}")).dim(), foot);
    }

    fn draw_side(&self, frame: &mut Frame<'_>, area: Rect, side: usize) {
        let Some(moment) = self.moments.last().map(|moment| moment[side]) else { return };
        let [title, utilization, shares, figures] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Fill(1),
            Constraint::Length(PARTS.len() as u16 + 1),
        ])
        .areas(area);
        let is_over = moment.utilization > SET_POINT + 0.06;
        let style = self.color(if is_over { Color::Red } else { Color::Green });
        let reached = Span::styled(format!("{:.2}", moment.utilization), style);
        let line =
            Line::from(vec!["utilization ".into(), reached, format!(", load line {SET_POINT}").into()]);
        frame.render_widget(line, title);
        self.draw_utilization(frame, utilization, side);
        self.draw_shares(frame, shares, side);
        let mut lines: Vec<Line<'_>> = PARTS.iter().map(|part| self.legend(part, &moment)).collect();
        let [p50, p99] = moment.response.unwrap_or([f64::NAN; 2]).map(|ms| Unit::Milliseconds.show(ms));
        lines.push(Line::from(format!("  response p50 {p50}, p99 {p99}")));
        frame.render_widget(Paragraph::new(lines), figures);
    }

    fn color(&self, color: Color) -> Style {
        terminal::color(self.has_colours, color)
    }

    /// `█ full pages   1023 (84 %)`.
    fn legend(&self, part: &Part, moment: &Moment) -> Line<'static> {
        let count = (part.count)(moment);
        let (name, share) = (part.name, 100.0 * moment.share(count));
        let (symbol, color) = part.drawn;
        Line::from(vec![
            Span::styled(symbol, self.color(color)),
            format!(" {name:12} {count} ({share:.0} %)").into(),
        ])
    }

    fn draw_utilization(&self, frame: &mut Frame<'_>, area: Rect, side: usize) {
        let points: Vec<(f64, f64)> = self
            .moments
            .iter()
            .zip(1..)
            .map(|(moment, second)| (f64::from(second), moment[side].utilization))
            .collect();
        let end = self.seconds as f64;
        let load_line = [(0.0, SET_POINT), (end, SET_POINT)];
        let line = |data, style| {
            Dataset::default().marker(Marker::Braille).graph_type(GraphType::Line).style(style).data(data)
        };
        let chart = Chart::new(vec![
            line(&load_line, self.color(Color::DarkGray)),
            line(&points, self.color(Color::Green)),
        ])
        .x_axis(Axis::default().bounds([0.0, end]))
        .y_axis(Axis::default().bounds([0.0, 1.0]).labels(["0", "1"]));
        frame.render_widget(chart, area);
    }

    /// Draws the fate of each second's requests as a column of parts.
    fn draw_shares(&self, frame: &mut Frame<'_>, area: Rect, side: usize) {
        // The columns stand below the chart's plot, which has a label and an axis to its left.
        let area = Rect { x: area.x + 2, width: area.width.saturating_sub(2), ..area };
        for column in 0..area.width {
            let second = u64::from(column) * self.seconds / u64::from(area.width);
            let Some(moment) = self.moments.get(second as usize) else { return };
            let (mut reached, mut row) = (0.0, 0);
            for part in &PARTS {
                reached += moment[side].share((part.count)(&moment[side]));
                let top = (reached * f64::from(area.height)).round() as u16;
                for row in row..top.min(area.height) {
                    let cell = &mut frame.buffer_mut()[(area.x + column, area.bottom() - 1 - row)];
                    cell.set_symbol(part.drawn.0).set_style(self.color(part.drawn.1));
                }
                row = top;
            }
        }
    }

    pub(crate) fn line(&self) -> String {
        let Some([with, without]) = self.moments.last() else { return String::new() };
        let share = |moment: &Moment, count| format!("{:.0} %", 100.0 * moment.share(count));
        let failed = |moment: &Moment| match moment.failed {
            0 => "0".to_owned(),
            failed => format!("{failed} ({})", share(moment, failed)),
        };
        let response = |moment: &Moment| {
            let [p50, p99] =
                moment.response.map_or(["-".to_owned(), "-".to_owned()], |all| all.map(|ms| time(ms / 1e3)));
            format!("p50 {p50}, p99 {p99}")
        };
        format!(
            "{:3} s  load {}  with the gateway: utilization {:.2}, full {}, light {}, rejected {}, failed {}, {}  \
             without: utilization {:.2}, failed {}, {}",
            self.moments.len(),
            self.load,
            with.utilization,
            share(with, with.full),
            share(with, with.light),
            with.rejected,
            failed(with),
            response(with),
            without.utilization,
            failed(without),
            response(without),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn moment(utilization: f64, light: u64, full: u64, failed: u64) -> Moment {
        Moment { utilization, full, light, failed, rejected: 0, response: Some([70.0, 70.0]) }
    }

    fn show(has_colours: bool) -> Show {
        let moments = vec![[moment(0.85, 5040, 960, 0), moment(1.0, 0, 2000, 4000)]; 12];
        Show { seconds: 60, capacity: 2000.0, load: 3.0, admin: None, moments, has_colours }
    }

    fn drawn(show: &Show) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| show.draw(frame)).unwrap();
        terminal
    }

    #[test]
    fn a_frame_fits_a_terminal_and_says_what_happens() {
        let terminal = drawn(&show(true));
        let buffer = terminal.backend().buffer();
        let text = terminal.backend().to_string();
        for part in [
            "12/60 s",
            "3 x the capacity",
            "960 (16 %)",
            "5040 (84 %)",
            "4000 (67 %)",
            "utilization 0.85",
            "70.0 ms",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        // Without the gateway a third of each column is full pages and the rest failed; with the gateway there are light pages.
        let symbols = |symbol: &str| buffer.content.iter().filter(|cell| cell.symbol() == symbol).count();
        assert!(symbols("×") > symbols("█") && symbols("▒") > symbols("█"), "{text}");
        let red = buffer.content.iter().filter(|cell| cell.fg == Color::Red && cell.symbol() == "×").count();
        assert_eq!(red, symbols("×"), "{text}");
        let plain = drawn(&show(false));
        assert!(plain.backend().buffer().content.iter().all(|cell| cell.fg == Color::Reset));
    }

    #[test]
    fn a_line_says_the_same() {
        let line = show(false).line();
        assert!(line.contains("utilization 0.85, full 16 %, light 84 %, rejected 0, failed 0,"), "{line}");
        assert!(line.contains("without: utilization 1.00, failed 4000 (67 %)"), "{line}");
    }

    #[test]
    fn a_small_terminal_is_drawn_without_a_panic() {
        for (width, height) in [(1, 1), (20, 5), (40, 10), (300, 100)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| show(true).draw(frame)).unwrap();
        }
    }
}
