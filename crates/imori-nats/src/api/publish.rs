//! What a publish asks of the streams that get it, and the answer to one that no stream could read.

use imori_core::broker;
use imori_core::message::{Properties, Publication, StreamPublish};
use imori_core::time::Time;
use imori_core::world::World;

use super::asks::asks_of;
use crate::client::Client;
use crate::codec::operation::Publish;
use crate::header_block::PLAIN;
use crate::jetstream::answers::PubAck;
use crate::jetstream::error::ApiError;

/// The begin of the names of all headers that streams read.
const PREFIX: &[u8] = b"Nats-";

/// What a publish asks of streams; `None` if it asks for nothing.
///
/// # Errors
/// A header has a value that means nothing, or asks for what streams cannot do.
pub(crate) fn asks<'a>(publish: &Publish<'a>, now: Time) -> Result<Option<StreamPublish<'a>>, ApiError> {
    let answer_to = publish.reply;
    let block = publish.headers.filter(|block| memchr::memmem::find(block, PREFIX).is_some());
    let Some(block) = block else {
        return Ok(
            answer_to.map(|reply| StreamPublish { answer_to: Some(reply), ..StreamPublish::default() })
        );
    };
    asks_of(block, now).map(|asks| Some(StreamPublish { answer_to, ..asks }))
}

/// Tells a publisher why no stream takes its message.
pub(crate) fn answer_refused<W: World>(client: &Client, world: &W, publish: &Publish<'_>, error: &ApiError) {
    let Some(reply) = publish.reply else { return };
    let properties = Properties::new(client.settings.origins.origin(PLAIN));
    let body = PubAck::encode_error("", error);
    broker::answer(world, client.vhost, reply, &Publication::new(&properties, b"", &body));
}
