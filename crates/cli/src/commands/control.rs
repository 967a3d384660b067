//! `plimsoll control FILE`: the controller of a server whose own processes decide, until a signal requests its end.
//!
//! In come the configuration and, through the shared state, what the processes count; out go the service levels that they read.
//! What was learned is kept beside the state in memory, period by period, so that the next controller goes on where this one
//! was, also with another configuration. Where an address is named for it, the operator's listener shows what the controller
//! does.

use crate::args::{ControlArguments, source};
use crate::output::failure::Failure;
use crate::service::events::{EventLog, Incidents};
use crate::service::log::News;
use crate::service::process_news::{ProcessCounts, ProcessLine, ProcessNews};
use crate::service::signals::{Requested, Signals};
use crate::service::state::{KnownState, seed, write_learned};
use crate::service::supervisor::Watchdog;
use crate::service::sync::lock;
use crate::service::{log, resolve, supervisor};
use plimsoll_config::Configuration;
use plimsoll_ffi::{Controller, Taken};
use plimsoll_gateway::Reloaded;
use plimsoll_gateway::admin::{ControllerAdmin, ControllerDesk, ControllerFigures, Owner};
use plimsoll_gateway::settings::SeedSource;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest time without a look at the processes.
const LOOK: Duration = Duration::from_millis(100);
/// Why nothing is read again.
const READ_ONCE: &str = "the configuration is read at the start only: stop this process, start it again, and have the server start \
                         its processes anew";

pub(crate) fn control(arguments: &ControlArguments) -> Result<(), Failure> {
    let signals = Signals::block()?;
    log::start(signals);
    let requests = signals.receive()?;
    let (text, configuration) = source::read_inside(&arguments.file)?;
    // An address that cannot be had is reported before the state is touched.
    let listening = arguments.admin.map(|address| Listening::bind(address, &configuration)).transpose()?;
    let learned = arguments.state.with_added_extension("learned");
    let known = KnownState::find_at(&learned);
    let seed = configuration.gateway.seed.or(known.seed()).unwrap_or_else(seed::drawn);
    let (controller, taken) =
        Controller::start(&arguments.state, (&text, &configuration), seed, arguments.lanes.into())
            .map_err(|wrong| Failure::Input(wrong.join("\n")))?;
    let incidents = Arc::default();
    let keeps_seed = configuration.gateway.seed.is_none();
    let mut run = ControlRun { controller, learned: &learned, keeps_seed, desk: None };
    // Deaths that the first tick finds have not been logged; those that an earlier controller has found have.
    let processes = ProcessNews::going_on(run.controller.lanes(), run.process_counts());
    if let Some((state, at_once)) = known.learned() {
        known.tell_left_out(&run.controller.restore(&state, at_once));
    }
    // Processes can attach to what is published, so that it is there once this process says so.
    run.controller.tick();
    if let Some(listening) = listening {
        run.show(listening, &incidents)?;
    }
    let done = if taken == Taken::Over { "taken over" } else { "made" };
    tracing::info!("the shared state {} was {done}", arguments.state.display());
    supervisor::ready();
    let events = EventLog::going_on(incidents, &run.controller.status());
    if run.until_stopped(&requests, (events, processes)) { Ok(()) } else { Err(removed(&arguments.state)) }
}

/// Nobody can attach any more, and a supervisor starts a controller anew, which makes a state.
fn removed(state: &Path) -> Failure {
    Failure::Failed(format!(
        "the shared state {} was removed or replaced: no process can attach to it any more, so this controller ends\n\
         Start it again (systemd: `Restart=always`), which makes the state anew, and then the server's processes \
         (`apachectl graceful`).",
        state.display()
    ))
}

/// The operator's listener before it answers.
struct Listening {
    listener: TcpListener,
    admin: ControllerAdmin,
}

impl Listening {
    fn bind(address: SocketAddr, configuration: &Configuration) -> Result<Self, Failure> {
        let gateway = &configuration.gateway;
        if gateway.admin_tokens.is_none() && !address.ip().to_canonical().is_loopback() {
            return Err(Failure::Input(format!(
                "--admin {address}: whoever reaches this address could read all figures\n\
                 Add `admin_token_file = \"admin.token\"` under [gateway], a file with a line of at least 32 characters, or listen on \
                 127.0.0.1."
            )));
        }
        let admin = ControllerAdmin {
            names: gateway.settings.admin_names.clone(),
            tokens: resolve::admin_tokens(configuration)?,
            // One that was drawn is kept in the shared state.
            seed_from: gateway.seed.map_or(SeedSource::Kept, |_| SeedSource::Configured),
        };
        let listener = ControllerDesk::bind(address);
        let listener =
            listener.map_err(|error| Failure::not_started("controller", &error, "after `--admin`"))?;
        Ok(Listening { listener, admin })
    }
}

/// What the controller's process does for its operator.
struct ControlOwner(Arc<Mutex<Incidents>>);

impl Owner for ControlOwner {
    fn reload(&self) -> Result<Reloaded, String> {
        Err(READ_ONCE.to_owned())
    }

    fn log_lines_dropped(&self) -> u64 {
        log::dropped()
    }

    fn incidents(&self) -> String {
        lock(&self.0).json()
    }
}

struct ControlRun<'a> {
    controller: Controller,
    learned: &'a Path,
    /// The seed is not that of the configuration, so that it is kept with what was learned.
    keeps_seed: bool,
    desk: Option<ControllerDesk>,
}

impl ControlRun<'_> {
    /// Has the operator's listener answer.
    fn show(
        &mut self,
        Listening { listener, admin }: Listening,
        incidents: &Arc<Mutex<Incidents>>,
    ) -> Result<(), Failure> {
        let owner = Box::new(ControlOwner(incidents.clone()));
        let first = (self.controller.status(), self.figures());
        let desk = ControllerDesk::start((listener, admin), owner, first)
            .map_err(|error| Failure::not_started("controller", &error, "after `--admin`"))?;
        tracing::info!(admin = %desk.address(), "admin on {}", desk.address());
        self.desk = Some(desk);
        Ok(())
    }

    fn figures(&self) -> ControllerFigures {
        let (deaths, returned) = self.controller.deaths();
        ControllerFigures {
            lanes: self.controller.lanes(),
            attached: self.controller.attached(),
            deaths,
            returned,
            listen_queue: self.controller.listen_queue(),
        }
    }

    fn process_counts(&self) -> ProcessCounts {
        let (deaths, returned) = self.controller.deaths();
        ProcessCounts { deaths, returned, refused: self.controller.refused() }
    }

    /// Returns whether it was stopped; else its state has no name any more.
    fn until_stopped(
        &mut self,
        requests: &Receiver<Requested>,
        (mut events, mut processes): (EventLog, ProcessNews),
    ) -> bool {
        let (mut watchdog, mut written) = (Watchdog::new(), Instant::now());
        let is_stopped = loop {
            let rest = self.controller.tick().min(LOOK);
            let status = self.controller.status();
            watchdog.look(&status);
            events.look(&status).iter().for_each(News::log);
            processes.look(self.process_counts(), Instant::now()).iter().for_each(tell);
            if let Some(desk) = &self.desk {
                desk.report(status, self.figures());
            }
            if written.elapsed() >= Duration::from_secs(1) {
                written = Instant::now();
                if !self.controller.is_in_place() {
                    break false;
                }
                self.save();
            }
            match requests.recv_timeout(rest) {
                Ok(Requested::Stop) | Err(RecvTimeoutError::Disconnected) => break true,
                Ok(Requested::Reload) => tracing::warn!("{READ_ONCE}"),
                Ok(Requested::ReopenLogs | Requested::Upgrade) | Err(RecvTimeoutError::Timeout) => {}
            }
        };
        let status = self.controller.status();
        events.look(&status).iter().chain(&events.end(&status)).for_each(News::log);
        // Another controller may have taken the place of one whose state was replaced.
        if is_stopped {
            self.save();
        }
        tracing::info!(
            "stopping: {} processes go on with the levels that they have",
            self.controller.attached()
        );
        is_stopped
    }

    /// Keeps what was learned; a failure costs the next controller its memory only.
    fn save(&self) {
        let seed = self.keeps_seed.then(|| self.controller.seed());
        if let Err(error) = write_learned(self.learned, self.controller.learned(), seed) {
            tracing::debug!("cannot write {}: {error}", self.learned.display());
        }
    }
}

fn tell(ProcessLine { is_warning, text }: &ProcessLine) {
    match is_warning {
        true => tracing::warn!("{text}"),
        false => tracing::info!("{text}"),
    }
}
