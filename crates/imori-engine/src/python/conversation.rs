//! What the engine and the process of an action say to each other: frames of four bytes of length and JSON.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::datastore::{Datastore, DatastoreAnswer, DatastoreQuestion};
use super::result::PythonResult;
use crate::limits::{PYTHON_QUESTION_BYTES_MAX, PYTHON_RESULT_BYTES_MAX};

/// Sends the request and answers questions until the process closes the socket or breaks the rules. The result is
/// there as soon as the process has said it, also when this future is dropped later.
pub async fn converse(
    socket: impl AsyncRead + AsyncWrite + Unpin,
    request: &[u8],
    datastore: &dyn Datastore,
    result: &mut Option<PythonResult>,
) {
    // The process has ended, or sent a frame that is too long: what it said before counts.
    let _ = answer_all(socket, request, datastore, result).await;
}

async fn answer_all(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    request: &[u8],
    datastore: &dyn Datastore,
    result: &mut Option<PythonResult>,
) -> io::Result<()> {
    send(&mut socket, request).await?;
    loop {
        let json = receive(&mut socket, PYTHON_RESULT_BYTES_MAX).await?;
        let answer = match serde_json::from_slice(&json) {
            Ok(Frame::Result(said)) => {
                *result = Some(said);
                continue;
            }
            Ok(Frame::Datastore(_)) if json.len() > PYTHON_QUESTION_BYTES_MAX => Err(format!(
                "the value has {} bytes; at most {PYTHON_QUESTION_BYTES_MAX} are allowed",
                json.len()
            )),
            Ok(Frame::Datastore(question)) => datastore.answer(question).await,
            Err(error) => Err(format!("the datastore does not take this: {error}")),
        };
        send(&mut socket, &serde_json::to_vec(&Reply::from(answer))?).await?;
    }
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Frame {
    Datastore(DatastoreQuestion),
    Result(PythonResult),
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Reply {
    Answer(DatastoreAnswer),
    Error(String),
}

impl From<Result<DatastoreAnswer, String>> for Reply {
    fn from(answer: Result<DatastoreAnswer, String>) -> Reply {
        match answer {
            Ok(answer) => Reply::Answer(answer),
            Err(text) => Reply::Error(text),
        }
    }
}

/// Sends a frame.
pub(super) async fn send(socket: &mut (impl AsyncWrite + Unpin), json: &[u8]) -> io::Result<()> {
    let length = u32::try_from(json.len()).map_err(io::Error::other)?;
    socket.write_all(&length.to_be_bytes()).await?;
    socket.write_all(json).await
}

/// The next frame, of at most `bytes_max` bytes.
pub async fn receive(socket: &mut (impl AsyncRead + Unpin), bytes_max: usize) -> io::Result<Vec<u8>> {
    let length = u64::from(socket.read_u32().await?);
    if length > bytes_max as u64 {
        return Err(io::Error::other("the frame is too long"));
    }
    let mut json = Vec::new();
    let count = socket.take(length).read_to_end(&mut json).await?;
    if (count as u64) < length { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(json) }
}
