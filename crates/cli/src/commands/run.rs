//! `plimsoll run FILE`: the gateway, until a signal requests its end. A signal that requests a reload makes it read FILE again.

use crate::args::RunArguments;
use crate::args::source;
use crate::output::failure::Failure;
use crate::output::level_order;
use crate::service::dns_refresh::Lookups;
use crate::service::events::EventLog;
use crate::service::forecast_file::{self, ForecastFile};
use crate::service::hanging_reads::{Readings, unless_stopped};
use crate::service::kept_files;
use crate::service::log::News;
use crate::service::open_files::{fit_connections, open_now};
use crate::service::reload::Reload;
use crate::service::resolve::{self, Found};
use crate::service::signals::{Requested, Signals};
use crate::service::state::{KnownState, StateFile, seed};
use crate::service::supervisor::{self, Watchdog};
use crate::service::upgrade::{Start, Upgrade};
use crate::service::what_if::WhatIfDesk;
use crate::service::worker_counts::WorkerCounts;
use crate::service::{certificates, log, own_listeners};
use plimsoll_config::Configuration;
use plimsoll_core::admission::aces::RateForecasts;
use plimsoll_gateway::admin::WhatIf;
use plimsoll_gateway::{Before, FaultNews, Gateway, ListeningSocket, ServerNews, Settings};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How often the event log looks at the status.
const LOOK: Duration = Duration::from_millis(250);
/// How long idle connections of a replaced process wait for one more request: longer than the pauses of busy clients.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let mut start = Start::find()?;
    let signals = Signals::block()?;
    log::start(signals);
    let requests = signals.receive()?;
    let (file, handed_over) = (arguments.file.clone(), start.learned.take());
    let read = move || First::read(&file, handed_over.as_deref());
    let Some(first) = unless_stopped(&requests, read)? else { return Ok(()) };
    let First { configuration, found, mut settings, seed, known, state } = first;
    let forecast = configuration.gateway.rate_forecast.as_deref();
    let open_files = open_now();
    let fits = fit_connections(&mut settings, &configuration.promises, open_files);
    let mut before = Before {
        sockets: std::mem::take(&mut start.inherited),
        learned: state.learned(),
        ..Before::default()
    };
    let started = fits.and_then(|()| {
        Gateway::start_after(&mut before, settings, &configuration.promises)
            .map_err(|error| Failure::not_started("gateway", &error, "under [gateway]"))
    });
    let gateway = started.inspect_err(|_| state.forget_new(seed))?;
    state.tell_left_out(&before.left_out);
    let reload = Reload {
        file: arguments.file.clone(),
        gateway: gateway.reloader(),
        seed,
        state: StateFile::default(),
        worker_counts: WorkerCounts::default(),
        lookups: Lookups::default(),
        forecast: ForecastFile::default(),
        open_files,
        readings: Readings::default(),
        turns: Arc::default(),
        incidents: Arc::default(),
        what_if: WhatIfDesk::new(arguments.file.clone(), gateway.reloader()),
    };
    let known = known.or_else(|| state.rate_forecasts().filter(|_| forecast.is_none()));
    reload.forecast.follow(forecast, known, &reload.gateway);
    reload.state.follow(&configuration, &reload.file, seed);
    reload.worker_counts.follow(&configuration);
    reload.lookups.follow(&configuration, found);
    let threads = reload.worker_counts.clone().start(gateway.reloader());
    let threads = threads.and_then(|()| reload.state.start(gateway.reloader()));
    let threads = threads.and_then(|()| reload.lookups.start(gateway.reloader(), reload.turns.clone()));
    let threads = threads.and_then(|()| certificates::follow(gateway.reloader()));
    threads.map_err(|error| Failure::Failed(format!("cannot start a thread: {error}")))?;
    gateway.set_owner(Box::new(reload.clone()));
    // The operator's listener can answer everything before its address is announced.
    tell_addresses(&gateway);
    start.ready(std::mem::take(&mut before.sockets));
    supervisor::ready();
    match watch(&gateway, &requests, &reload) {
        Some(successor) => hand_over(gateway, (requests, signals), successor),
        None => {
            reload.state.save(&reload.gateway);
            reload.forecast.save(&reload.gateway);
            drain(gateway, signals);
        }
    }
    Ok(())
}

fn tell_addresses(gateway: &Gateway) {
    for listener in gateway.listening() {
        tracing::info!(listener = %listener, "listening on {listener}");
    }
    if let Some(address) = gateway.admin_addr() {
        tracing::info!(admin = %address, "admin on {address}");
    }
}

/// The files that are read before the start.
struct First {
    configuration: Configuration,
    found: Found,
    settings: Settings,
    seed: seed::Known,
    known: Option<RateForecasts>,
    state: KnownState,
}

impl First {
    fn read(file: &Path, handed_over: Option<&str>) -> Result<Self, Failure> {
        let configuration = source::read(file)?;
        log::follow(configuration.gateway.log);
        own_listeners::refuse(&configuration)?;
        kept_files::refuse(&configuration, file, None)?;
        level_order::warnings(&configuration).iter().for_each(|warning| tracing::warn!("{warning}"));
        let found = resolve::look_all_up(&configuration, |_| None)?;
        let mut settings = resolve::settings_with(&configuration, &found)?;
        let known = configuration.gateway.rate_forecast.as_deref().map(forecast_file::read).transpose()?;
        let state = KnownState::find(&configuration, file, handed_over);
        let seed = seed::draw(&configuration, &state);
        (settings.hash_seed, settings.hash_seed_from) = seed;
        Ok(First { configuration, found, settings, seed, known, state })
    }
}

/// Logs what the loops decide, and reloads on request, until the end is requested or another process has taken this one's
/// place. Returns that process's id; `None` at a requested end.
fn watch(gateway: &Gateway, requests: &Receiver<Requested>, reload: &Reload) -> Option<u32> {
    let mut events = EventLog::new(reload.incidents.clone());
    let (upgrade, mut watchdog) = (Upgrade::default(), Watchdog::new());
    let successor = loop {
        match requests.recv_timeout(LOOK) {
            Ok(Requested::Reload) => reload.begin(),
            Ok(Requested::ReopenLogs) => reopen_logs(reload),
            Ok(Requested::Upgrade) => begin_upgrade(&upgrade, gateway, reload),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Requested::Stop) | Err(RecvTimeoutError::Disconnected) => {
                upgrade.cancel();
                break upgrade.successor();
            }
        }
        if let Some(successor) = upgrade.successor() {
            supervisor::is_replaced_by(successor);
            reload.state.give_up();
            break Some(successor);
        }
        reload.forecast.look(&reload.gateway);
        let status = gateway.watch();
        watchdog.look(&status);
        events.look(&status).iter().for_each(News::log);
        gateway.server_news().iter().for_each(tell_server);
        gateway.faults().iter().for_each(|FaultNews { upstream, text }| tracing::warn!(upstream, "{text}"));
    };
    reload.what_if.stop();
    let status = gateway.status();
    events.look(&status).iter().chain(&events.end(&status)).for_each(News::log);
    successor
}

fn tell_server(news: &ServerNews) {
    let ServerNews { upstream, server, is_bad, in_use: [in_use, servers], text } = news;
    match (is_bad, in_use) {
        (true, 0) => tracing::error!(upstream, server, in_use, servers, "{text}"),
        (true, _) => tracing::warn!(upstream, server, in_use, servers, "{text}"),
        (false, _) => tracing::info!(upstream, server, in_use, servers, "{text}"),
    }
}

fn reopen_logs(reload: &Reload) {
    for (path, error) in reload.gateway.reopen_access_logs() {
        let file = path.display();
        tracing::warn!(%file, "{file} cannot be opened anew: {error}; lines go on into the old file");
    }
}

fn begin_upgrade(upgrade: &Upgrade, gateway: &Gateway, reload: &Reload) {
    reload.forecast.save(&reload.gateway);
    let sockets = gateway.listeners().iter().map(ListeningSocket::try_clone).collect();
    upgrade.begin(sockets, reload.state.hand_over(&reload.gateway));
}

/// Lets requests in progress finish.
fn drain(gateway: Gateway, signals: Signals) {
    let limit = gateway.drain_timeout();
    supervisor::stopping();
    tracing::info!(
        limit = limit.as_secs_f64(),
        "stopping: requests under way have {} s to finish",
        limit.as_secs_f64()
    );
    finish(gateway, move || signals.wait_for_stop(), |gateway| gateway.drain(limit));
}

/// Leaves new connections to the process that has taken this one's place, and lets requests in progress finish.
fn hand_over(gateway: Gateway, (requests, signals): (Receiver<Requested>, Signals), successor: u32) {
    let limit = gateway.drain_timeout();
    tracing::info!(
        successor,
        limit = limit.as_secs_f64(),
        "handed over to process {successor}: requests under way have {} s to finish",
        limit.as_secs_f64()
    );
    let wait_for_stop = move || {
        // The thread that receives signals goes on until the first request to end. A supervisor sends that to all processes of
        // a service, and this process is ending already, so it is ignored.
        while requests.recv().is_ok_and(|one| one != Requested::Stop) {}
        signals.wait_for_stop();
    };
    finish(gateway, wait_for_stop, |gateway| gateway.hand_over(GRACE, limit));
}

/// Ends the gateway gently; a second signal ends the process at once.
fn finish(
    gateway: Gateway,
    wait_for_stop: impl FnOnce() + Send + 'static,
    gently: impl FnOnce(Gateway) -> bool,
) {
    let impatient = thread::Builder::new().name("second-signal".to_owned()).spawn(move || {
        wait_for_stop();
        tracing::warn!("stopped at once: requests under way are cut off");
        log::finish();
        std::process::exit(1);
    });
    if impatient.is_err() {
        // No thread would receive a second signal, so the gateway ends without waiting.
        return gateway.shutdown();
    }
    if !gently(gateway) {
        tracing::warn!("some requests were not finished in time");
    }
}
