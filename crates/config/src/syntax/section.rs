//! Sections: the macro that makes a section's struct, its reading and its description from one table of keys.
//!
//! serde cannot be used: it stops at the first error, knows nothing of the other keys, and loses the span of an absent key;
//! `flatten` and `untagged` lose every span. A table of strings beside the structs would drift apart from them.

use super::elsewhere::instead;
use super::field::{Field, Located, Section, wrong_type};
use super::shape::SectionShape;
use super::word::nearest;
use crate::diagnostic::{Code, Complaint, Findings, in_backticks, quoted, refuse};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// A table that is being read.
pub(crate) struct Keys<'a, 'i> {
    table: &'a DeTable<'i>,
    title: &'static str,
    span: Range<usize>,
}

impl<'a, 'i> Keys<'a, 'i> {
    /// Starts to read a section, and refuses keys that it does not have.
    pub(crate) fn new<T: Section>(
        table: &'a DeTable<'i>,
        span: Range<usize>,
        findings: &mut Findings,
    ) -> Self {
        for (key, _) in table.iter() {
            if !T::KEYS.contains(&key.get_ref().as_ref()) {
                let complaint = unknown_key(key.get_ref(), &T::shape(), findings);
                findings.add(Code::UnknownKey, &key.span(), complaint, None);
            }
        }
        Keys { table, title: T::TITLE, span }
    }

    /// The value of an optional key.
    pub(crate) fn optional<T: Field>(&self, name: &str, findings: &mut Findings) -> Option<Located<T>> {
        let value = self.table.get(name)?;
        Located::read(value.span(), findings, |findings| T::read(value, findings)).transpose()
    }

    /// The value of a required key.
    pub(crate) fn required<T: Field>(
        &self,
        name: &str,
        help: &str,
        findings: &mut Findings,
    ) -> Option<Located<T>> {
        if !self.table.contains_key(name) {
            refuse!(findings, MissingKey at &self.span,
                format!("`{}` needs the key `{name}`", findings.title(self.title)), help: help);
        }
        self.optional(name, findings)
    }

    /// The value of a key, or its default.
    pub(crate) fn or<T: Field>(&self, name: &str, default: T, findings: &mut Findings) -> Located<T> {
        let sound = !self.table.contains_key(name);
        self.optional(name, findings).unwrap_or(Located { value: default, span: self.span.clone(), sound })
    }

    /// A nested section; if it is absent, it counts as empty.
    pub(crate) fn section<T: Section>(&self, name: &str, findings: &mut Findings) -> Located<T> {
        match self.table.get(name).map(|value| (value, value.get_ref())) {
            Some((value, DeValue::Table(table))) => T::located(table, value.span(), findings),
            Some((value, _)) => {
                let title = findings.title(T::TITLE);
                wrong_type::<()>(value, "a table", format!("write a section `{title}`"), findings);
                // The value is no table, so its required keys are not reported as missing: the section is read as if it were
                // empty.
                Located { value: T::empty(), span: self.span.clone(), sound: false }
            }
            None => T::located(&DeTable::new(), self.span.clone(), findings),
        }
    }
}

/// The complaint about a key that the section does not have.
fn unknown_key(key: &str, shape: &SectionShape, findings: &Findings) -> Complaint {
    let title = findings.title(shape.title);
    let message = match title.starts_with("the ") {
        true => format!("the file has no section or key `{}`", quoted(key)),
        false => format!("`{title}` has no key `{}`", quoted(key)),
    };
    let known = nearest(key, shape.keys.iter().map(|known| known.name));
    let help = match (instead(shape.title, key), known, findings.section_with(key)) {
        (Some(instead), ..) => instead.to_owned(),
        (None, Some(known), _) => format!("did you mean `{known}`?"),
        (None, None, Some(section)) if section.starts_with("the ") => {
            format!("`{}` stands at the top of the file, outside of other sections", quoted(key))
        }
        (None, None, Some(section)) => format!("`{}` belongs to `{section}`", quoted(key)),
        (None, None, None) => format!("its keys are {}", in_backticks(shape.keys.iter().map(|key| key.name))),
    };
    Complaint::new(message, help)
}

/// Makes a section's struct, its reading and its description from one table of keys.
///
/// `key: Type, presence`, where presence is `required("help")`, `optional`, `default(value)`, or `section` for a nested table
/// that counts as empty if it is absent. `key as "word"` names a key whose word Rust reserves.
macro_rules! section {
    ($title:literal $(#[doc = $doc:literal])+ $name:ident {
        $( $(#[doc = $key_doc:literal])+ $key:ident $(as $word:literal)?: $kind:ty, $presence:ident $(($argument:expr))?; )+
    }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $( $(#[doc = $key_doc])+ pub(crate) $key: section!(@type $presence $kind), )+
        }

        impl crate::syntax::Section for $name {
            const TITLE: &'static str = $title;
            const KEYS: &'static [&'static str] = &[$( section!(@word $key $($word)?) ),+];

            fn shape() -> crate::syntax::SectionShape {
                crate::syntax::SectionShape {
                    title: Self::TITLE,
                    doc: concat!($($doc, "\n"),+),
                    keys: vec![$(
                        crate::syntax::KeyShape {
                            name: section!(@word $key $($word)?),
                            doc: concat!($($key_doc, "\n"),+),
                            presence: section!(@presence $presence $kind $(, $argument)?),
                            shape: section!(@shape $presence $kind),
                        },
                    )+],
                }
            }

            fn read_table(
                table: &toml::de::DeTable<'_>,
                span: std::ops::Range<usize>,
                findings: &mut crate::diagnostic::Findings,
            ) -> Self {
                let keys = crate::syntax::section::Keys::new::<Self>(table, span, findings);
                $( let $key = section!(@read keys, findings, (section!(@word $key $($word)?)), $presence $(, $argument)?); )+
                $name { $( $key ),+ }
            }
        }
    };
    (@word $key:ident) => { stringify!($key) };
    (@word $key:ident $word:literal) => { $word };
    (@type required $kind:ty) => { Option<crate::syntax::Located<$kind>> };
    (@type optional $kind:ty) => { Option<crate::syntax::Located<$kind>> };
    (@type default $kind:ty) => { crate::syntax::Located<$kind> };
    (@type section $kind:ty) => { crate::syntax::Located<$kind> };
    (@presence required $kind:ty, $help:expr) => { crate::syntax::Presence::Required };
    (@presence optional $kind:ty) => { crate::syntax::Presence::Optional };
    (@presence default $kind:ty, $default:expr) => {
        crate::syntax::Presence::Default(<$kind as crate::syntax::Field>::show(&$default))
    };
    (@presence section $kind:ty) => { crate::syntax::Presence::Implied };
    (@shape section $kind:ty) => { crate::syntax::Shape::Section(<$kind as crate::syntax::Section>::shape) };
    (@shape $presence:ident $kind:ty) => { <$kind as crate::syntax::Field>::shape() };
    (@read $keys:ident, $findings:ident, ($word:expr), required, $help:expr) => {
        $keys.required($word, $help, $findings)
    };
    (@read $keys:ident, $findings:ident, ($word:expr), optional) => { $keys.optional($word, $findings) };
    (@read $keys:ident, $findings:ident, ($word:expr), default, $default:expr) => {
        $keys.or($word, $default, $findings)
    };
    (@read $keys:ident, $findings:ident, ($word:expr), section) => { $keys.section($word, $findings) };
}
pub(crate) use section;
