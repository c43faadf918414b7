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
#[derive(Debug)]
pub struct Window {
    start: Instant,
    bytes: usize,
    logged: u32,
    dropped: u64,
}

impl Window {
    /// A window that begins now.
    pub fn new(start: Instant) -> Window {
        Window { start, bytes: 0, logged: 0, dropped: 0 }
    }

    /// Begins another second if this one is over; returns the lines that were not logged in it.
    pub fn next(&mut self, now: Instant) -> u64 {
        if now.duration_since(self.start) < SECOND {
            return 0;
        }
        let dropped = self.dropped;
        *self = Window::new(now);
        dropped
    }

    /// Whether one more line is logged.
    pub fn admits_line(&mut self) -> bool {
        let is_admitted = self.logged < SENSOR_LINES_LOGGED_PER_SECOND;
        match is_admitted {
            true => self.logged += 1,
            false => self.dropped += 1,
        }
        is_admitted
    }
}

/// Pieces of bytes, cut into lines.
#[derive(Debug, Default)]
pub struct Lines(Vec<u8>);

impl Lines {
    /// The lines that this piece completes.
    pub fn push(&mut self, piece: &[u8]) -> Vec<String> {
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
    pub fn rest(&mut self) -> Option<String> {
        let line = String::from_utf8_lossy(self.0.trim_ascii_end()).into_owned();
        self.0.clear();
        (!line.is_empty()).then_some(line)
    }
}
