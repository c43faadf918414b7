//! Requests to `/management`: performed, and answered on the link that is paired with theirs.

use imori_core::authorize::{Actor, Identity};
use imori_core::broker;
use imori_core::confirm::{Confirm, Level};
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

/// Link Pair 1.0, 2.1: the property of links that have one of the same name the other way.
const PAIRED: &str = "paired";

/// Tells whether a link is said to be one of a pair.
pub(super) fn is_paired(attach: &Attach<'_>) -> bool {
    attach.properties.is_some_and(|properties| properties.find(PAIRED) == Some(Value::Bool(true)))
}

/// The properties by which the broker says so too.
pub(super) fn paired() -> MapBuf {
    MapBuf::new().with(PAIRED, Value::Bool(true))
}

/// Performs a request that came by a link, and sends its response.
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
            // The response leaves once no crash undoes what it tells.
            let confirm = Confirm::of(Level::Disk, world.appended());
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

/// Sends a response by the link that is paired with that of its request.
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
    // The broker's own message, whatever the client may write to.
    let identity = Identity::broker();
    let actor = Actor { identity: &identity, connection: client.connection, vhost: client.vhost };
    broker::publish(world, &actor, b"", queue.as_bytes(), &publication)
        .map_err(|error| ProtocolError::from(error).of_link(handle))?;
    Ok(())
}

/// The queue and the reader of the link in the other direction of the same name.
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
