//! State of a client: rights, vhost, capabilities and channels.

use std::collections::BTreeMap;
use std::sync::Arc;

use imori_core::authorize::Identity;
use imori_core::broker::Actor;
use imori_core::confirm::Confirm;
use imori_core::error::BrokerError;
use imori_core::id::{ConnectionId, VhostId};
use imori_core::name::Name;
use imori_core::outbound::SessionId;
use imori_core::turn::ClientFacts;
use imori_core::world::World;

use crate::channel::Channel;
use crate::codec::frame::push_method;
use crate::codec::method::MethodFields;
use crate::codec::table::{FieldValue, Table};
use crate::content::Unfinished;
use crate::limits::FRAME_BYTES_MIN;
use crate::protocol_error::ProtocolError;
use crate::settings::Settings;

/// State of a client. Before login it has no rights.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) settings: Arc<Settings>,
    pub(crate) connection: ConnectionId,
    pub(crate) identity: Identity,
    pub(crate) vhost: VhostId,
    pub(crate) vhost_name: Name,
    pub(crate) facts: ClientFacts,
    pub(crate) capabilities: Capabilities,
    /// The negotiated frame size in bytes.
    pub(crate) frame_bytes_max: u32,
    /// The negotiated number of channels.
    pub(crate) channel_max: u16,
    pub(crate) channels: BTreeMap<u16, Channel>,
    /// Some channel may have a message that has arrived only in part.
    pub(crate) has_unfinished: bool,
}

/// The notifications that a client declares to understand.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capabilities {
    /// `connection.close` after a refused login.
    pub(crate) is_told_of_refused_login: bool,
    /// `basic.cancel` from the broker.
    pub(crate) is_told_of_cancels: bool,
    /// `connection.blocked` and `connection.unblocked`.
    pub(crate) is_told_of_blocks: bool,
}

impl Capabilities {
    /// Reads the capabilities in a client's properties.
    pub(crate) fn read(properties: Table<'_>) -> Capabilities {
        let Some(FieldValue::Table(capabilities)) = properties.find("capabilities") else {
            return Capabilities::default();
        };
        let has = |name| capabilities.find(name) == Some(FieldValue::Bool(true));
        Capabilities {
            is_told_of_refused_login: has("authentication_failure_close"),
            is_told_of_cancels: has("consumer_cancel_notify"),
            is_told_of_blocks: has("connection.blocked"),
        }
    }
}

impl Client {
    pub(crate) fn new(settings: Arc<Settings>, connection: ConnectionId) -> Client {
        Client {
            connection,
            identity: Identity::nobody(),
            vhost: VhostId(0),
            vhost_name: Name::from("/"),
            facts: ClientFacts::default(),
            capabilities: Capabilities::default(),
            frame_bytes_max: FRAME_BYTES_MIN,
            channel_max: settings.channel_max,
            channels: BTreeMap::new(),
            has_unfinished: false,
            settings,
        }
    }

    /// Iterates over the messages that have arrived only in part.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = &Unfinished> {
        self.channels.values().filter_map(|channel| channel.unfinished.as_ref())
    }

    /// Sets the identity, adding the client's connection name to it.
    pub(crate) fn set_identity(&mut self, identity: Identity) {
        self.identity = identity.with_client_id(self.facts.name.as_bytes());
    }

    /// The actor on whose behalf the broker performs this client's commands.
    #[inline]
    pub(crate) fn actor(&self) -> Actor<'_> {
        Actor { identity: &self.identity, connection: self.connection, vhost: self.vhost }
    }

    /// Sends a method on a channel once `confirm` is reached, after all earlier answers of the
    /// channel.
    pub(crate) fn answer<'a, W: World>(
        &self,
        world: &W,
        channel: u16,
        confirm: Confirm,
        method: &impl MethodFields<'a>,
    ) {
        world.with_outbound(self.connection, |outbound| {
            outbound.answer(SessionId(channel), confirm, |out| push_method(out, channel, method));
        });
    }

    /// Translates an error of the core to an exception.
    #[cold]
    pub(crate) fn error(&self, error: &BrokerError) -> ProtocolError {
        ProtocolError::of_broker(error, &self.vhost_name)
    }
}
