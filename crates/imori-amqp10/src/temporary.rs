//! Temporary nodes: the link that made each of them, and the policy by which it ends (AMQP 1.0, 3.5.9 to 3.5.13).

use imori_core::name::Name;

use crate::codec::condition;
use crate::codec::constructor::LIST_0;
use crate::codec::map::MapBuf;
use crate::codec::push::push_descriptor;
use crate::codec::restricted::TerminusExpiryPolicy;
use crate::codec::value::{Descriptor, Map, Symbol, Value};
use crate::protocol_error::ProtocolError;

/// The property of a node by which it ends.
const LIFETIME_POLICY: &str = "lifetime-policy";

/// The property of a node that lists how it gives messages away.
const SUPPORTED_DIST_MODES: &str = "supported-dist-modes";

/// The event by which a temporary node ends. The end of its connection is always one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// The link that made it ceases to exist.
    Close,
    /// No link to it is left.
    NoLinks,
    /// The link that made it has ceased to exist, and no message is left.
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
    /// Reads the policy among the properties of a node that is to be made; `delete-on-close` where there is none.
    ///
    /// # Errors
    /// `amqp:invalid-field`, also for another property of a wrong type.
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

    /// The properties of a node with this policy.
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

/// AMQP 1.0, 3.5.9: the keys of node properties are symbols, and the modes of a node are one or an array of them.
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

/// The end of a client that made a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Maker {
    /// The client receives by it.
    pub(crate) is_receiver: bool,
    /// The name of the link.
    pub(crate) link: Box<str>,
    /// The session that has, or had, the link.
    pub(crate) channel: u16,
}

/// A node that a link of the connection made.
#[derive(Debug)]
pub(crate) struct TemporaryNode {
    /// The name of its queue. That of a topic holds its name alone.
    pub(crate) name: Name,
    /// Messages go to all of its receivers.
    pub(crate) is_topic: bool,
    /// The event by which it ends.
    pub(crate) lifetime: Lifetime,
    /// The event after which a detached link ceases to exist.
    pub(crate) expiry: TerminusExpiryPolicy,
    /// The link that made it, until that has ceased to exist.
    pub(crate) maker: Option<Maker>,
}

/// The temporary nodes of a connection.
#[derive(Debug, Default)]
pub(crate) struct TemporaryNodes {
    nodes: Vec<TemporaryNode>,
    has_orphans: bool,
}

impl TemporaryNodes {
    /// Adds a node that was made.
    pub(crate) fn add(&mut self, node: TemporaryNode) {
        self.nodes.push(node);
    }

    /// Forgets all nodes.
    pub(crate) fn clear(&mut self) {
        *self = TemporaryNodes::default();
    }

    /// Tells whether a node of this name is the connection's own.
    pub(crate) fn has(&self, name: &Name) -> bool {
        self.nodes.iter().any(|node| node.name == *name)
    }

    /// Tells whether the maker of some node has ceased to exist.
    #[inline]
    pub(crate) fn has_orphans(&self) -> bool {
        self.has_orphans
    }

    /// Notes that a link is attached, perhaps again and on another session.
    pub(crate) fn link_attached(&mut self, is_receiver: bool, link: &str, channel: u16) {
        let makers = self.nodes.iter_mut().filter_map(|node| node.maker.as_mut());
        for maker in makers.filter(|maker| maker.is_receiver == is_receiver && *maker.link == *link) {
            maker.channel = channel;
        }
    }

    /// Notes that a link is detached. One that is closed ceases to exist, and so does one that expires with that.
    pub(crate) fn link_detached(&mut self, is_receiver: bool, link: &str, is_closed: bool) {
        self.orphan(|node, maker| {
            let ceases = is_closed || node.expiry == TerminusExpiryPolicy::LinkDetach;
            ceases && maker.is_receiver == is_receiver && *maker.link == *link
        });
    }

    /// Notes that a session has ended, and with it the links that do not outlast it.
    pub(crate) fn session_ended(&mut self, channel: u16) {
        self.orphan(|node, maker| {
            let ceases =
                matches!(node.expiry, TerminusExpiryPolicy::LinkDetach | TerminusExpiryPolicy::SessionEnd);
            ceases && maker.channel == channel
        });
    }

    /// Takes out a node whose maker is gone and for which `is_due` says that it ends.
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
