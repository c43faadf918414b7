//! `TCPSocket`: connections of scripts that speak a protocol of their own, as `Redis` does in ruby/redis.rb.
//!
//! What has arrived is read without waiting. A call that is ended in the middle leaves the connection closed, because
//! nobody knows then what the server has got.

use std::{
    io,
    rc::Rc,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use imori_ruby::{Call, Error, Handle, Library, Reply, Value};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::OwnedSemaphorePermit,
};

use super::{
    context::{argument_error, awaiting, bytes_at, integer_at, run_of, text_at},
    requests::to_error,
};
use crate::lock::lock;

const SOCKET: &str = "Imori::Socket";

/// Bytes of one read; a larger answer is read in parts.
const READ_BYTES_MAX: usize = 8 << 20;

/// The longest time for one read or write.
const TIMEOUT_MS_MAX: i64 = 10 * 60 * 1000;

pub(super) fn declare(library: &mut Library) {
    library
        .class("IOError", "StandardError")
        .class("EOFError", "IOError")
        .handle_class(SOCKET)
        .module("Imori::Sockets")
        .awaiting_singleton_method("Imori::Sockets", "connect", connect)
        .awaiting_method(SOCKET, "read_line", |call| read(call, Wanted::Line))
        .awaiting_method(SOCKET, "read_exactly", |call| read(call, Wanted::Exactly(count_at(call, 1)?)))
        .awaiting_method(SOCKET, "read_some", |call| read(call, Wanted::Some(count_at(call, 1)?)))
        .awaiting_method(SOCKET, "write", write)
        .method(SOCKET, "close", |call| {
            socket_of(call)?.lock().stream = None;
            Ok(Value::Nil)
        })
        .method(SOCKET, "closed?", |call| Ok(socket_of(call)?.lock().stream.is_none().into()))
        .prelude("<imori>/socket.rb", include_str!("../ruby/socket.rb"))
        .prelude("<imori>/redis.rb", include_str!("../ruby/redis.rb"));
}

/// A connection; its stream is away while a call waits.
struct Socket(Mutex<State>);

struct State {
    stream: Option<Connection>,
    /// What has arrived and was not asked for yet.
    arrived: BytesMut,
}

/// A stream, which is counted as open.
type Connection = (TcpStream, OwnedSemaphorePermit);

/// What a read waits for.
#[derive(Clone, Copy)]
enum Wanted {
    /// Bytes up to a line feed, or to the end.
    Line,
    /// So many bytes, or those up to the end.
    Exactly(usize),
    /// At least one byte and at most so many.
    Some(usize),
}

impl Wanted {
    /// The number of bytes that answer the read, if enough have arrived.
    fn len_in(self, arrived: &[u8]) -> Option<usize> {
        match self {
            Self::Line => arrived.iter().position(|&byte| byte == b'\n').map(|at| at + 1),
            Self::Exactly(count) => (arrived.len() >= count).then_some(count),
            Self::Some(count) => (!arrived.is_empty() || count == 0).then(|| arrived.len().min(count)),
        }
    }
}

impl Socket {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

/// `connect(host, port)`
fn connect(call: &Call<'_>) -> Result<Reply, Error> {
    let host = text_at(call, 0)?;
    let port = integer_at(call, 1)?;
    let port = u16::try_from(port).map_err(|_| argument_error(format!("`{port}` is no port")))?;
    let run = Rc::clone(run_of(call)?);
    awaiting(async move {
        let stream = run.tools().fetcher.connect(&host, port).await.map_err(to_error)?;
        let state = State { stream: Some(stream), arrived: BytesMut::new() };
        Ok(Value::Handle(Handle::new(SOCKET, Arc::new(Socket(Mutex::new(state))))))
    })
}

/// `read_…(ms, …)`: a string, which is empty at the end of the stream.
fn read(call: &Call<'_>, wanted: Wanted) -> Result<Reply, Error> {
    let timeout = timeout_at(call, 0)?;
    let socket = socket_of(call)?;
    let mut stream = {
        let mut state = socket.lock();
        if let Some(len) = wanted.len_in(&state.arrived) {
            let bytes = state.arrived.split_to(len);
            return Ok(Reply::Value(Value::string(&bytes)));
        }
        state.stream.take().ok_or_else(is_closed)?
    };
    awaiting(async move {
        let mut arrived = std::mem::take(&mut socket.lock().arrived);
        let reading = async {
            loop {
                if arrived.len() >= READ_BYTES_MAX {
                    return Err(Error::new(
                        "Imori::LimitError",
                        format!("a read has {READ_BYTES_MAX} bytes at most"),
                    ));
                }
                if stream.0.read_buf(&mut arrived).await.map_err(|error| from_io(&error))? == 0 {
                    return Ok(arrived.len());
                }
                if let Some(len) = wanted.len_in(&arrived) {
                    return Ok(len);
                }
            }
        };
        let len = tokio::time::timeout(timeout, reading).await.unwrap_or_else(|_| Err(is_late(timeout)))?;
        let bytes = Value::string(&arrived[..len]);
        arrived.advance(len);
        let mut state = socket.lock();
        state.arrived = arrived;
        state.stream = Some(stream);
        Ok(bytes)
    })
}

/// `write(ms, bytes)`
fn write(call: &Call<'_>) -> Result<Reply, Error> {
    let timeout = timeout_at(call, 0)?;
    let bytes = bytes_at(call, 1)?;
    let socket = socket_of(call)?;
    let mut stream = socket.lock().stream.take().ok_or_else(is_closed)?;
    let mut done = 0;
    // Most writes need not wait.
    match stream.0.try_write(&bytes) {
        Ok(count) if count == bytes.len() => {
            socket.lock().stream = Some(stream);
            return Ok(Reply::Value(length(&bytes)));
        }
        Ok(count) => done = count,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
        Err(error) => return Err(from_io(&error)),
    }
    awaiting(async move {
        let writing = stream.0.write_all(&bytes[done..]);
        let written = tokio::time::timeout(timeout, writing).await.map_err(|_| is_late(timeout))?;
        written.map_err(|error| from_io(&error))?;
        socket.lock().stream = Some(stream);
        Ok(length(&bytes))
    })
}

fn length(bytes: &[u8]) -> Value {
    Value::Integer(i64::try_from(bytes.len()).unwrap_or(i64::MAX))
}

fn socket_of(call: &Call<'_>) -> Result<Arc<Socket>, Error> {
    let socket = call.receiver.as_ref().and_then(Handle::object::<Socket>);
    socket.ok_or_else(|| Error::new("TypeError", "this is no socket"))
}

fn count_at(call: &Call<'_>, index: usize) -> Result<usize, Error> {
    let count = integer_at(call, index)?;
    usize::try_from(count).ok().filter(|&count| count <= READ_BYTES_MAX).ok_or_else(|| {
        argument_error(format!("cannot read {count} bytes at once; use 0 to {READ_BYTES_MAX}"))
    })
}

fn timeout_at(call: &Call<'_>, index: usize) -> Result<Duration, Error> {
    match integer_at(call, index)? {
        ms @ 1..=TIMEOUT_MS_MAX => Ok(Duration::from_millis(ms.unsigned_abs())),
        ms => Err(argument_error(format!("a timeout of {ms} ms is not possible; use 1 to {TIMEOUT_MS_MAX}"))),
    }
}

fn is_closed() -> Error {
    Error::new("IOError", "the socket is closed, or another run is using it; open one for each run")
}

fn is_late(timeout: Duration) -> Error {
    Error::new("Imori::TimeoutError", format!("the server did not answer within {} ms", timeout.as_millis()))
}

fn from_io(error: &io::Error) -> Error {
    Error::new("IOError", error.to_string())
}
