//! Requests about consumers.

use imori_core::authorize::Action;
use imori_core::broker;
use imori_core::error::BrokerError;
use imori_core::name::Name;
use imori_core::queue::Queue;
use imori_core::stream::{ResetRefusal, Stream, StreamConsumer};
use imori_core::world::World;
use imori_streams::account::{AccountLimits, ServerLimits, set_required_level};
use imori_streams::consumer_check::ConsumerContext;
use imori_streams::consumer_config::{ConsumerAction, ConsumerConfig, CreateConsumerRequest};
use imori_streams::declared::clash;
use imori_streams::duration::Nanos;
use imori_streams::error::ApiError;
use imori_streams::json::to_json;
use imori_streams::limits::CONFIGURATION_BYTES_MAX;
use imori_streams::settings::{config_of, config_of_consumer, consumer_settings};
use imori_streams::stream_config::Retention;
use imori_streams::time::Timestamp;
use imori_streams::units::{since, time};
use serde::Deserialize;

use super::call::{Call, Failure, answer_after_all, answer_safely};
use super::info::consumer_info;
use crate::jetstream::answers::{ConsumerList, ConsumerNames, ConsumerReset, Page, Paused, Success, encode};
use crate::jetstream::bodies::{self, ConsumersRequest, ResetRequest, UnpinRequest};
use crate::jetstream::pull::{self, pull_request};
use crate::jetstream::request::ApiRequest;
use crate::limits::{DETAILS_PAGE_LEN, NAMES_PAGE_LEN};

/// Letters of a name that the broker chooses, as in nats-server.
const MADE_NAME_LETTERS: usize = 8;

/// CONSUMER.CREATE and CONSUMER.DURABLE.CREATE: a consumer with this configuration.
pub(super) fn create<W: World>(call: &Call<'_, W>, request: &ApiRequest<'_>) -> Result<(), Failure> {
    let place = request.consumer_place().ok_or(ApiError::BAD_REQUEST)?;
    let create = CreateConsumerRequest::decode(call.body)?.check_place(&place)?;
    let CreateConsumerRequest { stream_name, config, action, is_pedantic } = create;
    let stream = call.look(&stream_name, |queue| config_of(queue))?;
    let (account, server) = (AccountLimits::default(), ServerLimits::default());
    let context = ConsumerContext { stream: &stream, account: &account, server: &server, is_pedantic };
    let mut config = config.check(&context)?;
    if config.name.is_empty() {
        config.name = match config.durable_name.as_str() {
            "" => made_name(call.world),
            name => name.to_owned(),
        };
    }
    let level = config.required_level();
    set_required_level(&mut config.metadata, level);
    if to_json(&config).len() > CONFIGURATION_BYTES_MAX {
        return Err(ApiError::consumer_metadata_length(CONFIGURATION_BYTES_MAX).into());
    }
    let settings = consumer_settings(&config)?;
    let name = Name::from(config.name.as_str());
    let old = call.look(&stream_name, |queue| {
        let stream = queue.stream()?;
        Some(check_place(stream, &config, action))
    })?;
    let old = old.ok_or(ApiError::STREAM_NOT_FOUND)??;
    let is_same = old.as_ref().is_some_and(|(old, _)| is_same(old, &config));
    if let Some((old, is_bound)) = old.filter(|_| !is_same) {
        ConsumerConfig::check_update(&old, &config, is_bound)?;
    }
    if stream.retention == Retention::WorkQueue {
        let clash = call.look(&stream_name, |queue| clashes(queue, &config))?;
        clash?;
    }
    let actor = call.client.actor();
    if !is_same {
        broker::put_stream_consumer(call.world, &actor, stream_name.as_bytes(), &name, settings)?;
    }
    let now = call.world.now();
    let json = |queue: &Queue| {
        let consumer = queue.stream().and_then(|stream| stream.consumer(name.as_bytes()));
        let info = consumer.map(|consumer| consumer_info(&stream_name, consumer, now)).unwrap_or_default();
        encode(call.kind, &info)
    };
    if is_same { answer_after_all(call, &stream_name, json) } else { answer_safely(call, &stream_name, json) }
}

/// The existing consumer of that name and whether its deliver subject has a subscription, if the request may find one.
fn check_place(
    stream: &Stream,
    config: &ConsumerConfig,
    action: ConsumerAction,
) -> Result<Option<(ConsumerConfig, bool)>, ApiError> {
    let old = stream.consumer(config.name.as_bytes());
    let old = old.map(|consumer| (config_of_consumer(consumer), consumer.is_active()));
    match (&old, action) {
        (None, ConsumerAction::Update) => Err(ApiError::CONSUMER_DOES_NOT_EXIST),
        (Some((old, _)), ConsumerAction::Create) if !is_same(old, config) => {
            Err(ApiError::CONSUMER_ALREADY_EXISTS)
        }
        (None, _) if stream.settings().consumers_max.is_some_and(|max| stream.consumers().count() >= max) => {
            Err(ApiError::MAXIMUM_CONSUMERS_LIMIT)
        }
        _ => Ok(old),
    }
}

fn is_same(old: &ConsumerConfig, new: &ConsumerConfig) -> bool {
    old == new
}

/// A message of a work queue goes to one consumer only.
fn clashes(queue: &Queue, config: &ConsumerConfig) -> Result<(), ApiError> {
    let consumers = queue.stream().into_iter().flat_map(Stream::consumers);
    clash(config, &consumers.map(config_of_consumer).collect::<Vec<_>>())
}

fn made_name<W: World>(world: &W) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let secret = world.secret();
    let letter = |byte: &u8| LETTERS.get(usize::from(*byte) % LETTERS.len()).copied().map_or('A', char::from);
    secret.iter().take(MADE_NAME_LETTERS).map(letter).collect()
}

/// CONSUMER.NAMES.
pub(super) fn names<W: World>(call: &Call<'_, W>, stream: &str) -> Result<(), Failure> {
    let request: ConsumersRequest = bodies::optional(call.body)?;
    let all = call.look(stream, |queue| {
        let consumers = queue.stream().into_iter().flat_map(Stream::consumers);
        consumers.map(|consumer| consumer.name().to_string()).collect::<Vec<_>>()
    })?;
    let page = Page::new(all.len(), request.offset, NAMES_PAGE_LEN);
    let consumers = all.get(page.range()).unwrap_or_default().to_vec();
    call.answer(&encode(call.kind, &ConsumerNames { page, consumers }));
    Ok(())
}

/// CONSUMER.LIST.
pub(super) fn list<W: World>(call: &Call<'_, W>, stream: &str) -> Result<(), Failure> {
    let request: ConsumersRequest = bodies::optional(call.body)?;
    let now = call.world.now();
    let (page, consumers) = call.look(stream, |queue| {
        let all: Vec<&StreamConsumer> = queue.stream().into_iter().flat_map(Stream::consumers).collect();
        let page = Page::new(all.len(), request.offset, DETAILS_PAGE_LEN);
        let shown = all.get(page.range()).unwrap_or_default().iter();
        (page, shown.map(|consumer| consumer_info(stream, consumer, now)).collect::<Vec<_>>())
    })?;
    call.answer(&encode(call.kind, &ConsumerList { page, consumers, ..ConsumerList::default() }));
    Ok(())
}

/// CONSUMER.INFO.
pub(super) fn info<W: World>(call: &Call<'_, W>, stream: &str, consumer: &str) -> Result<(), Failure> {
    bodies::none(call.body)?;
    let now = call.world.now();
    let info = of_consumer(call, stream, consumer, |consumer| consumer_info(stream, consumer, now))?;
    call.answer(&encode(call.kind, &info));
    Ok(())
}

/// CONSUMER.DELETE.
pub(super) fn delete<W: World>(call: &Call<'_, W>, stream: &str, consumer: &str) -> Result<(), Failure> {
    bodies::none(call.body)?;
    let actor = call.client.actor();
    let deleted = broker::delete_stream_consumer(call.world, &actor, stream.as_bytes(), consumer.as_bytes())?;
    deleted.ok_or(ApiError::CONSUMER_NOT_FOUND)?;
    answer_safely(call, stream, |_| encode(call.kind, &Success { success: true }))
}

/// The body of CONSUMER.PAUSE.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PauseRequest {
    pause_until: Timestamp,
}

/// CONSUMER.PAUSE: nothing is delivered until a time, which may be over.
pub(super) fn pause<W: World>(call: &Call<'_, W>, stream: &str, consumer: &str) -> Result<(), Failure> {
    let request: PauseRequest = bodies::optional(call.body)?;
    let mut config = of_consumer(call, stream, consumer, config_of_consumer)?;
    config.pause_until = Some(request.pause_until).filter(|until| !until.is_zero());
    let settings = consumer_settings(&config)?;
    let name = Name::from(consumer);
    broker::put_stream_consumer(call.world, &call.client.actor(), stream.as_bytes(), &name, settings)?;
    let now = call.world.now();
    let until = config.pause_until.map(since).filter(|until| *until > now);
    let remaining = until.map_or(0, |until| until.since(now).as_nanos());
    let paused = Paused {
        is_paused: until.is_some(),
        pause_until: until.map_or(Timestamp::ZERO, time),
        pause_remaining: Nanos(i64::try_from(remaining).unwrap_or(i64::MAX)),
    };
    answer_safely(call, stream, |_| encode(call.kind, &paused))
}

/// CONSUMER.RESET: the consumer goes to a message of the stream, or back to the first one that is not acknowledged.
pub(super) fn reset<W: World>(call: &Call<'_, W>, stream: &str, consumer: &str) -> Result<(), Failure> {
    let request = ResetRequest::decode(call.body)?;
    let of = (stream.as_bytes(), consumer.as_bytes());
    let to = Some(request.seq).filter(|seq| *seq > 0);
    let moved = broker::reset_stream_consumer(call.world, &call.client.actor(), of, to)?;
    let moved = moved.ok_or(ApiError::CONSUMER_NOT_FOUND)?;
    let reset_seq = moved.map_err(|refusal| {
        ApiError::consumer_invalid_reset(match refusal {
            ResetRefusal::BelowSequence => "below start seq",
            ResetRefusal::BelowTime => "below start time",
            ResetRefusal::NotAllowed => "not allowed",
        })
    })?;
    let now = call.world.now();
    let info = of_consumer(call, stream, consumer, |consumer| consumer_info(stream, consumer, now))?;
    answer_safely(call, stream, |_| encode(call.kind, &ConsumerReset { info, reset_seq }))
}

/// CONSUMER.UNPIN: the client that has the pin of a group loses it.
pub(super) fn unpin<W: World>(call: &Call<'_, W>, stream: &str, consumer: &str) -> Result<(), Failure> {
    let request = UnpinRequest::decode(call.body)?;
    let has_group = of_consumer(call, stream, consumer, |consumer| {
        let mut groups = consumer.settings().request_groups.iter();
        groups.any(|group| group.as_bytes() == request.group.as_bytes())
    })?;
    if !has_group {
        return Err(ApiError::CONSUMER_INVALID_PRIORITY_GROUP.into());
    }
    let of = (stream.as_bytes(), consumer.as_bytes());
    broker::unpin_stream_consumer(call.world, &call.client.actor(), of)?;
    call.answer(&encode(call.kind, &Success { success: false }));
    Ok(())
}

/// CONSUMER.MSG.NEXT: a request for messages. What is wrong with it is told by a status.
pub(super) fn next<W: World>(call: &Call<'_, W>, stream: &str, consumer: &str) -> Result<(), Failure> {
    let Some(reply) = call.reply else { return Ok(()) };
    let request = pull::PullRequest::decode(call.body);
    let checked = request.and_then(|request| {
        let checked = of_consumer(call, stream, consumer, |consumer| request.check(consumer.settings()));
        // A request for a consumer that is not there gets no answer, as from nats-server.
        let Ok(checked) = checked else { return Ok(None) };
        checked.map(|()| Some(request))
    });
    match checked {
        Ok(Some(request)) => {
            let request = pull_request(reply, &request, call.world.now());
            let of = (stream.as_bytes(), consumer.as_bytes());
            match broker::request_from_stream(call.world, &call.client.actor(), of, &request) {
                // The stream was deleted since the check.
                Err(BrokerError::NoQueue(_)) => {}
                asked => _ = asked?,
            }
        }
        Ok(None) => {}
        Err(status) => call.refuse(&status),
    }
    Ok(())
}

fn of_consumer<W: World, R>(
    call: &Call<'_, W>,
    stream: &str,
    consumer: &str,
    look: impl FnOnce(&StreamConsumer) -> R,
) -> Result<R, Failure> {
    let found = broker::with_stream(
        call.world,
        &call.client.actor(),
        Action::Inspect,
        stream.as_bytes(),
        |queue, _| queue.stream().and_then(|stream| stream.consumer(consumer.as_bytes())).map(look),
    )?;
    Ok(found.ok_or(ApiError::CONSUMER_NOT_FOUND)?)
}
