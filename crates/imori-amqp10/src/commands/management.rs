//! Performs requests to `/management` and answers on the paired link.

use imori_core::authorize::{Actor, Identity};
use imori_core::broker;
use imori_core::confirm::Level;
use imori_core::id::ReaderId;
use imori_core::message::Publication;
use imori_core::name::Name;
use imori_core::world::World;

use crate::client::{Client, NewToken};
use crate::codec::composites::Attach;
use crate::codec::condition;
use crate::codec::map::MapBuf;
use crate::codec::value::Value;
use crate::link::{End, SourceEnd, Until};
use crate::management::{Answer, respond};
use crate::message;
use crate::protocol_error::{Failure, ProtocolError};
use crate::session::session_of;
use crate::transaction::LinkOf;

/// Link Pair 1.0, 2.1: the property of links that form a pair with one of the same name in the
/// other direction.
const PAIRED: &str = "paired";

/// Whether an `attach` declares its link to be one of a pair.
pub(super) fn is_paired(attach: &Attach<'_>) -> bool {
    attach.properties.is_some_and(|properties| properties.find(PAIRED) == Some(Value::Bool(true)))
}

/// The link properties with which the broker confirms the pairing.
pub(super) fn paired() -> MapBuf {
    MapBuf::new().with(PAIRED, Value::Bool(true))
}

/// Performs a request that arrived on a link, and sends the response.
pub(super) fn manage<W: World>(
    client: &mut Client,
    world: &W,
    (channel, handle): LinkOf,
    payload: &[u8],
) -> Result<(), Failure> {
    let refused = |condition, text: String| ProtocolError::new(condition, text).of_link(handle);
    let Some((_, reader)) = responses_of(client, channel, handle) else {
        let text = "no link of the same name receives from /management; attach one before the first request";
        return Err(refused(condition::PRECONDITION_FAILED, text.to_string()));
    };
    let answer = respond(client, world, payload).map_err(|text| refused(condition::DECODE_ERROR, text))?;
    let response = match answer {
        Answer::Now(response) => response,
        Answer::OnDisk(response) => {
            // The response leaves once a crash cannot undo the change it reports.
            let confirm = world.confirm_all(Level::Disk);
            world.with_outbound(client.connection, |outbound| {
                outbound.answer(session_of(channel), confirm, |_| ());
                outbound.start_after_answers(reader);
            });
            response
        }
        Answer::AfterToken { token, response } => {
            client.new_tokens.push_back(NewToken { token, link: (channel, handle), response });
            return Ok(());
        }
    };
    send_response(client, world, (channel, handle), &response)
}

/// Sends a response on the link paired with the link of its request.
pub(crate) fn send_response<W: World>(
    client: &Client,
    world: &W,
    (channel, handle): LinkOf,
    response: &[u8],
) -> Result<(), Failure> {
    let Some((queue, _)) = responses_of(client, channel, handle) else { return Ok(()) };
    let origins = client.settings.origins;
    let read = message::read(response, origins, b"").map_err(|error| error.of_link(handle))?;
    let publication = Publication::new(&read.properties, &read.text, read.body);
    // The broker sends this message, regardless of the client's rights.
    let identity = Identity::broker();
    let actor = Actor { identity: &identity, connection: client.connection, vhost: client.vhost };
    broker::publish(world, &actor, b"", queue.as_bytes(), &publication)
        .map_err(|error| ProtocolError::from(error).of_link(handle))?;
    Ok(())
}

/// Returns queue and reader of the link of the same name in the other direction.
fn responses_of(client: &Client, channel: u16, handle: u32) -> Option<(Name, ReaderId)> {
    let session = client.sessions.get(&channel)?;
    let name = &session.links.get(&handle)?.name;
    session.links.values().filter(|link| link.name == *name).find_map(|link| match &link.end {
        End::Source(SourceEnd { queue: Some((queue, Until::Detach)), reader, .. }) => {
            Some((queue.clone(), *reader))
        }
        _ => None,
    })
}
