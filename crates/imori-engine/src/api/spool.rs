//! The body of a webhook's request: kept in memory if it is short, else in a file without a name, so that bodies that have
//! not come whole, or are not signed, take no memory.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::sync::Arc;

use axum::body::{Body, HttpBody as _};
use axum::http::StatusCode;
use futures_util::StreamExt as _;
use imori_automation::limits::WEBHOOK_BODY_BYTES_MAX;
use imori_server::http::{Bodies, BodyFault, Charge, Keeping, Receiving};
use tempfile::tempfile_in;
use tokio::task::spawn_blocking;

use crate::answers::ApiError;
use crate::limits::{SPOOL_WRITE_BYTES, SPOOLED_FROM_BYTES, VALUE_BYTES_PER_BODY_BYTE};

/// A body that has come whole.
pub(super) enum Spooled {
    /// It is short.
    Memory(Vec<u8>),
    /// It is long.
    Disk(SpoolFile),
}

/// A file without a name, which has a body.
pub(super) struct SpoolFile {
    file: File,
    bytes: usize,
    /// Its room on the disk, as long as there is the file.
    _room: Charge,
}

/// Receives a body, and hands on each piece as it comes.
///
/// # Errors
/// The body is too long or has not come whole, or the disk has no room for it.
pub(super) async fn receive(
    (spool, folder): (&Arc<Bodies>, &Path),
    receiving: &Receiving,
    body: Body,
    mut take: impl FnMut(&[u8]),
) -> Result<Spooled, ApiError> {
    let length = body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if length.is_some_and(|length| length > WEBHOOK_BODY_BYTES_MAX) {
        return Err(too_long());
    }
    let mut long = match length {
        Some(length) if length < SPOOLED_FROM_BYTES => None,
        _ => {
            receiving.keep_in(Keeping::Disk);
            let room = receiving.charge(spool, length.unwrap_or(WEBHOOK_BODY_BYTES_MAX)).await;
            Some(SpoolFile { _room: room.map_err(fault)?, file: make(folder).await?, bytes: 0 })
        }
    };
    let (mut kept, mut bytes) = (Vec::new(), 0);
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let data =
            piece.map_err(|error| ApiError::bad_request(format!("the body did not come whole: {error}")))?;
        bytes += data.len();
        if bytes > WEBHOOK_BODY_BYTES_MAX {
            return Err(too_long());
        }
        take(&data);
        kept.extend_from_slice(&data);
        if let Some(file) = long.take_if(|_| kept.len() >= SPOOL_WRITE_BYTES) {
            long = Some(file.append(std::mem::take(&mut kept)).await?);
        }
    }
    match long {
        None => Ok(Spooled::Memory(kept)),
        Some(file) => Ok(Spooled::Disk(file.append(kept).await?)),
    }
}

impl Spooled {
    /// The bytes, once there is memory for them and what is parsed from them.
    ///
    /// # Errors
    /// There is no memory, or the file cannot be read.
    pub(super) async fn read(self, receiving: &Receiving) -> Result<Vec<u8>, ApiError> {
        let mut spooled = match self {
            Spooled::Memory(bytes) => return Ok(bytes),
            Spooled::Disk(spooled) => spooled,
        };
        receiving.reserve(spooled.bytes.saturating_mul(VALUE_BYTES_PER_BODY_BYTE)).await.map_err(fault)?;
        let read = move || {
            let mut body = Vec::with_capacity(spooled.bytes);
            spooled.file.seek(SeekFrom::Start(0))?;
            spooled.file.read_to_end(&mut body).map(|_| body)
        };
        on_disk(read).await
    }
}

impl SpoolFile {
    async fn append(mut self, bytes: Vec<u8>) -> Result<SpoolFile, ApiError> {
        self.bytes += bytes.len();
        on_disk(move || self.file.write_all(&bytes).map(|()| self)).await
    }
}

async fn make(folder: &Path) -> Result<File, ApiError> {
    let folder = folder.to_owned();
    on_disk(move || {
        fs::create_dir_all(&folder)?;
        tempfile_in(&folder)
    })
    .await
}

async fn on_disk<T: Send + 'static>(
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ApiError> {
    let done = spawn_blocking(act).await.map_err(io::Error::other).and_then(|done| done);
    done.map_err(|error| ApiError::unavailable(format!("the body cannot be kept on disk: {error}")))
}

fn too_long() -> ApiError {
    let reason = format!("the body is longer than {WEBHOOK_BODY_BYTES_MAX} bytes; send less");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, reason)
}

/// The listener answers in place of this.
fn fault(fault: BodyFault) -> ApiError {
    ApiError::new(fault.status(), fault.reason())
}
