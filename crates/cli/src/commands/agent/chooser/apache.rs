//! Apache's text map: a tree for each group of clients, `00` to `ff`.
//!
//! Apache computes a client's group from a keyed hash (docs/agent.md has the lines), and looks the group up with
//! `RewriteMap`. It reads the map again as soon as the file's time has changed, so it needs no signal. The groups below
//! the fraction get full quality, so no client loses quality when the fraction rises.

use super::{Chooser, FIRST_LINE, Trees, fraction_of, writable};
use crate::output::failure::replace;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

const GROUPS: u32 = 256;

pub(super) struct ApacheMap {
    pub(super) map: PathBuf,
    pub(super) trees: Trees,
}

/// The map's text, and the fraction rounded to whole groups.
fn text(fraction: f64, trees: &Trees) -> (String, f64) {
    let full = (fraction * f64::from(GROUPS)).round() as u32;
    let fraction = f64::from(full) / f64::from(GROUPS);
    let mut text = format!("{FIRST_LINE}{fraction}\n");
    for group in 0..GROUPS {
        let tree = if group < full { &trees.full } else { &trees.degraded };
        let _ = writeln!(text, "{group:02x} {tree}");
    }
    (text, fraction)
}

impl Chooser for ApacheMap {
    fn present(&self) -> Result<Option<f64>, String> {
        fraction_of(&self.map)
    }

    fn check(&self, acts: bool) -> Vec<String> {
        let mut wrong = self.trees.missing(false);
        if acts {
            wrong.extend(writable(&self.map).err());
        }
        wrong
    }

    fn set(&mut self, fraction: f64) -> io::Result<f64> {
        let (text, fraction) = text(fraction, &self.trees);
        replace(&self.map, &text)?;
        Ok(fraction)
    }
}

#[cfg(test)]
mod tests {
    use super::super::names;
    use super::*;

    fn trees() -> Trees {
        Trees { full: "/full".to_owned(), degraded: "/light".to_owned() }
    }

    #[test]
    fn every_group_has_a_tree_and_a_larger_fraction_only_adds_groups() {
        let full = |fraction: f64| {
            let (text, rounded) = text(fraction, &trees());
            let lines: Vec<&str> = text.lines().skip(1).collect();
            assert_eq!((lines.len(), lines[0].len() > 3, &lines[255][..3]), (256, true, "ff "));
            let full: Vec<bool> = lines.iter().map(|line| line.ends_with(" /full")).collect();
            assert_eq!(full.iter().filter(|full| **full).count() as f64 / 256.0, rounded);
            assert!((rounded - fraction).abs() <= 0.5 / 256.0, "{rounded}");
            full
        };
        for (less, more) in [(0.0, 0.1), (0.1, 0.5), (0.5, 0.51), (0.51, 1.0)] {
            assert!(full(less).iter().zip(full(more)).all(|(less, more)| *less <= more));
        }
    }

    #[test]
    fn it_finds_its_own_file_again_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let mut map = ApacheMap { map: folder.path().join("trees.map"), trees: trees() };
        assert_eq!((map.present(), map.check(true)), (Ok(None), vec![]));
        let applied = map.set(0.3).unwrap();
        assert_eq!(map.present(), Ok(Some(applied)));
        assert_eq!(names(folder.path()), ["trees.map"]);
        std::fs::write(folder.path().join("trees.map"), "00 mine\n").unwrap();
        assert!(map.present().is_err_and(|why| why.contains("was not written by")));
        let nowhere = ApacheMap { map: folder.path().join("no/such/map"), trees: trees() };
        assert!(nowhere.check(true)[0].contains("cannot write in"));
    }
}
