//! `detach`: ends a link.

use imori_core::broker::{self, DeleteOptions};
use imori_core::confirm::Confirm;
use imori_core::delivery::Outcome;
use imori_core::id::ReaderId;
use imori_core::inbound::Performed;
use imori_core::limits::SETTLES_AT_ONCE;
use imori_core::name::Name;
use imori_core::outbound::{Numbers, Outbound};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::composites::Detach;
use crate::codec::condition;
use crate::codec::restricted::Role;
use crate::commands::temporary::delete_due;
use crate::commands::transaction::roll_back_of;
use crate::link::{End, Link, SourceEnd, Until};
use crate::protocol_error::{Failure, ProtocolError};
use crate::session::session_of;

/// Detaches a link at the client's request; `Partly` if another turn is needed.
pub(crate) fn detach<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    detach: &Detach<'_>,
) -> Result<Performed, Failure> {
    let handle = detach.handle;
    let link = client.sessions.get(&channel).and_then(|session| session.links.get(&handle));
    let Some(link) = link else {
        let text = format_args!("handle {handle} has no link; attach one first");
        return Err(Failure::Session(ProtocolError::new(condition::SESSION_UNATTACHED_HANDLE, text)));
    };
    let (mut was_told, mut ended) = (false, None);
    let node = match &link.end {
        End::Detached => {
            forget(client, channel, handle);
            return Ok(Performed::Done);
        }
        End::Source(end) => {
            was_told = is_told(client, world, end);
            ended = Some(end.reader);
            // Only the link that still has a subscription closes it, not one from which it was
            // taken over.
            let goes = |until: &Until| *until == Until::Detach || detach.closed && !was_told;
            end.queue.clone().filter(|(_, until)| goes(until))
        }
        End::Target(_) => None,
    };
    let (is_receiver, name) = (ended.is_some(), link.name.clone());
    roll_back_of(client, world, channel, Some(handle));
    if let Some(reader) = ended {
        broker::cancel(world, &client.actor(), reader);
        if !release(client, world, channel, reader)? {
            let session = client.sessions.get_mut(&channel);
            let link = session.and_then(|session| session.links.get_mut(&handle));
            if let Some(End::Source(end)) = link.map(|link| &mut link.end) {
                end.is_ending = !was_told;
            }
            return Ok(Performed::Partly);
        }
    }
    if let Some((name, until)) = node {
        // A subscription stays while other links use it.
        let options = DeleteOptions { if_unused: until == Until::Close, ..DeleteOptions::default() };
        // Another client may have deleted the queue first.
        let _ = broker::delete_queue_if(world, &client.actor(), name.as_bytes(), options, |_| ());
    }
    forget(client, channel, handle);
    client.temporary.link_detached(is_receiver, &name, detach.closed);
    end_temporary_nodes(client, world);
    if !was_told {
        client.answer(world, channel, Confirm::NOW, &Detach { handle, closed: detach.closed, error: None });
    }
    Ok(Performed::Done)
}

/// Deletes the temporary nodes that are due, and detaches this connection's links to them.
pub(crate) fn end_temporary_nodes<W: World>(client: &mut Client, world: &W) {
    while let Some(node) = delete_due(client, world) {
        let is_to = |link: &Link| match &link.end {
            End::Target(_) => true,
            // The broker itself tells the receivers of a queue about its end.
            End::Source(_) => node.is_topic,
            End::Detached => false,
        };
        let sessions = client.sessions.iter();
        let links = sessions.flat_map(|(channel, session)| session.links.iter().map(|link| (*channel, link)));
        let linked =
            links.filter(|(_, (_, link))| link.temporary.as_ref() == Some(&node.name) && is_to(link));
        let linked: Vec<_> = linked.map(|(channel, (handle, _))| (channel, *handle)).collect();
        for (channel, handle) in linked {
            let text = format_args!("the temporary node `{}` was deleted; use another", node.name);
            let error = ProtocolError::new(condition::RESOURCE_DELETED, text);
            detach_link(client, world, channel, handle, &error);
        }
    }
}

/// Detaches a link with an error, and deletes what ends with it. Later frames of the link are
/// ignored until the client has detached it too.
pub(crate) fn end_link<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    handle: u32,
    error: &ProtocolError,
) -> Performed {
    let performed = detach_link(client, world, channel, handle, error);
    end_temporary_nodes(client, world);
    performed
}

fn detach_link<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    handle: u32,
    error: &ProtocolError,
) -> Performed {
    let session = client.sessions.get_mut(&channel);
    let Some(link) = session.and_then(|session| session.links.get_mut(&handle)) else {
        return Performed::Done;
    };
    let (name, end) = (link.name.clone(), std::mem::replace(&mut link.end, End::Detached));
    client.free_name((channel, handle), &name, &end);
    // A link that replaces another of its name also inherits its temporary node.
    if let Some(role) = end.role().filter(|_| error.condition() != condition::LINK_STOLEN) {
        client.temporary.link_detached(role == Role::Receiver, &name, true);
    }
    let mut was_told = false;
    let (reader, node) = match end {
        End::Detached => return Performed::Done,
        End::Source(end) => {
            was_told = is_told(client, world, &end);
            let node = end.queue.filter(|(_, until)| *until == Until::Detach);
            (Some(end.reader), node.map(|(name, _)| name))
        }
        End::Target(end) => {
            let held = end.unfinished.map_or(0, |unfinished| unfinished.held_bytes());
            client.unfinished_bytes = client.unfinished_bytes.saturating_sub(held);
            (None, None)
        }
    };
    roll_back_of(client, world, channel, Some(handle));
    if let Some(reader) = reader {
        broker::cancel(world, &client.actor(), reader);
        while release(client, world, channel, reader) == Ok(false) {}
    }
    if let Some(name) = node {
        delete(client, world, &name);
    }
    if !was_told {
        let detach = Detach { handle, closed: true, error: Some(error.error()) };
        client.answer(world, channel, Confirm::NOW, &detach);
    }
    Performed::Done
}

/// Whether the client was already told about the end: the queue is gone, or another connection took
/// the link over.
fn is_told<W: World>(client: &Client, world: &W, end: &SourceEnd) -> bool {
    let is_gone = |outbound: &mut Outbound| outbound.source(end.reader).is_none();
    !end.is_ending && world.with_outbound(client.connection, is_gone) == Some(true)
}

/// Detaches the link of a reader whose rights were revoked.
pub(crate) fn detach_refused<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    reader: ReaderId,
    error: &ProtocolError,
) {
    let links = client.sessions.get_mut(&channel).into_iter().flat_map(|session| &mut session.links);
    let mut sources = links.filter_map(|(handle, link)| match &mut link.end {
        End::Source(end) if end.reader == reader => Some((*handle, end)),
        _ => None,
    });
    if let Some((handle, end)) = sources.next() {
        end.is_ending = true;
        end_link(client, world, channel, handle, error);
    }
}

/// Deletes the nodes that end with the links of an ended session, and rolls back the transactions
/// those links declared.
pub(crate) fn forget_nodes<W: World>(client: &mut Client, world: &W, channel: u16) {
    roll_back_of(client, world, channel, None);
    let Some(session) = client.sessions.get_mut(&channel) else { return };
    for (handle, link) in std::mem::take(&mut session.links) {
        client.free_name((channel, handle), &link.name, &link.end);
        let node = match link.end {
            End::Source(SourceEnd { queue: Some((name, Until::Detach)), .. }) => Some(name),
            End::Source(_) | End::Detached => None,
            End::Target(end) => {
                let held = end.unfinished.map_or(0, |unfinished| unfinished.held_bytes());
                client.unfinished_bytes = client.unfinished_bytes.saturating_sub(held);
                None
            }
        };
        if let Some(name) = node {
            delete(client, world, &name);
        }
    }
    client.temporary.session_ended(channel);
    end_temporary_nodes(client, world);
}

/// Releases unsettled deliveries of a consumer; returns whether none is left. Deliveries that a
/// transaction settles stay unsettled (AMQP 1.0, 4.4.2).
fn release<W: World>(client: &Client, world: &W, channel: u16, reader: ReaderId) -> Result<bool, Failure> {
    let outcome = Outcome::Release { failed: false };
    let session = session_of(channel);
    if client.transactions.hold_some_of(session) {
        let unsettled = |outbound: &mut Outbound| outbound.unsettled_of(session, reader);
        let mut numbers = world.with_outbound(client.connection, unsettled).unwrap_or_default();
        numbers.retain(|number| !client.transactions.hold(session, *number));
        for number in numbers.iter().take(SETTLES_AT_ONCE) {
            broker::settle(world, &client.actor(), session, Numbers::One(*number), outcome)
                .map_err(|error| Failure::Session(error.into()))?;
        }
        return Ok(numbers.len() <= SETTLES_AT_ONCE);
    }
    match broker::settle(world, &client.actor(), session, Numbers::AllOf(reader), outcome) {
        Ok(report) => Ok(!report.has_more),
        Err(error) => Err(Failure::Session(error.into())),
    }
}

fn delete<W: World>(client: &Client, world: &W, name: &Name) {
    // Another client may have deleted the queue first.
    let _ = broker::delete_queue(world, &client.actor(), name.as_bytes());
}

fn forget(client: &mut Client, channel: u16, handle: u32) {
    let links = client.sessions.get_mut(&channel).map(|session| &mut session.links);
    let Some(link) = links.and_then(|links| links.remove(&handle)) else { return };
    client.free_name((channel, handle), &link.name, &link.end);
    if let End::Target(end) = link.end
        && let Some(unfinished) = end.unfinished
    {
        client.unfinished_bytes = client.unfinished_bytes.saturating_sub(unfinished.held_bytes());
    }
}
