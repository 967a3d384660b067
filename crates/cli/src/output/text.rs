//! Text on stdout: pages without their charts, and tables.

use super::failure::Failure;
use super::units::{Unit, printable};
use plimsoll_report::{Block, Cell, ColumnKind, Page, Table};
use std::fmt;
use std::io::{self, Write};

/// Prints `text` and a line feed. If the reader has left (`plimsoll check FILE | head -1`), that is no failure.
pub(crate) fn print(text: impl fmt::Display) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// A page's headline, tables and remarks, a blank line between them.
pub(crate) fn page(page: &Page) -> String {
    // Assumptions come before all figures, because the figures depend on them.
    let assumed: String = page.assumptions.iter().map(|what| format!("assumption: {what}.\n")).collect();
    let mut parts = vec![assumed + &page.subtitle + "\n"];
    let mut notes = String::new();
    for block in page.sections.iter().flat_map(|section| &section.blocks) {
        match block {
            Block::Table(table) if !table.rows.is_empty() => parts.push(self::table(table)),
            Block::Note(text) => notes += &format!("note: {text}\n"),
            _ => {}
        }
    }
    parts.extend((!notes.is_empty()).then_some(notes));
    parts.join("\n").trim_end().to_owned()
}

/// Columns are as wide as their widest cell, two blanks apart, with numbers to the right. Without column names there is no
/// heading.
pub(crate) fn table(table: &Table) -> String {
    let brief = table.brief.unwrap_or(usize::MAX);
    let head: Vec<String> = table.columns.iter().map(|column| column.name.clone()).collect();
    let mut rows: Vec<Vec<String>> = Vec::new();
    rows.extend(head.iter().any(|name| !name.is_empty()).then_some(head));
    for row in table.rows.iter().take(brief) {
        rows.push(row.iter().zip(&table.columns).map(|(cell, column)| shown(cell, column.kind)).collect());
    }
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for ((cell, column), width) in row.iter().zip(&table.columns).zip(&widths) {
            line += &match column.kind {
                ColumnKind::Number | ColumnKind::Bars => format!("{cell:>width$}  "),
                ColumnKind::Text | ColumnKind::Code => format!("{cell:width$}  "),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

fn shown(cell: &Cell, kind: ColumnKind) -> String {
    match (cell, kind) {
        (Cell::Empty, _) => String::new(),
        (Cell::Text(text), ColumnKind::Code) => printable(text),
        (Cell::Text(text), _) => text.clone(),
        (Cell::Number(number), _) => Unit::Plain(0).show(*number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::Column;

    #[test]
    fn columns_stand_under_each_other() {
        let columns = [Column::text("name"), Column::number("n"), Column::text("what")];
        let table = Table::new("", columns).row(["a".into(), 1200.0.into(), "–".into()]);
        assert_eq!(super::table(&table), "name      n  what\na     1,200  –\n");
    }
}
