//! The traits that types of values implement, and the value with its place.

use super::shape::{SectionShape, Shape};
use crate::diagnostic::{Findings, refuse};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
    /// Whether nothing in it was refused: what is absent is meant to be absent.
    pub(crate) sound: bool,
}

impl<T> Located<T> {
    /// A value that was read without a finding, or that is a default.
    pub(crate) fn sound(value: T, span: Range<usize>) -> Self {
        Located { value, span, sound: true }
    }

    /// A value under reading: sound if reading it finds nothing.
    pub(super) fn read(
        span: Range<usize>,
        findings: &mut Findings,
        read: impl FnOnce(&mut Findings) -> T,
    ) -> Self {
        let before = findings.refused();
        let value = read(findings);
        Located { value, span, sound: findings.refused() == before }
    }

    /// Where a key with a default is given, if it is: a default stands at its section.
    pub(crate) fn span_beside(&self, section: &Range<usize>) -> Option<&Range<usize>> {
        (self.span != *section).then_some(&self.span)
    }
}

impl<T> Located<Option<T>> {
    pub(super) fn transpose(self) -> Option<Located<T>> {
        let Located { value, span, sound } = self;
        value.map(|value| Located { value, span, sound })
    }
}

/// A key that may be absent.
pub(crate) trait OptionalKey {
    /// Where it is given, if it is.
    fn span(&self) -> Option<&Range<usize>>;
}

impl<T> OptionalKey for Option<Located<T>> {
    fn span(&self) -> Option<&Range<usize>> {
        self.as_ref().map(|given| &given.span)
    }
}

/// A type of value that a key may have.
pub(crate) trait Field: Sized {
    /// What may be written.
    fn shape() -> Shape;
    /// The value, or findings.
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self>;
    /// The value as it would be written; empty where there is no short form. Only defaults are shown.
    fn show(&self) -> String {
        String::new()
    }
}

/// A section: a table of known keys.
pub(crate) trait Section: Sized {
    /// The section's title in the reference and in messages.
    const TITLE: &'static str;
    /// The names of its keys. They are read for each section of a file, which may have tens of thousands.
    const KEYS: &'static [&'static str];
    fn shape() -> SectionShape;
    fn read_table(table: &DeTable<'_>, span: Range<usize>, findings: &mut Findings) -> Self;

    /// The section with its place.
    fn located(table: &DeTable<'_>, span: Range<usize>, findings: &mut Findings) -> Located<Self> {
        Located::read(span.clone(), findings, |findings| Self::read_table(table, span, findings))
    }

    /// The section without any of its keys.
    fn empty() -> Self {
        Self::read_table(&DeTable::new(), 0..0, &mut Findings::default())
    }
}

/// The type of a value, in words.
fn kind(value: &DeValue<'_>) -> &'static str {
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

/// Adds the finding that a value of another type belongs here.
pub(crate) fn wrong_type<T>(
    value: &Spanned<DeValue<'_>>,
    wanted: &str,
    help: impl Into<String>,
    findings: &mut Findings,
) -> Option<T> {
    refuse!(findings, WrongType at &value.span(),
        format!("this takes {wanted}, not {}", kind(value.get_ref())), help: help);
    None
}
