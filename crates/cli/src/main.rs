//! The binary `plimsoll`: one file per command; no decision about requests is made here.

mod args;
mod commands;
mod output;
mod service;

use args::Command;
#[cfg(feature = "adapt")]
use commands::{adapt, impact};
use commands::{agent, check, control, demo, explain, profile, reference, run, simulate, top};
use output::failure::Failure;
use service::log;
use std::process::ExitCode;

fn main() -> ExitCode {
    let _written = log::AtEnd;
    match args::parse(std::env::args_os().skip(1)) {
        Ok(command) => execute(command).map_or_else(Failure::report, |()| ExitCode::SUCCESS),
        Err(page) => {
            // A reader that has left (`plimsoll --help | head -1`) is no failure.
            let _ = page.print();
            ExitCode::from(u8::try_from(page.exit_code()).unwrap_or(2))
        }
    }
}

fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Top(arguments) => top::top(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Simulate(arguments) => simulate::simulate(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Profile(arguments) => profile::profile(&arguments),
        #[cfg(feature = "adapt")]
        Command::Adapt(arguments) => adapt::adapt(&arguments),
        #[cfg(feature = "adapt")]
        Command::Impact(arguments) => impact::impact(&arguments),
        #[cfg(not(feature = "adapt"))]
        Command::LeftOut { .. } => Err(Failure::Input(args::LEFT_OUT.to_owned())),
        Command::Agent(arguments) => agent::agent(&arguments),
        Command::Control(arguments) => control::control(&arguments),
        Command::Demo(arguments) => demo::demo(&arguments),
        Command::Schema { of } => reference::schema(of),
        Command::Completions { shell } => reference::completions(shell),
        Command::Manual { folder } => reference::manual(&folder),
    }
}
