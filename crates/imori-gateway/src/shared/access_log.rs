//! A line of JSON for each request, written by a thread of its own.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use tracing::warn;

use crate::limits::ACCESS_LINES_MAX;
use crate::lock::lock;

/// The log of requests.
#[derive(Default)]
pub(crate) struct AccessLog(Mutex<Option<Opened>>);

/// A log that is being written.
struct Opened {
    path: PathBuf,
    lines: SyncSender<String>,
    thread: JoinHandle<()>,
}

impl AccessLog {
    /// Writes a line into the file at this path. If the disk is too slow, lines are left out rather than that requests
    /// wait.
    pub(crate) fn write(&self, path: &Path, line: String) {
        let mut opened = lock(&self.0);
        if opened.as_ref().is_none_or(|opened| opened.path != path) {
            *opened = start(path)
                .map_err(|error| warn!(path = %path.display(), %error, "there is no access log"))
                .ok();
        }
        if let Some(opened) = &*opened {
            let _ = opened.lines.try_send(line);
        }
    }

    /// Writes the lines that wait.
    pub(crate) fn close(&self) {
        let opened = lock(&self.0).take();
        if let Some(Opened { lines, thread, .. }) = opened {
            drop(lines);
            let _ = thread.join();
        }
    }
}

fn start(path: &Path) -> io::Result<Opened> {
    let file = open(path)?;
    let (lines, taken) = sync_channel(ACCESS_LINES_MAX);
    let own = path.to_owned();
    let thread =
        Builder::new().name(String::from("gateway-log")).spawn(move || write_all(file, &own, &taken))?;
    Ok(Opened { path: path.to_owned(), lines, thread })
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// Writes lines as they come, all that wait at once. A file that was moved away is opened anew.
fn write_all(mut file: File, path: &Path, taken: &Receiver<String>) {
    while let Ok(first) = taken.recv() {
        let mut text = first;
        text.push('\n');
        for line in taken.try_iter() {
            text.push_str(&line);
            text.push('\n');
        }
        if is_moved(&file, path)
            && let Ok(opened) = open(path)
        {
            file = opened;
        }
        if let Err(error) = file.write_all(text.as_bytes()) {
            warn!(path = %path.display(), %error, "lines of the access log are lost");
        }
    }
}

fn is_moved(file: &File, path: &Path) -> bool {
    let place = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    file.metadata().ok().map(place) != path.metadata().ok().map(place)
}
