//! The show: calm, the crowd, calm again; with the gateway and without it, side by side and live.

use super::facts::{seen, times};
use super::machine;
use super::page;
use super::plant::{Crowd, PERIOD, SET_POINT, Server};
use super::screen::Show;
use super::side::{Moment, Seen, Side, Which};
use crate::output::facts::{Facts, compare};
use crate::output::failure::Failure;
use crate::output::new_file::NewFile;
use crate::output::terminal::{TerminalScreen, has_colours, is_end, not_drawn};
use crate::output::text;
use crate::output::units::grouped;
use crate::service::signals::{Interrupt, Signals};
use plimsoll_report::Table;
use ratatui::crossterm::event::{self, Event};
use std::path::Path;
use std::time::{Duration, Instant};

/// Load before and after the crowd, as a multiple of the capacity.
pub(crate) const CALM: f64 = 0.5;
/// Visitors on each side, each at an address of its own.
const CLIENTS: u32 = 2500;
/// Lengths of calm, crowd, calm (s).
pub(crate) const LENGTHS: [u64; 3] = [12, 33, 15];
/// If more than this part of the requests cannot be sent, the report says that the crowd was not as announced.
const NOT_SENT: f64 = 0.01;
/// A key or a signal is noticed within this time.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Runs the show. The report goes to `report`, or to a new file in the temporary folder.
pub(crate) fn show(server: Server, load: f64, seed: u64, report: Option<NewFile>) -> Result<(), Failure> {
    let interrupt = Interrupt::listen(Signals::block()?)?;
    let capacity = server.capacity();
    // With the gateway, the first period's requests above capacity wait and hold sockets; without it they fail at once.
    let sockets = machine::client_sockets((1.3 * load * capacity).max(2.0 * f64::from(CLIENTS)) as usize)?;
    let crowd = |max_sockets| Crowd { clients: CLIENTS, seed, max_sockets };
    let loads = [CALM, load, CALM];
    let steps = LENGTHS.iter().zip(loads);
    let steps: Vec<_> = steps.map(|(length, load)| (Duration::from_secs(*length), load * capacity)).collect();
    let mut with = Side::start(Which::WithGateway, server, steps.clone(), crowd(sockets * 2 / 3))?;
    let mut without = Side::start(Which::Without, server, steps, crowd(sockets / 3))?;
    let admin = with.gateway().and_then(|gateway| gateway.admin_addr());
    let seconds = LENGTHS.iter().sum();
    let has_colours = has_colours();
    let mut show = Show { seconds, capacity, load: CALM, admin, moments: Vec::new(), has_colours };
    let mut screen = Screen::new(admin.map(|admin| format!("http://{admin}/status")))?;
    let mut crowd_seen = [Seen::default(), Seen::default()];
    for second in 1..=seconds {
        if screen.wait(with.started() + PERIOD * second as u32, &interrupt, &show)? {
            break;
        }
        let periods = [with.period(), without.period()];
        let phase = if second <= LENGTHS[0] { 0 } else { usize::from(second > LENGTHS[0] + LENGTHS[1]) + 1 };
        if phase == 1 {
            crowd_seen.iter_mut().zip(&periods).for_each(|(seen, period)| seen.merge(&period.seen));
        }
        show.load = loads[phase];
        show.moments.push(periods.each_ref().map(Moment::of));
        screen.draw(&show)?;
    }
    drop(screen);
    let table = table(&crowd_seen);
    let file = report.map_or_else(new_file, Ok)?;
    let path = file.path().to_owned();
    let too_busy = too_busy(&crowd_seen);
    let mut page = page::page(&show.moments, table.clone());
    page.subtitle = too_busy.clone().unwrap_or(page.subtitle);
    file.fill(&page.to_html())?;
    let crowd = match crowd_seen[0].ended() {
        0 => "It ended before the crowd came.\n".to_owned(),
        _ => format!("While the crowd was there:\n\n{}", text::table(&table)),
    };
    let first = too_busy.as_ref().map_or_else(String::new, |what| format!("\n{what}\n"));
    text::print(first + summary(&crowd, &path).trim_end())?;
    too_busy.map_or(Ok(()), |_| {
        Err(Failure::Failed("the demo shows nothing: this machine was too busy".to_owned()))
    })
}

/// The warning that comes first if this machine could not send the crowd; otherwise `None`.
fn too_busy(seen: &[Seen; 2]) -> Option<String> {
    let not_sent: u64 = seen.iter().map(|side| side.local).sum();
    let due = not_sent + seen.iter().map(Seen::ended).sum::<u64>();
    (not_sent as f64 > NOT_SENT * due as f64).then(|| {
        format!(
            "This machine was too busy, and the figures are not the gateway's: {} of {} requests were not sent, since no sockets were \
             left. Try it when less else runs, or with a smaller `--capacity`.",
            grouped(not_sent),
            grouped(due)
        )
    })
}

enum Screen {
    Terminal(TerminalScreen),
    Log,
}

impl Screen {
    /// A terminal, if standard output and input are one; otherwise a log, which first names the address of the gateway's own
    /// view.
    fn new(view: Option<String>) -> Result<Screen, Failure> {
        if let Some(terminal) = TerminalScreen::open()? {
            return Ok(Screen::Terminal(terminal));
        }
        if let Some(view) = view {
            text::print(format_args!("While it runs, the gateway's own view is at {view}\n"))?;
        }
        Ok(Screen::Log)
    }

    /// Waits until `instant`. Returns whether the user asked to end before that.
    fn wait(&mut self, instant: Instant, interrupt: &Interrupt, show: &Show) -> Result<bool, Failure> {
        while !interrupt.is_requested() {
            let left = instant.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            let look = left.min(LOOK_AGAIN);
            match self {
                Screen::Log => std::thread::sleep(look),
                Screen::Terminal(_) if !event::poll(look).map_err(not_drawn)? => {}
                Screen::Terminal(_) => match event::read().map_err(not_drawn)? {
                    Event::Key(key) if is_end(key) => return Ok(true),
                    Event::Resize(..) => self.draw(show)?,
                    _ => {}
                },
            }
        }
        Ok(true)
    }

    fn draw(&mut self, show: &Show) -> Result<(), Failure> {
        match self {
            Screen::Terminal(terminal) => terminal.draw(|frame| show.draw(frame)),
            Screen::Log => text::print(show.line()),
        }
    }
}

fn new_file() -> Result<NewFile, Failure> {
    let file = tempfile::Builder::new().prefix("plimsoll-demo-").suffix(".html").tempfile();
    let kept = file.and_then(|file| file.into_temp_path().keep().map_err(|error| error.error));
    let kept =
        kept.map_err(|error| Failure::Failed(format!("cannot make a file for the report: {error}")))?;
    NewFile::begin(&kept, &[])
}

fn table(crowd: &[Seen; 2]) -> Table {
    let facts = crowd.each_ref().map(|side| {
        let mut facts = seen(side);
        facts.0.push(times("", "response", &side.latency));
        facts
    });
    let sides: Vec<(String, &Facts)> =
        ["with the gateway", "without it"].map(str::to_owned).into_iter().zip(&facts).collect();
    compare("while the crowd was there", &sides)
}

fn summary(crowd: &str, report: &Path) -> String {
    format!(
        "\n{crowd}\nThe gateway was told the number of workers and the load line ({SET_POINT}), and found out the rest.\n\
         {CLIENTS} clients came from as many addresses; each kept its level while the load stayed.\n\n\
         The report, to open in a browser: {}\n\n\
         Next:\n  \
         plimsoll demo --seconds 30 --load 3 --json     the figures\n  \
         plimsoll check examples/one-site.toml          a configuration to begin with\n  \
         plimsoll run examples/one-site.toml            in front of your own server\n",
        report.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_cannot_send_the_crowd_is_reported_first() {
        let seen = |local| [0, local].map(|local| Seen { local, errors: 49_500, ..Seen::default() });
        assert_eq!(too_busy(&seen(1_000)), None);
        let report = too_busy(&seen(1_100)).expect("more than a hundredth");
        assert!(
            report.starts_with("This machine was too busy") && report.contains("1,100 of 100,100 requests"),
            "{report}"
        );
    }
}
