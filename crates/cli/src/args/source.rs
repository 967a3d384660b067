//! Reads the files that the command line names: a configuration, or everything that is wrong with it.

use crate::output::failure::Failure;
use crate::output::plan;
use plimsoll_config::{Agent, Configuration, Diagnostics, is_agent, is_configuration, parse_agent};
use plimsoll_core::Engine;
use plimsoll_core::processes::SharedShape;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::string::FromUtf8Error;

/// The largest file that is written by hand (bytes): tens of thousands of sites.
const LARGEST: u64 = 8 << 20;

/// Reads a file with `parse`, which takes the file's text, and its name for diagnostics. `what` names the format, and `example`
/// is an example file of it.
pub(crate) fn read_as<T>(
    path: &Path,
    format: (&str, &str),
    parse: impl FnOnce(&str, &str) -> Result<T, Diagnostics>,
) -> Result<T, Failure> {
    let text = text_of(path, format)?;
    parse(&text, &path.display().to_string()).map_err(|all| Failure::Input(all.to_string()))
}

/// The text of a file. The file is read once, because a pipe can be read only once.
fn text_of(path: &Path, (what, example): (&str, &str)) -> Result<String, Failure> {
    let name = path.display().to_string();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        let instead = format!("Name {what}; {example} is one to begin with.");
        Failure::not_read(format_args!("{name}: {error}"), &error, &instead)
    })?;
    if bytes.len() as u64 > LARGEST {
        return Err(Failure::Input(format!(
            "error: {name} is larger than {} MiB, which {what} may have\nName {what}; {example} is one to begin with.",
            LARGEST >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(&name, &error))
}

fn not_utf8(name: &str, error: &FromUtf8Error) -> Failure {
    let (before, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let byte = rest.first().copied().unwrap_or_default();
    Failure::Input(format!(
        "error: {name}: line {line} has a byte (0x{byte:02x}) that is no UTF-8\nSave the file as UTF-8; ISO 8859-1, say, becomes so by \
         `iconv -f ISO-8859-1 -t UTF-8`."
    ))
}

/// Reads a configuration.
pub(crate) fn read(path: &Path) -> Result<Configuration, Failure> {
    let (text, name) =
        (text_of(path, ("a configuration", "examples/one-site.toml"))?, path.display().to_string());
    understand(&text, &name).map_err(|wrong| not_an_agents(&text, &name, wrong))
}

/// Reads a configuration for `control`, and returns its text too.
pub(crate) fn read_inside(path: &Path) -> Result<(String, Configuration), Failure> {
    let (text, name) =
        (text_of(path, ("a configuration", "examples/module.toml"))?, path.display().to_string());
    match understand_inside(&text, &name) {
        Ok(configuration) => Ok((text, configuration)),
        Err(wrong) => Err(not_an_agents(&text, &name, wrong)),
    }
}

/// The failure of reading a configuration; if the file is an agent's, the failure says so instead.
fn not_an_agents(text: &str, name: &str, wrong: Failure) -> Failure {
    if !is_agent(text) {
        return wrong;
    }
    Failure::Input(format!(
        "error: {name} is a file for `plimsoll agent`, and no configuration of the gateway\nStart it by `plimsoll agent {name}`; \
         `plimsoll simulate {name}` shows what it would do."
    ))
}

/// Reads an agent's file.
pub(crate) fn read_agent(path: &Path) -> Result<Agent, Failure> {
    let (text, name) =
        (text_of(path, ("an agent's file", "examples/agent.toml"))?, path.display().to_string());
    parse_agent(&text, &name).map_err(|all| {
        Failure::Input(match is_configuration(&text) {
            true => format!(
                "error: {name} is a configuration of the gateway, and no file for `plimsoll agent`\nServe with it by \
                 `plimsoll run {name}`; examples/agent.toml is an agent's file to begin with."
            ),
            false => all.to_string(),
        })
    })
}

/// Parses the text of a configuration; `name` is the file's name in diagnostics.
pub(crate) fn understand(source: &str, name: &str) -> Result<Configuration, Failure> {
    let parsed = plimsoll_config::parse(source, name);
    possible(parsed.map_err(|all| Failure::Input(all.to_string()))?, name)
}

/// Parses the text of a configuration for `control`.
fn understand_inside(source: &str, name: &str) -> Result<Configuration, Failure> {
    let parsed = plimsoll_config::parse_inside(source, name);
    let configuration = possible(parsed.map_err(|all| Failure::Input(all.to_string()))?, name)?;
    SharedShape::of(&configuration.promises).map(|_| configuration).map_err(|wrong| refused(&wrong, name))
}

/// The failure of reading a log or counts: the error names the file itself.
pub(crate) fn unreadable(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidData => Failure::Input(error.to_string()),
        io::ErrorKind::UnexpectedEof => {
            let instead = "It ends in the middle, as a copy does that was cut off: copy it again, or read what `zcat` makes of it.";
            Failure::not_read(error, error, instead)
        }
        io::ErrorKind::NotFound => Failure::not_read(error, error, "Name a file that is there."),
        _ => Failure::not_read(error, error, "See whether the file is whole and can be read."),
    }
}

/// Refuses promises that cannot be kept, and shows the plan. The engine decides in the end what is valid.
fn possible(configuration: Configuration, name: &str) -> Result<Configuration, Failure> {
    match Engine::new(&configuration.promises, 1, 0) {
        Ok(_) => plan::keep(&configuration.promises, name).map(|()| configuration),
        Err(wrong) => Err(refused(&wrong, name)),
    }
}

fn refused(wrong: &[String], name: &str) -> Failure {
    Failure::Input(format!("{name}: {}", wrong.join(&format!("\n{name}: "))))
}
