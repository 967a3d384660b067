//! What-if beside a running gateway: simulates in another process of this program, at the lowest priority.
//!
//! `plimsoll simulate --background` takes only the idle time of one core, and bounded memory; so whatever the log and the
//! configuration hold, the gateway is not disturbed. Its stderr says how far it is, and why it failed.

use crate::service::background::PROGRESS;
use crate::service::state;
use crate::service::sync::lock;
use plimsoll_gateway::Reloader;
use plimsoll_gateway::admin::{WhatIf, WhatIfDocument, WhatIfInput, WhatIfQuestion, WhatIfState};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use tempfile::{NamedTempFile, TempDir};

/// The longest error message of a simulation that is kept (bytes).
const MOST_SAID: usize = 16 << 10;

#[derive(Clone)]
pub(crate) struct WhatIfDesk {
    /// The gateway's own configuration file.
    own: PathBuf,
    gateway: Reloader,
    simulation: Arc<Mutex<Simulation>>,
}

#[derive(Debug, Default)]
struct Simulation {
    /// The folder with the files that were sent, and with the report; `None` before any were sent.
    folder: Option<TempDir>,
    child: Option<Child>,
    shown: WhatIfDocument,
}

impl WhatIfDesk {
    pub(crate) fn new(own: PathBuf, gateway: Reloader) -> Self {
        WhatIfDesk { own, gateway, simulation: Arc::default() }
    }

    fn spawn(&self, folder: &Path, question: &WhatIfQuestion) -> io::Result<Child> {
        let sent = folder.join(file_name(WhatIfInput::Configuration));
        let configuration = if sent.is_file() { &sent } else { &self.own };
        let learned = folder.join(LEARNED);
        state::write_learned(&learned, self.gateway.learned(), None)?;
        // The path of this program may lead to another version by now, so the running program is started.
        Command::new("/proc/self/exe")
            .arg("simulate")
            .arg(configuration)
            .arg("--log")
            .arg(folder.join(file_name(WhatIfInput::Log)))
            .args(["--background", "--scale", &question.scale.to_string()])
            .args(question.capacity.map(|capacity| format!("--capacity={capacity}/s")))
            .args(question.host.as_ref().map(|host| format!("--host={host}")))
            .arg("--report")
            .arg(folder.join(REPORT))
            .arg("--learned")
            .arg(learned)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
    }

    /// Reads the simulation's stderr until it ends.
    fn follow(&self, process: u32, said: ChildStderr) {
        let (mut said, mut message) = (BufReader::new(said), String::new());
        loop {
            let mut line = Vec::new();
            // A line that is longer than the limit is read in parts.
            if said.by_ref().take(MOST_SAID as u64).read_until(b'\n', &mut line).unwrap_or(0) == 0 {
                break;
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end_matches('\n');
            match line.strip_prefix(PROGRESS).and_then(|rest| rest.trim_start().split_once(' ')) {
                Some((done, text)) => {
                    let mut simulation = lock(&self.simulation);
                    simulation.shown.done = done.parse().ok();
                    text.clone_into(&mut simulation.shown.message);
                }
                None if message.len() < MOST_SAID => message = message + line + "\n",
                None => {}
            }
        }
        self.ended(process, message);
    }

    fn ended(&self, process: u32, mut message: String) {
        let mut simulation = lock(&self.simulation);
        // If this simulation was stopped, the child is another one, or there is none.
        let Some(mut child) = simulation.child.take_if(|child| child.id() == process) else { return };
        let ended = child.wait();
        let state = match &ended {
            Ok(status) if status.success() => WhatIfState::Done,
            Ok(status) => {
                if message.trim().is_empty() {
                    message = format!("the simulation ended: {status}");
                }
                WhatIfState::Failed
            }
            Err(error) => {
                message = error.to_string();
                WhatIfState::Failed
            }
        };
        simulation.shown = WhatIfDocument { state, done: None, message: message.trim_end().to_owned() };
    }
}

const REPORT: &str = "report.html";
/// The file with what the gateway has learned, such as the number of its servers' workers.
const LEARNED: &str = "learned.state";

fn file_name(input: WhatIfInput) -> &'static str {
    match input {
        WhatIfInput::Log => "access.log",
        WhatIfInput::Configuration => "configuration.toml",
    }
}

impl Simulation {
    fn folder(&mut self) -> io::Result<&Path> {
        if self.folder.is_none() {
            self.folder = Some(tempfile::Builder::new().prefix("plimsoll-what-if-").tempdir()?);
        }
        self.folder.as_ref().map(TempDir::path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn end(&mut self) {
        if let Some(mut child) = self.child.take() {
            // A process that has ended cannot be killed, but is still to be waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// When a gateway ends, its simulation is ended too.
impl Drop for Simulation {
    fn drop(&mut self) {
        self.end();
    }
}

impl WhatIf for WhatIfDesk {
    fn receive(&self) -> io::Result<NamedTempFile> {
        NamedTempFile::new_in(lock(&self.simulation).folder()?)
    }

    fn received(&self, input: WhatIfInput, file: NamedTempFile) -> io::Result<()> {
        let path = lock(&self.simulation).folder()?.join(file_name(input));
        file.persist(path).map(drop).map_err(|error| error.error)
    }

    fn start(&self, question: WhatIfQuestion) -> Result<(), String> {
        let mut simulation = lock(&self.simulation);
        if simulation.child.is_some() {
            return Err("A simulation runs already: stop it, or wait for its end.".to_owned());
        }
        let folder = simulation.folder().map_err(|error| error.to_string())?.to_owned();
        if !folder.join(file_name(WhatIfInput::Log)).is_file() {
            return Err("There is no access log: send one by PUT /what-if/log.".to_owned());
        }
        let mut child =
            self.spawn(&folder, &question).map_err(|error| format!("It cannot be started: {error}."))?;
        let (process, said) = (child.id(), child.stderr.take());
        simulation.child = Some(child);
        simulation.shown =
            WhatIfDocument { state: WhatIfState::Running, done: None, message: "reading".to_owned() };
        let (desk, said) = (self.clone(), said.ok_or("It says nothing.")?);
        let thread =
            thread::Builder::new().name("what-if".to_owned()).spawn(move || desk.follow(process, said));
        thread.map(drop).map_err(|error| {
            simulation.end();
            simulation.shown = WhatIfDocument::default();
            format!("It cannot be followed: {error}.")
        })
    }

    fn state(&self) -> WhatIfDocument {
        lock(&self.simulation).shown.clone()
    }

    fn report(&self) -> Option<String> {
        let simulation = lock(&self.simulation);
        if simulation.shown.state != WhatIfState::Done {
            return None;
        }
        fs::read_to_string(simulation.folder.as_ref()?.path().join(REPORT)).ok()
    }

    fn stop(&self) {
        let mut simulation = lock(&self.simulation);
        simulation.end();
        simulation.folder = None;
        simulation.shown = WhatIfDocument::default();
    }
}
