//! A copy of an environment whose files are links to those of the original, and that names itself where it names its
//! own path.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Copies the environment `from` to the folder `to`, which is not there yet. What replaces a file in one of them, as
/// `pip` does, leaves the other's alone.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    copy_folder(from, to, &Environments { from, to })
}

/// The folders of both.
struct Environments<'a> {
    from: &'a Path,
    to: &'a Path,
}

fn copy_folder(from: &Path, to: &Path, environments: &Environments<'_>) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_folder(&from, &to, environments)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&from)?, &to)?;
        } else if names_its_environment(&from, environments.from) {
            // Scripts, and what describes the environment. Copied first, for its permissions.
            fs::copy(&from, &to)?;
            fs::write(&to, renamed(&fs::read(&from)?, environments))?;
        } else if fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

/// Whether this may be a script that runs in its environment, or what describes it.
fn names_its_environment(file: &Path, environment: &Path) -> bool {
    file.parent().is_some_and(|folder| folder == environment || folder.file_name() == Some("bin".as_ref()))
}

/// Replaces the original's path by the path of the copy wherever it stands in a text.
fn renamed(text: &[u8], environments: &Environments<'_>) -> Vec<u8> {
    let [from, to] = [environments.from, environments.to].map(|path| path.as_os_str().as_encoded_bytes());
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(from.len()).position(|bytes| bytes == from) {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before);
        out.extend_from_slice(to);
        rest = after.get(from.len()..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    out
}
