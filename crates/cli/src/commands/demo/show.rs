//! The show: calm, the crowd, calm again; with the gateway and without it, side by side and live.

use super::machine::{self, sleep_until};
use super::plant::{Crowd, PERIOD, SET_POINT, Server};
use super::screen::{Frame, Ink};
use super::side::{Seen, Side, Which};
use crate::output::failure::Failure;
use crate::output::text;
use std::io::{IsTerminal, Write, stdout};
use std::time::Duration;

/// Load before and after the crowd, as a multiple of the capacity.
const CALM: f64 = 0.5;
/// Visitors on each side, each at an address of its own.
const CLIENTS: u32 = 2500;
/// Lengths of calm, crowd, calm (s).
const LENGTHS: [u64; 3] = [12, 33, 15];

/// Runs it.
pub(crate) fn show(server: Server, load: f64, seed: u64) -> Result<(), Failure> {
    let capacity = server.capacity();
    // With the gateway a blind period's requests wait; without it, what does not fit into the queue is gone.
    let sockets = machine::client_sockets((1.3 * load * capacity).max(2.0 * f64::from(CLIENTS)) as usize)?;
    let crowd = |max_sockets| Crowd { clients: CLIENTS, seed, max_sockets };
    let loads = [CALM, load, CALM];
    let steps: Vec<_> = LENGTHS
        .iter()
        .zip(loads)
        .map(|(length, load)| (Duration::from_secs(*length), load * capacity))
        .collect();
    let mut with = Side::start(Which::WithGateway, server, steps.clone(), crowd(sockets * 2 / 3))?;
    let mut without = Side::start(Which::Without, server, steps, crowd(sockets / 3))?;
    if let Some(admin) = with.gateway().and_then(|gateway| gateway.admin_addr()) {
        text::print(format_args!("While it runs, the gateway's own view is at http://{admin}/status\n"))?;
    }
    let mut screen = Screen::new();
    let (mut crowd_with, mut crowd_without) = (Seen::default(), Seen::default());
    let seconds = LENGTHS.iter().sum();
    for second in 1..=seconds {
        sleep_until(with.started() + PERIOD * second as u32);
        let (one, other) = (with.period(), without.period());
        let phase = if second <= LENGTHS[0] { 0 } else { usize::from(second > LENGTHS[0] + LENGTHS[1]) + 1 };
        if phase == 1 {
            crowd_with.merge(&one.seen);
            crowd_without.merge(&other.seen);
        }
        screen.draw(&Frame { second, seconds, capacity, load: loads[phase], with: &one, without: &other })?;
    }
    text::print(summary(&crowd_with, &crowd_without).trim_end())
}

/// Where frames go.
struct Screen {
    ink: Ink,
    live: bool,
    drawn: usize,
}

impl Screen {
    fn new() -> Screen {
        let live = stdout().is_terminal() && std::env::var("TERM").is_ok_and(|term| term != "dumb");
        let ink = if live && std::env::var_os("NO_COLOR").is_none() { Ink::Colours } else { Ink::Plain };
        Screen { ink, live, drawn: 0 }
    }

    /// Draws over the last frame; where nothing can be drawn over, prints one line.
    fn draw(&mut self, frame: &Frame<'_>) -> Result<(), Failure> {
        if !self.live {
            return text::print(frame.line());
        }
        let lines = frame.lines(self.ink);
        let mut text = String::new();
        if self.drawn > 0 {
            text = format!("\x1b[{}A", self.drawn);
        }
        for line in &lines {
            text += &format!("\r\x1b[K{line}\n");
        }
        self.drawn = lines.len();
        let mut stdout = stdout().lock();
        let drawn = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        drawn.map_err(|error| Failure::Failed(format!("cannot draw: {error}")))
    }
}

fn summary(with: &Seen, without: &Seen) -> String {
    let note = match with.local + without.local {
        0 => String::new(),
        local => format!(
            "\n{local} more were not sent: this machine had no sockets left. Try a smaller `--capacity`.\n"
        ),
    };
    let percent =
        |seen: &Seen, part: u64| format!("{:.1} %", 100.0 * part as f64 / seen.ended().max(1) as f64);
    let ms = |seen: &Seen| format!("{:.0} ms", seen.latency.quantile(0.99).as_secs_f64() * 1e3);
    let row = |name: &str, of: &dyn Fn(&Seen) -> String| vec![name.to_owned(), of(with), of(without)];
    let rows = [
        vec!["while the crowd was there".to_owned(), "with the gateway".to_owned(), "without it".to_owned()],
        row("served", &|seen| percent(seen, seen.pages.iter().sum())),
        row("of them in full", &|seen| percent(seen, seen.pages[1])),
        row("rejected", &|seen| percent(seen, seen.rejected)),
        row("failed", &|seen| percent(seen, seen.errors)),
        row("response time p99", &ms),
    ];
    format!(
        "\n{}{note}\nThe gateway was told the number of workers and the load line ({SET_POINT}), and found out the rest.\n\
         {CLIENTS} clients came from as many addresses; each kept its level while the load stayed.\n\n\
         Next:\n  \
         plimsoll demo --seconds 30 --load 3 --json     the figures\n  \
         plimsoll check examples/one-site.toml          a configuration to begin with\n  \
         plimsoll run examples/one-site.toml            in front of your own server\n",
        text::rows(&rows, &[1, 2])
    )
}
