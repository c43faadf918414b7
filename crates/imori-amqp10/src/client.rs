//! State of a client: rights, vhost, sessions and transactions.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use imori_core::authorize::Identity;
use imori_core::broker::Actor;
use imori_core::confirm::Confirm;
use imori_core::id::{ConnectionId, VhostId};
use imori_core::name::Name;
use imori_core::outbound::SessionId;
use imori_core::turn::ClientFacts;
use imori_core::world::World;

use crate::codec::composite::Composite;
use crate::codec::composites::{DeliveryState, Disposition};
use crate::codec::frame::{FrameKind, push_frame};
use crate::codec::restricted::{ReceiverSettleMode, Role};
use crate::limits::FRAME_BYTES_MIN;
use crate::link::{End, Link};
use crate::session::{Session, session_of};
use crate::settings::Settings;
use crate::temporary::TemporaryNodes;
use crate::transaction::{LinkOf, Transactions};

/// State of a client. Before login it has no rights.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) settings: Arc<Settings>,
    pub(crate) connection: ConnectionId,
    pub(crate) identity: Identity,
    pub(crate) vhost: VhostId,
    /// The `container-id` of the client.
    pub(crate) container: Box<str>,
    /// User and container joined; no-local subscriptions use it to skip the client's own messages.
    pub(crate) own_name: Name,
    pub(crate) facts: ClientFacts,
    /// Largest frame that the client accepts, in bytes.
    pub(crate) frame_bytes_max: u32,
    /// Sessions by channel number, which both ends share.
    pub(crate) sessions: BTreeMap<u16, Session>,
    /// Attached links by whether the client receives, and by name (AMQP 1.0, 2.6.1).
    names: BTreeMap<(bool, Box<str>), LinkOf>,
    /// Temporary nodes created by links.
    pub(crate) temporary: TemporaryNodes,
    /// Memory of messages that have arrived only in part, in bytes.
    pub(crate) unfinished_bytes: usize,
    /// Transactions not yet discharged.
    pub(crate) transactions: Transactions,
    /// New access tokens, which must be checked before anything else is read.
    pub(crate) new_tokens: VecDeque<NewToken>,
}

/// A token from a request to `/management`.
#[derive(Debug)]
pub(crate) struct NewToken {
    /// The token.
    pub(crate) token: Box<[u8]>,
    /// The link that the request arrived on.
    pub(crate) link: LinkOf,
    /// The response to send once the token is accepted.
    pub(crate) response: Vec<u8>,
}

impl Client {
    pub(crate) fn new(settings: Arc<Settings>, connection: ConnectionId) -> Client {
        Client {
            settings,
            connection,
            identity: Identity::nobody(),
            vhost: VhostId(0),
            container: Box::default(),
            own_name: Name::new(b""),
            facts: ClientFacts::default(),
            frame_bytes_max: FRAME_BYTES_MIN,
            sessions: BTreeMap::new(),
            names: BTreeMap::new(),
            temporary: TemporaryNodes::default(),
            unfinished_bytes: 0,
            transactions: Transactions::default(),
            new_tokens: VecDeque::new(),
        }
    }

    /// Sets the identity, adding the client's container to it.
    pub(crate) fn set_identity(&mut self, identity: Identity) {
        self.identity = identity.with_client_id(self.container.as_bytes());
        self.own_name = Name::joined(b"", [self.identity.user.as_bytes(), self.container.as_bytes()]);
    }

    /// Adds a link to its session and registers its name.
    pub(crate) fn add_link(&mut self, (channel, handle): LinkOf, link: Link) {
        let Some(session) = self.sessions.get_mut(&channel) else { return };
        if let Some(role) = link.end.role() {
            self.names.insert((role == Role::Receiver, link.name.clone()), (channel, handle));
        }
        session.links.insert(handle, link);
    }

    /// Whether the session has a link with this handle.
    pub(crate) fn has_link(&self, (channel, handle): LinkOf) -> bool {
        self.sessions.get(&channel).is_some_and(|session| session.links.contains_key(&handle))
    }

    /// Returns the attached link with this name and client role, on any session.
    pub(crate) fn link_named(&self, name: &str, role: Role) -> Option<LinkOf> {
        self.names.get(&(role == Role::Receiver, Box::from(name))).copied()
    }

    /// Frees the name of a link that is no longer attached.
    pub(crate) fn free_name(&mut self, link: LinkOf, name: &str, end: &End) {
        if let Some(role) = end.role()
            && self.link_named(name, role) == Some(link)
        {
            self.names.remove(&(role == Role::Receiver, Box::from(name)));
        }
    }

    /// The actor on whose behalf the broker performs this client's commands.
    #[inline]
    pub(crate) fn actor(&self) -> Actor<'_> {
        Actor { identity: &self.identity, connection: self.connection, vhost: self.vhost }
    }

    /// Sends a performative once `confirm` is reached, after all earlier answers of its session.
    pub(crate) fn answer<'a, W: World>(
        &self,
        world: &W,
        channel: u16,
        confirm: Confirm,
        performative: &impl Composite<'a>,
    ) {
        self.send(world, session_of(channel), (channel, confirm), performative);
    }

    /// Sends the outcome of a client's message once `confirm` is reached. On a link that settles
    /// second, the delivery stays unsettled until the client settles it (AMQP 1.0, 2.6.12).
    pub(crate) fn tell_outcome<W: World>(
        &self,
        world: &W,
        (channel, id, mode): (u16, u32, ReceiverSettleMode),
        confirm: Confirm,
        state: DeliveryState<'_>,
    ) {
        let disposition = Disposition {
            role: Role::Receiver,
            first: id,
            settled: mode == ReceiverSettleMode::First,
            state: Some(state),
            ..Disposition::default()
        };
        self.answer(world, channel, confirm, &disposition);
    }

    /// Sends a performative that concerns the connection as a whole.
    pub(crate) fn answer_first<'a, W: World>(&self, world: &W, performative: &impl Composite<'a>) {
        self.send(world, SessionId::FIRST, (0, Confirm::NOW), performative);
    }

    fn send<'a, W: World>(
        &self,
        world: &W,
        session: SessionId,
        (channel, confirm): (u16, Confirm),
        performative: &impl Composite<'a>,
    ) {
        world.with_outbound(self.connection, |outbound| {
            outbound.answer(session, confirm, |out| {
                push_frame(out, FrameKind::Amqp, channel, |out| performative.encode(out));
            });
        });
    }
}
