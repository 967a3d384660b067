//! The facts of an adaptation: the trees that were made, and what their images lost.

use crate::args::AdaptArguments;
use crate::output::facts::{Facts, Value, figure, hidden, list};
use crate::output::text;
use plimsoll_content::{Adapted, TreeEntry};
use serde::Serialize;

/// Problems that are shown.
const SHOWN: usize = 10;

/// The facts for programs.
#[derive(Serialize)]
pub(super) struct AdaptationReport {
    trees: Vec<Facts>,
    images: Option<Facts>,
    images_not_reduced: usize,
    images_reduced_in_this_run: usize,
    files_written_in_this_run: usize,
    problems: Vec<Facts>,
}

impl AdaptationReport {
    pub(super) fn of(arguments: &AdaptArguments, adapted: &Adapted) -> AdaptationReport {
        let problems = adapted.problems.iter();
        let problems = problems
            .map(|(path, what)| Facts(vec![hidden("path", path.as_str()), hidden("what", what.as_str())]));
        AdaptationReport {
            trees: adapted.trees.iter().map(|tree| self::tree(arguments, tree)).collect(),
            images: Similarity::of(adapted).map(|of| {
                Facts(vec![
                    hidden("count", adapted.images.len() as u64),
                    hidden("bytes_before", of.before),
                    hidden("bytes_after", of.after),
                    hidden("similarity_median", of.median),
                    hidden("similarity_least", of.least),
                ])
            }),
            images_not_reduced: adapted.unreduced,
            images_reduced_in_this_run: adapted.reduced_now,
            files_written_in_this_run: adapted.written,
            problems: problems.collect(),
        }
    }
}

fn tree(arguments: &AdaptArguments, tree: &TreeEntry) -> Facts {
    let folder = arguments.out.join(tree.level.name()).display().to_string();
    Facts(vec![
        figure("level", "tree", Value::Text(tree.level.to_string()).said(folder)),
        figure("files", "files", tree.files),
        figure("bytes", "bytes", tree.bytes),
        figure("missing", "not in it", tree.missing.len() as u64),
    ])
}

pub(super) fn text(arguments: &AdaptArguments, adapted: &Adapted) -> String {
    let trees: Vec<Facts> = adapted.trees.iter().map(|tree| self::tree(arguments, tree)).collect();
    let trees: Vec<_> = trees.iter().map(|tree| (Vec::new(), tree)).collect();
    let mut out = text::table(&list("Trees", &[], &trees));
    if let Some(similarity) = Similarity::of(adapted) {
        let Similarity { median, least, before, after } = similarity;
        out += &format!(
            "\n{} images in {after} bytes instead of {before}, 1/{:.1}; similarity {median:.3} in the median, {least:.3} at \
             least\n",
            adapted.images.len(),
            before as f64 / after as f64
        );
    }
    if adapted.unreduced > 0 {
        out += &format!(
            "{} images above the limit stay: nothing smaller is similar enough\n",
            adapted.unreduced
        );
    }
    out +=
        &format!("{} files written, {} images reduced in this run\n", adapted.written, adapted.reduced_now);
    for (path, what) in adapted.problems.iter().take(SHOWN) {
        let path: String = path.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        out += &format!("note: {path}: {what}\n");
    }
    if adapted.problems.len() > SHOWN {
        out += &format!("note: and {} more; they are in the manifest\n", adapted.problems.len() - SHOWN);
    }
    out
}

/// How alike all images that were reduced are to their originals.
struct Similarity {
    median: f64,
    least: f64,
    before: u64,
    after: u64,
}

impl Similarity {
    fn of(adapted: &Adapted) -> Option<Similarity> {
        let mut all: Vec<f64> = adapted.images.values().map(|image| image.similarity).collect();
        all.sort_by(f64::total_cmp);
        let sum = |of: fn(&plimsoll_content::Image) -> u64| adapted.images.values().map(of).sum();
        Some(Similarity {
            median: *all.get(all.len() / 2)?,
            least: *all.first()?,
            before: sum(|image| image.before),
            after: sum(|image| image.after),
        })
    }
}
