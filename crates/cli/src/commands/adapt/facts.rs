//! The facts of a run of `adapt`: the trees, the images that were reduced, and problems.

use crate::output::facts::{Facts, figure, hidden, list};
use crate::output::text;
use crate::output::units::printable;
use plimsoll_content::{Adapted, Image, Problem};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The most problems that text shows.
const SHOWN: usize = 10;

/// The facts, as JSON has them.
#[derive(Serialize)]
pub(super) struct AdaptReport<'a> {
    trees: Vec<Facts>,
    images: Vec<ReducedImages>,
    fonts: ReducedFonts,
    images_not_reduced: usize,
    images_reduced_in_this_run: usize,
    files_written_in_this_run: usize,
    problems: &'a [Problem],
}

/// All images that were reduced for a level, in this run or before.
#[derive(Serialize)]
struct ReducedImages {
    level: &'static str,
    count: usize,
    bytes_before: u64,
    bytes_after: u64,
    similarity_median: f64,
    similarity_least: f64,
}

/// All fonts that were reduced.
#[derive(Serialize)]
struct ReducedFonts {
    count: usize,
    bytes_before: u64,
    bytes_after: u64,
}

impl<'a> AdaptReport<'a> {
    pub(super) fn of(adapted: &'a Adapted) -> AdaptReport<'a> {
        let trees = adapted.trees.iter().map(|tree| {
            Facts(vec![
                hidden("level", tree.level.name()),
                figure("files", "files", tree.files),
                figure("bytes", "bytes", tree.bytes),
                figure("missing", "not in it", tree.missing.len() as u64),
            ])
        });
        AdaptReport {
            trees: trees.collect(),
            images: adapted
                .images
                .iter()
                .filter_map(|(level, all)| ReducedImages::of(level.name(), all))
                .collect(),
            fonts: ReducedFonts {
                count: adapted.fonts.len(),
                bytes_before: adapted.fonts.values().map(|(before, _)| before).sum(),
                bytes_after: adapted.fonts.values().map(|(_, after)| after).sum(),
            },
            images_not_reduced: adapted.unreduced,
            images_reduced_in_this_run: adapted.reduced_now,
            files_written_in_this_run: adapted.written,
            problems: &adapted.problems,
        }
    }

    /// The facts in words; `out` is the folder of the trees.
    pub(super) fn text(&self, adapted: &Adapted, out: &Path) -> String {
        let folder = |level: &str| vec![out.join(level).display().to_string().into()];
        let trees = adapted.trees.iter().map(|tree| folder(tree.level.name())).zip(&self.trees);
        let mut text = text::table(&list("Trees", &["tree"], &trees.collect::<Vec<_>>()));
        for ReducedImages { level, count, bytes_before, bytes_after, similarity_median, similarity_least } in
            &self.images
        {
            text += &format!(
                "\n{level}: {count} images in {bytes_after} bytes instead of {bytes_before}, 1/{:.1}; similarity of the worst \
                 region {similarity_median:.3} in the median, {similarity_least:.3} at least\n",
                *bytes_before as f64 / *bytes_after as f64
            );
        }
        let ReducedFonts { count, bytes_before, bytes_after } = self.fonts;
        if count > 0 {
            text += &format!(
                "\nfonts: {count} in {bytes_after} bytes instead of {bytes_before}, 1/{:.1}: with the characters that pages can \
                 show\n",
                bytes_before as f64 / bytes_after as f64
            );
        }
        if self.images_not_reduced > 0 {
            let stay = "images above the limit stay: nothing smaller is similar enough";
            text += &format!("{} {stay}\n", self.images_not_reduced);
        }
        let (written, reduced) = (self.files_written_in_this_run, self.images_reduced_in_this_run);
        text += &format!("{written} files written, {reduced} images reduced in this run\n");
        for Problem { path, what } in self.problems.iter().take(SHOWN) {
            text += &format!("note: {}: {what}\n", printable(path));
        }
        if self.problems.len() > SHOWN {
            text += &format!("note: and {} more; they are in the manifest\n", self.problems.len() - SHOWN);
        }
        text
    }
}

impl ReducedImages {
    fn of(level: &'static str, images: &BTreeMap<String, Image>) -> Option<ReducedImages> {
        let mut all: Vec<f64> = images.values().map(|image| image.similarity).collect();
        all.sort_by(f64::total_cmp);
        let sum = |of: fn(&Image) -> u64| images.values().map(of).sum();
        Some(ReducedImages {
            level,
            count: all.len(),
            bytes_before: sum(|image| image.before),
            bytes_after: sum(|image| image.after),
            similarity_median: *all.get(all.len() / 2)?,
            similarity_least: *all.first()?,
        })
    }
}
