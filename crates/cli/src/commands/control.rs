//! `plimsoll control FILE`: the controller of a server whose own processes decide, until a signal requests its end.
//!
//! Input: the configuration and, through the shared state, what the processes count. Output: the service levels that the
//! processes read. After each period the learned state is written beside the shared state, in memory, so that the next
//! controller goes on from there, also with another configuration. If an address is given for it, the operator's listener shows
//! what the controller does.

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

/// The longest time between two looks at the processes.
const LOOK: Duration = Duration::from_millis(100);
/// The answer to a request for a reload.
const READ_ONCE: &str = "the configuration is read at the start only: stop this process, start it again, and have the server start \
                         its processes anew";

pub(crate) fn control(arguments: &ControlArguments) -> Result<(), Failure> {
    let signals = Signals::block()?;
    log::start(signals);
    let requests = signals.receive()?;
    let (text, configuration) = source::read_inside(&arguments.file)?;
    // If the address cannot be used, the failure comes before the state is touched.
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
    // Deaths that the first tick finds are still to be logged; those that an earlier controller found were logged by it.
    let processes = ProcessNews::going_on(run.controller.lanes(), run.process_counts());
    if let Some((state, at_once)) = known.learned() {
        known.tell_left_out(&run.controller.restore(&state, at_once));
    }
    // Processes attach to the published state, so the first tick publishes it before this process says that it serves.
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

/// The failure if the state's file was removed: no process can attach any more. A supervisor starts the controller again, which
/// makes a new state.
fn removed(state: &Path) -> Failure {
    Failure::Failed(format!(
        "the shared state {} was removed or replaced: no process can attach to it any more, so this controller ends\n\
         Start it again (systemd: `Restart=always`), which makes the state anew, and then the server's processes \
         (`apachectl graceful`).",
        state.display()
    ))
}

/// The operator's listener, bound but not yet answering.
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
            // If the seed was drawn, it is kept in the shared state.
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
    /// Whether the seed was drawn, so that it must be kept with the learned state.
    keeps_seed: bool,
    desk: Option<ControllerDesk>,
}

impl ControlRun<'_> {
    /// Starts to answer at the operator's listener.
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

    /// Runs the loops. Returns true if a signal requested the end, false if the state's file was removed or replaced.
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
        // If the state was replaced, another controller may have taken over, so nothing is saved.
        if is_stopped {
            self.save();
        }
        tracing::info!(
            "stopping: {} processes go on with the levels that they have",
            self.controller.attached()
        );
        is_stopped
    }

    /// Saves the learned state. If that fails, the next controller only has to learn again.
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
