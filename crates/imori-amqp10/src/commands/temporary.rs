//! Temporary nodes: created by links with a dynamic terminus, resolved by name, and deleted when
//! due.

use imori_core::broker;
use imori_core::error::BrokerError;
use imori_core::name::Name;
use imori_core::queue::Queue as CoreQueue;
use imori_core::world::World;

use crate::address::Node;
use crate::client::Client;
use crate::codec::composites::{Attach, Source, Target};
use crate::codec::restricted::{Role, SenderSettleMode, TerminusExpiryPolicy};
use crate::commands::terminus::{
    MADE_PREFIX, Queue, is_topic, is_topic_holder, reply_queue, temporary_queue, topic_holder,
};
use crate::protocol_error::ProtocolError;
use crate::temporary::{Lifetime, Maker, TemporaryNode};

/// A temporary node that was just created.
#[derive(Debug)]
pub(super) struct Made {
    /// The node's queue; for a topic, the queue that reserves its name.
    pub(super) queue: Queue,
    pub(super) is_topic: bool,
    pub(super) lifetime: Lifetime,
}

impl Made {
    /// Creates the node of a dynamic target.
    pub(super) fn of_target<W: World>(
        client: &Client,
        world: &W,
        target: &Target<'_>,
    ) -> Result<Made, ProtocolError> {
        let lifetime = Lifetime::read(target.dynamic_node_properties)?;
        let is_topic = is_topic(target.capabilities);
        let queue = if is_topic { topic_holder(client, world)? } else { temporary_queue(client, world)? };
        Ok(Made { queue, is_topic, lifetime })
    }

    /// Creates the node of a dynamic source. If its receiver does not settle, replies bypass the
    /// queue.
    pub(super) fn of_source<W: World>(
        client: &Client,
        world: &W,
        source: &Source<'_>,
        settles: SenderSettleMode,
    ) -> Result<Made, ProtocolError> {
        let lifetime = Lifetime::read(source.dynamic_node_properties)?;
        let is_topic = is_topic(source.capabilities);
        let queue = match settles {
            _ if is_topic => topic_holder(client, world)?,
            SenderSettleMode::Settled => reply_queue(client, world)?,
            SenderSettleMode::Unsettled | SenderSettleMode::Mixed => temporary_queue(client, world)?,
        };
        Ok(Made { queue, is_topic, lifetime })
    }

    /// The address to tell the client.
    pub(super) fn address(&self) -> String {
        String::from_utf8_lossy(self.queue.name.as_bytes()).into_owned()
    }

    /// The node that the address stands for.
    pub(super) fn node(&self) -> Node {
        let name = self.queue.name.clone();
        if self.is_topic { Node::Topic(name) } else { Node::Queue(name) }
    }

    /// Converts to the record that the connection keeps; `attach` is the creating link.
    pub(super) fn into_node(
        self,
        expiry: TerminusExpiryPolicy,
        attach: &Attach<'_>,
        channel: u16,
    ) -> TemporaryNode {
        let is_receiver = attach.role == Role::Receiver;
        let maker = Maker { is_receiver, link: attach.name.into(), channel };
        let Made { queue, is_topic, lifetime } = self;
        TemporaryNode { name: queue.name, is_topic, lifetime, expiry, maker: Some(maker) }
    }
}

/// Resolves a node that may be temporary: for a name made by the broker, the broker knows whether
/// it is a topic. Also returns the name if the node belongs to this connection.
///
/// # Errors
/// [`BrokerError::NoQueue`] if the name looks like the broker's but does not exist.
pub(super) fn resolved<W: World>(
    client: &Client,
    world: &W,
    node: Node,
) -> Result<(Node, Option<Name>), ProtocolError> {
    let name = match &node {
        Node::Queue(name) | Node::Topic(name) if name.as_bytes().starts_with(MADE_PREFIX) => name.clone(),
        _ => return Ok((node, None)),
    };
    let own = client.temporary.has(&name).then(|| name.clone());
    match is_topic_holder(client, world, &name) {
        Some(true) => Ok((Node::Topic(name), own)),
        Some(false) => Ok((Node::Queue(name), own)),
        None => Err(BrokerError::NoQueue(name).into()),
    }
}

/// Deletes the next node that is due. The caller detaches this connection's links to it.
pub(super) fn delete_due<W: World>(client: &mut Client, world: &W) -> Option<TemporaryNode> {
    if !client.temporary.has_orphans() {
        return None;
    }
    let (vhost, sessions) = (client.vhost, &client.sessions);
    let is_linked = |name: &Name| {
        let mut links = sessions.values().flat_map(|session| session.links.values());
        links.any(|link| link.end.role().is_some() && link.temporary.as_ref() == Some(name))
    };
    let has_messages = |name: &Name| {
        let id = world.with_router(|_, table| table.queue(vhost, name.as_bytes()));
        let count = |queue: &mut CoreQueue| queue.ready_len() + queue.unsettled_len() + queue.delayed_len();
        id.and_then(|id| world.with_queue(id, count)).is_some_and(|count| count > 0)
    };
    let due = client.temporary.take_due(|node| match node.lifetime {
        Lifetime::Close => true,
        Lifetime::NoLinks => !is_linked(&node.name),
        Lifetime::NoMessages => !has_messages(&node.name),
        Lifetime::NoLinksOrMessages => !is_linked(&node.name) && !has_messages(&node.name),
    })?;
    // Another client may have deleted the queue first.
    let _ = broker::delete_queue(world, &client.actor(), due.name.as_bytes());
    Some(due)
}
