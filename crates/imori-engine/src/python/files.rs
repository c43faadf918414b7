//! The files in the folder of a run: what an action writes, and its result. They outlive the engine that started the
//! action, as its process does.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use super::outcome::Output;
use super::result::PythonResult;
use crate::limits::OUTPUT_BYTES_MAX;
use crate::process::{STARTED_FILE, output_files};

/// Where an action writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The files in the folder of a run.
#[derive(Debug, Clone, Copy)]
pub struct RunFiles<'a>(pub &'a Path);

impl RunFiles<'_> {
    /// The file that gets the result.
    pub(super) fn result_path(self) -> PathBuf {
        self.0.join("result")
    }

    /// The file that the action's process makes before it begins.
    pub(super) fn started_path(self) -> PathBuf {
        self.0.join(STARTED_FILE)
    }

    /// The result, if the action has left one.
    pub(crate) fn result(self, execution_id: &str) -> Option<PythonResult> {
        PythonResult::from_file(&self.result_path(), execution_id)
    }

    /// What the action has written to this stream, up to a limit.
    pub fn output(self, stream: OutputStream) -> Output {
        let [stdout, stderr] = output_files(self.0);
        let path = if stream == OutputStream::Stdout { stdout } else { stderr };
        // A file that cannot be read counts as empty.
        read(&path).unwrap_or_default()
    }
}

fn read(path: &Path) -> io::Result<Output> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut kept = Vec::new();
    file.take(OUTPUT_BYTES_MAX as u64).read_to_end(&mut kept)?;
    let is_cut = bytes > kept.len() as u64;
    let mut text = match String::from_utf8(kept) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    if is_cut {
        text.push_str(&format!("\n[cut: {OUTPUT_BYTES_MAX} of {bytes} bytes are kept]\n"));
    }
    Ok(Output { text, bytes, is_cut })
}
