//! A figure on a page: title, explanation, drawings for wide and narrow screens, and the table of numbers.

use crate::page::markup::Markup;
use crate::page::plot::Plot;
use crate::page::table::Table;

/// Share of the page's width that a figure takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// The full width.
    Full,
    /// Half the width, if there is room for two.
    Half,
}

/// Widths of drawings, in SVG units; one unit is one pixel.
const FULL: f64 = 1_076.0;
const HALF: f64 = 520.0;
const NARROW: f64 = 350.0;

/// Writes a plot with the table of its values.
pub(crate) fn plot_figure(page: &mut Markup, plot: &Plot, says: &str, size: Size) {
    figure(page, &plot.title, says, size, |width| plot.svg(width), &plot.table());
}

/// Writes a drawing with a table.
pub(crate) fn figure(
    page: &mut Markup,
    title: &str,
    says: &str,
    size: Size,
    draw: impl Fn(f64) -> Markup,
    table: &Table,
) {
    let (class, width) = match size {
        Size::Full => ("full", FULL),
        Size::Half => ("half", HALF),
    };
    page.open("figure", &[("class", &class)]);
    page.open("figcaption", &[]);
    page.element("h3", &[], title);
    page.element("p", &[], says);
    page.close("figcaption");
    // Text shrinks with a drawing, so narrow screens get one of their own.
    for (class, width) in [("wide", width), ("narrow", NARROW)] {
        page.open("div", &[("class", &class)]);
        page.append(&draw(width));
        page.close("div");
    }
    page.open("details", &[]);
    let rows = if table.rows.len() == 1 { "row" } else { "rows" };
    page.element("summary", &[], &format!("Numbers, {} {rows}", table.rows.len()));
    table.write(page);
    page.close("details");
    page.close("figure");
}
