//! The kept corpus of each target is replayed, with some damage by a fixed seed; and each target has a corpus.

use plimsoll_core::random::Random;
use plimsoll_fuzz::TARGETS;
use std::fs;
use std::path::{Path, PathBuf};

const CORPORA: &str = "corpus";
/// How often the files of a target are damaged, all together.
const ROUNDS: u64 = 300;
/// The bytes that all corpora have at most, so that a checkout stays small.
const MOST: u64 = 500_000;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// Bytes changed, taken out, doubled, put in from another file.
fn damaged(bytes: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let until = (at + random.below(16) as usize).min(bytes.len());
        match random.below(5) {
            0 => drop(bytes.splice(at..until, [random.bits() as u8])),
            1 => drop(bytes.drain(at..until)),
            2 => {
                let piece = bytes[at..until].to_vec();
                bytes.splice(at..at, piece);
            }
            3 => drop(bytes.splice(at..at, [b"\r\n:;,/%\"'<>=0 "[random.below(14) as usize]])),
            _ => {
                let from = random.below(other.len() as u64 + 1) as usize;
                let to = (from + random.below(64) as usize).min(other.len());
                bytes.splice(at..until, other[from..to].iter().copied());
            }
        }
    }
    bytes
}

#[test]
fn fuzz_smoke_the_kept_corpora_and_damage_to_them() {
    for (name, target) in TARGETS {
        let kept = files(&Path::new(CORPORA).join(name));
        assert!(!kept.is_empty(), "corpus/{name} has no file");
        let kept: Vec<Vec<u8>> = kept
            .iter()
            .map(|path| {
                let bytes = fs::read(path).expect("a file");
                // Shown if the target fails.
                println!("{}", path.display());
                target(&bytes);
                bytes
            })
            .collect();
        let mut random = Random::new(11);
        for round in 0..ROUNDS {
            let [one, other] = [(); 2].map(|()| &kept[random.below(kept.len() as u64) as usize]);
            let bytes = damaged(one, other, &mut random);
            println!("{name}, round {round}: {}", bytes.escape_ascii());
            target(&bytes);
        }
    }
}

#[test]
fn every_corpus_has_its_target() {
    for folder in files(Path::new(CORPORA)) {
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(TARGETS.iter().any(|(known, _)| *known == name), "corpus/{name}");
    }
}

#[test]
fn the_corpora_are_small() {
    let all = TARGETS.iter().flat_map(|(name, _)| files(&Path::new(CORPORA).join(name)));
    let bytes: u64 = all.map(|path| fs::metadata(path).expect("a file").len()).sum();
    assert!(bytes <= MOST, "{bytes} bytes: minimize them by `cargo fuzz cmin`");
}
