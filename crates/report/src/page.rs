//! The content of a page as plain data. `html.rs` writes it as HTML.

use crate::{Chart, Table};

/// A report: what it is about, the facts to know first, and the sections with their charts and tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The name of what was run; also the title of the browser's tab.
    pub title: String,
    /// One line on how it was run: workload, seed, time.
    pub subtitle: String,
    /// Assumptions, one sentence each without a full stop; they come before all figures, because the figures depend on them.
    pub assumptions: Vec<String>,
    /// The main figures, first on the page.
    pub lead: Vec<Fact>,
    /// The sections after the lead, in order.
    pub sections: Vec<Section>,
    /// The command, version and seed that make the page again.
    pub footer: String,
}

/// A figure with its name, shown as a tile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fact {
    /// The name of the figure.
    pub name: String,
    /// The figure, formatted by the caller.
    pub value: String,
    /// The unit, or empty.
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
    /// The figures are not as promised.
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
    /// A text on what the section shows; a blank line separates paragraphs.
    pub text: String,
    /// Charts and tables, in order.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A chart over the whole width.
    Chart(Chart),
    /// Small multiples: one quantity in several runs or classes, side by side **at one scale**, so that heights can be
    /// compared; on a narrow screen, one below the other.
    Multiples(Vec<Chart>),
    /// A table with its columns.
    Table(Table),
    /// The figures of one run under a heading, to be compared with those of other runs.
    Tiles(String, Vec<Fact>),
    /// Pictures side by side, to be compared.
    Pictures(Vec<Picture>),
    /// A remark on what is shown above.
    Note(String),
}

/// A picture that is embedded in the page.
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

    /// The fact with this unit.
    #[must_use]
    pub fn unit(self, unit: impl Into<String>) -> Self {
        Self { unit: unit.into(), ..self }
    }

    /// The fact with a value to compare it with.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self { note: note.into(), ..self }
    }

    /// The fact with this verdict.
    #[must_use]
    pub fn verdict(self, verdict: Verdict) -> Self {
        Self { verdict, ..self }
    }
}

impl Block {
    /// Whether the block has nothing to show: no row, no line, no remark.
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

    /// The section with this text.
    #[must_use]
    pub fn text(self, text: impl Into<String>) -> Self {
        Self { text: text.into(), ..self }
    }

    /// The section with one more block.
    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }

    /// The section with one more chart over the whole width.
    #[must_use]
    pub fn chart(self, chart: Chart) -> Self {
        self.block(Block::Chart(chart))
    }

    /// The section with one more table.
    #[must_use]
    pub fn table(self, table: Table) -> Self {
        self.block(Block::Table(table))
    }

    /// The section with a remark.
    #[must_use]
    pub fn note(self, text: impl Into<String>) -> Self {
        self.block(Block::Note(text.into()))
    }
}
