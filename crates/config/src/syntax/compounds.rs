//! Values made of other values: lists, tables, and either of two forms.

use super::field::{Field, Located, Section, wrong_type};
use super::shape::Shape;
use super::text::{TextField, check_name};
use crate::diagnostic::{Code, Findings, refuse};
use toml::Spanned;
use toml::de::DeValue;

/// One value, or a list of them.
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
            refuse!(findings, BadValue at &value.span(),
                "an empty list says nothing", help: "name at least one, or leave the key out");
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

/// The values of a list that may be absent.
pub(crate) fn listed<T, V>(list: &Option<Located<OneOrMany<T>>>, value: impl Fn(&T) -> V) -> Vec<V> {
    list.iter().flat_map(|list| &list.value.0).map(|item| value(&item.value)).collect()
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
                refuse!(findings, BadValue at &value.span(),
                    "an empty list says nothing", help: "name at least one phase");
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
            if let Err(complaint) = check_name(key.get_ref()) {
                findings.add(Code::BadValue, &key.span(), complaint, None);
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

impl<N: TextField, T: Field> Field for Pairs<N, T> {
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
                    findings.add(code, &key.span(), complaint, None);
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
