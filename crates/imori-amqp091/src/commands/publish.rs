//! `basic.publish`: publishes messages.

use std::slice;

use bytes::Bytes;
use imori_core::broker::{self, PublishReport};
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::inbound::Performed;
use imori_core::message::Publication;
use imori_core::name::Name;
use imori_core::outbound::SessionId;
use imori_core::turn::Budget;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::frame::FRAME_BYTES;
use crate::codec::methods::basic;
use crate::commands::confirm;
use crate::commands::publish_headers::PublishHeaders;
use crate::commands::transaction::add_publish;
use crate::content::Content;
use crate::delivery::push_return;
use crate::protocol_error::{Code, ProtocolError};

/// Publishes a message, returns it if it is mandatory and unroutable, and confirms it. `shared` is
/// its body in its own buffer, if it is large enough to be kept without a copy. [`Performed::Held`]
/// if nothing was done because a queue is too long; the queue tells when to try again.
pub(crate) fn publish<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    publish: &basic::Publish<'_>,
    content: &Content<'_>,
    shared: Option<&Bytes>,
    budget: &mut Budget,
) -> Result<Performed, ProtocolError> {
    if publish.immediate {
        return Err(ProtocolError::new(Code::NotImplemented, "immediate=true"));
    }
    check_len(content.body.len() as u64, client.settings.body_bytes_max)?;
    let headers = PublishHeaders::read(client, world, channel, publish, content.properties)?;
    let (properties, block, copies) = (&headers.properties, &*headers.block, &headers.copies);
    let publication = match shared {
        Some(body) => Publication::with_shared_body(properties, block, body),
        None => Publication::new(properties, block, content.body),
    };
    if add_publish(client, world, channel, publish, &publication, copies)? {
        budget.spend(1, 0, None);
        return Ok(Performed::Done);
    }
    let (exchange, subject) = (publish.exchange.as_bytes(), publish.routing_key.as_bytes());
    let actor = client.actor();
    let view = publication.view();
    let waits = |subject: &[u8]| broker::must_wait_to_publish(world, &actor, exchange, subject, &view);
    if waits(subject) || copies.iter().any(|copy| waits(copy.as_bytes())) {
        return Ok(Performed::Held);
    }
    let published = broker::publish_with_copies(world, &actor, exchange, (subject, copies), &publication);
    let report = match published {
        Ok(report) => report,
        // A delayed message is dropped if no queue can keep it.
        Err(BrokerError::NotKept(_)) => PublishReport::default(),
        // RabbitMQ, publisher confirms: a message that the broker cannot take gets basic.nack.
        Err(BrokerError::Quota(_) | BrokerError::Unavailable { .. }) if confirm::is_on(client, channel) => {
            PublishReport { refused_by: Some(Name::new(subject)), ..PublishReport::default() }
        }
        Err(error) => return Err(client.error(&error)),
    };
    budget.spend(1 + copies.len(), report.receivers, report.slow_reader);
    let is_returned = publish.mandatory && report.is_unroutable();
    if is_returned {
        let payload_bytes_max = (client.frame_bytes_max as usize).saturating_sub(FRAME_BYTES);
        // RabbitMQ, publisher confirms: basic.return precedes the confirm.
        world.with_outbound(client.connection, |outbound| {
            outbound.answer(SessionId(channel), Confirm::NOW, |out| {
                push_return(out, channel, publish, content.properties, content.body, payload_bytes_max);
            });
        });
    }
    if let Some(number) = confirm::count(client, channel, 1) {
        confirm::answer(world, client.connection, channel, number, slice::from_ref(&report));
    }
    Ok(Performed::Done)
}

/// Checks the length of a body, before it arrives.
pub(crate) fn check_len(bytes: u64, bytes_max: usize) -> Result<(), ProtocolError> {
    if bytes <= bytes_max as u64 {
        return Ok(());
    }
    let text = format_args!("message size {bytes} is larger than configured max size {bytes_max}");
    Err(ProtocolError::new(Code::PreconditionFailed, text))
}
