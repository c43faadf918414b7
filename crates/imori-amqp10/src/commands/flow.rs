//! `flow`: updates windows of sessions and credit of links, in both directions.

use imori_core::broker;
use imori_core::confirm::Confirm;
use imori_core::outbound::Grant;
use imori_core::turn::Budget;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::composites::Flow;
use crate::codec::condition;
use crate::delivery::OUTGOING_WINDOW;
use crate::link::End;
use crate::protocol_error::{Failure, ProtocolError};
use crate::session::session_of;

/// Takes over the window of the session in a client's flow. It counts when the frame arrives: a flow that is parked
/// with its link would undo the window of a later one.
pub(crate) fn session_window<W: World>(client: &Client, world: &W, channel: u16, flow: &Flow<'_>) {
    // AMQP 1.0, 2.5.6. Until the client knows the broker's numbers, they start at 0.
    let end = flow.next_incoming_id.unwrap_or_default().wrapping_add(flow.incoming_window);
    broker::grant_frames(world, &client.actor(), session_of(channel), end);
}

/// Takes over the credit in a client's flow, and answers it.
pub(crate) fn flow<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    flow: &Flow<'_>,
    budget: &mut Budget,
) -> Result<(), Failure> {
    budget.spend(1, 0, None);
    let Some(handle) = flow.handle else {
        if flow.echo {
            send(client, world, channel, Flow::default());
        }
        return Ok(());
    };
    let actor = client.actor();
    let link = client.sessions.get(&channel).and_then(|session| session.links.get(&handle));
    match link.map(|link| &link.end) {
        None => {
            let text = format_args!("handle {handle} has no link; attach one first");
            return Err(Failure::Session(ProtocolError::new(condition::SESSION_UNATTACHED_HANDLE, text)));
        }
        Some(End::Detached) => {}
        Some(End::Source(end)) => {
            let reader = end.reader;
            if let Some(credit) = flow.link_credit {
                let used = flow.delivery_count.unwrap_or_default();
                broker::grant(world, &actor, reader, &Grant { used, credit, drains: flow.drain });
            }
            // With `drain`, the broker reports the end of the drain anyway.
            if flow.echo && !flow.drain {
                let granted =
                    world.with_outbound(client.connection, |outbound| outbound.granted(reader)).flatten();
                if let Some((left, used)) = granted {
                    link_flow(client, world, channel, handle, (used, left));
                }
            }
        }
        Some(End::Target(end)) => {
            let limit = end.delivery_count.wrapping_add(end.credit);
            let count = flow.delivery_count.unwrap_or(end.delivery_count);
            // A sender can give up credit but not add to it.
            let credit = limit.wrapping_sub(count).min(end.credit);
            if flow.echo {
                link_flow(client, world, channel, handle, (count, credit));
            }
            let link = client.sessions.get_mut(&channel).and_then(|session| session.links.get_mut(&handle));
            if let Some(End::Target(end)) = link.map(|link| &mut link.end) {
                (end.delivery_count, end.credit) = (count, credit);
            }
        }
    }
    Ok(())
}

/// Sends the state of a link: the deliveries so far and the remaining credit.
pub(crate) fn link_flow<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    handle: u32,
    (delivery_count, credit): (u32, u32),
) {
    let flow = Flow {
        handle: Some(handle),
        delivery_count: Some(delivery_count),
        link_credit: Some(credit),
        ..Flow::default()
    };
    send(client, world, channel, flow);
}

/// Settles deliveries of the client that it settles last, on links that settle second, and returns
/// their credit to the links.
pub(crate) fn settle_last<W: World>(client: &mut Client, world: &W, channel: u16, (first, last): (u32, u32)) {
    let mut renewed = Vec::new();
    let links = client.sessions.get_mut(&channel).into_iter().flat_map(|session| &mut session.links);
    for (handle, link) in links {
        let End::Target(end) = &mut link.end else { continue };
        let before = end.unsettled.len();
        // Ids are serial numbers (RFC 1982), so a range may wrap around.
        end.unsettled.retain(|id| id.wrapping_sub(first) > last.wrapping_sub(first));
        // A message in parts has used its credit already and renews it once it is complete.
        if end.unsettled.len() < before && end.unfinished.is_none() {
            renewed.push(*handle);
        }
    }
    for handle in renewed {
        renew_credit(client, world, channel, handle);
    }
}

/// Renews the credit of a link once half of it is used, less what unsettled deliveries hold. The
/// flow leaves after the dispositions sent so far.
pub(crate) fn renew_credit<W: World>(client: &mut Client, world: &W, channel: u16, handle: u32) {
    let whole = client.settings.link_credit;
    let link = client.sessions.get_mut(&channel).and_then(|session| session.links.get_mut(&handle));
    let Some(End::Target(end)) = link.map(|link| &mut link.end) else { return };
    if end.credit > whole / 2 {
        return;
    }
    let unsettled = u32::try_from(end.unsettled.len()).unwrap_or(u32::MAX);
    let credit = whole.saturating_sub(unsettled);
    // The credit not held by unsettled deliveries is also renewed only when half of it is used.
    if end.credit > credit / 2 || end.credit == credit {
        return;
    }
    end.credit = credit;
    let state = (end.delivery_count, end.credit);
    link_flow(client, world, channel, handle, state);
}

/// Counts a transfer of the client against the window of its session, and renews the window once
/// half of it is used.
///
/// # Errors
/// `amqp:session:window-violation`.
pub(crate) fn count_transfer<W: World>(client: &mut Client, world: &W, channel: u16) -> Result<(), Failure> {
    let window = client.settings.session_window;
    let Some(session) = client.sessions.get_mut(&channel) else { return Ok(()) };
    session.next_incoming_id = session.next_incoming_id.wrapping_add(1);
    let Some(left) = session.incoming_left.checked_sub(1) else {
        let text = format_args!("more transfers came than the window of {window}; wait for a flow");
        return Err(Failure::Session(ProtocolError::new(condition::SESSION_WINDOW_VIOLATION, text)));
    };
    session.incoming_left = left;
    if left <= window / 2 {
        send(client, world, channel, Flow::default());
    }
    Ok(())
}

/// Sends a flow with the session's full window. It follows all earlier answers, so a producer never
/// gets credit ahead of them.
fn send<W: World>(client: &mut Client, world: &W, channel: u16, flow: Flow<'_>) {
    let window = client.settings.session_window;
    let Some(session) = client.sessions.get_mut(&channel) else { return };
    session.incoming_left = window;
    let told = world
        .with_outbound(client.connection, |outbound| {
            outbound.tell_awaited(session_of(channel), session.next_incoming_id)
        })
        .flatten()
        .unwrap_or_default();
    let flow = Flow {
        next_incoming_id: Some(told.awaited),
        incoming_window: window,
        next_outgoing_id: told.next,
        outgoing_window: OUTGOING_WINDOW,
        ..flow
    };
    client.answer(world, channel, Confirm::NOW, &flow);
}
