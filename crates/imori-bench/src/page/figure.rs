//! A plot on a page: its title, what to look for, the drawing for wide and narrow screens, its numbers.

use crate::page::markup::Markup;
use crate::page::plot::Plot;
use crate::page::table::Table;

/// How much of a page's width a figure takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    /// All of it.
    Full,
    /// Half of it, if there is room for two.
    Half,
}

/// How wide drawings are, in the units that one pixel stands for.
const FULL: f64 = 1_076.0;
const HALF: f64 = 520.0;
const NARROW: f64 = 350.0;

/// Writes a plot with its own numbers.
pub(crate) fn plot_figure(page: &mut Markup, plot: &Plot, says: &str, size: Size) {
    figure(page, &plot.title, says, size, |width| plot.svg(width), &plot.table());
}

/// Writes a drawing with these numbers.
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
    // Text in a drawing shrinks with it, so a narrow screen gets a drawing of its own.
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
