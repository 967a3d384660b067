//! `plimsoll run FILE`: the gateway, until it is told to stop.

use crate::arguments::RunArguments;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::{resolve, source};
use plimsoll_gateway::{Gateway, Settings};
use plimsoll_load::raise_open_files;
use std::io;
use std::thread;
use std::time::Duration;

/// Runs it.
pub(crate) fn run(arguments: &RunArguments) -> Result<(), Failure> {
    let signals = Signals::block()?;
    let configuration = source::read(&arguments.file)?;
    let settings = resolve::settings(&configuration)?;
    enough_open_files(&settings);
    let gateway = Gateway::start(settings, &configuration.promises).map_err(|error| not_started(&error))?;
    for address in gateway.local_addrs() {
        eprintln!("listening on {address}");
    }
    if let Some(address) = gateway.admin_addr() {
        eprintln!("admin on {address}");
    }
    signals.wait();
    drain(gateway, signals, configuration.gateway.timeouts.drain);
    Ok(())
}

/// Lets requests under way finish; a second signal ends the process at once.
fn drain(gateway: Gateway, signals: Signals, limit: Duration) {
    eprintln!("stopping: requests under way have {} s to finish", limit.as_secs_f64());
    let impatient = thread::Builder::new().name("second-signal".to_owned()).spawn(move || {
        signals.wait();
        eprintln!("stopped at once: requests under way are cut off");
        std::process::exit(1);
    });
    if impatient.is_err() {
        // Nobody would hear a second signal, so there is no waiting either.
        return gateway.shutdown();
    }
    if !gateway.drain(limit) {
        eprintln!("some requests were not finished in time");
    }
}

/// Every client is an open file, and each request to an upstream another.
fn enough_open_files(settings: &Settings) {
    let wanted = settings.limits.connections as u64 + 1000;
    match raise_open_files() {
        Ok(limit) if limit < wanted => eprintln!(
            "note: this process may open {limit} files, too few for {} connections; raise it \
             (systemd: `LimitNOFILE={}`), or write `connections = {}` under [limits]",
            settings.limits.connections,
            wanted * 2,
            limit.saturating_sub(1000).max(limit / 2),
        ),
        Ok(_) => {}
        Err(error) => eprintln!("note: the limit of open files cannot be raised: {error}"),
    }
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
