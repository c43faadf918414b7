//! The log: sets up `tracing` and makes sure that an event is one line, whatever it contains.

use std::io::{self, Write};
use std::panic;
use std::sync::OnceLock;
use std::time::Duration;

use imori_server::config::{AuditOutput, Log, LogFormat, LogLevel, LogOutput};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Layer, registry, reload};

use crate::log_writer::{LogFile, LogWriter};

/// The longest wait for the log, before the process reports that it is ready and before it exits. A
/// process whose disk failed must exit within a second.
const FLUSH_MAX: Duration = Duration::from_millis(200);

/// The target of audit events; audited changes by clients are below it.
const AUDIT: &str = "audit";

/// The target of audit events for what clients declare, bind, purge and delete.
const AUDIT_CHANGES: &str = "audit::change";

/// The writers of the log and, if the audit has its own file, of the audit.
static WRITERS: OnceLock<Vec<LogWriter>> = OnceLock::new();

/// Changes the log level.
static SET_LEVEL: OnceLock<Box<dyn Fn(LevelFilter) + Send + Sync>> = OnceLock::new();

/// Starts the log. Call once, before anything is logged.
///
/// # Errors
/// A file cannot be opened or a thread cannot be started.
pub(crate) fn start(config: &Log) -> io::Result<()> {
    let writer = match &config.output {
        LogOutput::StandardError => LogWriter::start(io::stderr())?,
        LogOutput::File(path) => LogWriter::start(LogFile::open(path.clone())?)?,
    };
    let audit = match &config.audit {
        AuditOutput::Log => None,
        AuditOutput::File(path) => Some(LogWriter::start(LogFile::open(path.clone())?)?),
    };
    let _ = WRITERS.set([Some(writer.clone()), audit.clone()].into_iter().flatten().collect());
    let is_apart = audit.is_some();
    let (filter, handle) = reload::Layer::new(of_log(level(config.level), is_apart));
    let set = move |level| drop(handle.modify(|filter| *filter = of_log(level, is_apart)));
    let _ = SET_LEVEL.set(Box::new(set));
    let is_json = config.format == LogFormat::Json;
    let of_audit = Targets::new().with_target(AUDIT, LevelFilter::INFO);
    registry()
        .with(lines(writer, is_json).with_filter(filter))
        .with(audit.map(|audit| lines(audit, is_json).with_filter(of_audit)))
        .init();
    // Logs panics as events too, so that they stay on one line.
    panic::set_hook(Box::new(|panic| {
        let reason = panic.payload_as_str().unwrap_or("of no text");
        let place = panic.location().map(ToString::to_string);
        tracing::error!(reason, place, "panic");
    }));
    Ok(())
}

/// Formats each event as a line of text or JSON.
fn lines<S>(writer: LogWriter, is_json: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
{
    let lines = layer().with_ansi(false).with_writer(move || OneLine(writer.clone()));
    match is_json {
        false => lines.boxed(),
        true => lines.json().flatten_event(true).boxed(),
    }
}

/// The filter of the log. It passes the audit at any level, unless the audit has its own file.
fn of_log(level: LevelFilter, is_audit_apart: bool) -> Targets {
    let of_audit = if is_audit_apart { LevelFilter::OFF } else { LevelFilter::INFO };
    Targets::new()
        .with_default(level)
        .with_target(AUDIT, of_audit)
        .with_target(AUDIT_CHANGES, LevelFilter::OFF)
}

/// Waits until everything logged so far is written, for at most [`FLUSH_MAX`].
pub(crate) fn flush() {
    WRITERS.get().into_iter().flatten().for_each(|writer| writer.flush_within(FLUSH_MAX));
}

/// Reopens the files of log and audit; earlier lines still go to the old files.
pub(crate) fn reopen() {
    WRITERS.get().into_iter().flatten().for_each(LogWriter::reopen);
}

/// Changes the log level.
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

/// Writes each event, passed as one buffer, as one line, so that text from a client can neither
/// start another line nor control the terminal. (SECURITY LIM-17)
pub struct OneLine<W>(pub W);

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
