//! New settings and promises for a running gateway.
//!
//! First, settings and promises are checked, each folder is opened once as a test, and files are read or opened. This happens
//! before the engine is locked, since a disk may hang. Then the tables are replaced, and after them the engine's promises (see
//! [`tables`](crate::worker::tables)). Settings that hold a socket or a thread cannot change while the gateway runs: they are
//! reported as needing a restart, and all others are applied.

use crate::files::Files;
use crate::settings::{AccessLogSettings, AdminTokens, Backend, Settings, TlsSettings, check};
use crate::sync::lock;
use crate::transport::tls::server::SeenFile;
use crate::worker::memory::give_back;
use crate::worker::shared::Shared;
use crate::worker::tables::TableParts;
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_core::promises::Promises;
use plimsoll_core::telemetry::status::PlantStatus;
use plimsoll_core::{Changes, Engine, LearnedState};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::Thread;

/// A handle to a running gateway, for any thread: it reloads the gateway, and passes on reports of its servers.
#[derive(Clone)]
pub struct Reloader {
    pub(crate) shared: Arc<Shared>,
    pub(crate) engine: Arc<Mutex<Engine>>,
    pub(crate) ticker: Thread,
}

/// What a reload changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Changes of promises, and of what serves them.
    pub changes: Changes,
    /// Sections of the settings that changed.
    pub settings: Vec<&'static str>,
    /// Settings that differ, and take effect only after a restart.
    pub needs_restart: Vec<&'static str>,
}

impl Reloader {
    /// Notes the number of workers that the server of an upstream reports. The report counts only if the engine searches for
    /// the upstream's number of workers; other and unknown upstreams are ignored.
    ///
    /// # Errors
    /// The number of the upstream's servers, if its name has several addresses: one server cannot speak for all.
    pub fn report_workers(&self, upstream: &str, workers: u32) -> Result<(), usize> {
        let status = lock(&self.engine).status();
        let named = |plant: &PlantStatus| plant.name == upstream && !plant.removed;
        let Some(plant) = status.plants.iter().position(named) else { return Ok(()) };
        let tables = self.shared.tables.current();
        let own = tables.plants.get(plant).and_then(|row| row.upstream.as_ref());
        let servers = own.map_or(1, |upstream| upstream.pool.roster().servers());
        if servers > 1 {
            return Err(servers);
        }
        lock(&self.shared.reported_workers).push((plant, workers));
        Ok(())
    }

    /// Everything that the engine has learned, for the next gateway.
    pub fn learned(&self) -> LearnedState {
        lock(&self.engine).learned()
    }

    /// The rate forecasts that were learned, for admission by budget.
    pub fn rate_forecasts(&self) -> RateForecasts {
        lock(&self.engine).rate_forecasts()
    }

    /// Adds the forecasts of an earlier run to those learned since.
    pub fn restore_rate_forecasts(&self, forecasts: RateForecasts) {
        lock(&self.engine).restore_rate_forecasts(forecasts);
    }

    /// Has every access log open its file anew after it was moved away. Returns the files that cannot be opened; those logs go
    /// on with the old files.
    pub fn reopen_access_logs(&self) -> Vec<(PathBuf, io::Error)> {
        self.shared.tables.current().access_logs.reopen()
    }

    /// The state of the files of certificates and keys, if they differ from the files that are in force.
    pub fn changed_tls_files(&self) -> Option<Vec<SeenFile>> {
        let tls = self.shared.tables.current().settings.tls.clone();
        let seen = tls.as_ref().map_or_else(Vec::new, TlsSettings::look);
        (seen != self.shared.tls.read_from()).then_some(seen)
    }

    /// Reads these files again, and uses their contents in later handshakes. False if a reload came meanwhile, which has read
    /// its own files.
    ///
    /// # Errors
    /// Everything that is wrong with the files. Nothing has changed then.
    pub fn renew_certificates(&self) -> Result<bool, Vec<String>> {
        let tables = self.shared.tables.current();
        let config = self.shared.tls.prepare(tables.settings.tls.as_ref())?;
        let _engine = lock(&self.engine);
        let is_wanted = Arc::ptr_eq(&tables, &self.shared.tables.current());
        if is_wanted {
            self.shared.tls.install(config);
        }
        Ok(is_wanted)
    }

    /// Replaces settings and promises. Requests under way are not touched.
    ///
    /// # Errors
    /// Everything that is wrong, one sentence for each finding. Nothing has changed then.
    pub fn reload(&self, settings: Settings, promises: &Promises) -> Result<Reloaded, Vec<String>> {
        let result = self.apply(settings, promises);
        lock(&self.shared.reloads).count(result.is_ok());
        // Frees the memory for reading the configuration, and that of the former tables.
        give_back();
        result
    }

    /// Counts a reload that was refused before it reached the gateway, because its file is wrong.
    pub fn refuse(&self) {
        lock(&self.shared.reloads).count(false);
    }

    fn apply(&self, mut settings: Settings, promises: &Promises) -> Result<Reloaded, Vec<String>> {
        check(&settings, promises).map_err(|error| vec![error])?;
        folders_open(&settings, promises)?;
        let tls = self.shared.tls.prepare(settings.tls.as_ref())?;
        let logs = &self.shared.tables.current().access_logs;
        let parts = TableParts::prepare(&settings, self.shared.mailboxes.len(), logs)?;
        // The lock is held to the end, so that reloads come one at a time.
        let mut engine = lock(&self.engine);
        let reload = engine.prepare(promises)?;
        let before = self.shared.tables.current();
        let needs_restart = pin(&before.settings, &mut settings);
        let sections = sections(&before.settings, &settings);
        // The certificates are for the present listeners, which cannot begin or cease to speak TLS.
        let tls = (tls.is_some() == settings.tls.is_some()).then_some(tls);
        let tables =
            before.next(settings, promises, &reload, &parts).map_err(|error| vec![error.to_string()])?;
        self.shared.tables.publish(tables);
        if let Some(tls) = tls {
            self.shared.tls.install(tls);
        }
        let mut changes = engine.apply(reload.clone());
        drop(engine);
        let now = self.shared.tables.current();
        now.settle_pools(self.shared.clock.now(), &before, promises, &reload);
        now.note_changes(&before, promises, &reload, &mut changes);
        self.ticker.unpark();
        Ok(Reloaded { changes, settings: sections, needs_restart })
    }
}

/// Refuses settings with a folder that cannot be opened. Each thread opens the folders itself later.
fn folders_open(settings: &Settings, promises: &Promises) -> Result<(), Vec<String>> {
    let pairs = settings.backends.iter().zip(&promises.plants);
    let wrong: Vec<String> = pairs
        .filter_map(|(backend, plant)| match backend {
            Backend::Files(files) => {
                let error = Files::new(files.clone()).err()?;
                Some(format!("{}: the folder {} cannot be opened: {error}", plant.name, files.root.display()))
            }
            Backend::Upstream(_) => None,
        })
        .collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// The sections that differ and can change in a reload.
fn sections(old: &Settings, new: &Settings) -> Vec<&'static str> {
    // Each field is named, so that a new field cannot be forgotten here.
    let Settings {
        admin_tokens,
        tls,
        h2c,
        reject_at_accept,
        proxy_protocol,
        trusted_proxies,
        trusted_headers,
        signed,
        real_ip_header,
        forwarded,
        report,
        rejection,
        // Those of sites are reported by site.
        access_log: AccessLogSettings { form, target, sites: _ },
        traces,
        limits,
        stream_paths,
        timeouts,
        // These fields cannot change in a reload.
        listen: _,
        admin: _,
        admin_names: _,
        threads: _,
        metrics: _,
        kernel_shed: _,
        hash_seed: _,
        hash_seed_from: _,
        // What differs in these is reported by upstream and by site.
        backends: _,
        rewrites: _,
        headers: _,
    } = old;
    differing([
        ("admin tokens", *admin_tokens != new.admin_tokens),
        ("tls", *tls != new.tls),
        ("h2c", *h2c != new.h2c),
        ("reject_at_accept", *reject_at_accept != new.reject_at_accept),
        ("proxy_protocol", *proxy_protocol != new.proxy_protocol),
        ("trusted_proxies", *trusted_proxies != new.trusted_proxies),
        ("trusted_headers", *trusted_headers != new.trusted_headers),
        ("signed cookies and headers", *signed != new.signed),
        ("real_ip_header", *real_ip_header != new.real_ip_header),
        ("forwarded", *forwarded != new.forwarded),
        ("report", *report != new.report),
        ("rejection", *rejection != new.rejection),
        ("access_log", (form, target) != (&new.access_log.form, &new.access_log.target)),
        ("traces", *traces != new.traces),
        ("limits", *limits != new.limits || *stream_paths != new.stream_paths),
        ("timeouts", *timeouts != new.timeouts),
    ])
}

/// Sets the fields that cannot change back to their old values; returns the names of those that differed.
fn pin(old: &Settings, new: &mut Settings) -> Vec<&'static str> {
    let kept = differing([
        ("listen", old.listen != new.listen),
        ("admin", old.admin != new.admin),
        ("admin_names", old.admin_names != new.admin_names),
        ("tls", old.tls.is_some() != new.tls.is_some()),
        ("threads", old.threads != new.threads),
        ("metrics", old.metrics != new.metrics),
        ("kernel", old.kernel_shed != new.kernel_shed),
        ("seed", old.hash_seed != new.hash_seed),
    ]);
    new.listen.clone_from(&old.listen);
    if old.tls.is_some() != new.tls.is_some() {
        // Without a restart no listener begins or ceases to speak TLS.
        new.tls.clone_from(&old.tls);
    }
    new.admin_names.clone_from(&old.admin_names);
    new.metrics.clone_from(&old.metrics);
    if old.admin != new.admin && new.admin_tokens == AdminTokens::default() {
        // The listener stays, and others may reach it, so it goes on asking for its tokens.
        new.admin_tokens.clone_from(&old.admin_tokens);
    }
    (new.admin, new.threads, new.kernel_shed) = (old.admin, old.threads, old.kernel_shed);
    (new.hash_seed, new.hash_seed_from) = (old.hash_seed, old.hash_seed_from);
    kept
}

fn differing<const N: usize>(pairs: [(&'static str, bool); N]) -> Vec<&'static str> {
    pairs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
}

/// The changes in one line, for a log.
impl std::fmt::Display for Reloaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        let kinds = [
            ("upstream", &self.changes.plants),
            ("site", &self.changes.sites),
            ("class", &self.changes.classes),
        ];
        for (kind, difference) in kinds {
            let lists =
                [("new", &difference.added), ("gone", &difference.removed), ("changed", &difference.changed)];
            for (what, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
                parts.push(format!("{kind} {what}: {}", names.join(", ")));
            }
        }
        if self.changes.control {
            parts.push("control changed".to_owned());
        }
        if !self.settings.is_empty() {
            parts.push(format!("changed: {}", self.settings.join(", ")));
        }
        if !self.needs_restart.is_empty() {
            parts.push(format!("needs a restart: {}", self.needs_restart.join(", ")));
        }
        f.write_str(if parts.is_empty() { "nothing changed" } else { "" })?;
        f.write_str(&parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_comes_and_goes_with_its_listeners_alone() {
        let with = |redirect| Settings {
            tls: Some(TlsSettings { redirect, ..TlsSettings::default() }),
            ..Settings::default()
        };
        let pinned = |old: &Settings, mut new: Settings| {
            let needs_restart = pin(old, &mut new);
            (new.tls, needs_restart.contains(&"tls"))
        };
        let without = Settings::default();
        assert_eq!(pinned(&without, with(Some(443))), (None, true), "nobody is sent where nobody listens");
        assert_eq!(pinned(&with(None), without.clone()), (with(None).tls, true));
        assert_eq!(pinned(&with(None), with(Some(443))), (with(Some(443)).tls, false));
    }

    #[test]
    fn a_listener_that_others_reach_and_that_stays_goes_on_asking_for_its_tokens() {
        let tokens = |text: &str| AdminTokens::read(text).unwrap();
        let (first, second) = (tokens(&"a".repeat(40)), tokens(&"b".repeat(40)));
        let at = |admin: Option<&str>, admin_tokens: &AdminTokens| Settings {
            admin: admin.map(|admin| admin.parse().unwrap()),
            admin_tokens: admin_tokens.clone(),
            ..Settings::default()
        };
        let old = at(Some("0.0.0.0:9090"), &first);
        for (admin, given, in_force) in [
            (None, AdminTokens::default(), &first),
            (Some("127.0.0.1:9090"), AdminTokens::default(), &first),
            (Some("127.0.0.1:9090"), second.clone(), &second),
            (Some("0.0.0.0:9090"), second.clone(), &second),
        ] {
            let mut new = at(admin, &given);
            pin(&old, &mut new);
            assert_eq!((new.admin, &new.admin_tokens), (old.admin, in_force), "{admin:?}");
        }
    }
}
