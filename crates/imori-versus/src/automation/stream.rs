//! The API's stream of updates, read on a thread of its own, so that each update has the time at which it arrived.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use imori_bench::limits::READ_BYTES;
use serde_json::Value;

use crate::automation::api::{Api, connect};
use crate::automation::http::{Events, stream_head};
use crate::limits::API_ANSWER_TIMEOUT;

/// Updates of executions.
#[derive(Debug)]
pub(crate) struct Stream {
    socket: TcpStream,
    updates: Receiver<Update>,
}

/// An update of an execution.
#[derive(Debug)]
pub(crate) struct Update {
    /// When it arrived.
    pub(crate) at: Instant,
    /// The execution.
    pub(crate) document: Value,
}

impl Update {
    /// The text of a key; empty if it is missing.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.document.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Whether the execution has ended.
    pub(crate) fn is_end(&self) -> bool {
        matches!(self.text("status"), "succeeded" | "failed" | "timeout" | "abandoned" | "canceled")
    }
}

impl Stream {
    /// Follows the executions of an action; what happens after this returns is not missed.
    pub(crate) fn open(api: &Api, action: &str) -> Result<Stream> {
        let mut socket = connect(api.address)?;
        let path = format!("/v1/stream?events=st2.execution__update&action_refs={action}");
        socket.write_all(&api.sender.request("GET", &path, b""))?;
        let (mut unread, mut buffer) = (Vec::new(), vec![0; READ_BYTES]);
        let head = loop {
            if let Some(end) = stream_head(&unread)? {
                break end;
            }
            match socket.read(&mut buffer).context("the stream has no answer")? {
                0 => bail!("the API closed the stream"),
                count => unread.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            }
        };
        unread.drain(..head);
        socket.set_read_timeout(None)?;
        let (sender, updates) = channel();
        let reading = socket.try_clone()?;
        std::thread::Builder::new()
            .name("updates".to_owned())
            .spawn(move || read(reading, &unread, buffer, &sender))
            .context("a thread for the stream cannot be started")?;
        Ok(Stream { socket, updates })
    }

    /// The next update; fails if none arrives in time.
    pub(crate) fn next(&self) -> Result<Update> {
        match self.updates.recv_timeout(API_ANSWER_TIMEOUT) {
            Ok(update) => Ok(update),
            Err(RecvTimeoutError::Timeout) => {
                bail!("no execution ended within {} s", API_ANSWER_TIMEOUT.as_secs())
            }
            Err(RecvTimeoutError::Disconnected) => bail!("the broker ended the stream"),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // The thread ends with the connection, which may be closed already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Reads until the connection ends.
fn read(mut socket: TcpStream, first: &[u8], mut buffer: Vec<u8>, updates: &Sender<Update>) {
    let mut events = Events::default();
    let mut found = events.push(first);
    loop {
        let at = Instant::now();
        let Ok(complete) = found else { return };
        for data in complete {
            let Ok(document) = serde_json::from_slice(&data) else { continue };
            if updates.send(Update { at, document }).is_err() {
                return;
            }
        }
        let count = socket.read(&mut buffer).unwrap_or(0);
        if count == 0 {
            return;
        }
        found = events.push(buffer.get(..count).unwrap_or_default());
    }
}
