//! Reads the numbers of a file from its batch headers alone, enough to prove that the file is not
//! needed.

use std::io;

use crate::disk::DiskFile;
use crate::limits::BLOCK_BYTES;
use crate::lsn::LsnRange;
use crate::records::batch::{self, BatchHeader};
use crate::seal::Seal;

/// Reads the numbers of all batches of this generation. `None` if the batches are not consecutive
/// from the first block on: then only a scan can judge the file.
pub(crate) fn numbers<F: DiskFile>(
    file: &F,
    bytes: u64,
    seal: Seal,
    generation: u32,
) -> io::Result<Option<LsnRange>> {
    let mut found: Option<LsnRange> = None;
    let (mut at, mut has_gap) = (BLOCK_BYTES as u64, false);
    while at < bytes {
        let header = read_header(file, at, seal)?.filter(|header| header.generation == generation);
        let Some(BatchHeader { lsns, batch_bytes, .. }) = header else {
            has_gap = true;
            at += BLOCK_BYTES as u64;
            continue;
        };
        match found {
            Some(before) if has_gap || lsns.first != before.last.next() => return Ok(None),
            None if has_gap => return Ok(None),
            _ => {}
        }
        found = Some(LsnRange { first: found.map_or(lsns.first, |found| found.first), last: lsns.last });
        at += batch_bytes as u64;
    }
    Ok(found)
}

fn read_header<F: DiskFile>(file: &F, at: u64, seal: Seal) -> io::Result<Option<BatchHeader>> {
    let mut bytes = [0; batch::HEADER_BYTES];
    loop {
        match file.read_at(&mut bytes, at) {
            Ok(read) if read == bytes.len() => return Ok(batch::decode_header(&bytes, seal)),
            // A header lies within a block, so a shorter read cannot hold one.
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests;
