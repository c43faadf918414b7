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
pub(crate) enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// The files in the folder of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunFiles<'a>(pub(crate) &'a Path);

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
    pub(crate) fn output(self, stream: OutputStream) -> Output {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn output_beyond_the_limit_is_counted_and_said_to_be_cut() {
        let folder = tempfile::tempdir().unwrap();
        let files = RunFiles(folder.path());
        assert_eq!(files.output(OutputStream::Stdout), Output::default());
        fs::write(folder.path().join("stdout"), b"a\xff").unwrap();
        assert_eq!(files.output(OutputStream::Stdout).text, "a\u{fffd}");
        let mut long = vec![b'x'; OUTPUT_BYTES_MAX - 1];
        long.extend_from_slice(b"yz");
        fs::write(folder.path().join("stderr"), long).unwrap();
        let output = files.output(OutputStream::Stderr);
        assert!(output.is_cut);
        assert_eq!(output.bytes, OUTPUT_BYTES_MAX as u64 + 1);
        assert!(output.text.ends_with("xy\n[cut: 1048576 of 1048577 bytes are kept]\n"));
    }
}
