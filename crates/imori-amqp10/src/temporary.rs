//! Temporary nodes: the link that created each, and its lifetime policy (AMQP 1.0, 3.5.9 to
//! 3.5.13).

use imori_core::name::Name;

use crate::codec::condition;
use crate::codec::constructor::LIST_0;
use crate::codec::map::MapBuf;
use crate::codec::push::push_descriptor;
use crate::codec::restricted::TerminusExpiryPolicy;
use crate::codec::value::{Descriptor, Map, Symbol, Value};
use crate::protocol_error::ProtocolError;

/// The node property with the lifetime policy.
const LIFETIME_POLICY: &str = "lifetime-policy";

/// The node property with the supported distribution modes.
const SUPPORTED_DIST_MODES: &str = "supported-dist-modes";

/// The event that deletes a temporary node. The end of its connection always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// The creating link is closed.
    Close,
    /// No link to the node is left.
    NoLinks,
    /// The creating link is closed, and no message is left.
    NoMessages,
    /// Neither a link nor a message is left.
    NoLinksOrMessages,
}

const LIFETIMES: [(Lifetime, u64, &str); 4] = [
    (Lifetime::Close, 0x2b, "amqp:delete-on-close:list"),
    (Lifetime::NoLinks, 0x2c, "amqp:delete-on-no-links:list"),
    (Lifetime::NoMessages, 0x2d, "amqp:delete-on-no-messages:list"),
    (Lifetime::NoLinksOrMessages, 0x2e, "amqp:delete-on-no-links-or-messages:list"),
];

impl Lifetime {
    /// Reads the lifetime policy in the properties of a node to create; the default is
    /// `delete-on-close`.
    ///
    /// # Errors
    /// `amqp:invalid-field`, also if another property has a wrong type.
    pub(crate) fn read(properties: Option<Map<'_>>) -> Result<Lifetime, ProtocolError> {
        check_types(properties.unwrap_or(Map::EMPTY))?;
        let Some(policy) = properties.and_then(|properties| properties.find(LIFETIME_POLICY)) else {
            return Ok(Lifetime::Close);
        };
        let known = match policy {
            Value::Described(described) if matches!(described.value(), Value::List(_)) => {
                let is_meant = |code, name| match described.descriptor {
                    Descriptor::Code(known) => known == code,
                    Descriptor::Name(known) => known.0 == name,
                };
                LIFETIMES.into_iter().find(|(_, code, name)| is_meant(*code, *name))
            }
            _ => None,
        };
        known.map(|(lifetime, ..)| lifetime).ok_or_else(|| {
            let text =
                "the `lifetime-policy` of a node is none of AMQP 1.0, 3.5.10 to 3.5.13; send one of these";
            ProtocolError::new(condition::INVALID_FIELD, text)
        })
    }

    /// Returns node properties with this policy.
    pub(crate) fn properties(self) -> MapBuf {
        let mut properties = MapBuf::new();
        let code = LIFETIMES.into_iter().find(|(known, ..)| *known == self).map_or(0, |(_, code, _)| code);
        properties.push_with(Value::Symbol(Symbol(LIFETIME_POLICY)), |out| {
            push_descriptor(out, Descriptor::Code(code));
            out.push(LIST_0);
        });
        properties
    }
}

/// AMQP 1.0, 3.5.9: keys of node properties are symbols, and distribution modes are one or an array
/// of them.
fn check_types(properties: Map<'_>) -> Result<(), ProtocolError> {
    for (key, value) in properties.iter() {
        let Value::Symbol(Symbol(key)) = key else {
            let text = "a key of the node's properties is no symbol; send symbols";
            return Err(ProtocolError::new(condition::INVALID_FIELD, text));
        };
        let is_right = match (key, value) {
            (SUPPORTED_DIST_MODES, Value::Symbol(_)) => true,
            (SUPPORTED_DIST_MODES, Value::Array(array)) => {
                array.iter().all(|mode| matches!(mode, Value::Symbol(_)))
            }
            (SUPPORTED_DIST_MODES, _) => false,
            _ => true,
        };
        if !is_right {
            let text = format_args!("the node property `{key}` is neither a symbol nor an array of symbols");
            return Err(ProtocolError::new(condition::INVALID_FIELD, text));
        }
    }
    Ok(())
}

/// The link that created a node, seen from the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Maker {
    /// The client receives by the link.
    pub(crate) is_receiver: bool,
    /// The name of the link.
    pub(crate) link: Box<str>,
    /// The session that the link is, or was, attached to.
    pub(crate) channel: u16,
}

/// A node that a link of this connection created.
#[derive(Debug)]
pub(crate) struct TemporaryNode {
    /// The name of its queue; for a topic, the queue only reserves the name.
    pub(crate) name: Name,
    /// The node is a topic, so every receiver gets each message.
    pub(crate) is_topic: bool,
    /// The event that deletes the node.
    pub(crate) lifetime: Lifetime,
    /// The event that ends the creating link after it is detached.
    pub(crate) expiry: TerminusExpiryPolicy,
    /// The creating link, until it has ended.
    pub(crate) maker: Option<Maker>,
}

/// The temporary nodes of a connection.
#[derive(Debug, Default)]
pub(crate) struct TemporaryNodes {
    nodes: Vec<TemporaryNode>,
    has_orphans: bool,
}

impl TemporaryNodes {
    /// Adds a created node.
    pub(crate) fn add(&mut self, node: TemporaryNode) {
        self.nodes.push(node);
    }

    /// Removes all nodes.
    pub(crate) fn clear(&mut self) {
        *self = TemporaryNodes::default();
    }

    /// Whether this connection has a temporary node of this name.
    pub(crate) fn has(&self, name: &Name) -> bool {
        self.nodes.iter().any(|node| node.name == *name)
    }

    /// Whether the creating link of some node has ended.
    #[inline]
    pub(crate) fn has_orphans(&self) -> bool {
        self.has_orphans
    }

    /// Records that a link is attached, possibly again on another session.
    pub(crate) fn link_attached(&mut self, is_receiver: bool, link: &str, channel: u16) {
        let makers = self.nodes.iter_mut().filter_map(|node| node.maker.as_mut());
        for maker in makers.filter(|maker| maker.is_receiver == is_receiver && *maker.link == *link) {
            maker.channel = channel;
        }
    }

    /// Records that a link is detached, which ends it if it was closed or expires on detach.
    pub(crate) fn link_detached(&mut self, is_receiver: bool, link: &str, is_closed: bool) {
        self.orphan(|node, maker| {
            let ceases = is_closed || node.expiry == TerminusExpiryPolicy::LinkDetach;
            ceases && maker.is_receiver == is_receiver && *maker.link == *link
        });
    }

    /// Records the end of a session, which ends the links that do not survive it.
    pub(crate) fn session_ended(&mut self, channel: u16) {
        self.orphan(|node, maker| {
            let ceases =
                matches!(node.expiry, TerminusExpiryPolicy::LinkDetach | TerminusExpiryPolicy::SessionEnd);
            ceases && maker.channel == channel
        });
    }

    /// Removes and returns a node whose creating link has ended and for which `is_due` is true.
    pub(crate) fn take_due(&mut self, is_due: impl Fn(&TemporaryNode) -> bool) -> Option<TemporaryNode> {
        let due = self.nodes.iter().position(|node| node.maker.is_none() && is_due(node));
        let taken = due.map(|at| self.nodes.swap_remove(at));
        self.has_orphans = self.nodes.iter().any(|node| node.maker.is_none());
        taken
    }

    fn orphan(&mut self, ceases: impl Fn(&TemporaryNode, &Maker) -> bool) {
        for node in &mut self.nodes {
            if node.maker.as_ref().is_some_and(|maker| ceases(node, maker)) {
                node.maker = None;
                self.has_orphans = true;
            }
        }
    }
}
