//! How values are read: one trait that a type of value implements, and one macro that makes a section's struct, its
//! reading and its description from the same lines.
//!
//! Why not serde: its errors stop at the first, know nothing of the other keys, and lose the span of what is absent;
//! `flatten` and `untagged` lose it altogether. Why not a table of strings beside the structs: they drift.

use crate::diagnostic::{Code, Complaint, Findings, quoted};
use crate::shape::{KeyShape, SectionShape, Shape};
use crate::suggest::nearest;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
    /// Nothing in it was refused: what is absent is meant to be absent.
    pub(crate) sound: bool,
}

impl<T> Located<T> {
    /// A value that was read without a finding, or that nobody wrote.
    pub(crate) fn sound(value: T, span: Range<usize>) -> Self {
        Located { value, span, sound: true }
    }

    /// A value under reading: sound if reading it finds nothing.
    fn read(span: Range<usize>, findings: &mut Findings, read: impl FnOnce(&mut Findings) -> T) -> Self {
        let before = findings.refused();
        let value = read(findings);
        Located { value, span, sound: findings.refused() == before }
    }
}

impl<T> Located<Option<T>> {
    fn transpose(self) -> Option<Located<T>> {
        let Located { value, span, sound } = self;
        value.map(|value| Located { value, span, sound })
    }
}

/// A type of value that a key may have.
pub(crate) trait Field: Sized {
    /// What may be written.
    fn shape() -> Shape;
    /// The value, or findings.
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self>;
    /// As it would be written; empty for what has no short form. Only defaults are shown.
    fn show(&self) -> String {
        String::new()
    }
}

/// A section: a table of known keys.
pub(crate) trait Section: Sized {
    fn shape() -> SectionShape;
    fn read_table(table: &DeTable<'_>, span: Range<usize>, findings: &mut Findings) -> Self;
}

/// What a value is, in words.
pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with decimals",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Says that something else belongs here.
pub(crate) fn wrong_type(value: &Spanned<DeValue<'_>>, wanted: &str, help: String, findings: &mut Findings) {
    let message = format!("this takes {wanted}, not {}", kind(value.get_ref()));
    findings.add(Code::WrongType, &value.span(), Complaint::new(message, help));
}

/// A table under reading: takes each key once.
pub(crate) struct Keys<'a, 'i> {
    table: &'a DeTable<'i>,
    title: &'static str,
    span: Range<usize>,
}

impl<'a, 'i> Keys<'a, 'i> {
    /// Starts reading, and refuses the keys that the section does not have.
    pub(crate) fn new(
        table: &'a DeTable<'i>,
        span: Range<usize>,
        shape: &SectionShape,
        findings: &mut Findings,
    ) -> Self {
        for (key, _) in table.iter() {
            if shape.keys.iter().all(|known| known.name != key.get_ref()) {
                let complaint = unknown_key(key.get_ref(), shape, findings);
                findings.add(Code::UnknownKey, &key.span(), complaint);
            }
        }
        Keys { table, title: shape.title, span }
    }

    /// The value of a key that may be absent.
    pub(crate) fn optional<T: Field>(&self, name: &str, findings: &mut Findings) -> Option<Located<T>> {
        let value = self.table.get(name)?;
        Located::read(value.span(), findings, |findings| T::read(value, findings)).transpose()
    }

    /// The value of a key that must be there.
    pub(crate) fn required<T: Field>(
        &self,
        name: &str,
        help: &str,
        findings: &mut Findings,
    ) -> Option<Located<T>> {
        if !self.table.contains_key(name) {
            let message = format!("`{}` needs the key `{name}`", findings.title(self.title));
            findings.add(Code::MissingKey, &self.span, Complaint::new(message, help));
        }
        self.optional(name, findings)
    }

    /// The value of a key, or what holds without it.
    pub(crate) fn or<T: Field>(&self, name: &str, default: T, findings: &mut Findings) -> Located<T> {
        let sound = !self.table.contains_key(name);
        self.optional(name, findings).unwrap_or(Located { value: default, span: self.span.clone(), sound })
    }

    /// A section that counts as empty where it is absent.
    pub(crate) fn section<T: Section>(&self, name: &str, findings: &mut Findings) -> Located<T> {
        let (span, empty) = (self.span.clone(), DeTable::new());
        match self.table.get(name) {
            Some(value) => match value.get_ref() {
                DeValue::Table(table) => Located::read(value.span(), findings, |findings| {
                    T::read_table(table, value.span(), findings)
                }),
                _ => {
                    let title = findings.title(T::shape().title);
                    wrong_type(value, "a table", format!("write a section `{title}`"), findings);
                    // Its required keys are not what is wrong: read it for the defaults only.
                    Located::sound(T::read_table(&empty, span.clone(), &mut Findings::default()), span)
                }
            },
            None => Located::read(span.clone(), findings, |findings| T::read_table(&empty, span, findings)),
        }
    }
}

/// What to say of a key that the section does not have.
fn unknown_key(key: &str, shape: &SectionShape, findings: &Findings) -> Complaint {
    let title = findings.title(shape.title);
    let message = match title.starts_with("the ") {
        true => format!("the file has no section or key `{}`", quoted(key)),
        false => format!("`{title}` has no key `{}`", quoted(key)),
    };
    let help = match nearest(key, shape.keys.iter().map(|known| known.name)) {
        Some(known) => format!("did you mean `{known}`?"),
        None => match findings.section_with(key) {
            Some(section) => format!("`{}` belongs to `{section}`", quoted(key)),
            None => {
                let known: Vec<String> = shape.keys.iter().map(|key| format!("`{}`", key.name)).collect();
                format!("its keys are {}", known.join(", "))
            }
        },
    };
    Complaint::new(message, help)
}

/// One, or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<Located<T>>);

impl<T: Field> Field for OneOrMany<T> {
    fn shape() -> Shape {
        Shape::OneOrMany(Box::new(T::shape()))
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let read = |value: &Spanned<DeValue<'_>>, findings: &mut Findings| {
            Located::read(value.span(), findings, |findings| T::read(value, findings)).transpose()
        };
        let DeValue::Array(list) = value.get_ref() else {
            return read(value, findings).map(|one| OneOrMany(vec![one]));
        };
        if list.is_empty() {
            let complaint =
                Complaint::new("an empty list says nothing", "name at least one, or leave the key out");
            findings.add(Code::BadValue, &value.span(), complaint);
            return None;
        }
        Some(OneOrMany(list.iter().filter_map(|item| read(item, findings)).collect()))
    }

    fn show(&self) -> String {
        match self.0.as_slice() {
            [one] => one.value.show(),
            many => {
                let shown: Vec<String> = many.iter().map(|item| item.value.show()).collect();
                format!("[{}]", shown.join(", "))
            }
        }
    }
}

/// One value, or a table of keys: `"exponential"`, `{ kind = "pareto", shape = 1.5, ratio = 100 }`.
#[derive(Clone, Debug)]
pub(crate) enum Brief<T, S> {
    /// The value alone.
    Value(T),
    /// The table.
    Table(S),
}

impl<T: Field, S: Section> Field for Brief<T, S> {
    fn shape() -> Shape {
        Shape::Either(Box::new(T::shape()), Box::new(Shape::Section(S::shape)))
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(table) => Some(Brief::Table(S::read_table(table, value.span(), findings))),
            _ => T::read(value, findings).map(Brief::Value),
        }
    }

    fn show(&self) -> String {
        match self {
            Brief::Value(value) => value.show(),
            Brief::Table(_) => String::new(),
        }
    }
}

/// One value for all time, or a list of tables: `"500/s"`, `[{ from = "0s", rate = "500/s" }]`.
#[derive(Clone, Debug)]
pub(crate) enum Course<T, S> {
    /// The value.
    Steady(T),
    /// The tables, in the order of the file; at least one.
    Phases(Vec<Located<S>>),
}

impl<T: Field, S: Section> Field for Course<T, S> {
    fn shape() -> Shape {
        Shape::Either(Box::new(T::shape()), Box::new(Shape::Many(S::shape)))
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(list) if list.is_empty() => {
                let complaint = Complaint::new("an empty list says nothing", "name at least one phase");
                findings.add(Code::BadValue, &value.span(), complaint);
                None
            }
            DeValue::Array(_) => Many::<S>::read(value, findings).map(|phases| Course::Phases(phases.0)),
            _ => T::read(value, findings).map(Course::Steady),
        }
    }
}

/// Sections under names of the user's choice, in the order of the file.
#[derive(Clone, Debug)]
pub(crate) struct Named<T>(pub(crate) Vec<(Located<String>, Located<T>)>);

impl<T: Section> Field for Named<T> {
    fn shape() -> Shape {
        Shape::Named(T::shape)
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let title = T::shape().title;
        let DeValue::Table(table) = value.get_ref() else {
            wrong_type(value, "named sections", format!("write a section `{title}`"), findings);
            return None;
        };
        let mut sections = Vec::new();
        for (key, value) in table.iter() {
            let DeValue::Table(inner) = value.get_ref() else {
                let help = format!("write a section `{title}`, with a name of your choice");
                wrong_type(value, "a section with a name", help, findings);
                continue;
            };
            if let Err(complaint) = crate::text::check_name(key.get_ref()) {
                findings.add(Code::BadValue, &key.span(), complaint);
            }
            let name = Located::sound(key.get_ref().to_string(), key.span());
            let section = Located::read(key.span(), findings, |findings| {
                findings.under_name(key.get_ref(), |findings| T::read_table(inner, key.span(), findings))
            });
            sections.push((name, section));
        }
        sections.sort_by_key(|(name, _)| name.span.start);
        Some(Named(sections))
    }
}

/// A list of sections: `[[site]]`.
#[derive(Clone, Debug)]
pub(crate) struct Many<T>(pub(crate) Vec<Located<T>>);

impl<T: Section> Field for Many<T> {
    fn shape() -> Shape {
        Shape::Many(T::shape)
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let title = T::shape().title;
        // Lists of sections without a header of their own are written in line.
        let help = || match title.starts_with('[') {
            true => format!("write a section `{title}`"),
            false => "write a list of tables: `[{ ... }]`".to_owned(),
        };
        let DeValue::Array(list) = value.get_ref() else {
            wrong_type(value, "a list of tables", help(), findings);
            return None;
        };
        let mut sections = Vec::new();
        for item in list.iter() {
            match item.get_ref() {
                DeValue::Table(table) => {
                    sections.push(Located::read(item.span(), findings, |findings| {
                        T::read_table(table, item.span(), findings)
                    }));
                }
                _ => wrong_type(item, "a table", help(), findings),
            }
        }
        Some(Many(sections))
    }
}

/// A section as the value of a key that may be absent.
#[derive(Clone, Debug)]
pub(crate) struct Within<T>(pub(crate) T);

impl<T: Section> Field for Within<T> {
    fn shape() -> Shape {
        Shape::Section(T::shape)
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(table) => Some(Within(T::read_table(table, value.span(), findings))),
            _ => {
                wrong_type(
                    value,
                    "a table",
                    format!("its keys are those of `{}`", T::shape().title),
                    findings,
                );
                None
            }
        }
    }
}

/// Names of the user's choice and a value for each: `{ x-plan = "gold*" }`.
#[derive(Clone, Debug)]
pub(crate) struct Pairs<N, T>(pub(crate) Vec<(Located<N>, Located<T>)>);

impl<N: crate::text::TextField, T: Field> Field for Pairs<N, T> {
    fn shape() -> Shape {
        Shape::Pairs { name: N::SHAPE.what, value: Box::new(T::shape()) }
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let DeValue::Table(table) = value.get_ref() else {
            let help = format!("write `{{ {} = ... }}`", N::SHAPE.example);
            wrong_type(value, "a table of names and values", help, findings);
            return None;
        };
        let mut pairs = Vec::new();
        for (key, value) in table.iter() {
            let name = match N::parse(key.get_ref()) {
                Ok(name) => name,
                Err((code, complaint)) => {
                    findings.add(code, &key.span(), complaint);
                    continue;
                }
            };
            if let Some(read) = T::read(value, findings) {
                let value = Located::sound(read, value.span());
                pairs.push((Located::sound(name, key.span()), value));
            }
        }
        pairs.sort_by_key(|(name, _)| name.span.start);
        Some(Pairs(pairs))
    }
}

/// The description of one key.
pub(crate) fn key_shape(
    name: &'static str,
    doc: &'static str,
    described: (crate::shape::Presence, Shape),
) -> KeyShape {
    KeyShape { name, doc, presence: described.0, shape: described.1 }
}

/// Makes a section's struct, its reading and its description from one table of keys.
///
/// `key: Type, presence` where presence is one of `required("help")`, `optional`, `default(value)`, and `section`
/// for a nested table that counts as empty where it is absent. `key as "word"` names a key that Rust reserves.
macro_rules! section {
    ($title:literal $(#[doc = $doc:literal])+ $name:ident {
        $( $(#[doc = $key_doc:literal])+ $key:ident $(as $word:literal)?: $kind:ty, $presence:ident $(($argument:expr))?; )+
    }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug)]
        pub(crate) struct $name {
            $( $(#[doc = $key_doc])+ pub(crate) $key: section!(@type $presence $kind), )+
        }

        impl crate::field::Section for $name {
            fn shape() -> crate::shape::SectionShape {
                crate::shape::SectionShape {
                    title: $title,
                    doc: concat!($($doc, "\n"),+),
                    keys: vec![$(
                        crate::field::key_shape(
                            section!(@word $key $($word)?),
                            concat!($($key_doc, "\n"),+),
                            section!(@describe $presence $kind $(, $argument)?),
                        ),
                    )+],
                }
            }

            fn read_table(
                table: &toml::de::DeTable<'_>,
                span: std::ops::Range<usize>,
                findings: &mut crate::diagnostic::Findings,
            ) -> Self {
                let keys = crate::field::Keys::new(table, span, &Self::shape(), findings);
                $( let $key = section!(@read keys, findings, (section!(@word $key $($word)?)), $presence $(, $argument)?); )+
                $name { $( $key ),+ }
            }
        }
    };
    (@word $key:ident) => { stringify!($key) };
    (@word $key:ident $word:literal) => { $word };
    (@type required $kind:ty) => { Option<crate::field::Located<$kind>> };
    (@type optional $kind:ty) => { Option<crate::field::Located<$kind>> };
    (@type default $kind:ty) => { crate::field::Located<$kind> };
    (@type section $kind:ty) => { crate::field::Located<$kind> };
    (@describe required $kind:ty, $help:expr) => {
        (crate::shape::Presence::Required, <$kind as crate::field::Field>::shape())
    };
    (@describe optional $kind:ty) => {
        (crate::shape::Presence::Optional, <$kind as crate::field::Field>::shape())
    };
    (@describe default $kind:ty, $default:expr) => {{
        let default: $kind = $default;
        let shown = crate::field::Field::show(&default);
        (crate::shape::Presence::Default(shown), <$kind as crate::field::Field>::shape())
    }};
    (@describe section $kind:ty) => {
        (
            crate::shape::Presence::Implied,
            crate::shape::Shape::Section(<$kind as crate::field::Section>::shape),
        )
    };
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
