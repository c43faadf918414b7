//! Requests for single messages of a stream.

use imori_core::authorize::Action;
use imori_core::broker;
use imori_core::index::Filter;
use imori_core::name::Name;
use imori_core::queue::Queue;
use imori_core::stream::{Get, GetForm, MessageQuery};
use imori_core::world::World;
use imori_streams::error::ApiError;
use imori_streams::units::since;

use super::call::{Call, Failure, answer_safely};
use crate::codec::headers::NO_RESPONDERS;
use crate::jetstream::answers::{Success, encode};
use crate::jetstream::bodies::{self, MessageDeleteRequest, MessageGetRequest};
use crate::jetstream::status::Status;

/// STREAM.MSG.GET.
pub(super) fn get<W: World>(call: &Call<'_, W>, stream: &str) -> Result<(), Failure> {
    let request = MessageGetRequest::decode(call.body)?;
    let Some(reply) = call.reply else { return Ok(()) };
    let wanted = wanted(&request)?;
    let get = Get::one(Name::new(reply), GetForm::Stored, wanted);
    send(call, stream, get)
}

/// DIRECT.GET, with the subject or without. What is wrong with it is told by a status. Where no stream answers, nobody
/// is there to respond.
pub(super) fn direct<W: World>(
    call: &Call<'_, W>,
    stream: &str,
    subject: Option<&str>,
) -> Result<(), Failure> {
    let Some(reply) = call.reply else { return Ok(()) };
    let allows = |queue: &mut Queue| queue.stream().is_some_and(|stream| stream.settings().allows_direct);
    match call.look(stream, allows) {
        Ok(true) => {}
        Err(Failure::Refused) => return Err(Failure::Refused),
        Ok(false) | Err(Failure::Api(_)) => {
            call.send(NO_RESPONDERS, b"");
            return Ok(());
        }
    }
    let request = match subject {
        Some(subject) => MessageGetRequest::decode_direct_last(subject, call.body),
        None => MessageGetRequest::decode_direct(call.body),
    };
    let is_batch = |request: &MessageGetRequest| request.batch > 0 || !request.multi_last.is_empty();
    let found = request.and_then(|request| {
        if is_batch(&request) {
            return Ok((request, None));
        }
        let wanted = wanted(&request).map_err(|_| Status::DirectBadRequest)?;
        Ok((request, Some(wanted)))
    });
    match found {
        Ok((_, Some(wanted))) => send(call, stream, Get::one(Name::new(reply), GetForm::Direct, wanted)),
        Ok((request, None)) => batch(call, stream, &request, reply),
        Err(status) => {
            call.refuse(&status);
            Ok(())
        }
    }
}

/// Several messages, with a status behind the last one.
fn batch<W: World>(
    call: &Call<'_, W>,
    stream: &str,
    request: &MessageGetRequest,
    reply: &[u8],
) -> Result<(), Failure> {
    let texts: Vec<&[u8]> = match request.multi_last.as_slice() {
        [] if request.next_by_subj.is_empty() => Vec::new(),
        [] => vec![request.next_by_subj.as_bytes()],
        many => many.iter().map(String::as_bytes).collect(),
    };
    let filter = Filter::of(&texts).map_err(|_| ApiError::BAD_REQUEST)?;
    let max = usize::try_from(request.batch).ok().filter(|max| *max > 0).unwrap_or(usize::MAX);
    let from = request.start_time.map(since);
    let found = broker::with_stream(
        call.world,
        &call.client.actor(),
        Action::Consume,
        stream.as_bytes(),
        |queue, _| {
            let last = queue.last_sequence();
            let up_to = Some(request.up_to_seq).filter(|up_to| *up_to > 0).unwrap_or(last);
            let get = match request.multi_last.is_empty() {
                true => queue.batch_from(Name::new(reply), &filter, (request.seq, from), max),
                false => queue.last_of_each(Name::new(reply), &filter, up_to, max),
            };
            let is_there = get.is_some();
            get.into_iter().for_each(|get| queue.get_from_stream(get));
            is_there
        },
    );
    match found {
        Ok(true) => {}
        Ok(false) => call.refuse(&Status::NoResults),
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// STREAM.MSG.DELETE.
pub(super) fn delete<W: World>(call: &Call<'_, W>, stream: &str) -> Result<(), Failure> {
    let request: MessageDeleteRequest = bodies::required(call.body)?;
    let actor = call.client.actor();
    broker::with_stream(call.world, &actor, Action::Purge, stream.as_bytes(), |queue, effects| {
        let settings = queue.stream().map(|stream| stream.settings());
        if settings.is_some_and(|settings| settings.is_sealed) {
            return Err(ApiError::STREAM_SEALED);
        }
        if settings.is_some_and(|settings| settings.denies_delete) {
            return Err(ApiError::stream_message_delete_failed("message delete not permitted"));
        }
        match queue.delete_message(request.seq, effects) {
            true => Ok(()),
            false => Err(ApiError::sequence_not_found(request.seq)),
        }
    })??;
    answer_safely(call, stream, |_| encode(call.kind, &Success { success: true }))
}

fn send<W: World>(call: &Call<'_, W>, stream: &str, get: Get) -> Result<(), Failure> {
    Ok(broker::with_stream(
        call.world,
        &call.client.actor(),
        Action::Consume,
        stream.as_bytes(),
        |queue, _| {
            queue.get_from_stream(get);
        },
    )?)
}

/// The message that a request asks for.
fn wanted(request: &MessageGetRequest) -> Result<MessageQuery, ApiError> {
    let filter = |text: &str| match text {
        "" => Ok(Filter::all()),
        text => Filter::of(&[text.as_bytes()]).map_err(|_| ApiError::BAD_REQUEST),
    };
    Ok(if !request.last_by_subj.is_empty() {
        MessageQuery::LastOf(filter(&request.last_by_subj)?)
    } else if let Some(time) = request.start_time {
        MessageQuery::Since(since(time), filter(&request.next_by_subj)?)
    } else if !request.next_by_subj.is_empty() {
        MessageQuery::NextOf(request.seq, filter(&request.next_by_subj)?)
    } else {
        MessageQuery::Sequence(request.seq)
    })
}
