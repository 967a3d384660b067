//! A terminal's screen, which is taken, drawn on, and given back; and the keys that end a command.

use super::failure::Failure;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Style};
use ratatui::{DefaultTerminal, Frame};
use std::io::{self, IsTerminal, stdout};

/// A terminal that is drawn on. It is restored when this value is dropped; at a panic, by ratatui's hook.
pub(crate) struct TerminalScreen(DefaultTerminal);

impl TerminalScreen {
    /// The screen, if standard output and input are a terminal that can be drawn on.
    pub(crate) fn open() -> Result<Option<TerminalScreen>, Failure> {
        let is_terminal = stdout().is_terminal() && io::stdin().is_terminal();
        if !is_terminal || std::env::var("TERM").is_ok_and(|term| term == "dumb") {
            return Ok(None);
        }
        ratatui::try_init().map(TerminalScreen).map(Some).map_err(not_drawn)
    }

    pub(crate) fn draw(&mut self, frame: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        self.0.draw(frame).map(|_| ()).map_err(not_drawn)
    }
}

impl Drop for TerminalScreen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Whether a key ends the command. In raw mode Ctrl-C is a key too.
pub(crate) fn is_end(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || (control && key.code == KeyCode::Char('c'))
}

pub(crate) fn not_drawn(error: io::Error) -> Failure {
    Failure::Failed(format!("cannot draw: {error}"))
}

/// Whether the user wants colours. Shapes and names carry the same information.
pub(crate) fn has_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none()
}

/// A colour, or none if colours are not wanted.
pub(crate) fn color(has_colours: bool, color: Color) -> Style {
    if has_colours { Style::new().fg(color) } else { Style::new() }
}

/// How a share of requests is drawn: at the highest level, at a lower one, rejected, failed.
pub(crate) const FULL: (&str, Color) = ("█", Color::Green);
pub(crate) const LIGHT: (&str, Color) = ("▒", Color::Cyan);
pub(crate) const REJECTED: (&str, Color) = ("░", Color::Yellow);
pub(crate) const FAILED: (&str, Color) = ("×", Color::Red);
