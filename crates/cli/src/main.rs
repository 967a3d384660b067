//! The binary `plimsoll`: one file per command, and nothing that decides.

mod adapt;
mod agent;
mod arguments;
mod bounds;
mod check;
mod demo;
mod explain;
mod failure;
mod help;
mod impact;
mod journal;
mod plan;
mod profile;
mod promised;
mod reload;
mod resolve;
mod run;
mod signals;
mod simulate;
mod source;
mod text;
mod trends;
mod worker_counts;

use arguments::Command;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    match arguments::parse(std::env::args_os().skip(1)).and_then(execute) {
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
