//! Reads a file from start to end through a window of limited memory.

use std::io;

use crate::disk::DiskFile;
use crate::limits::{BLOCK_BYTES, WINDOW_BYTES};

/// The bytes of a file around the current position.
#[derive(Debug)]
pub(crate) struct Window<'a, F> {
    file: &'a F,
    /// The number of bytes of the file that may be read.
    size: usize,
    /// The range in memory: its offset in the file, a multiple of a block, and its length.
    begin: usize,
    len: usize,
    /// The buffer, one block longer than needed, because direct reads need an aligned address.
    memory: Vec<u8>,
    align: usize,
    /// The minimum size of a read in bytes.
    bytes: usize,
}

impl<'a, F: DiskFile> Window<'a, F> {
    /// A window over the first `bytes_max` bytes of a file.
    pub(crate) fn new(file: &'a F, bytes_max: usize) -> io::Result<Window<'a, F>> {
        Window::of_bytes(file, bytes_max, WINDOW_BYTES)
    }

    /// A window that reads at least `bytes` bytes at a time.
    pub(crate) fn of_bytes(file: &'a F, bytes_max: usize, bytes: usize) -> io::Result<Window<'a, F>> {
        let size = usize::try_from(file.size()?).map_err(io::Error::other)?.min(bytes_max);
        Ok(Window { file, size, begin: 0, len: 0, memory: Vec::new(), align: 0, bytes })
    }

    /// Reuses the memory for a window over another file.
    pub(crate) fn of(self, file: &'a F) -> io::Result<Window<'a, F>> {
        let Window { memory, align, bytes, .. } = self;
        Ok(Window { memory, align, ..Window::of_bytes(file, usize::MAX, bytes)? })
    }

    /// The number of bytes that can be read.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The bytes from `at` on: `len` of them, or fewer at the end.
    pub(crate) fn get(&mut self, at: usize, len: usize) -> io::Result<&[u8]> {
        let end = at.saturating_add(len).min(self.size);
        if at < self.begin || end > self.begin + self.len {
            self.fill(at, end)?;
        }
        // Beyond the bytes read, the memory holds leftovers of earlier reads.
        let end = end.min(self.begin + self.len);
        let there = self.align + at.saturating_sub(self.begin)..self.align + end.saturating_sub(self.begin);
        Ok(self.memory.get(there).unwrap_or_default())
    }

    /// The bytes from `at` on: at least `least` of them, plus everything already in memory.
    pub(crate) fn get_more(&mut self, at: usize, least: usize) -> io::Result<&[u8]> {
        let least = self.get(at, least)?.len();
        let there = self.begin + self.len;
        self.get(at, least.max(there.saturating_sub(at)))
    }

    fn fill(&mut self, at: usize, end: usize) -> io::Result<()> {
        self.begin = at - at % BLOCK_BYTES;
        self.len = 0;
        let wanted =
            (end.saturating_sub(self.begin)).max(self.bytes).min(self.size.saturating_sub(self.begin));
        let room = wanted.next_multiple_of(BLOCK_BYTES);
        self.memory.resize(self.memory.len().max(room + BLOCK_BYTES), 0);
        self.align = self.memory.as_ptr().align_offset(BLOCK_BYTES);
        let room = self.memory.get_mut(self.align..self.align + room).ok_or(io::ErrorKind::OutOfMemory)?;
        // A direct read that is not a multiple of a block must be the last.
        while self.len < wanted && self.len.is_multiple_of(BLOCK_BYTES) {
            let at = (self.begin + self.len) as u64;
            match self.file.read_at(room.get_mut(self.len..).unwrap_or_default(), at) {
                Ok(0) => break,
                Ok(read) => self.len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // The file may have been truncated meanwhile.
        if self.len < wanted {
            self.size = self.begin + self.len;
        }
        self.len = self.len.min(wanted);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk as _;
    use crate::disk::sim_disk::SimDisk;

    #[test]
    fn any_piece_is_what_stands_there() {
        let disk = SimDisk::default();
        let file = disk.create("file").expect("the disk is well");
        let bytes: Vec<u8> = (0..3 * WINDOW_BYTES + 1536).map(|at| (at / 7) as u8).collect();
        file.write_at(&bytes, 0).expect("the disk is well");
        let mut window = Window::new(&file, usize::MAX).expect("it is there");
        for at in [
            0,
            5,
            WINDOW_BYTES - 3,
            4096,
            2 * WINDOW_BYTES,
            bytes.len() - 9,
            bytes.len(),
            17,
            bytes.len() + 5,
        ] {
            for len in [0, 1, 40, 4096, WINDOW_BYTES, 2 * WINDOW_BYTES + 11] {
                let end = (at + len).min(bytes.len());
                let expected = bytes.get(at..end).unwrap_or_default();
                assert!(window.get(at, len).expect("it can be read") == expected, "{len} at {at}");
            }
        }
        for at in [WINDOW_BYTES - 100, 5, bytes.len() - 30] {
            let more = window.get_more(at, 40).expect("it can be read");
            assert!(more.len() >= 40.min(bytes.len() - at) && bytes[at..].starts_with(more), "{at}");
        }
        let mut first = Window::new(&file, 5000).expect("it is there");
        assert_eq!(first.get(4990, 100).expect("it can be read"), &bytes[4990..5000]);
    }
}
