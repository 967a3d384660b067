//! `plimsoll run FILE`: the gateway, until it is told to stop; told to reload, it reads FILE again.

use crate::args::RunArguments;
use crate::args::source;
use crate::output::failure::Failure;
use crate::service::events::EventLog;
use crate::service::open_files::raise_open_files;
use crate::service::reload::Reload;
use crate::service::signals::{Asked, Signals};
use crate::service::trends::TrendFile;
use crate::service::worker_counts::WorkerCounts;
use crate::service::{log, resolve, trends};
use plimsoll_core::promises::Promises;
use plimsoll_gateway::{Gateway, Settings};
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How often the event log looks at the status.
const LOOK: Duration = Duration::from_millis(250);

/// Runs it.
pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let signals = Signals::block()?;
    log::start(signals);
    let configuration = source::read(&arguments.file)?;
    let mut settings = resolve::settings(&configuration)?;
    let trends = configuration.gateway.trends.as_deref();
    let known = trends.map(trends::read).transpose()?;
    enough_open_files(&mut settings, &configuration.promises);
    let gateway = Gateway::start(settings, &configuration.promises).map_err(|error| not_started(&error))?;
    for address in gateway.local_addrs() {
        tracing::info!("listening on {address}");
    }
    if let Some(address) = gateway.admin_addr() {
        tracing::info!("admin on {address}");
    }
    let reload = Reload {
        file: arguments.file.clone(),
        gateway: gateway.reloader(),
        worker_counts: WorkerCounts::default(),
        trends: TrendFile::default(),
    };
    reload.trends.follow(trends, known, &reload.gateway);
    reload.worker_counts.follow(&configuration);
    let counting = reload.worker_counts.clone().start(gateway.reloader());
    counting.map_err(|error| Failure::Failed(format!("cannot start a thread: {error}")))?;
    gateway.set_owner(Box::new(reload.clone()));
    watch(&gateway, signals, &reload)?;
    reload.trends.save(&reload.gateway);
    let limit = gateway.drain_timeout();
    drain(gateway, signals, limit);
    Ok(())
}

/// Logs what the loops decide, and reloads when it is asked to, until it is asked to stop.
fn watch(gateway: &Gateway, signals: Signals, reload: &Reload) -> Result<(), Failure> {
    let (told, asked) = mpsc::channel();
    let wait = move || {
        loop {
            let asked = signals.wait();
            // Nobody listens any more only if the process ends anyway.
            if told.send(asked).is_err() || asked == Asked::Stop {
                return;
            }
        }
    };
    let thread = thread::Builder::new().name("signals".to_owned()).spawn(wait);
    thread.map_err(|error| Failure::Failed(format!("cannot wait for signals: {error}")))?;
    let mut events = EventLog::default();
    loop {
        match asked.recv_timeout(LOOK) {
            // What is wrong was said; it goes on as it was.
            Ok(Asked::Reload) => drop(reload.now()),
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Ok(Asked::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
        }
        reload.trends.look(&reload.gateway);
        for line in events.look(&gateway.status()) {
            tracing::info!("{line}");
        }
    }
}

/// Lets requests under way finish; a second signal ends the process at once.
fn drain(gateway: Gateway, signals: Signals, limit: Duration) {
    tracing::info!("stopping: requests under way have {} s to finish", limit.as_secs_f64());
    let impatient = thread::Builder::new().name("second-signal".to_owned()).spawn(move || {
        signals.wait_for_stop();
        tracing::warn!("stopped at once: requests under way are cut off");
        log::finish();
        std::process::exit(1);
    });
    if impatient.is_err() {
        // Nobody would hear a second signal, so there is no waiting either.
        return gateway.shutdown();
    }
    if !gateway.drain(limit) {
        tracing::warn!("some requests were not finished in time");
    }
}

/// Every client is an open file, and each request to an upstream another. Where there are too few, clients get what
/// is left: those above it wait in the kernel's queue, while out of descriptors nobody would be served at all.
pub(crate) fn enough_open_files(settings: &mut Settings, promises: &Promises) {
    let upstreams = promises.plants.iter().map(|plant| u64::from(plant.max_connections)).sum();
    let limit = match raise_open_files() {
        Ok(limit) => limit,
        Err(error) => return tracing::warn!("note: the limit of open files cannot be raised: {error}"),
    };
    let wanted = settings.limits.connections as u64;
    let left = left_for_clients(limit, upstreams);
    if left < wanted {
        settings.limits.connections = left as usize;
        tracing::warn!(
            "note: this process may open {limit} files, too few for {wanted} connections: it accepts {left}; raise \
             the limit (systemd: `LimitNOFILE={}`), or write `connections = {left}` under [limits]",
            wanted.saturating_mul(2).max(wanted + upstreams + OWN_FILES),
        );
    }
}

/// What the gateway itself opens at most: listeners, the operator's connections, files that it serves.
const OWN_FILES: u64 = 1000;

/// How many clients there may be, of `limit` open files, beside `upstreams` connections to upstreams.
fn left_for_clients(limit: u64, upstreams: u64) -> u64 {
    let own = OWN_FILES.min(limit / 5);
    // A quarter at least: with more connections to upstreams than files, something has to give.
    limit.saturating_sub(own + upstreams).max(limit / 4).max(1)
}

fn not_started(error: &io::Error) -> Failure {
    let help = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "Stop what listens there (`ss -ltnp` shows it), or write another address under [gateway]."
        }
        io::ErrorKind::PermissionDenied => {
            "Ports below 1024 need the capability CAP_NET_BIND_SERVICE; or write a higher port under [gateway]."
        }
        io::ErrorKind::AddrNotAvailable => {
            "This machine has no such address; `ip address` shows those that it has."
        }
        _ => "",
    };
    Failure::Failed(format!("the gateway does not start: {error}\n{help}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_the_files_that_are_left() {
        assert_eq!(left_for_clients(1_048_576, 64), 1_047_512);
        assert_eq!(left_for_clients(1024, 8), 812);
        assert_eq!(left_for_clients(1024, 5000), 256);
        assert_eq!(left_for_clients(0, 0), 1);
    }
}
