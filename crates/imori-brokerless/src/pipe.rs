//! A pipe in memory: what `h2` takes for a socket, and the load tool fills and empties.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// One end of the pipe; every clone is the same end. It never wakes anybody.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pipe(Arc<Mutex<Content>>);

#[derive(Debug, Default)]
struct Content {
    input: Vec<u8>,
    /// Number of bytes of `input` that are read.
    read: usize,
    output: Vec<u8>,
}

impl Pipe {
    /// Appends bytes that can be read.
    pub(crate) fn push(&self, bytes: &[u8]) {
        self.content().input.extend_from_slice(bytes);
    }

    /// Moves what was written to the end of `out`.
    pub(crate) fn pull(&self, out: &mut Vec<u8>) {
        let mut content = self.content();
        match out.is_empty() {
            true => std::mem::swap(&mut content.output, out),
            false => out.append(&mut content.output),
        }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for Pipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, room: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut content = self.content();
        let unread = content.input.get(content.read..).unwrap_or_default();
        if unread.is_empty() {
            content.input.clear();
            content.read = 0;
            return Poll::Pending;
        }
        let length = unread.len().min(room.remaining());
        room.put_slice(unread.get(..length).unwrap_or_default());
        content.read += length;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.content().output.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut content = self.content();
        let before = content.output.len();
        pieces.iter().for_each(|piece| content.output.extend_from_slice(piece));
        Poll::Ready(Ok(content.output.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
