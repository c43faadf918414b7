//! Carries bytes from an internal client's outbound half to its task.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use tokio::sync::Notify;

use crate::limits::PIPE_BYTES_MAX;
use crate::slots::unpoisoned;

/// Bytes flushed but not read yet. Refuses more above a limit, like a socket.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    bytes: Mutex<Vec<u8>>,
    bell: Arc<Bell>,
}

/// Wakes an internal client's task.
#[derive(Debug, Default)]
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl Pipe {
    /// Writes bytes; [`ErrorKind::WouldBlock`] if the pipe is full.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut waiting = unpoisoned(self.bytes.lock());
        let room = PIPE_BYTES_MAX.saturating_sub(waiting.len()).min(bytes.len());
        let taken = bytes.get(..room).filter(|taken| !taken.is_empty()).ok_or(ErrorKind::WouldBlock)?;
        waiting.extend_from_slice(taken);
        self.bell.0.notify_one();
        Ok(room)
    }

    /// Passes all waiting bytes to `f` and removes them.
    pub(crate) fn read(&self, f: impl FnOnce(&[u8])) {
        let mut waiting = unpoisoned(self.bytes.lock());
        f(&waiting);
        waiting.clear();
    }

    /// The task's waker.
    pub(crate) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.bell))
    }

    /// Waits until the task is woken by bytes or a signal.
    pub(crate) async fn woken(&self) {
        self.bell.0.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pipe_takes_nothing_until_it_is_read() {
        let pipe = Pipe::default();
        let bytes = vec![7; PIPE_BYTES_MAX + 1];
        assert_eq!(pipe.write(&bytes).unwrap(), PIPE_BYTES_MAX);
        assert_eq!(pipe.write(b"more").unwrap_err().kind(), ErrorKind::WouldBlock);
        pipe.read(|read| assert_eq!(read.len(), PIPE_BYTES_MAX));
        assert_eq!(pipe.write(b"more").unwrap(), 4);
        pipe.read(|read| assert_eq!(read, b"more"));
    }
}
