//! The nearest known word to one that is not known, by edit distance.
//!
//! Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours cost one each. A suggestion
//! further away than a third of the word's length would be a guess, and a wrong guess sends the reader astray.

/// Words longer than this are never a slip of a known one; the bound keeps the quadratic time small.
const LONGEST: usize = 64;

/// The candidate nearest to `word`, if any is near enough. Of equally near ones the first.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let distance = distance(&word.to_lowercase(), &candidate.to_lowercase())?;
        if distance <= (candidate.len() / 3).max(1) && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

fn distance(a: &str, b: &str) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len() > LONGEST || b.len() > LONGEST {
        return None;
    }
    // Three rows of the table suffice: a swap looks back two.
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above.last().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_single_edits() {
        assert_eq!(distance("max_wait", "max_wait"), Some(0));
        assert_eq!(distance("max_wiat", "max_wait"), Some(1));
        assert_eq!(distance("worker", "workers"), Some(1));
        assert_eq!(distance("", "abc"), Some(3));
        assert_eq!(distance("kitten", "sitting"), Some(3));
    }

    #[test]
    fn suggests_only_what_is_near() {
        let known = ["listen", "admin", "mode"];
        assert_eq!(nearest("lisen", known), Some("listen"));
        assert_eq!(nearest("Mode", known), Some("mode"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest(&"x".repeat(1000), known), None);
    }
}
