//! Turns the keys of an agent's file into [`Agent`]. As in the configuration, reading does not stop at the first error.

use super::keys::{AgentKeys, ApacheKeys, LinkKeys, NginxKeys, ServerKeys};
use super::{Agent, Chooser, CountersAt, Nginx, Scheme};
use crate::diagnostic::{Findings, exclusive, places, refuse};
use crate::syntax::{Located, Text, beside};
use plimsoll_core::agent::{AgentLoopSettings, AgentPolicy, LoadSense, Threshold};
use plimsoll_core::time::Duration;
use std::path::PathBuf;

/// How far below the load line a link returns to full quality, if the file does not say.
const BACK_BELOW: f64 = 0.1;
/// The least change of the fraction that is written to Apache's map. A change costs nothing, but makes a line in the log.
const APACHE_STEP: f64 = 0.02;

/// The agent that `file` describes; `None` only if there are findings.
pub(super) fn resolve(file: &AgentKeys, name: &str, findings: &mut Findings) -> Option<Agent> {
    let at = |text: &Text| beside(name, &text.0);
    let server = &file.server.value;
    let counters = counters(file, &at, findings);
    let sense = counters.as_ref().and_then(|counters| sense(file, counters, findings));
    let chooser = chooser(file, &at, findings);
    let settings = chooser.as_ref().map(|(_, policy)| settings(file, *policy, findings));
    let trees = &file.trees.value;
    if let (Some(full), Some(degraded)) = (&trees.full, &trees.degraded)
        && full.value == degraded.value
    {
        refuse!(findings, Duplicate at &degraded.span,
            "both trees are the same", help: "name another folder: `plimsoll adapt` makes one",
            beside &full.span => "`full` is given");
    }
    let chooser = chooser?.0;
    // For a link the trees are folders.
    let tree = |tree: &Located<super::values::TreeName>| match chooser {
        Chooser::Link(_) => beside(name, &tree.value.0).to_string_lossy().into_owned(),
        _ => tree.value.0.clone(),
    };
    let pid = server.pid.as_ref().map(|pid| at(&pid.value)).or_else(|| match &chooser {
        Chooser::Nginx(nginx) => Some(nginx.pid.clone()),
        Chooser::Link(_) | Chooser::Apache(_) => None,
    });
    Some(Agent {
        pid,
        probe: server.probe.as_ref()?.value.clone(),
        counters: counters?,
        sense: sense?,
        settings: settings?,
        full: tree(trees.full.as_ref()?),
        degraded: tree(trees.degraded.as_ref()?),
        chooser,
        on_exit: file.control.value.on_exit.value,
    })
}

fn counters(file: &AgentKeys, at: &dyn Fn(&Text) -> PathBuf, findings: &mut Findings) -> Option<CountersAt> {
    let keys = &file.load.value;
    exclusive(&places!(keys => log, server_status, stub_status, wire), "keep one of them", findings);
    let log = keys.log.as_ref().map(|log| CountersAt::Log(at(&log.value)));
    let server_status = keys.server_status.as_ref().map(|page| CountersAt::ServerStatus(page.value.clone()));
    let stub_status = keys.stub_status.as_ref().map(|page| CountersAt::StubStatus(page.value.clone()));
    let wire = keys.wire.as_ref().map(|interface| CountersAt::Wire(interface.value.0.clone()));
    if let (Some(interface), Some(probe)) = (&keys.wire, &file.server.value.probe)
        && probe.value.scheme == Scheme::Https
    {
        refuse!(findings, Conflict at &interface.span,
            "packets of HTTPS cannot be read", help: "use `log` or a status page",
            beside &probe.span => "the probe is one");
    }
    let counters = log.or(server_status).or(stub_status).or(wire);
    if counters.is_none() && file.load.sound {
        refuse!(findings, MissingKey at &file.load.span,
            "nothing says how the server's load is seen",
            help: "under `[load]`, write one of `log`, `server_status` (Apache), `stub_status` (nginx) and `wire`: without it \
                   nothing shows when full quality fits again");
    }
    counters
}

fn sense(file: &AgentKeys, counters: &CountersAt, findings: &mut Findings) -> Option<LoadSense> {
    let ServerKeys { costs, bandwidth, workers, .. } = &file.server.value;
    let workers = workers.as_ref().map(|workers| workers.value.0 as u32);
    if costs.is_none() && bandwidth.is_none() {
        let (message, help) = match counters {
            CountersAt::Log(_) => (
                "a log does not say how busy the server is",
                "write what requests cost, `costs = { request = \"1.6ms\", byte = \"63ns\" }`, as `plimsoll profile` \
                 finds it, or use a status page",
            ),
            CountersAt::StubStatus(_) if workers.is_none() => (
                "`stub_status` does not say how many requests the server works on at once",
                "write it, `workers = 8`, or what requests cost, `costs`",
            ),
            CountersAt::Wire(_) if workers.is_none() => (
                "packets do not say how many requests the server works on at once",
                "write it, `workers = 8`, or what requests cost, `costs`",
            ),
            _ => return Some(LoadSense::Gap { workers }),
        };
        if file.server.sound {
            refuse!(findings, MissingKey at &file.server.span, message, help: help);
        }
        return Some(LoadSense::Gap { workers });
    }
    let costs = costs.as_ref().map(|costs| &costs.value.0);
    let per_byte = costs.map_or(0.0, |costs| costs.byte.value.0);
    if let (CountersAt::StubStatus(_), true) = (counters, per_byte > 0.0 || bandwidth.is_some()) {
        let span = bandwidth.as_ref().map_or(&file.server.span, |bandwidth| &bandwidth.span);
        refuse!(findings, Conflict at span,
            "`stub_status` counts no bytes", help: "leave out `byte` and `bandwidth`, or use `log`");
    }
    Some(LoadSense::Linear {
        per_request_seconds: costs.and_then(|costs| costs.request.as_ref()).map_or(0.0, |cost| cost.value.0),
        per_byte_seconds: per_byte,
        bandwidth: bandwidth.as_ref().map(|bandwidth| bandwidth.value.0),
    })
}

fn chooser(
    file: &AgentKeys,
    at: &dyn Fn(&Text) -> PathBuf,
    findings: &mut Findings,
) -> Option<(Chooser, AgentPolicy)> {
    exclusive(&places!(file => link, nginx, apache), "keep one of them", findings);
    match (&file.link, &file.nginx, &file.apache) {
        (Some(keys), ..) => link(&keys.value.0, at),
        (_, Some(keys), _) => nginx(&keys.value.0, at),
        (.., Some(keys)) => apache(&keys.value.0, at, &file.control.value.period),
        (None, None, None) => {
            refuse!(findings, MissingKey at &(0..0),
                "nothing chooses between the trees",
                help: "add one of the sections `[link]`, `[nginx]` and `[apache]`");
            None
        }
    }
}

fn link(keys: &LinkKeys, at: &dyn Fn(&Text) -> PathBuf) -> Option<(Chooser, AgentPolicy)> {
    Some((Chooser::Link(at(&keys.path.as_ref()?.value)), AgentPolicy::Relay))
}

fn nginx(keys: &NginxKeys, at: &dyn Fn(&Text) -> PathBuf) -> Option<(Chooser, AgentPolicy)> {
    let program = &keys.program.value;
    let nginx = Nginx {
        file: at(&keys.file.as_ref()?.value),
        variable: keys.variable.value.0.clone(),
        client: keys.client.value.0.clone(),
        pid: at(&keys.pid.value),
        // A program name without a folder is looked up in PATH.
        program: if program.0.contains('/') { at(program) } else { PathBuf::from(&program.0) },
        configuration: keys.configuration.as_ref().map(|file| at(&file.value)),
        seed: keys.seed.as_ref().map(|seed| seed.value.0),
    };
    Some((Chooser::Nginx(nginx), AgentPolicy::Fraction { step: keys.step.value.0, apart: keys.apart.value }))
}

fn apache(
    keys: &ApacheKeys,
    at: &dyn Fn(&Text) -> PathBuf,
    period: &Located<Duration>,
) -> Option<(Chooser, AgentPolicy)> {
    let policy = AgentPolicy::Fraction { step: APACHE_STEP, apart: period.value };
    Some((Chooser::Apache(at(&keys.map.as_ref()?.value)), policy))
}

fn settings(file: &AgentKeys, policy: AgentPolicy, findings: &mut Findings) -> AgentLoopSettings {
    let ServerKeys { every, response_time, queue, load_line, back_line, .. } = &file.server.value;
    let period = &file.control.value.period;
    for (key, time, least) in [("every", every, 50), ("period", period, 200)] {
        if !(Duration::from_millis(least)..=Duration::from_secs(60)).contains(&time.value) {
            refuse!(findings, OutOfRange at &time.span,
                format!("`{key}` this short or long does not work"),
                help: format!("write something from `\"{least}ms\"` to `\"60s\"`"));
        }
    }
    if let Some(back) = back_line
        && back.value.0 > load_line.value.0
    {
        refuse!(findings, Conflict at &back.span,
            "the way back would begin above the load line",
            help: format!("write at most {}: the load would be too high again at once", load_line.value.0));
    }
    AgentLoopSettings {
        policy,
        threshold: match response_time {
            Some(promised) => Threshold::Promised(promised.value),
            None => Threshold::Queue(queue.value.0 as u32),
        },
        every: every.value,
        period: period.value,
        load_line: load_line.value.0,
        back_line: back_line
            .as_ref()
            .map_or((load_line.value.0 - BACK_BELOW).max(load_line.value.0 / 2.0), |back| back.value.0),
    }
}
