//! What a publish asks of the streams that get it, and the answer to one that no stream could read.

use std::time::Duration;

use imori_core::broker;
use imori_core::message::{Properties, Publication, Rollup, StreamPublish};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::operation::Publish;
use crate::header_block::PLAIN;
use crate::jetstream::answers::PubAck;
use crate::jetstream::error::ApiError;
use crate::jetstream::publish_headers::{self, PublishHeaders, Ttl};

/// The begin of the names of all headers that streams read.
const PREFIX: &[u8] = b"Nats-";

/// What a publish asks of streams; `None` if it asks for nothing.
///
/// # Errors
/// A header has a value that means nothing, or asks for what streams cannot do.
pub(crate) fn asks<'a>(publish: &Publish<'a>) -> Result<Option<StreamPublish<'a>>, ApiError> {
    let answer_to = publish.reply;
    let block = publish.headers.filter(|block| memchr::memmem::find(block, PREFIX).is_some());
    let Some(block) = block else {
        return Ok(
            answer_to.map(|reply| StreamPublish { answer_to: Some(reply), ..StreamPublish::default() })
        );
    };
    let headers = PublishHeaders::parse(block)?;
    if headers.batch.is_some() {
        return Err(ApiError::ATOMIC_PUBLISH_DISABLED);
    }
    if headers.increment.is_some() {
        return Err(ApiError::MESSAGE_INCREMENT_DISABLED);
    }
    if headers.schedule.is_some() {
        return Err(ApiError::MESSAGE_SCHEDULES_DISABLED);
    }
    let rollup = headers.rollup.map(|rollup| match rollup {
        publish_headers::Rollup::Subject => Rollup::Subject,
        publish_headers::Rollup::All => Rollup::All,
    });
    Ok(Some(StreamPublish {
        answer_to,
        stream: headers.expected_stream,
        last_sequence: headers.expected_last_sequence,
        last_id: headers.expected_last_message_id,
        last_of_subject: headers
            .expected_last_subject_sequence
            .map(|sequence| (sequence, headers.expected_last_subject)),
        rollup,
        ttl: headers.ttl.map(|ttl| match ttl {
            Ttl::Seconds(seconds) => Duration::from_secs(seconds),
            Ttl::Never => Duration::MAX,
        }),
    }))
}

/// Tells a publisher why no stream takes its message.
pub(crate) fn answer_refused<W: World>(client: &Client, world: &W, publish: &Publish<'_>, error: &ApiError) {
    let Some(reply) = publish.reply else { return };
    let properties = Properties::new(client.settings.origins.origin(PLAIN));
    let body = PubAck::encode_error("", error);
    broker::answer(world, client.vhost, reply, &Publication::new(&properties, b"", &body));
}
