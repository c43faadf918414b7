//! The file `damage`: findings of damage in a store, until an operator acknowledges them.
//!
//! It is text for people, one line per finding. Decisions depend only on its existence, so it needs
//! no checksum and may be removed by hand.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::limits::DAMAGE_NOTE_BYTES_MAX;

/// The name of the file.
pub const NAME: &str = "damage";

/// Whether this data folder has a note.
#[must_use]
pub fn is_there(folder: &Path) -> bool {
    folder.join(NAME).exists()
}

/// Reads the lines of the note; empty if there is no note.
///
/// # Errors
///
/// Any error of the operating system.
pub fn read(folder: &Path) -> io::Result<Vec<String>> {
    let file = match File::open(folder.join(NAME)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        file => file?,
    };
    let mut bytes = Vec::new();
    file.take(DAMAGE_NOTE_BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).lines().map(String::from).collect())
}

/// Adds new findings to the note, up to its maximum size; durable on return.
///
/// # Errors
///
/// Any error of the operating system.
pub fn add(folder: &Path, findings: &[String]) -> io::Result<()> {
    let known = read(folder)?;
    let mut len = known.iter().map(|line| line.len() + 1).sum::<usize>();
    let mut text = String::new();
    for finding in findings.iter().map(|finding| finding.replace('\n', "; ")) {
        len += finding.len() + 1;
        if !known.contains(&finding) && len <= DAMAGE_NOTE_BYTES_MAX {
            text.push_str(&finding);
            text.push('\n');
        }
    }
    if text.is_empty() && is_there(folder) {
        return Ok(());
    }
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(folder.join(NAME))?;
    file.write_all(text.as_bytes())?;
    file.sync_data()?;
    File::open(folder)?.sync_all()
}

/// Removes the note on an operator's behalf, and returns its lines.
///
/// # Errors
///
/// Any error of the operating system.
pub fn acknowledge(folder: &Path) -> io::Result<Vec<String>> {
    let known = read(folder)?;
    if is_there(folder) {
        fs::remove_file(folder.join(NAME))?;
        File::open(folder)?.sync_all()?;
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_noted_once_and_stays_until_it_is_acknowledged() {
        let folder = std::env::temp_dir().join(format!("imori-damage-note-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("there is none");
        let text = |lines: &[&str]| lines.iter().map(|line| String::from(*line)).collect::<Vec<_>>();
        let add = |lines: &[&str]| add(&folder, &text(lines)).expect("there is room");
        assert!(!is_there(&folder) && read(&folder).expect("there is none").is_empty());
        add(&["one", "two\nin two lines"]);
        add(&["two\nin two lines", "three"]);
        assert_eq!(read(&folder).expect("it is there"), ["one", "two; in two lines", "three"]);

        let long = "x".repeat(DAMAGE_NOTE_BYTES_MAX - 200);
        add(&[&long, &long.replace('x', "y"), "four"]);
        let len = fs::metadata(folder.join(NAME)).expect("it is there").len();
        assert!(len > 1000 && len <= DAMAGE_NOTE_BYTES_MAX as u64, "{len} bytes");

        for (left, is_added) in [(10, true), (9, true), (8, false)] {
            let full = "x".repeat(DAMAGE_NOTE_BYTES_MAX - left - "one\n".len() - 1);
            fs::write(folder.join(NAME), format!("one\n{full}\n")).expect("there is room");
            add(&["12345678"]);
            let note = read(&folder).expect("it is there");
            assert_eq!(note.len(), 2 + usize::from(is_added), "{left} bytes are left");
        }
        let folder_of_note = folder.join("no folder");
        fs::write(&folder_of_note, "").expect("there is room");
        assert!(read(&folder_of_note).is_err(), "nobody knows whether there is a note");

        fs::write(folder.join(NAME), "one\ntwo\n").expect("there is room");
        assert_eq!(acknowledge(&folder).expect("it is there").len(), 2);
        assert!(!is_there(&folder));
        assert!(acknowledge(&folder).expect("there is none").is_empty());
        let _ = fs::remove_dir_all(folder);
    }
}
