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
pub const LINES_MAX: usize = 4096;

/// The destination of the log.
pub trait Output: Write + Send + 'static {
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
pub struct LogFile {
    path: PathBuf,
    file: File,
}

impl LogFile {
    /// Opens the file, or creates it readable by this user only, as it holds clients' names and
    /// addresses.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: PathBuf) -> io::Result<LogFile> {
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
pub struct LogWriter {
    lines: SyncSender<Line>,
    /// Lines that were dropped since the last one was written.
    pub lost: Arc<AtomicU64>,
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
    pub fn start(out: impl Output) -> io::Result<LogWriter> {
        let (lines, waiting) = sync_channel(LINES_MAX);
        let writer = LogWriter { lines, lost: Arc::default() };
        let lost = Arc::clone(&writer.lost);
        Builder::new().name(String::from("log")).spawn(move || write(out, &waiting, &lost))?;
        Ok(writer)
    }

    /// Reopens the file after the lines queued so far.
    pub fn reopen(&self) {
        // Blocking is fine here: the caller is no logging thread, and the request must not be lost.
        let _ = self.lines.send(Line::Reopen);
    }

    /// Waits until everything queued so far is written, for at most `within`.
    pub fn flush_within(&self, within: Duration) {
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
