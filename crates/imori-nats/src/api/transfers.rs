//! Requests for a copy of a stream, and for a stream from a copy. The broker around the protocol carries them out.

use imori_core::authorize::{Action, Object};
use imori_core::error::BrokerError;
use imori_core::name::Name;
use imori_core::world::{StreamServices as _, StreamTransfer, TransferDirection, World};
use imori_streams::declared::{in_context, supported};
use imori_streams::error::ApiError;
use imori_streams::json::to_json;

use super::advisories::TransferAction;
use super::call::{Call, Failure};
use super::info::Details;
use crate::jetstream::answers::{RestoreStarted, SnapshotStarted, encode};
use crate::jetstream::bodies::{self, RestoreRequest, SnapshotRequest};

/// Bytes of a piece of a snapshot, unless its client asks for others; the bounds and the value are those of nats-server.
const PIECE_BYTES: i64 = 128 * 1024;
const PIECE_BYTES_MIN: i64 = 1024;
const PIECE_BYTES_MAX: i64 = 1024 * 1024;

/// Bytes of a snapshot that may be sent without an answer, as in nats-server.
const WINDOW_BYTES: i64 = 8 * 1024 * 1024;
const WINDOW_BYTES_MAX: i64 = 32 * 1024 * 1024;

/// STREAM.SNAPSHOT: sends the stream to a subject.
pub(super) fn snapshot<W: World>(call: &Call<'_, W>, name: &str) -> Result<(), Failure> {
    if bodies::is_empty(call.body) {
        return Err(ApiError::BAD_REQUEST.into());
    }
    let info = call.info_of(name, Details::default())?;
    let request = SnapshotRequest::decode(call.body)?;
    authorize(call, Action::Consume, name)?;
    let piece = match request.chunk_size {
        0 => PIECE_BYTES,
        bytes => bytes.clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX),
    };
    let window = match request.window_size {
        0 => WINDOW_BYTES,
        bytes => bytes.clamp(PIECE_BYTES_MIN, WINDOW_BYTES_MAX),
    };
    let answer = encode(call.kind, &SnapshotStarted { config: info.config, state: info.state });
    let direction = TransferDirection::Out {
        deliver_subject: Name::from(request.deliver_subject.as_str()),
        piece_bytes: usize::try_from(piece).unwrap_or_default(),
        pieces_max: usize::try_from((window / piece).max(1)).unwrap_or(1),
        has_consumers: !request.no_consumers,
    };
    match transfer(call, name, &answer, direction) {
        true => call.tell_transfer(TransferAction::SnapshotCreated, name, &answer),
        false => return Err(ApiError::stream_snapshot(TOO_MANY).into()),
    }
    Ok(())
}

/// STREAM.RESTORE: makes a stream of what the client then sends.
pub(super) fn restore<W: World>(call: &Call<'_, W>, name: &str) -> Result<(), Failure> {
    let RestoreRequest { mut config, .. } = bodies::required(call.body)?;
    if config.name.is_empty() {
        name.clone_into(&mut config.name);
    }
    if config.name != name {
        return Err(ApiError::STREAM_MISMATCH.into());
    }
    let others = call.other_configs(name);
    let config = supported(in_context(&others, false, |context| config.check_in(context))?, &others)?;
    imori_core::arguments::check_name(name).map_err(ApiError::stream_invalid_config)?;
    authorize(call, Action::Create, name)?;
    let exists = call.world.with_router(|_, table| table.queue(call.client.vhost, name.as_bytes()).is_some());
    if exists {
        return Err(ApiError::STREAM_NAME_EXIST_RESTORE_FAILED.into());
    }
    let id: String = call.world.secret().iter().map(|byte| format!("{byte:02x}")).collect();
    let subject = format!("$JS.SNAPSHOT.RESTORE.{name}.{id}");
    let answer = encode(call.kind, &RestoreStarted { deliver_subject: subject.clone() });
    let direction = TransferDirection::In {
        deliver_subject: Name::from(subject.as_str()),
        configuration: to_json(&config).into_boxed_slice(),
    };
    match transfer(call, name, &answer, direction) {
        true => call.tell_transfer(TransferAction::RestoreCreated, name, &answer),
        false => return Err(ApiError::stream_restore(TOO_MANY).into()),
    }
    Ok(())
}

const TOO_MANY: &str = "too many snapshots and restores are running; try again later";

fn authorize<W: World>(call: &Call<'_, W>, action: Action, name: &str) -> Result<(), Failure> {
    let allowed = call.world.authorize(&call.client.actor(), action, Object::Queue(name.as_bytes()));
    Ok(allowed.map_err(BrokerError::from)?)
}

fn transfer<W: World>(call: &Call<'_, W>, name: &str, answer: &[u8], direction: TransferDirection) -> bool {
    call.world.streams().transfer(StreamTransfer {
        vhost: call.client.vhost,
        identity: call.client.identity.clone(),
        stream: Name::from(name),
        reply: call.reply.map(Name::new),
        answer: answer.to_vec(),
        direction,
    })
}
