//! The way from an internal client's outbound half to its task.

use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

use tokio::sync::Notify;

use crate::limits::PIPE_BYTES_MAX;
use crate::slots::unpoisoned;

/// Bytes that were flushed and not taken yet. It takes no more above a limit, as a socket does.
#[derive(Debug, Default)]
pub(crate) struct Pipe {
    bytes: Mutex<Vec<u8>>,
    bell: Arc<Bell>,
}

/// Wakes the task of an internal client.
#[derive(Debug, Default)]
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl Pipe {
    /// Takes bytes in; [`ErrorKind::WouldBlock`] where there are too many.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut waiting = unpoisoned(self.bytes.lock());
        let room = PIPE_BYTES_MAX.saturating_sub(waiting.len()).min(bytes.len());
        let taken = bytes.get(..room).filter(|taken| !taken.is_empty()).ok_or(ErrorKind::WouldBlock)?;
        waiting.extend_from_slice(taken);
        self.bell.0.notify_one();
        Ok(room)
    }

    /// Hands out all bytes that wait.
    pub(crate) fn read(&self, f: impl FnOnce(&[u8])) {
        let mut waiting = unpoisoned(self.bytes.lock());
        f(&waiting);
        waiting.clear();
    }

    /// The waker of the task.
    pub(crate) fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.bell))
    }

    /// Waits until the task is woken, by bytes or by a signal.
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
