//! State of a client: rights, options and subscriptions.

use std::sync::Arc;

use imori_core::authorize::Identity;
use imori_core::broker::Actor;
use imori_core::confirm::Confirm;
use imori_core::id::{ConnectionId, VhostId};
use imori_core::message::TOPIC_EXCHANGE;
use imori_core::name::Name;
use imori_core::outbound::SessionId;
use imori_core::world::World;

use crate::codec::connect::ConnectOptions;
use crate::codec::encode::OK;
use crate::settings::Settings;
use crate::sids::Sids;

/// A NATS connection has exactly one session.
pub(crate) const SESSION: SessionId = SessionId::FIRST;

/// State of a client. Before login it has no rights.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) settings: Arc<Settings>,
    pub(crate) connection: ConnectionId,
    pub(crate) identity: Identity,
    pub(crate) vhost: VhostId,
    pub(crate) options: ConnectOptions,
    /// The nonce of INFO, which a client signs to log in with a key.
    pub(crate) nonce: String,
    /// The exchange of its subjects, kept so that subscriptions share one name.
    pub(crate) exchange: Name,
    pub(crate) sids: Sids,
    /// The queue subject whose lost messages were last reported; repeats are not reported.
    pub(crate) lost_to: Option<Box<[u8]>>,
    /// Buffer for assembling header texts, reused between messages.
    pub(crate) scratch: Vec<u8>,
}

impl Client {
    pub(crate) fn new(settings: Arc<Settings>, connection: ConnectionId) -> Self {
        Self {
            vhost: settings.vhost,
            settings,
            connection,
            identity: Identity::nobody(),
            options: ConnectOptions::default(),
            nonce: String::new(),
            exchange: Name::new(TOPIC_EXCHANGE),
            sids: Sids::default(),
            lost_to: None,
            scratch: Vec::new(),
        }
    }

    /// Sets the identity, adding the client's `name` to it.
    pub(crate) fn set_identity(&mut self, identity: Identity) {
        let name = self.options.name.as_deref().unwrap_or_default();
        self.identity = identity.with_client_id(name.as_bytes());
    }

    /// The actor on whose behalf the broker performs this client's commands.
    #[inline]
    pub(crate) fn actor(&self) -> Actor<'_> {
        Actor { identity: &self.identity, connection: self.connection, vhost: self.vhost }
    }

    /// Sends an answer to the client.
    pub(crate) fn answer<W: World>(&self, world: &W, write: impl FnOnce(&mut Vec<u8>)) {
        world.with_outbound(self.connection, |outbound| outbound.answer(SESSION, Confirm::NOW, write));
    }

    /// Sends +OK if the client is verbose.
    #[inline]
    pub(crate) fn agree<W: World>(&self, world: &W) {
        if self.options.verbose {
            self.answer(world, |out| out.extend_from_slice(OK));
        }
    }
}
