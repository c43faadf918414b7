//! Messages that recovery leaves in their files, because they may exceed memory.

use std::fmt;
use std::io;
use std::sync::Arc;

use super::window::Window;
use crate::disk::DiskFile;
use crate::limits::{SMALL_WINDOW_BYTES, WINDOW_BYTES};
use crate::lsn::Lsn;
use crate::records::record::{self, HEADER_BYTES, Record, RecordType, RecordView};
use crate::seal::Seal;

/// The locations of a journal's needed messages, in ascending order of number. They can be read
/// until the journal is written to, or, in files that stay, until those are reused.
pub struct Messages<F> {
    /// Files with messages. Others are closed, because an open file keeps its disk space after it
    /// is removed.
    files: Vec<Option<Arc<F>>>,
    /// Whether each file stays, rather than being rewritten.
    staying: Vec<bool>,
    places: Vec<RecordLocation>,
    seal: Seal,
}

/// The location of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordLocation {
    pub(crate) lsn: Lsn,
    /// The index of the file.
    pub(crate) file: u32,
    pub(crate) at: usize,
}

/// The reason why reading messages ended early.
#[derive(Debug)]
pub enum ReadError<E> {
    /// The disk returned an error.
    Disk(io::Error),
    /// The caller's closure returned an error.
    Taker(E),
}

impl<E: fmt::Display> fmt::Display for ReadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Disk(error) => write!(f, "the journal cannot be read: {error}; check the disk"),
            ReadError::Taker(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for ReadError<E> {}

impl<E> From<io::Error> for ReadError<E> {
    fn from(error: io::Error) -> ReadError<E> {
        ReadError::Disk(error)
    }
}

impl<F> fmt::Debug for Messages<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages").field("len", &self.places.len()).finish_non_exhaustive()
    }
}

impl<F: DiskFile> Messages<F> {
    pub(crate) fn new(files: Vec<Arc<F>>, places: Vec<RecordLocation>, seal: Seal) -> Messages<F> {
        let files = files.into_iter().map(Some).collect();
        Messages { files, staying: Vec::new(), places, seal }
    }

    /// Sets whether each file stays.
    pub(crate) fn stay(&mut self, staying: impl Iterator<Item = bool>) {
        self.staying = staying.collect();
    }

    pub(crate) fn places(&self) -> &[RecordLocation] {
        &self.places
    }

    /// Passes each message to `take` in ascending order of number. The memory is reused for the
    /// next one.
    ///
    /// # Errors
    ///
    /// The error of `take`; or the file cannot be read, or has changed since recovery.
    pub fn each<E>(&self, take: impl FnMut(&RecordView<'_>) -> Result<(), E>) -> Result<(), ReadError<E>> {
        self.read(self.places.iter().copied(), WINDOW_BYTES, take)
    }

    /// Passes each message to `take`, along with its file if that stays. Messages for which `take`
    /// returns false are forgotten.
    ///
    /// # Errors
    ///
    /// As [`Messages::each`].
    pub fn retain<E>(
        &mut self,
        mut take: impl FnMut(&RecordView<'_>, Option<u32>) -> Result<bool, E>,
    ) -> Result<(), ReadError<E>> {
        let mut kept = Vec::with_capacity(self.places.len());
        self.each(|view| {
            let file = self.places.get(kept.len()).map(|place| place.file);
            let file = file.filter(|file| self.staying.get(*file as usize) == Some(&true));
            kept.push(take(view, file)?);
            Ok(())
        })?;
        let mut kept = kept.into_iter();
        self.places.retain(|_| kept.next() == Some(true));
        self.places.shrink_to_fit();
        self.close_files();
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn open_files(&self) -> usize {
        self.files.iter().flatten().count()
    }

    /// Closes files without messages.
    fn close_files(&mut self) {
        let mut is_needed = vec![false; self.files.len()];
        for place in &self.places {
            is_needed.get_mut(place.file as usize).into_iter().for_each(|is_needed| *is_needed = true);
        }
        for (file, _) in self.files.iter_mut().zip(is_needed).filter(|(_, is_needed)| !is_needed) {
            *file = None;
        }
    }

    /// Passes the messages with these LSNs to `take`, in the given order.
    ///
    /// # Errors
    ///
    /// As [`Messages::each`]; a message missing because its file was reused counts as a changed
    /// file.
    pub fn read_records<E>(
        &self,
        lsns: impl Iterator<Item = Lsn>,
        take: impl FnMut(&RecordView<'_>) -> Result<(), E>,
    ) -> Result<(), ReadError<E>> {
        let find = |lsn| self.places.binary_search_by_key(&lsn, |place| place.lsn);
        let places: Option<Vec<RecordLocation>> =
            lsns.map(|lsn| self.places.get(find(lsn).ok()?).copied()).collect();
        self.read(places.ok_or_else(changed)?.into_iter(), SMALL_WINDOW_BYTES, take)
    }

    /// Forgets messages below `floor`.
    pub fn forget_below(&mut self, floor: Lsn) {
        let below = self.places.partition_point(|place| place.lsn < floor);
        if below > 0 {
            self.places.drain(..below);
            self.close_files();
        }
        if self.places.is_empty() {
            self.places = Vec::new();
        }
    }

    /// Passes the messages at these locations to `take`, as [`Messages::each`] does.
    pub(crate) fn read<E>(
        &self,
        places: impl Iterator<Item = RecordLocation>,
        window_bytes: usize,
        mut take: impl FnMut(&RecordView<'_>) -> Result<(), E>,
    ) -> Result<(), ReadError<E>> {
        let mut open: Option<(u32, Window<'_, F>)> = None;
        for place in places {
            let window = match open.take() {
                Some((file, window)) if file == place.file => window,
                before => {
                    let file = self.files.get(place.file as usize).and_then(Option::as_ref);
                    let file = file.ok_or_else(changed)?;
                    match before {
                        Some((_, window)) => window.of(file)?,
                        None => Window::of_bytes(&**file, usize::MAX, window_bytes)?,
                    }
                }
            };
            let (_, window) = open.insert((place.file, window));
            let len = window.get(place.at, HEADER_BYTES)?.first_chunk();
            let len = len.map_or(0, |len| u32::from_le_bytes(*len) as usize);
            let bytes = window.get(place.at, HEADER_BYTES.saturating_add(len))?;
            let (view, _) = record::decode(bytes, self.seal).map_err(|_| changed())?;
            if view.lsn != place.lsn || view.kind != RecordType::Message {
                return Err(ReadError::Disk(changed()));
            }
            take(&view).map_err(ReadError::Taker)?;
        }
        Ok(())
    }

    /// Reads the messages at these locations into memory.
    pub(crate) fn load(&self, places: impl Iterator<Item = RecordLocation>) -> io::Result<Vec<Record>> {
        let mut records = Vec::new();
        let read = self.read(places, WINDOW_BYTES, |view| {
            records.push(view.to_record());
            Ok::<(), io::Error>(())
        });
        match read {
            Ok(()) => Ok(records),
            Err(ReadError::Disk(error) | ReadError::Taker(error)) => Err(error),
        }
    }
}

fn changed() -> io::Error {
    io::Error::other("a journal file changed while it was read; nothing else may write to it")
}
