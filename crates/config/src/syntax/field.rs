//! The traits of value types, and the value with its place.

use super::shape::{SectionShape, Shape};
use crate::diagnostic::{Findings, refuse};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value and its place in the file.
#[derive(Clone, Debug)]
pub(crate) struct Located<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
    /// Whether nothing in the value was refused, so that an absent part is absent on purpose.
    pub(crate) sound: bool,
}

impl<T> Located<T> {
    /// A value that was read without a finding, or that is a default.
    pub(crate) fn sound(value: T, span: Range<usize>) -> Self {
        Located { value, span, sound: true }
    }

    /// A value that is being read: it is sound if reading it adds no finding.
    pub(super) fn read(
        span: Range<usize>,
        findings: &mut Findings,
        read: impl FnOnce(&mut Findings) -> T,
    ) -> Self {
        let before = findings.refused();
        let value = read(findings);
        Located { value, span, sound: findings.refused() == before }
    }

    /// The place of a key, if the file gives it; a default has its section's place.
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
    /// The key's place, if the file gives it.
    fn span(&self) -> Option<&Range<usize>>;
}

impl<T> OptionalKey for Option<Located<T>> {
    fn span(&self) -> Option<&Range<usize>> {
        self.as_ref().map(|given| &given.span)
    }
}

/// A type of value that a key may have.
pub(crate) trait Field: Sized {
    /// The forms that may be written.
    fn shape() -> Shape;
    /// Reads the value; `None` only if there is a finding.
    fn read(value: &Spanned<DeValue<'_>>, findings: &mut Findings) -> Option<Self>;
    /// The value as it would be written in a file; empty if it has no short form. Only defaults are shown.
    fn show(&self) -> String {
        String::new()
    }
}

/// A section: a table of known keys.
pub(crate) trait Section: Sized {
    /// The section's title in the reference and in messages.
    const TITLE: &'static str;
    /// The names of its keys. A constant, because they are needed for each section of a file, which may have tens of thousands.
    const KEYS: &'static [&'static str];
    fn shape() -> SectionShape;
    fn read_table(table: &DeTable<'_>, span: Range<usize>, findings: &mut Findings) -> Self;

    /// The section with its place.
    fn located(table: &DeTable<'_>, span: Range<usize>, findings: &mut Findings) -> Located<Self> {
        Located::read(span.clone(), findings, |findings| Self::read_table(table, span, findings))
    }

    /// The section with no key given.
    fn empty() -> Self {
        Self::read_table(&DeTable::new(), 0..0, &mut Findings::default())
    }
}

/// The type of a value in words, for messages.
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

/// Adds the finding that a value has the wrong type.
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
