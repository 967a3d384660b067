//! What a file may hold, as data: read by the walk, the reference, the JSON Schema and the suggestions alike.
//!
//! Shapes are made from the field types themselves (see [`crate::syntax::field`]), so what is documented is what is read.

use std::ops::Bound;

/// What a value may be.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Boolean,
    /// A whole number from `min` to `max`.
    Whole {
        min: u64,
        max: u64,
    },
    /// A number from `from` on, or above it, at most `to`.
    Number {
        from: Bound<f64>,
        to: f64,
    },
    /// Text of a certain form.
    Text(TextShape),
    /// A word of a list, each with its meaning.
    Word(&'static [(&'static str, &'static str)]),
    /// Either of two.
    Either(Box<Shape>, Box<Shape>),
    /// One value, or a list of them.
    OneOrMany(Box<Shape>),
    /// A table from names that the user chooses to values.
    Pairs {
        name: &'static str,
        value: Box<Shape>,
    },
    /// A table of known keys.
    Section(fn() -> SectionShape),
    /// A table from names that the user chooses to sections: `[upstream.NAME]`.
    NamedSections(fn() -> SectionShape),
    /// A list of sections: `[[site]]`.
    Sections(fn() -> SectionShape),
}

impl Shape {
    /// The sections within.
    pub(crate) fn sections(&self) -> Vec<SectionShape> {
        match self {
            Shape::Section(section) | Shape::NamedSections(section) | Shape::Sections(section) => {
                vec![section()]
            }
            Shape::OneOrMany(inner) => inner.sections(),
            Shape::Either(one, other) => one.sections().into_iter().chain(other.sections()).collect(),
            _ => Vec::new(),
        }
    }
}

/// A form of text.
#[derive(Clone, Debug)]
pub(crate) struct TextShape {
    /// `a duration`.
    pub(crate) what: &'static str,
    /// An example that is right.
    pub(crate) example: &'static str,
    /// For the JSON Schema: the regular expression of the form, where there is one worth having.
    pub(crate) pattern: Option<&'static str>,
    /// The unit to propose where a bare number stands.
    pub(crate) unit: Option<&'static str>,
}

/// A table of known keys.
#[derive(Clone, Debug)]
pub(crate) struct SectionShape {
    /// The title as it stands in a file: `[upstream.NAME]`.
    pub(crate) title: &'static str,
    /// What it is about.
    pub(crate) doc: &'static str,
    pub(crate) keys: Vec<KeyShape>,
}

/// A key of a section.
#[derive(Clone, Debug)]
pub(crate) struct KeyShape {
    pub(crate) name: &'static str,
    pub(crate) doc: &'static str,
    pub(crate) presence: Presence,
    pub(crate) shape: Shape,
}

impl KeyShape {
    /// Whether the key must be there; a section must if it has a key that must.
    pub(crate) fn is_needed(&self) -> bool {
        match (&self.presence, &self.shape) {
            (Presence::Required, _) => true,
            (Presence::Implied, Shape::Section(section)) => section().keys.iter().any(KeyShape::is_needed),
            _ => false,
        }
    }
}

/// Whether a key must be there, and what holds if it is not.
#[derive(Clone, Debug)]
pub(crate) enum Presence {
    Required,
    Optional,
    /// A section that counts as empty where it is absent.
    Implied,
    /// The default as it would be written.
    Default(String),
}

/// Every section of the file, each before those within it, in the order of the table.
pub(crate) fn sections(root: SectionShape) -> Vec<SectionShape> {
    let mut found = Vec::new();
    collect(root, &mut found);
    found
}

fn collect(section: SectionShape, found: &mut Vec<SectionShape>) {
    // Two keys may hold the same section: a class's match and a site's exempt.
    if found.iter().any(|known| known.title == section.title) {
        return;
    }
    let inner: Vec<SectionShape> = section.keys.iter().flat_map(|key| key.shape.sections()).collect();
    found.push(section);
    for section in inner {
        collect(section, found);
    }
}
