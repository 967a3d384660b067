//! What was made, in words and as JSON.

use crate::args::AdaptArguments;
use crate::output::text;
use plimsoll_content::Adapted;
use plimsoll_gateway::admin::json::Json;

/// Problems that are shown.
const SHOWN: usize = 10;

pub(super) fn text(arguments: &AdaptArguments, adapted: &Adapted) -> String {
    let mut rows = vec![["tree", "files", "bytes", "not in it"].map(str::to_owned).to_vec()];
    for tree in &adapted.trees {
        let folder = arguments.out.join(tree.level.name()).display().to_string();
        rows.push(vec![
            folder,
            tree.files.to_string(),
            tree.bytes.to_string(),
            tree.missing.len().to_string(),
        ]);
    }
    let mut out = text::rows(&rows, &[1, 2, 3]);
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

/// Of all images that were reduced.
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

pub(super) fn json(adapted: &Adapted) -> Json {
    let trees = adapted.trees.iter().map(|tree| {
        Json::object([
            ("level", Json::Text(tree.level.to_string())),
            ("files", Json::Count(tree.files)),
            ("bytes", Json::Count(tree.bytes)),
            ("missing", Json::Count(tree.missing.len() as u64)),
        ])
    });
    let images = Similarity::of(adapted).map_or(Json::Null, |of| {
        Json::object([
            ("count", Json::Count(adapted.images.len() as u64)),
            ("bytes_before", Json::Count(of.before)),
            ("bytes_after", Json::Count(of.after)),
            ("similarity_median", Json::Number(of.median)),
            ("similarity_least", Json::Number(of.least)),
        ])
    });
    let problems = adapted.problems.iter().map(|(path, what)| {
        Json::object([("path", Json::Text(path.clone())), ("what", Json::Text(what.clone()))])
    });
    Json::object([
        ("trees", Json::List(trees.collect())),
        ("images", images),
        ("images_not_reduced", Json::Count(adapted.unreduced as u64)),
        ("images_reduced_in_this_run", Json::Count(adapted.reduced_now as u64)),
        ("files_written_in_this_run", Json::Count(adapted.written as u64)),
        ("problems", Json::List(problems.collect())),
    ])
}
