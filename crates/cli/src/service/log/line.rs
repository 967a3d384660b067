//! The form of a line.
//!
//! - Text: the time (UTC), the level, what the event is about, and its message, which says the figures.
//! - JSON: an object with `time`, `level`, the event's fields and `message`.
//!
//! If stderr is systemd's journal, each line begins with its priority as in sd-daemon(3), and text has neither time nor level,
//! because the journal keeps both.

use serde::Serializer as _;
use serde_json::{Serializer, Value};
use std::fmt::{self, Debug};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes an event as a line.
#[derive(Debug)]
pub(super) struct LineForm {
    pub(super) is_journal: bool,
    pub(super) is_json: &'static AtomicBool,
}

impl<S, N> FormatEvent<S, N> for LineForm
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = *event.metadata().level();
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let is_json = self.is_json.load(Relaxed);
        let line = if is_json { fields.json(&time, level) } else { fields.text() };
        match (self.is_journal, is_json) {
            (true, _) => line.lines().try_for_each(|line| writeln!(writer, "<{}>{line}", priority(level))),
            (false, true) => writeln!(writer, "{line}"),
            (false, false) => writeln!(writer, "{time} {level:<5} {line}"),
        }
    }
}

/// The priority of syslog(3).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

/// Whether stderr is systemd's journal. The variable alone does not prove it, because a shell's commands inherit it although
/// their stderr is another file (systemd.exec(5), `$JOURNAL_STREAM`).
pub(super) fn is_journal() -> bool {
    let Ok(named) = std::env::var("JOURNAL_STREAM") else { return false };
    let own = io::stderr().as_fd().try_clone_to_owned().and_then(|stderr| File::from(stderr).metadata());
    own.is_ok_and(|own| named == format!("{}:{}", own.dev(), own.ino()))
}

/// The fields of an event.
#[derive(Debug, Default)]
struct Fields {
    message: String,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    /// What the event is about, and its message.
    fn text(&self) -> String {
        let value = |name: &str| self.others.iter().find(|(own, _)| *own == name)?.1.as_str();
        let message = &self.message;
        let text = match (value("site"), value("class"), value("upstream"), value("plant")) {
            (Some(site), Some(class), ..) => format!("{site}/{class}: {message}"),
            (Some(site), None, ..) => format!("{site}: {message}"),
            (None, _, Some(upstream), _) => format!("upstream {upstream}: {message}"),
            (None, _, None, Some(plant)) => format!("{plant}: {message}"),
            (None, _, None, None) => message.clone(),
        };
        harmless(&text)
    }

    fn json(self, time: &str, level: Level) -> String {
        let head = [("time", time.into()), ("level", level.as_str().to_ascii_lowercase().into())];
        let fields = head.into_iter().chain(self.others).chain([("message", self.message.into())]);
        let mut line = Vec::new();
        // Writing to a vector cannot fail.
        let _ = Serializer::new(&mut line).collect_map(fields);
        String::from_utf8(line).unwrap_or_default()
    }

    fn number(&mut self, field: &Field, number: impl ToString) {
        // JSON has no infinity, so it is left out.
        if let Ok(number) = number.to_string().parse() {
            self.others.push((field.name(), number));
        }
    }

    fn take(&mut self, field: &Field, text: String) {
        match field.name() {
            "message" => self.message = text,
            name => self.others.push((name, text.into())),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.take(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value.to_owned());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.number(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.number(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.number(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.number(field, (value * 1e6).round() / 1e6);
    }
}

/// The text without control characters, which a terminal would obey: names and errors may come from other machines.
fn harmless(text: &str) -> String {
    let is_kept = |c: char| !c.is_control() || c == '\n' || c == '\t';
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_kept(c) { out.push(c) } else { out.extend(c.escape_unicode()) }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing::subscriber::with_default;
    use tracing_subscriber::fmt::layer;
    use tracing_subscriber::layer::SubscriberExt as _;

    static TEXT: AtomicBool = AtomicBool::new(false);
    static JSON: AtomicBool = AtomicBool::new(true);

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no test failed").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(form: LineForm, act: impl FnOnce()) -> String {
        let sink = Sink::default();
        let writer = sink.clone();
        let lines = layer().event_format(form).with_writer(move || writer.clone());
        with_default(tracing_subscriber::registry().with(lines), act);
        let bytes = sink.0.lock().expect("no test failed").clone();
        String::from_utf8(bytes).expect("it is text")
    }

    fn some_events() {
        tracing::info!("listening on 127.0.0.1:1");
        tracing::warn!(site = "shop", class = "all", share = 0.25, late = 3, none = None::<u64>, "missed");
        tracing::error!(upstream = %"app", "no server is in use");
        tracing::warn!(plant = "pages", "wrong:\n \"key\"");
        tracing::debug!(site = "shop", "a \u{1b}[31mred\u{7} name");
    }

    #[test]
    fn text_has_the_time_the_level_and_a_sentence() {
        let lines = written(LineForm { is_journal: false, is_json: &TEXT }, some_events);
        let bare: Vec<&str> =
            lines.lines().map(|line| line.split_once("Z ").map_or(line, |both| both.1)).collect();
        assert_eq!(
            bare,
            [
                "INFO  listening on 127.0.0.1:1",
                "WARN  shop/all: missed",
                "ERROR upstream app: no server is in use",
                "WARN  pages: wrong:",
                " \"key\"",
                "DEBUG shop: a \\u{1b}[31mred\\u{7} name",
            ]
        );
        assert_eq!(lines.find('Z'), Some("2026-01-02T03:04:05.678901".len()), "{lines}");
    }

    #[test]
    fn json_has_each_field_and_one_line_an_event() {
        let lines = written(LineForm { is_journal: false, is_json: &JSON }, some_events);
        let read = |line: &str| {
            let mut read: serde_json::Value = serde_json::from_str(line).expect("it is JSON");
            let time = read.as_object_mut().and_then(|read| read.remove("time"));
            assert!(time.is_some_and(|time| time.as_str().is_some_and(|time| time.ends_with('Z'))), "{line}");
            read
        };
        let read: Vec<_> = lines.lines().map(read).collect();
        let expected = serde_json::json!([
            { "level": "info", "message": "listening on 127.0.0.1:1" },
            { "level": "warn", "site": "shop", "class": "all", "share": 0.25, "late": 3, "message": "missed" },
            { "level": "error", "upstream": "app", "message": "no server is in use" },
            { "level": "warn", "plant": "pages", "message": "wrong:\n \"key\"" },
            { "level": "debug", "site": "shop", "message": "a \u{1b}[31mred\u{7} name" },
        ]);
        assert_eq!(serde_json::Value::from(read), expected);
    }

    #[test]
    fn the_journal_is_given_the_priority_of_each_line() {
        let lines = written(LineForm { is_journal: true, is_json: &TEXT }, some_events);
        let expected = "<6>listening on 127.0.0.1:1\n<4>shop/all: missed\n<3>upstream app: no server is in use\n\
                        <4>pages: wrong:\n<4> \"key\"\n<7>shop: a \\u{1b}[31mred\\u{7} name\n";
        assert_eq!(lines, expected);
        let json = written(LineForm { is_journal: true, is_json: &JSON }, some_events);
        assert!(json.lines().all(|line| line.starts_with('<') && line.ends_with('}')), "{json}");
    }
}
