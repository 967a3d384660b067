//! Text on stdout, and tables.

use crate::output::failure::Failure;
use std::fmt;
use std::io::{self, Write};

/// Prints `text` and a line's end. A reader that has left (`plimsoll check FILE | head -1`) is no failure.
pub(crate) fn print(text: impl fmt::Display) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match writeln!(stdout, "{text}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Failed(format!("cannot print: {error}")))
        }
        _ => Ok(()),
    }
}

/// Rows of cells in columns as wide as their widest cell, two blanks apart. Columns named in `right` are numbers.
pub(crate) fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let blanks = " ".repeat(widths[column] - cell.chars().count());
            let (before, after) =
                if right.contains(&column) { (blanks.as_str(), "") } else { ("", blanks.as_str()) };
            line += &format!("{before}{cell}{after}  ");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_under_each_other() {
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        let rows = [row(["name", "n", "what"]), row(["a", "1200", "–"])];
        assert_eq!(table(&rows, &[1]), "name     n  what\na     1200  –\n");
    }
}
