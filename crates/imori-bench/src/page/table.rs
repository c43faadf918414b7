//! A table of numbers; every plot is followed by one.

use crate::page::markup::Markup;

/// Number of rows above which a table scrolls in an area of its own.
const LONG: usize = 40;

/// A row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row {
    /// Position in the plot above, 0 to 1, for highlighting the row under the pointer.
    pub(crate) place: Option<f64>,
    /// Its cells.
    pub(crate) cells: Vec<String>,
}

/// Column heads and rows; the first column names the row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table {
    /// The names of the columns.
    pub(crate) heads: Vec<String>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
    /// Whether the last column contains prose.
    pub(crate) ends_in_words: bool,
}

impl Table {
    /// Creates an empty table with these columns.
    pub(crate) fn new(heads: &[&str]) -> Table {
        Table {
            heads: heads.iter().map(|head| (*head).to_owned()).collect(),
            rows: Vec::new(),
            ends_in_words: false,
        }
    }

    /// Marks the last column as prose.
    pub(crate) fn ending_in_words(mut self) -> Table {
        self.ends_in_words = true;
        self
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, cells: Vec<String>) {
        self.rows.push(Row { place: None, cells });
    }

    /// Writes the table to a page.
    pub(crate) fn write(&self, page: &mut Markup) {
        let class = if self.rows.len() > LONG { "scroll long" } else { "scroll" };
        page.open("div", &[("class", &class)]);
        match self.ends_in_words {
            true => page.open("table", &[("class", &"words")]),
            false => page.open("table", &[]),
        }
        page.open("thead", &[]);
        page.open("tr", &[]);
        for head in &self.heads {
            page.element("th", &[("scope", &"col")], head);
        }
        page.close("tr");
        page.close("thead");
        page.open("tbody", &[]);
        for row in &self.rows {
            match row.place {
                Some(place) => page.open("tr", &[("data-at", &format!("{place:.4}"))]),
                None => page.open("tr", &[]),
            }
            for (at, cell) in row.cells.iter().enumerate() {
                match at {
                    0 => page.element("th", &[("scope", &"row")], &unbroken(cell)),
                    _ => page.element("td", &[], &unbroken(cell)),
                }
            }
            page.close("tr");
        }
        page.close("tbody");
        page.close("table");
        page.close("div");
    }
}

/// Puts no-break spaces between groups of digits, so that a number stays on one line.
pub(crate) fn unbroken(cell: &str) -> String {
    let mut text = String::with_capacity(cell.len());
    let mut characters = cell.chars().peekable();
    let mut is_after_digit = false;
    while let Some(character) = characters.next() {
        let is_before_digit = characters.peek().is_some_and(char::is_ascii_digit);
        let is_within = character == ' ' && is_after_digit && is_before_digit;
        text.push(if is_within { '\u{a0}' } else { character });
        is_after_digit = character.is_ascii_digit();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_kept_together() {
        for (cell, expected) in
            [("1 000 (998 to 1 000)", "1\u{a0}000 (998 to 1\u{a0}000)"), ("2.00 ms", "2.00 ms"), ("", "")]
        {
            assert_eq!(unbroken(cell), expected);
        }
    }
}
