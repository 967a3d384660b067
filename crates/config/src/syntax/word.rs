//! Values that are words of a fixed list, and the known word that is nearest to an unknown one by edit distance.

use super::field::wrong_type;
use crate::diagnostic::{Findings, quoted, refuse};
use toml::Spanned;
use toml::de::DeValue;

/// Makes a type whose values are words of a fixed list: `"word" => Variant, "its meaning"`. With `enum`, the type itself is
/// made too.
macro_rules! words {
    ($(#[doc = $doc:literal])+ enum $name:ident { $($word:literal => $variant:ident, $meaning:literal;)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($variant),+ }

        crate::syntax::word::words!($name { $($word => $variant, $meaning;)+ });
    };
    ($name:ident { $($word:literal => $variant:ident, $meaning:literal;)+ }) => {
        impl crate::syntax::Field for $name {
            fn shape() -> crate::syntax::Shape {
                crate::syntax::Shape::Word(&[$(($word, $meaning)),+])
            }

            fn read(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                findings: &mut crate::diagnostic::Findings,
            ) -> Option<Self> {
                crate::syntax::word::read_word(value, &[$(($word, $name::$variant)),+], findings)
            }

            fn show(&self) -> String {
                match self { $($name::$variant => concat!("\"", $word, "\"")),+ }.to_owned()
            }
        }
    };
}
pub(crate) use words;

/// The variant that the written word stands for; otherwise a finding.
pub(crate) fn read_word<T: Copy>(
    value: &Spanned<DeValue<'_>>,
    words: &[(&str, T)],
    findings: &mut Findings,
) -> Option<T> {
    let all: Vec<String> = words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
    let all = all.join(" or ");
    let DeValue::String(text) = value.get_ref() else {
        return wrong_type(value, "a word", format!("write {all}"), findings);
    };
    if let Some((_, meant)) = words.iter().find(|(word, _)| *word == text.as_ref()) {
        return Some(*meant);
    }
    let help = match nearest(text, words.iter().map(|(word, _)| *word)) {
        Some(word) => format!("did you mean `\"{word}\"`?"),
        None => format!("write {all}"),
    };
    refuse!(findings, UnknownWord at &value.span(),
        format!("`{}` is none of the words known here", quoted(text)), help: help);
    None
}

/// A word longer than this is never a misspelt known word; the bound limits the quadratic time.
const LONGEST: usize = 64;

/// The candidate nearest to `word`, if any is near enough; of equally near ones the first. A swap of neighbours counts as one
/// edit. A candidate that differs by more than a third of its length is not returned, because a wrong guess misleads the
/// reader.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
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
