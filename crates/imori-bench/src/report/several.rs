//! The part of a page that compares runs: medians and ratios, overlaid curves, then each run.

use crate::page::axis::{Axis, Scale, Unit};
use crate::page::buckets::BUCKETS_EACH;
use crate::page::figure::{Size, plot_figure};
use crate::page::graphs::{self, Overlaid};
use crate::page::markup::Markup;
use crate::page::plot::{Plot, Point, Series, SeriesKind};
use crate::page::quantity::change;
use crate::page::table::Table;
use crate::report::measure::{CPU, MEASURES, Measure, THROUGHPUT};
use crate::report::one::{write_head, write_run};
use crate::report::runs::Runs;
use crate::report::spread::Spread;

/// Writes the table of medians, the plots over all runs, and each run.
pub(crate) fn write_several(page: &mut Markup, runs: &Runs) {
    let sides = runs.sides();
    page.element("h2", &[], "Side by side");
    let turns = runs.runs.len().div_ceil(sides.len().max(1));
    page.element(
        "p",
        &[],
        &match turns {
            1 => "One turn each.".to_owned(),
            _ => format!("Medians of {turns} turns, with the least and the greatest."),
        },
    );
    medians(runs, &sides).write(page);
    write_plots(page, runs, &sides);
    for (at, run) in runs.runs.iter().enumerate() {
        page.open("details", &[("class", &"run")]);
        let name = format!("Run {}: {}", at + 1, shown_side(&run.side, &run.report.server));
        page.element("summary", &[], &name);
        write_head(page, &run.report);
        write_run(page, &run.report, BUCKETS_EACH);
        page.close("details");
    }
}

/// The name of a side, or of its broker if the side has none.
fn shown_side<'a>(side: &'a str, server: &'a str) -> &'a str {
    if side.is_empty() { server } else { side }
}

/// The name of a side, as shown on the page.
fn side_name<'a>(runs: &'a Runs, side: &'a str) -> &'a str {
    shown_side(side, runs.of_side(side).next().map_or("", |report| report.server.as_str()))
}

fn spread(runs: &Runs, side: &str, measure: &Measure) -> Option<Spread> {
    Spread::of(runs.of_side(side).filter_map(measure.of))
}

/// A row per measure, a column per side, and each side's ratio to the first.
fn medians(runs: &Runs, sides: &[&str]) -> Table {
    let mut table = Table::default();
    table.heads.push("median".to_owned());
    for (at, side) in sides.iter().enumerate() {
        table.heads.push(side_name(runs, side).to_owned());
        if at > 0 {
            table.heads.push("against the first".to_owned());
        }
    }
    for measure in &MEASURES {
        let spreads: Vec<Option<Spread>> = sides.iter().map(|side| spread(runs, side, measure)).collect();
        if spreads.iter().all(Option::is_none) {
            continue;
        }
        let mut cells = vec![measure.name_for(runs.runs.iter().map(|run| &run.report))];
        for (at, side) in spreads.iter().enumerate() {
            let shown = side.map(|side| side.show(measure.show).replace("us", "µs"));
            cells.push(shown.unwrap_or_else(|| "–".to_owned()));
            if at > 0 {
                let ratio = sides.first().zip(sides.get(at)).and_then(|(a, b)| ratio(runs, a, b, measure));
                cells.push(ratio.map_or_else(|| "–".to_owned(), |ratio| ratio.show(change)));
            }
        }
        table.push(cells);
    }
    table
}

/// Ratios of the second side to the first: turn by turn, because neighbouring turns had the same
/// machine at about the same time; of the medians if the sides differ in their number of turns.
fn ratio(runs: &Runs, first: &str, second: &str, measure: &Measure) -> Option<Spread> {
    let of = |side| -> Vec<Option<f64>> { runs.of_side(side).map(measure.of).collect() };
    let (before, after) = (of(first), of(second));
    if before.len() == after.len() {
        let pairs = before.into_iter().zip(after).filter_map(|(a, b)| a.zip(b));
        return Spread::of(pairs.filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a));
    }
    let (a, b) = (spread(runs, first, measure)?, spread(runs, second, measure)?);
    Spread::of((a.median > 0.0).then(|| b.median / a.median).into_iter())
}

fn write_plots(page: &mut Markup, runs: &Runs, sides: &[&str]) {
    let overlaid: Vec<Overlaid<'_>> = runs
        .runs
        .iter()
        .map(|run| {
            let style = sides.iter().position(|side| *side == run.side).unwrap_or(0);
            (shown_side(&run.side, &run.report.server), style, &run.report)
        })
        .collect();
    page.open("div", &[("class", &"figures")]);
    for (title, name) in [("Throughput", THROUGHPUT), ("CPU for a million deliveries", CPU)] {
        let Some(measure) = MEASURES.iter().find(|measure| measure.name == name) else { continue };
        let plot = bars(title, runs, sides, measure);
        if plot.series.iter().any(Series::has_values) {
            plot_figure(page, &plot, "Medians; a whisker goes from the least to the greatest.", Size::Half);
        }
    }
    let times = times(runs, sides);
    if times.series.iter().any(Series::has_values) {
        plot_figure(page, &times, "Medians; a whisker goes from the least to the greatest.", Size::Full);
    }
    let micros = |title| Axis::new(title, Scale::Log, Unit::Micros);
    let worst = graphs::seconds_of_all(
        "Greatest response time of each second",
        micros("time"),
        &overlaid,
        |bucket| bucket.sum.max_us,
    );
    let delivered = Axis::new("a second", Scale::Linear, Unit::Number);
    let delivered = graphs::seconds_of_all("Delivered", delivered, &overlaid, |bucket| {
        Some(bucket.rate(bucket.sum.delivered))
    });
    let memory = Axis::new("resident", Scale::Linear, Unit::Bytes);
    let memory = graphs::seconds_of_all("Memory of the broker", memory, &overlaid, |bucket| {
        bucket.sum.broker.as_ref().map(|broker| broker.rss_bytes as f64)
    });
    let cpu = Axis::new("CPUs in use", Scale::Linear, Unit::Number);
    let cpu = graphs::seconds_of_all("CPU of the broker", cpu, &overlaid, |bucket| {
        bucket.sum.broker.as_ref().map(|broker| broker.cpu_s / bucket.seconds)
    });
    let curves = graphs::percentiles_of_all(&overlaid);
    for (plot, size) in [
        (curves, Size::Full),
        (worst, Size::Full),
        (delivered, Size::Full),
        (cpu, Size::Half),
        (memory, Size::Half),
    ] {
        if plot.series.iter().any(Series::has_values) {
            plot_figure(page, &plot, "A line for each run; those of one side look alike.", size);
        }
    }
    page.close("div");
}

/// A group of bars per percentile, with one bar per side.
fn times(runs: &Runs, sides: &[&str]) -> Plot {
    let measures: Vec<&Measure> =
        MEASURES.iter().filter(|measure| measure.name.starts_with("time ")).collect();
    let names = measures.iter().map(|measure| measure.name.trim_start_matches("time ").to_owned()).collect();
    let series = sides
        .iter()
        .enumerate()
        .map(|(at, side)| {
            let points =
                (0..).zip(&measures).map(|(x, measure)| bar(f64::from(x), spread(runs, side, measure)));
            let name = side_name(runs, side).to_owned();
            Series { name, style: at, kind: SeriesKind::Bars, points: points.collect() }
        })
        .collect();
    Plot {
        title: "Times".to_owned(),
        x: Axis::new("percentile", Scale::Names(names), Unit::Number),
        y: Axis::new("time", Scale::Log, Unit::Micros),
        series,
    }
}

fn bar(x: f64, spread: Option<Spread>) -> Point {
    let range = spread.filter(|spread| spread.count > 1).map(|spread| (spread.least, spread.greatest));
    Point { x, y: spread.map(|spread| spread.median), range }
}

/// One bar per side.
fn bars(title: &str, runs: &Runs, sides: &[&str], measure: &Measure) -> Plot {
    let series = sides
        .iter()
        .enumerate()
        .map(|(at, side)| {
            let point = bar(0.0, spread(runs, side, measure));
            Series {
                name: side_name(runs, side).to_owned(),
                style: at,
                kind: SeriesKind::Bars,
                points: vec![point],
            }
        })
        .collect();
    Plot {
        title: title.to_owned(),
        x: Axis::new("", Scale::Names(vec![String::new()]), Unit::Number),
        y: Axis::new(&measure.name_for(runs.runs.iter().map(|run| &run.report)), Scale::Linear, Unit::Number),
        series,
    }
}
