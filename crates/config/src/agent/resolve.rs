//! From what an agent's file says to what it means. As in the configuration nothing stops at the first error.

use super::keys::{AgentKeys, ApacheKeys, LinkKeys, NginxKeys, ServerKeys};
use super::{Agent, Chooser, CountersAt, Nginx};
use crate::diagnostic::{Code, Complaint, Findings, Other};
use crate::syntax::{Located, Text};
use plimsoll_core::agent::{LoadSense, Policy, Settings, Threshold};
use plimsoll_core::time::Duration;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// How far below the load line the way back is, by default.
const BACK: f64 = 0.1;
/// Apache's map costs nothing to change; but each change is a line in the journal.
const APACHE_STEP: f64 = 0.02;

/// What `file` means; none only beside findings.
pub(super) fn resolve(file: &AgentKeys, name: &str, findings: &mut Findings) -> Option<Agent> {
    let folder = Path::new(name).parent().unwrap_or(Path::new("")).to_owned();
    let at = |text: &Text| folder.join(&text.0);
    let server = &file.server.value;
    let counters = counters(file, &at, findings);
    let sense = counters.as_ref().and_then(|counters| sense(file, counters, findings));
    let chooser = chooser(file, &at, findings);
    let settings = chooser.as_ref().map(|(_, policy)| settings(file, *policy, findings));
    let trees = &file.trees.value;
    if let (Some(full), Some(degraded)) = (&trees.full, &trees.degraded)
        && full.value == degraded.value
    {
        let complaint =
            Complaint::new("both trees are the same", "name another folder: `plimsoll adapt` makes one");
        let other = Other { span: &full.span, what: "`full` is given" };
        findings.add_with(Code::Duplicate, &degraded.span, complaint, other);
    }
    let chooser = chooser?.0;
    // For a link they are folders.
    let tree = |tree: &Located<super::values::TreeName>| match chooser {
        Chooser::Link(_) => folder.join(&tree.value.0).to_string_lossy().into_owned(),
        _ => tree.value.0.clone(),
    };
    Some(Agent {
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

/// The one of several that is given. Refuses none, and more than one.
fn only<T>(
    given: Vec<(&'static str, &Range<usize>, T)>,
    missing: (&Located<()>, Complaint),
    findings: &mut Findings,
) -> Option<T> {
    let mut given = given.into_iter();
    let Some((first, first_span, value)) = given.next() else {
        if missing.0.sound {
            findings.add(Code::MissingKey, &missing.0.span, missing.1);
        }
        return None;
    };
    for (name, span, _) in given {
        let message = format!("`{first}` and `{name}` exclude each other");
        let what = format!("`{first}` is given");
        let other = Other { span: first_span, what: &what };
        findings.add_with(Code::Conflict, span, Complaint::new(message, "keep one of them"), other);
    }
    Some(value)
}

fn counters(file: &AgentKeys, at: &dyn Fn(&Text) -> PathBuf, findings: &mut Findings) -> Option<CountersAt> {
    let keys = &file.load.value;
    let mut given = Vec::new();
    if let Some(log) = &keys.log {
        given.push(("log", &log.span, CountersAt::Log(at(&log.value))));
    }
    if let Some(page) = &keys.server_status {
        given.push(("server_status", &page.span, CountersAt::ServerStatus(page.value.clone())));
    }
    if let Some(page) = &keys.stub_status {
        given.push(("stub_status", &page.span, CountersAt::StubStatus(page.value.clone())));
    }
    let place = Located { value: (), span: file.load.span.clone(), sound: file.load.sound };
    let complaint = Complaint::new(
        "nothing says how the server's load is seen",
        "under `[load]`, write one of `log`, `server_status` (Apache) and `stub_status` (nginx): without it nobody \
         could tell when full quality fits again",
    );
    only(given, (&place, complaint), findings)
}

fn sense(file: &AgentKeys, counters: &CountersAt, findings: &mut Findings) -> Option<LoadSense> {
    let ServerKeys { costs, bandwidth, workers, .. } = &file.server.value;
    let workers = workers.as_ref().map(|workers| workers.value.0 as u32);
    if costs.is_none() && bandwidth.is_none() {
        let place = &file.server.span;
        let missing = match counters {
            CountersAt::Log(_) => Some(Complaint::new(
                "a log does not say how busy the server is",
                "write what requests cost, `costs = { request = \"1.6ms\", byte = \"63ns\" }`, as `plimsoll profile` \
                 finds it, or use a status page",
            )),
            CountersAt::StubStatus(_) if workers.is_none() => Some(Complaint::new(
                "`stub_status` does not say how many requests the server works on at once",
                "write it, `workers = 8`, or what requests cost, `costs`",
            )),
            _ => None,
        };
        return match missing {
            Some(complaint) if file.server.sound => {
                findings.add(Code::MissingKey, place, complaint);
                None
            }
            _ => Some(LoadSense::Gap { workers }),
        };
    }
    let told = costs.as_ref().map(|costs| &costs.value.0);
    let per_byte = told.map_or(0.0, |costs| costs.byte.value.0);
    if let (CountersAt::StubStatus(_), true) = (counters, per_byte > 0.0 || bandwidth.is_some()) {
        let span = bandwidth.as_ref().map_or(&file.server.span, |bandwidth| &bandwidth.span);
        let complaint =
            Complaint::new("`stub_status` counts no bytes", "leave out `byte` and `bandwidth`, or use `log`");
        findings.add(Code::Conflict, span, complaint);
    }
    Some(LoadSense::Linear {
        per_request_seconds: told.and_then(|costs| costs.request.as_ref()).map_or(0.0, |cost| cost.value.0),
        per_byte_seconds: per_byte,
        bandwidth: bandwidth.as_ref().map(|bandwidth| bandwidth.value.0),
    })
}

fn chooser(
    file: &AgentKeys,
    at: &dyn Fn(&Text) -> PathBuf,
    findings: &mut Findings,
) -> Option<(Chooser, Policy)> {
    let mut given = Vec::new();
    if let Some(section) = &file.link {
        given.push(("link", &section.span, link(&section.value.0, at)));
    }
    if let Some(section) = &file.nginx {
        given.push(("nginx", &section.span, nginx(&section.value.0, at)));
    }
    if let Some(section) = &file.apache {
        given.push(("apache", &section.span, apache(&section.value.0, at, &file.control.value.period)));
    }
    let complaint = Complaint::new(
        "nothing chooses between the trees",
        "add one of the sections `[link]`, `[nginx]` and `[apache]`",
    );
    only(given, (&Located::sound((), 0..0), complaint), findings)?
}

fn link(keys: &LinkKeys, at: &dyn Fn(&Text) -> PathBuf) -> Option<(Chooser, Policy)> {
    Some((Chooser::Link(at(&keys.path.as_ref()?.value)), Policy::Relay))
}

fn nginx(keys: &NginxKeys, at: &dyn Fn(&Text) -> PathBuf) -> Option<(Chooser, Policy)> {
    let program = &keys.program.value;
    let nginx = Nginx {
        file: at(&keys.file.as_ref()?.value),
        variable: keys.variable.value.0.clone(),
        client: keys.client.value.0.clone(),
        pid: at(&keys.pid.value),
        // A bare name is looked for where programs are.
        program: if program.0.contains('/') { at(program) } else { PathBuf::from(&program.0) },
        configuration: keys.configuration.as_ref().map(|file| at(&file.value)),
        seed: keys.seed.value.0,
    };
    Some((Chooser::Nginx(nginx), Policy::Fraction { step: keys.step.value.0, apart: keys.apart.value }))
}

fn apache(
    keys: &ApacheKeys,
    at: &dyn Fn(&Text) -> PathBuf,
    period: &Located<Duration>,
) -> Option<(Chooser, Policy)> {
    let policy = Policy::Fraction { step: APACHE_STEP, apart: period.value };
    Some((Chooser::Apache(at(&keys.map.as_ref()?.value)), policy))
}

fn settings(file: &AgentKeys, policy: Policy, findings: &mut Findings) -> Settings {
    let ServerKeys { every, response_time, queue, load_line, back_line, .. } = &file.server.value;
    let period = &file.control.value.period;
    for (what, time, from, to) in [("`every`", every, "50ms", "60s"), ("`period`", period, "200ms", "60s")] {
        let least = if what == "`every`" { Duration::from_millis(50) } else { Duration::from_millis(200) };
        if !(least..=Duration::from_secs(60)).contains(&time.value) {
            let complaint = Complaint::new(
                format!("{what} this short or long does not work"),
                format!("write something from `\"{from}\"` to `\"{to}\"`"),
            );
            findings.add(Code::OutOfRange, &time.span, complaint);
        }
    }
    if let Some(back) = back_line
        && back.value.0 > load_line.value.0
    {
        let complaint = Complaint::new(
            "the way back would begin above the load line",
            format!("write at most {}: the load would be too high again at once", load_line.value.0),
        );
        findings.add(Code::Conflict, &back.span, complaint);
    }
    Settings {
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
            .map_or((load_line.value.0 - BACK).max(load_line.value.0 / 2.0), |back| back.value.0),
    }
}
