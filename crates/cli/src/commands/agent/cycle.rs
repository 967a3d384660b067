//! The agent's cycle: samples of the server, changes of the tree, and full quality at the end.

use super::chooser::Chooser;
use super::counters::CounterSource;
use super::counters::processor::ProcessorSense;
use super::messages::{self, ServerTotals};
use super::probe::Probes;
use crate::args::AgentArguments;
use crate::output::failure::Failure;
use crate::service::signals::{Requested, Signals};
use plimsoll_config::Agent;
use plimsoll_core::agent::{AgentLoop, AgentPolicy, Change, Counters, LoadSense, SAMPLES, Sample};
use plimsoll_core::time::Instant as CoreInstant;
use plimsoll_gateway::access_log::LossyWriter;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How many lines of figures may wait for their reader.
const FIGURES: usize = 4096;
/// If the counters cannot be read for this long, a line is logged.
const UNREAD: Duration = Duration::from_secs(5);

/// A chooser that gives full quality to all clients when it is dropped, unless the agent's file wants otherwise.
pub(super) struct Restored {
    chooser: Box<dyn Chooser>,
    /// The fraction of clients at full quality, as the server has it.
    applied: f64,
    /// Whether the server is left as it is at the end.
    keep: bool,
    /// Whether a change began and panicked, so that the server's state is not known.
    unsure: bool,
}

impl Restored {
    pub(super) fn new(chooser: Box<dyn Chooser>, applied: f64, keep: bool) -> Restored {
        Restored { chooser, applied, keep, unsure: false }
    }

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
        match self.chooser.restore() {
            Ok(done) => tracing::info!("restored: {done}"),
            Err(error) => tracing::error!("full quality could not be restored: {error}"),
        }
    }
}

/// A running agent: it samples the server a few times a period, and makes the changes that its loop decides on.
pub(super) struct AgentRun {
    agent_loop: AgentLoop,
    chooser: Restored,
    probes: Probes,
    /// The number of probes that had ended at the last sample.
    probed: u64,
    source: CounterSource,
    processor: Option<ProcessorSense>,
    sense: LoadSense,
    is_relay: bool,
    back_line: f64,
    tick: Duration,
    dry: bool,
    started: Instant,
    /// A change that could not be made yet.
    pending: Option<Change>,
    changes: u64,
    /// What the counters showed, for `--json`.
    totals: ServerTotals,
    /// When the counters were last read.
    seen: Instant,
    /// Whether a warning said that the counters cannot be read.
    unread: bool,
    /// Whether a warning said that the counters do not show the load.
    blind: bool,
    /// The figures of each period, on stdout. The field is last, so that full quality is restored before the writer waits for a
    /// reader.
    figures: Option<LossyWriter>,
}

impl AgentRun {
    pub(super) fn new(
        agent: &Agent,
        arguments: &AgentArguments,
        chooser: Restored,
        (probes, source): (Probes, CounterSource),
    ) -> AgentRun {
        let now = Instant::now();
        AgentRun {
            agent_loop: AgentLoop::new(agent.settings.clone(), chooser.applied),
            chooser,
            probes,
            probed: 0,
            source,
            processor: ProcessorSense::of(agent),
            sense: agent.sense,
            is_relay: agent.settings.policy == AgentPolicy::Relay,
            back_line: agent.settings.back_line,
            tick: agent.settings.period / SAMPLES,
            dry: arguments.dry_run,
            started: now,
            pending: None,
            changes: 0,
            totals: ServerTotals::default(),
            seen: now,
            unread: false,
            blind: false,
            figures: arguments.json.then(|| LossyWriter::new(std::io::stdout(), FIGURES)),
        }
    }

    /// Works until a signal requests the end, or until it cannot go on.
    pub(super) fn until_stopped(self, signals: Signals) -> Result<(), Failure> {
        self.until(&signals.receive()?)
    }

    fn until(mut self, receiver: &mpsc::Receiver<Requested>) -> Result<(), Failure> {
        let mut due = Instant::now() + self.tick;
        for number in 1_u64.. {
            while let Some(left) = due.checked_duration_since(Instant::now()) {
                match receiver.recv_timeout(left) {
                    Ok(Requested::Reload) => {
                        tracing::warn!("to read the file again, stop the agent and start it")
                    }
                    Err(mpsc::RecvTimeoutError::Timeout) => break,
                    Ok(Requested::ReopenLogs | Requested::Upgrade) => {}
                    Ok(Requested::Stop) | Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(()),
                }
            }
            self.sample();
            // Without the thread, the last probe would seem to wait for ever and the server to be overloaded.
            if self.probes.have_ended() {
                return Err(Failure::Failed("error: the thread that sends probes has failed".to_owned()));
            }
            if let Some(out) = self.figures.as_ref().filter(|_| number.is_multiple_of(SAMPLES.into())) {
                let seconds = self.started.elapsed().as_secs_f64();
                let figures = self.agent_loop.figures();
                let own = (self.chooser.applied, self.changes);
                let line = messages::json(seconds, &figures, own, &mut self.totals);
                out.write(format!("{line}\n").as_bytes());
            }
            // If this machine stood still, the samples that were missed are not made up for.
            due = (due + self.tick).max(Instant::now());
        }
        Ok(())
    }

    /// Takes one sample, and makes the change that the loop decides on.
    fn sample(&mut self) {
        let now = Instant::now();
        let mut load = self.source.look(now);
        self.report_unread(now, load.is_some());
        self.totals.dropped = self.source.dropped();
        if let Some(complaint) = self.source.complaint() {
            tracing::warn!("{complaint}");
        }
        let probe = self.probes.look();
        // Probes are counted as requests but cost next to nothing; if they were counted, an idle server's requests would seem
        // cheap.
        let own = probe.ended - std::mem::replace(&mut self.probed, probe.ended);
        let processor = self.processor.as_mut().and_then(|processor| processor.look(now));
        if let Some((counters, _)) = &mut load {
            self.totals.add(counters);
            counters.requests = counters.requests.saturating_sub(own);
            // Packets show how long workers were busy, and the processor time shows other work; the higher utilization counts.
            let both = processor.into_iter().chain(counters.processor);
            counters.processor = both.max_by(|one, other| one.utilization().total_cmp(&other.utilization()));
        }
        let sample = Sample {
            seconds: load.as_ref().map_or(0.0, |load| load.1),
            load: load.as_ref().and_then(|(counters, seconds)| self.utilization(counters, *seconds)),
            least: load.map_or(0.0, |(counters, seconds)| self.sense.least_utilization(&counters, seconds)),
            waiting: load.as_ref().map(|(counters, _)| self.sense.waiting(counters)),
            probe,
            applied: self.chooser.applied,
        };
        let at = CoreInstant::from_secs_f64(now.duration_since(self.started).as_secs_f64());
        let change = self.agent_loop.sample(at, &sample);
        self.report_blindness();
        let again = self.pending.filter(|change| self.is_still_wanted(*change));
        if let Some(change) = change.or(again) {
            self.apply(change);
        }
    }

    /// Whether a change that failed is to be tried again. The law of the fraction needs no retry, because it reads the applied
    /// fraction and decides anew; the relay assumes that its change was made.
    fn is_still_wanted(&self, change: Change) -> bool {
        let figures = self.agent_loop.figures();
        let fits = || figures.at_full.is_some_and(|at_full| at_full <= self.back_line);
        self.is_relay
            && if change.fraction < 1.0 { figures.overloaded } else { !figures.overloaded && fits() }
    }

    /// The number of requests and the utilization, if the counters show it.
    fn utilization(&self, counters: &Counters, seconds: f64) -> Option<(u64, f64)> {
        Some((counters.requests, self.sense.utilization(counters, seconds)?))
    }

    fn apply(&mut self, change: Change) {
        let figures = self.agent_loop.figures();
        if self.dry {
            return tracing::info!("{}", messages::change(&change, &figures, false));
        }
        match self.chooser.set(change.fraction) {
            Ok(()) => {
                self.pending = None;
                self.changes += 1;
                tracing::info!("{}", messages::change(&change, &figures, true));
            }
            Err(error) => {
                // The error is printed once; each sample tries again while the reason lasts.
                if self.pending.replace(change).is_none() {
                    let wanted = messages::clients(change.fraction);
                    tracing::error!("not done, and tried again: {wanted}: {error}");
                }
            }
        }
    }

    /// Logs once that requests come but no sense shows their load, and once that the load is seen again.
    fn report_blindness(&mut self) {
        let figures = self.agent_loop.figures();
        if figures.blind != std::mem::replace(&mut self.blind, figures.blind) {
            match figures.blind {
                true => tracing::warn!("{}", messages::blind(figures.request_rate)),
                false => tracing::info!("the load is seen again"),
            }
        }
    }

    fn report_unread(&mut self, now: Instant, seen: bool) {
        if seen {
            self.seen = now;
            if std::mem::take(&mut self.unread) {
                tracing::info!("the server's counters can be read again");
            }
        } else if !self.unread && now.duration_since(self.seen) > UNREAD {
            self.unread = true;
            tracing::warn!(
                "the server's counters cannot be read: nothing goes back to full quality meanwhile"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_config::parse_agent;
    use std::cell::{Cell, RefCell};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::rc::Rc;
    use std::thread;

    /// Records the fractions that are set. A `fragile` chooser panics after it degraded all clients.
    struct RecordingChooser {
        all: Rc<RefCell<Vec<f64>>>,
        fragile: bool,
        broken: Rc<Cell<bool>>,
    }

    impl Chooser for RecordingChooser {
        fn present(&self) -> Result<Option<f64>, String> {
            Ok(self.all.borrow().last().copied())
        }
        fn check(&self, _: bool) -> Vec<String> {
            Vec::new()
        }
        fn set(&mut self, fraction: f64) -> std::io::Result<f64> {
            if self.broken.get() {
                return Err(std::io::Error::other("on purpose"));
            }
            self.all.borrow_mut().push(fraction);
            assert!(!self.fragile || fraction > 0.0, "on purpose");
            Ok(fraction)
        }
    }

    /// An agent with these probes, and the fractions that its chooser was set to.
    fn run(probes: Probes, fragile: bool) -> (AgentRun, Rc<RefCell<Vec<f64>>>) {
        run_with(probes, fragile, Rc::default())
    }

    fn run_with(probes: Probes, fragile: bool, broken: Rc<Cell<bool>>) -> (AgentRun, Rc<RefCell<Vec<f64>>>) {
        let log = tempfile::NamedTempFile::new().unwrap();
        let text = format!(
            "[server]\nprobe = \"http://127.0.0.1/\"\ncosts = {{ request = \"1ms\" }}\n[load]\nlog = \"{}\"\n\
             [trees]\nfull = \"full\"\ndegraded = \"light\"\n[link]\npath = \"www\"\n",
            log.path().display()
        );
        let agent = parse_agent(&text, "test").unwrap();
        let source = CounterSource::open(&agent).unwrap();
        let fractions = Rc::new(RefCell::new(vec![1.0]));
        let chooser = Box::new(RecordingChooser { all: fractions.clone(), fragile, broken });
        let chooser = Restored::new(chooser, 1.0, false);
        let arguments = AgentArguments::default();
        (AgentRun::new(&agent, &arguments, chooser, (probes, source)), fractions)
    }

    /// Probes that never end.
    fn idle() -> Probes {
        Probes::of(|| {
            loop {
                thread::park()
            }
        })
    }

    fn degrade(run: &mut AgentRun) {
        let why = plimsoll_core::agent::Why::Overload { response: None, threshold: Duration::ZERO };
        run.apply(Change { fraction: 0.0, why });
    }

    #[test]
    fn a_change_that_failed_is_made_only_while_its_reason_lasts() {
        let broken = Rc::new(Cell::new(true));
        let (mut agent, fractions) = run_with(idle(), false, broken.clone());
        let mut probed = |answered: Option<Duration>| {
            (0..3).for_each(|_| {
                agent.probes.end(answered);
                agent.sample();
            });
            fractions.borrow().clone()
        };
        assert_eq!(probed(None), [1.0], "overload, and the link cannot be made");
        assert_eq!(probed(Some(Duration::from_millis(1))), [1.0]);
        broken.set(false);
        assert_eq!(probed(Some(Duration::from_millis(1))), [1.0], "the overload is over");
        assert_eq!(probed(None), [1.0, 0.0], "another");
    }

    #[test]
    fn a_panic_on_the_way_restores_full_quality() {
        let (mut agent, fractions) = run(idle(), false);
        degrade(&mut agent);
        assert_eq!(*fractions.borrow(), [1.0, 0.0]);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _agent = agent;
            panic!("on purpose");
        }));
        assert!(panicked.is_err() && *fractions.borrow() == [1.0, 0.0, 1.0], "{fractions:?}");
    }

    #[test]
    fn a_panic_within_a_change_restores_it_too() {
        let (mut agent, fractions) = run(idle(), true);
        let panicked = catch_unwind(AssertUnwindSafe(move || degrade(&mut agent)));
        assert!(panicked.is_err() && *fractions.borrow() == [1.0, 0.0, 1.0], "{fractions:?}");
    }

    #[test]
    fn if_the_probes_panic_the_agent_ends_and_restores() {
        let (mut agent, fractions) = run(Probes::of(|| panic!("on purpose")), false);
        degrade(&mut agent);
        let (_signals, asked) = mpsc::channel();
        let ended = agent.until(&asked);
        assert!(ended.is_err_and(|why| why.text().contains("probes has failed")));
        assert_eq!(*fractions.borrow(), [1.0, 0.0, 1.0]);
    }
}
