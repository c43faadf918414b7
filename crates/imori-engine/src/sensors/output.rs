//! What sensors write: its last lines are kept, and logged unless there are too many. A sensor that writes faster than
//! it is read waits at its full pipe, and takes neither memory nor time from the broker.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::engine::Engine;
use crate::limits::{
    OUTPUT_READ_BYTES, SENSOR_LINE_BYTES_MAX, SENSOR_LINES_LOGGED_PER_SECOND, SENSOR_OUTPUT_BYTES_PER_SECOND,
};

const SECOND: Duration = Duration::from_secs(1);

/// Reads an output to its end.
pub(super) async fn follow(engine: &Engine, sensor: &str, pipe: Option<impl AsyncRead + Unpin>) {
    let Some(mut pipe) = pipe else { return };
    let mut buffer = vec![0; OUTPUT_READ_BYTES];
    let mut lines = Lines::default();
    let mut window = Window::new(Instant::now());
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        for line in lines.push(buffer.get(..count).unwrap_or_default()) {
            take(engine, sensor, &line, &mut window);
        }
        window.bytes += count;
        if window.bytes >= SENSOR_OUTPUT_BYTES_PER_SECOND {
            sleep_until(window.start + SECOND).await;
        }
    }
    if let Some(line) = lines.rest() {
        take(engine, sensor, &line, &mut window);
    }
}

fn take(engine: &Engine, sensor: &str, line: &str, window: &mut Window) {
    engine.sensors.change(sensor, |state| state.add_line(line));
    let dropped = window.next(Instant::now());
    if dropped > 0 {
        warn!(sensor, lines = dropped, "lines of a sensor were not logged; it writes too many");
    }
    if window.admits_line() {
        info!(sensor, line, "a sensor writes");
    }
}

/// What was read and logged within a second.
struct Window {
    start: Instant,
    bytes: usize,
    logged: u32,
    dropped: u64,
}

impl Window {
    fn new(start: Instant) -> Window {
        Window { start, bytes: 0, logged: 0, dropped: 0 }
    }

    /// Begins another second if this one is over; returns the lines that were not logged in it.
    fn next(&mut self, now: Instant) -> u64 {
        if now.duration_since(self.start) < SECOND {
            return 0;
        }
        let dropped = self.dropped;
        *self = Window::new(now);
        dropped
    }

    /// Whether one more line is logged.
    fn admits_line(&mut self) -> bool {
        let is_admitted = self.logged < SENSOR_LINES_LOGGED_PER_SECOND;
        match is_admitted {
            true => self.logged += 1,
            false => self.dropped += 1,
        }
        is_admitted
    }
}

/// Pieces of bytes, cut into lines.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// The lines that this piece completes.
    fn push(&mut self, piece: &[u8]) -> Vec<String> {
        let mut whole = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            for chunk in part.chunks(SENSOR_LINE_BYTES_MAX) {
                if self.0.len() + chunk.len() > SENSOR_LINE_BYTES_MAX {
                    whole.extend(self.rest());
                }
                self.0.extend_from_slice(chunk);
            }
            if part.ends_with(b"\n") {
                whole.extend(self.rest());
            }
        }
        whole
    }

    /// What has no end yet, unless it is empty.
    fn rest(&mut self) -> Option<String> {
        let line = String::from_utf8_lossy(self.0.trim_ascii_end()).into_owned();
        self.0.clear();
        (!line.is_empty()).then_some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_becomes_lines_of_bounded_length() {
        let long = "x".repeat(SENSOR_LINE_BYTES_MAX);
        let rows: [(&[&str], &[&str]); 6] = [
            (&["a\nb\n"], &["a", "b"]),
            (&["a", "b\nc"], &["ab", "c"]),
            (&["\n\na\r\n"], &["a"]),
            (&[&format!("{long}y\n")], &[&long, "y"]),
            (&[&long, "y"], &[&long, "y"]),
            (&[""], &[]),
        ];
        for (pieces, expected) in rows {
            let mut lines = Lines::default();
            let mut found: Vec<String> =
                pieces.iter().flat_map(|piece| lines.push(piece.as_bytes())).collect();
            found.extend(lines.rest());
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn lines_beyond_the_limit_of_a_second_are_counted() {
        let start = Instant::now();
        let mut window = Window::new(start);
        let admitted = (0..SENSOR_LINES_LOGGED_PER_SECOND + 5).filter(|_| window.admits_line()).count();
        assert_eq!(admitted, SENSOR_LINES_LOGGED_PER_SECOND as usize);
        assert_eq!(window.next(start), 0);
        assert_eq!(window.next(start + SECOND), 5);
        assert!(window.admits_line());
    }
}
