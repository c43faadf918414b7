//! Writes the log on a thread of its own, so that logging never waits for a disk or a reader.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

use tracing::{info, warn};

/// Lines that may wait to be written, rarely over a kilobyte each. Further lines are dropped and
/// counted; the count is logged once writing works again.
const LINES_MAX: usize = 4096;

/// The destination of the log.
pub(crate) trait Output: Write + Send + 'static {
    /// Closes a file that was moved away and starts a new one under its name.
    ///
    /// # Errors
    /// The new file cannot be opened; the output keeps using the old one.
    fn reopen(&mut self) -> io::Result<()>;
}

impl Output for io::Stderr {
    fn reopen(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A log file, opened for appending.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
}

impl LogFile {
    /// Opens the file, or creates it readable by this user only, as it holds clients' names and
    /// addresses.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub(crate) fn open(path: PathBuf) -> io::Result<LogFile> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        Ok(LogFile { path, file })
    }
}

impl Write for LogFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Output for LogFile {
    fn reopen(&mut self) -> io::Result<()> {
        *self = LogFile::open(self.path.clone())?;
        Ok(())
    }
}

/// A handle for queueing lines to the writer thread.
#[derive(Debug, Clone)]
pub(crate) struct LogWriter {
    lines: SyncSender<Line>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Line {
    Text(Vec<u8>),
    /// A sender to notify when all earlier lines are written.
    Mark(SyncSender<()>),
    /// A request to reopen the file, after an operator moved it away.
    Reopen,
}

impl LogWriter {
    /// Starts the thread that writes to `out`.
    pub(crate) fn start(out: impl Output) -> io::Result<LogWriter> {
        let (lines, waiting) = sync_channel(LINES_MAX);
        let writer = LogWriter { lines, lost: Arc::default() };
        let lost = Arc::clone(&writer.lost);
        Builder::new().name(String::from("log")).spawn(move || write(out, &waiting, &lost))?;
        Ok(writer)
    }

    /// Reopens the file after the lines queued so far.
    pub(crate) fn reopen(&self) {
        // Blocking is fine here: the caller is no logging thread, and the request must not be lost.
        let _ = self.lines.send(Line::Reopen);
    }

    /// Waits until everything queued so far is written, for at most `within`.
    pub(crate) fn flush_within(&self, within: Duration) {
        let begin = Instant::now();
        let (done, written) = sync_channel(1);
        let mut mark = Line::Mark(done);
        while let Err(TrySendError::Full(back)) = self.lines.try_send(mark) {
            if begin.elapsed() >= within {
                return;
            }
            mark = back;
            // Sleeping is fine here: a caller that waits for the log has nothing else to do.
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = written.recv_timeout(within.saturating_sub(begin.elapsed()));
    }
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.lines.try_send(Line::Text(line.to_vec())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write(mut out: impl Output, waiting: &Receiver<Line>, lost: &AtomicU64) {
    for line in waiting {
        match line {
            // A log that cannot be written has nowhere to report it.
            Line::Text(text) => drop(out.write_all(&text)),
            Line::Mark(done) => drop(done.try_send(())),
            Line::Reopen => match out.reopen() {
                Ok(()) => info!("the log is opened anew"),
                Err(error) => warn!(%error, "the log cannot be opened anew, and goes on where it was"),
            },
        }
        let lines = lost.swap(0, Ordering::Relaxed);
        if lines > 0 {
            warn!(lines, "lines of the log are lost: it could not be written for a while");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::{Sender, channel};

    use super::*;

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

    impl Output for GatedOutput {
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
}
