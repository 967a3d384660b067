//! Values made of other values: lists, tables, and either of two forms.

use super::field::{Field, Located, Section, wrong_type};
use super::shape::Shape;
use super::text::{TextField, check_name};
use crate::diagnostic::{Code, Findings, refuse};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One value, or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct OneOrMany<T>(pub(crate) Vec<Located<T>>);

impl<T> OneOrMany<T> {
    /// A list with default values, which have no place in a file.
    pub(crate) fn new(values: impl Iterator<Item = T>) -> Self {
        OneOrMany(values.map(|value| Located::sound(value, 0..0)).collect())
    }
}

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
            refuse!(findings, BadValue at &value.span(),
                "an empty list says nothing", help: "name at least one, or leave the key out");
            return None;
        }
        Some(OneOrMany(list.iter().filter_map(|item| read(item, findings)).collect()))
    }

    fn show(&self) -> String {
        match self.0.as_slice() {
            [one] => one.value.show(),
            many => format!("[{}]", many.iter().map(|item| item.value.show()).collect::<Vec<_>>().join(", ")),
        }
    }
}

/// The values of a list that may be absent.
pub(crate) fn listed<T, V>(list: &Option<Located<OneOrMany<T>>>, value: impl Fn(&T) -> V) -> Vec<V> {
    list.iter().flat_map(|list| &list.value.0).map(|item| value(&item.value)).collect()
}

/// A simple value, or tables with more detail: `"exponential"` or `{ kind = "pareto", shape = 1.5, ratio = 100 }`, `"500/s"` or
/// `[{ from = "0s", rate = "500/s" }]`.
#[derive(Clone, Debug)]
pub(crate) enum Either<T, C> {
    /// The simple value.
    Simple(T),
    /// A [`Table`], or at least one section ([`Sections`]).
    Detailed(C),
}

impl<T: Field, C: Field> Field for Either<T, C> {
    fn shape() -> Shape {
        Shape::Either(Box::new(T::shape()), Box::new(C::shape()))
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        match (C::shape(), value.get_ref()) {
            (Shape::Sections(_), DeValue::Array(list)) if list.is_empty() => {
                refuse!(findings, BadValue at &value.span(),
                    "an empty list says nothing", help: "name at least one phase");
                None
            }
            (Shape::Sections(_), DeValue::Array(_)) | (Shape::Section(_), DeValue::Table(_)) => {
                C::read(value, findings).map(Either::Detailed)
            }
            _ => T::read(value, findings).map(Either::Simple),
        }
    }

    fn show(&self) -> String {
        match self {
            Either::Simple(value) => value.show(),
            Either::Detailed(_) => String::new(),
        }
    }
}

/// The value as a table; otherwise a finding.
fn table<'a, 'i>(
    value: &'a Spanned<DeValue<'i>>,
    wanted: &str,
    help: String,
    findings: &mut Findings,
) -> Option<&'a DeTable<'i>> {
    match value.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => wrong_type(value, wanted, help, findings),
    }
}

/// Sections under names of the user's choice, in the order of the file: `[upstream.NAME]`.
#[derive(Clone, Debug)]
pub(crate) struct NamedSections<T>(pub(crate) Vec<(Located<String>, Located<T>)>);

impl<T: Section> Field for NamedSections<T> {
    fn shape() -> Shape {
        Shape::NamedSections(T::shape)
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let title = T::TITLE;
        let help = format!("write a section `{title}`");
        let mut sections = Vec::new();
        for (key, value) in table(value, "named sections", help, findings)?.iter() {
            let help = format!("write a section `{title}`, with a name of your choice");
            let Some(inner) = table(value, "a section with a name", help, findings) else { continue };
            if let Err(complaint) = check_name(key.get_ref()) {
                findings.add(Code::BadValue, &key.span(), complaint, None);
            }
            let name = Located::sound(key.get_ref().to_string(), key.span());
            let section =
                findings.under_name(key.get_ref(), |findings| T::located(inner, key.span(), findings));
            sections.push((name, section));
        }
        sections.sort_by_key(|(name, _)| name.span.start);
        Some(NamedSections(sections))
    }
}

/// A list of sections: `[[site]]`.
#[derive(Clone, Debug)]
pub(crate) struct Sections<T>(pub(crate) Vec<Located<T>>);

impl<T: Section> Field for Sections<T> {
    fn shape() -> Shape {
        Shape::Sections(T::shape)
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let title = T::TITLE;
        // A section list without a header of its own is written as an inline list.
        let help = || match title.starts_with('[') {
            true => format!("write a section `{title}`"),
            false => "write a list of tables: `[{ ... }]`".to_owned(),
        };
        let DeValue::Array(list) = value.get_ref() else {
            return wrong_type(value, "a list of tables", help(), findings);
        };
        let mut sections = Vec::new();
        for item in list.iter() {
            if let Some(section) = table(item, "a table", help(), findings) {
                sections.push(T::located(section, item.span(), findings));
            }
        }
        Some(Sections(sections))
    }
}

/// A section as the value of a key that may be absent.
#[derive(Clone, Debug)]
pub(crate) struct Table<T>(pub(crate) T);

impl<T: Section> Field for Table<T> {
    fn shape() -> Shape {
        Shape::Section(T::shape)
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let help = format!("its keys are those of `{}`", T::TITLE);
        let keys = table(value, "a table", help, findings)?;
        Some(Table(T::read_table(keys, value.span(), findings)))
    }
}

/// Pairs of a name that the user chooses and a value: `{ x-plan = "gold*" }`.
#[derive(Clone, Debug)]
pub(crate) struct Pairs<N, T>(pub(crate) Vec<(Located<N>, Located<T>)>);

impl<N: TextField, T: Field> Field for Pairs<N, T> {
    fn shape() -> Shape {
        Shape::Pairs { name: N::SHAPE.what, value: Box::new(T::shape()) }
    }

    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self> {
        let help = format!("write `{{ {} = ... }}`", N::SHAPE.example);
        let mut pairs = Vec::new();
        for (key, value) in table(value, "a table of names and values", help, findings)?.iter() {
            match N::parse(key.get_ref()) {
                Ok(name) => {
                    let read = T::read(value, findings).map(|read| Located::sound(read, value.span()));
                    pairs.extend(read.map(|read| (Located::sound(name, key.span()), read)));
                }
                Err((code, complaint)) => findings.add(code, &key.span(), complaint, None),
            }
        }
        pairs.sort_by_key(|(name, _)| name.span.start);
        Some(Pairs(pairs))
    }
}
