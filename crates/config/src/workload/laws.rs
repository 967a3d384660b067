//! Distributions and processes: a name alone, or a table with the numbers that it takes.

use super::keys::{LawKeys, ProcessKeys};
use super::values::{LawKind, ProcessKind};
use crate::diagnostic::{Findings, refuse};
use crate::syntax::{Brief, Field, Located, OptionalKey};
use plimsoll_core::time::Duration;
use plimsoll_sim::workload::{Law, Process};
use std::ops::Range;

/// The Hurst parameter where none is given: that of Ethernet traffic, roughly.
const HURST: f64 = 0.8;
/// Sources of self-similar traffic where none are given.
const SOURCES: u32 = 100;

/// A number that belongs to one kind.
struct Parameter<'a, K> {
    name: &'static str,
    of: K,
    needed: bool,
    given: Option<&'a Range<usize>>,
}

/// A kind as it was chosen.
struct Chosen<'a, K> {
    kind: K,
    span: &'a Range<usize>,
    /// Nothing in the table was refused: what is absent is meant to be absent.
    sound: bool,
    /// A text that is right.
    example: &'static str,
}

/// Refuses the numbers that the kind does not take, and misses those that it needs.
fn check<K: Field + PartialEq + Copy>(
    chosen: &Chosen<'_, K>,
    parameters: &[Parameter<'_, K>],
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
        let help = format!("write `{{ kind = {kind}, {} }}`", chosen.example);
        refuse!(findings, MissingKey at chosen.span,
            format!("`{kind}` needs {}", missing.join(" and ")), help: help);
    }
}

/// The form of a distribution.
pub(super) fn law(given: &Located<Brief<LawKind, LawKeys>>, findings: &mut Findings) -> Law {
    let none = LawKeys { kind: None, shape: None, ratio: None, variation: None, values: None };
    let (kind, span_of_kind, keys) = match &given.value {
        Brief::Value(kind) => (*kind, &given.span, &none),
        Brief::Table(keys) => match &keys.kind {
            Some(kind) => (kind.value, &kind.span, keys),
            None => return Law::Deterministic,
        },
    };
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
    check(&Chosen { kind, span: span_of_kind, sound: given.sound, example }, &parameters, findings);
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
pub(super) fn process(given: &Located<Brief<ProcessKind, ProcessKeys>>, findings: &mut Findings) -> Process {
    let none = ProcessKeys {
        kind: None,
        shape: None,
        hurst: None,
        sources: None,
        ratio: None,
        burst: None,
        calm: None,
    };
    let (kind, span_of_kind, keys) = match &given.value {
        Brief::Value(kind) => (*kind, &given.span, &none),
        Brief::Table(keys) => match &keys.kind {
            Some(kind) => (kind.value, &kind.span, keys),
            None => return Process::Poisson,
        },
    };
    let parameter = |name, of, needed, given| Parameter { name, of, needed, given };
    let parameters = [
        parameter("shape", ProcessKind::Pareto, true, keys.shape.span()),
        parameter("hurst", ProcessKind::SelfSimilar, false, keys.hurst.span()),
        parameter("sources", ProcessKind::SelfSimilar, false, keys.sources.span()),
        parameter("ratio", ProcessKind::Modulated, true, keys.ratio.span()),
        parameter("burst", ProcessKind::Modulated, true, keys.burst.span()),
        parameter("calm", ProcessKind::Modulated, true, keys.calm.span()),
    ];
    let example = match kind {
        ProcessKind::Modulated => "ratio = 10, burst = \"2s\", calm = \"20s\"",
        _ => "shape = 1.5",
    };
    check(&Chosen { kind, span: span_of_kind, sound: given.sound, example }, &parameters, findings);
    let time =
        |time: &Option<Located<Duration>>| time.as_ref().map_or(Duration::from_secs(1), |time| time.value);
    match kind {
        ProcessKind::Poisson => Process::Poisson,
        ProcessKind::Deterministic => Process::Deterministic,
        ProcessKind::Pareto => {
            Process::Pareto { shape: keys.shape.as_ref().map_or(1.5, |shape| shape.value.0) }
        }
        ProcessKind::SelfSimilar => Process::SelfSimilar {
            hurst: keys.hurst.as_ref().map_or(HURST, |hurst| hurst.value.0),
            sources: keys.sources.as_ref().map_or(SOURCES, |sources| sources.value.0 as u32),
        },
        ProcessKind::Modulated => Process::Modulated {
            ratio: keys.ratio.as_ref().map_or(2.0, |ratio| ratio.value.0),
            burst: time(&keys.burst),
            calm: time(&keys.calm),
        },
    }
}
