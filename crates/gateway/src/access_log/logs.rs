//! Which requests are written to which log: there is a log for all sites, and a site may have a log of its own or none.

use super::file::{LogFile, can_open};
use super::lossy::LossyWriter;
use crate::sync::RareNews;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// How many lines may wait to be written: about a second of a busy gateway. Long ones are fewer, since the queue is bounded in
/// bytes as well.
const LINES: usize = 65_536;

/// Where requests are written down, and in which form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessLogSettings {
    /// The form of the lines.
    pub form: LogForm,
    /// The log of requests whose site has no log of its own, and of requests without a site; `None` if they are not logged.
    pub target: Option<LogTarget>,
    /// By site, in the order of the promises.
    pub sites: Vec<SiteLog>,
}

impl AccessLogSettings {
    /// The targets of all logs: the shared log's, and those of sites with a log of their own.
    pub fn targets(&self) -> impl Iterator<Item = &LogTarget> {
        let own = self.sites.iter().filter_map(|site| match site {
            SiteLog::Own(target) => Some(target),
            SiteLog::Shared | SiteLog::Off => None,
        });
        self.target.iter().chain(own)
    }
}

/// The form of a log's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogForm {
    /// An object a line, with all that is known of a request.
    #[default]
    Json,
    /// The Common Log Format.
    Common,
    /// The Combined Log Format: Common, with referrer and user agent.
    Combined,
}

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// The process's standard output.
    Stdout,
    /// A file, which grows at its end.
    File(PathBuf),
}

/// The log of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SiteLog {
    /// The log of all sites.
    #[default]
    Shared,
    /// The site writes no access log.
    Off,
    /// The site writes a log of its own.
    Own(LogTarget),
}

/// A log that is open.
#[derive(Debug)]
pub(crate) struct AccessLog {
    target: LogTarget,
    pub form: LogForm,
    writer: LossyWriter,
    reopen: Arc<AtomicBool>,
    /// The count of lost lines of all logs. When this log is closed, the lines that found its queue full are added.
    lost: Arc<AtomicU64>,
}

impl AccessLog {
    fn open(target: &LogTarget, form: LogForm, lost: &Arc<AtomicU64>) -> io::Result<Arc<Self>> {
        let reopen = Arc::<AtomicBool>::default();
        let writer = match target {
            LogTarget::Stdout => LossyWriter::counting(BufWriter::new(io::stdout()), LINES, lost.clone()),
            LogTarget::File(path) => {
                let file = LogFile::open(path.clone(), reopen.clone(), lost.clone()).map_err(|error| {
                    let why = format!(
                        "the access log {} cannot be opened: {error}; name a file that can be written, in a folder that is there \
                         (`file` of [access_log], or `access_log` of a site)",
                        path.display()
                    );
                    io::Error::new(error.kind(), why)
                })?;
                LossyWriter::counting(file, LINES, lost.clone())
            }
        };
        Ok(Arc::new(AccessLog { target: target.clone(), form, writer, reopen, lost: lost.clone() }))
    }

    pub(crate) fn write(&self, line: &[u8]) {
        self.writer.write(line);
    }
}

impl Drop for AccessLog {
    /// The last owner of a log may be a thread that serves clients, so the drop does not wait for the lines to be written.
    fn drop(&mut self) {
        self.writer.let_go();
        self.lost.fetch_add(self.writer.refused(), Relaxed);
    }
}

/// The logs of a gateway, by the engine's numbers of sites.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessLogs {
    /// All open logs, each once.
    open: Vec<Arc<AccessLog>>,
    shared: Option<Arc<AccessLog>>,
    sites: Vec<Option<Arc<AccessLog>>>,
    /// How many lines were lost, without those that found the queue of a still open log full.
    lost: Arc<AtomicU64>,
    /// How many lost lines were logged, and when.
    reported: Arc<RareNews>,
}

impl AccessLogs {
    /// The logs for `settings`, each opened now or open already. If a disk hangs, this call hangs: call it without a lock.
    ///
    /// # Errors
    /// The file that cannot be opened, and why.
    pub(crate) fn open(&self, settings: &AccessLogSettings) -> io::Result<Vec<Arc<AccessLog>>> {
        let mut open = Vec::new();
        for target in settings.targets() {
            if find(&open, target, settings.form).is_none() {
                let here = find(&self.open, target, settings.form).map(Ok);
                open.push(here.unwrap_or_else(|| AccessLog::open(target, settings.form, &self.lost))?);
            }
        }
        Ok(open)
    }

    /// The logs by site for `settings`, out of the open ones.
    pub(crate) fn next(
        &self,
        open: Vec<Arc<AccessLog>>,
        settings: &AccessLogSettings,
        numbers: impl Iterator<Item = u16>,
    ) -> Self {
        let log = |target: &LogTarget| find(&open, target, settings.form);
        let shared = settings.target.as_ref().and_then(log);
        let mut by_site = Vec::new();
        let sites = settings.sites.iter().chain(std::iter::repeat(&SiteLog::Shared));
        for (number, site) in numbers.map(usize::from).zip(sites) {
            let log = match site {
                SiteLog::Shared => shared.clone(),
                SiteLog::Off => None,
                SiteLog::Own(target) => log(target),
            };
            by_site.resize(by_site.len().max(number + 1), None);
            by_site[number] = log;
        }
        AccessLogs { open, shared, sites: by_site, lost: self.lost.clone(), reported: self.reported.clone() }
    }

    /// The log of a site's requests, or of requests without a site.
    pub(crate) fn of(&self, site: Option<u16>) -> Option<&Arc<AccessLog>> {
        match site {
            Some(site) => self.sites.get(usize::from(site))?.as_ref(),
            None => self.shared.as_ref(),
        }
    }

    /// Has every log open its file anew before its next line. Returns the files that cannot be opened; those logs go on with
    /// the old files.
    pub(crate) fn reopen(&self) -> Vec<(PathBuf, io::Error)> {
        let mut failed = Vec::new();
        for log in &self.open {
            log.reopen.store(true, Relaxed);
            if let LogTarget::File(path) = &log.target
                && let Err(error) = can_open(path)
            {
                failed.push((path.clone(), error));
            }
        }
        failed
    }

    /// Waits until all lines are written, at most two seconds for each log: lines in a queue are lost when the process ends.
    pub(crate) fn finish(&self) {
        self.open.iter().for_each(|log| log.writer.finish());
    }

    /// How many lines were lost.
    pub(crate) fn dropped(&self) -> u64 {
        self.lost.load(Relaxed) + self.open.iter().map(|log| log.writer.refused()).sum::<u64>()
    }
}

impl AccessLogs {
    /// The message that lines are lost, if it is news.
    pub(crate) fn take_news(&self, now: Instant) -> Option<String> {
        let lost = self.dropped();
        let is_news = self.reported.take(lost, now);
        is_news.then(|| format!("{lost} so far, which could not be written, or not in time"))
    }
}

/// The log of a target, if it is open.
fn find(open: &[Arc<AccessLog>], target: &LogTarget, form: LogForm) -> Option<Arc<AccessLog>> {
    open.iter().find(|log| log.target == *target && log.form == form).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::REPORT_AGAIN;
    use std::time::Duration;

    #[test]
    fn sites_share_a_log_have_their_own_or_none() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = |name: &str| LogTarget::File(folder.path().join(name));
        let own = SiteLog::Own(file("own.log"));
        let settings = AccessLogSettings {
            target: Some(file("all.log")),
            sites: vec![SiteLog::Off, own.clone(), SiteLog::Shared, own],
            ..AccessLogSettings::default()
        };
        let none = AccessLogs::default();
        let logs = none.next(none.open(&settings)?, &settings, [3, 0, 1, 2].into_iter());
        let target = |site| logs.of(site).map(|log| log.target.clone());
        assert_eq!(target(None), Some(file("all.log")));
        assert_eq!(target(Some(3)), None, "it wants none");
        assert_eq!(target(Some(0)), Some(file("own.log")));
        assert_eq!(target(Some(1)), Some(file("all.log")));
        assert_eq!(logs.open.len(), 2, "a file is open once");
        let after = logs.next(logs.open(&settings)?, &settings, 0..4);
        assert!(after.open.iter().zip(&logs.open).all(|(new, old)| Arc::ptr_eq(new, old)), "they stay open");
        Ok(())
    }

    #[test]
    fn lines_that_are_lost_are_news_at_first_and_then_rarely() -> io::Result<()> {
        let target = LogTarget::File("/dev/full".into());
        let settings = AccessLogSettings { target: Some(target), ..AccessLogSettings::default() };
        let none = AccessLogs::default();
        let logs = none.next(none.open(&settings)?, &settings, 0..1);
        let (now, log) = (Instant::now(), logs.of(Some(0)).cloned().expect("it is open"));
        assert_eq!(logs.take_news(now), None, "nothing is lost yet");
        let lose = || {
            let before = logs.dropped();
            // Lines stay in the buffer of the file as long as there is room.
            while logs.dropped() == before {
                log.write(&[b'a'; 1000]);
                std::thread::yield_now();
            }
        };
        lose();
        assert!(logs.take_news(now).is_some_and(|text| text.contains("so far, which could not be written")));
        lose();
        assert_eq!(logs.take_news(now + Duration::from_secs(60)), None);
        let after = logs.next(logs.open(&settings)?, &settings, 0..1);
        assert!(after.take_news(now + REPORT_AGAIN).is_some());
        log.writer.finish();
        let _ = after.take_news(now + 2 * REPORT_AGAIN);
        assert_eq!(after.take_news(now + 3 * REPORT_AGAIN), None, "no more is lost");
        Ok(())
    }

    #[test]
    fn a_file_that_cannot_be_opened_is_named() {
        let target = LogTarget::File("/nowhere/access.log".into());
        let settings = AccessLogSettings { target: Some(target), ..AccessLogSettings::default() };
        let error = AccessLogs::default().open(&settings).expect_err("there is no such folder");
        assert!(
            error.to_string().starts_with("the access log /nowhere/access.log cannot be opened:"),
            "{error}"
        );
    }
}
