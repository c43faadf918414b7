//! A table of numbers, which every plot has below it.

use crate::report::markup::Markup;

/// A row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row {
    /// Where it lies in the plot above, 0 to 1, so that a pointer finds it.
    pub(crate) place: Option<f64>,
    /// Its cells.
    pub(crate) cells: Vec<String>,
}

/// Heads and rows; the first column names the row.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table {
    /// The names of the columns.
    pub(crate) heads: Vec<String>,
    /// The rows.
    pub(crate) rows: Vec<Row>,
}

impl Table {
    /// An empty one with these columns.
    pub(crate) fn new(heads: &[&str]) -> Table {
        Table { heads: heads.iter().map(|head| (*head).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, cells: Vec<String>) {
        self.rows.push(Row { place: None, cells });
    }

    /// Writes it.
    pub(crate) fn write(&self, page: &mut Markup) {
        page.open("div", &[("class", &"scroll")]);
        page.open("table", &[]);
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
                    0 => page.element("th", &[("scope", &"row")], cell),
                    _ => page.element("td", &[], cell),
                }
            }
            page.close("tr");
        }
        page.close("tbody");
        page.close("table");
        page.close("div");
    }
}
