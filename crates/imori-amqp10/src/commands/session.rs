//! `begin` and `end`: starts and ends sessions.

use imori_core::broker;
use imori_core::confirm::Confirm;
use imori_core::inbound::Performed;
use imori_core::outbound::{FrameNumbers, HeldAnswers};
use imori_core::world::World;

use crate::client::Client;
use crate::codec::composites::{Begin, End};
use crate::codec::condition;
use crate::commands::detach::forget_nodes;
use crate::delivery::OUTGOING_WINDOW;
use crate::protocol_error::{Failure, ProtocolError};
use crate::session::{Ending, Session, session_of};

/// Begins a session on the client's channel.
pub(crate) fn begin<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    begin: &Begin<'_>,
) -> Result<(), Failure> {
    let refused =
        |condition, text: std::fmt::Arguments<'_>| Failure::Connection(ProtocolError::new(condition, text));
    let max = client.settings.channel_max;
    if channel > max {
        let text = format_args!("channel {channel} is above the agreed `channel-max` {max}");
        return Err(refused(condition::CONNECTION_FRAMING_ERROR, text));
    }
    if begin.remote_channel.is_some() {
        let text = format_args!("`begin` has a `remote-channel`, but the broker begins no sessions");
        return Err(refused(condition::INVALID_FIELD, text));
    }
    if client.sessions.contains_key(&channel) {
        let text = format_args!("channel {channel} has a session already; end it first");
        return Err(refused(condition::ILLEGAL_STATE, text));
    }
    let session = session_of(channel);
    if let Err(error) = broker::open_session(world, &client.actor(), session) {
        return Err(Failure::Connection(error.into()));
    }
    let numbers = FrameNumbers { next: 0, awaited: begin.next_outgoing_id };
    world.with_outbound(client.connection, |outbound| {
        outbound.count_frames(session, numbers, begin.incoming_window);
    });
    let (incoming_window, handle_max) = (client.settings.session_window, client.settings.handle_max);
    client.sessions.insert(
        channel,
        Session {
            next_incoming_id: begin.next_outgoing_id,
            incoming_left: incoming_window,
            ..Session::default()
        },
    );
    let answer = Begin {
        remote_channel: Some(channel),
        next_outgoing_id: numbers.next,
        incoming_window,
        outgoing_window: OUTGOING_WINDOW,
        handle_max,
        ..Begin::default()
    };
    client.answer(world, channel, Confirm::NOW, &answer);
    Ok(())
}

/// Ends a session at the client's request; `Partly` if another turn is needed.
pub(crate) fn end<W: World>(client: &mut Client, world: &W, channel: u16) -> Performed {
    if !give_back(client, world, channel) {
        return Performed::Partly;
    }
    client.sessions.remove(&channel);
    client.answer(world, channel, Confirm::NOW, &End::default());
    Performed::Done
}

/// Continues to end a refused session, and tells the client the error once everything is given
/// back.
pub(crate) fn end_refused<W: World>(client: &mut Client, world: &W, channel: u16) -> Performed {
    if !give_back(client, world, channel) {
        return Performed::Partly;
    }
    let session = client.sessions.get_mut(&channel);
    if let Some(Ending::Begun(error)) = session.and_then(|session| session.ending.replace(Ending::Told)) {
        client.answer(world, channel, Confirm::NOW, &End { error: Some(error.error()) });
    }
    Performed::Done
}

/// Gives back the session's deliveries and nodes; returns whether it is done.
fn give_back<W: World>(client: &mut Client, world: &W, channel: u16) -> bool {
    if !broker::end_session(world, &client.actor(), session_of(channel), HeldAnswers::Keep) {
        return false;
    }
    forget_nodes(client, world, channel);
    true
}
