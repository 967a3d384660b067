//! A table: text is left-aligned, whole numbers are right-aligned, and some columns have bars.

use crate::number::{grouped, push_fixed};
use crate::text::Escaped;
use std::fmt::Write;

/// A table with a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// A heading that says what the table lists.
    pub title: String,
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows. If a row is shorter than the columns, it is filled with empty cells; cells beyond the columns are left out.
    pub rows: Vec<Vec<Cell>>,
    /// The number of rows to show if there is little room; `None`: all. HTML always has all.
    pub brief: Option<usize>,
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// The text of its heading.
    pub name: String,
    /// How the cells are shown.
    pub kind: ColumnKind,
}

/// How the cells of a column are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ColumnKind {
    /// Cells that hold words.
    #[default]
    Text,
    /// Literals such as paths, in a monospaced font, with breaks allowed anywhere.
    Code,
    /// Cells that hold numbers.
    Number,
    /// Numbers, each with a bar whose length is the number's share of the column's greatest number.
    Bars,
}

/// One cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell {
    /// A cell without a value, shown as a dash.
    #[default]
    Empty,
    /// A cell with text.
    Text(String),
    /// A number, shown as a whole number; NaN and infinities are shown as a dash.
    Number(f64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<u64> for Cell {
    /// The conversion is exact up to 2^53.
    fn from(number: u64) -> Self {
        Self::Number(number as f64)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Empty, Into::into)
    }
}

impl Column {
    /// A column of words.
    pub fn text(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// A column of literals, such as paths.
    pub fn code(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: ColumnKind::Code }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: ColumnKind::Number }
    }

    /// A column of numbers with bars.
    pub fn bars(name: impl Into<String>) -> Self {
        Self { name: name.into(), kind: ColumnKind::Bars }
    }
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, columns: impl IntoIterator<Item = Column>) -> Self {
        Self { title: title.into(), columns: columns.into_iter().collect(), ..Self::default() }
    }

    /// The table with one more row.
    #[must_use]
    pub fn row(mut self, cells: impl IntoIterator<Item = Cell>) -> Self {
        self.rows.push(cells.into_iter().collect());
        self
    }

    pub(crate) fn write(&self, out: &mut String) {
        let _ = write!(
            out,
            "<div class=\"table\"><table>\n<caption>{}</caption>\n<thead><tr>",
            Escaped(&self.title)
        );
        for column in &self.columns {
            column.write_heading(out);
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        let greatest: Vec<f64> = (0..self.columns.len()).map(|place| self.greatest(place)).collect();
        for row in &self.rows {
            out.push_str("<tr>");
            for (place, column) in self.columns.iter().enumerate() {
                column.write_cell(out, row.get(place).unwrap_or(&Cell::Empty), greatest[place]);
            }
            out.push_str("</tr>\n");
        }
        if self.rows.is_empty() {
            let columns = self.columns.len().max(1);
            let _ = writeln!(out, "<tr><td class=\"none\" colspan=\"{columns}\">none</td></tr>");
        }
        out.push_str("</tbody></table></div>\n");
    }

    fn greatest(&self, place: usize) -> f64 {
        let numbers = self.rows.iter().filter_map(|row| match row.get(place) {
            Some(Cell::Number(number)) if number.is_finite() => Some(*number),
            _ => None,
        });
        numbers.fold(0.0, f64::max)
    }
}

impl Column {
    fn write_heading(&self, out: &mut String) {
        let class = match self.kind {
            ColumnKind::Number | ColumnKind::Bars => " class=\"number\"",
            ColumnKind::Text | ColumnKind::Code => "",
        };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", Escaped(&self.name));
    }

    fn write_cell(&self, out: &mut String, cell: &Cell, greatest: f64) {
        out.push_str(match self.kind {
            ColumnKind::Text => "<td>",
            ColumnKind::Code => "<td class=\"code\">",
            ColumnKind::Number => "<td class=\"number\">",
            ColumnKind::Bars => "<td class=\"number bars\">",
        });
        match cell {
            Cell::Text(text) => {
                let _ = write!(out, "{}", Escaped(text));
            }
            Cell::Number(number) if number.is_finite() => {
                // The bar comes first, as a background, so that the numbers stay aligned.
                if self.kind == ColumnKind::Bars && greatest > 0.0 {
                    out.push_str("<svg class=\"bar\" aria-hidden=\"true\"><rect height=\"100%\" width=\"");
                    push_fixed(out, (number / greatest).clamp(0.0, 1.0) * 100.0, 1);
                    out.push_str("%\"/></svg>");
                }
                out.push_str(&grouped(*number, 0));
            }
            Cell::Empty | Cell::Number(_) => out.push('–'),
        }
        out.push_str("</td>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(table: &Table) -> String {
        let mut out = String::new();
        table.write(&mut out);
        out
    }

    #[test]
    fn numbers_to_the_right_with_bars() {
        let columns = [Column::code("path"), Column::bars("share"), Column::number("n")];
        let table = Table::new("Paths", columns)
            .row(["/a".into(), 40.0.into(), 12_345_u64.into()])
            .row(["/b".into(), 10.0.into(), Cell::Empty])
            .row(["/c".into()]);
        let html = written(&table);
        assert!(html.contains("<td class=\"code\">/a</td>"));
        assert!(html.contains("width=\"100%\"/></svg>40</td>"));
        assert!(html.contains("width=\"25%\"/></svg>10</td>"));
        assert!(html.contains("<td class=\"number\">12\u{202F}345</td>"));
        assert_eq!(html.matches('–').count(), 3, "one empty, two missing");
    }

    #[test]
    fn no_rows_says_so() {
        let html = written(&Table::new("Paths", [Column::text("a"), Column::text("b")]));
        assert!(html.contains("<td class=\"none\" colspan=\"2\">none</td>"));
    }

    #[test]
    fn what_is_not_finite_is_a_dash_and_no_bar() {
        let table = Table::new("t", [Column::bars("x")]).row([f64::NAN.into()]).row([f64::INFINITY.into()]);
        assert_eq!(written(&table).matches('–').count(), 2);
        assert!(!written(&table).contains("rect"));
    }
}
