//! `plimsoll agent FILE`: beside an unmodified nginx or Apache (CA 4).
//!
//! ```text
//! probe.rs (thread) --------> machine: plimsoll_core::agent ------> chooser/: link, nginx, apache
//! counters/: log, status ----> (four times a period)   \---------> journal.rs
//! ```
//!
//! Nothing here decides. Whatever ends the agent, a signal or a panic, the full tree is restored on the way out, by
//! dropping [`Restored`]; only a kill that cannot be caught leaves it as it is, and then `--restore` does it.

mod chooser;
mod counters;
mod journal;
mod probe;

use crate::args::AgentArguments;
use crate::output::failure::Failure;
use crate::output::text;
use crate::service::page::PageClient;
use crate::service::signals::{Asked, Signals};
use chooser::Chooser;
use counters::Source;
use plimsoll_config::{Agent, OnExit, parse_agent};
use plimsoll_core::agent::{Change, Counters, LoadSense, Machine, SAMPLES, Sample, Threshold};
use plimsoll_core::time::Instant as CoreInstant;
use probe::Probes;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// A probe is given up after this.
const PROBE_PATIENCE: Duration = Duration::from_secs(10);
/// Counters that cannot be read for so long are worth a line.
const BLIND: Duration = Duration::from_secs(5);

/// Runs it.
pub(crate) fn agent(arguments: &AgentArguments) -> Result<(), Failure> {
    let signals = Signals::block()?;
    let agent = read(arguments)?;
    let mut chooser = chooser::chooser(&agent);
    if arguments.restore {
        return restore(chooser.as_mut());
    }
    let (probes, source) = check(&agent, chooser.as_ref(), arguments)?;
    if arguments.check {
        return text::print(format_args!(
            "{} is right, and all that it names is as it should be.",
            arguments.file.display()
        ));
    }
    let applied = chooser.present().ok().flatten().unwrap_or(1.0);
    eprintln!(
        "agent beside {}: {} at the start, load line {:.2}{}",
        agent.probe.host,
        journal::clients(applied),
        agent.settings.load_line,
        if arguments.dry_run { "; a dry run, nothing is changed" } else { "" }
    );
    let keep = arguments.dry_run || agent.on_exit == OnExit::Keep;
    let chooser = Restored { chooser, applied, keep, unsure: false };
    Run::new(&agent, arguments, chooser, (probes, source)).until_stopped(signals)
}

fn read(arguments: &AgentArguments) -> Result<Agent, Failure> {
    let name = arguments.file.display().to_string();
    let source = std::fs::read_to_string(&arguments.file).map_err(|error| {
        Failure::Input(format!(
            "cannot read {name}: {error}\nName an agent's file; examples/agent.toml is one to begin with."
        ))
    })?;
    parse_agent(&source, &name).map_err(|all| Failure::Input(all.to_string()))
}

/// Full quality for everybody, whatever stands there now, unless it is not ours.
fn restore(chooser: &mut dyn Chooser) -> Result<(), Failure> {
    chooser.present().map_err(|why| Failure::Input(format!("error: {why}")))?;
    match chooser.set(1.0) {
        Ok(_) => text::print("full quality for everybody"),
        Err(error) => Err(Failure::Failed(format!("error: {error}"))),
    }
}

/// Looks at everything before anything begins.
///
/// # Errors
/// All that is wrong, each with what to do.
fn check(
    agent: &Agent,
    chooser: &dyn Chooser,
    arguments: &AgentArguments,
) -> Result<(Probes, Source), Failure> {
    let acts = !arguments.dry_run;
    let mut wrong = chooser.check(acts);
    wrong.extend(chooser.present().err());
    let probes = first_probe(agent).map_err(|why| wrong.push(why)).ok();
    let source = Source::open(agent).map_err(|why| wrong.push(why)).ok();
    match (probes, source) {
        (Some(probes), Some(source)) if wrong.is_empty() => Ok((probes, source)),
        _ => {
            let name = arguments.file.display();
            let all: Vec<String> = wrong.iter().map(|what| format!("error: {name}: {what}")).collect();
            Err(Failure::Input(all.join("\n")))
        }
    }
}

/// Asks once; if the answer is good, asks on.
fn first_probe(agent: &Agent) -> Result<Probes, String> {
    let place = &agent.probe;
    let client = PageClient::new(place, PROBE_PATIENCE)
        .map_err(|error| format!("{}: cannot be looked up: {error}", agent.probe.address))?;
    let started = Instant::now();
    let page = client.get().map_err(|error| {
        format!("the probe {place} fails: {error}; start the server, or name another page")
    })?;
    let took = started.elapsed();
    match page.status {
        200..400 => {}
        status => {
            return Err(format!("the probe {place} is answered with {status}; name a page that exists"));
        }
    }
    if let Threshold::Promised(promised) = agent.settings.threshold
        && took > promised / 2
    {
        eprintln!(
            "note: the probe takes {} by itself, of {} that were promised; name a cheaper page",
            journal::time(took),
            journal::time(promised)
        );
    }
    Probes::start(client, agent.settings.every).map_err(|error| format!("cannot start a thread: {error}"))
}

/// A chooser that is put back when it goes, unless told otherwise.
struct Restored {
    chooser: Box<dyn Chooser>,
    /// F as the server has it.
    applied: f64,
    keep: bool,
    /// A change was begun and did not come back: what the server has now is not known.
    unsure: bool,
}

impl Restored {
    fn set(&mut self, fraction: f64) -> std::io::Result<()> {
        self.unsure = true;
        let applied = self.chooser.set(fraction);
        self.unsure = false;
        self.applied = applied?;
        Ok(())
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        if self.keep || (self.applied >= 1.0 && !self.unsure) {
            return;
        }
        match self.chooser.set(1.0) {
            Ok(_) => eprintln!("restored: full quality for everybody"),
            Err(error) => eprintln!("error: full quality could not be restored: {error}"),
        }
    }
}

/// The agent at work.
struct Run {
    machine: Machine,
    chooser: Restored,
    probes: Probes,
    /// Probes that had ended at the last look.
    probed: u64,
    source: Source,
    sense: LoadSense,
    tick: Duration,
    dry: bool,
    json: bool,
    started: Instant,
    /// What could not be made yet.
    pending: Option<Change>,
    changes: u64,
    /// When the counters were last read, and whether it was said that they cannot be.
    seen: Instant,
    blind: bool,
}

impl Run {
    fn new(
        agent: &Agent,
        arguments: &AgentArguments,
        chooser: Restored,
        (probes, source): (Probes, Source),
    ) -> Run {
        let now = Instant::now();
        Run {
            machine: Machine::new(agent.settings.clone(), chooser.applied),
            chooser,
            probes,
            probed: 0,
            source,
            sense: agent.sense,
            tick: agent.settings.period / SAMPLES,
            dry: arguments.dry_run,
            json: arguments.json,
            started: now,
            pending: None,
            changes: 0,
            seen: now,
            blind: false,
        }
    }

    fn until_stopped(self, signals: Signals) -> Result<(), Failure> {
        let (told, asked) = mpsc::channel();
        // Nobody listens any more only if the process ends anyway.
        let wait = move || while told.send(signals.wait()).is_ok() {};
        let thread = thread::Builder::new().name("signals".to_owned()).spawn(wait);
        thread.map_err(|error| Failure::Failed(format!("cannot wait for signals: {error}")))?;
        self.until(&asked)
    }

    /// Works until it is asked to stop, or cannot go on.
    fn until(mut self, asked: &mpsc::Receiver<Asked>) -> Result<(), Failure> {
        let mut due = Instant::now() + self.tick;
        for number in 1_u64.. {
            while let Some(left) = due.checked_duration_since(Instant::now()) {
                match asked.recv_timeout(left) {
                    Ok(Asked::Reload) => {
                        eprintln!("note: to read the file again, stop the agent and start it")
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => break,
                    Ok(Asked::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
            self.look();
            // Without probes the last question would seem open for ever, and the server overloaded.
            if self.probes.have_ended() {
                return Err(Failure::Failed("error: the thread that sends probes has failed".to_owned()));
            }
            if self.json && number.is_multiple_of(SAMPLES.into()) {
                let seconds = self.started.elapsed().as_secs_f64();
                let figures = self.machine.figures();
                text::print(journal::json(seconds, &figures, self.chooser.applied, self.changes))?;
            }
            // After a standstill of this machine it goes on from now.
            due = (due + self.tick).max(Instant::now());
        }
        Ok(())
    }

    /// One sample, and what comes of it.
    fn look(&mut self) {
        let now = Instant::now();
        let mut load = self.source.look(now);
        self.tell_blind(now, load.is_some());
        if let Some(complaint) = self.source.complaint() {
            eprintln!("note: {complaint}");
        }
        let probe = self.probes.look();
        // Probes are requests too, but cost next to nothing: with them a calm server would seem cheap.
        let own = probe.ended - std::mem::replace(&mut self.probed, probe.ended);
        if let Some((counters, _)) = &mut load {
            counters.requests = counters.requests.saturating_sub(own);
        }
        let sample = Sample {
            seconds: load.as_ref().map_or(0.0, |load| load.1),
            load: load.as_ref().and_then(|(counters, seconds)| self.utilization(counters, *seconds)),
            waiting: load.as_ref().map(|(counters, _)| self.sense.waiting(counters)),
            probe,
            applied: self.chooser.applied,
        };
        let at = CoreInstant::from_secs_f64(now.duration_since(self.started).as_secs_f64());
        if let Some(change) = self.machine.sample(at, &sample).or(self.pending) {
            self.apply(change);
        }
    }

    /// What the counters make of the server.
    fn utilization(&self, counters: &Counters, seconds: f64) -> Option<(u64, f64)> {
        Some((counters.requests, self.sense.utilization(counters, seconds)?))
    }

    fn apply(&mut self, change: Change) {
        let figures = self.machine.figures();
        if self.dry {
            return eprintln!("{}", journal::change(&change, &figures, false));
        }
        match self.chooser.set(change.fraction) {
            Ok(()) => {
                self.pending = None;
                self.changes += 1;
                eprintln!("{}", journal::change(&change, &figures, true));
            }
            Err(error) => {
                // Said once, tried again at each look.
                if self.pending.replace(change).is_none() {
                    let wanted = journal::clients(change.fraction);
                    eprintln!("error: not done, and tried again: {wanted}: {error}");
                }
            }
        }
    }

    fn tell_blind(&mut self, now: Instant, seen: bool) {
        if seen {
            self.seen = now;
            if std::mem::take(&mut self.blind) {
                eprintln!("the server's counters can be read again");
            }
        } else if !self.blind && now.duration_since(self.seen) > BLIND {
            self.blind = true;
            eprintln!(
                "warning: the server's counters cannot be read: nothing goes back to full quality meanwhile"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;

    /// Keeps what it was told; panics while it degrades everybody, after it was done, if it is `fragile`.
    struct Told {
        all: Rc<RefCell<Vec<f64>>>,
        fragile: bool,
    }

    impl Chooser for Told {
        fn present(&self) -> Result<Option<f64>, String> {
            Ok(self.all.borrow().last().copied())
        }
        fn check(&self, _: bool) -> Vec<String> {
            Vec::new()
        }
        fn set(&mut self, fraction: f64) -> std::io::Result<f64> {
            self.all.borrow_mut().push(fraction);
            assert!(!self.fragile || fraction > 0.0, "on purpose");
            Ok(fraction)
        }
    }

    /// An agent with a link, whose probes are `probes`; and what its chooser was told.
    fn run(name: &str, probes: Probes, fragile: bool) -> (Run, Rc<RefCell<Vec<f64>>>) {
        let log = std::env::temp_dir().join(format!("plimsoll-agent-{name}-{}", std::process::id()));
        std::fs::write(&log, "").unwrap();
        let text = format!(
            "[server]\nprobe = \"http://127.0.0.1/\"\ncosts = {{ request = \"1ms\" }}\n[load]\nlog = \"{}\"\n\
             [trees]\nfull = \"full\"\ndegraded = \"light\"\n[link]\npath = \"www\"\n",
            log.display()
        );
        let agent = parse_agent(&text, "test").unwrap();
        let source = Source::open(&agent).unwrap();
        std::fs::remove_file(log).unwrap();
        let told = Rc::new(RefCell::new(vec![1.0]));
        let chooser = Box::new(Told { all: told.clone(), fragile });
        let chooser = Restored { chooser, applied: 1.0, keep: false, unsure: false };
        let arguments = AgentArguments::default();
        (Run::new(&agent, &arguments, chooser, (probes, source)), told)
    }

    fn degrade(run: &mut Run) {
        let why = plimsoll_core::agent::Why::Overload { response: None, threshold: Duration::ZERO };
        run.apply(Change { fraction: 0.0, why });
    }

    #[test]
    fn a_panic_on_the_way_restores_full_quality() {
        let (mut agent, told) = run(
            "panic",
            Probes::of(|| {
                loop {
                    thread::park()
                }
            }),
            false,
        );
        degrade(&mut agent);
        assert_eq!(*told.borrow(), [1.0, 0.0]);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _agent = agent;
            panic!("on purpose");
        }));
        assert!(panicked.is_err() && *told.borrow() == [1.0, 0.0, 1.0], "{told:?}");
    }

    #[test]
    fn a_panic_within_a_change_restores_it_too() {
        let (mut agent, told) = run(
            "change",
            Probes::of(|| {
                loop {
                    thread::park()
                }
            }),
            true,
        );
        let panicked = catch_unwind(AssertUnwindSafe(move || degrade(&mut agent)));
        assert!(panicked.is_err() && *told.borrow() == [1.0, 0.0, 1.0], "{told:?}");
    }

    #[test]
    fn if_the_probes_panic_the_agent_ends_and_restores() {
        let (mut agent, told) = run("probes", Probes::of(|| panic!("on purpose")), false);
        degrade(&mut agent);
        let (_signals, asked) = mpsc::channel();
        let ended = agent.until(&asked);
        assert!(ended.is_err_and(|why| why.text().contains("probes has failed")));
        assert_eq!(*told.borrow(), [1.0, 0.0, 1.0]);
    }
}
