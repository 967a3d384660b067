//! Distributions and processes: a name alone, or a table with the kind's numbers.

use super::keys::{LawKeys, ProcessKeys};
use super::values::{LawKind, ProcessKind};
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Either, Field, Located, OptionalKey, Section, Table};
use plimsoll_core::time::Duration;
use plimsoll_sim::workload::{Law, Process};
use std::ops::Range;

/// The Hurst parameter if none is given: roughly that of Ethernet traffic.
const HURST: f64 = 0.8;
/// The number of sources of self-similar traffic if none is given.
const SOURCES: u32 = 100;

/// A number that belongs to one kind only.
struct Parameter<'a, K> {
    name: &'static str,
    of: K,
    needed: bool,
    given: Option<&'a Range<usize>>,
}

/// The chosen kind, and the numbers given with it.
struct ChosenKind<'a, K, S> {
    kind: K,
    span: &'a Range<usize>,
    keys: &'a S,
    /// Whether nothing in the table was refused, so that an absent number is absent on purpose.
    sound: bool,
}

impl<'a, K: Copy, S> ChosenKind<'a, K, S> {
    /// The kind and numbers in the file; `alone` are the numbers if the kind is given without a table.
    fn new(
        given: &'a Located<Either<K, Table<S>>>,
        alone: &'a S,
        kind_of: fn(&S) -> &Option<Located<K>>,
    ) -> Option<Self> {
        let (kind, span, keys) = match &given.value {
            Either::Simple(kind) => (*kind, &given.span, alone),
            Either::Detailed(Table(keys)) => {
                let kind = kind_of(keys).as_ref()?;
                (kind.value, &kind.span, keys)
            }
        };
        Some(ChosenKind { kind, span, keys, sound: given.sound })
    }
}

/// Refuses numbers that the kind does not take, and reports missing ones; `example` is a text that has them.
fn check<K: Field + PartialEq + Copy, S>(
    chosen: &ChosenKind<'_, K, S>,
    parameters: &[Parameter<'_, K>],
    example: &str,
    findings: &mut Findings,
) {
    let kind = chosen.kind.show();
    for Parameter { name, of, given, .. } in parameters {
        if let Some(given) = given.filter(|_| *of != chosen.kind) {
            refuse!(findings, Conflict at given,
                format!("`{name}` belongs to `kind = {}`", of.show()),
                help: format!("leave it out, or write `kind = {}`", of.show()),
                beside chosen.span => format!("`{kind}` is given"));
        }
    }
    let missing = parameters.iter().filter(|p| p.of == chosen.kind && p.needed && p.given.is_none());
    let missing: Vec<String> = missing.map(|parameter| format!("`{}`", parameter.name)).collect();
    if !missing.is_empty() && chosen.sound {
        let help = format!("write `{{ kind = {kind}, {example} }}`");
        refuse!(findings, MissingKey at chosen.span,
            format!("`{kind}` needs {}", missing.join(" and ")), help: help);
    }
}

/// The form of a distribution.
pub(super) fn law(given: &Located<Either<LawKind, Table<LawKeys>>>, findings: &mut Findings) -> Law {
    let alone = LawKeys::empty();
    let Some(chosen) = ChosenKind::new(given, &alone, |keys| &keys.kind) else { return Law::Deterministic };
    let ChosenKind { kind, keys, .. } = chosen;
    let parameter = |name, of, given| Parameter { name, of, needed: true, given };
    let parameters = [
        parameter("shape", LawKind::Pareto, keys.shape.span()),
        parameter("ratio", LawKind::Pareto, keys.ratio.span()),
        parameter("variation", LawKind::Lognormal, keys.variation.span()),
        parameter("values", LawKind::Empirical, keys.values.span()),
    ];
    let example = match kind {
        LawKind::Lognormal => "variation = 2.0",
        LawKind::Empirical => "values = [1, 2, 7]",
        _ => "shape = 1.5, ratio = 1000",
    };
    check(&chosen, &parameters, example, findings);
    let (shape, ratio) = (keys.shape.as_ref(), keys.ratio.as_ref());
    match kind {
        LawKind::Deterministic => Law::Deterministic,
        LawKind::Exponential => Law::Exponential,
        LawKind::Pareto => Law::BoundedPareto {
            shape: shape.map_or(1.0, |shape| shape.value.0),
            ratio: ratio.map_or(2.0, |ratio| ratio.value.0),
        },
        LawKind::Lognormal => {
            Law::Lognormal { variation: keys.variation.as_ref().map_or(1.0, |variation| variation.value.0) }
        }
        LawKind::Empirical => empirical(keys, findings),
    }
}

fn empirical(keys: &LawKeys, findings: &mut Findings) -> Law {
    let Some(values) = &keys.values else { return Law::Deterministic };
    let samples: Vec<f64> = values.value.0.iter().map(|sample| sample.value.0).collect();
    if values.sound && samples.iter().all(|sample| *sample == 0.0) {
        refuse!(findings, BadValue at &values.span,
            "nothing but zeros has no mean", help: "write at least one value above 0");
    }
    Law::Empirical(samples.into())
}

/// How arrivals vary.
pub(super) fn process(
    given: &Located<Either<ProcessKind, Table<ProcessKeys>>>,
    findings: &mut Findings,
) -> Process {
    let alone = ProcessKeys::empty();
    let Some(chosen) = ChosenKind::new(given, &alone, |keys| &keys.kind) else { return Process::Poisson };
    let ChosenKind { kind, keys, .. } = chosen;
    let parameter = |name, of, needed, given| Parameter { name, of, needed, given };
    let sources_of = if kind == ProcessKind::Surge { kind } else { ProcessKind::SelfSimilar };
    let parameters = [
        parameter("shape", ProcessKind::Pareto, true, keys.shape.span()),
        parameter("hurst", ProcessKind::SelfSimilar, false, keys.hurst.span()),
        parameter("sources", sources_of, false, keys.sources.span()),
        parameter("waits", ProcessKind::Surge, false, keys.waits.span()),
        parameter("ratio", ProcessKind::Modulated, true, keys.ratio.span()),
        parameter("burst", ProcessKind::Modulated, true, keys.burst.span()),
        parameter("calm", ProcessKind::Modulated, true, keys.calm.span()),
    ];
    let example = match kind {
        ProcessKind::Modulated => "ratio = 10, burst = \"2s\", calm = \"20s\"",
        _ => "shape = 1.5",
    };
    check(&chosen, &parameters, example, findings);
    let time =
        |time: &Option<Located<Duration>>| time.as_ref().map_or(Duration::from_secs(1), |time| time.value);
    let sources = keys.sources.as_ref().map_or(SOURCES, |sources| sources.value.0 as u32);
    match kind {
        ProcessKind::Poisson => Process::Poisson,
        ProcessKind::Deterministic => Process::Deterministic,
        ProcessKind::Pareto => {
            Process::Pareto { shape: keys.shape.as_ref().map_or(1.5, |shape| shape.value.0) }
        }
        ProcessKind::SelfSimilar => {
            Process::SelfSimilar { hurst: keys.hurst.as_ref().map_or(HURST, |hurst| hurst.value.0), sources }
        }
        ProcessKind::Surge => {
            let waits = keys.waits.as_ref().is_some_and(|waits| waits.value);
            Process::Surge { users: sources, waits }
        }
        ProcessKind::Modulated => Process::Modulated {
            ratio: keys.ratio.as_ref().map_or(2.0, |ratio| ratio.value.0),
            burst: time(&keys.burst),
            calm: time(&keys.calm),
        },
    }
}
