//! The log: where `tracing` writes, and that one event is one line whatever it holds.

use std::io::{self, Write};
use std::panic;
use std::sync::OnceLock;
use std::time::Duration;

use imori_server::config::{Log, LogFormat, LogLevel, LogOutput};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{registry, reload};

use crate::log_writer::{LogFile, LogWriter};

/// How long the process waits for the log before it is ready, and at its end. A process whose disk failed has
/// to be gone within a second.
const FLUSH_MAX: Duration = Duration::from_millis(200);

static WRITER: OnceLock<LogWriter> = OnceLock::new();

/// Changes the least important level that is logged.
static SET_LEVEL: OnceLock<Box<dyn Fn(LevelFilter) + Send + Sync>> = OnceLock::new();

/// Starts the log. It is done once, before anything can be logged.
///
/// # Errors
/// Its file cannot be opened, or its thread not be started.
pub(crate) fn start(config: &Log) -> io::Result<()> {
    let writer = match &config.output {
        LogOutput::StandardError => LogWriter::start(io::stderr())?,
        LogOutput::File(path) => LogWriter::start(LogFile::open(path.clone())?)?,
    };
    let _ = WRITER.set(writer.clone());
    let (filter, handle) = reload::Layer::new(level(config.level));
    let _ = SET_LEVEL.set(Box::new(move |level| drop(handle.modify(|filter| *filter = level))));
    let lines = layer().with_ansi(false).with_writer(move || OneLine(writer.clone()));
    match config.format {
        LogFormat::Text => registry().with(filter).with(lines).init(),
        LogFormat::Json => registry().with(filter).with(lines.json().flatten_event(true)).init(),
    }
    // A panic is an event like others, on one line.
    panic::set_hook(Box::new(|panic| {
        let reason = panic.payload_as_str().unwrap_or("of no text");
        let place = panic.location().map(ToString::to_string);
        tracing::error!(reason, place, "panic");
    }));
    Ok(())
}

/// Returns when what was logged is written, or after [`FLUSH_MAX`].
pub(crate) fn flush() {
    if let Some(writer) = WRITER.get() {
        writer.flush_within(FLUSH_MAX);
    }
}

/// Opens the file of the log anew, once what was logged before is in the old one.
pub(crate) fn reopen() {
    if let Some(writer) = WRITER.get() {
        writer.reopen();
    }
}

/// Changes the least important level that is logged.
pub(crate) fn set_level(least: LogLevel) {
    if let Some(set) = SET_LEVEL.get() {
        set(level(least));
    }
}

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// Writes each event, which comes as one buffer, as one line. Text from a client can neither begin another
/// line nor reach the terminal. (SECURITY LIM-17)
struct OneLine<W>(W);

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = event.strip_suffix(b"\n").unwrap_or(event);
        let mut line = Vec::with_capacity(event.len());
        for character in String::from_utf8_lossy(text).chars() {
            match character.is_control() {
                true => write!(line, "{}", character.escape_default())?,
                false => write!(line, "{character}")?,
            }
        }
        line.push(b'\n');
        self.0.write_all(&line)?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Captured {
        type Writer = OneLine<Captured>;

        fn make_writer(&'a self) -> OneLine<Captured> {
            OneLine(self.clone())
        }
    }

    // SECURITY LIM-17
    #[test]
    fn one_event_is_one_line_without_control_characters() {
        for name in ["a\r\nb", "a\nINFO forged", "\x1b[31mred", "a\u{9b}31m", "\0", "tab\there"] {
            for is_json in [false, true] {
                let captured = Captured::default();
                let builder = tracing_subscriber::fmt().with_ansi(false).with_writer(captured.clone());
                let log = || tracing::warn!(queue = %name, debugged = ?name, "queue `{name}` is full");
                match is_json {
                    false => tracing::subscriber::with_default(builder.finish(), log),
                    true => tracing::subscriber::with_default(builder.json().finish(), log),
                }
                let bytes = captured.0.lock().unwrap().clone();
                let text = String::from_utf8(bytes).unwrap();
                let line = text.strip_suffix('\n').expect("a whole line");
                assert!(!line.is_empty() && !line.contains(char::is_control), "{line:?}");
            }
        }
    }
}
