//! Values that are words of a fixed list.

use super::field::wrong_type;
use super::suggestions::nearest;
use crate::diagnostic::{Findings, quoted, refuse};
use toml::Spanned;
use toml::de::DeValue;

/// Makes a type a word of a fixed list: `"word" => Variant, "its meaning"`. After `enum` the type itself is made too.
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
                match crate::syntax::word::read_word(value, &[$($word),+], findings)? {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }

            fn show(&self) -> String {
                match self { $($name::$variant => concat!("\"", $word, "\"")),+ }.to_owned()
            }
        }
    };
}
pub(crate) use words;

/// The word of the list that is written, or a finding.
pub(crate) fn read_word<'a>(
    value: &Spanned<DeValue<'_>>,
    words: &[&'a str],
    findings: &mut Findings,
) -> Option<&'a str> {
    let all: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
    let all = all.join(" or ");
    let DeValue::String(text) = value.get_ref() else {
        return wrong_type(value, "a word", format!("write {all}"), findings);
    };
    if let Some(word) = words.iter().find(|word| **word == text.as_ref()) {
        return Some(word);
    }
    let help = match nearest(text, words.iter().copied()) {
        Some(word) => format!("did you mean `\"{word}\"`?"),
        None => format!("write {all}"),
    };
    refuse!(findings, UnknownWord at &value.span(),
        format!("`{}` is none of the words known here", quoted(text)), help: help);
    None
}
