//! Small files that are replaced as a whole: a crash leaves the old content or the new.

use std::io;

use crate::disk::{self, Disk, DiskFile as _};
use crate::limits::SECTOR_BYTES;

/// Replaces the content of the file `name` durably, and returns the file.
pub(crate) fn replace<D: Disk>(disk: &D, name: &str, content: &[u8; SECTOR_BYTES]) -> io::Result<D::File> {
    let new = format!("{name}.new");
    // An incomplete file is left from an interrupted replacement.
    if disk.list()?.contains(&new) {
        disk.remove(&new)?;
    }
    let file = disk.create(&new)?;
    disk::write_all(&file, content, 0)?;
    file.sync_data()?;
    disk.rename(&new, name)?;
    disk.sync_folder()?;
    Ok(file)
}

/// Reads a small file; `None` if it is missing.
pub(crate) fn content<D: Disk>(disk: &D, name: &str) -> io::Result<Option<Vec<u8>>> {
    match disk.open(name) {
        Ok(file) => {
            let mut bytes = vec![0; SECTOR_BYTES];
            let read = disk::read_up_to(&file, &mut bytes, 0)?;
            bytes.truncate(read);
            Ok(Some(bytes))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
