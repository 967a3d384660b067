//! Examples and bad files, damaged at random from a fixed seed: reading never panics, every diagnostic points into the
//! file, and whatever is accepted the engine accepts too.

use plimsoll_config::{Configuration, parse};
use std::path::Path;

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
            assert_eq!(gateway.rewrites.len(), promises.sites.len());
            for (site, rewrites) in promises.sites.iter().zip(&gateway.rewrites) {
                assert_eq!(site.levels.len(), rewrites.len());
            }
            true
        }
        Err(diagnostics) => {
            assert!(!diagnostics.all.is_empty(), "refused without a reason:\n{source}");
            for found in &diagnostics.all {
                assert!(found.span.start <= found.span.end && found.span.end <= source.len(), "{found:?}");
                assert!(found.line >= 1 && found.column >= 1 && !found.help.is_empty(), "{found:?}");
            }
            let shown = diagnostics.to_string();
            assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
            false
        }
    }
}

#[test]
fn fuzz_smoke_damaged_files_are_accepted_or_refused_but_never_panic() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut random = Random(2);
    let (mut accepted, mut refused) = (0, 0);
    for folder in ["../../examples", "tests/diagnostics"] {
        let mut files: Vec<_> =
            std::fs::read_dir(here.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
        for path in files {
            let source = std::fs::read_to_string(path).unwrap();
            for _ in 0..ROUNDS {
                *(if check(&mutate(&source, &mut random)) { &mut accepted } else { &mut refused }) += 1;
            }
        }
    }
    // Both ends are exercised, or the mutations are too tame or too wild to show anything.
    assert!(accepted > 20 && refused > 1000, "accepted {accepted}, refused {refused}");
}

#[test]
fn fuzz_smoke_deep_nesting_and_long_lines_are_only_errors() {
    for source in
        ["[".repeat(100_000), format!("a = {}", "[".repeat(50_000)), format!("a = {}", "{a=".repeat(50_000))]
    {
        assert!(!check(&source));
    }
    assert!(!check(&format!("[gateway]\nlisten = \"{}\"\n", "x".repeat(1_000_000))));
    assert!(!check(&format!("{} = 1\n", "k".repeat(100_000))));
}
