//! What the headers of a message ask of streams, and the answer to a publish that no stream could read.

use imori_core::broker;
use imori_core::message::{
    BatchEnd, BatchPublish, MessageRole, Properties, Publication, Rollup, SchedulePublish, StreamPublish,
};
use imori_core::time::Time;
use imori_core::world::World;

use super::settings::{since, time};
use crate::client::Client;
use crate::codec::operation::Publish;
use crate::header_block::PLAIN;
use crate::jetstream::answers::PubAck;
use crate::jetstream::batch::Commit;
use crate::jetstream::error::ApiError;
use crate::jetstream::publish_headers::{self, PublishHeaders, ScheduledPublish, Ttl};

/// What a header block asks of streams.
///
/// # Errors
/// A header has a value that means nothing.
#[inline(never)]
pub(crate) fn asks_of(block: &[u8], now: Time) -> Result<StreamPublish<'_>, ApiError> {
    let headers = PublishHeaders::parse(block)?;
    let schedule = headers.schedule.as_ref();
    let rollup = headers.rollup.map(|rollup| match rollup {
        publish_headers::Rollup::Subject => Rollup::Subject,
        publish_headers::Rollup::All => Rollup::All,
    });
    Ok(StreamPublish {
        stream: headers.expected_stream,
        last_sequence: headers.expected_last_sequence,
        last_id: headers.expected_last_message_id,
        last_of_subject: headers
            .expected_last_subject_sequence
            .map(|sequence| (sequence, headers.expected_last_subject)),
        rollup,
        has_ttl: headers.ttl.is_some(),
        role: MessageRole {
            never_expires: headers.ttl == Some(Ttl::Never),
            is_marker: publish_headers::is_marker(block),
            next_due: schedule.and_then(|schedule| next_due(schedule, now, now)),
        },
        schedule: schedule.map(|schedule| SchedulePublish {
            target: schedule.target.as_bytes(),
            source: schedule.source.map(str::as_bytes),
            has_ttl: schedule.ttl.is_some(),
        }),
        ended_schedule: headers.ended_schedule.map(str::as_bytes),
        increment: headers.increment.map(str::as_bytes),
        batch: headers.batch.map(|batch| BatchPublish {
            id: batch.id,
            number: batch.sequence,
            end: batch.commit.map(|commit| match commit {
                Commit::WithMessage => BatchEnd::Here,
                Commit::WithoutMessage => BatchEnd::Before,
                Commit::Unknown => BatchEnd::Unknown,
            }),
        }),
        ..StreamPublish::default()
    })
}

/// Tells a publisher why no stream takes its message.
pub(crate) fn answer_refused<W: World>(client: &Client, world: &W, publish: &Publish<'_>, error: &ApiError) {
    let Some(reply) = publish.reply else { return };
    let properties = Properties::new(client.settings.origins.origin(PLAIN));
    let body = PubAck::encode_error("", error);
    broker::answer(world, client.vhost, reply, &Publication::new(&properties, b"", &body));
}

/// When a schedule publishes after `last`.
pub(super) fn next_due(schedule: &ScheduledPublish<'_>, last: Time, now: Time) -> Option<Time> {
    schedule.schedule.next(time(last), time(now)).map(since)
}
