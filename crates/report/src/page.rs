//! What a page holds, as plain data. How it looks is in `html.rs`.

use crate::{Chart, Table};

/// A report: what it is about, the facts to know first, and the sections with their charts and tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What was run; also the title of the browser's tab.
    pub title: String,
    /// One line on how: workload, seed, when.
    pub subtitle: String,
    /// What is assumed, a sentence each without its point; it stands before all figures, because they hang on it.
    pub assumptions: Vec<String>,
    /// The few figures that answer the question, first on the page.
    pub lead: Vec<Fact>,
    /// The rest, in order.
    pub sections: Vec<Section>,
    /// The command, version and seed that make the page again.
    pub footer: String,
}

/// A figure with its name: one tile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    /// What was measured.
    pub name: String,
    /// The figure, formatted by the caller.
    pub value: String,
    /// Its unit, or empty.
    pub unit: String,
    /// The value to compare the figure with, or empty: `set point 0.70`.
    pub note: String,
    /// Whether the promise was kept.
    pub verdict: Verdict,
}

/// Whether a figure is as promised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// The figures are as promised.
    Good,
    /// Not as promised.
    Bad,
    /// Nothing was promised.
    #[default]
    Neutral,
}

/// A heading with text, charts and tables under it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The section's heading.
    pub title: String,
    /// What is to be seen here; a blank line parts paragraphs.
    pub text: String,
    /// Charts and tables, in order.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A chart over the whole width.
    Chart(Chart),
    /// Small multiples: one quantity in several runs or classes, side by side **at one scale**, so that heights
    /// compare; on a narrow screen one below the other.
    Multiples(Vec<Chart>),
    /// A table with its columns.
    Table(Table),
    /// Figures with their names, under a heading: those of one run beside those of others.
    Tiles(String, Vec<Fact>),
    /// Pictures side by side, to be compared.
    Pictures(Vec<Picture>),
    /// A remark on what is shown above.
    Note(String),
}

/// A picture, in the page itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// What the picture shows: the text below it, and its alternative text.
    pub caption: String,
    /// The bytes of a PNG, JPEG or GIF file. A picture of any other kind is left out.
    pub bytes: Vec<u8>,
}

impl Fact {
    /// A fact without unit, note or verdict.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), ..Self::default() }
    }

    /// With this unit.
    #[must_use]
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), ..self }
    }

    /// With what it is to be compared with.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// With this verdict.
    #[must_use]
    pub fn verdict(self, verdict: Verdict) -> Self {
        Self { verdict, ..self }
    }
}

impl Block {
    /// Whether nothing is to be seen in it: no row, no line, no remark.
    pub fn is_empty(&self) -> bool {
        match self {
            Block::Chart(chart) => chart.is_empty(),
            Block::Multiples(charts) => charts.iter().all(Chart::is_empty),
            Block::Table(table) => table.rows.is_empty(),
            Block::Tiles(_, facts) => facts.is_empty(),
            Block::Pictures(pictures) => pictures.is_empty(),
            Block::Note(_) => false,
        }
    }
}

impl Section {
    /// An empty section.
    pub fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), ..Self::default() }
    }

    /// With this text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }

    /// With one more block.
    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// With one more chart over the whole width.
    #[must_use]
    pub fn chart(self, chart: Chart) -> Self {
        self.block(Block::Chart(chart))
    }

    /// With one more table.
    #[must_use]
    pub fn table(self, table: Table) -> Self {
        self.block(Block::Table(table))
    }

    /// With a remark.
    #[must_use]
    pub fn note(self, text: impl Into<String>) -> Self {
        self.block(Block::Note(text.into()))
    }
}
