//! Tests of readers with a file that returns one block per call, interrupts every other call, and
//! may end early.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use super::chain;
use super::window::Window;
use crate::disk::{DiskFile, whole_file};
use crate::journal::crash::settings;
use crate::limits::{BLOCK_BYTES, WINDOW_BYTES};
use crate::lsn::{Lsn, LsnRange};
use crate::records::{Record, RecordType, batch};

struct InterruptedFile {
    bytes: Vec<u8>,
    /// The length that the file claims to have.
    size: usize,
    /// Offset from which reads fail.
    broken_at: usize,
    /// Whether reads must be of whole blocks into block-aligned memory.
    is_direct: bool,
    calls: AtomicUsize,
}

impl InterruptedFile {
    fn new(bytes: Vec<u8>) -> InterruptedFile {
        let calls = AtomicUsize::new(0);
        InterruptedFile { size: bytes.len(), broken_at: usize::MAX, bytes, is_direct: true, calls }
    }
}

impl DiskFile for InterruptedFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        if self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let at = offset as usize;
        let is_whole = at.is_multiple_of(BLOCK_BYTES) && bytes.len().is_multiple_of(BLOCK_BYTES);
        if self.is_direct && !(is_whole && bytes.as_ptr().align_offset(BLOCK_BYTES) == 0) {
            return Err(io::Error::from_raw_os_error(22));
        }
        if at >= self.broken_at {
            return Err(io::Error::from_raw_os_error(5));
        }
        let there = self.bytes.get(at..).unwrap_or_default();
        let len = there.len().min(bytes.len()).min(BLOCK_BYTES);
        bytes[..len].copy_from_slice(&there[..len]);
        Ok(len)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.size as u64)
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn sample(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 13) as u8).collect()
}

#[test]
fn a_window_shows_what_stands_there_however_it_comes() {
    let bytes = sample(WINDOW_BYTES + 5 * BLOCK_BYTES + 100);
    let file = InterruptedFile::new(bytes.clone());
    let mut window = Window::new(&file, usize::MAX).expect("it has a length");
    for at in [0, 1, 5000, WINDOW_BYTES - 10, WINDOW_BYTES + 7, 3 * BLOCK_BYTES, bytes.len() - 50] {
        let end = bytes.len().min(at + 3000);
        assert!(window.get(at, 3000).expect("it can be read") == &bytes[at..end], "{at}");
        let more = window.get_more(at, 10).expect("it can be read");
        assert!(more.len() >= 10.min(end - at) && bytes[at..].starts_with(more), "{at}");
    }
    assert_eq!(window.size(), bytes.len());
}

#[test]
fn a_window_grows_with_what_it_is_asked_for_and_gives_what_it_has_for_nothing() {
    let bytes = sample(3 * WINDOW_BYTES);
    let file = InterruptedFile::new(bytes.clone());
    for (first, len) in
        [(0, WINDOW_BYTES + 1), (BLOCK_BYTES, WINDOW_BYTES + 2 * BLOCK_BYTES), (9, WINDOW_BYTES)]
    {
        let mut window = Window::new(&file, usize::MAX).expect("it has a length");
        let least = window.get(first, 10).expect("it can be read");
        assert!(least == &bytes[first..first + 10], "at {first}");
        let begin = first - first % BLOCK_BYTES;
        for (at, more) in [(first, begin + WINDOW_BYTES - first), (begin + WINDOW_BYTES - 20, 20)] {
            let calls = file.calls.load(Ordering::Relaxed);
            assert_eq!(window.get_more(at, 10).expect("it can be read").len(), more, "at {at}");
            assert_eq!(file.calls.load(Ordering::Relaxed), calls, "it is in memory");
        }
        assert!(window.get(first, len).expect("it can be read") == &bytes[first..first + len], "{len}");
    }
}

#[test]
fn nothing_is_read_twice() {
    let file = InterruptedFile::new(sample(2 * WINDOW_BYTES + 3 * BLOCK_BYTES + 100));
    let blocks = file.size.div_ceil(BLOCK_BYTES);
    let mut window = Window::new(&file, usize::MAX).expect("it has a length");
    for at in (0..file.size).step_by(100) {
        window.get(at, 100).expect("it can be read");
    }
    // Each block is interrupted once, and two blocks straddle the end of the window.
    assert_eq!(file.calls.load(Ordering::Relaxed), 2 * (blocks + 2));

    for len in [0, 100, 2 * BLOCK_BYTES, file.size] {
        let file = InterruptedFile::new(file.bytes.clone());
        let bytes = whole_file::read_with(len, |bytes, at| file.read_at(bytes, at)).expect("it can be read");
        assert!(bytes == file.bytes[..len], "{len} bytes");
        assert_eq!(file.calls.load(Ordering::Relaxed), 2 * len.div_ceil(BLOCK_BYTES), "{len} bytes");
    }
}

#[test]
fn a_file_that_ends_before_it_says_is_as_long_as_what_is_there() {
    let bytes = sample(WINDOW_BYTES + 5 * BLOCK_BYTES + 100);
    for from in [0, 3 * BLOCK_BYTES, WINDOW_BYTES + BLOCK_BYTES] {
        let file =
            InterruptedFile { size: bytes.len() + 3 * BLOCK_BYTES, ..InterruptedFile::new(bytes.clone()) };
        let mut window = Window::new(&file, usize::MAX).expect("it has a length");
        assert!(window.get(from, usize::MAX).expect("it can be read") == &bytes[from..], "from {from}");
        assert_eq!(window.size(), bytes.len(), "from {from}");
        let whole = whole_file::read_with(file.size, |bytes, at| file.read_at(bytes, at));
        assert!(whole.expect("it can be read") == bytes);
    }
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let file =
        InterruptedFile { broken_at: 2 * BLOCK_BYTES, ..InterruptedFile::new(sample(9 * BLOCK_BYTES)) };
    let mut window = Window::new(&file, usize::MAX).expect("it has a length");
    assert_eq!(window.get(0, 100).map(<[u8]>::len).map_err(|error| error.raw_os_error()), Err(Some(5)));
    let whole = whole_file::read_with(9 * BLOCK_BYTES, |bytes, at| file.read_at(bytes, at));
    assert_eq!(whole.map_err(|error| error.raw_os_error()), Err(Some(5)));
    let file = InterruptedFile { is_direct: false, ..file };
    let told = chain::numbers(&file, 9 * BLOCK_BYTES as u64, settings(None).seal, 1);
    assert_eq!(told.map_err(|error| error.raw_os_error()), Err(Some(5)));
}

#[test]
fn a_header_that_is_cut_off_is_none() {
    let (seal, generation) = (settings(None).seal, 7);
    let mut bytes = vec![0; BLOCK_BYTES];
    for (lsn, len) in [(1, 10), (2, 10)] {
        let record =
            Record { lsn: Lsn(lsn), kind: RecordType::Message, flags: 0, payload: Bytes::from(vec![1; len]) };
        batch::push(&mut bytes, seal, generation, LsnRange::one(Lsn(lsn)), [record].iter());
    }
    for (len, last) in [(3 * BLOCK_BYTES, 2), (2 * BLOCK_BYTES + batch::HEADER_BYTES - 1, 1)] {
        let file = InterruptedFile { is_direct: false, ..InterruptedFile::new(bytes[..len].to_vec()) };
        let told = chain::numbers(&file, 3 * BLOCK_BYTES as u64, seal, generation).expect("it can be read");
        assert_eq!(told, Some(LsnRange { first: Lsn(1), last: Lsn(last) }), "{len} bytes");
    }
}
