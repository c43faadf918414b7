//! Draws a figure of an experiment: one line per peer, over the points.

use imori_bench::page::axis::{Axis, Scale, Unit};
use imori_bench::page::plot::{Plot, Point, Series, SeriesKind};

use crate::versus::comparison::Comparison;
use crate::versus::figures::Figure;
use crate::versus::table::spread_of;

/// Width of the drawing, in SVG units.
const WIDTH: f64 = 900.0;

/// Renders the figure as an SVG file; `title` describes the series, and `across` names the x axis.
pub(crate) fn chart(comparison: &Comparison, figure: &Figure, title: &str, across: &str) -> String {
    let points: Vec<String> = comparison.settings.jobs.iter().map(|job| job.name.clone()).collect();
    let series = comparison.peers.iter().enumerate().map(|(style, peer)| {
        let values = comparison.settings.jobs.iter().zip(0_u32..).map(|(job, x)| {
            let spread = spread_of(comparison, &peer.name, &job.name, figure);
            Point {
                x: f64::from(x),
                y: spread.as_ref().map(|spread| spread.median / figure.scale),
                range: spread.map(|spread| (spread.low / figure.scale, spread.high / figure.scale)),
            }
        });
        Series { name: peer.name.clone(), style, kind: SeriesKind::Line, points: values.collect() }
    });
    let plot = Plot {
        title: format!("{}: {title}", figure.title),
        x: Axis::new(across, Scale::Names(points), Unit::Number),
        // Logarithmic, because peers differ by orders of magnitude.
        y: Axis::new(figure.title, Scale::Log, Unit::Number),
        series: series.collect(),
    };
    plot.svg_file(WIDTH)
}

/// Name of the figure's file in the experiment's folder.
pub(crate) fn file_name(series: &str, figure: &Figure) -> String {
    let words = figure.title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: Vec<String> = words.map(str::to_lowercase).collect();
    format!("{series}-{}.svg", name.join("-"))
}
