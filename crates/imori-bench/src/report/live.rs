//! The live view of a run on standard error: a block redrawn in place on a terminal, plain lines
//! elsewhere if requested, otherwise nothing.
//!
//! Colours repeat what the letters say, and `NO_COLOR` turns them off. Line wrapping is off while the block is drawn, so a narrow terminal cuts off the last columns.

use std::collections::VecDeque;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::page::quantity::{grouped, optional, time};
use crate::page::verdict::{letter, name};
use crate::progress::in_words;
use crate::record::series::{Second, Verdict};

/// Number of seconds in the sparklines.
const SPARKS: usize = 30;
/// Number of seconds with a row of their own on a terminal.
const ROWS: usize = 8;
/// Interval between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Escape codes that begin a colour or a weight of text; see [`Screen::painted`].
const BOLD: &str = "1";
const DIM: &str = "2";
const RED: &str = "31";
const YELLOW: &str = "33";
const CYAN: &str = "36";

/// The kind of display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No display.
    Nothing,
    /// A block redrawn in place.
    Terminal,
    /// Line by line.
    Lines,
}

/// The live view of a run. Any thread may call it, but preferably none that generates load, because
/// a terminal can block its writer.
#[derive(Debug)]
pub struct Live {
    kind: Kind,
    screen: Mutex<Screen>,
}

impl Live {
    /// Shows the view if standard error is a terminal or `is_asked_for` is set.
    pub fn new(is_asked_for: bool) -> Live {
        let kind = match (std::io::stderr().is_terminal(), is_asked_for) {
            (true, _) => Kind::Terminal,
            (false, true) => Kind::Lines,
            (false, false) => Kind::Nothing,
        };
        let mut screen = Screen::new(Instant::now());
        let variable = |name: &str| std::env::var(name).ok();
        screen.is_coloured = kind == Kind::Terminal && is_coloured(variable("NO_COLOR"), variable("TERM"));
        Live { kind, screen: Mutex::new(screen) }
    }

    /// Creates a view that shows nothing, for a run within another one.
    pub fn silent() -> Live {
        Live { kind: Kind::Nothing, screen: Mutex::new(Screen::new(Instant::now())) }
    }

    /// Begins a phase and clears the display of the previous one; `length` is its time, if it is
    /// bounded by time.
    pub fn phase(&self, name: &str, length: Option<Duration>) {
        self.change(|screen, now| {
            screen.begin(name, length, now);
            true
        });
    }

    /// Shows a finished second, with the cause of its stall if it had one.
    pub fn second(&self, second: &Second, stall: Option<Verdict>) {
        self.change(|screen, _| {
            screen.add(second.clone(), stall);
            true
        });
    }

    /// Shows the progress, with the total if it is known.
    pub fn amount(&self, done: u64, of: Option<u64>) {
        let is_terminal = self.kind == Kind::Terminal;
        self.change(|screen, now| {
            screen.amount = Some((done, of));
            is_terminal || screen.is_line_due(now)
        });
    }

    /// Erases the block from the terminal.
    pub fn clear(&self) {
        if self.kind == Kind::Terminal {
            let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
            write(&screen.erased());
            screen.drawn = 0;
        }
    }

    fn change(&self, change: impl FnOnce(&mut Screen, Instant) -> bool) {
        if self.kind == Kind::Nothing {
            return;
        }
        let now = Instant::now();
        let mut screen = self.screen.lock().unwrap_or_else(PoisonError::into_inner);
        if !change(&mut screen, now) {
            return;
        }
        match self.kind {
            Kind::Nothing => {}
            Kind::Terminal => write(&screen.redrawn(now)),
            Kind::Lines => write(&screen.line(now)),
        }
    }
}

/// Ignores errors, because a broken display is no reason to end a run.
fn write(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Whether a terminal gets colours: `NO_COLOR` is absent or empty, and the terminal can show them.
fn is_coloured(no_color: Option<String>, term: Option<String>) -> bool {
    no_color.is_none_or(|value| value.is_empty()) && term.is_none_or(|term| term != "dumb")
}

/// Contents of the display.
#[derive(Debug)]
struct Screen {
    phase: String,
    begun: Instant,
    length: Option<Duration>,
    is_coloured: bool,
    amount: Option<(u64, Option<u64>)>,
    seconds: VecDeque<(Second, Option<Verdict>)>,
    /// Whether the latest second has not been printed yet.
    is_new: bool,
    last_line: Option<Instant>,
    /// Number of lines on the terminal.
    drawn: usize,
}

impl Screen {
    fn new(now: Instant) -> Screen {
        Screen {
            phase: String::new(),
            begun: now,
            length: None,
            is_coloured: false,
            amount: None,
            seconds: VecDeque::new(),
            is_new: false,
            last_line: None,
            drawn: 0,
        }
    }

    fn begin(&mut self, name: &str, length: Option<Duration>, now: Instant) {
        name.clone_into(&mut self.phase);
        self.length = length;
        self.begun = now;
        self.amount = None;
        self.seconds.clear();
        self.last_line = None;
    }

    fn add(&mut self, second: Second, stall: Option<Verdict>) {
        if self.seconds.len() == SPARKS {
            self.seconds.pop_front();
        }
        self.seconds.push_back((second, stall));
        self.is_new = true;
    }

    fn is_line_due(&self, now: Instant) -> bool {
        self.last_line.is_none_or(|last| now.duration_since(last) >= LINE_EVERY)
    }

    /// The line printed without a terminal: the latest second, or else the progress.
    fn line(&mut self, now: Instant) -> String {
        self.last_line = Some(now);
        let elapsed = now.duration_since(self.begun).as_secs();
        if let Some((second, stall)) = self.seconds.back().filter(|_| self.is_new) {
            self.is_new = false;
            let mark = stall.map_or(String::new(), |verdict| format!("  stalled by: {}", name(verdict)));
            return format!(
                "{}  t {} s  offered {}  sent {}  delivered {}  p50 {}  p99 {}  max {}  in flight {}  broker CPU {}{mark}\n",
                self.phase,
                second.t,
                second.offered,
                second.sent,
                second.delivered,
                optional(second.p50_us, time),
                optional(second.p99_us, time),
                optional(second.max_us, time),
                second.in_flight,
                cpu(second)
            );
        }
        match self.amount {
            Some((done, Some(of))) => format!("{}  {done} of {of}  {elapsed} s\n", self.phase),
            Some((done, None)) => format!("{}  {done}  {elapsed} s\n", self.phase),
            None => format!("{}\n", self.phase),
        }
    }

    /// Escape codes that erase the block and move the cursor to its start.
    fn erased(&self) -> String {
        match self.drawn {
            0 => "\r\x1b[2K".to_owned(),
            lines => format!("\r\x1b[{lines}A\x1b[J"),
        }
    }

    /// Text that draws the block over the previous one.
    fn redrawn(&mut self, now: Instant) -> String {
        let lines = self.lines(now);
        let mut text = "\x1b[?7l\r".to_owned();
        if self.drawn > 0 {
            text.push_str(&format!("\x1b[{}A", self.drawn));
        }
        for line in &lines {
            text.push_str(line);
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J\x1b[?7h");
        self.drawn = lines.len();
        text
    }

    fn lines(&self, now: Instant) -> Vec<String> {
        let mut lines = vec![self.head(now)];
        if self.seconds.is_empty() {
            return lines;
        }
        let heads = format!(
            "{:>6}   {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>9} {:>5}",
            "t", "offered", "sent", "delivered", "p50", "p99", "max", "in flight", "CPU"
        );
        lines.push(self.painted(DIM, &heads));
        let unseen = self.seconds.len().saturating_sub(ROWS);
        lines.extend(self.seconds.iter().skip(unseen).map(|(second, stall)| {
            let text = row(second, *stall);
            match stall {
                Some(Verdict::Broker) => self.painted(RED, &text),
                Some(_) => self.painted(YELLOW, &text),
                None => text,
            }
        }));
        let all = || self.seconds.iter().map(|(second, _)| second);
        let greatest: Vec<Option<f64>> =
            all().map(|second| second.max_us.filter(|max| *max >= 1.0).map(f64::log10)).collect();
        let delivered: Vec<Option<f64>> = all().map(|second| Some(second.delivered as f64)).collect();
        let least = greatest.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        for (name, sparks) in
            [("max", sparks(&greatest, least - 0.3)), ("delivered", sparks(&delivered, 0.0))]
        {
            lines.push(format!("{name:>9} {}", self.painted(CYAN, &sparks)));
        }
        lines
    }

    /// The phase with its progress and the remaining time, as far as they are known.
    fn head(&self, now: Instant) -> String {
        let phase = self.painted(BOLD, &format!("{:<8}", self.phase));
        let elapsed = now.duration_since(self.begun);
        let seconds = elapsed.as_secs();
        let bar = |done, of| format!("[{}]", self.painted(CYAN, &bar(done, of)));
        match (self.amount, self.length) {
            (Some((done, Some(of))), _) if of > 0 => {
                let left = match done {
                    0 => String::new(),
                    _ => {
                        let share = of.saturating_sub(done) as f64 / done as f64;
                        format!(", about {} left", in_words(elapsed.mul_f64(share)))
                    }
                };
                format!("{phase} {} {} of {}, {seconds} s{left}", bar(done, of), count(done), count(of))
            }
            (_, Some(length)) => {
                let (done, of) = (elapsed.as_millis() as u64, length.as_millis() as u64);
                let left = in_words(length.saturating_sub(elapsed));
                format!("{phase} {} {seconds} s of {}, {left} left", bar(done, of), in_words(length))
            }
            (Some((done, _)), None) => format!("{phase} {}, {seconds} s", count(done)),
            (None, None) => format!("{phase} {seconds} s"),
        }
    }

    /// The text in a colour, if the terminal gets colours.
    fn painted(&self, code: &str, text: &str) -> String {
        match self.is_coloured {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

fn row(second: &Second, stall: Option<Verdict>) -> String {
    let said = stall.map_or(String::new(), |verdict| format!("  {}", name(verdict)));
    format!(
        "{:>4} s {} {:>9} {:>9} {:>9} {:>8} {:>8} {:>8} {:>9} {:>5}{said}",
        second.t,
        stall.map_or(" ", letter),
        count(second.offered),
        count(second.sent),
        count(second.delivered),
        optional(second.p50_us, time),
        optional(second.p99_us, time),
        optional(second.max_us, time),
        count(second.in_flight),
        cpu(second)
    )
}

fn count(value: u64) -> String {
    grouped(value as f64)
}

/// CPU time of the broker, in CPUs.
fn cpu(second: &Second) -> String {
    optional(second.broker.as_ref().map(|broker| broker.cpu_s), |cpus| format!("{cpus:.2}"))
}

/// A progress bar of thirty characters.
fn bar(done: u64, of: u64) -> String {
    let filled = (u128::from(done.min(of)) * 30 / u128::from(of.max(1))) as usize;
    format!("{:<30}", "#".repeat(filled))
}

/// One character per value, with a height between `floor` and the greatest value.
fn sparks(values: &[Option<f64>], floor: f64) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let greatest = values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
    values
        .iter()
        .map(|value| {
            let Some(value) = value else { return ' ' };
            let share = if greatest > floor { (value - floor) / (greatest - floor) } else { 0.0 };
            let height = (share * 7.0).round().clamp(0.0, 7.0) as usize;
            HEIGHTS.get(height).copied().unwrap_or(' ')
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    fn screen() -> (Screen, Instant) {
        let now = Instant::now();
        let mut screen = Screen::new(now);
        screen.begin("measure", None, now);
        (screen, now + Duration::from_secs(41))
    }

    #[test]
    fn a_terminal_sees_a_bar_rows_and_sparks() {
        let (mut screen, now) = screen();
        assert_eq!(screen.lines(now), ["measure  41 s"]);
        screen.amount = Some((50_000, Some(100_000)));
        assert_eq!(
            screen.lines(now),
            ["measure  [###############               ] 50 000 of 100 000, 41 s, about 41 s left"]
        );
        screen.amount = Some((50_000, None));
        for second in sample::report().rows {
            let stall = (second.t % 10 == 5).then_some(Verdict::Broker);
            screen.add(second, stall);
        }
        let lines = screen.lines(now);
        assert_eq!(lines.len(), 2 + ROWS + 2);
        assert_eq!(lines[0], "measure  50 000, 41 s");
        assert_eq!(
            lines[2],
            "  52 s       1 000     1 000     1 000   200 us   240 us   300 us         1  0.06"
        );
        assert_eq!(
            lines[5],
            "  55 s B     1 000     1 000        10   200 us   240 us   1.00 s       990  0.06  broker"
        );
        assert_eq!(lines[10], "      max ▂▂▂▂▂█▂▂▂▂▂▂▂▂▂█▂▂▂▂▂▂▂▂▂█▂▂▂▂");
        assert_eq!(lines[11], "delivered █████▁█████████▁█████████▁████");
    }

    #[test]
    fn a_phase_of_set_length_tells_what_is_left() {
        let (mut screen, now) = screen();
        screen.length = Some(Duration::from_secs(60));
        assert_eq!(screen.lines(now), ["measure  [####################          ] 41 s of 60 s, 19 s left"]);
        let late = now + Duration::from_secs(60);
        assert_eq!(screen.lines(late), ["measure  [##############################] 101 s of 60 s, 0 s left"]);
    }

    #[test]
    fn colours_repeat_the_letters_and_can_be_turned_off() {
        for (no_color, term, expected) in [
            (None, Some("xterm"), true),
            (Some(""), None, true),
            (Some("1"), Some("xterm"), false),
            (None, Some("dumb"), false),
        ] {
            assert_eq!(is_coloured(no_color.map(str::to_owned), term.map(str::to_owned)), expected);
        }
        let (mut screen, now) = screen();
        screen.add(sample::report().rows[5].clone(), Some(Verdict::Broker));
        let plain = screen.lines(now);
        screen.is_coloured = true;
        let coloured = screen.lines(now);
        assert!(
            coloured[2].starts_with("\x1b[31m") && coloured[2].ends_with("broker\x1b[0m"),
            "{coloured:?}"
        );
        let mut text = coloured.join("\n");
        for code in ["0", BOLD, DIM, RED, YELLOW, CYAN] {
            text = text.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(text, plain.join("\n"));
    }

    #[test]
    fn the_block_is_drawn_over_itself_and_taken_away() {
        let (mut screen, now) = screen();
        assert_eq!(screen.redrawn(now), "\x1b[?7l\rmeasure  41 s\x1b[K\n\x1b[J\x1b[?7h");
        screen.add(Second::default(), None);
        let text = screen.redrawn(now);
        assert!(text.starts_with("\x1b[?7l\r\x1b[1A") && text.ends_with("\x1b[J\x1b[?7h"), "{text:?}");
        assert_eq!(screen.erased(), "\r\x1b[5A\x1b[J");
    }

    #[test]
    fn elsewhere_a_line_a_second_is_enough() {
        let (mut screen, now) = screen();
        assert_eq!(screen.line(now), "measure\n");
        screen.amount = Some((5, Some(9)));
        for (after, is_due) in [(0, false), (999, false), (1_000, true)] {
            assert_eq!(screen.is_line_due(now + Duration::from_millis(after)), is_due, "{after} ms");
        }
        assert_eq!(screen.line(now), "measure  5 of 9  41 s\n");
        screen.add(sample::report().rows[5].clone(), Some(Verdict::HostCpu));
        assert_eq!(
            screen.line(now),
            "measure  t 5 s  offered 1000  sent 1000  delivered 10  p50 200 us  p99 240 us  max 1.00 s  in flight 990  broker CPU 0.06  stalled by: host-cpu\n"
        );
    }

    #[test]
    fn sparks_need_no_particular_values() {
        for (values, floor, expected) in [
            (vec![], 0.0, ""),
            (vec![None, Some(0.0)], 0.0, " ▁"),
            (vec![Some(0.0), Some(4.0), Some(8.0)], 0.0, "▁▅█"),
            (vec![Some(1.0)], f64::INFINITY, "▁"),
        ] {
            assert_eq!(sparks(&values, floor), expected);
        }
    }
}
