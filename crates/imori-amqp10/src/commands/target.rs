//! The target of a link on which the client sends.

use std::collections::BTreeSet;

use imori_core::authorize::{Action, Object};
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::message::TOPIC_EXCHANGE;
use imori_core::name::Name;
use imori_core::outbound::INBOX_PREFIX;
use imori_core::route::RouteError;
use imori_core::world::World;

use crate::address::Node;
use crate::client::Client;
use crate::codec::composites::{AnyTarget, Attach, Target};
use crate::codec::condition;
use crate::codec::restricted::Role;
use crate::commands::flow::link_flow;
use crate::commands::management::{is_paired, paired};
use crate::commands::temporary::{Made, resolved};
use crate::commands::terminus::{is_topic, queue};
use crate::commands::transaction::coordinator;
use crate::link::{End, Link, Receiver, TargetEnd};
use crate::management::ADDRESS;
use crate::protocol_error::ProtocolError;

/// Attaches a producer, answers, and grants credit.
pub(super) fn attach_target<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    attach: &Attach<'_>,
) -> Result<(), ProtocolError> {
    let target = match attach.target {
        Some(AnyTarget::Target(target)) => target,
        Some(AnyTarget::Coordinator(_)) => {
            begin(
                client,
                world,
                channel,
                attach,
                (coordinator().into(), Confirm::NOW),
                (Receiver::Coordinator, None),
            );
            return Ok(());
        }
        None => {
            let text = "the link has no target; name one, or none within it for a relay";
            return Err(ProtocolError::new(condition::INVALID_FIELD, text));
        }
    };
    if target.dynamic {
        let made = Made::of_target(client, world, &target)?;
        let (address, properties) = (made.address(), made.lifetime.properties());
        let target =
            Target { address: Some(&address), dynamic_node_properties: Some(properties.map()), ..target };
        let (to, temporary) = (Receiver::Node(made.node()), Some(made.queue.name.clone()));
        begin(client, world, channel, attach, (target.into(), made.queue.confirm), (to, temporary));
        client.temporary.add(made.into_node(target.expiry_policy, attach, channel));
        return Ok(());
    }
    let (to, confirm, temporary) = match target.address {
        None => (Receiver::Relay, Confirm::NOW, None),
        Some(ADDRESS) => (Receiver::Management, Confirm::NOW, None),
        Some(address) => {
            let node = Node::parse(address, is_topic(target.capabilities))?;
            let (node, temporary) = resolved(client, world, node)?;
            let confirm = open(client, world, &node)?;
            (Receiver::Node(node), confirm, temporary)
        }
    };
    begin(client, world, channel, attach, (target.into(), confirm), (to, temporary));
    Ok(())
}

/// Answers the `attach` of a producer once `confirm` is reached, and grants credit.
fn begin<W: World>(
    client: &mut Client,
    world: &W,
    channel: u16,
    attach: &Attach<'_>,
    (target, confirm): (AnyTarget<'_>, Confirm),
    (to, temporary): (Receiver, Option<Name>),
) {
    let address = match target {
        AnyTarget::Target(target) => target.address,
        AnyTarget::Coordinator(_) => None,
    };
    let paired = paired();
    let answer = Attach {
        name: attach.name,
        handle: attach.handle,
        role: Role::Receiver,
        snd_settle_mode: attach.snd_settle_mode,
        rcv_settle_mode: attach.rcv_settle_mode,
        source: attach.source,
        target: Some(target),
        max_message_size: Some(client.settings.message_bytes_max as u64),
        properties: is_paired(attach).then(|| paired.map()),
        ..Attach::default()
    };
    client.answer(world, channel, confirm, &answer);
    let end = TargetEnd {
        to,
        delivery_count: attach.initial_delivery_count.unwrap_or_default(),
        credit: client.settings.link_credit,
        unfinished: None,
        unsettled: BTreeSet::new(),
    };
    link_flow(client, world, channel, attach.handle, (end.delivery_count, end.credit));
    let link = Link { temporary, ..Link::new(attach, address, End::Target(end)) };
    client.add_link((channel, attach.handle), link);
}

/// Ensures that the node exists and that the client may send to it.
fn open<W: World>(client: &Client, world: &W, node: &Node) -> Result<Confirm, ProtocolError> {
    let (exchange, subject) = node.address();
    let confirm = match node {
        // Every client may reply to an inbox; a queue of that name is never declared.
        Node::Queue(name) if name.as_bytes().starts_with(INBOX_PREFIX) => {
            authorize(client, world, exchange, subject, false)?;
            Confirm::NOW
        }
        Node::Queue(name) => {
            authorize(client, world, exchange, subject, false)?;
            // Sending to a temporary queue of another connection is allowed.
            match world.with_router(|_, table| table.queue(client.vhost, name.as_bytes())) {
                Some(_) => Confirm::NOW,
                None => queue(client, world, name)?.confirm,
            }
        }
        Node::Topic(_) => {
            authorize(client, world, TOPIC_EXCHANGE, subject, true)?;
            Confirm::NOW
        }
        Node::Exchange { .. } => {
            let kind = world
                .with_router(|_, table| table.exchange(client.vhost, exchange).map(|found| found.kind()));
            let Some(kind) = kind else {
                return Err(BrokerError::Route(RouteError::NoExchange(Name::new(exchange))).into());
            };
            authorize(client, world, exchange, subject, kind == imori_core::route::ExchangeKind::Topic)?;
            Confirm::NOW
        }
    };
    Ok(confirm)
}

fn authorize<W: World>(
    client: &Client,
    world: &W,
    exchange: &[u8],
    subject: &[u8],
    is_topic: bool,
) -> Result<(), ProtocolError> {
    let object = Object::Subject { exchange, subject, is_topic };
    Ok(world.authorize(&client.actor(), Action::Publish, object)?)
}
