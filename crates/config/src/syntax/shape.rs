//! The allowed content of a file, as data, from which reading, reference, JSON Schema and suggestions are made.
//!
//! Shapes are made from the field types themselves (see [`crate::syntax::field`]), so the documentation agrees with the
//! reading.

use std::ops::Bound;

/// The allowed form of a value.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Boolean,
    /// A whole number from `min` to `max`.
    Whole {
        min: u64,
        max: u64,
    },
    /// A number from `from` on (or above it), and at most `to`.
    Number {
        from: Bound<f64>,
        to: f64,
    },
    /// Text of a certain form.
    Text(TextShape),
    /// A word of a list, each with its meaning.
    Word(&'static [(&'static str, &'static str)]),
    /// Either of two shapes.
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
    /// The sections within the shape.
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
    /// The name of the form with its article, such as `a duration`.
    pub(crate) what: &'static str,
    /// A valid example.
    pub(crate) example: &'static str,
    /// The regular expression of the form for the JSON Schema, if there is a useful one.
    pub(crate) pattern: Option<&'static str>,
    /// The unit to propose if a bare number is given.
    pub(crate) unit: Option<&'static str>,
}

/// A table of known keys.
#[derive(Clone, Debug)]
pub(crate) struct SectionShape {
    /// The title as it stands in a file: `[upstream.NAME]`.
    pub(crate) title: &'static str,
    /// The description of the section.
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
    /// Whether the key is required; a section is required if one of its keys is.
    pub(crate) fn is_needed(&self) -> bool {
        match (&self.presence, &self.shape) {
            (Presence::Required, _) => true,
            (Presence::Implied, Shape::Section(section)) => section().keys.iter().any(KeyShape::is_needed),
            _ => false,
        }
    }
}

/// Whether a key is required, and what applies if it is absent.
#[derive(Clone, Debug)]
pub(crate) enum Presence {
    Required,
    Optional,
    /// A section that counts as empty if it is absent.
    Implied,
    /// The default as it would be written.
    Default(String),
}

/// Every section of the file, each before its nested ones, in the order of the table.
pub(crate) fn sections(root: SectionShape) -> Vec<SectionShape> {
    let mut found = Vec::new();
    collect(root, &mut found);
    found
}

fn collect(section: SectionShape, found: &mut Vec<SectionShape>) {
    // Two keys may have the same section: a class's `match` and a site's `exempt`.
    if found.iter().any(|known| known.title == section.title) {
        return;
    }
    let inner: Vec<SectionShape> = section.keys.iter().flat_map(|key| key.shape.sections()).collect();
    found.push(section);
    for section in inner {
        collect(section, found);
    }
}
