//! The binary `plimsoll`: one file per command, and nothing that decides.

mod args;
mod commands;
mod output;
mod service;

use args::Command;
use commands::{adapt, agent, check, demo, explain, impact, profile, run, simulate};
use output::{failure::Failure, text};
use std::process::ExitCode;

fn main() -> ExitCode {
    match args::parse(std::env::args_os().skip(1)).and_then(execute) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Print(page) => text::print(page),
        Command::Run(arguments) => run::run(&arguments),
        Command::Check(arguments) => check::check(&arguments),
        Command::Demo(arguments) => demo::demo(&arguments),
        Command::Simulate(arguments) => simulate::simulate(&arguments),
        Command::Explain(arguments) => explain::explain(&arguments),
        Command::Adapt(arguments) => adapt::adapt(&arguments),
        Command::Impact(arguments) => impact::impact(&arguments),
        Command::Agent(arguments) => agent::agent(&arguments),
        Command::Profile(arguments) => profile::profile(&arguments),
    }
}
