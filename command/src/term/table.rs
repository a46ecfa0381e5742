//! Tables.

use super::clean;
use super::style::Paint;
use super::wrap::{MIN_WIDTH, columns, wrap};

/// Rows of cells under headings. Cells are cleaned when they come in.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

/// What stands between two columns.
const GAP: &str = "  ";

impl Table {
    /// An empty table with these headings. Empty headings all around mean that there is no line of headings.
    pub(crate) fn new(head: &[&'static str]) -> Table {
        Table { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row<S: AsRef<str>>(&mut self, cells: impl IntoIterator<Item = S>) -> &mut Table {
        let mut cells: Vec<String> = cells.into_iter().map(|cell| clean::line(cell.as_ref())).collect();
        cells.resize(self.head.len(), String::new());
        self.rows.push(cells);
        self
    }

    /// The table as text, columns aligned. With a `width` the last column is wrapped to it; without, as in a pipe,
    /// every row is one line.
    pub(crate) fn show(&self, width: Option<usize>, paint: Paint) -> String {
        let Some(last) = self.head.len().checked_sub(1) else { return String::new() };
        let widths: Vec<usize> = (0..last)
            .map(|at| {
                let cells = self.rows.iter().map(|row| columns(&row[at]));
                cells.chain([columns(self.head[at])]).max().unwrap_or(0)
            })
            .collect();
        let before: usize = widths.iter().map(|width| width + GAP.len()).sum();
        let room = width.map(|width| width.saturating_sub(before)).filter(|room| *room >= MIN_WIDTH);
        let mut out = String::new();
        if self.head.iter().any(|title| !title.is_empty()) {
            let head: Vec<String> = self.head.iter().map(|title| (*title).to_owned()).collect();
            push_row(&mut out, &head, &widths, None, |_, cell| paint.bold(cell));
        }
        for row in &self.rows {
            push_row(&mut out, row, &widths, room, |at, cell| {
                if at == 0 && last > 0 { paint.name(cell) } else { cell.to_owned() }
            });
        }
        out
    }
}

fn push_row(
    out: &mut String,
    cells: &[String],
    widths: &[usize],
    room: Option<usize>,
    painted: impl Fn(usize, &str) -> String,
) {
    let Some((tail, firsts)) = cells.split_last() else { return };
    let mut line = String::new();
    for (at, (cell, width)) in firsts.iter().zip(widths).enumerate() {
        // Painting is done before filling up, so that an underline would not run on.
        line.push_str(&painted(at, cell));
        line.push_str(&" ".repeat(width - columns(cell) + GAP.len()));
    }
    let before: usize = widths.iter().map(|width| width + GAP.len()).sum();
    for (nth, part) in wrap(tail, room).iter().enumerate() {
        if nth > 0 {
            line = " ".repeat(before);
        }
        if part.is_empty() {
            out.push_str(line.trim_end());
        } else {
            out.push_str(&line);
            out.push_str(&painted(firsts.len(), part));
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "KIND", "WHAT"]);
        table.row(["a", "tool", "one two three four five six"]);
        table.row(["漢字", "prompt\u{1b}[2J", "two\nlines"]);
        table.row(["short"]);
        table
    }

    #[test]
    fn term_tables_are_aligned() {
        assert_eq!(
            table().show(None, Paint::plain()),
            "NAME   KIND    WHAT\n\
             a      tool    one two three four five six\n\
             漢字   prompt  two lines\n\
             short\n"
        );
    }

    #[test]
    fn term_tables_wrap_their_last_column() {
        assert_eq!(
            table().show(Some(36), Paint::plain()),
            "NAME   KIND    WHAT\n\
             a      tool    one two three four\n\
             \x20              five six\n\
             漢字   prompt  two lines\n\
             short\n"
        );
        // Too narrow to be of use.
        assert_eq!(table().show(Some(20), Paint::plain()), table().show(None, Paint::plain()));
    }

    #[test]
    fn term_tables_in_colour_are_as_wide() {
        let coloured = table().show(Some(36), Paint::colourful());
        assert!(coloured.contains("\u{1b}["));
        assert_eq!(clean::text(&coloured), table().show(Some(36), Paint::plain()));
        assert_eq!(Table::new(&[]).show(None, Paint::plain()), "");
        let mut bare = Table::new(&["", ""]);
        bare.row(["a", "b"]);
        assert_eq!(bare.show(None, Paint::plain()), "a  b\n");
    }
}
