//! The lines of `top`: the same on a terminal and as text.

use super::seen::{SeenClass, SeenController, SeenGateway, SeenPlant, SeenRecent};
use crate::output::terminal::{self, FULL, LIGHT, REJECTED};
use crate::output::units::{span, time};
use plimsoll_core::request::Reason;
use plimsoll_gateway::admin::{OperatorEvent, PromiseKind, PromiseRow, PromiseState};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

/// The width of a bar in cells.
const BAR: usize = 20;
/// The most events that are shown.
const EVENTS: usize = 8;
/// On a terminal narrower than this, a class takes two lines.
const NARROW: u16 = 120;
/// If at least this share of requests fails, the head says so, as on the dashboard.
const FAILING: f64 = 0.05;
const KEYS: &str = "q ends it   p pauses   arrows and page keys scroll";

pub(super) struct TopView {
    pub(super) address: String,
    pub(super) is_paused: bool,
    has_colours: bool,
    seen: Option<SeenGateway>,
    /// What was wrong with the last answer; `None` if it was right.
    wrong: Option<String>,
    /// The number of lines that are scrolled away above.
    above: u16,
}

impl TopView {
    pub(super) fn new(address: String, has_colours: bool) -> TopView {
        TopView { address, is_paused: false, has_colours, seen: None, wrong: None, above: 0 }
    }

    pub(super) fn take(&mut self, answer: Result<SeenGateway, String>) {
        match answer {
            Ok(seen) => {
                self.wrong = None;
                if !self.is_paused {
                    self.seen = Some(seen);
                }
            }
            Err(what) => self.wrong = Some(what),
        }
    }

    pub(super) fn scroll(&mut self, lines: i32) {
        self.above = i32::from(self.above).saturating_add(lines).clamp(0, i32::from(u16::MAX)) as u16;
    }

    /// All of it as text, without trailing blanks.
    pub(super) fn text(&self) -> String {
        let lines = std::iter::once(self.head()).chain(self.lines(u16::MAX));
        let lines: Vec<String> = lines.map(|line| line.to_string().trim_end().to_owned()).collect();
        lines.join("\n")
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>) {
        let areas = [Constraint::Length(2), Constraint::Min(0), Constraint::Length(1)];
        let [head, body, foot] = Layout::vertical(areas).areas(frame.area());
        frame.render_widget(Paragraph::new(self.head()), head);
        let lines = self.lines(body.width);
        // Scrolling ends when the last line is visible.
        let above = self.above.min((lines.len() as u16).saturating_sub(body.height));
        frame.render_widget(Paragraph::new(lines).scroll((above, 0)), body);
        frame.render_widget(Paragraph::new(KEYS).dim(), foot);
        self.above = above;
    }

    fn color(&self, color: Color) -> Style {
        terminal::color(self.has_colours, color)
    }

    fn head(&self) -> Line<'_> {
        let mut parts = vec!["plimsoll".bold()];
        if let Some(SeenGateway { status, .. }) = &self.seen {
            parts.push(format!(" {} at {}  ", status.version, self.address).into());
            let count = |state| status.promises.iter().filter(|row| row.state == state).count();
            let (missed, risky, all) =
                (count(PromiseState::Missed), count(PromiseState::AtRisk), status.promises.len());
            let failed = failed_share(&status.classes);
            let calm = if failed < FAILING { Color::Green } else { Color::Yellow };
            parts.push(match (missed, risky, all) {
                (0, 0, 0) => "nothing is promised yet".into(),
                (0, 0, _) => Span::styled(format!("no promise of {all} missed"), self.color(calm)),
                (0, _, _) => {
                    Span::styled(format!("{risky} of {all} promises at risk"), self.color(Color::Yellow))
                }
                _ => Span::styled(format!("{missed} of {all} promises missed"), self.color(Color::Red)),
            });
            if failed >= FAILING {
                let said = format!("  the server fails {:.0} % of requests", 100.0 * failed);
                parts.push(Span::styled(said, self.color(Color::Red)).bold());
            }
            if status.mode != "control" {
                parts.push(format!("  mode {}", status.mode).bold());
            }
        }
        if self.is_paused {
            parts.push("  paused".bold());
        }
        if let Some(wrong) = &self.wrong {
            let said = format!("  no answer, trying again: {wrong}");
            parts.push(Span::styled(said, self.color(Color::Red)));
        }
        Line::from(parts)
    }

    /// Everything below the head, for a terminal of this width.
    fn lines(&self, width: u16) -> Vec<Line<'_>> {
        let Some(SeenGateway { status, journal }) = &self.seen else { return Vec::new() };
        let mut lines: Vec<Line<'_>> = Vec::new();
        for row in &status.promises {
            lines.extend(self.promise(row, status.unix_seconds));
        }
        lines.push(Line::default());
        lines.push(heading(&format!(
            "{:16} {:BAR$}  {:>5} {:>5} {:>7} {:>6} {:>10} {:>8}",
            "UPSTREAM", "utilization", "now", "line", "offered", "level", "in service", "waiting"
        )));
        lines.extend(status.upstreams.iter().map(|plant| self.plant(plant)));
        lines.extend(status.controller.as_ref().map(|own| self.processes(own)));
        lines.push(Line::default());
        lines.push(heading(&format!(
            "{:24} {:>9}  {:BAR$} {:>8} {:>8}  {}",
            "CLASS, last 10 s", "load", "by level", "p50", "p99", "what became of requests"
        )));
        let shown = status.classes.iter().filter(|class| class.class != "exempt" || class.arrivals > 0);
        lines.extend(shown.flat_map(|class| self.class(class, width < NARROW)));
        lines.push(Line::default());
        lines.push(heading("HAPPENED"));
        let latest = journal.events.iter().rev().take(EVENTS);
        lines.extend(latest.map(|event| happened(event, status.unix_seconds)));
        lines
    }

    /// Two lines: the promise's figures, and what the loop does.
    fn promise<'a>(&self, row: &'a PromiseRow, now: f64) -> [Line<'a>; 2] {
        let (word, color) = match row.state {
            PromiseState::Missed => ("MISSED", Color::Red),
            PromiseState::AtRisk => ("at risk", Color::Yellow),
            PromiseState::Kept => ("kept", Color::Green),
            PromiseState::Idle => ("idle", Color::DarkGray),
        };
        let who = match (row.kind, row.class.as_str()) {
            (PromiseKind::LoadLine, _) => format!("{} ({})", row.upstream, row.site),
            (_, "all") => row.site.clone(),
            _ => format!("{}/{}", row.site, row.class),
        };
        let margin = row.margin.map_or(String::new(), |margin| format!(", margin {:.0} %", 100.0 * margin));
        let since = span((now - row.since_unix_seconds).max(0.0).round());
        let figures = format!(" {who:22} {}: now {}{margin}, for {since}", row.guarantee, row.now);
        [
            Line::from(vec![Span::styled(format!("{word:8}"), self.color(color)).bold(), figures.into()]),
            Line::from(format!("{:9}{}", "", row.sentence)),
        ]
    }

    fn plant(&self, plant: &SeenPlant) -> Line<'static> {
        let SeenPlant { name, utilization, service_level, in_service, waiting } = plant;
        let (now, line) = (utilization.measured, utilization.set_point);
        let cells = (now.clamp(0.0, 1.0) * BAR as f64).round() as usize;
        let mark = ((line.clamp(0.0, 1.0) * BAR as f64).round() as usize).clamp(1, BAR) - 1;
        let cell = |at: usize| match at {
            _ if at < cells => FULL.0,
            _ if at == mark => "|",
            _ => "·",
        };
        let style = self.color(if now > line + 0.06 { Color::Red } else { Color::Green });
        let waiting = waiting.map_or("-".to_owned(), |waiting| waiting.to_string());
        let offered = utilization.offered.map_or("-".to_owned(), |offered| format!("{offered:.2}"));
        Line::from(vec![
            format!("{name:16} ").into(),
            Span::styled((0..BAR).map(cell).collect::<String>(), style),
            format!("  {now:5.2} {line:5.2} {offered:>7} {service_level:6.2} {in_service:10} {waiting:>8}")
                .into(),
        ])
    }

    /// The line about the processes of a server that decide themselves.
    fn processes(&self, own: &SeenController) -> Line<'static> {
        let SeenController { lanes, attached, deaths, returned_requests, listen_queue } = own;
        let queue = listen_queue.map(|waiting| format!(", {waiting} connections in the listen queue"));
        let alive = format!("{attached} attached, of at most {lanes} processes");
        let alive =
            if *attached == 0 { Span::styled(alive, self.color(Color::Yellow)) } else { alive.into() };
        let dead = format!(", {deaths} found dead with {returned_requests} requests");
        let dead = if *deaths == 0 { Span::from("") } else { dead.into() };
        Line::from(vec![format!("{:16} ", "").into(), alive, queue.unwrap_or_default().into(), dead])
    }

    /// A class in one line, or in two if the terminal is narrow.
    fn class(&self, class: &SeenClass, is_narrow: bool) -> Vec<Line<'static>> {
        let recent = &class.recent;
        let all = recent.decided();
        let shares: Vec<(String, u64, (&str, Color))> = class
            .levels
            .iter()
            .zip(&recent.served)
            .enumerate()
            .rev()
            .map(|(number, (level, count))| {
                let drawn = if number + 1 == class.levels.len() { FULL } else { LIGHT };
                (level.name.clone(), *count, drawn)
            })
            .chain([("rejected".to_owned(), recent.rejected, REJECTED)])
            .collect();
        let rate = if recent.seconds > 0.0 { recent.arrivals as f64 / recent.seconds } else { 0.0 };
        let name = format!("{}/{}", class.site, class.class);
        let mut parts = vec![Span::raw(format!("{name:24} {rate:7.1}/s  "))];
        let (mut reached, mut drawn) = (0, 0);
        for (_, count, (symbol, color)) in &shares {
            reached += count;
            let end = (reached as f64 / all.max(1) as f64 * BAR as f64).round() as usize;
            parts.push(Span::styled(symbol.repeat(end - drawn), self.color(*color)));
            drawn = end;
        }
        let took = |seconds: Option<f64>| seconds.map_or("-".to_owned(), time);
        let (p50, p99) = (took(recent.response_p50_seconds), took(recent.response_p99_seconds));
        parts.push(format!("{} {p50:>8} {p99:>8}  ", "·".repeat(BAR - drawn)).into());
        let share = |count: u64| format!("{:.0} %", 100.0 * count as f64 / all.max(1) as f64);
        let said: Vec<String> = shares
            .iter()
            .filter(|(_, count, _)| *count > 0)
            .map(|(name, count, _)| format!("{} {name}", share(*count)))
            .collect();
        let mut words = vec![Span::raw(said.join(", "))];
        let why = Reason::ALL.into_iter().filter(|reason| reason.is_rejection()).map(Reason::as_str);
        let why: Vec<&str> = why.filter(|reason| recent.reasons.contains_key(*reason)).collect();
        if recent.rejected > 0 {
            words.push(Span::styled(format!(" for {}", why.join(", ")), self.color(Color::Yellow)));
        }
        if recent.failed > 0 {
            let said = format!("; {} failed by the server", share(recent.failed.min(all)));
            words.push(Span::styled(said, self.color(Color::Red)));
        }
        if is_narrow {
            words.insert(0, "         ".into());
            return vec![Line::from(parts), Line::from(words)];
        }
        parts.extend(words);
        vec![Line::from(parts)]
    }
}

/// The share of the last seconds' requests that failed at the servers. Some of these may have started earlier.
fn failed_share(classes: &[SeenClass]) -> f64 {
    let sum = |count: fn(&SeenRecent) -> u64| classes.iter().map(|class| count(&class.recent)).sum::<u64>();
    let (failed, all) = (sum(|recent| recent.failed), sum(SeenRecent::decided));
    (failed as f64 / all.max(1) as f64).min(1.0)
}

fn heading(text: &str) -> Line<'static> {
    Line::from(text.to_owned()).dim()
}

fn happened(event: &OperatorEvent, now: f64) -> Line<'static> {
    let ago = span((now - event.unix_seconds).max(0.0).round());
    Line::from(format!("{:>16}  {}", format!("{ago} ago"), event.text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    fn seen(state: &str) -> SeenGateway {
        let status = serde_json::json!({
            "version": "0.1.0", "unix_seconds": 1000.0, "mode": "control", "anything": "else",
            "promises": [{
                "kind": "delay", "site": "shop", "class": "gold", "upstream": "app", "guarantee": "200 ms on average",
                "now": "340 ms", "margin": -0.7, "state": state, "since_unix_seconds": 880.0,
                "sentence": "missed, and more is given to it: 3.0 of 8 workers are its own"
            }],
            "upstreams": [{
                "name": "app", "utilization": { "set_point": 0.85, "measured": 0.5, "offered": null },
                "service_level": 1.25, "in_service": 4, "waiting": 2
            }],
            "classes": [{
                "site": "shop", "class": "gold", "levels": [{ "name": "light" }, { "name": "full" }], "arrivals": 9000,
                "recent": {
                    "seconds": 10.0, "arrivals": 1000, "served": [500, 250], "rejected": 250, "failed": 0,
                    "reasons": { "full": 250, "degraded": 500, "overload": 250 },
                    "response_p50_seconds": 0.02, "response_p99_seconds": null
                }
            }]
        });
        let events = serde_json::json!({ "started_unix_seconds": 0.0, "events": [
            { "number": 1, "unix_seconds": 400.0, "kind": "reloaded", "subject": "", "text": "the configuration was reloaded" }
        ]});
        SeenGateway {
            status: serde_json::from_value(status).unwrap(),
            journal: serde_json::from_value(events).unwrap(),
        }
    }

    fn view(state: &str) -> TopView {
        let mut view = TopView::new("127.0.0.1:9090".to_owned(), true);
        view.take(Ok(seen(state)));
        view
    }

    fn drawn(view: &mut TopView, width: u16, height: u16) -> Terminal<TestBackend> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| view.draw(frame)).unwrap();
        terminal
    }

    #[test]
    fn what_is_missed_comes_with_its_sentence() {
        let mut view = view("missed");
        let terminal = drawn(&mut view, 130, 20);
        let text = terminal.backend().to_string();
        for part in [
            "1 of 1 promises missed",
            "MISSED   shop/gold",
            "200 ms on average: now 340 ms, margin -70 %, for 2 min 0 s",
            "more is given to it: 3.0 of 8 workers",
            "██████████······|···",
            "█████▒▒▒▒▒▒▒▒▒▒░░░░░",
            "25 % full, 50 % light, 25 % rejected for overload",
            "10 min 0 s ago  the configuration was reloaded",
            KEYS,
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert_eq!(terminal.backend().buffer()[(0, 2)].fg, Color::Red);
        let narrow = drawn(&mut view, 80, 24).backend().to_string();
        assert!(narrow.contains("25 % rejected for overload"), "{narrow}");
    }

    #[test]
    fn text_says_the_same_without_colours_or_blanks_at_the_end() {
        let text = view("kept").text();
        assert!(
            text.starts_with("plimsoll 0.1.0 at 127.0.0.1:9090  no promise of 1 missed\nkept "),
            "{text}"
        );
        assert!(text.lines().all(|line| line == line.trim_end()));
    }

    #[test]
    fn a_server_that_fails_is_shown_beside_promises_that_are_kept() {
        let mut view = view("kept");
        let mut failing = seen("kept");
        failing.status.classes[0].recent.failed = 740;
        view.take(Ok(failing));
        let terminal = drawn(&mut view, 170, 20);
        let text = terminal.backend().to_string();
        for part in
            ["no promise of 1 missed  the server fails 74 % of requests", "; 74 % failed by the server"]
        {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        let buffer = terminal.backend().buffer();
        let green = (0..170).filter(|column| buffer[(*column, 0)].fg == Color::Green).count();
        assert_eq!(green, 0, "the headline");
    }

    #[test]
    fn a_gateway_that_is_away_leaves_the_last_figures_and_says_so() {
        let mut view = view("kept");
        view.take(Err("connection refused".to_owned()));
        let text = drawn(&mut view, 120, 20).backend().to_string();
        assert!(
            text.contains("no answer, trying again: connection refused") && text.contains("shop/gold"),
            "{text}"
        );
        view.take(Ok(seen("missed")));
        assert!(!drawn(&mut view, 120, 20).backend().to_string().contains("no answer"));
        view.is_paused = true;
        view.take(Ok(seen("kept")));
        assert!(drawn(&mut view, 120, 20).backend().to_string().contains("MISSED"), "it stands still");
    }

    #[test]
    fn a_controller_shows_its_processes_and_nothing_that_waits_before_it() {
        let mut view = view("kept");
        let mut inside = seen("kept");
        inside.status.upstreams[0].waiting = None;
        let own = serde_json::json!({
            "lanes": 256, "attached": 4, "deaths": 2, "returned_requests": 7, "listen_queue": 31
        });
        inside.status.controller = serde_json::from_value(own).unwrap();
        view.take(Ok(inside));
        let text = view.text();
        let said = "4 attached, of at most 256 processes, 31 connections in the listen queue, 2 found dead with 7 requests";
        assert!(text.contains(said), "{text}");
        let plant = text.lines().find(|line| line.starts_with("app ")).unwrap();
        assert!(plant.ends_with("          4        -"), "{plant}");
    }

    #[test]
    fn scrolling_stays_within_the_lines_and_a_small_terminal_is_no_panic() {
        let mut view = view("kept");
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            view.scroll(i32::MAX);
            drawn(&mut view, width, height);
        }
        assert_eq!(view.above, 0, "all fits");
        drawn(&mut view, 80, 6);
        view.scroll(100);
        drawn(&mut view, 80, 6);
        assert!(view.above > 0 && view.above < 20);
        view.scroll(i32::MIN);
        assert_eq!(view.above, 0);
    }
}
