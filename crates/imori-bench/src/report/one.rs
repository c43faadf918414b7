//! The part of a page that shows one run: figures, plots, tables and facts.

use crate::page::buckets::{BUCKETS_EACH, BUCKETS_FEW, Buckets};
use crate::page::columns::Columns;
use crate::page::figure::{Size, figure, plot_figure};
use crate::page::graphs;
use crate::page::heat::Heat;
use crate::page::markup::Markup;
use crate::page::plot::Series;
use crate::page::quantity::{OneUnit, bytes, change, grouped, moment, optional, percent, significant};
use crate::page::table::{Row, Table, unbroken};
use crate::page::verdict::{letter, name};
use crate::record::latency::Latency;
use crate::record::levels::Levels;
use crate::record::report::{RateStep, Report};
use crate::record::series::{Stall, Stalls};
use crate::report::drift::Drift;
use crate::report::text::{ending, offered, plain};

/// The most stalls listed on a page; the CSV file has all.
const STALLS_SHOWN: usize = 500;

/// A time formatted for the page.
fn time(micros: f64) -> String {
    crate::page::quantity::time(micros).replace("us", "µs")
}

/// Writes the title and verdict of a run.
pub(crate) fn write_head(page: &mut Markup, report: &Report) {
    page.open("header", &[]);
    page.element("h1", &[], &format!("{} · {}", report.scenario, report.mode));
    let (is_good, said) = ending(report);
    page.open("p", &[("class", &"said")]);
    let (class, sign) = if is_good { ("badge good", "✓") } else { ("badge bad", "✗") };
    page.element("span", &[("class", &class)], &format!("{sign} {said}"));
    page.text(&format!(" {} at ", report.server));
    page.element("code", &[], &report.url);
    if report.started_at > 0.0 {
        page.text(&format!(", {}", moment(report.started_at as u64)));
    }
    page.text(&format!(", measured for {} s", significant(report.seconds)));
    page.close("p");
    page.close("header");
}

/// Writes everything below the title; plots divide the time into at most `pieces` buckets.
pub(crate) fn write_run(page: &mut Markup, report: &Report, pieces: u32) {
    write_notes(page, &report.notes);
    write_tiles(page, report);
    write_kept(page, report);
    let buckets = Buckets::of(&report.rows, report.seconds, pieces);
    write_plots(page, report, &buckets);
    write_times(page, report);
    write_steps(page, &report.steps);
    if let Some(stalls) = &report.stalls {
        write_stalls(page, stalls);
    }
    write_ledger(page, report);
    write_facts(page, report);
    for part in &report.parts {
        page.open("details", &[("class", &"run")]);
        page.element("summary", &[], &format!("Part: {}, {}", part.scenario, part.mode));
        write_run(page, part, pieces.min(BUCKETS_EACH));
        page.close("details");
    }
}

/// Writes the table of objectives.
fn write_kept(page: &mut Markup, report: &Report) {
    if report.objectives.is_empty() {
        return;
    }
    let mut table = Table::new(&["objective", "kept", "found"]).ending_in_words();
    for kept in &report.objectives {
        let word = if kept.is_kept { "✓ kept" } else { "✗ broken" };
        table.push(vec![kept.objective.clone(), word.to_owned(), kept.found.clone()]);
    }
    table.write(page);
}

/// Writes the table of all measured latencies.
fn write_times(page: &mut Markup, report: &Report) {
    let named = [
        (graphs::time_name(report), &report.latency),
        ("service time", &report.service),
        ("confirm time", &report.confirm),
    ];
    let all = named.into_iter().filter_map(|(name, latency)| Some((name.to_owned(), latency.as_ref()?)));
    let spread = report.spread.iter().map(|(name, latency)| (name.clone(), latency));
    let mut table = Table::new(&["time", "samples", "p50", "p99", "p99.9", "p99.99", "max"]);
    for (name, latency) in all.chain(spread) {
        let mut cells = vec![name, grouped(latency.samples as f64)];
        for value in [latency.p50_us, latency.p99_us, latency.p999_us, latency.p9999_us, latency.max_us] {
            cells.push(value.map_or_else(|| "–".to_owned(), time));
        }
        table.push(cells);
    }
    if !table.rows.is_empty() {
        page.element("h2", &[], "Times");
        page.element("p", &[], "A percentile with fewer than ten samples above it is not told.");
        table.write(page);
    }
}

/// Writes the table of the rates that a search tried.
fn write_steps(page: &mut Markup, steps: &[RateStep]) {
    if steps.is_empty() {
        return;
    }
    page.element("h2", &[], "Search for the highest rate");
    page.open("div", &[("class", &"figures")]);
    let plot = graphs::search(steps);
    if plot.series.iter().any(Series::has_values) {
        plot_figure(page, &plot, "A mark for each step.", Size::Full);
    }
    page.close("div");
    let mut table = Table::new(&["offered a second", "done a second", "p99", "kept"]).ending_in_words();
    for step in steps {
        let said =
            if step.is_kept { "✓ kept".to_owned() } else { format!("✗ {}", step.broken.join("; ")) };
        let p99 = step.p99_us.map_or_else(|| "–".to_owned(), time);
        table.push(vec![grouped(step.rate), grouped(step.done), p99, said]);
    }
    table.write(page);
}

fn write_notes(page: &mut Markup, notes: &[String]) {
    if notes.is_empty() {
        return;
    }
    page.open("ul", &[("class", &"notes")]);
    for note in notes {
        page.element("li", &[], note);
    }
    page.close("ul");
}

/// The unit in which all percentiles of these latencies are shown.
fn unit_of<'a>(latencies: impl IntoIterator<Item = &'a Latency>) -> OneUnit {
    let values = |latency: &Latency| {
        [latency.p50_us, latency.p99_us, latency.p999_us, latency.p9999_us, latency.max_us]
    };
    OneUnit::of_times(latencies.into_iter().flat_map(values).flatten())
}

/// Writes the tiles with the most important numbers.
fn write_tiles(page: &mut Markup, report: &Report) {
    let mut tiles = vec![(
        format!("{} a second", report.unit),
        grouped(report.per_second),
        report.open.as_ref().map_or_else(
            || "closed loop: as fast as answers come".to_owned(),
            |open| format!("{}, {}", offered(report, open), open.arrival),
        ),
    )];
    if let Some(rate) = report.publishes_per_second() {
        let below = format!("each to {} subscribers", report.fan_out);
        tiles.push(("publishes a second".to_owned(), grouped(rate), below));
    }
    if let Some(latency) = &report.latency {
        let of = graphs::time_name(report);
        let unit = unit_of([latency].into_iter().chain(&report.service));
        for (quantile, value, service) in [
            ("p50", latency.p50_us, report.service.as_ref().and_then(|s| s.p50_us)),
            ("p99", latency.p99_us, report.service.as_ref().and_then(|s| s.p99_us)),
            ("p99.9", latency.p999_us, report.service.as_ref().and_then(|s| s.p999_us)),
            ("p99.99", latency.p9999_us, report.service.as_ref().and_then(|s| s.p9999_us)),
            ("max", latency.max_us, report.service.as_ref().and_then(|s| s.max_us)),
        ] {
            let below = match (value, service) {
                (None, _) => "too few samples".to_owned(),
                (_, Some(service)) => format!("{of}; service {}", unit.show(service)),
                _ => of.to_owned(),
            };
            tiles.push((quantile.to_owned(), optional(value, |value| unit.show(value)), below));
        }
    }
    if let Some(broker) = &report.broker {
        let value = optional(broker.cpu_s_per_million_deliveries, significant);
        tiles.push(("CPU-s a million deliveries".to_owned(), value, format!("{:.2} s in all", broker.cpu_s)));
        let [first, last, peak] =
            [broker.rss_start, broker.rss_end, broker.rss_peak].map(|count| count as f64);
        let unit = OneUnit::of_bytes([first, last, peak]);
        let below = format!("{} at first, {} at last", unit.show(first), unit.show(last));
        tiles.push(("RSS of the broker, peak".to_owned(), unit.show(peak), below));
    }
    for (name, drift) in [("p50", Drift::of_p50(report)), ("p99", Drift::of_p99(report))] {
        if let Some(drift) = drift {
            let unit = OneUnit::of_times([drift.first, drift.last]);
            tiles.push(drift_tile(name, drift, unit));
        }
    }
    if let Some(drift) = Drift::of_memory(report) {
        let unit = OneUnit::of_bytes([drift.first, drift.last]);
        tiles.push(drift_tile("RSS", drift, unit));
    }
    if let Some(stalls) = &report.stalls {
        let count = stalls.list.len() as f64 + stalls.unlisted as f64;
        let below = match (&stalls.period, count > 0.0) {
            (Some(period), _) => format!("each {} s", significant(period.period_s)),
            (None, true) => format!("longest {} s", significant(stalls.longest_s)),
            (None, false) => "nothing stood still".to_owned(),
        };
        tiles.push(("stalls".to_owned(), grouped(count), below));
    }
    let ledger = &report.ledger;
    let broken = ledger.lost + ledger.duplicated + ledger.altered + ledger.reordered;
    let below_level = report.levels.as_ref().map_or(0, Levels::below);
    let broken = broken + below_level;
    let below = match (ledger.is_broken(), below_level) {
        (true, _) => "lost, repeated, altered, reordered",
        (false, 0) => "every one accounted for",
        (false, _) => "confirmed at a lower level than was asked for",
    };
    tiles.push(("broken promises".to_owned(), grouped(broken as f64), below.to_owned()));
    page.open("div", &[("class", &"tiles")]);
    for (title, value, below) in tiles {
        page.open("div", &[]);
        page.element("span", &[("class", &"name")], &title);
        page.element("strong", &[], &unbroken(&value));
        page.element("span", &[("class", &"below")], &unbroken(&below));
        page.close("div");
    }
    page.close("div");
}

fn drift_tile(name: &str, drift: Drift, unit: OneUnit) -> (String, String, String) {
    let below =
        format!("{} in the first quarter, {} in the last", unit.show(drift.first), unit.show(drift.last));
    (format!("drift of {name}"), change(drift.ratio()), below)
}

fn write_plots(page: &mut Markup, report: &Report, buckets: &Buckets) {
    page.open("div", &[("class", &"figures")]);
    if !buckets.list.is_empty() {
        write_heat(page, report, buckets);
        let says = match (&report.open, buckets.width) {
            (Some(_), _) => "The grey ground is what the schedule asked for.",
            (None, _) => {
                "A closed loop sends when it is answered: while the broker stands still nothing is offered."
            }
        };
        plot_figure(page, &graphs::throughput(report, buckets), says, Size::Full);
    }
    if !report.curve.is_empty() {
        let says = match report.open {
            Some(_) => {
                "Response time counts from the schedule, service time from the actual send; the gap is waiting."
            }
            None => "A closed loop: waiting to be sent is not in it.",
        };
        plot_figure(page, &graphs::percentiles(report), says, Size::Half);
    }
    let few = Buckets::of(&report.rows, report.seconds, BUCKETS_FEW);
    let early = match few.width {
        1 => "A stall in which they are early is the broker's own.".to_owned(),
        width => format!("The worst of each {width} s. A stall in which they are early is the broker's own."),
    };
    let worst = match buckets.width {
        1 => "Of what ended in each second.".to_owned(),
        width => format!("The worst second of each {width} s."),
    };
    let more = [
        (graphs::times(buckets), worst.as_str()),
        (graphs::in_flight(buckets), "Begun and not ended."),
        (graphs::cpu(buckets), "1 is one CPU all the time."),
        (graphs::memory(buckets), "All processes of the broker."),
        (graphs::disk(buckets), "What reached the block device, not the page cache."),
        (graphs::switches(buckets), "Given up or lost, all threads."),
        (graphs::canaries(&few), early.as_str()),
        (graphs::pressure(&few), "As the kernel counts it."),
        (graphs::send_lag(&few), "How late this tool itself began operations."),
    ];
    for (plot, says) in more.iter().filter(|(plot, _)| plot.series.iter().any(is_worth_seeing)) {
        plot_figure(page, plot, says, Size::Half);
    }
    page.close("div");
}

/// Whether any measured value is not zero.
fn is_worth_seeing(series: &Series) -> bool {
    series.points.iter().any(|point| point.y.is_some_and(|y| y != 0.0))
}

fn write_heat(page: &mut Markup, report: &Report, buckets: &Buckets) {
    let columns = Columns::of(report);
    if !columns.list.iter().any(|column| column.counts.iter().any(|count| *count > 0)) {
        return;
    }
    let none = Stalls::default();
    let stalls = report.stalls.as_ref().unwrap_or(&none);
    let unit = &report.unit;
    let heat = Heat {
        columns: &columns,
        end: buckets.end,
        unit,
        stalls: &stalls.list,
        period: stalls.period.as_ref(),
    };
    let mut table = Table::new(&["time", "offered", "delivered", "p50", "p99", "p99.9", "max", "stalled"]);
    for bucket in &buckets.list {
        let sum = &bucket.sum;
        let end = bucket.start + bucket.seconds;
        let during = stalls.list.iter().find(|s| s.start_s < end && s.start_s + s.length_s > bucket.start);
        let mut cells = vec![
            format!("{} s", bucket.start),
            grouped(bucket.rate(sum.offered)),
            grouped(bucket.rate(sum.delivered)),
        ];
        for value in [sum.p50_us, sum.p99_us, sum.p999_us, sum.max_us] {
            cells.push(value.map_or_else(|| "–".to_owned(), time));
        }
        cells.push(during.map_or_else(|| "–".to_owned(), |stall| name(stall.verdict).to_owned()));
        table.rows.push(Row { place: Some(bucket.middle() / buckets.end), cells });
    }
    let says = match (&report.stalls, stalls.list.len()) {
        (None, _) => "How many operations took how long.",
        (Some(_), 0) => "No stall was found.",
        (Some(_), _) => "Below: each stall in the lane of its cause.",
    };
    let title = match report.open {
        Some(_) => "Response times",
        None => "Times of a closed loop",
    };
    figure(page, title, says, Size::Full, |width| heat.svg(width), &table);
}

fn write_stalls(page: &mut Markup, stalls: &Stalls) {
    page.element("h2", &[], "Stalls");
    let mut said = Vec::new();
    if stalls.threshold_us > 0.0 {
        said.push(format!("Delays shorter than {} are not stalls.", time(stalls.threshold_us)));
    }
    if let Some(share) = stalls.available_at_50_ms {
        said.push(format!("Within 50 ms: {} of the operations.", percent(share)));
    }
    for (verdict, per_hour) in &stalls.per_hour {
        said.push(format!("{}: {} an hour.", name(*verdict), significant(*per_hour)));
    }
    match (&stalls.period, &stalls.no_period) {
        (Some(period), _) => {
            let suspect = period
                .suspect
                .as_ref()
                .map_or(String::new(), |known| format!(" This is the period of: {known}."));
            said.push(format!(
                "They come back each {} s (first due at {} s, {} cycles seen, confidence {}).{suspect}",
                significant(period.period_s),
                significant(period.phase_s),
                period.cycles,
                percent(period.confidence)
            ));
        }
        (None, Some(why)) => said.push(format!("No period is told: {why}.")),
        (None, None) => {}
    }
    page.element("p", &[], &said.join(" "));
    if stalls.list.is_empty() {
        page.element("p", &[], "Nothing stood still.");
        return;
    }
    let mut table =
        Table::new(&["start", "length", "delayed", "worst delay", "all delays", "verdict", "evidence"])
            .ending_in_words();
    for stall in stalls.list.iter().take(STALLS_SHOWN) {
        table.push(stall_cells(stall));
    }
    table.write(page);
    let unshown = stalls.list.len().saturating_sub(STALLS_SHOWN) as u64 + stalls.unlisted;
    if unshown > 0 {
        page.element("p", &[], &format!("And {} more.", grouped(unshown as f64)));
    }
}

fn stall_cells(stall: &Stall) -> Vec<String> {
    vec![
        format!("{:.1} s", stall.start_s),
        time(stall.length_s * 1e6),
        grouped(stall.operations as f64),
        time(stall.worst_us),
        format!("{} s", significant(stall.delay_s)),
        format!("{} {}", letter(stall.verdict), name(stall.verdict)),
        stall.evidence.clone(),
    ]
}

fn write_ledger(page: &mut Markup, report: &Report) {
    page.element("h2", &[], "Ledger");
    let ledger = &report.ledger;
    let mut table = Table::new(&["state", "count", "meaning"]).ending_in_words();
    for (state, count, meaning) in [
        ("sent", ledger.sent, "handed to the socket"),
        ("good", ledger.good, "answered or delivered as it should be"),
        ("lost", ledger.lost, "never answered or delivered"),
        ("duplicated", ledger.duplicated, "delivered again without the mark of a redelivery"),
        ("redelivered", ledger.redelivered, "delivered again with that mark"),
        ("altered", ledger.altered, "with another value than it should have"),
        ("reordered", ledger.reordered, "overtaken by a later message of the same publisher"),
        ("foreign", ledger.foreign, "of another run, or never sent"),
        ("timeouts", ledger.timeouts, "calls that were given up"),
        ("late", ledger.late, "replies to calls that were given up"),
        ("unknown", ledger.unknown, "under way when a connection broke: taken or not, both are right"),
        ("expired", ledger.expired, "not delivered, and older than they were to live"),
    ] {
        table.push(vec![state.to_owned(), grouped(count as f64), meaning.to_owned()]);
    }
    table.write(page);
}

fn write_facts(page: &mut Markup, report: &Report) {
    page.element("h2", &[], "Made with");
    if !report.command.is_empty() {
        let words: Vec<String> = report.command.iter().map(|word| quoted(word)).collect();
        page.open("pre", &[]);
        page.element("code", &[], &words.join(" "));
        page.close("pre");
    }
    let mut facts: Vec<(String, String)> = vec![
        ("broker".to_owned(), report.server.clone()),
        ("tool".to_owned(), format!("imori bench {}, format {}", report.tool, report.format)),
        ("seed".to_owned(), report.seed.to_string()),
    ];
    if let Some(depth) = &report.depth {
        facts.push(("depth".to_owned(), depth.clone()));
    }
    facts.extend(report.asked.iter().map(|(name, value)| (name.replace('_', " "), plain(value))));
    if let Some(levels) = &report.levels {
        facts.push(("level of the confirms".to_owned(), levels.said()));
    }
    if let Some(sync) = &report.disk_sync {
        let shown = [("p50", sync.p50_us), ("p99", sync.p99_us), ("max", sync.max_us)];
        let shown: Vec<String> =
            shown.iter().filter_map(|(name, us)| Some(format!("{name} {}", time((*us)?)))).collect();
        facts.push(("4 KiB and a sync".to_owned(), shown.join(", ")));
    }
    let machine = &report.machine;
    for (name, value) in [
        ("CPU", (machine.cpus > 0).then(|| format!("{} x {}", machine.cpus, machine.cpu))),
        ("governor", machine.governor.clone()),
        ("memory", (machine.memory_bytes > 0).then(|| bytes(machine.memory_bytes as f64))),
        ("kernel", (!machine.kernel.is_empty()).then(|| machine.kernel.clone())),
        ("system", (!machine.system.is_empty()).then(|| machine.system.clone())),
        ("file system", machine.file_system.clone()),
    ] {
        facts.extend(value.map(|value| (name.to_owned(), value)));
    }
    if let Some(broker) = &report.broker {
        let cpus = broker.cpus_allowed.as_deref().unwrap_or("unknown");
        let said = format!("{} processes, {} threads, on CPUs {cpus}", broker.processes, broker.threads);
        facts.push(("broker ran as".to_owned(), said));
    }
    let client = &report.client;
    let cpus = client.cpus_allowed.as_deref().unwrap_or("unknown");
    let each = optional(client.cpu_us_per_op, |us| format!("{} µs", significant(us)));
    facts.push((
        "client".to_owned(),
        format!("{} threads, on CPUs {cpus}, {:.2} CPU-s, {each} each", client.threads, client.cpu_s),
    ));
    page.open("dl", &[]);
    for (name, value) in &facts {
        page.open("div", &[]);
        page.element("dt", &[], name);
        page.element("dd", &[], value);
        page.close("div");
    }
    page.close("dl");
    if report.counters.is_empty() {
        return;
    }
    page.open("details", &[]);
    page.element("summary", &[], "Counters of both sides, warm-up included");
    let mut table = Table::new(&["counter", "value"]);
    for count in &report.counters {
        table.push(vec![count.name.replace('_', " "), grouped(count.value as f64)]);
    }
    table.write(page);
    page.close("details");
}

/// Quotes a word for a shell if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+=".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted() {
        for (word, expected) in [
            ("--rate", "--rate"),
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("$(reboot)", "'$(reboot)'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
