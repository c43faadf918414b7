//! `attach`: starts a link.

use imori_core::confirm::Confirm;
use imori_core::world::World;

use crate::client::Client;
use crate::codec::composites::{Attach, Detach};
use crate::codec::condition;
use crate::codec::restricted::Role;
use crate::commands::detach::end_link;
use crate::commands::source::attach_source;
use crate::commands::target::attach_target;
use crate::limits::NAME_BYTES_MAX;
use crate::link::{End, Link};
use crate::protocol_error::{Failure, ProtocolError};

/// Attaches a link, or answers why it cannot be attached.
pub(crate) fn attach<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    attach: &Attach<'_>,
) -> Result<(), Failure> {
    let (handle, max) = (attach.handle, client.settings.handle_max);
    let Some(session) = client.sessions.get(&channel) else { return Ok(()) };
    // AMQP 1.0, 2.7.2: a handle outside the range closes the connection.
    if handle > max {
        let text = format_args!("handle {handle} is above the agreed `handle-max` {max}");
        return Err(Failure::Connection(ProtocolError::new(condition::CONNECTION_FRAMING_ERROR, text)));
    }
    if session.links.contains_key(&handle) {
        let text = format_args!("handle {handle} has a link already; detach it first");
        return Err(Failure::Session(ProtocolError::new(condition::SESSION_HANDLE_IN_USE, text)));
    }
    // AMQP 1.0, 2.6.1: an attach takes over the link of the same name, on any session of its
    // connection. On other connections, only links to durable subscriptions are taken over, as no
    // other link has state of its own.
    if let Some((other, stolen)) = client.link_named(attach.name, attach.role) {
        end_link(client, world, other, stolen, &ProtocolError::stolen());
    }
    let attached = match attach.role {
        _ if attach.name.len() > NAME_BYTES_MAX => {
            let text =
                format_args!("the name of the link has more than {NAME_BYTES_MAX} bytes; use a shorter one");
            Err(ProtocolError::new(condition::INVALID_FIELD, text))
        }
        Role::Receiver => attach_source(client, world, channel, attach),
        Role::Sender => attach_target(client, world, channel, attach),
    };
    let Err(error) = attached else {
        client.temporary.link_attached(attach.role == Role::Receiver, attach.name, channel);
        return Ok(());
    };
    // AMQP 1.0, 2.6.3: a refused link is attached without a terminus, then detached.
    let role = if attach.role == Role::Sender { Role::Receiver } else { Role::Sender };
    let answer = Attach {
        name: attach.name,
        handle,
        role,
        snd_settle_mode: attach.snd_settle_mode,
        rcv_settle_mode: attach.rcv_settle_mode,
        initial_delivery_count: (role == Role::Sender).then_some(0),
        ..Attach::default()
    };
    client.answer(world, channel, Confirm::NOW, &answer);
    client.answer(world, channel, Confirm::NOW, &Detach { handle, closed: true, error: Some(error.error()) });
    client.add_link((channel, handle), Link::new(attach, None, End::Detached));
    Ok(())
}
