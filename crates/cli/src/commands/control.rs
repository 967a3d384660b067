//! `plimsoll control FILE`: the controller of a server whose own processes decide, until a signal requests its end.
//!
//! In come the configuration and, through the shared state, what the processes count; out go the service levels that they read.
//! What was learned is kept beside the state in memory, period by period, so that the next controller goes on where this one
//! was.

use crate::args::{ControlArguments, source};
use crate::output::failure::Failure;
use crate::service::events::EventLog;
use crate::service::log::News;
use crate::service::signals::{Requested, Signals};
use crate::service::state::{KnownState, seed, write_learned};
use crate::service::{log, supervisor};
use plimsoll_ffi::{Controller, Taken};

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// The longest time without a look at the processes.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn control(arguments: &ControlArguments) -> Result<(), Failure> {
    let signals = Signals::block()?;
    log::start(signals);
    let requests = signals.receive()?;
    let name = arguments.file.display().to_string();
    let text = std::fs::read_to_string(&arguments.file).map_err(|error| {
        let instead = "Name a configuration; examples/module.toml is one to begin with.";
        Failure::not_read(format_args!("{name}: {error}"), &error, instead)
    })?;
    let configuration = source::understand_inside(&text, &name)?;
    let learned = arguments.state.with_added_extension("learned");
    let known = KnownState::find_at(&learned);
    let seed = configuration.gateway.seed.unwrap_or_else(seed::drawn);
    let (controller, taken) =
        Controller::start(&arguments.state, (&text, &configuration), seed, arguments.lanes.into())
            .map_err(|wrong| Failure::Input(wrong.join("\n")))?;
    let mut run = ControlRun { controller, learned: &learned, deaths: 0 };
    if let (Taken::Over, Some((state, at_once))) = (taken, known.learned()) {
        known.tell_left_out(&run.controller.restore(&state, at_once));
    }
    // Processes can attach to what is published, so that it is there once this process says so.
    run.controller.tick();
    let done = if taken == Taken::Over { "taken over" } else { "made" };
    tracing::info!("the shared state {} was {done}", arguments.state.display());
    supervisor::ready();
    run.until_stopped(&requests);
    Ok(())
}

struct ControlRun<'a> {
    controller: Controller,
    learned: &'a Path,
    /// Dead processes of which the log has told.
    deaths: u64,
}

impl ControlRun<'_> {
    fn until_stopped(&mut self, requests: &Receiver<Requested>) {
        let mut events = EventLog::new(Default::default());
        let mut written = Instant::now();
        loop {
            let rest = self.controller.tick().min(LOOK);
            events.look(&self.controller.status()).iter().for_each(News::log);
            self.tell_deaths();
            if written.elapsed() >= Duration::from_secs(1) {
                written = Instant::now();
                self.save();
            }
            match requests.recv_timeout(rest) {
                Ok(Requested::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Ok(Requested::Reload) => tracing::warn!(
                    "the configuration is read at the start only: stop this process, start it again, and have the server start \
                     its processes anew"
                ),
                Ok(Requested::ReopenLogs | Requested::Upgrade) | Err(RecvTimeoutError::Timeout) => {}
            }
        }
        self.save();
        tracing::info!(
            "stopping: {} processes go on with the levels that they have",
            self.controller.attached()
        );
    }

    fn tell_deaths(&mut self) {
        let (deaths, returned) = self.controller.deaths();
        if deaths != self.deaths {
            let news = deaths - self.deaths;
            tracing::warn!(
                died = news,
                "{news} processes died at work; all that died so far held {returned} requests, which have failed"
            );
            self.deaths = deaths;
        }
    }

    /// Keeps what was learned; a failure costs the next controller its memory only.
    fn save(&self) {
        if let Err(error) = write_learned(self.learned, self.controller.learned()) {
            tracing::debug!("cannot write {}: {error}", self.learned.display());
        }
    }
}
