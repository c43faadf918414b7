//! Raw results as JSON files compressed by `gzip`, which is available everywhere.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};

/// The most bytes of JSON that are read. A run of hours has 30 MiB, so a larger file is no report.
pub(crate) const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// Extension of a compressed file.
const PACKED: &str = "gz";

/// Replaces a file by its compressed form, and returns the new path.
///
/// The program `gzip` does it, because compressing one file per run does not justify a dependency.
pub fn pack(file: &Path) -> Result<PathBuf> {
    let status = Command::new("gzip").args(["--best", "--force", "--no-name"]).arg(file).status();
    let status = status.context("`gzip` cannot be run; install it")?;
    ensure!(status.success(), "`gzip` cannot pack `{}`", file.display());
    let mut name = file.as_os_str().to_owned();
    name.push(".");
    name.push(PACKED);
    Ok(PathBuf::from(name))
}

/// Reads a file, compressed or not; fails if it has more than `FILE_BYTES_MAX` bytes.
///
/// The error comes from the file system, or says that `gzip` cannot unpack the file.
pub fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    match file.extension() == Some(OsStr::new(PACKED)) {
        true => unpacked(file),
        false => fs::File::open(file).and_then(bounded),
    }
}

fn unpacked(file: &Path) -> std::io::Result<Vec<u8>> {
    // Reports a missing file by the system's error, rather than by an error of `gzip`.
    fs::metadata(file)?;
    let mut command = Command::new("gzip");
    command.args(["--decompress", "--stdout"]).arg(file).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let text = child.stdout.take().map_or_else(|| Ok(Vec::new()), bounded)?;
    match child.wait()?.success() {
        true => Ok(text),
        false => Err(std::io::Error::other("`gzip` cannot unpack it")),
    }
}

fn bounded(source: impl Read) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    source.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    match text.len() as u64 > FILE_BYTES_MAX {
        true => Err(std::io::Error::other("it has more bytes than any report")),
        false => Ok(text),
    }
}

/// The only raw result in a folder, or the path itself if it is not a folder.
pub fn raw_in(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let names = fs::read_dir(path).with_context(|| format!("`{}` cannot be read", path.display()))?;
    let is_raw = |name: &str| name.ends_with(".json") || name.ends_with(".json.gz");
    let mut raw: Vec<PathBuf> = names.flatten().map(|entry| entry.path()).collect();
    raw.retain(|file| file.file_name().and_then(OsStr::to_str).is_some_and(is_raw));
    match raw.as_slice() {
        [file] => Ok(file.clone()),
        [] => Err(anyhow!("`{}` has no raw results; name a file that `--json` wrote", path.display())),
        several => {
            let names: Vec<String> = several.iter().map(|file| format!("`{}`", file.display())).collect();
            Err(anyhow!("`{}` has several results; name one: {}", path.display(), names.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_file_is_smaller_and_reads_alike() {
        let folder = std::env::temp_dir().join(format!("imori-bench-packed-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("versus.json");
        let text = "[1, 2, 3] ".repeat(1_000);
        fs::write(&file, &text).unwrap();
        assert_eq!(raw_in(&folder).unwrap(), file);
        let packed = pack(&file).unwrap();
        assert!(!file.exists() && fs::metadata(&packed).unwrap().len() < 500);
        assert_eq!(raw_in(&folder).unwrap(), packed);
        assert_eq!(read(&packed).unwrap(), text.as_bytes());
        fs::write(&packed, "no gzip").unwrap();
        assert!(read(&packed).unwrap_err().to_string().contains("cannot unpack"));
        assert_eq!(read(&folder.join("none.gz")).unwrap_err().kind(), std::io::ErrorKind::NotFound);
        fs::write(folder.join("other.json"), "").unwrap();
        assert!(raw_in(&folder).unwrap_err().to_string().contains("several results; name one"));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(raw_in(&folder).unwrap(), folder);
    }
}
