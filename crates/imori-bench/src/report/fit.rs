//! Fits text to the width of a terminal: long lines continue below their first word, and tables
//! that are too wide show one value per line. Text for a pipe or a file stays as it is.

use std::io::{IsTerminal, Write};

use anyhow::{Context, Result};

/// Column at which the text after a label begins, as in `throughput   1 000 requests/s`.
const LABEL: usize = 13;
/// The narrowest width that text is fitted to; below it, a line would hold one word.
const WIDTH_MIN: usize = 30;

/// Prints text on standard output, fitted to the terminal if that is one.
pub fn print(text: &str) -> Result<()> {
    let text = width().map_or_else(|| text.to_owned(), |width| fitted(text, width));
    std::io::stdout().write_all(text.as_bytes()).context("standard output is closed")
}

/// Width of the terminal on standard output: `COLUMNS` if it is a number, otherwise the terminal's
/// own answer; `None` if standard output is no terminal.
pub(crate) fn width() -> Option<usize> {
    let out = std::io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let named = std::env::var("COLUMNS").ok().and_then(|columns| columns.trim().parse().ok());
    let own = || rustix::termios::tcgetwinsize(&out).ok().map(|size| usize::from(size.ws_col));
    named.or_else(own).filter(|width| *width > 0).map(|width| width.max(WIDTH_MIN))
}

/// The text with lines of at most `width` characters, as far as its words allow.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    let mut shown = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if !line.starts_with('|') {
            wrap(line, width, &mut shown);
            continue;
        }
        let mut rows = vec![cells(line)];
        while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
            // The line below the head only separates it from the rows.
            if !row.starts_with("|---") {
                rows.push(cells(row));
            }
        }
        table(&rows, width, &mut shown);
    }
    shown
}

/// The cells of a Markdown row.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split(" | ").map(str::trim).collect()
}

/// Aligns a table's columns if they fit, and otherwise stacks each row's cells below its name.
fn table(rows: &[Vec<&str>], width: usize, shown: &mut String) {
    let len = |cell: &str| cell.chars().count();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest =
        |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| len(cell)).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(widest).collect();
    let all = widths.iter().sum::<usize>() + 2 * count.saturating_sub(1);
    if all <= width {
        for row in rows {
            let mut line = String::new();
            for (at, (cell, wide)) in row.iter().zip(&widths).enumerate() {
                match at {
                    0 => line.push_str(&format!("{cell:<wide$}")),
                    _ => line.push_str(&format!("  {cell:>wide$}")),
                }
            }
            shown.push_str(line.trim_end());
            shown.push('\n');
        }
        return;
    }
    let Some((heads, rows)) = rows.split_first() else { return };
    let longest = heads.iter().skip(1).map(|head| len(head)).max().unwrap_or(0).min(width / 2);
    for row in rows {
        let Some((name, values)) = row.split_first() else { continue };
        wrap(name, width, shown);
        for (head, value) in heads.iter().skip(1).zip(values).filter(|(_, value)| !value.is_empty()) {
            wrap(&format!("  {head:<longest$}  {value}"), width, shown);
        }
    }
}

/// Appends a line, continued on further lines if it is too long.
fn wrap(line: &str, width: usize, shown: &mut String) {
    let indent = indent(line).min(width / 2);
    let mut rest: Vec<char> = line.chars().collect();
    let mut is_first = true;
    loop {
        let start = if is_first { indent.min(rest.len()) } else { 0 };
        let room = if is_first { width } else { width - indent };
        if !is_first {
            shown.push_str(&" ".repeat(indent));
        }
        let end = if rest.len() <= room { rest.len() } else { break_at(&rest, start, room) };
        shown.push_str(rest.iter().take(end).collect::<String>().trim_end());
        shown.push('\n');
        rest = rest.into_iter().skip(end).skip_while(|character| *character == ' ').collect();
        is_first = false;
        if rest.is_empty() {
            return;
        }
    }
}

/// The column at which further lines of this line begin.
fn indent(line: &str) -> usize {
    let is_space = |at: usize| line.chars().nth(at) == Some(' ');
    match line {
        _ if line.starts_with("- ") => 2,
        _ if line.starts_with(' ') => line.chars().take_while(|character| *character == ' ').count() + 4,
        _ if is_space(LABEL - 2) && is_space(LABEL - 1) && !is_space(LABEL) => LABEL,
        _ => 2,
    }
}

/// Where to end a line that has `room`: best between two groups, then between two words, and last
/// between a number and its unit. A longer word stays whole.
fn break_at(text: &[char], start: usize, room: usize) -> usize {
    let at = |index: usize| text.get(index).copied().unwrap_or(' ');
    let is_gap = |index: &usize| at(*index) == ' ' && at(index.saturating_sub(1)) != ' ';
    let candidates = || (start.saturating_add(1)..=room).rev().filter(is_gap);
    let groups = candidates().find(|index| at(index + 1) == ' ' && index - start >= (room - start) / 3);
    let words = || candidates().find(|index| !at(index - 1).is_ascii_digit());
    let beyond = || (room..text.len()).find(is_gap).unwrap_or(text.len());
    groups.or_else(words).or_else(|| candidates().next()).unwrap_or_else(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_line_continues_below_its_first_word() {
        for (line, width, expected) in [
            (
                "ledger       sent 60000  good 60000  lost 0  duplicated 0",
                40,
                "ledger       sent 60000  good 60000\n             lost 0  duplicated 0\n",
            ),
            (
                "- a against b: neither is better in every turn",
                30,
                "- a against b: neither is\n  better in every turn\n",
            ),
            ("took 1 000 s and 2 000 s more", 12, "took 1 000 s\n  and\n  2 000 s\n  more\n"),
            ("short", 30, "short\n"),
            ("\n", 30, "\n"),
            (
                "nats://a-host-with-a-long-name:4222 is it",
                20,
                "nats://a-host-with-a-long-name:4222\n  is it\n",
            ),
        ] {
            assert_eq!(fitted(line, width), expected);
        }
    }

    #[test]
    fn a_table_is_aligned_or_stacked() {
        let text = "| figure | a | b |\n|---|---|---|\n| p50, us | 200 (190 to 210) | 7 |\n| rss | 9 | |\n";
        assert_eq!(
            fitted(text, 40),
            "figure                  a  b\np50, us  200 (190 to 210)  7\nrss                     9\n"
        );
        assert_eq!(fitted(text, 26), "p50, us\n  a  200 (190 to 210)\n  b  7\nrss\n  a  9\n");
    }

    #[test]
    fn a_report_fits_eighty_columns_and_loses_no_word() {
        let text = sample::report().to_string();
        assert!(text.lines().any(|line| line.chars().count() > 80));
        for width in [60, 80, 120] {
            let shown = fitted(&text, width);
            let widest = shown.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= width, "{widest} of {width}:\n{shown}");
            assert!(shown.split_whitespace().eq(text.split_whitespace()), "a word is lost");
        }
    }
}
