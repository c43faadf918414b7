//! A file that is read from its beginning to its end through little memory.

use std::io;

use crate::disk::DiskFile;
use crate::limits::{BLOCK_BYTES, WINDOW_BYTES};

/// The bytes of a file around where somebody reads.
#[derive(Debug)]
pub(crate) struct Window<'a, F> {
    file: &'a F,
    /// Bytes of the file that are looked at.
    size: usize,
    /// Where what is in memory begins in the file, a multiple of a block; and how much of it there is.
    begin: usize,
    len: usize,
    /// Longer than it has to be by a block, as a direct read goes to an aligned place.
    memory: Vec<u8>,
    align: usize,
    /// Bytes that are read at once, or more.
    bytes: usize,
}

impl<'a, F: DiskFile> Window<'a, F> {
    /// Looks at the first bytes of a file, or at all of it.
    pub(crate) fn new(file: &'a F, bytes_max: usize) -> io::Result<Window<'a, F>> {
        Window::of_bytes(file, bytes_max, WINDOW_BYTES)
    }

    /// The same, and reads so many bytes at once.
    pub(crate) fn of_bytes(file: &'a F, bytes_max: usize, bytes: usize) -> io::Result<Window<'a, F>> {
        let size = usize::try_from(file.size()?).map_err(io::Error::other)?.min(bytes_max);
        Ok(Window { file, size, begin: 0, len: 0, memory: Vec::new(), align: 0, bytes })
    }

    /// Goes on with another file, in the same memory.
    pub(crate) fn of(self, file: &'a F) -> io::Result<Window<'a, F>> {
        let Window { memory, align, bytes, .. } = self;
        Ok(Window { memory, align, ..Window::of_bytes(file, usize::MAX, bytes)? })
    }

    /// How many bytes there are to look at.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The bytes from `at` on, as many as are asked for or as there are.
    pub(crate) fn get(&mut self, at: usize, len: usize) -> io::Result<&[u8]> {
        let end = at.saturating_add(len).min(self.size);
        if at < self.begin || end > self.begin + self.len {
            self.fill(at, end)?;
        }
        // Behind what was read the memory shows what stood in it before.
        let end = end.min(self.begin + self.len);
        let there = self.align + at.saturating_sub(self.begin)..self.align + end.saturating_sub(self.begin);
        Ok(self.memory.get(there).unwrap_or_default())
    }

    /// The bytes from `at` on, at least as many as are asked for, and as many as it costs nothing to give.
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
        // A direct read that is no multiple of a block is the last.
        while self.len < wanted && self.len.is_multiple_of(BLOCK_BYTES) {
            let at = (self.begin + self.len) as u64;
            match self.file.read_at(room.get_mut(self.len..).unwrap_or_default(), at) {
                Ok(0) => break,
                Ok(read) => self.len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // What somebody cut off meanwhile is not there.
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
