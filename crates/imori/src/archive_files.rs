//! The files of a stream's backup: a folder as natscli has it, or one file.
//!
//! A folder has `backup.json`, the configuration and the state of the stream, and `stream.arc.s2`, its archive. A file
//! has the same JSON on its first line, and the archive behind it.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde_json::Value;

const FACTS: &str = "backup.json";
const ARCHIVE: &str = "stream.arc.s2";

/// The archive of a server before 2.15, or of a natscli that takes the broker for one.
const OLD_ARCHIVE: &str = "stream.tar.s2";

/// Bytes of the first line of a file.
const FACTS_BYTES_MAX: u64 = 1024 * 1024;

/// A backup that is being written. Unless it is kept, it is deleted.
#[derive(Debug)]
pub struct NewBackup {
    archive: BufWriter<File>,
    /// The files that were made.
    made: Vec<PathBuf>,
    is_kept: bool,
}

impl NewBackup {
    /// Begins a backup in a folder, if `path` is one or ends with a slash, else in a new file.
    pub fn create(path: &Path, facts: &Value) -> anyhow::Result<NewBackup> {
        let is_folder = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let (archive, own) = match is_folder {
            true => {
                fs::create_dir_all(path).with_context(|| format!("`{}` cannot be made", path.display()))?;
                (path.join(ARCHIVE), Some(path.join(FACTS)))
            }
            false => (path.to_owned(), None),
        };
        let new = |path: &Path| {
            let made = OpenOptions::new().write(true).create_new(true).open(path);
            made.with_context(|| format!("`{}` cannot be made; name a new file or folder", path.display()))
        };
        let file = new(&archive)?;
        let mut backup = NewBackup { archive: BufWriter::new(file), made: vec![archive], is_kept: false };
        match own {
            Some(own) => {
                let mut file = new(&own)?;
                backup.made.push(own);
                file.write_all(serde_json::to_string_pretty(facts)?.as_bytes())?;
            }
            None => writeln!(backup.archive, "{facts}")?,
        }
        Ok(backup)
    }

    /// Ends the backup.
    pub fn keep(mut self) -> anyhow::Result<()> {
        self.archive.flush()?;
        self.archive.get_ref().sync_all()?;
        self.is_kept = true;
        Ok(())
    }
}

impl Write for NewBackup {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.archive.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.archive.flush()
    }
}

impl Drop for NewBackup {
    fn drop(&mut self) {
        if !self.is_kept {
            for path in &self.made {
                // What cannot be deleted is at least no whole backup.
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// Opens a backup; returns what it tells of the stream, and its archive.
pub fn open(path: &Path) -> anyhow::Result<(Value, Box<dyn Read>)> {
    let read = |path: &Path| File::open(path).with_context(|| format!("`{}` cannot be read", path.display()));
    let wrong = || format!("`{}` is no backup of a stream", path.display());
    if path.is_dir() {
        let facts = serde_json::from_reader(BufReader::new(read(&path.join(FACTS))?)).with_context(wrong)?;
        let archive =
            [ARCHIVE, OLD_ARCHIVE].into_iter().map(|name| path.join(name)).find(|path| path.is_file());
        let Some(archive) = archive else { bail!("`{}` has no file `{ARCHIVE}`", path.display()) };
        return Ok((facts, Box::new(read(&archive)?)));
    }
    let mut file = BufReader::new(read(path)?);
    let mut line = Vec::new();
    file.by_ref().take(FACTS_BYTES_MAX).read_until(b'\n', &mut line)?;
    Ok((serde_json::from_slice(&line).with_context(wrong)?, Box::new(file)))
}
