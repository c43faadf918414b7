//! The state of a client: its rights, its options, its subscriptions.

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

/// NATS has one session a connection.
pub(crate) const SESSION: SessionId = SessionId::FIRST;

/// The state of a client. Before login it has no rights at all.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) settings: Arc<Settings>,
    pub(crate) connection: ConnectionId,
    pub(crate) identity: Identity,
    pub(crate) vhost: VhostId,
    pub(crate) options: ConnectOptions,
    /// The text that INFO asked the client to sign.
    pub(crate) nonce: String,
    /// The exchange in which its subjects live, once for all its subscriptions.
    pub(crate) exchange: Name,
    pub(crate) sids: Sids,
    /// The subject of a queue to which messages are lost, as the client was told.
    pub(crate) lost_to: Option<Box<[u8]>>,
    /// Where the text of a message is put together, kept between messages.
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

    /// Takes an identity, and the name that the client gives itself into it.
    pub(crate) fn set_identity(&mut self, identity: Identity) {
        let name = self.options.name.as_deref().unwrap_or_default();
        self.identity = identity.with_client_id(name.as_bytes());
    }

    /// On whose behalf the broker acts.
    #[inline]
    pub(crate) fn actor(&self) -> Actor<'_> {
        Actor { identity: &self.identity, connection: self.connection, vhost: self.vhost }
    }

    /// Sends an answer.
    pub(crate) fn answer<W: World>(&self, world: &W, write: impl FnOnce(&mut Vec<u8>)) {
        world.with_outbound(self.connection, |outbound| outbound.answer(SESSION, Confirm::NOW, write));
    }

    /// Says +OK if the client wants to hear it.
    #[inline]
    pub(crate) fn agree<W: World>(&self, world: &W) {
        if self.options.verbose {
            self.answer(world, |out| out.extend_from_slice(OK));
        }
    }
}
