//! A plot of named series, drawn as SVG for a given width, with its numbers as a table.
//!
//! Series differ in colour, in dashes or width, and in the shape of their marks, so that paper will do.

use crate::page::axis::{Axis, Scale, Span};
use crate::page::frame::{Frame, STYLES, text_width};
use crate::page::markup::{Markup, px};
use crate::page::table::{Row, Table};

/// Points from which a line is drawn without dashes.
const DENSE: usize = 130;

/// The look of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeriesKind {
    /// A line from point to point.
    Line,
    /// A wide pale line beneath the others, so that a line with the same values does not hide it.
    Wide,
    /// A grey area below the values; each value extends to the next one.
    Ground,
    /// Bars beside those of the other series.
    Bars,
}

/// One value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Where along the axis.
    pub x: f64,
    /// The value; without one the line is interrupted.
    pub y: Option<f64>,
    /// The least and the greatest of the values behind this one.
    pub range: Option<(f64, f64)>,
}

impl Point {
    /// A value without a range.
    pub fn new(x: f64, y: Option<f64>) -> Point {
        Point { x, y, range: None }
    }
}

/// Values under one name.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Their name; series of the same name and style share a place in the legend.
    pub name: String,
    /// The number of its style; equal numbers look alike.
    pub style: usize,
    /// The look of the series.
    pub kind: SeriesKind,
    /// By x.
    pub points: Vec<Point>,
}

impl Series {
    /// A line.
    pub fn line(name: &str, style: usize, points: impl IntoIterator<Item = (f64, Option<f64>)>) -> Series {
        let points = points.into_iter().map(|(x, y)| Point::new(x, y)).collect();
        Series { name: name.to_owned(), style, kind: SeriesKind::Line, points }
    }

    /// Whether it has any value.
    pub(crate) fn has_values(&self) -> bool {
        self.points.iter().any(|point| point.y.is_some())
    }
}

/// Named series over one pair of axes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The axis to the right.
    pub x: Axis,
    /// The axis upwards.
    pub y: Axis,
    /// The series, the later over the earlier.
    pub series: Vec<Series>,
}

impl Plot {
    /// The plot as a self-contained SVG file, `width` units wide.
    pub fn svg_file(&self, width: f64) -> String {
        let mut file = Markup::new();
        file.own("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let frame = self.frame(width, 30.0);
        frame.open(&mut file, &self.title, true);
        file.element("text", &[("class", &"title"), ("x", &"12"), ("y", &"22")], &self.title);
        self.draw(&mut file, &frame);
        file.close("svg");
        file.own("\n");
        file.into_text()
    }

    /// The plot as an element of a page.
    pub(crate) fn svg(&self, width: f64) -> Markup {
        let mut svg = Markup::new();
        let frame = self.frame(width, 0.0);
        frame.open(&mut svg, &self.title, false);
        self.draw(&mut svg, &frame);
        svg.close("svg");
        svg
    }

    /// Its numbers: a row for each x, a column for each series.
    pub(crate) fn table(&self) -> Table {
        let mut places: Vec<f64> = self.points().map(|point| point.x).filter(|x| x.is_finite()).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let across = self.across();
        let mut heads = vec![self.x.title.clone()];
        heads.extend(self.series.iter().map(|series| series.name.clone()));
        let mut rows: Vec<Row> =
            places.iter().map(|x| Row { place: across.place(*x), cells: vec![self.x.show(*x)] }).collect();
        for (at, series) in self.series.iter().enumerate() {
            let mut points: Vec<&Point> = series.points.iter().collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            let mut points = points.into_iter().peekable();
            for (x, row) in places.iter().zip(&mut rows) {
                while let Some(point) = points.next_if(|point| point.x <= *x) {
                    if point.x == *x && row.cells.len() == at + 1 {
                        row.cells.push(self.cell(point));
                    }
                }
                row.cells.resize(at + 2, "–".to_owned());
            }
        }
        Table { heads, rows, ends_in_words: false }
    }

    fn cell(&self, point: &Point) -> String {
        match (point.y, point.range) {
            (None, _) => "–".to_owned(),
            (Some(y), None) => self.y.show(y),
            (Some(y), Some((least, greatest))) => {
                format!("{} ({} to {})", self.y.show(y), self.y.show(least), self.y.show(greatest))
            }
        }
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.series.iter().flat_map(|series| &series.points)
    }

    fn across(&self) -> Span<'_> {
        Span::across(&self.x, self.points().map(|point| point.x))
    }

    fn up(&self) -> Span<'_> {
        let values = self.points().flat_map(|point| {
            let (least, greatest) = point.range.unzip();
            [point.y, least, greatest].into_iter().flatten()
        });
        // Bars have a foot: on a log axis the least of them would vanish without room below it.
        let has_bars = self.series.iter().any(|series| series.kind == SeriesKind::Bars);
        if has_bars && self.y.scale == Scale::Log {
            let values: Vec<f64> = values.filter(|value| *value > 0.0).collect();
            let least = values.iter().copied().fold(f64::INFINITY, f64::min) / 2.0;
            return Span::up(&self.y, values.into_iter().chain(least.is_finite().then_some(least)));
        }
        Span::up(&self.y, values)
    }

    fn frame(&self, width: f64, top: f64) -> Frame {
        let names = self.legend().len();
        let height = if width < 450.0 { 230.0 } else { 250.0 };
        Frame::new(
            width,
            height,
            top,
            if names > 1 { self.legend_rows(width) } else { 0 },
            &self.up().ticks(5),
        )
    }

    fn draw(&self, svg: &mut Markup, frame: &Frame) {
        let (across, up) = (self.across(), self.up());
        frame.grid(svg, &across.ticks(frame.labels_across()), &up.ticks(5), &self.x.title, &self.y.title);
        self.draw_legend(svg, frame);
        for series in self.series.iter().filter(|series| series.kind == SeriesKind::Ground) {
            draw_ground(svg, frame, series, &across, &up);
        }
        self.draw_bars(svg, frame, &across, &up);
        for series in self.series.iter().filter(|series| series.kind == SeriesKind::Wide) {
            draw_line(svg, frame, series, &across, &up);
        }
        for series in self.series.iter().filter(|series| series.kind == SeriesKind::Line) {
            draw_line(svg, frame, series, &across, &up);
        }
        frame.cursor(svg);
    }

    /// The names of the legend with their series.
    fn legend(&self) -> Vec<&Series> {
        let mut shown: Vec<&Series> = Vec::new();
        for series in self.series.iter().filter(|series| series.has_values()) {
            if !shown.iter().any(|other| other.name == series.name && other.style == series.style) {
                shown.push(series);
            }
        }
        shown
    }

    /// The position of each name of the legend: its distance from the left, and its row.
    fn legend_places(&self, width: f64) -> Vec<(f64, usize)> {
        let (mut x, mut row) = (0.0, 0);
        let mut places = Vec::new();
        for series in self.legend() {
            let wide = 44.0 + text_width(&series.name);
            if x > 0.0 && x + wide > width - 20.0 {
                x = 0.0;
                row += 1;
            }
            places.push((x, row));
            x += wide;
        }
        places
    }

    fn legend_rows(&self, width: f64) -> usize {
        self.legend_places(width).last().map_or(0, |(_, row)| row + 1)
    }

    fn draw_legend(&self, svg: &mut Markup, frame: &Frame) {
        let legend = self.legend();
        if legend.len() < 2 {
            return;
        }
        for (series, (x, row)) in legend.into_iter().zip(self.legend_places(frame.width)) {
            let (x, y) = (frame.inset + x, frame.head + 14.0 + row as f64 * 18.0);
            let style = series.style % STYLES;
            match series.kind {
                SeriesKind::Line | SeriesKind::Wide => {
                    let d = format!("M{} {}h24", px(x), px(y - 4.0));
                    svg.empty("path", &[("class", &line_class(series)), ("d", &d)]);
                    if series.kind == SeriesKind::Line {
                        mark(svg, x + 12.0, y - 4.0, style);
                    }
                }
                SeriesKind::Bars | SeriesKind::Ground => {
                    let class = if series.kind == SeriesKind::Bars {
                        format!("bar b{style}")
                    } else {
                        "ground".to_owned()
                    };
                    svg.empty(
                        "rect",
                        &[
                            ("class", &class),
                            ("x", &px(x + 4.0)),
                            ("y", &px(y - 10.0)),
                            ("width", &"16"),
                            ("height", &"12"),
                        ],
                    );
                }
            }
            svg.element("text", &[("x", &px(x + 30.0)), ("y", &px(y))], &series.name);
        }
    }

    fn draw_bars(&self, svg: &mut Markup, frame: &Frame, across: &Span<'_>, up: &Span<'_>) {
        let bars: Vec<&Series> =
            self.series.iter().filter(|series| series.kind == SeriesKind::Bars).collect();
        let slots = match &self.x.scale {
            Scale::Names(names) => names.len(),
            _ => bars.iter().map(|series| series.points.len()).max().unwrap_or(0),
        };
        let slot = frame.inner_width() / slots.max(1) as f64;
        let wide = (slot * 0.76 / bars.len().max(1) as f64).min(84.0);
        for (at, series) in bars.iter().enumerate() {
            let shift = (at as f64 - bars.len() as f64 / 2.0) * wide;
            for point in &series.points {
                let (Some(x), Some(value)) = (across.place(point.x), point.y) else { continue };
                let Some(y) = up.place(value) else { continue };
                let (left, top) = (frame.x(x) + shift, frame.y(y));
                svg.empty(
                    "rect",
                    &[
                        ("class", &format!("bar b{}", series.style % STYLES)),
                        ("x", &px(left + 1.0)),
                        ("y", &px(top)),
                        ("width", &px((wide - 2.0).max(1.0))),
                        ("height", &px(frame.y(0.0) - top)),
                    ],
                );
                let mut label_y = top;
                if let Some((least, greatest)) = point.range
                    && let (Some(least), Some(greatest)) = (up.place(least), up.place(greatest))
                {
                    let (middle, low, high) = (left + wide / 2.0, frame.y(least), frame.y(greatest));
                    let d = format!("M{} {}h8m-4 0V{}m-4 0h8", px(middle - 4.0), px(low), px(high));
                    svg.empty("path", &[("class", &"whisker"), ("d", &d)]);
                    label_y = high.min(top);
                }
                let label = self.y.show(value);
                if text_width(&label) * 0.92 < wide {
                    svg.element(
                        "text",
                        &[
                            ("class", &"small middle"),
                            ("x", &px(left + wide / 2.0)),
                            ("y", &px(label_y - 4.0)),
                        ],
                        &label,
                    );
                }
            }
        }
    }
}

fn draw_line(svg: &mut Markup, frame: &Frame, series: &Series, across: &Span<'_>, up: &Span<'_>) {
    let style = series.style % STYLES;
    let mut d = String::new();
    let mut places = Vec::new();
    let mut is_interrupted = true;
    for point in &series.points {
        let place = point.y.and_then(|y| up.place(y)).zip(across.place(point.x));
        let Some((y, x)) = place.filter(|_| across.has(point.x)) else {
            is_interrupted = true;
            continue;
        };
        let (x, y) = (frame.x(x), frame.y(y));
        d.push_str(&format!("{}{} {}", if is_interrupted { "M" } else { "L" }, px(x), px(y)));
        is_interrupted = false;
        places.push((x, y, point.range));
    }
    if places.is_empty() {
        return;
    }
    svg.empty("path", &[("class", &line_class(series)), ("d", &d)]);
    if series.kind == SeriesKind::Wide {
        return;
    }
    for (x, _, range) in &places {
        if let Some((least, greatest)) = range
            && let (Some(least), Some(greatest)) = (up.place(*least), up.place(*greatest))
        {
            let d = format!("M{} {}V{}", px(*x), px(frame.y(least)), px(frame.y(greatest)));
            svg.empty("path", &[("class", &format!("range s{style}")), ("d", &d)]);
        }
    }
    // A few marks tell crossing lines apart; each series has its own phase, so that no mark hides another.
    let every = if places.len() > 24 { places.len() / 8 } else { 1 };
    let first = if every == 1 { 0 } else { (every * (style + 1) / (STYLES + 1)).min(every - 1) };
    for (x, y, _) in places.iter().skip(first).step_by(every) {
        mark(svg, *x, *y, style);
    }
}

/// Dashes of a line that goes up and down at each point would be noise; its marks tell it apart.
fn line_class(series: &Series) -> String {
    let look = match series.kind {
        SeriesKind::Wide => " broad",
        _ if series.points.len() > DENSE => " dense",
        _ => "",
    };
    format!("line s{}{look}", series.style % STYLES)
}

fn draw_ground(svg: &mut Markup, frame: &Frame, series: &Series, across: &Span<'_>, up: &Span<'_>) {
    let mut d = String::new();
    let foot = px(frame.y(0.0));
    let places: Vec<(f64, f64)> = series
        .points
        .iter()
        .filter_map(|point| Some((frame.x(across.place(point.x)?), frame.y(up.place(point.y?)?))))
        .collect();
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return };
    let wide = (last.0 - first.0) / (places.len() as f64 - 1.0).max(1.0);
    let end = (last.0 + wide).min(frame.x(1.0));
    d.push_str(&format!("M{} {foot}", px(first.0)));
    for (x, y) in &places {
        d.push_str(&format!("H{}V{}", px(*x), px(*y)));
    }
    d.push_str(&format!("H{}V{foot}Z", px(end)));
    svg.empty("path", &[("class", &"ground"), ("d", &d)]);
}

/// The mark of a style at a place.
pub(crate) fn mark(svg: &mut Markup, x: f64, y: f64, style: usize) {
    let (left, top) = (px(x), px(y));
    let d = match style % STYLES {
        0 => format!("M{left} {top}m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z"),
        1 => format!("M{left} {top}m-3 -3h6v6h-6z"),
        2 => format!("M{left} {top}m0 -4l4 7h-8z"),
        3 => format!("M{left} {top}m0 -4l4 4l-4 4l-4 -4z"),
        4 => format!("M{left} {top}m0 4l4 -7h-8z"),
        5 => format!("M{left} {top}m-3 -1h2v-2h2v2h2v2h-2v2h-2v-2h-2z"),
        6 => format!("M{left} {top}m-4 0l7 -4v8z"),
        _ => format!("M{left} {top}m4 0l-7 -4v8z"),
    };
    svg.empty("path", &[("class", &format!("mark m{}", style % STYLES)), ("d", &d)]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::axis::Unit;
    use crate::page::well_formed::check;

    fn sweep() -> Plot {
        let names = ["1", "2", "<4>"].map(str::to_owned).to_vec();
        let points = |factor: f64| (0..3).map(move |at| (f64::from(at), Some(factor * f64::from(at + 1))));
        let mut bars = Series::line("bars & more", 1, points(20.0));
        bars.kind = SeriesKind::Bars;
        bars.points[2].range = Some((40.0, 80.0));
        let mut ground = Series::line("offered", 2, points(9.0));
        ground.kind = SeriesKind::Ground;
        Plot {
            title: "requests a second by \"depth\"".to_owned(),
            x: Axis::new("depth", Scale::Names(names), Unit::Number),
            y: Axis::new("requests/s", Scale::Linear, Unit::Number),
            series: vec![Series::line("imori", 0, points(10.0)), bars, ground],
        }
    }

    #[test]
    fn a_file_needs_nothing_else() {
        let file = sweep().svg_file(640.0);
        check(&file);
        assert!(file.starts_with("<?xml"));
        assert!(file.contains("&lt;4&gt;") && file.contains("bars &amp; more"));
        for outside in ["href=", "url(http", "src=", "@import"] {
            assert!(!file.contains(outside), "{outside}");
        }
    }

    #[test]
    fn every_point_is_in_the_table() {
        let table = sweep().table();
        assert_eq!(table.heads, ["depth", "imori", "bars & more", "offered"]);
        let cells: Vec<_> = table.rows.iter().map(|row| row.cells.join(" | ")).collect();
        let last = "<4> | 30.0 | 60.0 (40.0 to 80.0) | 27.0";
        assert_eq!(cells, ["1 | 10.0 | 20.0 | 9.00", "2 | 20.0 | 40.0 | 18.0", last]);
    }

    #[test]
    fn a_wide_line_lies_beneath_one_with_the_same_values() {
        let points = || (0..200).map(|at| (f64::from(at), Some(7.0)));
        let mut plot = sweep();
        let mut wide = Series::line("sent", 1, points());
        wide.kind = SeriesKind::Wide;
        plot.series = vec![Series::line("delivered", 0, points()), wide];
        let svg = plot.svg(640.0).into_text();
        check(&svg);
        // The legend has the order of the series; the drawing has the wide line first.
        let last = |class: &str| svg.rfind(class).unwrap();
        assert!(last("line s1 broad") < last("line s0 dense"), "the wide line hides the other");
    }

    #[test]
    fn a_plot_without_values_is_a_frame() {
        let mut plot = sweep();
        plot.series.clear();
        check(plot.svg(320.0).into_text().as_str());
        assert!(plot.table().rows.is_empty());
    }
}
