//! Examples and bad files, damaged at random from a fixed seed: reading never panics, every diagnostic points into the
//! file, and whatever is accepted the engine accepts too; of a workload, the simulator.

mod against;

use plimsoll_config::{Configuration, Diagnostics, ParsedWorkload, parse, parse_workload};
use plimsoll_core::promises::Promises;
use plimsoll_sim::workload::{Arrivals, Content, Law, Page, Phase, Plant, Process};
use std::path::{Path, PathBuf};

/// Mutants per file: some seconds in all without optimization.
const ROUNDS: usize = 400;

/// SplitMix64: small, seeded, the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// What tends to hurt: quotes, brackets, extremes, characters of several bytes, control characters.
const PIECES: [&str; 32] = [
    "\"",
    "'",
    "\"\"\"",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "#",
    "\n",
    "\r",
    "\t",
    "\0",
    "\u{7f}",
    "ä",
    "🦀",
    "\u{feff}",
    "\\u0000",
    "*",
    "-1",
    "0",
    "1e999",
    "nan",
    "99999999999999999999",
    "true",
    "\"0s\"",
    "a.b.c = 1\n",
    "[upstream.x]\n",
];

fn mutate(source: &str, random: &mut Random) -> String {
    let mut text: Vec<char> = source.chars().collect();
    for _ in 0..=random.below(4) {
        let at = random.below(text.len() + 1);
        let end = (at + random.below(20)).min(text.len());
        match random.below(6) {
            0 => drop(text.splice(at..at, PIECES[random.below(PIECES.len())].chars())),
            1 => drop(text.drain(at..end)),
            2 => {
                let piece: Vec<char> = text[at..end].to_vec();
                let to = random.below(text.len() + 1);
                text.splice(to..to, piece);
            }
            3 => text.truncate(at.max(1)),
            // Whole lines: sections change places, keys get lost or stand twice.
            4 => swap_lines(&mut text, random),
            _ => drop(text.splice(at..(at + 1).min(text.len()), PIECES[random.below(PIECES.len())].chars())),
        }
    }
    text.into_iter().collect()
}

fn swap_lines(text: &mut Vec<char>, random: &mut Random) {
    let whole: String = text.iter().collect();
    let mut lines: Vec<&str> = whole.lines().collect();
    if lines.is_empty() {
        return;
    }
    let (a, b) = (random.below(lines.len()), random.below(lines.len()));
    if random.below(2) == 0 {
        lines.swap(a, b)
    } else {
        lines[a] = lines[b]
    }
    *text = lines.join("\n").chars().collect();
}

fn check(source: &str) -> bool {
    match parse(source, "mutant.toml") {
        Ok(Configuration { promises, gateway }) => {
            assert_eq!(promises.validate(), Ok(()), "{source}");
            assert_eq!(gateway.backends.len(), promises.plants.len());
            assert_eq!(gateway.settings.rewrites.len(), promises.sites.len());
            for (site, rewrites) in promises.sites.iter().zip(&gateway.settings.rewrites) {
                assert_eq!(site.levels.len(), rewrites.len());
            }
            true
        }
        Err(diagnostics) => {
            check_refusal(source, &diagnostics);
            false
        }
    }
}

fn check_refusal(source: &str, diagnostics: &Diagnostics) {
    assert!(!diagnostics.all.is_empty(), "refused without a reason:\n{source}");
    for found in &diagnostics.all {
        assert!(found.span.start <= found.span.end && found.span.end <= source.len(), "{found:?}");
        assert!(found.line >= 1 && found.column >= 1 && !found.help.is_empty(), "{found:?}");
    }
    let shown = diagnostics.to_string();
    assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
}

fn check_workload(source: &str, promises: &Promises) -> bool {
    let ParsedWorkload { workload, .. } = match parse_workload(source, "mutant.toml", promises) {
        Ok(understood) => understood,
        Err(diagnostics) => {
            check_refusal(source, &diagnostics);
            return false;
        }
    };
    assert_eq!(workload.plants.len(), promises.plants.len());
    assert_eq!(workload.versions.len(), promises.sites.len());
    for (site, versions) in promises.sites.iter().zip(&workload.versions) {
        assert_eq!(site.levels.len(), versions.len(), "{source}");
        assert!(versions.iter().all(|version| version.bytes > 0.0 && version.cost.is_none_or(|c| c > 0.0)));
    }
    workload.plants.iter().for_each(|plant| check_plant(plant, source));
    assert!(!workload.streams.is_empty(), "{source}");
    for stream in &workload.streams {
        assert!(
            stream.clients.count >= 1
                && stream.clients.first_address.checked_add(stream.clients.count - 1).is_some()
        );
        if let Arrivals::Process { process, rate } = &stream.arrivals {
            check_rate(rate, source);
            check_process(process, source);
            let ends = rate.last().is_some_and(|phase| phase.rate == 0.0);
            assert!(ends || workload.duration.is_some(), "{source}");
        }
        if let Content::Pages(pages) = &stream.content {
            pages.iter().for_each(|page| check_page(page, source));
        }
    }
    true
}

fn check_rate(rate: &[Phase], source: &str) {
    assert!(rate.is_sorted_by(|a, b| a.from < b.from) && !rate.is_empty(), "{source}");
    assert!(rate.last().is_some_and(|last| last.to.is_none()), "{source}");
    let rates = rate.iter().flat_map(|phase| [Some(phase.rate), phase.to].into_iter().flatten());
    rates.for_each(|rate| assert!((0.0..=1e9).contains(&rate), "{rate}: {source}"));
}

fn check_process(process: &Process, source: &str) {
    let sound = match *process {
        Process::Poisson | Process::Deterministic => true,
        Process::Pareto { shape } => shape > 1.0,
        Process::SelfSimilar { hurst, sources } => hurst > 0.5 && hurst < 1.0 && sources >= 1,
        Process::Surge { users, .. } => users >= 1,
        Process::Modulated { ratio, burst, calm } => ratio > 1.0 && !burst.is_zero() && !calm.is_zero(),
    };
    assert!(sound, "{process:?}: {source}");
}

fn check_page(page: &Page, source: &str) {
    assert!(page.weight > 0.0 && page.bytes >= 1.0 && page.path.starts_with('/'), "{page:?}: {source}");
    check_law(&page.bytes_law, source);
    page.service_law.iter().for_each(|law| check_law(law, source));
}

fn check_plant(plant: &Plant, source: &str) {
    assert!(plant.discipline.servers() >= 1 && plant.service_per_byte >= 0.0, "{plant:?}: {source}");
    assert!(plant.link.is_none_or(|link| link > 0.0), "{plant:?}: {source}");
    assert!(plant.faults.iter().all(|fault| fault.from < fault.until), "{plant:?}: {source}");
    check_law(&plant.law, source);
}

fn check_law(law: &Law, source: &str) {
    let sound = match law {
        Law::Deterministic | Law::Exponential => true,
        Law::BoundedPareto { shape, ratio } => *shape > 0.0 && *ratio > 1.0 && ratio.is_finite(),
        Law::Lognormal { variation } => *variation > 0.0 && variation.is_finite(),
        Law::Empirical(values) => values.iter().all(|v| *v >= 0.0) && values.iter().any(|v| *v > 0.0),
    };
    assert!(sound, "{law:?}: {source}");
}

/// The files of this package's folder, in order.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

#[test]
fn fuzz_smoke_damaged_files_are_accepted_or_refused_but_never_panic() {
    let mut random = Random(2);
    let (mut accepted, mut refused) = (0, 0);
    for path in ["../../examples", "tests/diagnostics"].into_iter().flat_map(files) {
        let source = std::fs::read_to_string(path).unwrap();
        for _ in 0..ROUNDS {
            *(if check(&mutate(&source, &mut random)) { &mut accepted } else { &mut refused }) += 1;
        }
    }
    // Both ends are exercised, or the mutations are too tame or too wild to show anything.
    assert!(accepted > 20 && refused > 1000, "accepted {accepted}, refused {refused}");
}

#[test]
fn fuzz_smoke_damaged_workloads_are_accepted_or_refused_but_never_panic() {
    let mut random = Random(3);
    let (mut accepted, mut refused) = (0, 0);
    for path in ["../../examples/workloads", "tests/workloads"].into_iter().flat_map(files) {
        let source = std::fs::read_to_string(path).unwrap();
        let promises = against::promises_for(&source);
        for _ in 0..ROUNDS / 2 {
            let sound = check_workload(&mutate(&source, &mut random), &promises);
            *(if sound { &mut accepted } else { &mut refused }) += 1;
        }
    }
    assert!(accepted > 20 && refused > 1000, "accepted {accepted}, refused {refused}");
}

#[test]
fn fuzz_smoke_deep_nesting_and_long_lines_are_only_errors() {
    for source in
        ["[".repeat(100_000), format!("a = {}", "[".repeat(50_000)), format!("a = {}", "{a=".repeat(50_000))]
    {
        assert!(!check(&source));
        assert!(!check_workload(&source, &Promises::default()));
    }
    assert!(!check(&format!("[gateway]\nlisten = \"{}\"\n", "x".repeat(1_000_000))));
    assert!(!check(&format!("{} = 1\n", "k".repeat(100_000))));
}
