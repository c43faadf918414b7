//! Seconds and stalls as CSV tables (RFC 4180).

use crate::options::Level;
use crate::page::verdict::name;
use crate::record::report::Report;
use crate::record::series::{BrokerSecond, HostSecond, Second, Stall};
use crate::report::runs::Runs;
use crate::report::text::plain;

/// Columns of the table of seconds.
const SECONDS: [&str; 33] = [
    "t",
    "offered",
    "sent",
    "confirmed",
    "delivered",
    "in_flight",
    "reconnects",
    "response_p50_us",
    "response_p99_us",
    "response_p999_us",
    "response_max_us",
    "send_lag_max_us",
    "client_cpu_s",
    "broker_cpu_s",
    "broker_rss_bytes",
    "ctx_switches",
    "read_bytes",
    "write_bytes",
    "psi_cpu",
    "psi_io",
    "psi_mem",
    "steal",
    "run_queue",
    "client_canary_max_us",
    "cpu_canary_max_us",
    "disk_canary_max_us",
    "net_canary_max_us",
    "stall_verdict",
    "stall_worst_us",
    "stall_operations",
    "stall_delay_s",
    "level",
    "level_confirmed",
];

/// Columns of the table of stalls.
const STALLS: [&str; 7] = ["start_s", "length_s", "operations", "worst_us", "delay_s", "verdict", "evidence"];

/// One row per second. With several runs, each row begins with the number and side of its run.
pub fn seconds_csv(runs: &Runs) -> String {
    table(runs, &SECONDS, |run, push| {
        let stalls = run.stalls.as_ref().map_or(&[][..], |stalls| &stalls.list);
        for row in &run.rows {
            let mut cells = second(row, stalls);
            cells.extend(levels(run));
            push(cells);
        }
    })
}

/// One row per stall, laid out like [`seconds_csv`].
pub fn stalls_csv(runs: &Runs) -> String {
    table(runs, &STALLS, |run, push| {
        for stall in run.stalls.iter().flat_map(|stalls| &stalls.list) {
            push(vec![
                stall.start_s.to_string(),
                stall.length_s.to_string(),
                stall.operations.to_string(),
                stall.worst_us.to_string(),
                stall.delay_s.to_string(),
                name(stall.verdict).to_owned(),
                stall.evidence.clone(),
            ]);
        }
    })
}

fn table(runs: &Runs, columns: &[&str], rows: impl Fn(&Report, &mut dyn FnMut(Vec<String>))) -> String {
    let has_several = runs.runs.len() > 1;
    let mut text = String::new();
    let heads = if has_several { &["run", "side"][..] } else { &[] };
    text.push_str(&heads.iter().chain(columns).copied().collect::<Vec<_>>().join(","));
    text.push_str("\r\n");
    for (number, run) in (1..).zip(&runs.runs) {
        rows(&run.report, &mut |cells| {
            let first = if has_several { vec![number.to_string(), run.side.clone()] } else { Vec::new() };
            let cells: Vec<String> = first.iter().chain(&cells).map(|cell| quoted(cell)).collect();
            text.push_str(&cells.join(","));
            text.push_str("\r\n");
        });
    }
    text
}

fn second(row: &Second, stalls: &[Stall]) -> Vec<String> {
    let (no_broker, no_host) = (BrokerSecond::default(), HostSecond::default());
    let broker = row.broker.as_ref();
    let of_broker = |value: fn(&BrokerSecond) -> String| {
        if broker.is_some() { value(broker.unwrap_or(&no_broker)) } else { String::new() }
    };
    let host = row.host.as_ref().unwrap_or(&no_host);
    let (start, end) = (f64::from(row.t), f64::from(row.t) + 1.0);
    let stall = stalls.iter().find(|stall| stall.start_s < end && stall.start_s + stall.length_s > start);
    let of_stall = |value: fn(&Stall) -> String| stall.map(value).unwrap_or_default();
    vec![
        row.t.to_string(),
        row.offered.to_string(),
        row.sent.to_string(),
        row.confirmed.to_string(),
        row.delivered.to_string(),
        row.in_flight.to_string(),
        row.reconnects.to_string(),
        cell(row.p50_us),
        cell(row.p99_us),
        cell(row.p999_us),
        cell(row.max_us),
        cell(row.send_lag_max_us),
        row.client_cpu_s.to_string(),
        of_broker(|broker| broker.cpu_s.to_string()),
        of_broker(|broker| broker.rss_bytes.to_string()),
        of_broker(|broker| broker.context_switches.to_string()),
        of_broker(|broker| broker.read_bytes.to_string()),
        of_broker(|broker| broker.write_bytes.to_string()),
        cell(host.psi_cpu),
        cell(host.psi_io),
        cell(host.psi_memory),
        cell(host.steal),
        host.running.map(|running| running.to_string()).unwrap_or_default(),
        cell(host.client_canary_max_us),
        cell(host.cpu_canary_max_us),
        cell(host.disk_canary_max_us),
        cell(host.network_canary_max_us),
        of_stall(|stall| name(stall.verdict).to_owned()),
        of_stall(|stall| stall.worst_us.to_string()),
        of_stall(|stall| stall.operations.to_string()),
        of_stall(|stall| stall.delay_s.to_string()),
    ]
}

/// The requested level, and the lowest level that the broker reported; the same in every second.
fn levels(run: &Report) -> [String; 2] {
    let confirmed = run.levels.as_ref().map(|levels| levels.lowest().map_or("not said", Level::name));
    [run.asked.get("level").map(plain).unwrap_or_default(), confirmed.unwrap_or_default().to_owned()]
}

/// A value, or an empty cell if it was not measured.
fn cell(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Quotes a cell if necessary.
fn quoted(cell: &str) -> String {
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::levels::Levels;
    use crate::report::runs::Run;
    use crate::report::sample;

    fn runs(sides: &[&str]) -> Runs {
        let run = |side: &&str| Run { side: (*side).to_owned(), report: sample::report() };
        Runs::new(sides.iter().map(run).collect())
    }

    #[test]
    fn each_row_has_each_column() {
        for (sides, heads, first) in [
            (&[""][..], "t,offered,sent", "0,1000,1000"),
            (&["a", "b,c"][..], "run,side,t,offered", "1,a,0,1000"),
        ] {
            let text = seconds_csv(&runs(sides));
            let lines: Vec<&str> = text.split_terminator("\r\n").collect();
            assert_eq!(lines.len(), 1 + 60 * sides.len());
            assert!(lines[0].starts_with(heads) && lines[1].starts_with(first), "{}", lines[1]);
            let columns = lines[0].matches(',').count();
            assert!(lines[1..61].iter().all(|line| line.matches(',').count() == columns));
        }
        let text = seconds_csv(&runs(&["a", "b,c"]));
        assert!(text.contains("2,\"b,c\",59,"));
    }

    #[test]
    fn what_was_not_measured_is_empty_and_a_stall_marks_its_seconds() {
        let text = seconds_csv(&runs(&[""]));
        let row: Vec<&str> = text.lines().nth(7).unwrap().split(',').collect();
        let of = |column: &str| row[SECONDS.iter().position(|other| *other == column).unwrap()];
        assert_eq!((of("response_p999_us"), of("disk_canary_max_us"), of("stall_verdict")), ("", "8000", ""));
        let of_row = |row: &[&str], column: &str| {
            row[SECONDS.iter().position(|other| *other == column).unwrap()].to_owned()
        };
        let row: Vec<&str> = text.lines().nth(6).unwrap().split(',').collect();
        assert_eq!(of_row(&row, "stall_verdict"), "disk");
    }

    #[test]
    fn each_second_says_the_level_it_was_measured_at() {
        for (said, expected) in [
            (None, "memory,"),
            (Some(vec![None]), "memory,not said"),
            (Some(vec![Some(Level::Disk)]), "memory,disk"),
        ] {
            let mut runs = runs(&[""]);
            runs.runs[0].report.levels = said.map(|said| {
                let mut levels = Levels::of(Level::Memory);
                said.into_iter().for_each(|level| levels.note(level));
                levels
            });
            let text = seconds_csv(&runs);
            assert!(text.lines().nth(1).unwrap().ends_with(expected), "{text}");
        }
    }

    #[test]
    fn words_are_quoted_where_they_must_be() {
        let mut runs = runs(&[""]);
        runs.runs[0].report.stalls.as_mut().unwrap().list[0].evidence = "late, \"very\"\nlate".to_owned();
        let text = stalls_csv(&runs);
        assert!(text.starts_with("start_s,length_s,operations"));
        assert!(text.contains("5,1,990,1000000,500,disk,\"late, \"\"very\"\"\nlate\"\r\n"));
    }
}
