//! The nearest known word to one that is not known, by edit distance.

/// Words longer than this are never a slip of a known word; the bound keeps the quadratic time small.
const LONGEST: usize = 64;

/// The candidate nearest to `word`, if any is near enough; the first of equally near ones. A swap of neighbours counts as
/// one edit. A candidate further away than a third of its length would be a guess, and a wrong guess misleads the reader.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.chars().count() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    let distance = |candidate: &str| strsim::osa_distance(&word, &candidate.to_lowercase());
    candidates
        .into_iter()
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_what_is_near() {
        let known = ["listen", "admin", "mode", "max_wait"];
        assert_eq!(nearest("lisen", known), Some("listen"));
        assert_eq!(nearest("Mode", known), Some("mode"));
        assert_eq!(nearest("mdoe", known), Some("mode"), "a swap is one edit");
        assert_eq!(nearest("max_wiat", known), Some("max_wait"));
        assert_eq!(nearest("kitten", ["sitting"]), None, "three edits in seven letters");
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(1000), known), None);
    }
}
