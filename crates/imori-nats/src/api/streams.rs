//! Requests about streams.

use imori_core::arguments::check_name;
use imori_core::authorize::Action;
use imori_core::broker;
use imori_core::index::{Filter, StreamPurge};
use imori_core::message::TOPIC_EXCHANGE;
use imori_core::name::Name;
use imori_core::queue::QueueSettings;
use imori_core::route::{Arguments, BindingKey, Syntax};
use imori_core::stream::{LateAnswer, parse_age};
use imori_core::world::World;
use imori_streams::consumer_check::check_stream_update;
use imori_streams::declared::{in_context, supported};
use imori_streams::error::ApiError;
use imori_streams::settings::stream_settings;
use imori_streams::settings::{config_of, config_of_consumer};
use imori_streams::stream_check::StreamContext;
use imori_streams::stream_config::{StreamConfig, StreamConfigRequest};

use super::advisories::StreamAction;
use super::call::{Call, Failure, answer_after_all, answer_safely};
use super::info::{Details, stream_info};
use crate::jetstream::answers::{Page, Purged, StreamCreated, StreamDetails, Success, encode};
use crate::jetstream::bodies::{self, PurgeRequest, StreamInfoRequest};
use crate::limits::SUBJECT_DETAILS_PAGE_LEN;

/// STREAM.CREATE: a stream with this configuration, which may be there already.
pub(super) fn create<W: World>(call: &Call<'_, W>, name: &str) -> Result<(), Failure> {
    let request = StreamConfigRequest::decode(call.body)?;
    request.check_create(name)?;
    let others = call.other_configs(name);
    let config = in_context(&others, request.is_pedantic, |context| request.config.check_in(context))?;
    let config = supported(config, &others)?;
    check_name(name).map_err(ApiError::stream_invalid_config)?;
    if let Ok(old) = call.look(name, |queue| config_of(queue)) {
        if old != config {
            return Err(ApiError::STREAM_NAME_EXIST.into());
        }
        // The broker may have ended before it had bound the stream to all of its subjects.
        let id = broker::find_queue(call.world, &call.client.actor(), name.as_bytes())?;
        for subject in &config.subjects {
            bind(call, subject, id)?;
        }
        let now = call.world.now();
        return answer_after_all(call, name, |queue| {
            let info = stream_info(queue, Details::default(), now);
            encode(call.kind, &StreamCreated { info, did_create: false })
        });
    }
    let settings = stream_settings(&config);
    let subjects: Vec<Name> = config.subjects.iter().map(|subject| Name::from(subject.as_str())).collect();
    broker::declare_stream(call.world, &call.client.actor(), name.as_bytes(), &settings, &subjects)?;
    let now = call.world.now();
    call.tell(StreamAction::Created, name);
    answer_safely(call, name, |queue| {
        let info = stream_info(queue, Details::default(), now);
        encode(call.kind, &StreamCreated { info, did_create: true })
    })
}

/// STREAM.UPDATE: another configuration for a stream.
pub(super) fn update<W: World>(call: &Call<'_, W>, name: &str) -> Result<(), Failure> {
    let request = StreamConfigRequest::decode(call.body)?;
    request.check_name(name)?;
    let (old, consumers) = call.look(name, |queue| {
        let consumers = queue.stream().into_iter().flat_map(|stream| stream.consumers());
        let of = |consumer| {
            (imori_core::stream::StreamConsumer::name(consumer).to_string(), config_of_consumer(consumer))
        };
        (config_of(queue), consumers.map(of).collect::<Vec<_>>())
    })?;
    let others = call.other_configs(name);
    let check = |context: &StreamContext<'_>| StreamConfig::check_update(&old, request.config, context);
    let config = supported(in_context(&others, request.is_pedantic, check)?, &others)?;
    check_stream_update(&old, &config, consumers.iter().map(|(name, config)| (name.as_str(), config)))?;
    let actor = call.client.actor();
    let mut settings = stream_settings(&config);
    call.look(name, |queue| keep_declaration(&mut settings, queue.declared()))?;
    let (id, _) = broker::change_stream(call.world, &actor, name.as_bytes(), &settings)?;
    for subject in old.subjects.iter().filter(|subject| !config.subjects.contains(subject)) {
        let key = BindingKey::new(Syntax::Nats, subject.as_bytes());
        broker::unbind_queue(call.world, &actor, TOPIC_EXCHANGE, &key, &Arguments::NONE, id)?;
    }
    for subject in config.subjects.iter().filter(|subject| !old.subjects.contains(subject)) {
        bind(call, subject, id)?;
    }
    let now = call.world.now();
    broker::with_stream(call.world, &actor, Action::Create, name.as_bytes(), |queue, effects| {
        queue.enforce(now, effects);
    })?;
    call.tell(StreamAction::Updated, name);
    answer_safely(call, name, |queue| {
        let info = stream_info(queue, Details::default(), now);
        encode(call.kind, &StreamCreated { info, did_create: false })
    })
}

/// Keeps the arguments with which another protocol has declared a stream, so that it can declare the stream again.
fn keep_declaration(settings: &mut QueueSettings, declared: &QueueSettings) {
    settings.others = declared.others.clone();
    let age = declared.stream.as_ref().and_then(|stream| stream.max_age.clone());
    let age = age.filter(|age| parse_age(age) == settings.message_ttl);
    if let (Some(stream), Some(age)) = (&mut settings.stream, age) {
        stream.max_age = Some(age);
    }
}

/// STREAM.INFO: the configuration and the state of a stream.
pub(super) fn info<W: World>(call: &Call<'_, W>, name: &str) -> Result<(), Failure> {
    let request: StreamInfoRequest = bodies::optional(call.body)?;
    let filter = match request.subjects_filter.as_str() {
        "" => None,
        filter => Some(Filter::of(&[filter.as_bytes()]).map_err(|_| ApiError::BAD_REQUEST)?),
    };
    let details = Details { subjects: filter.as_ref(), has_removed: request.deleted_details };
    let mut info = call.info_of(name, details)?;
    if filter.is_none() {
        call.answer(&encode(call.kind, &StreamCreated { info, did_create: false }));
        return Ok(());
    }
    let page = Page::new(info.state.subjects.len(), request.offset, SUBJECT_DETAILS_PAGE_LEN);
    let subjects = std::mem::take(&mut info.state.subjects);
    info.state.subjects = subjects.into_iter().skip(page.offset).take(page.limit).collect();
    call.answer(&encode(call.kind, &StreamDetails { page, info }));
    Ok(())
}

/// STREAM.DELETE.
pub(super) fn delete<W: World>(call: &Call<'_, W>, name: &str) -> Result<(), Failure> {
    bodies::none(call.body)?;
    let (_, confirm) = broker::delete_stream(call.world, &call.client.actor(), name.as_bytes())?;
    call.tell(StreamAction::Deleted, name);
    let form = encode(call.kind, &Success { success: true });
    call.audit(&form);
    if let Some(reply) = call.reply {
        let answer = LateAnswer { vhost: call.client.vhost, to: Name::new(reply), form };
        broker::answer_late(call.world, confirm, answer);
    }
    Ok(())
}

/// STREAM.PURGE.
pub(super) fn purge<W: World>(call: &Call<'_, W>, name: &str) -> Result<(), Failure> {
    let request = PurgeRequest::decode(call.body)?;
    let filter = match request.filter.as_str() {
        "" => Filter::all(),
        filter => Filter::of(&[filter.as_bytes()]).map_err(|_| ApiError::BAD_REQUEST)?,
    };
    let purge = StreamPurge { filter, up_to: Some(request.seq).filter(|seq| *seq > 0), keep: request.keep };
    let actor = call.client.actor();
    let purged =
        broker::with_stream(call.world, &actor, Action::Purge, name.as_bytes(), |queue, effects| {
            let settings = queue.stream().map(|stream| stream.settings());
            if settings.is_some_and(|settings| settings.is_sealed) {
                return Err(ApiError::STREAM_SEALED);
            }
            if settings.is_some_and(|settings| settings.denies_purge) {
                return Err(ApiError::stream_purge_failed("purge operation not permitted"));
            }
            Ok(queue.purge_stream(&purge, effects))
        })??;
    answer_safely(call, name, |_| encode(call.kind, &Purged { success: true, purged }))
}

fn bind<W: World>(call: &Call<'_, W>, subject: &str, queue: imori_core::id::QueueId) -> Result<(), Failure> {
    let key = BindingKey::new(Syntax::Nats, subject.as_bytes());
    broker::bind_queue(call.world, &call.client.actor(), TOPIC_EXCHANGE, &key, &Arguments::NONE, queue)?;
    Ok(())
}
