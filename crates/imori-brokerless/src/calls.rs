//! An HTTP/2 connection without a socket, a task or a thread.
//!
//! `h2` reads and writes a pipe in memory. [`Http2`] polls it whenever the load tool has bytes or
//! calls for it, so nothing ever waits and no waker is needed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use anyhow::{Context as _, Error, Result, bail};
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use h2::client::{Builder, Connection, SendRequest};
use http::Request;
use imori_bench::driver::Caller;

use crate::pipe::Pipe;
use crate::reply::reply;

/// Bytes of replies that the peer may send before `h2` allows more.
const WINDOW_BYTES: u32 = 16 * 1024 * 1024;

/// Bytes of the headers of one reply. More: `h2` refuses the reply.
const HEADER_BYTES_MAX: u32 = 64 * 1024;

/// One connection and its calls.
#[derive(Debug)]
pub(crate) struct Http2 {
    connection: Connection<Pipe, Bytes>,
    sender: SendRequest<Bytes>,
    pipe: Pipe,
    request: Request<()>,
    replies: FuturesUnordered<BoxFuture<'static, (Option<u32>, Result<Bytes>)>>,
    /// Why no more calls can be made.
    failure: Option<Error>,
}

impl Http2 {
    /// Creates a connection whose calls all have the headers of `request`.
    pub(crate) fn new(request: Request<()>) -> Result<Http2> {
        let pipe = Pipe::default();
        let mut builder = Builder::new();
        builder.enable_push(false).max_header_list_size(HEADER_BYTES_MAX);
        builder.initial_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES);
        let opening = builder.handshake(pipe.clone()).now_or_never();
        let (sender, connection) = opening.context("the pipe takes no preface")??;
        Ok(Http2 { connection, sender, pipe, request, replies: FuturesUnordered::new(), failure: None })
    }

    /// Takes bytes of the peer, and appends what the connection has to write. A window that a later
    /// reply opens is written with the next bytes: half of it is left by then.
    pub(crate) fn receive(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.pipe.push(bytes);
        self.send(out)
    }

    /// The number of a call that has ended, and its reply.
    pub(crate) fn next_reply(&mut self) -> Option<(Option<u32>, Result<Bytes>)> {
        self.replies.next().now_or_never().flatten()
    }

    /// Appends the bytes that the connection has to write.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        match self.connection.poll_unpin(&mut Context::from_waker(Waker::noop())) {
            Poll::Pending => self.pipe.pull(out),
            Poll::Ready(Ok(())) => bail!("the peer ends the connection"),
            Poll::Ready(Err(error)) => {
                return Err(error).context("HTTP/2 with the peer fails; look at the port");
            }
        }
        Ok(())
    }

    /// Starts the call with this number; the login has none.
    pub(crate) fn start(&mut self, number: Option<u32>, message: Vec<u8>) -> Result<()> {
        let (response, mut body) = self.sender.send_request(self.request.clone(), false)?;
        body.send_data(message.into(), true)?;
        self.replies.push(async move { (number, reply(response).await) }.boxed());
        Ok(())
    }
}

/// The connection that a reader and a template share; both stay on one thread.
#[derive(Debug, Clone)]
pub(crate) struct Calls(Arc<Mutex<Http2>>);

impl Calls {
    /// Shares a connection.
    pub(crate) fn of(connection: Http2) -> Calls {
        Calls(Arc::new(Mutex::new(connection)))
    }

    /// The connection.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Http2> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Caller for Calls {
    fn room(&self) -> u64 {
        let http2 = self.lock();
        http2.sender.current_max_send_streams().saturating_sub(http2.replies.len()) as u64
    }

    fn call(&self, number: u32, message: Vec<u8>) {
        let mut http2 = self.lock();
        if let Err(error) = http2.start(Some(number), message) {
            http2.failure = Some(error);
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let mut http2 = self.lock();
        // The reader reports a failure in its next turn.
        http2.failure = http2.send(out).err();
    }
}
