//! What the headers of a message ask of streams, and the answer to a publish that no stream could read.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use imori_core::broker;
use imori_core::message::{
    BatchEnd, BatchPublish, Properties, Publication, Rollup, Schedule, ScheduleTtl, StreamPublish,
};
use imori_core::name::Name;
use imori_core::world::World;
use imori_streams::error::ApiError;

use crate::client::Client;
use crate::codec::operation::Publish;
use crate::header_block::PLAIN;
use crate::jetstream::answers::PubAck;
use crate::jetstream::batch::Commit;
use crate::jetstream::publish_headers::{self, PublishHeaders, ScheduledPublish, StoredHeaders, Ttl};

/// What a header block asks of streams; sets the properties that streams read.
///
/// # Errors
/// A header has a value that means nothing.
#[inline(never)]
pub(crate) fn asks_of<'a>(
    block: &'a [u8],
    properties: &mut Properties,
) -> Result<StreamPublish<'a>, ApiError> {
    let headers = PublishHeaders::parse(block)?;
    let rollup = headers.rollup.map(|rollup| match rollup {
        publish_headers::Rollup::Subject => Rollup::Subject,
        publish_headers::Rollup::All => Rollup::All,
    });
    mark(properties, block, headers.ttl);
    let text = |text: &'a str| Cow::Borrowed(text.as_bytes());
    Ok(StreamPublish {
        stream: headers.expected_stream.map(Cow::Borrowed),
        last_sequence: headers.expected_last_sequence,
        last_id: headers.expected_last_message_id.map(Cow::Borrowed),
        last_of_subject: headers
            .expected_last_subject_sequence
            .map(|sequence| (sequence, headers.expected_last_subject.map(Cow::Borrowed))),
        rollup,
        has_ttl: headers.ttl.is_some(),
        schedule: headers.schedule.as_ref().map(schedule_of),
        ended_schedule: headers.ended_schedule.map(text),
        replaced: None,
        increment: headers.increment.map(text),
        batch: headers.batch.map(|batch| BatchPublish {
            id: Cow::Borrowed(batch.id),
            number: batch.sequence,
            end: batch.commit.map(|commit| match commit {
                Commit::WithMessage => BatchEnd::Here,
                Commit::WithoutMessage => BatchEnd::Before,
                Commit::Unknown => BatchEnd::Unknown,
            }),
        }),
    })
}

/// The schedule in a header block of an archive; sets the properties that streams read.
pub(super) fn schedule_in_archive(block: &[u8], properties: &mut Properties) -> Option<Arc<Schedule>> {
    let headers = StoredHeaders::parse(block);
    mark(properties, block, headers.ttl);
    headers.schedule.as_ref().map(schedule_of)
}

fn mark(properties: &mut Properties, block: &[u8], ttl: Option<Ttl>) {
    properties.never_expires = ttl == Some(Ttl::Never);
    properties.is_marker = publish_headers::is_marker(block);
}

fn schedule_of(publish: &ScheduledPublish<'_>) -> Arc<Schedule> {
    Arc::new(Schedule {
        times: publish.times.clone(),
        target: Name::from(publish.target),
        source: publish.source.map(Name::from),
        ttl: publish.ttl.map(|ttl| match ttl {
            Ttl::Never => ScheduleTtl::Never,
            Ttl::Seconds(seconds) => ScheduleTtl::After(Duration::from_secs(seconds)),
        }),
        is_rollup: publish.is_rollup,
    })
}

/// Tells a publisher why no stream takes its message.
pub(crate) fn answer_refused<W: World>(client: &Client, world: &W, publish: &Publish<'_>, error: &ApiError) {
    let Some(reply) = publish.reply else { return };
    let properties = Properties::new(client.settings.origins.origin(PLAIN));
    let body = PubAck::encode_error("", error);
    broker::answer(world, client.vhost, reply, &Publication::new(&properties, b"", &body));
}
