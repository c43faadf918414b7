//! The log: its lines, and its writer, which delays nobody.

use std::io::{self, Write};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use imori::for_tests::{LINES_MAX, LogFile, LogOutput, LogWriter, OneLine};
use tracing_subscriber::fmt::MakeWriter;

/// An output that writes a line only when allowed to.
struct GatedOutput {
    allowed: Receiver<()>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for GatedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.allowed.recv();
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LogOutput for GatedOutput {
    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn gated() -> (LogWriter, Sender<()>, Arc<Mutex<Vec<u8>>>) {
    let (allow, allowed) = channel();
    let written: Arc<Mutex<Vec<u8>>> = Arc::default();
    let writer = LogWriter::start(GatedOutput { allowed, written: Arc::clone(&written) }).unwrap();
    (writer, allow, written)
}

#[test]
fn who_logs_does_not_wait_and_order_is_kept() {
    let (mut writer, allow, written) = gated();
    for line in ["a\n", "b\n", "c\n"] {
        writer.write_all(line.as_bytes()).unwrap();
    }
    // Every write is allowed from here on.
    drop(allow);
    writer.flush_within(Duration::from_secs(30));
    assert_eq!(*written.lock().unwrap(), b"a\nb\nc\n");
}

#[test]
fn a_file_that_was_moved_away_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("log"), folder.path().join("log.1"));
    let mut writer = LogWriter::start(LogFile::open(path.clone()).unwrap()).unwrap();
    writer.write_all(b"before\n").unwrap();
    writer.flush_within(Duration::from_secs(30));
    std::fs::rename(&path, &moved).unwrap();
    writer.reopen();
    writer.write_all(b"after\n").unwrap();
    writer.flush_within(Duration::from_secs(30));
    assert_eq!(std::fs::read(&moved).unwrap(), b"before\n");
    assert_eq!(std::fs::read(&path).unwrap(), b"after\n");
}

#[test]
fn what_is_too_much_is_lost_and_counted() {
    let (mut writer, allow, written) = gated();
    // The thread may have taken one line already.
    for _ in 0..LINES_MAX + 3 {
        writer.write_all(b"x").unwrap();
    }
    assert!((2..=3).contains(&writer.lost.load(Ordering::Relaxed)));
    drop(allow);
    // At first the queue is full, so the flush cannot queue its mark.
    writer.flush_within(Duration::from_secs(30));
    let count = written.lock().unwrap().len();
    assert!((LINES_MAX..=LINES_MAX + 1).contains(&count), "{count}");
}

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
