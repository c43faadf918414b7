//! Data folders of earlier formats, kept as text: `file NAME BYTES`, then `OFFSET HEX`
//! or `OFFSET HEX*COUNT` for what is not zero.

use std::fs;
use std::path::Path;

/// A folder of format version 1: a queue with three messages in the journal, one of them in a segment too.
pub(crate) const FOLDER_1: &str = include_str!("fixtures/folder-1.txt");

/// Writes the files of a kept folder.
pub(crate) fn unpack(kept: &str, folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    let mut files: Vec<(&str, Vec<u8>)> = Vec::new();
    for line in kept.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some((name, len)) = line.strip_prefix("file ").and_then(|file| file.split_once(' ')) {
            files.push((name, vec![0; len.parse().unwrap()]));
            continue;
        }
        let (offset, hex) = line.split_once(' ').unwrap();
        let (hex, count) = hex.split_once('*').unwrap_or((hex, "1"));
        let offset = usize::from_str_radix(offset, 16).unwrap();
        let bytes = (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
        let bytes = bytes.collect::<Vec<u8>>().repeat(count.parse().unwrap());
        files.last_mut().unwrap().1[offset..offset + bytes.len()].copy_from_slice(&bytes);
    }
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
