//! The frame of a drawing: its margins, its grid, and what stands at its axes.

use crate::page::axis::Tick;
use crate::page::markup::{Markup, px};

/// Number of styles of series; further series repeat them.
pub(crate) const STYLES: usize = 8;

/// The style of every drawing, in light and in dark.
pub(crate) const STYLE_SHEET: &str = include_str!("plot.css");

/// The positions of the parts of a drawing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The full width.
    pub(crate) width: f64,
    height: f64,
    /// Room above the legend.
    pub(crate) head: f64,
    /// Where the legend and the title of the axis begin: a file has a margin, a page has its own.
    pub(crate) inset: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    /// A frame with a height of `inner` for the drawing itself, and room for a title, a legend and labels at the left.
    pub(crate) fn new(width: f64, inner: f64, head: f64, legend_rows: usize, labels: &[Tick]) -> Frame {
        let widest = labels.iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
        Frame::with_left(width, inner, head, legend_rows, widest + 16.0)
    }

    /// A frame with a width of `left` for the labels at the left.
    pub(crate) fn with_left(width: f64, inner: f64, head: f64, legend_rows: usize, left: f64) -> Frame {
        let top = head + legend_rows as f64 * 18.0 + 30.0;
        let left = left.clamp(36.0, width * 0.4);
        let inset = if head > 0.0 { 12.0 } else { 0.0 };
        Frame {
            width,
            height: top + inner + 42.0,
            head,
            inset,
            left,
            right: width - 14.0,
            top,
            bottom: top + inner,
        }
    }

    /// Begins the SVG element.
    pub(crate) fn open(&self, svg: &mut Markup, title: &str, is_file: bool) {
        let view = format!("0 0 {} {}", px(self.width), px(self.height));
        let across = format!("{} {}", px(self.left), px(self.right));
        if is_file {
            let size = (px(self.width), px(self.height));
            svg.open(
                "svg",
                &[
                    ("xmlns", &"http://www.w3.org/2000/svg"),
                    ("class", &"plot"),
                    ("viewBox", &view),
                    ("width", &size.0),
                    ("height", &size.1),
                    ("role", &"img"),
                    ("aria-label", &title),
                ],
            );
            svg.element("title", &[], title);
            svg.open("style", &[]);
            svg.own(STYLE_SHEET);
            svg.close("style");
            patterns(svg);
            svg.empty("rect", &[("class", &"paper"), ("width", &"100%"), ("height", &"100%")]);
        } else {
            svg.open(
                "svg",
                &[
                    ("class", &"plot"),
                    ("viewBox", &view),
                    ("role", &"img"),
                    ("aria-label", &title),
                    ("data-across", &across),
                ],
            );
        }
    }

    /// Width of the drawing itself.
    pub(crate) fn inner_width(&self) -> f64 {
        self.right - self.left
    }

    /// Number of labels that fit below the drawing.
    pub(crate) fn labels_across(&self) -> usize {
        (self.inner_width() / 74.0).max(2.0) as usize
    }

    /// Its left end.
    pub(crate) fn left(&self) -> f64 {
        self.left
    }

    /// Its lower end.
    pub(crate) fn bottom(&self) -> f64 {
        self.bottom
    }

    /// The coordinate at this share of the drawing's width.
    pub(crate) fn x(&self, share: f64) -> f64 {
        self.left + share * self.inner_width()
    }

    /// The coordinate at this share of the drawing's height.
    pub(crate) fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }

    /// Makes room below it, for a strip, and moves the axis there.
    pub(crate) fn with_strip(mut self, height: f64) -> Frame {
        self.height += height;
        self
    }

    /// Lines, labels and the titles of both axes.
    pub(crate) fn grid(&self, svg: &mut Markup, across: &[Tick], up: &[Tick], x: &str, y: &str) {
        let mut d = String::new();
        for tick in up {
            d.push_str(&format!("M{} {}H{}", px(self.left), px(self.y(tick.place)), px(self.right)));
        }
        svg.empty("path", &[("class", &"grid"), ("d", &d)]);
        let mut above = f64::INFINITY;
        for tick in up.iter().filter(|tick| !tick.label.is_empty()) {
            let at = self.y(tick.place);
            if above - at < 13.0 {
                continue;
            }
            above = at;
            svg.element(
                "text",
                &[("class", &"end"), ("x", &px(self.left - 8.0)), ("y", &px(at + 4.0))],
                &tick.label,
            );
        }
        svg.element("text", &[("class", &"axis"), ("x", &px(self.inset)), ("y", &px(self.top - 13.0))], y);
        self.foot(svg, across, x, self.bottom);
    }

    /// The axis to the right with its labels, at this height.
    pub(crate) fn foot(&self, svg: &mut Markup, across: &[Tick], title: &str, at: f64) {
        let mut d = format!("M{} {}H{}", px(self.left), px(at), px(self.right));
        for tick in across {
            d.push_str(&format!("M{} {}v5", px(self.x(tick.place)), px(at)));
        }
        svg.empty("path", &[("class", &"base"), ("d", &d)]);
        svg.element("text", &[("class", &"axis end"), ("x", &px(self.right)), ("y", &px(at + 36.0))], title);
        // Omits a label that would touch the one before, and keeps all of them within the drawing.
        let mut taken = f64::NEG_INFINITY;
        for tick in across.iter().filter(|tick| !tick.label.is_empty()) {
            let (wide, middle) = (text_width(&tick.label), self.x(tick.place));
            let middle =
                middle.clamp(wide / 2.0 + 2.0, (self.width - wide / 2.0 - 2.0).max(wide / 2.0 + 2.0));
            if middle - wide / 2.0 < taken + 6.0 {
                continue;
            }
            taken = middle + wide / 2.0;
            svg.element(
                "text",
                &[("class", &"middle"), ("x", &px(middle)), ("y", &px(at + 19.0))],
                &tick.label,
            );
        }
    }

    /// The line that follows the pointer.
    pub(crate) fn cursor(&self, svg: &mut Markup) {
        let d = format!("M0 {}V{}", px(self.top), px(self.bottom));
        svg.empty("path", &[("class", &"cursor"), ("d", &d)]);
    }
}

/// Approximate width of a text in the size of labels.
pub(crate) fn text_width(text: &str) -> f64 {
    text.chars().map(|character| if ".,:;'|il ()".contains(character) { 4.0 } else { 7.1 }).sum()
}

/// The hatches of bars and stalls. They stand once in a page, or in each file.
pub(crate) fn patterns(svg: &mut Markup) {
    svg.open("defs", &[]);
    let hatches = [
        "",
        "M-2 2l4 -4M0 8l8 -8M6 10l4 -4",
        "M-2 6l4 4M0 0l8 8M6 -2l4 4",
        "M0 2h8M0 6h8",
        "M2 0v8M6 0v8",
        "M1 1h2v2h-2zM5 5h2v2h-2z",
        "M0 4h8M4 0v8",
        "M4 1l3 3l-3 3l-3 -3z",
    ];
    for (at, hatch) in hatches.iter().enumerate() {
        // Stalls have one lane for each verdict, so they need no more hatches than that.
        for (name, kind) in [("b", "bar"), ("v", "stall")].into_iter().take(if at < 6 { 2 } else { 1 }) {
            svg.open(
                "pattern",
                &[
                    ("id", &format!("{name}{at}")),
                    ("width", &"8"),
                    ("height", &"8"),
                    ("patternUnits", &"userSpaceOnUse"),
                ],
            );
            svg.empty(
                "rect",
                &[("class", &format!("{kind}-fill f{name}{at}")), ("width", &"8"), ("height", &"8")],
            );
            if !hatch.is_empty() {
                svg.empty("path", &[("class", &"hatch"), ("d", hatch)]);
            }
            svg.close("pattern");
        }
    }
    svg.close("defs");
}
