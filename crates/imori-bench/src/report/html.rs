//! A report as a self-contained HTML page that is readable without scripts.

use crate::page::buckets::BUCKETS_MAX;
use crate::page::frame::{STYLE_SHEET, patterns};
use crate::page::markup::Markup;
use crate::page::table::Table;
use crate::record::report::Report;
use crate::report::one::{write_head, write_run};
use crate::report::runs::Runs;
use crate::report::several::write_several;

/// Style sheet of the page, without the plots.
const PAGE_STYLE: &str = include_str!("page.css");
/// Script that shows the values under the pointer; the page works without it.
const SCRIPT: &str = include_str!("page.js");

/// A link to a raw file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Text of the link.
    pub name: String,
    /// Path relative to the page's folder.
    pub path: String,
}

/// Renders the page of one run.
pub fn html_of(report: &Report, links: &[Link]) -> String {
    let title = format!("{} {} – {}", report.scenario, report.mode, report.server);
    page_of(&title, links, |page| {
        write_head(page, report);
        write_run(page, report, BUCKETS_MAX);
    })
}

/// Renders the page of several runs: a side-by-side comparison, then each run.
pub fn html_of_many(title: &str, runs: &Runs, links: &[Link]) -> String {
    page_of(title, links, |page| {
        page.open("header", &[]);
        page.element("h1", &[], title);
        page.close("header");
        write_several(page, runs);
    })
}

/// Renders the page of a comparison: verdict, table, then all runs.
pub(crate) fn html_of_comparison(title: &str, said: &[String], table: &Table, runs: &Runs) -> String {
    page_of(title, &[], |page| {
        page.open("header", &[]);
        page.element("h1", &[], title);
        page.close("header");
        for line in said {
            page.element("p", &[], line);
        }
        table.write(page);
        write_several(page, runs);
    })
}

fn page_of(title: &str, links: &[Link], write: impl FnOnce(&mut Markup)) -> String {
    let mut page = Markup::new();
    page.own("<!doctype html>\n");
    page.open("html", &[("lang", &"en")]);
    page.open("head", &[]);
    page.empty("meta", &[("charset", &"utf-8")]);
    page.empty("meta", &[("name", &"viewport"), ("content", &"width=device-width, initial-scale=1")]);
    page.empty("meta", &[("name", &"color-scheme"), ("content", &"light dark")]);
    // Even if foreign text should ever become an element, it could not load anything.
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
    page.empty("meta", &[("http-equiv", &"Content-Security-Policy"), ("content", &policy)]);
    page.element("title", &[], title);
    page.open("style", &[]);
    page.own(STYLE_SHEET);
    page.own(PAGE_STYLE);
    page.close("style");
    page.close("head");
    page.open("body", &[]);
    page.open("svg", &[("class", &"defs"), ("width", &"0"), ("height", &"0"), ("aria-hidden", &"true")]);
    patterns(&mut page);
    page.close("svg");
    page.open("main", &[]);
    write(&mut page);
    write_links(&mut page, links);
    page.close("main");
    page.open("script", &[]);
    page.own(SCRIPT);
    page.close("script");
    page.close("body");
    page.close("html");
    page.own("\n");
    page.into_text()
}

fn write_links(page: &mut Markup, links: &[Link]) {
    if links.is_empty() {
        return;
    }
    page.open("p", &[("class", &"links")]);
    page.text("Raw files:");
    for link in links {
        page.text(" ");
        page.element("a", &[("href", &encoded(&link.path))], &link.name);
    }
    page.close("p");
}

/// Encodes a path as a relative URL; the leading `./` keeps it from being parsed as a scheme.
fn encoded(path: &str) -> String {
    let mut address = "./".to_owned();
    for byte in path.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => {
                address.push(char::from(byte));
            }
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::well_formed::check;
    use crate::record::report::{Kept, RateStep};
    use crate::report::runs::Run;
    use crate::report::sample;

    /// Checks that hold for every page.
    fn check_page(page: &str) {
        check(page);
        assert!(page.starts_with("<!doctype html>"));
        for outside in
            ["src=", "url(h", "url('", "@import", "<link", "<iframe", "<img", "href=\"http", "fetch("]
        {
            assert!(!page.contains(outside), "`{outside}` is in the page");
        }
    }

    #[test]
    fn a_page_is_well_formed_and_whole() {
        let page = html_of(&sample::report(), &[]);
        check_page(&page);
        for part in [
            "Response times",
            "Throughput",
            "Percentiles",
            "Memory of the broker",
            "Canaries",
            "Stalls",
            "They come back each",
            "Ledger",
            "Made with",
            "imori-bench queue",
            "B broker",
            "prefers-color-scheme: dark",
        ] {
            assert!(page.contains(part), "`{part}` is missing");
        }
    }

    #[test]
    fn what_comes_from_outside_cannot_become_an_element() {
        let report = sample::hostile();
        let runs = Runs::new(vec![
            Run { side: sample::HOSTILE.to_owned(), report: report.clone() },
            Run { side: "b".to_owned(), report: report.clone() },
        ]);
        let link = Link { name: sample::HOSTILE.to_owned(), path: "javascript:alert(1)".to_owned() };
        for page in [html_of(&report, &[link]), html_of_many(sample::HOSTILE, &runs, &[])] {
            check_page(&page);
            assert!(page.contains("&lt;script&gt;"));
            assert!(!page.contains("<script>alert") && !page.contains("\"javascript:"));
            assert_eq!(page.matches("<script>").count(), 1, "only our own script");
        }
    }

    #[test]
    fn what_a_run_had_to_keep_its_search_and_its_parts_are_shown() {
        let mut report = sample::report();
        let part = sample::hostile();
        report.parts.push(part);
        report.confirm = report.service.clone();
        report.spread.push((sample::HOSTILE.to_owned(), report.service.clone().unwrap()));
        let said = sample::HOSTILE.to_owned();
        report.objectives.push(Kept { objective: said.clone(), is_kept: false, found: said.clone() });
        for (rate, is_kept) in [(1_000.0, true), (2_000.0, false)] {
            report.steps.push(RateStep {
                rate,
                done: rate,
                is_kept,
                p99_us: Some(rate),
                broken: vec![said.clone()],
            });
        }
        let page = html_of(&report, &[]);
        check_page(&page);
        for part in ["✗ broken", "confirm time", "Search for the highest rate", "Part: "] {
            assert!(page.contains(part), "`{part}` is missing");
        }
    }

    #[test]
    fn a_run_in_which_nothing_was_measured_has_a_page() {
        let mut report = sample::report();
        report.rows.clear();
        report.curve.clear();
        report.stalls = None;
        report.latency = None;
        report.broker = None;
        report.seconds = 0.0;
        check_page(&html_of(&report, &[]));
        check_page(&html_of_many("nothing", &Runs::new(Vec::new()), &[]));
    }

    #[test]
    fn several_runs_have_medians_and_ratios() {
        let mut faster = sample::report();
        faster.per_second *= 1.5;
        let runs = Runs::new(
            [("a", sample::report()), ("b", faster.clone()), ("a", sample::report()), ("b", faster)]
                .map(|(side, report)| Run { side: side.to_owned(), report })
                .to_vec(),
        );
        let page = html_of_many("a against b", &runs, &[]);
        check_page(&page);
        for part in ["Medians of 2 turns", "+50.0 %", "Run 4: b"] {
            assert!(page.contains(part), "`{part}` is missing");
        }
    }
}
