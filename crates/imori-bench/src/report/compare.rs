//! Compares two files of results: refuses different tests, and judges each number by the tolerated change.

use std::fmt::{self, Display};
use std::str::FromStr;

use anyhow::{Result, bail};
use clap::Args;

use crate::limits::{INCONCLUSIVE, MISSED};
use crate::page::markup::plain_line;
use crate::page::quantity::{change, percent};
use crate::page::table::Table;
use crate::record::levels::Levels;
use crate::record::report::{Outcome, Report};
use crate::report::fit;
use crate::report::html::html_of_comparison;
use crate::report::measure::{Better, MEASURES};
use crate::report::runs::{Run, Runs, read};
use crate::report::spread::Spread;
use crate::report::text::{ending, plain};
use crate::report::write::save;

/// Tolerated difference in memory size, because firmware reserves varying amounts on equal machines.
const MEMORY_APART: f64 = 0.02;

/// Two results of the same test against each other.
#[derive(Debug, Clone, Args)]
pub struct CompareOptions {
    /// The results before: a file that `--json` wrote, of one run or several, or a folder of `versus`.
    #[arg(value_name = "A.json")]
    pub before: String,
    /// The results now.
    #[arg(value_name = "B.json")]
    pub after: String,
    /// How much worse a number may be: `10%` or `0.1`.
    #[arg(long, default_value = "10%")]
    pub tolerance: Share,
    /// Compare also what was not the same test; the differences are listed.
    #[arg(long)]
    pub anyway: bool,
    /// File for the comparison as a page, with both runs.
    #[arg(long, value_name = "FILE")]
    pub html: Option<String>,
}

/// A share of one, `10%` or `0.1` on the command line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share(pub f64);

impl FromStr for Share {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Share> {
        let (number, unit) = match text.strip_suffix('%') {
            Some(number) => (number, 100.0),
            None => (text, 1.0),
        };
        match number.trim().parse::<f64>() {
            Ok(number) if number.is_finite() && (0.0..=100.0).contains(&(number / unit)) => {
                Ok(Share(number / unit))
            }
            _ => bail!("`{text}` is no share; write it as `10%` or `0.1`"),
        }
    }
}

impl Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0 * 100.0)
    }
}

/// Compares both files, prints the comparison, and returns the exit code: 0 not worse, 4 too few
/// runs to tell, 5 worse.
pub fn compare(options: &CompareOptions) -> Result<u8> {
    let (before, after) = (read(&options.before)?, read(&options.after)?);
    let comparison = Comparison::of(&before, &after, options.tolerance);
    if !comparison.differences.is_empty() && !options.anyway {
        bail!(
            "`{}` and `{}` are not of the same test: {}; run both alike, or compare them with `--anyway`",
            options.before,
            options.after,
            comparison.differences.join(", ")
        );
    }
    fit::print(&comparison.shown(fit::width()))?;
    if let Some(file) = &options.html {
        let runs = named(&options.before, before).chain(named(&options.after, after)).collect();
        save(file, "--html", comparison.page(options, &Runs::new(runs)).as_bytes())?;
    }
    Ok(comparison.exit_code())
}

/// Names each run after its file, and its side if it has one.
fn named(file: &str, runs: Runs) -> impl Iterator<Item = Run> {
    runs.runs.into_iter().map(move |run| {
        let side = if run.side.is_empty() { file.to_owned() } else { format!("{file}: {}", run.side) };
        Run { side, report: run.report }
    })
}

/// The direction in which a number changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Better,
    Same,
    Worse,
    /// Not judged, because the number says nothing about the broker or varies too much between runs.
    Unjudged,
}

impl Change {
    fn word(self) -> &'static str {
        match self {
            Change::Better => "better",
            Change::Same => "same",
            Change::Worse => "WORSE",
            Change::Unjudged => "",
        }
    }
}

/// One number before and after.
#[derive(Debug)]
struct Line {
    /// The side, if there are several.
    side: String,
    name: String,
    before: String,
    after: String,
    ratio: Option<f64>,
    change: Change,
}

/// A comparison of two results, number by number.
#[derive(Debug)]
struct Comparison {
    tolerance: Share,
    /// Differences that make the two results different tests.
    differences: Vec<String>,
    lines: Vec<Line>,
    /// Faults of the later runs that the earlier ones did not have.
    failures: Vec<String>,
    /// Whether a side has only one run, so that the variation between runs is unknown.
    is_of_single_runs: bool,
}

impl Comparison {
    fn of(before: &Runs, after: &Runs, tolerance: Share) -> Comparison {
        let mut comparison = Comparison {
            tolerance,
            differences: Vec::new(),
            lines: Vec::new(),
            failures: Vec::new(),
            is_of_single_runs: false,
        };
        let pairs = pairs(before, after, &mut comparison.differences);
        let has_sides = pairs.len() > 1;
        for (a, b) in pairs {
            let (one, other): (Vec<&Report>, Vec<&Report>) =
                (before.of_side(a).collect(), after.of_side(b).collect());
            comparison.is_of_single_runs |= one.len() == 1 || other.len() == 1;
            // The first run of a side represents the options of all its runs.
            if let (Some(first), Some(second)) = (one.first(), other.first()) {
                let prefix = if has_sides { format!("{}: ", plain_line(a)) } else { String::new() };
                comparison
                    .differences
                    .extend(differences(first, second).into_iter().map(|it| format!("{prefix}{it}")));
            }
            comparison.add_failures(&one, &other);
            comparison.add_lines(if has_sides { a } else { "" }, &one, &other);
        }
        comparison
    }

    fn add_failures(&mut self, before: &[&Report], after: &[&Report]) {
        let went_well = |reports: &[&Report]| reports.iter().all(|report| ending(report).0);
        if !went_well(after) && went_well(before) {
            let found = after.iter().map(|report| ending(report)).find(|(is_good, _)| !is_good);
            self.failures.push(found.map_or_else(String::new, |(_, said)| said));
        }
        // A run that missed an objective is comparable; one that ended early or lost messages is not.
        let is_whole = |report: &&Report| report.outcome == Outcome::Done && !report.is_broken();
        if !before.iter().all(is_whole) {
            self.differences.push("a run before did not end well".to_owned());
        }
    }

    fn add_lines(&mut self, side: &str, before: &[&Report], after: &[&Report]) {
        for measure in &MEASURES {
            let spread =
                |reports: &[&Report]| Spread::of(reports.iter().filter_map(|report| (measure.of)(report)));
            let (Some(a), Some(b)) = (spread(before), spread(after)) else { continue };
            let ratio = (a.median > 0.0).then(|| b.median / a.median);
            self.lines.push(Line {
                side: side.to_owned(),
                name: measure.name_for(before.iter().chain(after).copied()),
                before: a.show(measure.show),
                after: b.show(measure.show),
                ratio,
                change: judged(measure.better, ratio, self.tolerance.0),
            });
        }
    }

    /// The comparison as a table, or with both values below each name if the terminal is narrower.
    fn shown(&self, width: Option<usize>) -> String {
        let table = self.to_string();
        let is_wide = |line: &str| width.is_some_and(|width| line.chars().count() > width);
        // The verdict is a sentence, which can continue on a further line.
        if !table.lines().any(|line| !line.starts_with("verdict") && is_wide(line)) {
            return table;
        }
        let mut text: String =
            self.differences.iter().map(|it| format!("not the same test: {it}\n")).collect();
        let mut side = "";
        for line in &self.lines {
            if line.side != side {
                side = &line.side;
                text.push_str(&format!("{}\n", plain_line(side)));
            }
            let ratio = line.ratio.map_or_else(|| "n/a".to_owned(), change);
            let head = format!("{:<28} {ratio:>9}  {}", line.name, line.change.word());
            text.push_str(head.trim_end());
            text.push_str(&format!("\n  before  {}\n  after   {}\n", line.before, line.after));
        }
        text.push_str(&format!("verdict  {}\n", self.verdict()));
        text
    }

    fn worse(&self) -> usize {
        self.lines.iter().filter(|line| line.change == Change::Worse).count()
    }

    fn exit_code(&self) -> u8 {
        match (self.worse(), self.is_of_single_runs) {
            _ if !self.failures.is_empty() => MISSED,
            (0, _) => 0,
            (_, true) => INCONCLUSIVE,
            (_, false) => MISSED,
        }
    }

    fn verdict(&self) -> String {
        let tolerance = percent(self.tolerance.0);
        if let Some(failure) = self.failures.first() {
            return format!("fail: {failure}");
        }
        let found = match self.worse() {
            0 => format!("nothing is worse by more than {tolerance}"),
            1 => format!("1 number is worse by more than {tolerance}"),
            worse => format!("{worse} numbers are worse by more than {tolerance}"),
        };
        let single = "one run does not tell how much runs differ by themselves; compare several of each side";
        match (self.worse(), self.is_of_single_runs) {
            (0, false) => format!("pass: {found}"),
            (0, true) => format!("pass: {found}, but {single}"),
            (_, false) => format!("fail: {found}"),
            (_, true) => format!("cannot tell: {found}, but {single}"),
        }
    }

    fn page(&self, options: &CompareOptions, runs: &Runs) -> String {
        let mut said = vec![self.verdict()];
        said.extend(self.differences.iter().map(|difference| format!("Not the same test: {difference}.")));
        let mut table = Table::new(&["", "before", "after", "change", "judged"]).ending_in_words();
        for line in &self.lines {
            let name = if line.side.is_empty() {
                line.name.clone()
            } else {
                format!("{}: {}", line.side, line.name)
            };
            let micro = |text: &str| text.replace(" us", " µs");
            table.push(vec![
                name,
                micro(&line.before),
                micro(&line.after),
                line.ratio.map_or_else(|| "–".to_owned(), change),
                line.change.word().to_owned(),
            ]);
        }
        let title = format!("{} against {}", options.after, options.before);
        html_of_comparison(&title, &said, &table, runs)
    }
}

impl Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for difference in &self.differences {
            writeln!(f, "not the same test: {difference}")?;
        }
        let width = |of: fn(&Line) -> &str, least: usize| {
            self.lines.iter().map(|line| of(line).chars().count()).max().unwrap_or(0).max(least)
        };
        let (before, after) = (width(|line| &line.before, 6), width(|line| &line.after, 5));
        let name = width(|line| &line.name, 28);
        writeln!(f, "{:<name$} {:>before$} {:>after$} {:>9}", "", "before", "after", "change")?;
        let mut side = "";
        for line in &self.lines {
            if line.side != side {
                side = &line.side;
                writeln!(f, "{}", plain_line(side))?;
            }
            let ratio = line.ratio.map_or_else(|| "n/a".to_owned(), change);
            let said = format!(
                "{:<name$} {:>before$} {:>after$} {ratio:>9}  {}",
                line.name,
                line.before,
                line.after,
                line.change.word()
            );
            writeln!(f, "{}", said.trim_end())?;
        }
        writeln!(f, "verdict  {}", self.verdict())
    }
}

/// Pairs sides by name. If each file has a single side, these two are paired whatever their names.
fn pairs<'a>(before: &'a Runs, after: &'a Runs, differences: &mut Vec<String>) -> Vec<(&'a str, &'a str)> {
    let (ours, theirs) = (before.sides(), after.sides());
    if let ([a], [b]) = (ours.as_slice(), theirs.as_slice()) {
        return vec![(a, b)];
    }
    for side in ours.iter().filter(|side| !theirs.contains(side)) {
        differences.push(format!("side `{}` is only in the first", plain_line(side)));
    }
    for side in theirs.iter().filter(|side| !ours.contains(side)) {
        differences.push(format!("side `{}` is only in the second", plain_line(side)));
    }
    ours.into_iter().filter(|side| theirs.contains(side)).map(|side| (side, side)).collect()
}

/// The differences that make two runs different tests.
fn differences(before: &Report, after: &Report) -> Vec<String> {
    let mut found = Vec::new();
    let mut tell = |name: &str, a: &str, b: &str| {
        let [a, b] = [a, b].map(|value| if value.is_empty() { "unknown" } else { value });
        if a != b {
            found.push(plain_line(&format!("{name} `{a}` and `{b}`")));
        }
    };
    tell("scenario", &before.scenario, &after.scenario);
    tell("mode", &before.mode, &after.mode);
    let depth = |report: &Report| report.depth.clone().unwrap_or_else(|| "none".to_owned());
    tell("depth", &depth(before), &depth(after));
    let rate = |report: &Report| report.open.as_ref().map_or("none".to_owned(), |open| open.rate.to_string());
    tell("rate", &rate(before), &rate(after));
    let arrival =
        |report: &Report| report.open.as_ref().map_or("none".to_owned(), |open| open.arrival.clone());
    tell("arrival", &arrival(before), &arrival(after));
    let mut names: Vec<&String> = before.asked.keys().chain(after.asked.keys()).collect();
    names.sort();
    names.dedup();
    for name in names.into_iter().filter(|name| *name != "depth") {
        let asked = |report: &Report| report.asked.get(name).map_or_else(|| "none".to_owned(), plain);
        tell(name, &asked(before), &asked(after));
    }
    // Reported levels are only compared if both brokers report one; otherwise the requested levels count.
    let confirmed = |report: &Report| report.levels.as_ref().and_then(Levels::lowest);
    if let (Some(one), Some(other)) = (confirmed(before), confirmed(after)) {
        tell("level confirmed", one.name(), other.name());
    }
    let (one, other) = (&before.machine, &after.machine);
    tell("CPU", &one.cpu, &other.cpu);
    tell("CPUs", &one.cpus.to_string(), &other.cpus.to_string());
    let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    tell("governor", &optional(&one.governor), &optional(&other.governor));
    tell("kernel", &one.kernel, &other.kernel);
    tell("system", &one.system, &other.system);
    tell("file system", &optional(&one.file_system), &optional(&other.file_system));
    let (memory, more) = (one.memory_bytes as f64, other.memory_bytes as f64);
    if (memory - more).abs() > MEMORY_APART * memory.max(more) {
        tell("memory", &one.memory_bytes.to_string(), &other.memory_bytes.to_string());
    }
    found
}

fn judged(better: Better, ratio: Option<f64>, tolerance: f64) -> Change {
    let worse_by = match (better, ratio) {
        (Better::LessUnjudged, _) | (_, None) => return Change::Unjudged,
        (Better::Less, Some(ratio)) => ratio - 1.0,
        (Better::More, Some(ratio)) => 1.0 - ratio,
    };
    // A change equal to the tolerance must not fail because of rounding.
    let allowed = tolerance + 1e-9;
    match worse_by {
        _ if worse_by > allowed => Change::Worse,
        _ if worse_by < -allowed => Change::Better,
        _ => Change::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Level;
    use crate::page::well_formed::check;
    use crate::record::report::Kept;
    use crate::report::sample;

    fn one(change: impl Fn(&mut Report)) -> Runs {
        sides(&[""], change)
    }

    fn sides(sides: &[&str], change: impl Fn(&mut Report)) -> Runs {
        let run = |side: &&str| {
            let mut report = sample::report();
            change(&mut report);
            Run { side: (*side).to_owned(), report }
        };
        Runs::new(sides.iter().map(run).collect())
    }

    fn confirmed(report: &mut Report, said: Option<Level>) {
        let mut levels = Levels::of(Level::Disk);
        levels.note(said);
        report.levels = Some(levels);
    }

    #[test]
    fn levels_that_the_broker_said_have_to_be_the_same() {
        for (before, after, is_same) in [
            (Some(Level::Disk), Some(Level::Disk), true),
            (Some(Level::Os), Some(Level::Disk), false),
            (None, Some(Level::Disk), true),
            (None, None, true),
        ] {
            let (one, other) =
                (one(|report| confirmed(report, before)), one(|report| confirmed(report, after)));
            let found = Comparison::of(&one, &other, Share(0.1)).differences;
            let is_told =
                found.iter().any(|difference| difference.starts_with("level confirmed `os` and `disk`"));
            assert_eq!(is_told, !is_same, "{found:?}");
        }
        let below = one(|report| confirmed(report, Some(Level::Memory)));
        let comparison =
            Comparison::of(&one(|report| confirmed(report, Some(Level::Disk))), &below, Share(0.1));
        assert!(comparison.verdict().starts_with("fail: level broken"), "{comparison}");
    }

    #[test]
    fn a_narrow_terminal_sees_both_values_below_each_name() {
        let comparison = against_itself(|report| report.per_second /= 2.0);
        let wide = comparison.to_string();
        assert_eq!((comparison.shown(None), comparison.shown(Some(200))), (wide.clone(), wide));
        let narrow = comparison.shown(Some(50));
        let expected = "\n  before  1 000\n  after   500\n";
        assert!(narrow.starts_with("deliveries a second") && narrow.contains(expected), "{narrow}");
        let is_wide = |line: &str| line.chars().count() > 50 && !line.starts_with("verdict");
        assert!(!narrow.lines().any(is_wide), "{narrow}");
    }

    fn against_itself(change: impl Fn(&mut Report)) -> Comparison {
        Comparison::of(&one(|_| {}), &one(change), Share(0.1))
    }

    #[test]
    fn shares_are_read() {
        for (text, expected) in [
            ("10%", Some(0.1)),
            ("0.25", Some(0.25)),
            ("0%", Some(0.0)),
            ("-1%", None),
            ("x", None),
            ("inf", None),
        ] {
            assert_eq!(text.parse::<Share>().ok().map(|share| share.0), expected, "{text}");
        }
        assert_eq!(Share(0.1).to_string(), "10%");
    }

    #[test]
    fn what_is_another_test_is_told() {
        for (change, expected) in [
            (Box::new(|_: &mut Report| {}) as Box<dyn Fn(&mut Report)>, None),
            (Box::new(|report| report.server = "another".to_owned()), None),
            (Box::new(|report| report.machine.memory_bytes += 1_000_000), None),
            (Box::new(|report| report.seconds = 61.0), None),
            (Box::new(|report| report.scenario = "rpc".into()), Some("scenario `queue` and `rpc`")),
            (Box::new(|report| report.mode = "CLOSED".to_owned()), Some("mode")),
            (Box::new(|report| report.depth = Some("4".to_owned())), Some("depth `none` and `4`")),
            (Box::new(|report| report.open.as_mut().unwrap().rate = 9.0), Some("rate `1000` and `9`")),
            (Box::new(|report| report.open = None), Some("rate `1000` and `none`, arrival")),
            (
                Box::new(|report| drop(report.asked.insert("level".to_owned(), "disk".into()))),
                Some("level `memory` and `disk`"),
            ),
            (
                Box::new(|report| drop(report.asked.insert("size".to_owned(), 9.into()))),
                Some("size `128` and `9`"),
            ),
            (Box::new(|report| report.machine.cpus = 4), Some("CPUs `2` and `4`")),
            (Box::new(|report| report.machine.kernel = "7".to_owned()), Some("kernel `6.1` and `7`")),
            (Box::new(|report| report.machine.memory_bytes *= 2), Some("memory")),
        ] {
            let found = against_itself(&change).differences.join(", ");
            match expected {
                None => assert_eq!(found, ""),
                Some(expected) => assert!(found.contains(expected), "`{found}` does not say `{expected}`"),
            }
        }
    }

    #[test]
    fn only_what_is_worse_by_more_than_the_tolerance_fails() {
        for (change, code, said) in [
            (
                Box::new(|_: &mut Report| {}) as Box<dyn Fn(&mut Report)>,
                0,
                "pass: nothing is worse by more than 10 %",
            ),
            (Box::new(|report| report.per_second *= 0.9), 0, "pass"),
            (Box::new(|report| report.per_second *= 0.89), 4, "cannot tell: 1 number is worse"),
            (Box::new(|report| report.per_second *= 2.0), 0, "pass"),
            (
                Box::new(|report| report.latency.as_mut().unwrap().p99_us = Some(700_000.0)),
                4,
                "cannot tell: 1",
            ),
            (Box::new(|report| report.latency.as_mut().unwrap().max_us = Some(1e9)), 0, "pass"),
            (Box::new(|report| report.latency.as_mut().unwrap().p999_us = None), 0, "pass"),
            (Box::new(|report| report.broker = None), 0, "pass"),
            (Box::new(|report| report.ledger.lost = 1), 5, "fail: ledger broken"),
            (Box::new(|report| report.outcome = Outcome::Broken), 5, "fail: the broker went away"),
        ] {
            let comparison = against_itself(&change);
            assert_eq!(comparison.exit_code(), code, "{comparison}");
            assert!(comparison.verdict().starts_with(said), "{comparison}");
        }
    }

    #[test]
    fn a_run_that_broke_off_is_nothing_to_compare_with() {
        let kept = |is_kept| Kept { objective: "p99<1ms".to_owned(), is_kept, found: String::new() };
        for (change, is_refused) in [
            (Box::new(|_: &mut Report| {}) as Box<dyn Fn(&mut Report)>, false),
            (Box::new(|report| report.objectives.push(kept(false))), false),
            (Box::new(|report| report.ledger.lost = 1), true),
            (Box::new(|report| report.outcome = Outcome::Stopped), true),
        ] {
            let comparison = Comparison::of(&one(change), &one(|_| {}), Share(0.1));
            assert_eq!(!comparison.differences.is_empty(), is_refused, "{comparison}");
        }
        let comparison = against_itself(|report| report.objectives.push(kept(false)));
        assert_eq!(comparison.verdict(), "fail: objective broken");
    }

    #[test]
    fn several_runs_are_compared_by_their_medians() {
        let before = sides(&["a", "b", "a", "b", "a"], |_| {});
        let mut after = before.clone();
        after.runs[0].report.per_second = 1.0;
        let comparison = Comparison::of(&before, &after, Share(0.1));
        assert_eq!(comparison.exit_code(), 0, "one of three is no median: {comparison}");
        assert!(comparison.to_string().contains("1 000 (1 to 1 000)"), "{comparison}");
        for at in [1, 3] {
            after.runs[at].report.per_second = 500.0;
        }
        let comparison = Comparison::of(&before, &after, Share(0.1));
        assert_eq!((comparison.exit_code(), comparison.verdict().starts_with("fail: ")), (5, true));
        let other = sides(&["a", "c"], |_| {});
        let told = Comparison::of(&before, &other, Share(0.1)).differences;
        assert_eq!(told, ["side `b` is only in the first", "side `c` is only in the second"]);
    }

    #[test]
    fn the_table_and_the_page_say_the_same() {
        let comparison = against_itself(|report| report.per_second = 500.0);
        let text = comparison.to_string();
        let words: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(words.join(" "), "deliveries a second 1 000 500 -50.0 % WORSE");
        let options = CompareOptions {
            before: "<a>.json".to_owned(),
            after: "b.json".to_owned(),
            tolerance: Share(0.1),
            anyway: false,
            html: None,
        };
        let page = comparison.page(&options, &one(|_| {}));
        check(&page);
        assert!(page.contains("b.json against &lt;a&gt;.json") && page.contains("WORSE"));
    }
}
